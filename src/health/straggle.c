/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Compares the own work of a job's ranks by medians, and finds slow ranks, slow jobs and jobs that hang. */
#include "health/straggle.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* A rank is slow if its own work is above this percentage of the peers' median ... */
#define SLOW_PERCENT 115
#define STRONG_PERCENT 200
/* ... and above the median by this many deviations: 1.4826 converts a median deviation into one of a normal
 * distribution; in ten-thousandths. */
#define DEVIATIONS (4 * UINT64_C(14826))
#define CONFIRM_WINDOWS 2
/* With fewer ranks the median depends on each single rank. */
#define PEERS_MIN 3
#define LOST_AFTER (30 * HF_SECOND)
#define HANG_FLOOR (2 * HF_MINUTE)
/* Checkpoints and evaluations take longer than any step. */
#define HANG_FLOOR_OTHER (10 * HF_MINUTE)
#define HANG_FACTOR 5
/* No step takes a day: a report of a longer step is wrong, and sums must not overflow. */
#define STEP_US_MAX (UINT64_C(86400) * 1000000)

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Sorts the values, and returns the median; of two in the middle the lower. */
static uint64_t find_median(uint64_t *values, size_t len)
{
	hf_assert(len > 0);
	qsort(values, len, sizeof(*values), by_value);
	return values[(len - 1) / 2];
}

/* ---- the reports of one rank ------------------------------------------------------------------- */

static void close_window(struct hf_health_rank_memory *rank)
{
	uint64_t own[HF_HEALTH_WINDOW_STEPS];

	memcpy(own, rank->own_us, sizeof(own));
	rank->window++;
	rank->previous_own_us = rank->median_own_us;
	rank->median_own_us = find_median(own, HF_HEALTH_WINDOW_STEPS);
	rank->mean_us = rank->total_us / HF_HEALTH_WINDOW_STEPS;
	/* Before enough steps there is nothing to compare the window with. */
	rank->base_mean_us =
		rank->base_steps >= HF_HEALTH_BASE_STEPS ? rank->base_us / rank->base_steps : 0;
	rank->base_us += rank->total_us;
	rank->base_steps += HF_HEALTH_WINDOW_STEPS;
	/* The base is about the last fifty steps: older steps weigh less with each window. */
	if (rank->base_steps > HF_HEALTH_BASE_STEPS + HF_HEALTH_WINDOW_STEPS) {
		rank->base_us = rank->base_us / rank->base_steps * HF_HEALTH_BASE_STEPS;
		rank->base_steps = HF_HEALTH_BASE_STEPS;
	}
	rank->steps = 0;
	rank->total_us = 0;
}

/* Whether the report is of an earlier attempt than the last one, or of an earlier step of the same attempt. */
static bool is_behind(const struct hf_health_rank_memory *rank,
		      const struct hf_health_report *report)
{
	return rank->any && (report->attempt < rank->attempt ||
			     (report->attempt == rank->attempt && report->step < rank->step));
}

static bool has_gone_back(struct hf_health_rank_memory *rank, const struct hf_health_report *report)
{
	bool on = rank->behind > 0 && report->attempt == rank->behind_attempt;

	if (!is_behind(rank, report)) {
		rank->behind = 0;
		return false;
	}
	if (on && report->step == rank->behind_step)
		return false;
	rank->behind = on && report->step > rank->behind_step ? rank->behind + 1 : 1;
	rank->behind_attempt = report->attempt;
	rank->behind_step = report->step;
	return rank->behind >= HF_HEALTH_BACK_STEPS;
}

static void begin_anew(struct hf_health_rank_memory *rank, const struct hf_health_report *report)
{
	memset(rank, 0, sizeof(*rank));
	rank->any = true;
	rank->attempt = report->attempt;
	rank->step = report->step;
	rank->phase = report->phase;
	rank->reported_at = rank->advanced_at = report->at;
}

