/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

/* Crash hand-0, let the delay pass, start hand-0 again. */
static void crash_and_recover(void)
{
	brain_exit(&b, "demo-hand-0", 137);
	brain_quiet(&b);
	if (hf_status_is_finished(&b.view.status))
		return;
	brain_after(&b, 1000);
	brain_quiet(&b);
	brain_start_all(&b);
	brain_quiet(&b);
}

static void the_limit_is_passed_when_more_than_it_is_charged(void **state)
{
	(void)state;
	for (int limit = 0; limit < 4; limit++) {
		int restarts = 0;

		brain_init(&b, &brain_kind, 1, 2);
		b.view.run_policy.backoff_limit = HF_SOME_INT(limit);
		brain_run_up(&b);
		while (!hf_status_is_finished(&b.view.status) && restarts < 10) {
			crash_and_recover();
			restarts++;
			brain_nodes_heard(&b);
		}
		assert_int_equal(restarts, limit + 1);
		assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], limit + 1);
		assert_string_equal(hf_status_condition(&b.view.status, HF_COND_FAILED)->message,
				    "Job demo has failed because it has reached the specified "
				    "backoff limit");
		brain_release(&b);
	}
}

static void no_limit_means_for_ever(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	for (int i = 0; i < 30; i++)
		crash_and_recover();
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 30);
	brain_release(&b);
}

static void the_budgets_do_not_mix(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.backoff_limit = HF_SOME_INT(0);
	b.view.run_policy.recovery.infrastructure_limit = HF_SOME_INT(1);
	brain_run_up(&b);
	brain_gone(&b, "demo-hand-0");
	brain_run_up(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_gone(&b, "demo-hand-0");
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	assert_string_equal(b.plan.status.ledger.verdict.reason, "InfrastructureLimitExceeded");
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 0);
	brain_release(&b);
}

static void verdicts_name_their_budget(void **state)
{
	(void)state;
	for (int i = 0; i < HF_BUDGETS; i++)
		assert_int_equal(hf_budget_of_verdict(hf_budget_verdict((enum hf_budget)i)), i);
	assert_int_equal(hf_budget_of_verdict("ExitCode"), HF_BUDGET_NONE);
	assert_int_equal(hf_class_budget(HF_CLASS_ADMISSION), HF_BUDGET_INFRASTRUCTURE);
	assert_int_equal(hf_class_budget(HF_CLASS_OUT_OF_MEMORY), HF_BUDGET_APPLICATION);
	assert_int_equal(hf_class_budget(HF_CLASS_USER), HF_BUDGET_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_is_passed_when_more_than_it_is_charged),
		cmocka_unit_test(no_limit_means_for_ever),
		cmocka_unit_test(the_budgets_do_not_mix),
		cmocka_unit_test(verdicts_name_their_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
