/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <stdio.h>

/*
 * A restart in place from the fault until all ranks run again: one Boss and three Hands under exec,
 * on two nodes with agents.  The tests count every status write of the operator.
 */

static struct brain b;
static int writes;

static void begin(const char *scope)
{
	brain_init(&b, &brain_kind, 1, 3);
	b.view.run_policy.recovery.restart_scope = scope;
	brain_run_up_exec(&b);
	writes = 0;
}

/* Do one step and perform the actions of the plan; deleted pods end at once. */
static void turn(void)
{
	brain_step(&b);
	writes += b.plan.status_changed;
	brain_perform_all(&b);
}

static const struct hf_ledger *ledger(void)
{
	return &b.view.status.ledger;
}

static void end_process(const char *name, int64_t generation, int64_t attempt, int code)
{
	brain_report(&b, name, HF_PROCESS_ENDED, generation, attempt);
	brain_pod(&b, name)->process.code = HF_SOME_INT(code);
}

static void a_gang_restarts_with_three_writes_and_no_pod_goes(void **state)
{
	char uid[BRAIN_TEXT_MAX];

	(void)state;
	begin("Job");
	(void)snprintf(uid, sizeof(uid), "%s", brain_pod(&b, "demo-hand-1")->uid);
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	assert_int_equal(writes, 1);
	assert_int_equal(ledger()->generation, 2);
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0-2");
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	brain_report(&b, "demo-boss-0", HF_PROCESS_DOWN, 2, 0);
	turn();
	assert_int_equal(writes, 1);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	assert_int_equal(writes, 2);
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	brain_after(&b, 2);
	turn();
	assert_int_equal(writes, 3);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	/* The agents' next writes report that the processes run; the status does not change. */
	brain_report_all(&b, HF_PROCESS_RUNNING, 2);
	turn();
	assert_int_equal(writes, 3);
	assert_string_equal(brain_pod(&b, "demo-hand-1")->uid, uid);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	assert_true(ledger()->records[0].in_place);
	assert_int_equal(ledger()->records[0].running_at - ledger()->records[0].down_at,
			 2 * HF_SECOND);
	brain_release(&b);
}

static void no_rank_starts_before_the_last_is_down(void **state)
{
	static const char *const names[] = {"demo-boss-0", "demo-hand-0", "demo-hand-1"};

	(void)state;
	begin("Job");
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		brain_report(&b, names[i], HF_PROCESS_DOWN, 2, 0);
		turn();
		assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0-2");
	}
	/* A report of Down for an older generation does not release the rank. */
	brain_report(&b, "demo-hand-2", HF_PROCESS_DOWN, 1, 0);
	turn();
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0-2");
	brain_report(&b, "demo-hand-2", HF_PROCESS_DOWN, 2, 0);
	turn();
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	brain_release(&b);
}

/* A rank that does not stop in time gets a new pod, which waits for the new generation, too.  The
 * pods of the other ranks stay. */
static void a_rank_that_is_not_down_in_time_moves_and_the_others_wait(void **state)
{
	(void)state;
	begin("Job");
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	brain_report(&b, "demo-hand-2", HF_PROCESS_RUNNING, 1, 0);
	turn();
	brain_after(&b, 44);
	brain_nodes_heard(&b);
	turn();
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_after(&b, 1);
	turn();
	assert_true(brain_deletes(&b, "demo-hand-2"));
	assert_int_equal(hf_plan_actions(&b.plan), 1);
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0-2");
	brain_gone(&b, "demo-hand-2");
	turn();
	assert_true(brain_creates(&b, "demo-hand-2"));
	assert_string_equal(brain_edit(&b, "demo-hand-2", HF_EDIT_ENV, HF_HOLD_ENV), "1");
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0-2");
	brain_start(&b, "demo-hand-2");
	brain_report(&b, "demo-hand-2", HF_PROCESS_WAITING, 2, 1);
	turn();
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	brain_release(&b);
}

static void a_second_failure_re_creates_all(void **state)
{
	(void)state;
	begin("Job");
	brain_exit(&b, "demo-hand-1", 137);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 1);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	assert_true(brain_creates(&b, "demo-hand-1"));
	brain_start(&b, "demo-hand-1");
	brain_exit(&b, "demo-hand-1", HF_BARRIER_EXIT_CODE);
	turn();
	assert_int_equal(ledger()->generation, 3);
	assert_int_equal(ledger()->in_place_base, 0);
	/* Ranks with a pod that is being deleted are held, so that no process starts in such a
	 * pod. */
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0,2");
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	assert_non_null(brain_event(&b, "InPlaceGivenUp"));
	brain_terminating_gone(&b);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 4);
	assert_null(brain_edit(&b, "demo-hand-1", HF_EDIT_ENV, HF_HOLD_ENV));
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	brain_release(&b);
}

