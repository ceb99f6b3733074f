/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;

static void suspend(bool on)
{
	b.view.run_policy.suspend = HF_SOME_BOOL(on);
}

static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_after(&b, 100);
	suspend(true);
}

static void pods_and_services_go_and_active_falls_with_the_pods(void **state)
{
	(void)state;
	begin();
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUSPENDED);
	assert_int_equal(b.services_len, 0);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].active, 2);
	brain_gone(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].active, 1);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].active, 0);
	assert_int_equal(b.view.status.replicas[BRAIN_BOSS].active, 0);
	assert_true(b.plan.wake_at == HF_TIME_NEVER);
	brain_release(&b);
}

static void the_clock_of_a_suspended_job_stands_still(void **state)
{
	(void)state;
	begin();
	b.view.run_policy.active_deadline_seconds = HF_SOME_INT(130);
	brain_quiet(&b);
	assert_true(b.view.status.start_time == HF_TIME_NONE);
	assert_int_equal(b.view.status.ledger.active_seconds, 100);
	brain_terminating_gone(&b);
	brain_after(&b, 100000);
	brain_quiet(&b);
	assert_false(hf_status_is_finished(&b.view.status));
	suspend(false);
	brain_run_up(&b);
	assert_true(b.view.status.start_time == b.now);
	assert_true(b.plan.wake_at == b.now + 30 * HF_SECOND);
	brain_after(&b, 30);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_release(&b);
}

/* The ledger is written and the status is not, several times: active time is added only once. */
static void the_active_time_before_a_suspension_is_added_once(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		brain_step(&b);
		brain_write_ledger(&b);
		brain_after(&b, 10);
	}
	assert_false(hf_status_is_true(&b.view.status, HF_COND_SUSPENDED));
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUSPENDED);
	assert_true(b.view.status.start_time == HF_TIME_NONE);
	assert_int_equal(b.view.status.ledger.active_seconds, 100);
	assert_int_equal(b.view.status.ledger.generation, 2);
	brain_release(&b);
}

static void resumed_before_the_status_said_so_it_begins_anew(void **state)
{
	(void)state;
	begin();
	brain_step(&b);
	brain_write_ledger(&b);
	brain_after(&b, 1000);
	suspend(false);
	for (int i = 0; i < 4; i++) {
		brain_step(&b);
		if (i % 2 == 0)
			brain_write_ledger(&b);
		else
			brain_perform_all(&b);
		suspend(i % 2 == 0);
		brain_after(&b, 1000);
	}
	suspend(true);
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.active_seconds, 100);
	suspend(false);
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_run_up(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_release(&b);
}

static void what_dies_of_it_is_ours_however_it_dies(void **state)
{
	(void)state;
	begin();
	b.replicas[0].restart_policy = b.replicas[1].restart_policy = "Never";
	brain_quiet(&b);
	brain_exit(&b, "demo-boss-0", 0); /* its handler wrote a checkpoint and exited with 0 */
	brain_exit(&b, "demo-hand-0", 1);
	brain_exit(&b, "demo-hand-1", 143);
	brain_quiet(&b);
	suspend(false);
	brain_quiet(&b);
	assert_false(hf_status_is_finished(&b.view.status));
	assert_int_equal(b.view.status.ledger.incident.id, 0);
	brain_terminating_gone(&b);
	brain_run_up(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	assert_int_equal(b.view.status.ledger.generation, 2);
	brain_release(&b);
}

static void resumed_before_the_old_pods_are_gone_it_waits_for_them(void **state)
{
	(void)state;
	begin();
	brain_quiet(&b);
	suspend(false);
	brain_quiet(&b);
	assert_int_equal(b.created, 3);
	assert_string_equal(brain_last_condition(&b), HF_COND_CREATED);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	assert_int_equal(b.created, 6);
	brain_release(&b);
}

static void a_suspension_is_reported_once(void **state)
{
	(void)state;
	begin();
	brain_step(&b);
	assert_string_equal(brain_event(&b, "TestJobSuspended")->message,
			    "TestJob demo is suspended.");
	brain_perform_all(&b);
	brain_step(&b);
	assert_null(brain_event(&b, "TestJobSuspended"));
	brain_perform_all(&b);
	suspend(false);
	brain_step(&b);
	assert_string_equal(brain_event(&b, "TestJobResumed")->message, "TestJob demo is resumed.");
	assert_false(brain_event(&b, "TestJobResumed")->warning);
	brain_release(&b);
}

static void suspending_again_and_again_keeps_the_counters(void **state)
{
	(void)state;
	begin();
	suspend(false);
	brain_exit(&b, "demo-hand-0", 137);
	brain_run_up(&b);
	for (int i = 0; i < 4; i++) {
		suspend(true);
		brain_quiet(&b);
		brain_terminating_gone(&b);
		brain_quiet(&b);
		suspend(false);
		brain_run_up(&b);
		brain_after(&b, 10);
	}
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(b.view.status.ledger.generation, 5);
	assert_int_equal(b.view.status.ledger.active_seconds, 100 + 30);
	brain_release(&b);
}

static void a_job_born_suspended_has_nothing_and_begins_when_resumed(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	suspend(true);
	brain_quiet(&b);
	assert_string_equal(brain_conditions(&b), "Created=True Suspended=True");
	assert_int_equal(b.created + (int64_t)b.services_len, 0);
	assert_true(b.view.status.start_time == HF_TIME_NONE);
	assert_int_equal(b.view.status.ledger.generation, 1);
	suspend(false);
	brain_run_up(&b);
	assert_string_equal(brain_conditions(&b), "Created=True Suspended=False Running=True");
	assert_int_equal(b.view.status.ledger.generation, 1);
	brain_release(&b);
}

static void pods_under_no_replicas_name_go_as_well(void **state)
{
	(void)state;
	begin();
	memcpy(brain_pod(&b, "demo-hand-1")->name, "demo-helper", sizeof("demo-helper"));
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-helper"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_and_services_go_and_active_falls_with_the_pods),
		cmocka_unit_test(the_clock_of_a_suspended_job_stands_still),
		cmocka_unit_test(the_active_time_before_a_suspension_is_added_once),
		cmocka_unit_test(resumed_before_the_status_said_so_it_begins_anew),
		cmocka_unit_test(what_dies_of_it_is_ours_however_it_dies),
		cmocka_unit_test(resumed_before_the_old_pods_are_gone_it_waits_for_them),
		cmocka_unit_test(a_suspension_is_reported_once),
		cmocka_unit_test(suspending_again_and_again_keeps_the_counters),
		cmocka_unit_test(a_job_born_suspended_has_nothing_and_begins_when_resumed),
		cmocka_unit_test(pods_under_no_replicas_name_go_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
