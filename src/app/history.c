/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The steps that ranks reported: points with a limit, their file, and rows of characters. */
#include "app/history.h"

#include "app/kept_runs.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1

struct hf_history *hf_history_create(void)
{
	return hf_xcalloc(1, sizeof(struct hf_history));
}

struct hf_history *hf_history_destroy(struct hf_history *history)
{
	if (history == NULL)
		return NULL;
	for (size_t i = 0; i < history->n_ranks; i++) {
		free(history->ranks[i]->name);
		free(history->ranks[i]->points);
		free(history->ranks[i]);
	}
	free(history->ranks);
	free(history);
	return NULL;
}

/* Finds the rank by name; create: adds it if it is missing. NULL: it is missing, or there are
 * HF_HISTORY_RANKS_MAX ranks already. */
static struct hf_history_rank *find_rank(struct hf_history *history, const char *name, bool create)
{
	struct hf_history_rank *rank;

	for (size_t i = 0; i < history->n_ranks; i++)
		if (hf_streq(history->ranks[i]->name, name))
			return history->ranks[i];
	if (!create || history->n_ranks == HF_HISTORY_RANKS_MAX)
		return NULL;
	if (history->ranks == NULL)
		history->ranks = hf_xcalloc(HF_HISTORY_RANKS_MAX, sizeof(history->ranks[0]));
	rank = hf_xcalloc(1, sizeof(*rank));
	rank->name = hf_xstrdup(name);
	rank->points = hf_xcalloc(HF_HISTORY_POINTS_MAX, sizeof(rank->points[0]));
	history->ranks[history->n_ranks++] = rank;
	return rank;
}

/* Drops every second point, but not the first and the last one. */
static void thin_out(struct hf_history_rank *rank)
{
	size_t kept = 1;

	for (size_t i = 1; i < rank->n; i++) {
		if (i % 2 == 0 && i + 1 < rank->n) {
			rank->points[i + 1].begins |= rank->points[i].begins;
			continue;
		}
		rank->points[kept++] = rank->points[i];
	}
	rank->n = kept;
	rank->gap = (rank->points[kept - 1].at - rank->points[0].at) / (hf_time)kept;
}

static void add_point(struct hf_history_rank *rank, const struct hf_history_point *point)
{
	struct hf_history_point *last = rank->n > 0 ? &rank->points[rank->n - 1] : NULL;

	/* Points are at least `gap` apart. While the new point is nearer than that to the point
	 * before the last one, the new point replaces the last point. */
	if (rank->n > 1 && !point->begins && !last->begins && point->at - last[-1].at < rank->gap) {
		*last = *point;
		return;
	}
	if (rank->n == HF_HISTORY_POINTS_MAX)
		thin_out(rank);
	rank->points[rank->n++] = *point;
}

void hf_history_step(struct hf_history *history, const char *name, const struct hf_beat *beat,
		     hf_time now)
{
	struct hf_history_rank *rank = find_rank(history, name, true);
	struct hf_history_point point = {.at = now, .step = beat->step, .loss = NAN};
	double loss = beat->loss[0] != '\0' ? strtod(beat->loss, NULL) : NAN;

	if (rank == NULL)
		return;
	if (isfinite(loss))
		point.loss = loss;
	/* The wall clock may go back; a point must not be older than the point before it. */
	if (rank->n > 0 && now < rank->points[rank->n - 1].at)
		point.at = rank->points[rank->n - 1].at;
	point.begins = rank->n > 0 && rank->begins;
	rank->begins = false;
	add_point(rank, &point);
	history->changed = true;
}

void hf_history_begin(struct hf_history *history, const char *name)
{
	struct hf_history_rank *rank = find_rank(history, name, false);

	if (rank != NULL)
		rank->begins = true;
}

void hf_history_restart(struct hf_history *history, int64_t generation, hf_time now)
{
	if (history->n_restarts == HF_HISTORY_RESTARTS_MAX)
		return;
	history->restarts[history->n_restarts++] = (struct hf_history_restart){now, generation};
	history->changed = true;
}

