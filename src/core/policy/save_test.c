/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

/* Ranks that save before a planned end: a boss and three hands under exec on two nodes with agents. */

#define GRACE 60
/* The grace, and the time for the order and the report. */
#define UNTIL (GRACE + 5)

static struct brain b;

static void begin(const char *scope)
{
	brain_init(&b, &brain_kind, 1, 3);
	b.view.run_policy.recovery.restart_scope = scope;
	b.view.run_policy.recovery.checkpoint_grace_seconds = HF_SOME_INT(GRACE);
	brain_run_up_exec(&b);
}

/* One step and what it asks for. */
static void turn(void)
{
	brain_step(&b);
	brain_perform_all(&b);
}

static void after(int seconds)
{
	brain_after(&b, seconds);
	brain_nodes_heard(&b);
	turn();
}

static const struct hf_ledger *ledger(void)
{
	return &b.view.status.ledger;
}

static void suspend(bool yes)
{
	b.view.run_policy.suspend = HF_SOME_BOOL(yes);
	turn();
}

static void suspend_waits_for_each_rank(void **state)
{
	(void)state;
	begin("Job");
	suspend(true);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_int_equal(ledger()->generation, 2);
	assert_int_equal(ledger()->save_until, b.now + UNTIL * HF_SECOND);
	assert_int_equal(b.plan.wake_at, ledger()->save_until);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUSPENDED);
	assert_non_null(brain_event(&b, "SaveRequested"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "4 rank(s) save before they end"));
	brain_report(&b, "demo-hand-1", HF_PROCESS_DOWN, 2, 0);
	turn();
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 1);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 3);
	brain_terminating_gone(&b);
	turn();
	assert_int_equal(ledger()->save_until, HF_TIME_NONE);
	brain_release(&b);
}

static void nothing_is_awaited_when_the_time_is_over(void **state)
{
	(void)state;
	begin("Job");
	suspend(true);
	after(UNTIL - 1);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	after(1);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	brain_release(&b);
}

/* Any client may have written the ledger, and the grace may have been shortened since. */
static void a_time_that_is_too_late_is_none(void **state)
{
	(void)state;
	begin("Job");
	suspend(true);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	b.view.run_policy.recovery.checkpoint_grace_seconds = HF_SOME_INT(GRACE - 31);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	brain_release(&b);
}

/* Another leader goes on, and its clock is behind. */
static void a_clock_that_is_behind_withdraws_no_request(void **state)
{
	(void)state;
	begin("Job");
	suspend(true);
	b.now -= 5 * HF_SECOND;
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	brain_release(&b);
}

/* A dead rank, a lost node, a silent agent, a program outside of exec. */
static void nothing_is_awaited_of_what_cannot_answer(void **state)
{
	(void)state;
	begin("Job");
	suspend(true);
	brain_exit(&b, "demo-hand-1", 1);
	brain_pod(&b, "demo-hand-2")->reported = false;
	turn();
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_true(brain_deletes(&b, "demo-hand-2"));
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 2);
	brain_agents(&b, false);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 2);
	brain_release(&b);

	begin("Job");
	brain_lose(&b, brain_pod(&b, "demo-hand-0")->pod.node);
	suspend(true);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

static void without_a_grace_nothing_is_asked(void **state)
{
	(void)state;
	begin("Job");
	b.view.run_policy.recovery.checkpoint_grace_seconds = HF_SOME_INT(0);
	suspend(true);
	assert_int_equal(ledger()->save_until, HF_TIME_NONE);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	brain_release(&b);
}

/* The first deadline stands. */
static void a_second_planned_end_asks_no_more(void **state)
{
	hf_time until;

	(void)state;
	begin("Job");
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	until = ledger()->save_until;
	assert_int_equal(until, b.now + UNTIL * HF_SECOND);
	assert_true(ledger()->records[0].in_place);
	after(20);
	suspend(true);
	assert_int_equal(ledger()->save_until, until);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	brain_release(&b);
}

/* The ranks that save are well, whatever a person asks for meanwhile. */
static void a_second_restart_that_a_person_asks_for_ends_no_save(void **state)
{
	hf_time until;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin("Job");
		b.view.run_policy.recovery.in_place = i == 0 ? "Auto" : "Never";
		b.view.restart = "2026-01-01T00:00:01Z";
		turn();
		until = ledger()->save_until;
		assert_int_equal(until, b.now + UNTIL * HF_SECOND);
		after(20);
		b.view.restart = "2026-01-01T00:00:21Z";
		turn();
		assert_int_equal(ledger()->incident.id, 2);
		assert_int_equal(ledger()->save_until, until);
		after(1);
		assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
		brain_release(&b);
	}
}

/* The rank that was asked first may wait for its delay still, long after its save. */
static void a_rank_that_is_asked_later_has_all_of_its_time(void **state)
{
	(void)state;
	begin("Replica");
	brain_quiet(&b);
	b.view.restart = "2026-01-01T00:00:01Z hand-0";
	turn();
	after(UNTIL - 5);
	b.view.restart = "2026-01-01T00:01:00Z hand-1";
	turn();
	assert_int_equal(ledger()->save_until, b.now + UNTIL * HF_SECOND);
	after(20);
	b.replicas[1].replicas = HF_SOME_INT(2);
	turn();
	assert_int_equal(ledger()->save_until, b.now + UNTIL * HF_SECOND);
	assert_false(brain_deletes(&b, "demo-hand-2"));
	brain_release(&b);
}

