/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static const struct hf_ledger *ledger(void)
{
	return &b.plan.status.ledger;
}

static void crash(int times)
{
	for (int i = 0; i < times; i++) {
		brain_crash_in_place(&b, "demo-boss-0");
		brain_crash_in_place(&b, "demo-hand-0");
		brain_crash_in_place(&b, "demo-hand-1");
	}
}

static void restarts_in_place_count_in_rounds(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	crash(3);
	brain_quiet(&b);
	assert_int_equal(ledger()->incident.id, 3);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 3);
	assert_string_equal(ledger()->roles[BRAIN_HAND].seen, "0:3,1:3");
	assert_string_equal(ledger()->roles[BRAIN_HAND].covered, "0-1");
	assert_string_equal(ledger()->records[0].scope, "Container");
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_release(&b);
}

static void seen_together_or_one_by_one_is_the_same(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	for (int i = 0; i < 3; i++) {
		crash(1);
		brain_quiet(&b);
	}
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 3);
	brain_release(&b);
}

static void a_new_pod_starts_its_restarts_at_nothing(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_crash_in_place(&b, "demo-hand-0");
	brain_quiet(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	brain_after(&b, 60);
	brain_quiet(&b);
	assert_null(ledger()->roles[BRAIN_HAND].seen);
	/* The kubelet's restart was charged first.  The incident had counted a restart of this
	 * attempt, so the end of the pod opened the next incident. */
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 2);
	brain_release(&b);
}

static void the_limit_ends_a_job_whose_containers_crash(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.backoff_limit = HF_SOME_INT(2);
	brain_run_up(&b);
	crash(2);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	crash(1);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	assert_string_equal(ledger()->verdict.reason, "BackoffLimitExceeded");
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 3);
	brain_release(&b);
}

static void evidence_decides_among_ends_seen_at_once(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.replicas[1].restart_policy = "Never";
	brain_run_up(&b);
	/* This rank finished first, and restartPolicy Never would fail the job. */
	brain_exit(&b, "demo-hand-0", 1);
	brain_after(&b, 1);
	brain_exit(&b, "demo-hand-1", 1);
	brain_disrupt(&b, "demo-hand-1");
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	assert_string_equal(ledger()->records[0].replica, "hand-1");
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	assert_true(brain_deletes(&b, "demo-hand-1"));
	brain_release(&b);
}

static void a_fail_rule_speaks_before_everything(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_fail_on(&b, 42);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_disrupt(&b, "demo-hand-0");
	brain_after(&b, 1);
	brain_exit(&b, "demo-hand-1", 42);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	assert_string_equal(ledger()->verdict.reason, "PodFailurePolicy");
	brain_release(&b);
}

static void one_rank_that_wants_all_restarted_is_enough(void **state)
{
	static const int32_t code[] = {220};

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.rules[0] = (struct hf_rule){.action = HF_RULE_RESTART_JOB,
				      .has_exit_codes = true,
				      .values = code,
				      .values_len = 1};
	b.view.run_policy.rules_len = 1;
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_after(&b, 1);
	brain_exit(&b, "demo-hand-1", 220);
	brain_step(&b);
	assert_int_equal(ledger()->generation, 2);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 3);
	brain_release(&b);
}

static void every_exit_that_is_counted_has_its_event(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 137);
	brain_step(&b);
	assert_string_equal(brain_event(&b, "ExitedWithCode")->message,
			    "Pod: lab.demo-hand-0 exited with code 137");
	assert_true(brain_event(&b, "TestJobRestarting")->warning);
	brain_perform_all(&b);
	brain_step(&b);
	assert_null(brain_event(&b, "ExitedWithCode"));
	assert_null(brain_event(&b, "TestJobRestarting"));
	brain_release(&b);
}

/* An exit that a rule ignores must not cover a later failure, which has to be charged. */
static void an_ignored_termination_covers_no_other(void **state)
{
	static const int32_t values[] = {42};

	(void)state;
	for (int together = 0; together < 2; together++) {
		brain_init(&b, &brain_kind, 0, 3);
		b.view.run_policy.has_pod_failure_policy = true;
		b.view.run_policy.rules_len = 1;
		b.rules[0] = (struct hf_rule){.action = HF_RULE_IGNORE,
					      .action_text = "Ignore",
					      .has_exit_codes = true,
					      .op = HF_RULE_IN,
					      .values = values,
					      .values_len = 1};
		brain_run_up(&b);
		brain_exit(&b, "demo-hand-0", 42);
		if (!together) {
			brain_quiet(&b);
			assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 0);
		}
		brain_after(&b, 3);
		brain_exit(&b, "demo-hand-1", 1);
		brain_quiet(&b);
		assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
		brain_exit(&b, "demo-hand-2", 1); /* a peer of that one */
		brain_quiet(&b);
		assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
		brain_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restarts_in_place_count_in_rounds),
		cmocka_unit_test(seen_together_or_one_by_one_is_the_same),
		cmocka_unit_test(a_new_pod_starts_its_restarts_at_nothing),
		cmocka_unit_test(the_limit_ends_a_job_whose_containers_crash),
		cmocka_unit_test(evidence_decides_among_ends_seen_at_once),
		cmocka_unit_test(a_fail_rule_speaks_before_everything),
		cmocka_unit_test(one_rank_that_wants_all_restarted_is_enough),
		cmocka_unit_test(every_exit_that_is_counted_has_its_event),
		cmocka_unit_test(an_ignored_termination_covers_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