static double step_seconds(const struct hf_history_rank *rank, size_t i)
{
	const struct hf_history_point *point = &rank->points[i];

	if (i == 0 || point->begins || point->step <= point[-1].step || point->at <= point[-1].at)
		return NAN;
	return (double)(point->at - point[-1].at) / (double)HF_SECOND /
	       (double)(point->step - point[-1].step);
}

double hf_history_value_at(const struct hf_history_rank *rank, enum hf_history_value value,
			   size_t i)
{
	return value == HF_HISTORY_LOSS ? rank->points[i].loss : step_seconds(rank, i);
}

double hf_history_mean(const struct hf_history_rank *rank, enum hf_history_value value, size_t from,
		       size_t to)
{
	double sum = 0;
	int n = 0;

	for (size_t i = from; i < to; i++) {
		double v = hf_history_value_at(rank, value, i);

		if (isfinite(v)) {
			sum += v;
			n++;
		}
	}
	return n > 0 ? sum / n : NAN;
}

/* ---- the history as a file ----------------------------------------------------------------- */

/* A point is an array: microseconds, step, loss or null, and 1 for a new process. */
static struct hf_json *point_to_json(const struct hf_history_point *point)
{
	struct hf_json *json = hf_json_array();

	hf_json_append(json, hf_json_int(point->at / HF_US));
	hf_json_append(json, hf_json_int((int64_t)point->step));
	hf_json_append(json, isfinite(point->loss) ? hf_json_real(point->loss) : hf_json_null());
	hf_json_append(json, hf_json_int(point->begins));
	return json;
}

static struct hf_json *rank_to_json(const struct hf_history_rank *rank)
{
	struct hf_json *json = hf_json_object(), *points = hf_json_array();

	hf_json_set_str(json, "name", rank->name);
	for (size_t i = 0; i < rank->n; i++)
		hf_json_append(points, point_to_json(&rank->points[i]));
	hf_json_set(json, "points", points);
	return json;
}

int hf_history_save(struct hf_history *history, const char *folder, struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_HISTORY_BYTES_MAX);
	HF_AUTO_JSON json = hf_json_object();
	struct hf_json *ranks = hf_json_array(), *restarts = hf_json_array();
	int rc;

	hf_json_set_i64(json, "version", VERSION);
	for (size_t i = 0; i < history->n_ranks; i++)
		hf_json_append(ranks, rank_to_json(history->ranks[i]));
	hf_json_set(json, "ranks", ranks);
	for (size_t i = 0; i < history->n_restarts; i++) {
		struct hf_json *restart = hf_json_object();

		hf_json_set_i64(restart, "at", history->restarts[i].at / HF_US);
		hf_json_set_i64(restart, "generation", history->restarts[i].generation);
		hf_json_append(restarts, restart);
	}
	hf_json_set(json, "restarts", restarts);
	hf_json_write(json, HF_JSON_COMPACT, &text);
	rc = hf_strbuf_ok(&text, HF_HISTORY_FILE, err);
	if (rc == 0)
		rc = hf_kept_run_write(folder, HF_HISTORY_FILE, &text, err);
	history->changed = history->changed && rc != 0;
	return rc;
}

/* Reads a time from JSON. False: the value is missing, or so large that differences of times would
 * overflow. */
static bool read_time(const struct hf_json *json, hf_time *ret_time)
{
	int64_t us = hf_json_i64(json, -1);

	if (us < 0 || us > INT64_MAX / HF_US / 2)
		return false;
	*ret_time = us * HF_US;
	return true;
}

static void load_rank(struct hf_history *history, const struct hf_json *json)
{
	const struct hf_json *points = hf_json_get(json, "points");
	const char *name = hf_json_path_str(json, "name", NULL);
	struct hf_history_rank *rank = name != NULL ? find_rank(history, name, true) : NULL;

	for (size_t i = 0;
	     rank != NULL && i < hf_json_len(points) && rank->n < HF_HISTORY_POINTS_MAX; i++) {
		const struct hf_json *item = hf_json_item(points, i);
		int64_t step = hf_json_i64(hf_json_item(item, 1), -1);
		struct hf_history_point point = {.step = (uint64_t)step,
						 .loss = hf_json_num(hf_json_item(item, 2), NAN),
						 .begins = hf_json_i64(hf_json_item(item, 3), 0) !=
							   0};

		if (step >= 0 && read_time(hf_json_item(item, 0), &point.at) &&
		    (rank->n == 0 || point.at >= rank->points[rank->n - 1].at))
			rank->points[rank->n++] = point;
	}
}

