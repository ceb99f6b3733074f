/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;

static void a_job_of_another_manager_gets_nothing(void **state)
{
	static const char *const managers[] = {"kueue.x-k8s.io/multikueue", "", "somebody"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(managers); i++) {
		brain_init(&b, &brain_kind, 1, 2);
		b.view.run_policy.managed_by = managers[i];
		brain_step(&b);
		assert_false(b.plan.status_changed);
		assert_int_equal(hf_plan_actions(&b.plan) + b.plan.events_len, 0);
		assert_true(b.plan.wake_at == HF_TIME_NEVER);
		brain_release(&b);
	}
}

static void a_job_that_is_being_deleted_gets_nothing(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.view.deletion_time = b.now;
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_false(b.plan.status_changed);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void an_invalid_job_is_held_before_it_begins_and_let_go_when_mended(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.backoff_limit = HF_SOME_INT(-1);
	brain_quiet(&b);
	assert_true(hf_status_is_true(&b.view.status, HF_COND_HELD));
	assert_int_equal(b.created, 0);
	b.view.run_policy.backoff_limit = HF_SOME_INT(1);
	brain_run_up(&b);
	assert_false(hf_status_is_true(&b.view.status, HF_COND_HELD));
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	/* A rule of validation does not stop a job that has begun. */
	b.view.run_policy.backoff_limit = HF_SOME_INT(-1);
	brain_step(&b);
	assert_false(hf_status_is_true(&b.plan.status, HF_COND_HELD));
	brain_release(&b);
}

static void a_held_job_says_each_reason_once(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.backoff_limit = HF_SOME_INT(-1);
	brain_step(&b);
	assert_int_equal(b.plan.events_len, 1);
	brain_perform_all(&b);
	brain_step(&b);
	assert_int_equal(b.plan.events_len, 0);
	b.view.run_policy.backoff_limit = HF_SOME_INT(-2);
	brain_step(&b);
	assert_int_equal(b.plan.events_len, 1);
	assert_non_null(strstr(hf_status_condition(&b.plan.status, HF_COND_HELD)->message, "-2"));
	brain_release(&b);
}

static void a_ledger_of_a_newer_schema_is_not_touched(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.view.status.ledger.schema = HF_LEDGER_SCHEMA + 1;
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_HELD));
	assert_true(b.plan.status.ledger.kept);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void negative_counters_are_no_ledger(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.view.status.ledger.generation = -1;
	brain_step(&b);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_HELD));
	brain_release(&b);
}

static void a_held_job_says_how_it_goes_on_and_that_suspension_waits(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	brain_run_up(&b);
	b.view.status.ledger.restarts[HF_BUDGET_APPLICATION] = -1;
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "negative"));
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "status.recovery is corrected or removed"));
	assert_false(brain_says(&b, HF_TOPIC_NEXT, "suspended"));
	b.view.run_policy.suspend = HF_SOME_BOOL(true);
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "its suspension waits until then"));
	brain_release(&b);
}

static void more_ranks_than_there_may_be_are_held(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.replicas[1].replicas = HF_SOME_INT(1000000000);
	brain_step(&b);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_HELD));
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void more_objects_than_can_be_looked_at_are_refused(void **state)
{
	struct hf_observed many = {.pods_len = 1000000};
	struct hf_error err = {0};

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	assert_code(hf_job_step(&b.view, &many, b.now, b.pass, &b.plan, &err), HF_E_TOO_LARGE);
	brain_release(&b);
}

static void a_quiet_job_costs_no_write_and_no_request(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 100);
	brain_run_up(&b);
	for (int i = 0; i < 10; i++) {
		brain_after(&b, 3600);
		brain_step(&b);
		assert_false(b.plan.status_changed);
		assert_int_equal(hf_plan_actions(&b.plan), 0);
	}
	brain_release(&b);
}

static void a_start_needs_no_write_before_its_actions_however_many_pods(void **state)
{
	int urgent = 0;

	(void)state;
	brain_init(&b, &brain_kind, 1, 100);
	for (int i = 0; i < 200; i++) {
		brain_step(&b);
		urgent += b.plan.status_urgent;
		brain_perform_all(&b);
		if (i < (int)b.pods_len)
			brain_start(&b, b.pods[i].name);
	}
	assert_int_equal(urgent, 0);
	assert_int_equal(b.plan.status.replicas[1].active, 100);
	brain_release(&b);
}

static void time_below_a_microsecond_is_cut(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.now += 1234567;
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.opened_at % HF_US, 0);
	assert_int_equal(b.plan.status.start_time % HF_SECOND, 0);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_of_another_manager_gets_nothing),
		cmocka_unit_test(a_job_that_is_being_deleted_gets_nothing),
		cmocka_unit_test(an_invalid_job_is_held_before_it_begins_and_let_go_when_mended),
		cmocka_unit_test(a_held_job_says_each_reason_once),
		cmocka_unit_test(a_ledger_of_a_newer_schema_is_not_touched),
		cmocka_unit_test(negative_counters_are_no_ledger),
		cmocka_unit_test(a_held_job_says_how_it_goes_on_and_that_suspension_waits),
		cmocka_unit_test(more_ranks_than_there_may_be_are_held),
		cmocka_unit_test(more_objects_than_can_be_looked_at_are_refused),
		cmocka_unit_test(a_quiet_job_costs_no_write_and_no_request),
		cmocka_unit_test(a_start_needs_no_write_before_its_actions_however_many_pods),
		cmocka_unit_test(time_below_a_microsecond_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
