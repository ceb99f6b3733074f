/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up(&b);
}

static void one_end_restarts_all_as_one_generation(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_true(b.plan.status_urgent);
	assert_int_equal(b.plan.status.ledger.generation, 2);
	assert_int_equal(b.plan.status.ledger.phase, HF_PHASE_TEARING);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_SERVICE), 0);
	brain_release(&b);
}

static void nothing_is_created_while_an_old_pod_is_left(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-1", 1);
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 3); /* terminating */
	while (b.pods_len > 1) {
		brain_gone(&b, b.pods[0].name);
		brain_step(&b);
		assert_int_equal(hf_plan_actions(&b.plan), 0);
	}
	brain_gone(&b, b.pods[0].name);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 4);
	brain_perform_all(&b);
	for (size_t i = 0; i < b.pods_len; i++)
		assert_int_equal(b.pods[i].pod.generation, 2);
	brain_release(&b);
}

static void ends_of_the_old_generation_cost_nothing(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-1", 1);
	brain_quiet(&b);
	brain_exit(&b, "demo-hand-0", 143);
	brain_exit(&b, "demo-boss-0", 1);
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_run_up(&b);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(b.view.status.ledger.generation, 2);
	assert_int_equal(b.view.status.ledger.phase, HF_PHASE_RUNNING);
	brain_release(&b);
}

static void the_requests_of_a_restart_are_two_per_pod(void **state)
{
	size_t actions = 0;

	(void)state;
	brain_init(&b, &brain_kind, 1, 200);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-1", 137);
	for (int i = 0; i < 10; i++) {
		brain_step(&b);
		actions += hf_plan_actions(&b.plan) + b.plan.status_changed;
		brain_perform_all(&b);
		brain_terminating_gone(&b);
		brain_start_all(&b);
	}
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	assert_true(actions <= 2 * 201 + 6);
	brain_release(&b);
}

static void ranks_that_succeeded_run_again(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-0", 0);
	brain_quiet(&b);
	brain_exit(&b, "demo-hand-1", 1);
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	assert_non_null(brain_pod(&b, "demo-hand-0"));
	assert_int_equal(brain_pod(&b, "demo-hand-0")->pod.generation, 2);
	assert_null(b.view.status.ledger.roles[BRAIN_HAND].succeeded);
	brain_release(&b);
}

static void attempts_do_not_fall(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-1", 1);
	brain_run_up(&b);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_after(&b, 60);
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.generation, 2);
	assert_string_equal(b.plan.status.ledger.roles[BRAIN_HAND].attempts, "1:1");
	brain_release(&b);
}

/* In a new pod, the kubelet's restart counts begin at 0. */
static void restarts_by_the_kubelet_are_counted_anew(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_crash_in_place(&b, "demo-hand-1");
	brain_crash_in_place(&b, "demo-hand-1");
	brain_run_up(&b);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 2);
	b.view.run_policy.suspend = HF_SOME_BOOL(true);
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	b.view.run_policy.suspend = HF_SOME_BOOL(false);
	brain_run_up(&b);
	brain_after(&b, 2000);
	brain_crash_in_place(&b, "demo-hand-1");
	brain_run_up(&b);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 3);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_end_restarts_all_as_one_generation),
		cmocka_unit_test(nothing_is_created_while_an_old_pod_is_left),
		cmocka_unit_test(ends_of_the_old_generation_cost_nothing),
		cmocka_unit_test(the_requests_of_a_restart_are_two_per_pod),
		cmocka_unit_test(ranks_that_succeeded_run_again),
		cmocka_unit_test(attempts_do_not_fall),
		cmocka_unit_test(restarts_by_the_kubelet_are_counted_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