int hf_history_load(const char *folder, struct hf_history **ret_history, struct hf_error *err)
{
	HF_AUTO_JSON json = NULL;
	const struct hf_json *ranks, *restarts;
	struct hf_history *history;
	int rc = hf_kept_run_read(folder, HF_HISTORY_FILE, HF_HISTORY_BYTES_MAX, &json, err);

	if (rc != 0)
		return rc;
	if (hf_json_i64(hf_json_get(json, "version"), 0) != VERSION)
		return hf_error_set(err, HF_E_INVALID,
				    "'%s/" HF_HISTORY_FILE "' is of another version of holdfast",
				    folder);
	history = hf_history_create();
	ranks = hf_json_get(json, "ranks");
	for (size_t i = 0; i < hf_json_len(ranks); i++)
		load_rank(history, hf_json_item(ranks, i));
	restarts = hf_json_get(json, "restarts");
	for (size_t i = 0; i < hf_json_len(restarts); i++) {
		const struct hf_json *item = hf_json_item(restarts, i);
		hf_time at;

		if (read_time(hf_json_get(item, "at"), &at))
			hf_history_restart(history, hf_json_i64(hf_json_get(item, "generation"), 0),
					   at);
	}
	history->changed = false;
	*ret_history = history;
	return 0;
}

/* ---- rows of characters -------------------------------------------------------------------- */

static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const letters[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
#define LEVELS 8

static bool begins_within(const struct hf_history_rank *rank, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (rank->points[i].begins)
			return true;
	return false;
}

/* A row of n characters to draw. Each character stands for a range of points. */
struct row {
	const struct hf_history_rank *rank;
	enum hf_history_value value;
	size_t n;
	double low, high;
};

static double mean_of_character(const struct row *row, size_t c)
{
	return hf_history_mean(row->rank, row->value, c * row->rank->n / row->n,
			       (c + 1) * row->rank->n / row->n);
}

static void find_range(struct row *row)
{
	/* Draw times on a scale that begins at 0, so that small differences look small. */
	row->low = row->value == HF_HISTORY_LOSS ? INFINITY : 0;
	row->high = -INFINITY;
	for (size_t c = 0; c < row->n; c++) {
		double v = mean_of_character(row, c);

		row->low = isfinite(v) && v < row->low ? v : row->low;
		row->high = isfinite(v) && v > row->high ? v : row->high;
	}
}

/* Draws one character of the line: a bar where a new process begins, else the mean of the values.
 * Returns false and draws nothing if there is no value. */
static bool add_character(const struct row *row, size_t c, bool utf8, struct hf_strbuf *sb)
{
	double v = mean_of_character(row, c), span = row->high - row->low;
	int level = span > 0 && isfinite(v) ? (int)((v - row->low) / span * (LEVELS - 1) + 0.5) : 0;

	if (begins_within(row->rank, c * row->rank->n / row->n, (c + 1) * row->rank->n / row->n))
		hf_strbuf_addstr(sb, utf8 ? "┆" : "|");
	else if (isfinite(v))
		hf_strbuf_addstr(sb, utf8 ? blocks[level] : letters[level]);
	else
		return false;
	return true;
}

int hf_history_spark(const struct hf_history_rank *rank, enum hf_history_value value, int columns,
		     bool utf8, struct hf_strbuf *sb)
{
	struct row row = {.rank = rank, .value = value, .n = columns > 0 ? (size_t)columns : 0};
	int drawn = 0;

	row.n = row.n < rank->n ? row.n : rank->n;
	find_range(&row);
	for (size_t c = 0; c < row.n && isfinite(row.high); c++)
		drawn += add_character(&row, c, utf8, sb);
	return drawn;
}