static void take_step(struct hf_health_rank_memory *rank, const struct hf_health_report *report)
{
	uint64_t own = report->own_us < STEP_US_MAX ? report->own_us : STEP_US_MAX;
	uint64_t wait = report->wait_us < STEP_US_MAX ? report->wait_us : STEP_US_MAX;

	if (report->phase != HF_HEALTH_TRAINING)
		return;
	if (rank->skipped < HF_HEALTH_SKIP_STEPS) {
		rank->skipped++;
		return;
	}
	if (own + wait > rank->longest_us)
		rank->longest_us = own + wait;
	rank->own_us[rank->steps++] = own;
	rank->total_us += own + wait;
	if (rank->steps == HF_HEALTH_WINDOW_STEPS)
		close_window(rank);
}

bool hf_health_rank_report(struct hf_health_rank_memory *rank,
			   const struct hf_health_report *report)
{
	if (has_gone_back(rank, report) || !rank->any || report->attempt > rank->attempt) {
		begin_anew(rank, report);
		take_step(rank, report);
		return true;
	}
	if (report->attempt < rank->attempt)
		return false;
	if (report->at > rank->reported_at)
		rank->reported_at = report->at;
	rank->phase = report->phase;
	if (report->step <= rank->step)
		return false;
	rank->step = report->step;
	rank->advanced_at = rank->reported_at;
	take_step(rank, report);
	return false;
}

/* ---- peers -------------------------------------------------------------------------------------- */

struct peers {
	uint64_t median, deviation;
	size_t len;
};

static struct peers of_group(const struct hf_health_rank_view *const *ranks, size_t len,
			     uint64_t *scratch)
{
	struct peers p = {.len = 0};

	for (size_t i = 0; i < len; i++) {
		if (ranks[i]->memory->window > 0)
			scratch[p.len++] = ranks[i]->memory->median_own_us;
	}
	if (p.len < PEERS_MIN)
		return p;
	p.median = find_median(scratch, p.len);
	for (size_t i = 0; i < p.len; i++)
		scratch[i] = scratch[i] > p.median ? scratch[i] - p.median : p.median - scratch[i];
	p.deviation = find_median(scratch, p.len);
	return p;
}

static bool is_slow(const struct peers *p, uint64_t own)
{
	return own * 100 > p->median * SLOW_PERCENT &&
	       (own - p->median) * 10000 > p->deviation * DEVIATIONS;
}

static void judge_rank(const struct hf_health_rank_view *view, const struct peers *p,
		       struct hf_health_rank_verdict *verdict)
{
	uint64_t own = view->memory->median_own_us, score;

	if (p->len < PEERS_MIN || p->median == 0 || view->memory->window == 0)
		return;
	score = own * 1000 / p->median;
	verdict->score_permille = score < UINT32_MAX ? (uint32_t)score : UINT32_MAX;
	/* A window is judged once; a rank that restarted counts its windows from 1 again. */
	if (view->memory->window != view->judged_window) {
		verdict->judged_window = view->memory->window;
		verdict->slow_windows = is_slow(p, own) ? view->slow_windows + 1 : 0;
	}
	verdict->straggler = verdict->slow_windows >= CONFIRM_WINDOWS;
	verdict->strong = verdict->straggler && own * 100 > p->median * STRONG_PERCENT;
}

/* ---- judging the ranks of a job ----------------------------------------------------------------- */

static int by_group(const void *left, const void *right)
{
	const struct hf_health_rank_view *a = *(const struct hf_health_rank_view *const *)left;
	const struct hf_health_rank_view *b = *(const struct hf_health_rank_view *const *)right;
	int d = strcmp(a->group, b->group);

	return d != 0 ? d : strcmp(a->name, b->name);
}

static void judge_groups(const struct hf_health_rank_view *ranks, size_t len,
			 struct hf_arena *arena, struct hf_health_rank_verdict *verdicts)
{
	const struct hf_health_rank_view **sorted =
		HF_ARENA_ARRAY(arena, const struct hf_health_rank_view *, len + 1);
	uint64_t *scratch = HF_ARENA_ARRAY(arena, uint64_t, len + 1);
	size_t end;

