/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static void the_deadline_ends_the_job_at_the_announced_second_without_an_event(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.active_deadline_seconds = HF_SOME_INT(30);
	brain_run_up(&b);
	assert_true(b.plan.wake_at == b.now + 30 * HF_SECOND);
	b.now = b.plan.wake_at - 1000;
	brain_step(&b);
	assert_false(hf_status_is_finished(&b.plan.status));
	b.now += 1000;
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	assert_string_equal(
		hf_status_condition(&b.plan.status, HF_COND_FAILED)->message,
		"Job demo has failed because it was active longer than specified deadline");
	assert_string_equal(b.plan.status.ledger.verdict.reason, "DeadlineExceeded");
	assert_int_equal(b.plan.metrics[HF_METRIC_FAILED], 1);
	brain_release(&b);
}

static void the_deadline_does_not_wait_for_nodes(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.active_deadline_seconds = HF_SOME_INT(30);
	brain_run_up(&b);
	brain_after(&b, 30); /* no node was heard of since */
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_release(&b);
}

static void zero_is_over_at_once_and_absent_never(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_after(&b, 1000000000);
	brain_step(&b);
	assert_false(hf_status_is_finished(&b.plan.status));
	b.view.run_policy.active_deadline_seconds = HF_SOME_INT(0);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_release(&b);
}

static void a_clock_that_steps_back_is_no_negative_time(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.active_deadline_seconds = HF_SOME_INT(30);
	brain_run_up(&b);
	brain_after(&b, -600);
	brain_step(&b);
	assert_false(hf_status_is_finished(&b.plan.status));
	assert_true(b.plan.wake_at > b.now);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_deadline_ends_the_job_at_the_announced_second_without_an_event),
		cmocka_unit_test(the_deadline_does_not_wait_for_nodes),
		cmocka_unit_test(zero_is_over_at_once_and_absent_never),
		cmocka_unit_test(a_clock_that_steps_back_is_no_negative_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
