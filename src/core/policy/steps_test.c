/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

/* Tests of the steps that ranks report, in the ledger and in its records. */

static struct brain b;

static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	b.view.run_policy.recovery.restart_scope = "Job";
	b.view.run_policy.recovery.checkpoint_grace_seconds = HF_SOME_INT(60);
	brain_run_up_exec(&b);
}

static void turn(void)
{
	brain_step(&b);
	brain_perform_all(&b);
}

static const struct hf_ledger *ledger(void)
{
	return &b.view.status.ledger;
}

static void tell(const char *name, int64_t step, int64_t saved)
{
	brain_pod(&b, name)->process.step = step;
	brain_pod(&b, name)->process.saved_step = saved;
}

static void end_process(const char *name, int64_t generation)
{
	brain_report(&b, name, HF_PROCESS_ENDED, generation, 0);
	brain_pod(&b, name)->process.code = HF_SOME_INT(1);
}

static void steps_are_noted_with_each_save_and_else_seldom(void **state)
{
	(void)state;
	begin();
	assert_int_equal(ledger()->step, 0);
	tell("demo-hand-0", 10, 0);
	turn();
	assert_int_equal(ledger()->step, 10);
	assert_false(b.plan.status_urgent);
	/* A step alone is no reason to write. */
	tell("demo-hand-0", 20, 0);
	turn();
	assert_int_equal(ledger()->step, 10);
	assert_false(b.plan.status_changed);
	tell("demo-hand-1", 21, 20);
	turn();
	assert_int_equal(ledger()->step, 21);
	assert_int_equal(ledger()->saved_step, 20);
	tell("demo-hand-0", 400, 20);
	brain_after(&b, 239);
	turn();
	assert_int_equal(ledger()->step, 21);
	brain_after(&b, 1);
	turn();
	assert_int_equal(ledger()->step, 400);
	/* Without reports the last words stand. */
	for (size_t i = 0; i < b.pods_len; i++)
		b.pods[i].reported = false;
	brain_after(&b, 600);
	turn();
	assert_int_equal(ledger()->step, 400);
	assert_int_equal(ledger()->saved_step, 20);
	brain_release(&b);
}

/* The report of the save is gone with the pod. */
static void a_record_remembers_the_last_save(void **state)
{
	(void)state;
	begin();
	tell("demo-hand-1", 120, 100);
	turn();
	brain_pod(&b, "demo-hand-1")->process.saved_step = 0;
	brain_pod(&b, "demo-hand-0")->process.step = 130;
	brain_exit(&b, "demo-hand-1", 1);
	turn();
	assert_int_equal(ledger()->records[0].step, 130);
	assert_int_equal(ledger()->records[0].saved_step, 100);
	/* The record and the job name the same last step. */
	assert_int_equal(ledger()->step, 130);
	assert_true(brain_says(&b, HF_TOPIC_EVIDENCE, "30 step(s) are lost"));
	brain_release(&b);
}

/* Ranks save after the decision: nothing is lost. */
static void a_planned_restart_loses_what_was_not_saved_in_the_end(void **state)
{
	(void)state;
	begin();
	tell("demo-hand-1", 120, 100);
	turn();
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	assert_int_equal(ledger()->records[0].saved_step, 100);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	tell("demo-hand-1", 122, 122);
	brain_pod(&b, "demo-hand-1")->process.save_ms = 1500;
	turn();
	/* The step that lets the ranks start may be the one that sees the last report. */
	assert_int_equal(ledger()->records[0].step, 122);
	assert_int_equal(ledger()->records[0].saved_step, 122);
	assert_int_equal(ledger()->save_ms, 1500);
	brain_after(&b, 2);
	turn();
	assert_non_null(brain_event(&b, "Recovered"));
	assert_non_null(strstr(brain_event(&b, "Recovered")->message, "0 step(s) are lost"));
	brain_release(&b);
}

/* While ranks restart, the job and the record name the same last step. */
static void a_job_that_restarts_has_the_steps_of_its_record(void **state)
{
	(void)state;
	begin();
	tell("demo-hand-1", 120, 100);
	turn();
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	brain_report(&b, "demo-hand-1", HF_PROCESS_DOWN, 2, 0);
	tell("demo-hand-1", 122, 122);
	turn();
	assert_int_equal(ledger()->records[0].step, 122);
	assert_int_equal(ledger()->step, 122);
	assert_int_equal(ledger()->saved_step, 122);
	/* The report is gone with its pod, and another rank has done fewer steps. */
	tell("demo-hand-1", 0, 0);
	tell("demo-hand-0", 121, 121);
	turn();
	assert_int_equal(ledger()->step, 122);
	assert_int_equal(ledger()->saved_step, 122);
	brain_release(&b);
}