/* A new pod that runs when the operator first sees it has its 15 s from the start of its container, also if the ledger's
 * phase began long before: the restart was delayed. */
static void a_new_pod_has_its_time_from_its_own_start(void **state)
{
	struct brain_pod *pod;

	(void)state;
	begin("Job");
	brain_exit(&b, "demo-hand-1", 137);
	turn();
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	brain_after(&b, 40);
	brain_nodes_heard(&b);
	brain_start(&b, "demo-hand-1");
	pod = brain_pod(&b, "demo-hand-1");
	pod->pod.news_at = HF_TIME_NONE;
	/* The node's clock is a second ahead. */
	pod->containers[0].started_at += HF_SECOND;
	turn();
	assert_null(brain_event(&b, "InPlaceGivenUp"));
	brain_after(&b, 15);
	brain_nodes_heard(&b);
	turn();
	assert_null(brain_event(&b, "InPlaceGivenUp"));
	brain_after(&b, 1);
	brain_nodes_heard(&b);
	turn();
	assert_non_null(brain_event(&b, "InPlaceGivenUp"));
	brain_release(&b);
}

/* An edit of the spec counts at the next restart, so no pod of the old spec stays. */
static void after_an_edit_a_restart_makes_new_pods(void **state)
{
	(void)state;
	begin("Job");
	for (size_t i = 0; i < b.pods_len; i++)
		b.pods[i].pod.spec = "0123456789abcdef";
	b.view.spec = "fedcba9876543210";
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	assert_int_equal(ledger()->generation, 2);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	assert_false(ledger()->records[0].in_place);
	assert_string_equal(brain_event(&b, "PodsReplaced")->message,
			    "all pods are re-created: the job was edited since its pods were made");
	brain_release(&b);

	/* One pod was made after the edit. */
	begin("Job");
	for (size_t i = 0; i < b.pods_len; i++)
		b.pods[i].pod.spec = "0123456789abcdef";
	brain_pod(&b, "demo-hand-2")->pod.spec = b.view.spec = "fedcba9876543210";
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 3);
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0-2");
	brain_release(&b);
}

/* The agent's last report is gone with its exec: the code alone tells that no order came. */
static void a_new_pod_that_waited_in_vain_is_not_charged(void **state)
{
	(void)state;
	begin("Job");
	brain_exit(&b, "demo-hand-1", 137);
	turn();
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	brain_start(&b, "demo-hand-1");
	brain_report(&b, "demo-hand-1", HF_PROCESS_WAITING, 2, 1);
	turn();
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	brain_pod(&b, "demo-hand-1")->reported = false;
	brain_exit(&b, "demo-hand-1", HF_BARRIER_EXIT_CODE);
	turn();
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(ledger()->incident.id, 1);
	brain_release(&b);
}

/* A gang does not train without the rank that its dead agent did not let start. */
static void all_ranks_restart_again_if_one_does_not_start(void **state)
{
	(void)state;
	begin("Job");
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	brain_report(&b, "demo-hand-0", HF_PROCESS_RUNNING, 2, 0);
	brain_report(&b, "demo-hand-2", HF_PROCESS_RUNNING, 2, 0);
	brain_exit(&b, "demo-boss-0", HF_BARRIER_EXIT_CODE);
	turn();
	assert_int_equal(ledger()->generation, 3);
	assert_int_equal(ledger()->in_place_base, 1);
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0-2");
	assert_string_equal(ledger()->roles[BRAIN_BOSS].attempts, "0:1");
	assert_true(brain_deletes(&b, "demo-boss-0"));
	assert_int_equal(hf_plan_actions(&b.plan), 1);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(ledger()->in_place_streak, 2);
	assert_non_null(brain_event(&b, "InPlaceEscalated"));
	brain_report_all(&b, HF_PROCESS_DOWN, 3);
	turn();
	assert_true(brain_creates(&b, "demo-boss-0"));
	brain_start(&b, "demo-boss-0");
	brain_report(&b, "demo-boss-0", HF_PROCESS_WAITING, 3, 1);
	turn();
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	brain_release(&b);
}

/* The operator was away: the agent's report and the failed pod describe the same termination. */
static void a_termination_counts_once_whichever_way_it_comes(void **state)
{
	(void)state;
	begin("Job");
	end_process("demo-hand-1", 1, 0, 1);
	brain_exit(&b, "demo-hand-1", 1);
	turn();
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(ledger()->incident.id, 1);
	brain_release(&b);

	/* Here the agent's report comes first, and then exec ends, because no order came in
	 * time. */
	begin("Job");
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	brain_exit(&b, "demo-hand-1", 1);
	turn();
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(ledger()->incident.id, 1);
	brain_release(&b);
}

