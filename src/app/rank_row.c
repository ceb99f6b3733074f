/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Writes the row of one rank: the texts of its cells, and the columns that fit into the terminal.
 * No output, no clock. */
#include "app/rank_row.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES_MAX 192
#define BAR_MIN 6
#define BAR_MAX 40
#define BRIEF_BELOW 60 /* columns of a terminal */
#define GAP 2          /* blanks between cells */
/* A rank is shown as silent if it has reported nothing for SILENT_STEPS times the duration of a
 * step, and for at least SILENT_SPAN. */
#define SILENT_STEPS 10
#define SILENT_SPAN (30 * HF_SECOND)

static int columns_of(const char *text)
{
	return (int)hf_utf8_count(text);
}

void hf_rank_row_rate(double per_second, char ret_text[HF_RATE_TEXT_MAX])
{
	if (per_second >= 0.1)
		(void)snprintf(ret_text, HF_RATE_TEXT_MAX, per_second < 1000 ? "%.1f/s" : "%.0f/s",
			       per_second);
	else
		(void)snprintf(ret_text, HF_RATE_TEXT_MAX, "%.1f s/step", 1 / per_second);
}

void hf_rank_row_loss(const char *loss, char ret_text[HF_LOSS_TEXT_MAX])
{
	if (strlen(loss) <= 9)
		(void)snprintf(ret_text, HF_LOSS_TEXT_MAX, "%s", loss);
	else
		(void)snprintf(ret_text, HF_LOSS_TEXT_MAX, "%.4g", strtod(loss, NULL));
}

static bool is_running(const struct hf_rank_row *row)
{
	return hf_streq(row->state, "Running");
}

static bool has_bar(const struct hf_rank_row *row)
{
	return is_running(row) && row->step != NULL && row->step->total > 0;
}

static bool is_silent(const struct hf_rank_row *row)
{
	double steps = row->per_second * (double)row->silent / (double)HF_SECOND;

	return is_running(row) && row->silent >= SILENT_SPAN && row->per_second > 0 &&
	       steps >= SILENT_STEPS;
}

bool hf_rank_row_left(const struct hf_rank_row *row, char ret_text[HF_TIME_TEXT_MAX])
{
	double seconds;

	if (!is_running(row) || row->step == NULL || row->per_second <= 0 ||
	    row->step->total <= row->step->step || is_silent(row))
		return false;
	seconds = (double)(row->step->total - row->step->step) / row->per_second;
	if (seconds > 10.0 * 365 * 86400)
		return false;
	hf_span_format((hf_time)(seconds * (double)HF_SECOND), ret_text);
	return true;
}

static void write_note(const struct hf_rank_row *row, char text[CELL_BYTES_MAX])
{
	const struct hf_beat *step = row->step;
	char span[HF_TIME_TEXT_MAX];
	int len = 0;

	text[0] = '\0';
	if (row->restarts > 0)
		len = snprintf(text, CELL_BYTES_MAX, "restarts %" PRId64 "  ", row->restarts);
	if (step == NULL)
		return;
	if (is_silent(row)) {
		hf_span_format(row->silent, span);
		len += snprintf(text + len, CELL_BYTES_MAX - (size_t)len, "no step for %s  ", span);
	}
	if (step->has_own && step->own_us < 10000)
		len += snprintf(text + len, CELL_BYTES_MAX - (size_t)len, "(own %.1f ms)  ",
				(double)step->own_us / 1000);
	else if (step->has_own)
		len += snprintf(text + len, CELL_BYTES_MAX - (size_t)len, "(own %" PRIu64 " ms)  ",
				step->own_us / 1000);
	if (step->phase != HF_HEALTH_TRAINING)
		(void)snprintf(text + len, CELL_BYTES_MAX - (size_t)len, "(not training)");
}

/* Writes the text of one cell; "" if the rank has no such value. */
static void write_cell(const struct hf_rank_row *row, enum hf_rank_cell cell, bool brief,
		       char text[CELL_BYTES_MAX])
{
	const struct hf_beat *step = row->step;
	char value[HF_TIME_TEXT_MAX], rate[HF_RATE_TEXT_MAX], loss[HF_LOSS_TEXT_MAX];

	text[0] = '\0';
	if (cell == HF_CELL_NOTE) {
		write_note(row, text);
	} else if (step == NULL) {
		return;
	} else if (cell == HF_CELL_STEP && step->total > 0) {
		(void)snprintf(text, CELL_BYTES_MAX, "%s%" PRIu64 "/%" PRIu64, brief ? "" : "step ",
			       step->step, step->total);
	} else if (cell == HF_CELL_STEP) {
		(void)snprintf(text, CELL_BYTES_MAX, "step %" PRIu64, step->step);
	} else if (cell == HF_CELL_RATE && row->per_second > 0 && is_running(row)) {
		hf_rank_row_rate(row->per_second, rate);
		(void)snprintf(text, CELL_BYTES_MAX, "%s", rate);
	} else if (cell == HF_CELL_LOSS && step->loss[0] != '\0') {
		hf_rank_row_loss(step->loss, loss);
		(void)snprintf(text, CELL_BYTES_MAX, "%s%s", brief ? "" : "loss ", loss);
	} else if (cell == HF_CELL_LEFT && hf_rank_row_left(row, value)) {
		(void)snprintf(text, CELL_BYTES_MAX, "eta %s", value);
	}
}

