/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/rollout_pace.h"

#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>

static void a_canary_is_slower_by_its_steps_or_as_a_whole(void **state)
{
	static const struct {
		struct hf_rollout_pace before, after;
		int32_t percent;
		bool slower;
		const char *text;
	} rows[] = {
		/* A step counts, and the whole job does not. */
		{{100000, 10000},
		 {109900, 90000},
		 10,
		 false,
		 "109.9 ms in each step, 100.0 ms before"},
		{{100000, 10000},
		 {110100, 10000},
		 10,
		 true,
		 "110.1 ms in each step, 100.0 ms before"},
		{{100000, 10000},
		 {100001, 10000},
		 0,
		 true,
		 "100.0 ms in each step, 100.0 ms before"},
		/* One of both has no steps. */
		{{0, 100000}, {130000, 110000}, 10, false, "110 s, 100 s before"},
		{{100000, 100000}, {0, 112000}, 10, true, "112 s, 100 s before"},
		{{0, 100000}, {0, 111000}, 10, false, "111 s, 100 s before"},
		/* Whole seconds: 2 s may be 1.1 s, and 1 s may be 1.9 s. */
		{{0, 1000}, {0, 2000}, 0, false, "2 s, 1 s before"},
		{{0, 1000}, {0, 3000}, 0, true, "3 s, 1 s before"},
		/* Nothing is known of before. */
		{{0, 0}, {130000, 13000}, 0, false, "13 s"},
		{{100000, 0}, {0, 13000}, 0, false, "13 s"},
		/* Numbers of a forged status. */
		{{INT64_MAX, 1}, {INT64_MAX, 1}, 1000, false, NULL},
		{{0, INT64_MAX}, {0, INT64_MAX}, 1000, false, NULL},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		char text[HF_ROLLOUT_PACE_TEXT_MAX];

		hf_rollout_pace_text(&rows[i].before, &rows[i].after, text);
		if (hf_rollout_is_slower(&rows[i].before, &rows[i].after, rows[i].percent) !=
		    rows[i].slower)
			fail_msg("row %zu: %s", i, text);
		if (rows[i].text != NULL)
			assert_string_equal(text, rows[i].text);
	}
}

static void the_best_pace_has_the_shorter_known_times(void **state)
{
	struct hf_rollout_pace a = {.step_us = 100, .run_ms = 9000}, b = {.run_ms = 8000}, best;

	(void)state;
	best = hf_rollout_best_pace(&a, &b);
	assert_int_equal(best.step_us, 100);
	assert_int_equal(best.run_ms, 8000);
	best = hf_rollout_best_pace(&b, &a);
	assert_int_equal(best.step_us, 100);
	assert_int_equal(best.run_ms, 8000);
}

#define RANKS_MAX 64

struct scene {
	struct hf_rollout_rank ranks[RANKS_MAX];
	size_t len;
	struct hf_arena *arena;
};

static void add(struct scene *s, const char *set, const char *node, bool changed, int64_t own_us)
{
	s->ranks[s->len++] = (struct hf_rollout_rank){
		.set = set, .node = node, .changed = changed, .own_us = own_us};
}

static struct hf_rollout_steps compare(struct scene *s)
{
	struct hf_rollout_steps steps;

	s->arena = hf_arena_create((size_t)1 << 20);
	steps = hf_rollout_compare_steps(s->ranks, s->len, s->arena);
	s->arena = hf_arena_destroy(s->arena);
	return steps;
}

static const char *const nodes[] = {"n0", "n1", "n2", "n3", "n4", "n5"};

static void ranks_of_one_job_are_compared(void **state)
{
	struct scene s = {.len = 0};
	struct hf_rollout_steps steps;

	(void)state;
	for (int i = 0; i < 6; i++)
		add(&s, "job", nodes[i], i < 3, i < 3 ? 125000 + i : 100000 + i);
	steps = compare(&s);
	assert_int_equal(steps.changed_nodes, 3);
	assert_int_equal(steps.unchanged_nodes, 3);
	assert_int_equal(steps.permille, 1249);
	assert_true(hf_rollout_steps_are_slower(&steps));
}