static void the_next_failure_in_the_same_pod_is_another_incident(void **state)
{
	(void)state;
	begin("Job");
	for (int n = 1; n <= 3; n++) {
		end_process("demo-hand-1", n, 0, 1);
		turn();
		assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], n);
		assert_int_equal(ledger()->generation, n + 1);
		assert_int_equal(ledger()->in_place_base, 1);
		brain_report_all(&b, HF_PROCESS_DOWN, n + 1);
		brain_after(&b, 60);
		brain_nodes_heard(&b);
		turn();
		brain_report_all(&b, HF_PROCESS_RUNNING, n + 1);
		turn();
		assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	}
	/* inPlaceLimit */
	end_process("demo-hand-1", 4, 0, 1);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	assert_int_equal(ledger()->in_place_streak, 0);
	brain_release(&b);
}

/* Agents cannot read the operator's file, so its defaults must reach them through the ledger. */
static void agents_are_told_the_resolved_configuration(void **state)
{
	struct hf_settings file = {.recovery = {.in_place_wait_seconds = HF_SOME_INT(20),
						.checkpoint_grace_seconds = HF_SOME_INT(90)}};

	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	b.view.settings = &file;
	brain_agents(&b, true);
	brain_run_up(&b);
	brain_quiet(&b);
	assert_int_equal(ledger()->in_place_wait_seconds, 0);
	brain_report(&b, "demo-hand-1", HF_PROCESS_RUNNING, 1, 0);
	writes = 0;
	turn();
	assert_int_equal(writes, 1);
	assert_int_equal(ledger()->in_place_wait_seconds, 20);
	assert_int_equal(ledger()->in_place_save_seconds, 90);
	assert_int_equal(ledger()->in_place_grace_seconds, 0);
	/* The job's own fields override the file.  With restartGraceSeconds 0 a process still gets
	 * SIGTERM, one second before SIGKILL. */
	b.view.run_policy.recovery.in_place_wait_seconds = HF_SOME_INT(7);
	b.view.run_policy.recovery.restart_grace_seconds = HF_SOME_INT(0);
	turn();
	assert_int_equal(ledger()->in_place_wait_seconds, 7);
	assert_int_equal(ledger()->in_place_grace_seconds, 1);
	file.recovery.in_place = "Never";
	turn();
	/* Ranks save before a planned end all the same. */
	assert_int_equal(ledger()->in_place_wait_seconds, 0);
	assert_int_equal(ledger()->in_place_grace_seconds, 0);
	assert_int_equal(ledger()->in_place_save_seconds, 90);
	file.recovery.checkpoint_grace_seconds = HF_SOME_INT(0);
	turn();
	assert_int_equal(ledger()->in_place_save_seconds, 0);
	brain_quiet(&b);
	brain_release(&b);
}

static void a_rank_of_scope_replica_restarts_without_a_barrier(void **state)
{
	(void)state;
	begin("Replica");
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	assert_int_equal(writes, 1);
	assert_int_equal(ledger()->generation, 1);
	assert_string_equal(ledger()->roles[BRAIN_HAND].attempts, "1:1");
	assert_string_equal(ledger()->roles[BRAIN_HAND].in_place, "1:1");
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_after(&b, 2);
	turn();
	assert_int_equal(writes, 2);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	/* Before the second restart the rank waits at the barrier until the delay is over. */
	end_process("demo-hand-1", 1, 1, 1);
	turn();
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 2);
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "1");
	brain_report(&b, "demo-hand-1", HF_PROCESS_DOWN, 1, 2);
	turn();
	assert_int_equal(b.plan.wake_at, ledger()->not_before);
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "1");
	brain_after(&b, 12);
	brain_nodes_heard(&b);
	turn();
	assert_null(ledger()->roles[BRAIN_HAND].hold);
	brain_release(&b);
}

/* After a restart of all ranks in place, the pods' stamps are behind the ledger.  The barrier of a
 * later restart of one rank must hold only that rank, from the first step on. */
static void a_rank_restarts_alone_after_a_restart_of_all(void **state)
{
	(void)state;
	begin("Replica");
	for (int r = 0; r < 2; r++)
		b.replicas[r].restart_policy = "ExitCode";
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	assert_int_equal(ledger()->in_place_base, 1);
	assert_int_equal(ledger()->generation, 2);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	brain_report_all(&b, HF_PROCESS_RUNNING, 2);
	turn();
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	end_process("demo-hand-1", 2, 0, 137);
	turn();
	brain_report(&b, "demo-hand-1", HF_PROCESS_RUNNING, 2, 1);
	turn();
	writes = 0;
	/* Before the second restart the rank is held until its delay is over. */
	end_process("demo-hand-1", 2, 1, 137);
	turn();
	assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "1");
	assert_int_equal(writes, 1);
	assert_string_equal(hf_phase_name(ledger()->phase), "Creating");
	turn();
	assert_int_equal(writes, 1);
	brain_release(&b);
}

