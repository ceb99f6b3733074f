/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The cells of `holdfast top`: a job's row and a rank's row as texts. */
#include "app/top.h"

#include "app/rank_row.h"
#include "base/str.h"
#include "cli/rank.h"

#include <inttypes.h>
#include <stdio.h>

const struct hf_top_column hf_top_job_columns[HF_TOP_JOB_COLUMNS] = {
	[HF_TOP_JOB_NS] = {"NAMESPACE", 5, false},
	[HF_TOP_JOB_NAME] = {"NAME", 0, false},
	[HF_TOP_JOB_KIND] = {"KIND", 6, false},
	[HF_TOP_JOB_STATE] = {"STATE", 0, false},
	[HF_TOP_JOB_READY] = {"READY", 1, true},
	[HF_TOP_JOB_STEP] = {"STEP", 2, true},
	[HF_TOP_JOB_RATE] = {"RATE", 4, true},
	[HF_TOP_JOB_ETTR] = {"ETTR", 3, true},
	[HF_TOP_JOB_RESTARTS] = {"RESTARTS", 3, false},
	[HF_TOP_JOB_CAUSE] = {"CAUSE", 8, false},
	[HF_TOP_JOB_AGE] = {"AGE", 7, true},
};

const struct hf_top_column hf_top_rank_columns[HF_TOP_RANK_COLUMNS] = {
	[HF_TOP_RANK_NAME] = {"RANK", 0, false},        [HF_TOP_RANK_STATE] = {"STATE", 0, false},
	[HF_TOP_RANK_STEP] = {"STEP", 1, true},         [HF_TOP_RANK_RATE] = {"RATE", 6, true},
	[HF_TOP_RANK_OWN] = {"OWN", 3, true},           [HF_TOP_RANK_WAIT] = {"WAIT", 4, true},
	[HF_TOP_RANK_SCORE] = {"SCORE", 2, true},       [HF_TOP_RANK_NODE] = {"NODE", 5, false},
	[HF_TOP_RANK_RESTARTS] = {"RESTARTS", 7, true}, [HF_TOP_RANK_LAST] = {"LAST STEP", 8, true},
};

HF_PRINTF(2, 3)
static void set_cell(char cell[HF_TOP_CELL_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(cell, HF_TOP_CELL_MAX, fmt, ap);
	va_end(ap);
	cell[hf_utf8_cut(cell, HF_TOP_CELL_MAX - 1)] = '\0';
}

static void set_rate(char cell[HF_TOP_CELL_MAX], double rate)
{
	char text[HF_RATE_TEXT_MAX];

	if (rate > 0)
		hf_rank_row_rate(rate, text);
	set_cell(cell, "%s", rate > 0 ? text : "-");
}

static void set_age(char cell[HF_TOP_CELL_MAX], hf_time since, hf_time now)
{
	char text[HF_TIME_TEXT_MAX];

	hf_span_format(since != HF_TIME_NONE && now > since ? now - since : 0, text);
	set_cell(cell, "%s", since != HF_TIME_NONE ? text : "-");
}

/* "2a 1i": two restarts charged to the application, one to the infrastructure. */
static void set_restarts(char cell[HF_TOP_CELL_MAX], const int64_t restarts[HF_BUDGETS])
{
	int len = 0;

	cell[0] = '\0';
	for (int i = 0; i < HF_BUDGETS; i++)
		if (restarts[i] > 0 && len < HF_TOP_CELL_MAX - 24)
			len += snprintf(cell + len, (size_t)(HF_TOP_CELL_MAX - len),
					"%s%" PRId64 "%c", len > 0 ? " " : "", restarts[i],
					hf_budget_name((enum hf_budget)i)[0]);
	if (len == 0)
		set_cell(cell, "0");
}

void hf_top_job_cells(const struct hf_top_job *job, hf_time now, struct hf_top_cells *ret_cells)
{
	char(*text)[HF_TOP_CELL_MAX] = ret_cells->text;

	set_cell(text[HF_TOP_JOB_NS], "%s", job->ns);
	set_cell(text[HF_TOP_JOB_NAME], "%s", job->name);
	set_cell(text[HF_TOP_JOB_KIND], "%s", job->kind);
	set_cell(text[HF_TOP_JOB_STATE], "%s", job->state);
	set_cell(text[HF_TOP_JOB_READY], "%" PRId64 "/%" PRId64, job->ready, job->wanted);
	if (job->step > 0)
		set_cell(text[HF_TOP_JOB_STEP], "%" PRId64, job->step);
	else
		set_cell(text[HF_TOP_JOB_STEP], "-");
	set_rate(text[HF_TOP_JOB_RATE], job->rate);
	if (job->has_ettr)
		set_cell(text[HF_TOP_JOB_ETTR], "%" PRId64 ".%" PRId64 "%%",
			 job->ettr_permille / 10, job->ettr_permille % 10);
	else
		set_cell(text[HF_TOP_JOB_ETTR], "-");
	set_restarts(text[HF_TOP_JOB_RESTARTS], job->restarts);
	set_cell(text[HF_TOP_JOB_CAUSE], "%s", *job->cause != '\0' ? job->cause : "-");
	set_age(text[HF_TOP_JOB_AGE], job->created, now);
}

/* The time of a step that is not the rank's own work. A step takes as long for each rank of a job. */
static void set_wait(char cell[HF_TOP_CELL_MAX], const struct hf_top_rank *rank, double rate)
{
	double wait = rate > 0 ? 1e3 / rate - (double)rank->own_us / 1e3 : 0;

	if (rate <= 0 || rank->own_us <= 0)
		set_cell(cell, "-");
	else
		set_cell(cell, "%.0f ms", wait > 0 ? wait : 0);
}

void hf_top_rank_cells(const struct hf_top_rank *rank, const struct hf_top_job *job, hf_time now,
		       struct hf_top_cells *ret_cells)
{
	char(*text)[HF_TOP_CELL_MAX] = ret_cells->text;
	double rate = rank->rate > 0 ? rank->rate : job->rate;

	set_cell(text[HF_TOP_RANK_NAME], "%s", hf_cli_rank_of_pod(rank->pod, job->name));
	set_cell(text[HF_TOP_RANK_STATE], "%s", rank->status);
	if (rank->reported && rank->total > 0)
		set_cell(text[HF_TOP_RANK_STEP], "%" PRId64 "/%" PRId64, rank->step, rank->total);
	else if (rank->reported)
		set_cell(text[HF_TOP_RANK_STEP], "%" PRId64, rank->step);
	else
		set_cell(text[HF_TOP_RANK_STEP], "-");
	set_rate(text[HF_TOP_RANK_RATE], rank->rate);
	if (rank->own_us > 0)
		set_cell(text[HF_TOP_RANK_OWN], rank->own_us < 10000 ? "%.1f ms" : "%.0f ms",
			 (double)rank->own_us / 1e3);
	else
		set_cell(text[HF_TOP_RANK_OWN], "-");
	set_wait(text[HF_TOP_RANK_WAIT], rank, rate);
	if (rank->score > 0)
		set_cell(text[HF_TOP_RANK_SCORE], "%.2f", rank->score);
	else
		set_cell(text[HF_TOP_RANK_SCORE], "-");
	set_cell(text[HF_TOP_RANK_NODE], "%s", *rank->node != '\0' ? rank->node : "-");
	set_cell(text[HF_TOP_RANK_RESTARTS], "%" PRId64, rank->restarts);
	set_age(text[HF_TOP_RANK_LAST], rank->advanced_at, now);
}
