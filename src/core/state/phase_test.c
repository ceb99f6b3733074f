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

/* The node of hand-1 falls silent after 100 s, is Unknown 50 s later, and 60 s later its pod is given up. */
static void lose_a_node_after_100_seconds(bool renewal_known)
{
	const char *node;

	brain_init(&b, &brain_kind, 0, 2);
	brain_run_up(&b);
	node = brain_pod(&b, "demo-hand-1")->node;
	brain_after(&b, 100);
	brain_nodes_heard(&b);
	if (renewal_known)
		brain_node(&b, node)->renew_time = b.now;
	brain_after(&b, 50);
	brain_lose(&b, node);
	brain_quiet(&b);
	brain_answer(&b);
	brain_after(&b, 60);
	brain_nodes_heard(&b);
	brain_answer(&b);
	brain_step(&b);
	assert_string_equal(b.plan.status.ledger.records[0].reason, "NodeLost");
}

static void the_silence_of_a_lost_node_is_lost_time(void **state)
{
	const struct hf_ledger *now = &b.plan.status.ledger;

	(void)state;
	lose_a_node_after_100_seconds(true);
	assert_int_equal(now->productive_seconds, 100);
	assert_int_equal(now->downtime_seconds, 110);
	brain_release(&b);
	/* Without the last renewal, the silence before the node was Unknown counts as work. */
	lose_a_node_after_100_seconds(false);
	assert_int_equal(now->productive_seconds, 150);
	assert_int_equal(now->downtime_seconds, 60);
	brain_release(&b);
}

static void a_renewal_before_all_ranks_ran_takes_no_earlier_time(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 0, 2);
	brain_run_up(&b);
	brain_after(&b, 20);
	brain_nodes_heard(&b);
	brain_node(&b, brain_pod(&b, "demo-hand-1")->node)->renew_time = b.now - 40 * HF_SECOND;
	brain_lose(&b, brain_pod(&b, "demo-hand-1")->node);
	brain_quiet(&b);
	brain_answer(&b);
	brain_after(&b, 61);
	brain_nodes_heard(&b);
	brain_answer(&b);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.productive_seconds, 0);
	assert_int_equal(b.plan.status.ledger.downtime_seconds, 81);
	brain_release(&b);
}

/* The operator was away for a quarter of an hour. */
static void a_termination_that_is_seen_late_is_lost_time(void **state)
{
	struct brain_pod *pod;

	(void)state;
	brain_init(&b, &brain_kind, 0, 2);
	brain_run_up(&b);
	brain_after(&b, 1000);
	pod = brain_pod(&b, "demo-hand-1");
	brain_exit(&b, "demo-hand-1", 1);
	pod->containers[0].finished_at = b.now - 900 * HF_SECOND;
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.productive_seconds, 100);
	assert_int_equal(b.plan.status.ledger.downtime_seconds, 900);
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
		cmocka_unit_test(the_silence_of_a_lost_node_is_lost_time),
		cmocka_unit_test(a_renewal_before_all_ranks_ran_takes_no_earlier_time),
		cmocka_unit_test(a_termination_that_is_seen_late_is_lost_time),
		cmocka_unit_test(a_recovery_ends_when_the_last_rank_runs),
		cmocka_unit_test(a_rank_that_has_succeeded_need_not_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
