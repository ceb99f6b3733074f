/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RANK_ROW_H
#define HF_APP_RANK_ROW_H

#include "base/strbuf.h"
#include "base/time.h"
#include "health/beat.h"

/*
 * The row of one rank in the block of `run`:
 *
 *     worker-0  ███████░░░  step 120/200  4.1/s  loss 0.0972  eta 19s  (own 31 ms)
 *
 * The cells of all rows stand below each other. In a narrow terminal, the cells at the right are left out: first the own
 * time, then the loss, the rate and the rest of the time.
 */
struct hf_rank_row {
	const char *name;  /* "worker-0" */
	const char *state; /* "Running", "Failed code=137 (SIGKILL)", … */
	/* how often the kubelet restarted the rank's container in its pod */
	int64_t restarts;
	const struct hf_beat *step; /* the last report; NULL: none */
	double per_second;          /* steps a second; 0: not known */
	hf_time silent;             /* time since the rank's last report */
};

enum hf_rank_cell {
	HF_CELL_STEP,
	HF_CELL_RATE,
	HF_CELL_LOSS,
	HF_CELL_LEFT,
	HF_CELL_NOTE,
	HF_CELLS
};

/* The width of each column of the block. Set to zeros before the first row is added. */
struct hf_rank_columns {
	int name, state, bar; /* width of the cells in columns; bar 0: no rank has a bar */
	int cells[HF_CELLS];  /* width of each cell's column; 0: the column is left out */
	/* the cells leave out the words "step" and "loss", for a narrow terminal */
	bool brief;
};

/* Fit the columns: first add each row that will be shown, then fit the sum to the width of the
 * terminal; width 0: no limit. */
void hf_rank_columns_add(struct hf_rank_columns *columns, const struct hf_rank_row *row);
void hf_rank_columns_fit(struct hf_rank_columns *columns, int width);
void hf_rank_row_write(const struct hf_rank_row *row, const struct hf_rank_columns *columns,
		       bool utf8, struct hf_strbuf *sb);

/* The time until the training ends, such as "19s", at the present step rate; false: the time is
 * unknown. */
bool hf_rank_row_left(const struct hf_rank_row *row, char ret_text[HF_TIME_TEXT_MAX]);
/* Write a rate as "4.1/s"; a rate below one step in ten seconds as "12.5 s/step". */
#define HF_RATE_TEXT_MAX 32
void hf_rank_row_rate(double per_second, char ret_text[HF_RATE_TEXT_MAX]);
/* Write a loss in at most 9 characters. */
#define HF_LOSS_TEXT_MAX 16
void hf_rank_row_loss(const char *loss, char ret_text[HF_LOSS_TEXT_MAX]);

#endif