/* A job that has ended takes the last steps that are reported. */
static void a_job_that_ends_has_its_last_steps(void **state)
{
	(void)state;
	begin();
	tell("demo-hand-1", 10, 0);
	turn();
	assert_int_equal(ledger()->step, 10);
	tell("demo-hand-1", 200, 200);
	brain_exit(&b, "demo-boss-0", 0);
	turn();
	assert_true(hf_status_is_finished(&b.view.status));
	assert_int_equal(ledger()->step, 200);
	assert_int_equal(ledger()->saved_step, 200);
	/* The agent's last report comes after the end of the pod. */
	tell("demo-hand-1", 201, 201);
	turn();
	assert_int_equal(ledger()->step, 201);
	turn();
	assert_false(b.plan.status_changed);
	brain_release(&b);

	begin();
	b.view.run_policy.backoff_limit = HF_SOME_INT(0);
	tell("demo-hand-0", 10, 0);
	turn();
	end_process("demo-hand-1", 1);
	tell("demo-hand-1", 300, 200);
	turn();
	assert_true(hf_status_is_finished(&b.view.status));
	assert_int_equal(ledger()->step, 300);
	assert_int_equal(ledger()->saved_step, 200);
	brain_release(&b);
}

static void the_first_step_is_later_than_the_start(void **state)
{
	hf_time running_at;

	(void)state;
	begin();
	tell("demo-hand-1", 120, 100);
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	brain_after(&b, 2);
	turn();
	running_at = ledger()->records[0].running_at;
	assert_int_equal(running_at, b.now);
	/* The processes of before say nothing. */
	assert_int_equal(ledger()->records[0].stepped_at, HF_TIME_NONE);
	/* The last step before the restart. */
	brain_pod(&b, "demo-hand-1")->pod.stepped_at = running_at - HF_MINUTE;
	turn();
	assert_int_equal(ledger()->records[0].stepped_at, HF_TIME_NONE);
	brain_after(&b, 30);
	brain_pod(&b, "demo-hand-1")->pod.stepped_at = b.now - 10 * HF_SECOND;
	turn();
	assert_int_equal(ledger()->records[0].stepped_at, running_at + 20 * HF_SECOND);
	assert_true(brain_says(&b, HF_TOPIC_DONE, "the first step was done at most 20s after"));
	/* Later steps are not the first one. */
	brain_pod(&b, "demo-hand-1")->pod.stepped_at = b.now;
	turn();
	assert_int_equal(ledger()->records[0].stepped_at, running_at + 20 * HF_SECOND);
	brain_release(&b);

	/* The report of the process says it, before all ranks count as running. */
	begin();
	tell("demo-hand-0", 120, 100);
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	brain_after(&b, 1);
	brain_report(&b, "demo-hand-0", HF_PROCESS_RUNNING, 2, 0);
	tell("demo-hand-0", 101, 100);
	turn();
	assert_int_equal(ledger()->records[0].stepped_at, b.now);
	brain_release(&b);
}

/* The agent's list of ranks still has the step of the process before: it is renewed seldom. */
static void a_process_without_a_step_has_not_the_step_of_the_one_before(void **state)
{
	struct brain_pod *pod;

	(void)state;
	begin();
	pod = brain_pod(&b, "demo-hand-1");
	pod->pod.step = 40;
	pod->pod.stepped_at = b.now;
	brain_after(&b, 10);
	tell("demo-hand-0", 120, 100);
	end_process("demo-hand-1", 1);
	turn();
	assert_int_equal(ledger()->records[0].step, 120);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	turn();
	brain_after(&b, 3);
	brain_report_all(&b, HF_PROCESS_RUNNING, 2);
	turn();
	end_process("demo-hand-1", 2);
	turn();
	assert_int_equal(ledger()->generation, 3);
	assert_int_equal(ledger()->records[0].step, 0);
	assert_false(brain_says(&b, HF_TOPIC_EVIDENCE, "was reached"));
	brain_report_all(&b, HF_PROCESS_DOWN, 3);
	brain_after(&b, 60);
	turn();
	brain_after(&b, 3);
	brain_report_all(&b, HF_PROCESS_RUNNING, 3);
	/* Its successor has done steps. */
	pod->pod.step = 105;
	pod->pod.stepped_at = b.now;
	turn();
	end_process("demo-hand-1", 3);
	turn();
	assert_int_equal(ledger()->records[0].step, 105);
	brain_release(&b);
}

