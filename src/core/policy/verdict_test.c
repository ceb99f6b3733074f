/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

/* Set a verdict that cannot settle yet, because no node has been heard of since. */
static void pending(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	b.replicas[1].restart_policy = "ExitCode";
	brain_run_up(&b);
	brain_after(&b, 60);
	brain_exit(&b, "demo-hand-0", 2);
	brain_step(&b);
	brain_perform_all(&b);
	assert_non_null(b.view.status.ledger.verdict.reason);
}

static void a_verdict_is_written_once_and_then_only_waits(void **state)
{
	(void)state;
	pending();
	brain_after(&b, 5);
	brain_step(&b);
	assert_false(b.plan.status_changed);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void a_verdict_outlives_the_pod_that_it_was_read_from(void **state)
{
	(void)state;
	pending();
	brain_gone(&b, "demo-hand-0");
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	assert_string_equal(hf_status_condition(&b.plan.status, HF_COND_FAILED)->message,
			    "job \"demo\" is failing because \"Hand\" replica(s) failed.");
	brain_release(&b);
}

static void nothing_is_created_or_restarted_meanwhile(void **state)
{
	(void)state;
	pending();
	brain_gone(&b, "demo-hand-1");
	brain_after(&b, 1);
	brain_exit(&b, "demo-hand-2", 137);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_int_equal(b.plan.status.ledger.incident.id, 1);
	brain_release(&b);
}

/* Kubelets report terminations in any order and in whole seconds.  A termination in the same second
 * that restarts is taken as the cause. */
static void what_finished_no_later_and_is_tried_again_withdraws_it(void **state)
{
	(void)state;
	pending();
	brain_exit(&b, "demo-hand-2", 137);
	brain_step(&b);
	assert_null(b.plan.status.ledger.verdict.reason);
	assert_int_equal(b.plan.status.ledger.incident.id, 1);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	assert_true(brain_deletes(&b, "demo-hand-2"));
	assert_false(brain_deletes(&b, "demo-hand-1"));
	brain_release(&b);
}

static void infrastructure_withdraws_it(void **state)
{
	(void)state;
	pending();
	brain_exit(&b, "demo-hand-1", 1);
	brain_disrupt(&b, "demo-hand-1");
	brain_step(&b);
	assert_null(b.plan.status.ledger.verdict.reason);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	assert_int_equal(b.plan.status.ledger.incident.id, 1);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_true(b.plan.status.ledger.records[0].decided_at == b.now);
	brain_release(&b);
}

/* Two crashes that were not counted while the verdict waited are charged to the application.  The
 * end of their pod, with evidence of infrastructure, withdraws the verdict. */
static void what_withdraws_it_is_the_cause_of_nothing_else(void **state)
{
	(void)state;
	pending();
	for (int i = 0; i < 2; i++)
		brain_crash_in_place(&b, "demo-hand-1");
	brain_disrupt(&b, "demo-hand-1");
	brain_terminate(&b, "demo-hand-1");
	brain_step(&b);
	assert_null(b.plan.status.ledger.verdict.reason);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(b.plan.status.ledger.incident.id, 2);
	brain_release(&b);
}

static void infrastructure_without_budget_changes_its_reason(void **state)
{
	(void)state;
	pending();
	b.view.run_policy.recovery.infrastructure_limit = HF_SOME_INT(0);
	brain_exit(&b, "demo-hand-1", 1);
	brain_disrupt(&b, "demo-hand-1");
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	assert_string_equal(b.plan.status.ledger.verdict.reason, "InfrastructureLimitExceeded");
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
}

static void a_rule_that_a_person_wrote_is_not_withdrawn(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_fail_on(&b, 42);
	brain_run_up(&b);
	brain_after(&b, 60);
	brain_exit(&b, "demo-hand-0", 42);
	/* No node was heard of since the termination, and the verdict takes effect all the same,
	 * because it is a rule's. */
	brain_step(&b);
	assert_string_equal(b.plan.status.ledger.verdict.reason, "PodFailurePolicy");
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_write_ledger(&b);
	brain_exit(&b, "demo-hand-1", 1);
	brain_disrupt(&b, "demo-hand-1");
	b.view.run_policy.suspend = HF_SOME_BOOL(true);
	brain_quiet(&b);
	assert_string_equal(b.view.status.ledger.verdict.reason, "PodFailurePolicy");
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_release(&b);
}

/* The ledger with the charge was written, and the status was not.  The verdict is not decided
 * again, and a suspension does not remove it. */
static void a_verdict_that_was_carried_out_stands(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.backoff_limit = HF_SOME_INT(0);
	b.replicas[1].restart_policy = "ExitCode";
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 137);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_write_ledger(&b);
	assert_false(hf_status_is_finished(&b.view.status));
	brain_exit(&b, "demo-hand-1", 1);
	brain_disrupt(&b, "demo-hand-1");
	b.view.run_policy.suspend = HF_SOME_BOOL(true);
	brain_after(&b, 30);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 0);
	brain_release(&b);
}

static void nor_for_a_node_that_was_lost_meanwhile(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_fail_on(&b, 42);
	brain_run_up(&b);
	brain_after(&b, 60);
	brain_lose(&b, brain_pod(&b, "demo-hand-1")->node);
	brain_exit(&b, "demo-hand-0", 42);
	for (int i = 0; i < 3; i++) {
		brain_step(&b);
		brain_perform_all(&b);
		brain_after(&b, 1);
	}
	assert_string_equal(b.view.status.ledger.verdict.reason, "PodFailurePolicy");
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 0);
	brain_release(&b);
}

static void success_overtakes_it(void **state)
{
	(void)state;
	pending();
	brain_exit(&b, "demo-boss-0", 0);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	assert_null(b.plan.status.ledger.verdict.reason);
	brain_release(&b);
}

static void the_message_counts_the_replicas_of_the_type(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	b.replicas[1].restart_policy = "Never";
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_exit(&b, "demo-hand-2", 1);
	brain_step(&b);
	assert_string_equal(hf_status_condition(&b.plan.status, HF_COND_FAILED)->message,
			    "TestJob demo is failed because 2 Hand replica(s) failed.");
	assert_string_equal(hf_status_condition(&b.plan.status, HF_COND_FAILED)->reason,
			    "TestJobFailed");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_is_written_once_and_then_only_waits),
		cmocka_unit_test(a_verdict_outlives_the_pod_that_it_was_read_from),
		cmocka_unit_test(nothing_is_created_or_restarted_meanwhile),
		cmocka_unit_test(what_finished_no_later_and_is_tried_again_withdraws_it),
		cmocka_unit_test(infrastructure_withdraws_it),
		cmocka_unit_test(what_withdraws_it_is_the_cause_of_nothing_else),
		cmocka_unit_test(infrastructure_without_budget_changes_its_reason),
		cmocka_unit_test(a_rule_that_a_person_wrote_is_not_withdrawn),
		cmocka_unit_test(a_verdict_that_was_carried_out_stands),
		cmocka_unit_test(nor_for_a_node_that_was_lost_meanwhile),
		cmocka_unit_test(success_overtakes_it),
		cmocka_unit_test(the_message_counts_the_replicas_of_the_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