/* Not all of the time for a save: the ranks have it and then their grace. */
static void a_restart_in_place_has_time_to_save(void **state)
{
	(void)state;
	begin("Job");
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	after(UNTIL + 44);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	after(1);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	brain_release(&b);

	/* After a failure no rank saves. */
	begin("Job");
	brain_report(&b, "demo-hand-1", HF_PROCESS_ENDED, 1, 0);
	brain_pod(&b, "demo-hand-1")->process.code = HF_SOME_INT(1);
	turn();
	assert_int_equal(ledger()->save_until, HF_TIME_NONE);
	after(45);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	brain_release(&b);
}

static void pods_that_are_re_created_save_first(void **state)
{
	(void)state;
	begin("Job");
	b.view.run_policy.recovery.in_place = "Never";
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	assert_int_equal(ledger()->in_place_save_seconds, GRACE);
	/* The rank is not given up anew in each step. */
	turn();
	assert_null(ledger()->roles[BRAIN_HAND].attempts);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	brain_release(&b);
}

static void a_rank_that_is_scaled_away_saves_first(void **state)
{
	(void)state;
	begin("Replica");
	brain_quiet(&b);
	b.replicas[1].replicas = HF_SOME_INT(2);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "2");
	brain_report(&b, "demo-hand-2", HF_PROCESS_DOWN, 1, 1);
	turn();
	assert_true(brain_deletes(&b, "demo-hand-2"));
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 1);
	brain_release(&b);
}

/* The pod of one rank has to leave its node: the others are well. */
static void peers_of_an_evicted_pod_save(void **state)
{
	(void)state;
	begin("Job");
	brain_disrupt(&b, "demo-hand-1");
	brain_terminate(&b, "demo-hand-1");
	turn();
	assert_true(ledger()->records[0].in_place);
	assert_int_equal(ledger()->save_until, b.now + UNTIL * HF_SECOND);
	/* A failure in the new generation withdraws the request. */
	brain_gone(&b, "demo-hand-1");
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	brain_start(&b, "demo-hand-1");
	brain_report(&b, "demo-hand-1", HF_PROCESS_WAITING, 2, 1);
	turn();
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	assert_int_equal(ledger()->save_until, HF_TIME_NONE);
	brain_release(&b);
}

/* A boss under exec, whose program runs programs in the pods of the hands, as the launcher of an MPIJob. */
static void begin_launcher(void)
{
	static struct hf_framework kind;

	kind = brain_kind;
	kind.no_exec_roles = 1u << BRAIN_HAND;
	brain_init(&b, &kind, 1, 2);
	b.view.run_policy.recovery.restart_scope = "Job";
	b.view.run_policy.recovery.checkpoint_grace_seconds = HF_SOME_INT(GRACE);
	brain_run_up(&b);
	brain_agents(&b, true);
	brain_report(&b, "demo-boss-0", HF_PROCESS_RUNNING, 1, 0);
	turn();
}

static void hands_stay_while_an_evicted_boss_saves(void **state)
{
	(void)state;
	begin_launcher();
	brain_disrupt(&b, "demo-boss-0");
	brain_terminate(&b, "demo-boss-0");
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.generation, 2);
	assert_false(brain_deletes(&b, "demo-hand-0"));
	assert_int_equal(b.plan.status.ledger.save_until, b.now + UNTIL * HF_SECOND);
	assert_true(b.plan.wake_at <= b.plan.status.ledger.save_until);
	brain_perform_all(&b);
	brain_gone(&b, "demo-boss-0");
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
	/* A hand is evicted first, and the boss while it saves. */
	begin_launcher();
	brain_disrupt(&b, "demo-hand-1");
	brain_terminate(&b, "demo-hand-1");
	turn();
	brain_disrupt(&b, "demo-boss-0");
	brain_terminate(&b, "demo-boss-0");
	brain_step(&b);
	assert_false(brain_deletes(&b, "demo-hand-0"));
	brain_after(&b, UNTIL);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

/* SIGTERM of the kubelet waits for a save, and the program needs a moment after it. */
static void pods_know_their_time_to_save(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	b.view.run_policy.recovery.checkpoint_grace_seconds = HF_SOME_INT(GRACE);
	brain_step(&b);
	assert_string_equal(brain_edit(&b, "demo-hand-1", HF_EDIT_ENV, HF_SAVE_ENV), "25");
	b.view.run_policy.recovery.checkpoint_grace_seconds = HF_SOME_INT(20);
	brain_step(&b);
	assert_string_equal(brain_edit(&b, "demo-hand-1", HF_EDIT_ENV, HF_SAVE_ENV), "20");
	b.view.run_policy.recovery.checkpoint_grace_seconds = HF_SOME_INT(0);
	brain_step(&b);
	assert_null(brain_edit(&b, "demo-hand-1", HF_EDIT_ENV, HF_SAVE_ENV));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suspend_waits_for_each_rank),
		cmocka_unit_test(nothing_is_awaited_when_the_time_is_over),
		cmocka_unit_test(a_time_that_is_too_late_is_none),
		cmocka_unit_test(a_clock_that_is_behind_withdraws_no_request),
		cmocka_unit_test(nothing_is_awaited_of_what_cannot_answer),
		cmocka_unit_test(without_a_grace_nothing_is_asked),
		cmocka_unit_test(a_second_planned_end_asks_no_more),
		cmocka_unit_test(a_second_restart_that_a_person_asks_for_ends_no_save),
		cmocka_unit_test(a_rank_that_is_asked_later_has_all_of_its_time),
		cmocka_unit_test(a_restart_in_place_has_time_to_save),
		cmocka_unit_test(pods_that_are_re_created_save_first),
		cmocka_unit_test(a_rank_that_is_scaled_away_saves_first),
		cmocka_unit_test(peers_of_an_evicted_pod_save),
		cmocka_unit_test(hands_stay_while_an_evicted_boss_saves),
		cmocka_unit_test(pods_know_their_time_to_save),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