static void widen_column(int *column, int width)
{
	*column = *column > width ? *column : width;
}

void hf_rank_columns_add(struct hf_rank_columns *columns, const struct hf_rank_row *row)
{
	char text[CELL_BYTES_MAX];

	widen_column(&columns->name, columns_of(row->name));
	if (has_bar(row))
		widen_column(&columns->bar, BAR_MIN);
	/* The text of a failure may be long, and may use the cells to its right. */
	else if (row->step == NULL || columns_of(row->state) <= (int)strlen("Succeeded"))
		widen_column(&columns->state,
			     columns_of(row->state) < 16 ? columns_of(row->state) : 16);
	for (enum hf_rank_cell cell = 0; cell < HF_CELLS; cell++) {
		write_cell(row, cell, false, text);
		widen_column(&columns->cells[cell], columns_of(text));
	}
}

static int width_of(const struct hf_rank_columns *columns)
{
	int width = 1 + columns->name + GAP +
		    (columns->state > columns->bar ? columns->state : columns->bar);

	for (int cell = 0; cell < HF_CELLS; cell++)
		width += columns->cells[cell] > 0 ? GAP + columns->cells[cell] : 0;
	return width;
}

void hf_rank_columns_fit(struct hf_rank_columns *columns, int width)
{
	static const enum hf_rank_cell order[] = {HF_CELL_NOTE, HF_CELL_LOSS, HF_CELL_RATE,
						  HF_CELL_LEFT};
	int spare;

	if (width > 0 && width < BRIEF_BELOW) {
		columns->brief = true;
		columns->cells[HF_CELL_STEP] -= columns->cells[HF_CELL_STEP] > 5 ? 5 : 0;
		columns->cells[HF_CELL_LOSS] -= columns->cells[HF_CELL_LOSS] > 5 ? 5 : 0;
	}
	for (size_t i = 0; width > 0 && i < HF_ARRAY_LEN(order) && width_of(columns) >= width; i++)
		columns->cells[order[i]] = 0;
	/* The bar takes half of the columns that the other cells leave free. */
	spare = width > 0 ? (width - 1 - width_of(columns)) / 2 : BAR_MAX;
	if (columns->bar > 0 && spare > 0)
		columns->bar = columns->bar + spare < BAR_MAX ? columns->bar + spare : BAR_MAX;
	if (columns->bar > 0)
		widen_column(&columns->bar, columns->state);
}

/* Writes a progress bar: "███████▌░░" in UTF-8, with a resolution of an eighth of a column;
 * "######...." in ASCII. */
static void add_bar(const struct hf_beat *step, int width, bool utf8, struct hf_strbuf *sb)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	double share = step->step >= step->total ? 1 : (double)step->step / (double)step->total;
	int parts = (int)(share * width * 8), full = parts / 8, at = full;

	for (int i = 0; i < full; i++)
		hf_strbuf_addstr(sb, utf8 ? "█" : "#");
	if (utf8 && parts % 8 > 0) {
		hf_strbuf_addstr(sb, eighths[parts % 8]);
		at++;
	}
	for (; at < width; at++)
		hf_strbuf_addstr(sb, utf8 ? "░" : ".");
}

static void add_padded(struct hf_strbuf *sb, const char *text, int width)
{
	int columns = columns_of(text);

	hf_strbuf_addstr(sb, text);
	for (int i = columns < width ? columns : width; i < width + GAP; i++)
		hf_strbuf_addch(sb, ' ');
}

static void trim_end(struct hf_strbuf *sb)
{
	while (sb->len > 0 && sb->data[sb->len - 1] == ' ')
		hf_strbuf_truncate(sb, sb->len - 1);
}

void hf_rank_row_write(const struct hf_rank_row *row, const struct hf_rank_columns *columns,
		       bool utf8, struct hf_strbuf *sb)
{
	char text[CELL_BYTES_MAX];

	hf_strbuf_addch(sb, ' ');
	add_padded(sb, row->name, columns->name);
	if (has_bar(row)) {
		add_bar(row->step, columns->bar, utf8, sb);
		hf_strbuf_addstr(sb, "  ");
	} else {
		add_padded(sb, row->state,
			   columns->bar > columns->state ? columns->bar : columns->state);
	}
	for (enum hf_rank_cell cell = 0; cell < HF_CELLS; cell++) {
		if (columns->cells[cell] == 0)
			continue;
		write_cell(row, cell, columns->brief, text);
		add_padded(sb, text, columns->cells[cell]);
	}
	trim_end(sb);
}
