/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static void succeed(const char *clean, int ttl)
{
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.clean_pod_policy = clean;
	if (ttl >= 0)
		b.view.run_policy.ttl_seconds_after_finished = HF_SOME_INT(ttl);
	brain_run_up(&b);
	brain_after(&b, 60);
	brain_exit(&b, "demo-boss-0", 0);
}

static void success_is_written_before_anything_is_cleaned(void **state)
{
	(void)state;
	succeed("All", -1);
	brain_step(&b);
	assert_true(b.plan.status_urgent);
	assert_string_equal(brain_conditions(&b), "Created=True Running=False Succeeded=True");
	assert_true(b.plan.status.completion_time == b.now);
	assert_int_equal(b.plan.metrics[HF_METRIC_SUCCESSFUL], 1);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 3);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_SERVICE), 3);
	assert_string_equal(brain_event(&b, "TestJobSucceeded")->message,
			    "TestJob demo is successfully completed.");
	brain_release(&b);
}

static void ranks_that_run_count_as_succeeded(void **state)
{
	(void)state;
	succeed(NULL, -1);
	brain_step(&b);
	assert_int_equal(b.plan.status.replicas[BRAIN_HAND].succeeded, 2);
	assert_int_equal(b.plan.status.replicas[BRAIN_HAND].active, 0);
	assert_int_equal(b.plan.status.replicas[BRAIN_BOSS].succeeded, 1);
	brain_release(&b);
}

static void clean_up_ends_and_survives_a_restart_of_the_operator(void **state)
{
	(void)state;
	succeed("Running", -1);
	brain_step(&b);
	brain_write_status(&b); /* and died */
	brain_step(&b);
	assert_false(brain_deletes(&b, "demo-boss-0"));
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 2);
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 1);
	assert_int_equal(b.services_len, 1);
	brain_release(&b);
}

static void policy_none_keeps_all_of_it(void **state)
{
	(void)state;
	succeed("None", -1);
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 3);
	assert_int_equal(b.services_len, 3);
	brain_release(&b);
}

static void a_terminal_condition_absorbs_everything(void **state)
{
	(void)state;
	succeed("None", -1);
	brain_quiet(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_gone(&b, "demo-hand-1");
	b.view.run_policy.suspend = HF_SOME_BOOL(true);
	b.view.restart = "now";
	b.view.run_policy.active_deadline_seconds = HF_SOME_INT(0);
	brain_after(&b, 1000);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_false(b.plan.status_changed);
	brain_release(&b);
}

static void a_pod_created_late_is_deleted(void **state)
{
	struct brain_pod late;

	(void)state;
	succeed("None", -1);
	brain_exit(&b, "demo-hand-0", 1); /* in the same moment: never counted */
	brain_quiet(&b);
	late = *brain_pod(&b, "demo-hand-1");
	brain_gone(&b, "demo-hand-1");
	late.pod.attempt = 5;
	b.pods[b.pods_len++] = late;
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_int_equal(hf_plan_actions(&b.plan), 1);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	brain_release(&b);
}

static void the_ttl_runs_from_the_end_and_deletes_by_uid(void **state)
{
	(void)state;
	succeed(NULL, 10);
	brain_quiet(&b);
	assert_true(b.plan.wake_at == b.now + 10 * HF_SECOND);
	brain_after(&b, 9);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_JOB), 0);
	brain_after(&b, 1);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_JOB), 1);
	assert_string_equal(b.plan.stages[b.plan.stages_len - 1].actions[0].uid, "job-uid");
	brain_perform_all(&b);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_false(b.plan.status_changed);
	brain_release(&b);
}

static void finished_wins_over_suspend_for_the_ttl(void **state)
{
	(void)state;
	succeed(NULL, 10);
	brain_quiet(&b);
	b.view.run_policy.suspend = HF_SOME_BOOL(true);
	brain_after(&b, 10);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_JOB), 1);
	brain_release(&b);
}

static void a_failed_job_names_the_pods_that_still_run(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.replicas[1].restart_policy = "Never";
	b.view.run_policy.recovery.pods_after_end = "Keep";
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].active, 1);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].failed, 1);
	brain_gone(&b, "demo-hand-1");
	brain_quiet(&b);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].active, 0);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].failed, 1);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success_is_written_before_anything_is_cleaned),
		cmocka_unit_test(ranks_that_run_count_as_succeeded),
		cmocka_unit_test(clean_up_ends_and_survives_a_restart_of_the_operator),
		cmocka_unit_test(policy_none_keeps_all_of_it),
		cmocka_unit_test(a_terminal_condition_absorbs_everything),
		cmocka_unit_test(a_pod_created_late_is_deleted),
		cmocka_unit_test(the_ttl_runs_from_the_end_and_deletes_by_uid),
		cmocka_unit_test(finished_wins_over_suspend_for_the_ttl),
		cmocka_unit_test(a_failed_job_names_the_pods_that_still_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