static void without_an_agent_all_is_as_without_exec(void **state)
{
	(void)state;
	begin("Job");
	brain_agents(&b, false);
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	assert_int_equal(ledger()->in_place_base, 0);
	brain_release(&b);
}

/* Suspend the job at each moment of a restart in place: no process starts in a pod that is deleted,
 * and no rank stays held. */
static void suspend_clears_the_barrier(void **state)
{
	(void)state;
	for (int moment = 0; moment < 3; moment++) {
		begin("Job");
		end_process("demo-hand-1", 1, 0, 1);
		turn();
		if (moment > 0)
			brain_report_all(&b, HF_PROCESS_DOWN, 2);
		if (moment > 1)
			turn();
		b.view.run_policy.suspend = HF_SOME_BOOL(true);
		turn();
		assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
		assert_string_equal(ledger()->roles[BRAIN_HAND].hold, "0-2");
		brain_terminating_gone(&b);
		turn();
		assert_null(ledger()->roles[BRAIN_HAND].hold);
		assert_null(ledger()->roles[BRAIN_BOSS].hold);
		b.view.run_policy.suspend = HF_SOME_BOOL(false);
		brain_run_up(&b);
		assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
		assert_int_equal(ledger()->generation, 3);
		brain_release(&b);
	}
}

/* For each set of agents that answer: the job leaves the barrier in the end. */
static void no_job_waits_for_ever(void **state)
{
	(void)state;
	for (unsigned answers = 0; answers < 16; answers++) {
		static const char *const names[] = {"demo-boss-0", "demo-hand-0", "demo-hand-1",
						    "demo-hand-2"};

		begin("Job");
		end_process("demo-hand-1", 1, 0, 1);
		turn();
		for (int second = 0; second < 300; second++) {
			for (unsigned i = 0; i < HF_ARRAY_LEN(names); i++) {
				struct brain_pod *pod = brain_pod(&b, names[i]);

				if ((answers >> i & 1) == 0 || !pod)
					continue;
				brain_report(&b, names[i],
					     ledger()->roles[i == 0 ? BRAIN_BOSS : BRAIN_HAND].hold
						     ? HF_PROCESS_DOWN
						     : HF_PROCESS_RUNNING,
					     ledger()->generation, pod->pod.attempt);
			}
			turn();
			brain_terminating_gone(&b);
			brain_start_all(&b);
			brain_after(&b, 1);
			brain_nodes_heard(&b);
		}
		assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
		assert_null(ledger()->roles[BRAIN_HAND].hold);
		assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
		brain_release(&b);
	}
}

/* `holdfast why` reads no reports. */
static void a_caller_without_reports_decides_nothing(void **state)
{
	(void)state;
	begin("Job");
	end_process("demo-hand-1", 1, 0, 1);
	turn();
	for (size_t i = 0; i < b.pods_len; i++)
		b.pods[i].reported = false;
	b.blind = true;
	brain_after(&b, 300);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_string_equal(b.plan.status.ledger.roles[BRAIN_HAND].hold, "0-2");
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "4 rank(s) start when all processes"));
	/* No process that has stopped is blamed for the delay. */
	b.view.status.ledger.not_before = b.now + 20 * HF_SECOND;
	brain_step(&b);
	assert_false(brain_says(&b, HF_TOPIC_BLOCKED, "4 rank(s) start when all processes"));
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "the processes start in 20s"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gang_restarts_with_three_writes_and_no_pod_goes),
		cmocka_unit_test(no_rank_starts_before_the_last_is_down),
		cmocka_unit_test(a_rank_that_is_not_down_in_time_moves_and_the_others_wait),
		cmocka_unit_test(a_second_failure_re_creates_all),
		cmocka_unit_test(a_new_pod_has_its_time_from_its_own_start),
		cmocka_unit_test(after_an_edit_a_restart_makes_new_pods),
		cmocka_unit_test(a_new_pod_that_waited_in_vain_is_not_charged),
		cmocka_unit_test(all_ranks_restart_again_if_one_does_not_start),
		cmocka_unit_test(a_termination_counts_once_whichever_way_it_comes),
		cmocka_unit_test(the_next_failure_in_the_same_pod_is_another_incident),
		cmocka_unit_test(agents_are_told_the_resolved_configuration),
		cmocka_unit_test(a_rank_of_scope_replica_restarts_without_a_barrier),
		cmocka_unit_test(a_rank_restarts_alone_after_a_restart_of_all),
		cmocka_unit_test(without_an_agent_all_is_as_without_exec),
		cmocka_unit_test(suspend_clears_the_barrier),
		cmocka_unit_test(no_job_waits_for_ever),
		cmocka_unit_test(a_caller_without_reports_decides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
