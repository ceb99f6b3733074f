/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/drain.h"

#include "harness/test.h"

static struct hf_health_drain drain;
static struct hf_health_pod pod;
static hf_time wake;

static int setup(void **state)
{
	(void)state;
	drain = (struct hf_health_drain){.evicts = true,
					 .grace = 30 * HF_SECOND,
					 .timeout = 10 * HF_MINUTE,
					 .now = HF_HOUR,
					 .quarantined_at = HF_HOUR - HF_MINUTE};
	pod = (struct hf_health_pod){.fatal = true, .selected = true, .not_before = HF_TIME_NONE};
	wake = HF_TIME_NEVER;
	return 0;
}

static void expect(enum hf_health_drain_why why)
{
	assert_int_equal(hf_health_drain(&drain, &pod, &wake), why);
}

static void what_holds_a_failed_device_is_evicted(void **state)
{
	(void)state;
	expect(HF_HEALTH_DRAIN_EVICT);
	assert_int_equal(wake, HF_TIME_NEVER);
	pod.not_before = drain.now;
	expect(HF_HEALTH_DRAIN_EVICT);
}

static void only_from_a_node_that_is_ours(void **state)
{
	(void)state;
	drain.quarantined_at = HF_TIME_NONE;
	expect(HF_HEALTH_DRAIN_NOT_OURS);
	assert_false(hf_health_drain_is_stuck(&drain));
}

static void what_is_slow_goes_on(void **state)
{
	(void)state;
	pod.fatal = false;
	expect(HF_HEALTH_DRAIN_WORKS);
}

static void excluded_pods_and_gone_pods_are_not_evicted(void **state)
{
	(void)state;
	pod.selected = false;
	expect(HF_HEALTH_DRAIN_UNSELECTED);
	pod.daemon = true;
	expect(HF_HEALTH_DRAIN_DAEMON);
	pod.ended = true;
	expect(HF_HEALTH_DRAIN_ENDS);
}

static void a_pause_the_mode_and_old_news_hold_it(void **state)
{
	(void)state;
	drain.stale = true;
	expect(HF_HEALTH_DRAIN_OLD);
	drain.paused = true;
	expect(HF_HEALTH_DRAIN_HALTED);
	drain.evicts = false;
	expect(HF_HEALTH_DRAIN_MODE);
	assert_int_equal(wake, HF_TIME_NEVER);
}

static void a_pod_may_end_by_itself_before_its_eviction(void **state)
{
	(void)state;
	drain.quarantined_at = drain.now - 10 * HF_SECOND;
	expect(HF_HEALTH_DRAIN_GRACE);
	assert_int_equal(wake, drain.now + 20 * HF_SECOND);
}

static void a_pod_that_came_later_gets_the_same_time_and_ever_more(void **state)
{
	(void)state;
	drain.quarantined_at = drain.now - HF_HOUR / 2;
	pod.came_at = drain.now - 5 * HF_SECOND;
	expect(HF_HEALTH_DRAIN_GRACE);
	assert_int_equal(wake, drain.now + 25 * HF_SECOND);
	drain.came_back = 4;
	pod.came_at = drain.now - HF_MINUTE;
	wake = HF_TIME_NEVER;
	expect(HF_HEALTH_DRAIN_GRACE);
	assert_int_equal(wake, drain.now + 100 * HF_SECOND);
	drain.grace = 0;
	drain.came_back = 0;
	expect(HF_HEALTH_DRAIN_EVICT);
}

static void a_restart_of_its_job_is_joined(void **state)
{
	(void)state;
	pod.restarting = true;
	expect(HF_HEALTH_DRAIN_RESTARTING);
	assert_true(wake > drain.now && wake < drain.now + HF_MINUTE);
}

static void a_refused_eviction_is_tried_again_and_never_forced(void **state)
{
	(void)state;
	pod.not_before = drain.now + 7 * HF_SECOND;
	expect(HF_HEALTH_DRAIN_REFUSED);
	assert_int_equal(wake, drain.now + 7 * HF_SECOND);
	assert_false(hf_health_drain_is_stuck(&drain));
	drain.now += 11 * HF_MINUTE;
	assert_true(hf_health_drain_is_stuck(&drain));
	expect(HF_HEALTH_DRAIN_EVICT);
	/* The policy allows evictions only for a minute so far. */
	drain.evicts_at = drain.now - HF_MINUTE;
	assert_false(hf_health_drain_is_stuck(&drain));
}

static void refusals_space_out(void **state)
{
	(void)state;
	assert_int_equal(hf_health_drain_backoff(1, 0), 10 * HF_SECOND);
	assert_int_equal(hf_health_drain_backoff(2, 0), 20 * HF_SECOND);
	assert_int_equal(hf_health_drain_backoff(2, HF_MINUTE), HF_MINUTE);
	assert_int_equal(hf_health_drain_backoff(100, 0), 5 * HF_MINUTE);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_holds_a_failed_device_is_evicted),
		TEST(only_from_a_node_that_is_ours),
		TEST(what_is_slow_goes_on),
		TEST(excluded_pods_and_gone_pods_are_not_evicted),
		TEST(a_pause_the_mode_and_old_news_hold_it),
		TEST(a_pod_may_end_by_itself_before_its_eviction),
		TEST(a_pod_that_came_later_gets_the_same_time_and_ever_more),
		TEST(a_restart_of_its_job_is_joined),
		TEST(a_refused_eviction_is_tried_again_and_never_forced),
		TEST(refusals_space_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
