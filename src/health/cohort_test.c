/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/cohort.h"

#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define NODES 200

static const struct hf_health_cohorts cohorts = {
	.percents = {5, 25, 100}, .len = 3, .soak = HF_HOUR, .failures_max = 1};
static struct hf_health_rollout_node nodes[NODES];
static char names[NODES][16];
static struct hf_health_rollout rollout;
static struct hf_health_rollout_plan plan;
static struct hf_arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = hf_arena_create((size_t)1 << 20);
	for (int i = 0; i < NODES; i++) {
		snprintf(names[i], sizeof(names[i]), "node-%d", i);
		nodes[i] = (struct hf_health_rollout_node){.name = names[i], .since = HF_TIME_NONE};
	}
	rollout = (struct hf_health_rollout){
		.cohorts = &cohorts, .nodes = nodes, .len = NODES, .now = HF_DAY};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = hf_arena_destroy(arena);
	return 0;
}

static void decide(void)
{
	hf_arena_reset(arena);
	hf_health_rollout_decide(&rollout, arena, &plan);
}

/* As the plan says. */
static void do_it(void)
{
	for (size_t i = 0; i < plan.nodes_len; i++) {
		for (int k = 0; k < NODES; k++) {
			if (!hf_streq(names[k], plan.nodes[i]))
				continue;
			nodes[k].has = plan.step == HF_HEALTH_ROLL_GIVE;
			nodes[k].since = nodes[k].has ? rollout.now : HF_TIME_NONE;
		}
	}
}

static void expect(enum hf_health_rollout_step step, size_t cohort)
{
	assert_string_equal(hf_health_rollout_step_name(plan.step),
			    hf_health_rollout_step_name(step));
	assert_int_equal(plan.cohort, cohort);
}

static void cohort_after_cohort_with_time_to_watch(void **state)
{
	size_t given = 0;

	(void)state;
	for (size_t c = 0; c < 3; c++) {
		decide();
		expect(HF_HEALTH_ROLL_GIVE, c);
		given += plan.nodes_len;
		do_it();
		decide();
		expect(HF_HEALTH_ROLL_SOAK, c);
		assert_int_equal(plan.wake_at, rollout.now + HF_HOUR);
		rollout.now += HF_HOUR;
	}
	assert_int_equal(given, NODES);
	decide();
	expect(HF_HEALTH_ROLL_DONE, 2);
}

static void promise_10_harm_halts_it_and_takes_it_back(void **state)
{
	size_t first;

	(void)state;
	decide();
	first = plan.nodes_len;
	assert_in_range(first, 3, 25);
	do_it();
	for (int i = 0, n = 0; i < NODES && n < 2; i++) {
		if (nodes[i].has) {
			nodes[i].failed = true;
			/* One may be chance. */
			decide();
			expect(n == 0 ? HF_HEALTH_ROLL_SOAK : HF_HEALTH_ROLL_BACK, 0);
			n++;
		}
	}
	assert_int_equal(plan.nodes_len, first);
	assert_int_equal(plan.failures, 2);
	do_it();
	/* Nobody has it, and nobody gets it before a person says so. */
	rollout.halted = true;
	rollout.now += HF_DAY;
	decide();
	expect(HF_HEALTH_ROLL_HALTED, 0);
	assert_int_equal(plan.nodes_len, 0);
}

static void a_node_that_comes_later_gets_it_with_its_cohort(void **state)
{
	(void)state;
	rollout.len = NODES - 50;
	decide();
	do_it();
	rollout.len = NODES;
	decide();
	expect(HF_HEALTH_ROLL_GIVE, 0);
	for (size_t i = 0; i < plan.nodes_len; i++)
		assert_int_equal(hf_health_cohort_of(&cohorts, plan.nodes[i]), 0);
}

static void a_failure_before_it_got_it_is_not_its_fault(void **state)
{
	(void)state;
	for (int i = 0; i < NODES; i++)
		nodes[i].failed = true;
	decide();
	expect(HF_HEALTH_ROLL_GIVE, 0);
	assert_int_equal(plan.failures, 0);
}

static void cohorts_that_cannot_be_meant(void **state)
{
	struct hf_health_cohorts bad = cohorts;

	(void)state;
	assert_null(hf_health_cohorts_problem(&cohorts));
	bad.percents[2] = 99;
	assert_non_null(hf_health_cohorts_problem(&bad));
	bad = cohorts;
	bad.percents[1] = 5;
	assert_non_null(hf_health_cohorts_problem(&bad));
	bad = cohorts;
	bad.len = 0;
	assert_non_null(hf_health_cohorts_problem(&bad));
	bad = cohorts;
	bad.soak = -1;
	assert_non_null(hf_health_cohorts_problem(&bad));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cohort_after_cohort_with_time_to_watch),
		TEST(promise_10_harm_halts_it_and_takes_it_back),
		TEST(a_node_that_comes_later_gets_it_with_its_cohort),
		TEST(a_failure_before_it_got_it_is_not_its_fault),
		TEST(cohorts_that_cannot_be_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
