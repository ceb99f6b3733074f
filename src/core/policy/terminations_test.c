/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_after(&b, 60);
}

static void what_runs_or_has_succeeded_is_no_end(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-0", 0);
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.incident.id, 0);
	brain_release(&b);
}

static void a_success_is_for_good_whatever_is_written_into_its_pod_later(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-0", 0);
	brain_quiet(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_crash_in_place(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.incident.id, 0);
	assert_int_equal(b.plan.status.replicas[BRAIN_HAND].succeeded, 1);
	brain_release(&b);
}

static void ends_of_older_attempts_and_generations_are_ours(void **state)
{
	(void)state;
	begin();
	brain_pod(&b, "demo-hand-0")->pod.generation = 0;
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

static void an_end_beyond_the_replicas_is_ours(void **state)
{
	(void)state;
	begin();
	b.replicas[1].replicas = HF_SOME_INT(2);
	brain_exit(&b, "demo-hand-2", 1);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	assert_true(brain_deletes(&b, "demo-hand-2"));
	brain_release(&b);
}

static void a_pod_that_ended_during_its_deletion_ended_by_that(void **state)
{
	(void)state;
	begin();
	b.replicas[1].restart_policy = "Never";
	brain_terminate(&b, "demo-hand-0");
	brain_exit(&b, "demo-hand-0", 143);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.records[0].cause, HF_CLASS_USER);
	assert_false(hf_status_is_finished(&b.plan.status));
	brain_release(&b);
}

static void a_pod_that_succeeds_during_its_deletion_has_succeeded(void **state)
{
	(void)state;
	begin();
	brain_terminate(&b, "demo-boss-0");
	brain_exit(&b, "demo-boss-0", 0);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	brain_release(&b);
}

static void a_pod_that_never_was_seen_cannot_vanish(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_step(&b);
	brain_perform_all(&b);
	brain_gone(&b, "demo-hand-0"); /* created and gone before anybody looked */
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	assert_true(brain_creates(&b, "demo-hand-0"));
	brain_release(&b);
}

static void a_pod_that_succeeded_and_went_unseen_has_succeeded(void **state)
{
	(void)state;
	begin();
	brain_terminate(&b, "demo-boss-0");
	brain_exit(&b, "demo-boss-0", 0);
	brain_gone(&b, "demo-boss-0");
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	brain_release(&b);
}

/* A pod of an older attempt that disappears was counted before, or the operator itself deleted
 * it. */
static void a_pod_that_vanished_counts_once(void **state)
{
	(void)state;
	begin();
	brain_terminate(&b, "demo-hand-0");
	brain_gone(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.incident.id, 1);
	assert_non_null(brain_pod(&b, "demo-hand-0"));
	brain_start_all(&b);
	brain_quiet(&b);
	brain_after(&b, 10);
	assert_int_equal(b.plan.status.ledger.incident.id, 1);
	/* How this pod ended is unknown.  The facts about an earlier pod of the same name must not
	 * be used. */
	brain_gone(&b, "demo-hand-0");
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.id, 2);
	assert_int_equal(b.plan.status.ledger.records[0].cause, HF_CLASS_INFRASTRUCTURE);
	brain_release(&b);
}

static void code_and_signal_are_those_of_the_kinds_container(void **state)
{
	struct brain_pod *pod;

	(void)state;
	begin();
	brain_exit(&b, "demo-hand-0", 139);
	pod = brain_pod(&b, "demo-hand-0");
	pod->containers[0].signal = 11;
	pod->containers[1] = pod->containers[0];
	pod->containers[1].name = "side";
	pod->containers[1].exit_code = 3;
	pod->pod.containers_len = 2;
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.records[0].exit_code.value, 139);
	assert_int_equal(b.plan.status.ledger.records[0].signal.value, 11);
	brain_release(&b);
}

static int64_t charged(void)
{
	return b.view.status.ledger.restarts[HF_BUDGET_APPLICATION];
}

static void a_termination_counts_when_it_is_seen_and_its_restart_does_not(void **state)
{
	(void)state;
	begin();
	brain_end_in_place(&b, "demo-hand-0", 7);
	brain_quiet(&b);
	assert_int_equal(charged(), 1);
	assert_int_equal(b.view.status.ledger.records[0].exit_code.value, 7);
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].seen, "0:1");
	brain_crash_in_place(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_int_equal(charged(), 1);
	brain_end_in_place(&b, "demo-hand-0", 7);
	brain_quiet(&b);
	assert_int_equal(charged(), 2);
	brain_release(&b);
}

static void a_pod_that_fails_with_a_counted_termination_is_replaced_and_costs_nothing_more(
	void **state)
{
	(void)state;
	begin();
	brain_end_in_place(&b, "demo-hand-0", 137);
	brain_quiet(&b);
	assert_int_equal(charged(), 1);
	brain_exit(&b, "demo-hand-0", 137);
	brain_pod(&b, "demo-hand-0")->pod.reason = "Evicted";
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_string_equal(b.plan.status.ledger.records[0].reason, "Evicted");
	brain_release(&b);
}

static void a_container_that_is_being_created_again_was_counted_before(void **state)
{
	struct brain_pod *pod;

	(void)state;
	begin();
	pod = brain_pod(&b, "demo-hand-0");
	pod->containers[0].again = HF_AGAIN_ALWAYS;
	pod->containers[0].restart_count = 1;
	pod->containers[0].phase = HF_CONTAINER_WAITING;
	pod->containers[0].waiting_reason = "ContainerCreating";
	pod->containers[0].last_exit_code = HF_SOME_INT(137);
	brain_quiet(&b);
	assert_int_equal(charged(), 1);
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].seen, "0:1");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_runs_or_has_succeeded_is_no_end),
		cmocka_unit_test(a_success_is_for_good_whatever_is_written_into_its_pod_later),
		cmocka_unit_test(ends_of_older_attempts_and_generations_are_ours),
		cmocka_unit_test(an_end_beyond_the_replicas_is_ours),
		cmocka_unit_test(a_pod_that_ended_during_its_deletion_ended_by_that),
		cmocka_unit_test(a_pod_that_succeeds_during_its_deletion_has_succeeded),
		cmocka_unit_test(a_pod_that_never_was_seen_cannot_vanish),
		cmocka_unit_test(a_pod_that_succeeded_and_went_unseen_has_succeeded),
		cmocka_unit_test(a_pod_that_vanished_counts_once),
		cmocka_unit_test(code_and_signal_are_those_of_the_kinds_container),
		cmocka_unit_test(a_termination_counts_when_it_is_seen_and_its_restart_does_not),
		cmocka_unit_test(
			a_pod_that_fails_with_a_counted_termination_is_replaced_and_costs_nothing_more),
		cmocka_unit_test(a_container_that_is_being_created_again_was_counted_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
