/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/rollout_pace.h"

#include "base/compare.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Compares the times of canaries and of ranks. All numbers come from objects that others may write, so products are
 * floating point.
 */

/* A job's times are whole seconds, so a shorter difference says nothing. */
#define RUN_MS_LEAST 1000.0

static bool has_steps(const struct hf_rollout_pace *before, const struct hf_rollout_pace *after)
{
	return before->step_us > 0 && after->step_us > 0;
}

bool hf_rollout_is_slower(const struct hf_rollout_pace *before, const struct hf_rollout_pace *after,
			  int32_t percent)
{
	double times = 1.0 + (double)percent / 100.0;

	if (has_steps(before, after))
		return (double)after->step_us > (double)before->step_us * times;
	if (before->run_ms <= 0 || after->run_ms <= 0)
		return false;
	return (double)after->run_ms > (double)before->run_ms * times + RUN_MS_LEAST;
}

const char *hf_rollout_pace_text(const struct hf_rollout_pace *before,
				 const struct hf_rollout_pace *after,
				 char ret_text[HF_ROLLOUT_PACE_TEXT_MAX])
{
	if (has_steps(before, after))
		snprintf(ret_text, HF_ROLLOUT_PACE_TEXT_MAX,
			 "%" PRId64 ".%" PRId64 " ms in each step, %" PRId64 ".%" PRId64
			 " ms before",
			 after->step_us / 1000, after->step_us % 1000 / 100, before->step_us / 1000,
			 before->step_us % 1000 / 100);
	else if (before->run_ms > 0)
		snprintf(ret_text, HF_ROLLOUT_PACE_TEXT_MAX, "%" PRId64 " s, %" PRId64 " s before",
			 after->run_ms / 1000, before->run_ms / 1000);
	else
		snprintf(ret_text, HF_ROLLOUT_PACE_TEXT_MAX, "%" PRId64 " s", after->run_ms / 1000);
	return ret_text;
}

static int64_t take_shorter(int64_t a, int64_t b)
{
	return a <= 0 || (b > 0 && b < a) ? b : a;
}

struct hf_rollout_pace hf_rollout_best_pace(const struct hf_rollout_pace *a,
					    const struct hf_rollout_pace *b)
{
	return (struct hf_rollout_pace){.step_us = take_shorter(a->step_us, b->step_us),
					.run_ms = take_shorter(a->run_ms, b->run_ms)};
}

/* ---- ranks of jobs ------------------------------------------------------------------------------ */

/* By set, then the unchanged nodes first, then by node and own work. */
static int compare_ranks(const void *a, const void *b)
{
	const struct hf_rollout_rank *x = a, *y = b;
	int order = strcmp(x->set, y->set);

	if (order == 0)
		order = (int)x->changed - (int)y->changed;
	if (order == 0)
		order = strcmp(x->node, y->node);
	if (order != 0)
		return order;
	return (x->own_us > y->own_us) - (x->own_us < y->own_us);
}

/* What all sets together show. */
struct comparing {
	struct hf_rollout_rank
		*ratios; /* of each compared rank on a changed node; own_us is the ratio */
	size_t ratios_len;
	const char **unchanged; /* the nodes of compared ranks on unchanged nodes */
	size_t unchanged_len;
	int64_t *numbers; /* scratch, one for each rank */
};

static void compare_set(const struct hf_rollout_rank *ranks, size_t len, struct comparing *all)
{
	size_t unchanged = 0;
	int64_t median;

	while (unchanged < len && !ranks[unchanged].changed)
		unchanged++;
	if (unchanged == 0 || unchanged == len)
		return;
	for (size_t i = 0; i < unchanged; i++) {
		all->numbers[i] = ranks[i].own_us;
		if (i == 0 || !hf_streq(ranks[i].node, ranks[i - 1].node))
			all->unchanged[all->unchanged_len++] = ranks[i].node;
	}
	median = hf_median(all->numbers, unchanged);
	for (size_t i = unchanged; i < len; i++) {
		struct hf_rollout_rank *ratio = &all->ratios[all->ratios_len++];
		double permille = (double)ranks[i].own_us * 1000.0 / (double)median;

		*ratio = ranks[i];
		ratio->set = "";
		ratio->own_us = permille < 1e9 ? (int64_t)permille : (int64_t)1e9;
	}
}

static int64_t count_different(const char **texts, size_t len)
{
	int64_t count = 0;

	if (len > 0)
		qsort(texts, len, sizeof(*texts), hf_compare_by_name);
	for (size_t i = 0; i < len; i++)
		count += i == 0 || !hf_streq(texts[i], texts[i - 1]);
	return count;
}

/* The median of the nodes' medians: a node with many ranks counts as one. */
static void judge_nodes(struct comparing *all, struct hf_rollout_steps *steps)
{
	size_t nodes = 0;

	if (all->ratios_len > 0)
		qsort(all->ratios, all->ratios_len, sizeof(*all->ratios), compare_ranks);
	for (size_t from = 0, to; from < all->ratios_len; from = to) {
		for (to = from + 1; to < all->ratios_len &&
				    hf_streq(all->ratios[to].node, all->ratios[from].node);)
			to++;
		/* The ratios of a node are sorted. */
		all->numbers[nodes++] = all->ratios[from + (to - from - 1) / 2].own_us;
	}
	steps->changed_nodes = (int64_t)nodes;
	steps->permille = hf_median(all->numbers, nodes);
}

struct hf_rollout_steps hf_rollout_compare_steps(struct hf_rollout_rank *ranks, size_t len,
						 struct hf_arena *arena)
{
	struct comparing all = {
		.ratios = HF_ARENA_ARRAY(arena, struct hf_rollout_rank, len + 1),
		.unchanged = HF_ARENA_ARRAY(arena, const char *, len + 1),
		.numbers = HF_ARENA_ARRAY(arena, int64_t, len + 1),
	};
	struct hf_rollout_steps steps = {0};

	if (len > 0)
		qsort(ranks, len, sizeof(*ranks), compare_ranks);
	for (size_t from = 0, to; from < len; from = to) {
		for (to = from + 1; to < len && hf_streq(ranks[to].set, ranks[from].set);)
			to++;
		compare_set(&ranks[from], to - from, &all);
	}
	judge_nodes(&all, &steps);
	steps.unchanged_nodes = count_different(all.unchanged, all.unchanged_len);
	return steps;
}

bool hf_rollout_steps_are_slower(const struct hf_rollout_steps *steps)
{
	return steps->changed_nodes >= HF_ROLLOUT_STEP_NODES &&
	       steps->unchanged_nodes >= HF_ROLLOUT_STEP_NODES &&
	       steps->permille >= HF_ROLLOUT_STEP_PERMILLE;
}