/* An agent reports a start minutes later.  Until then its report has the step of the process before. */
static void a_report_of_the_process_before_has_no_step_of_the_present_one(void **state)
{
	(void)state;
	begin();
	b.view.run_policy.recovery.no_progress_limit = HF_SOME_INT(2);
	tell("demo-hand-0", 27, 20);
	tell("demo-hand-1", 27, 20);
	end_process("demo-hand-2", 1);
	turn();
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	tell("demo-hand-0", 27, 20);
	tell("demo-hand-1", 27, 20);
	turn();
	assert_int_equal(ledger()->records[0].step, 27);
	/* The first agent reports a step, the second not even the start. */
	brain_after(&b, 3);
	brain_report(&b, "demo-hand-0", HF_PROCESS_RUNNING, 2, 0);
	tell("demo-hand-0", 25, 20);
	turn();
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	assert_int_equal(ledger()->generation, 3);
	assert_int_equal(ledger()->records[0].step, 25);
	assert_int_equal(ledger()->records[0].saved_step, 20);
	/* While the ranks save, the second agent's report is still of the process before. */
	brain_report(&b, "demo-hand-0", HF_PROCESS_DOWN, 3, 0);
	tell("demo-hand-0", 26, 26);
	turn();
	assert_int_equal(ledger()->records[0].step, 26);
	brain_report_all(&b, HF_PROCESS_DOWN, 3);
	tell("demo-hand-1", 26, 26);
	turn();
	assert_int_equal(ledger()->records[0].step, 26);
	assert_int_equal(ledger()->records[0].saved_step, 26);
	brain_release(&b);
}

/* Agents publish steps seldom, and the reports of ranks that were stopped have their last one. */
static void a_record_takes_the_last_steps_of_the_ranks_that_were_stopped(void **state)
{
	(void)state;
	begin();
	tell("demo-hand-0", 67, 60);
	turn();
	end_process("demo-hand-1", 1);
	turn();
	assert_int_equal(ledger()->records[0].step, 67);
	assert_int_equal(ledger()->best_step, 67);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	tell("demo-hand-0", 266, 260);
	turn();
	assert_int_equal(ledger()->records[0].step, 266);
	assert_int_equal(ledger()->records[0].saved_step, 260);
	assert_int_equal(ledger()->best_step, 266);
	/* The next processes' steps are not of the restart. */
	brain_after(&b, 3);
	brain_report_all(&b, HF_PROCESS_RUNNING, 2);
	tell("demo-hand-0", 270, 260);
	turn();
	assert_int_equal(ledger()->records[0].step, 266);
	brain_release(&b);

	/* No step was known at the decision. */
	begin();
	b.view.restart = "2026-01-01T00:00:01Z";
	turn();
	assert_int_equal(ledger()->records[0].step, 0);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	tell("demo-hand-1", 28, 28);
	turn();
	assert_int_equal(ledger()->records[0].step, 28);
	assert_int_equal(ledger()->records[0].saved_step, 28);
	brain_release(&b);
}

/* A restart that brings the job on is no restart without progress, although the step was not known at the decision. */
static void last_steps_end_a_streak_without_progress(void **state)
{
	(void)state;
	begin();
	b.view.run_policy.recovery.no_progress_limit = HF_SOME_INT(2);
	tell("demo-hand-0", 100, 100);
	for (int64_t generation = 1; generation < 5; generation++) {
		turn();
		end_process("demo-hand-1", generation);
		turn();
		assert_int_equal(ledger()->generation, generation + 1);
		brain_report_all(&b, HF_PROCESS_DOWN, generation + 1);
		tell("demo-hand-0", 100 * (generation + 1), 100);
		brain_after(&b, 400);
		turn();
		brain_after(&b, 3);
		brain_report_all(&b, HF_PROCESS_RUNNING, generation + 1);
	}
	assert_int_equal(ledger()->no_progress_streak, 0);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_noted_with_each_save_and_else_seldom),
		cmocka_unit_test(a_record_remembers_the_last_save),
		cmocka_unit_test(a_planned_restart_loses_what_was_not_saved_in_the_end),
		cmocka_unit_test(a_job_that_restarts_has_the_steps_of_its_record),
		cmocka_unit_test(a_job_that_ends_has_its_last_steps),
		cmocka_unit_test(the_first_step_is_later_than_the_start),
		cmocka_unit_test(a_process_without_a_step_has_not_the_step_of_the_one_before),
		cmocka_unit_test(a_report_of_the_process_before_has_no_step_of_the_present_one),
		cmocka_unit_test(a_record_takes_the_last_steps_of_the_ranks_that_were_stopped),
		cmocka_unit_test(last_steps_end_a_streak_without_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