static void ranks_of_different_jobs_are_not_compared(void **state)
{
	struct scene s = {.len = 0};
	struct hf_rollout_steps steps;

	(void)state;
	/* A job with long steps that is only on changed nodes, and one with short steps on the others. */
	for (int i = 0; i < 6; i++)
		add(&s, i < 3 ? "long" : "short", nodes[i], i < 3, i < 3 ? 900000 : 1000);
	steps = compare(&s);
	assert_int_equal(steps.changed_nodes, 0);
	assert_int_equal(steps.unchanged_nodes, 0);
	assert_int_equal(steps.permille, 0);
	assert_false(hf_rollout_steps_are_slower(&steps));
	/* Two jobs with steps of different length, each on both kinds of nodes. */
	s.len = 0;
	for (int i = 0; i < 6; i++) {
		add(&s, "long", nodes[i], i < 3, i < 3 ? 910000 : 900000);
		add(&s, "short", nodes[i], i < 3, i < 3 ? 1010 : 1000);
	}
	steps = compare(&s);
	assert_int_equal(steps.changed_nodes, 3);
	assert_int_equal(steps.unchanged_nodes, 3);
	assert_int_equal(steps.permille, 1010);
}

static void one_slow_node_is_no_evidence(void **state)
{
	struct scene s = {.len = 0};
	struct hf_rollout_steps steps;

	(void)state;
	/* Eight ranks of one changed node. */
	for (int i = 0; i < 8; i++)
		add(&s, "job", "n0", true, 300000);
	for (int i = 1; i < 6; i++)
		add(&s, "job", nodes[i], false, 100000);
	steps = compare(&s);
	assert_int_equal(steps.permille, 3000);
	assert_false(hf_rollout_steps_are_slower(&steps));
	/* Two further changed nodes are as fast as the others: the median node is not slow. */
	add(&s, "job", "n8", true, 100000);
	add(&s, "job", "n9", true, 101000);
	steps = compare(&s);
	assert_int_equal(steps.changed_nodes, 3);
	assert_int_equal(steps.permille, 1010);
	assert_false(hf_rollout_steps_are_slower(&steps));
}

static void a_slow_reference_needs_several_nodes(void **state)
{
	struct scene s = {.len = 0};
	struct hf_rollout_steps steps;

	(void)state;
	for (int i = 0; i < 4; i++)
		add(&s, "job", nodes[i], true, 130000);
	add(&s, "job", "n4", false, 100000);
	add(&s, "job", "n5", false, 100000);
	steps = compare(&s);
	assert_int_equal(steps.unchanged_nodes, 2);
	assert_false(hf_rollout_steps_are_slower(&steps));
	add(&s, "job", "n6", false, 100000);
	steps = compare(&s);
	assert_true(hf_rollout_steps_are_slower(&steps));
	steps.permille = HF_ROLLOUT_STEP_PERMILLE - 1;
	assert_false(hf_rollout_steps_are_slower(&steps));
}

static void the_order_of_ranks_does_not_matter(void **state)
{
	struct scene s = {.len = 0}, turned = {.len = 0};
	struct hf_rollout_steps a, b;

	(void)state;
	for (int i = 0; i < 6; i++) {
		add(&s, i % 2 ? "a" : "b", nodes[i], i < 3, 1000 + 7 * i);
		add(&s, "c", nodes[5 - i], i >= 3, 2000 + 11 * i);
	}
	for (size_t i = s.len; i > 0; i--)
		turned.ranks[turned.len++] = s.ranks[i - 1];
	a = compare(&s);
	b = compare(&turned);
	assert_memory_equal(&a, &b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_canary_is_slower_by_its_steps_or_as_a_whole),
		cmocka_unit_test(the_best_pace_has_the_shorter_known_times),
		cmocka_unit_test(ranks_of_one_job_are_compared),
		cmocka_unit_test(ranks_of_different_jobs_are_not_compared),
		cmocka_unit_test(one_slow_node_is_no_evidence),
		cmocka_unit_test(a_slow_reference_needs_several_nodes),
		cmocka_unit_test(the_order_of_ranks_does_not_matter),
	};

	return cmocka_run_group_tests_name("rollout_pace", tests, NULL, NULL);
}