	for (size_t i = 0; i < len; i++)
		sorted[i] = &ranks[i];
	qsort(sorted, len, sizeof(*sorted), by_group);
	for (size_t from = 0; from < len; from = end) {
		struct peers p;

		for (end = from + 1; end < len && hf_streq(sorted[end]->group, sorted[from]->group);
		     end++)
			continue;
		p = of_group(sorted + from, end - from, scratch);
		for (size_t i = from; i < end; i++)
			judge_rank(sorted[i], &p, &verdicts[sorted[i] - ranks]);
	}
}

/* Whether all ranks together are a tenth slower than before: then the file system, the network or the data is
 * slow. */
static bool is_slower(const struct hf_health_rank_view *ranks, size_t len, struct hf_arena *arena)
{
	uint64_t *now = HF_ARENA_ARRAY(arena, uint64_t, len + 1);
	uint64_t *before = HF_ARENA_ARRAY(arena, uint64_t, len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (ranks[i].memory->base_mean_us == 0)
			continue;
		now[n] = ranks[i].memory->mean_us;
		before[n++] = ranks[i].memory->base_mean_us;
	}
	return n > 0 && find_median(now, n) * 100 >= find_median(before, n) * 110;
}

static void judge_hang(const struct hf_health_rank_view *ranks, size_t len, hf_time now,
		       struct hf_health_job_verdict *job)
{
	hf_time advanced = HF_TIME_NONE, limit = HANG_FLOOR, end;
	uint64_t longest = 0;

	for (size_t i = 0; i < len; i++) {
		const struct hf_health_rank_memory *m = ranks[i].memory;

		if (!m->any)
			continue;
		if (m->advanced_at > advanced)
			advanced = m->advanced_at;
		if (m->longest_us > longest)
			longest = m->longest_us;
		if (m->phase != HF_HEALTH_TRAINING)
			limit = HANG_FLOOR_OTHER;
	}
	if (advanced == HF_TIME_NONE)
		return;
	if ((hf_time)longest * HF_US * HANG_FACTOR > limit)
		limit = (hf_time)longest * HF_US * HANG_FACTOR;
	end = hf_time_add(advanced, limit);
	job->hung = now >= end;
	job->hung_since = job->hung ? advanced : HF_TIME_NONE;
	if (!job->hung && end < job->wake_at)
		job->wake_at = end;
}

static void judge_lost(const struct hf_health_rank_view *view, hf_time now,
		       struct hf_health_rank_verdict *verdict, struct hf_health_job_verdict *job)
{
	hf_time end = hf_time_add(view->memory->reported_at, LOST_AFTER);

	if (!view->memory->any)
		return;
	verdict->lost = now >= end;
	job->lost += verdict->lost;
	if (!verdict->lost && end < job->wake_at)
		job->wake_at = end;
}

void hf_health_job_judge(const struct hf_health_rank_view *ranks, size_t len, hf_time now,
			 struct hf_arena *arena, struct hf_health_job_verdict *ret_verdict)
{
	struct hf_health_rank_verdict *verdicts;
	bool outlier = false;

	hf_assert(len <= HF_HEALTH_RANKS_MAX);
	memset(ret_verdict, 0, sizeof(*ret_verdict));
	ret_verdict->hung_since = HF_TIME_NONE;
	ret_verdict->wake_at = HF_TIME_NEVER;
	verdicts = HF_ARENA_ARRAY(arena, struct hf_health_rank_verdict, len + 1);
	for (size_t i = 0; i < len; i++)
		verdicts[i] = (struct hf_health_rank_verdict){
			.name = ranks[i].name,
			.judged_window = ranks[i].judged_window,
			.slow_windows = ranks[i].slow_windows,
		};
	if (len > 0)
		judge_groups(ranks, len, arena, verdicts);
	for (size_t i = 0; i < len; i++) {
		judge_lost(&ranks[i], now, &verdicts[i], ret_verdict);
		ret_verdict->stragglers += verdicts[i].straggler;
		outlier |= verdicts[i].slow_windows > 0;
	}
	ret_verdict->slow = !outlier && is_slower(ranks, len, arena);
	judge_hang(ranks, len, now, ret_verdict);
	ret_verdict->ranks = verdicts;
	ret_verdict->ranks_len = len;
}
