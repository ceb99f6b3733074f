/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static const struct hf_ledger *ledger(void)
{
	return &b.view.status.ledger;
}

static void the_phase_is_creating_then_running_and_tearing_while_old_pods_exist(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_quiet(&b);
	assert_int_equal(ledger()->phase, HF_PHASE_CREATING);
	brain_start(&b, "demo-boss-0");
	brain_quiet(&b);
	assert_int_equal(ledger()->phase, HF_PHASE_CREATING);
	brain_start_all(&b);
	brain_quiet(&b);
	assert_int_equal(ledger()->phase, HF_PHASE_RUNNING);
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	assert_int_equal(ledger()->phase, HF_PHASE_TEARING);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	assert_int_equal(ledger()->phase, HF_PHASE_CREATING);
	brain_release(&b);
}

static void time_is_booked_as_productive_or_down(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_quiet(&b);
	brain_after(&b, 7); /* starting is neither */
	brain_start_all(&b);
	brain_quiet(&b);
	brain_after(&b, 100);
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	brain_after(&b, 20);
	brain_start_all(&b);
	brain_quiet(&b);
	brain_after(&b, 30);
	brain_exit(&b, "demo-boss-0", 0);
	brain_quiet(&b);
	assert_int_equal(ledger()->productive_seconds, 130);
	assert_int_equal(ledger()->downtime_seconds, 20);
	brain_release(&b);
}

static void a_recovery_ends_when_the_last_rank_runs(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_exit(&b, "demo-hand-1", 1);
	brain_quiet(&b);
	brain_after(&b, 5);
	brain_start(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_true(ledger()->records[0].running_at == HF_TIME_NONE);
	brain_after(&b, 5);
	brain_start(&b, "demo-hand-1");
	brain_quiet(&b);
	assert_true(ledger()->records[0].running_at == b.now);
	assert_true(ledger()->records[0].detected_at == b.now - 10 * HF_SECOND);
	brain_release(&b);
}

static void a_rank_that_has_succeeded_need_not_run(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 0);
	brain_quiet(&b);
	assert_int_equal(ledger()->phase, HF_PHASE_RUNNING);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_phase_is_creating_then_running_and_tearing_while_old_pods_exist),
		cmocka_unit_test(time_is_booked_as_productive_or_down),
		cmocka_unit_test(a_recovery_ends_when_the_last_rank_runs),
		cmocka_unit_test(a_rank_that_has_succeeded_need_not_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
