/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_HISTORY_H
#define HF_APP_HISTORY_H

#include "base/error.h"
#include "base/strbuf.h"
#include "base/time.h"
#include "health/beat.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The steps that the ranks of one run reported, and the restarts of the job: for the sparklines of `run`, and
 * kept with the run for `plot`.
 *
 * Each rank has at most HF_HISTORY_POINTS_MAX points. When they are full, every second point is dropped, and from then
 * on points have twice the distance. So the first and the last report stay, whatever the run takes.
 */
#define HF_HISTORY_POINTS_MAX 512
#define HF_HISTORY_RANKS_MAX 1024
/* most restarts that are remembered; later restarts are left out */
#define HF_HISTORY_RESTARTS_MAX 256
#define HF_HISTORY_BYTES_MAX ((size_t)32 << 20)

struct hf_history_point {
	hf_time at;
	uint64_t step;
	double loss; /* NAN: not reported, or not finite */
	bool begins; /* the point is the first report of a new process */
};

struct hf_history_rank {
	char *name;                      /* "worker-0" */
	struct hf_history_point *points; /* in the order of time */
	size_t n;
	hf_time gap; /* least time between two points */
	bool begins; /* the next report will be the first one of a new process */
};

struct hf_history_restart {
	hf_time at;
	int64_t generation;
};

struct hf_history {
	struct hf_history_rank **ranks; /* the ranks, in the order of their first reports */
	size_t n_ranks;
	struct hf_history_restart restarts[HF_HISTORY_RESTARTS_MAX];
	size_t n_restarts;
	bool changed; /* since the last hf_history_save */
};

struct hf_history *hf_history_create(void);
struct hf_history *hf_history_destroy(struct hf_history *history); /* NULL is fine */

/* Add a report of a step. Reports of ranks beyond the limit are dropped. */
void hf_history_step(struct hf_history *history, const char *rank, const struct hf_beat *beat,
		     hf_time now);
/* Note that the rank has a new process: the next report of the rank is the first report of this
 * process. */
void hf_history_begin(struct hf_history *history, const char *rank);
/* The job has restarted. */
void hf_history_restart(struct hf_history *history, int64_t generation, hf_time now);

/* Values to draw: the loss, or the seconds that one step takes. The latter is the time since the
 * previous point of the same process, divided by the steps since. */
enum hf_history_value { HF_HISTORY_LOSS, HF_HISTORY_STEP_SECONDS };
/* The value at point i. NAN: the value is unknown. */
double hf_history_value_at(const struct hf_history_rank *rank, enum hf_history_value value,
			   size_t i);
/* The mean of the values of the points `from` to `to` - 1; NAN: no value is known. */
double hf_history_mean(const struct hf_history_rank *rank, enum hf_history_value value, size_t from,
		       size_t to);

/* Save or load the history, a file of a kept run (app/kept_runs.h). Errors of load: HF_E_NOT_FOUND
 * if the folder has no such file; HF_E_INVALID if the file is damaged or of another version. */
#define HF_HISTORY_FILE "steps.json"
int hf_history_save(struct hf_history *history, const char *folder, struct hf_error *err)
	HF_MUST_CHECK;
int hf_history_load(const char *folder, struct hf_history **ret_history, struct hf_error *err)
	HF_MUST_CHECK;

/*
 * Draw values in one row of at most `columns` characters: "▇▆▅┆▃▂▁", in ASCII "#+=|:._". Each character is the mean of
 * its points. Returns the number of characters; 0: there are
 * no values.
 */
int hf_history_spark(const struct hf_history_rank *rank, enum hf_history_value value, int columns,
		     bool utf8, struct hf_strbuf *sb);

#endif
