/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

#include <string.h>

/* Tests what counts as a hang and as a straggler.  The decisions that follow are in
 * tests/golden/failures. */

/* The state of one job.  Static because of its size; each test sets the state up anew. */
static struct brain b;

static void set_up(int deadline)
{
	brain_init(&b, &brain_kind, 0, 3);
	if (deadline > 0)
		b.view.run_policy.recovery.progress_deadline_seconds = HF_SOME_INT(deadline);
	brain_run_up(&b);
}

static void say(const char *name, enum hf_advance advance, hf_time at)
{
	struct hf_pod *pod = &brain_pod(&b, name)->pod;

	pod->advance = advance;
	pod->advanced_at = at;
	pod->told_at = b.now + 3600 * HF_SECOND;
}

static void all_stand_still(void)
{
	say("demo-hand-0", HF_ADVANCE_STALLED, b.now);
	say("demo-hand-1", HF_ADVANCE_STALLED, b.now);
	say("demo-hand-2", HF_ADVANCE_STALLED, b.now);
}

static void all_restart_once_when_the_deadline_is_over_and_begin_a_new_one(void **state)
{
	(void)state;
	set_up(100);
	all_stand_still();
	brain_after(&b, 99);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_int_equal(b.plan.wake_at, b.now + HF_SECOND);
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "progressDeadlineSeconds"));
	brain_after(&b, 1);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 3);
	assert_int_equal(b.plan.restart_scope, HF_SCOPE_JOB);
	/* The ranks stood still as soon as all of them ran. */
	assert_int_equal(b.plan.status.ledger.productive_seconds, 0);
	assert_int_equal(b.plan.status.ledger.downtime_seconds, 100);
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_after(&b, 60);
	brain_quiet(&b);
	brain_start_all(&b);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	/* After the restart no rank has reported a step yet, so the deadline does not run. */
	brain_after(&b, 1000);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_release(&b);
}

static void what_was_said_before_the_deadline_may_be_over(void **state)
{
	hf_time deadline;

	(void)state;
	set_up(100);
	all_stand_still();
	deadline = b.now + 100 * HF_SECOND;
	brain_pod(&b, "demo-hand-0")->pod.told_at = deadline - HF_SECOND;
	brain_after(&b, 300);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_true(b.plan.wake_at > b.now);
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "have reported the same once more"));
	/* The agent of this rank falls silent, so the rank's earlier report counts no more. */
	say("demo-hand-0", HF_ADVANCE_UNKNOWN, HF_TIME_NONE);
	brain_step(&b);
	assert_int_equal(b.plan.restart_scope, HF_SCOPE_JOB);
	say("demo-hand-0", HF_ADVANCE_STALLED, deadline - 100 * HF_SECOND);
	brain_pod(&b, "demo-hand-0")->pod.told_at = deadline;
	brain_step(&b);
	assert_int_equal(b.plan.restart_scope, HF_SCOPE_JOB);
	brain_release(&b);
}

static void an_end_explains_why_the_others_wait(void **state)
{
	(void)state;
	set_up(100);
	all_stand_still();
	brain_after(&b, 200);
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_int_equal(b.plan.restart_scope, HF_SCOPE_REPLICA);
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_false(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

static void on_a_lost_node_the_agents_last_word_is_of_the_past(void **state)
{
	(void)state;
	set_up(100);
	all_stand_still();
	brain_lose(&b, brain_pod(&b, "demo-hand-0")->node);
	brain_after(&b, 101);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 0);
	brain_release(&b);
}

static void a_caller_without_agents_repeats_the_stored_condition(void **state)
{
	(void)state;
	set_up(0);
	brain_pod(&b, "demo-hand-2")->pod.slow_permille = 1500;
	brain_step(&b);
	assert_non_null(brain_event(&b, "Straggler"));
	brain_perform_all(&b);
	brain_pod(&b, "demo-hand-2")->pod.slow_permille = 0;
	b.blind = true;
	brain_step(&b);
	assert_false(b.plan.status_changed);
	assert_true(brain_says(&b, HF_TOPIC_EVIDENCE, "works longer in each step"));
	b.blind = false;
	brain_step(&b);
	assert_string_equal(hf_status_condition(&b.plan.status, HF_COND_STRAGGLER)->status,
			    "False");
	brain_release(&b);
}

static void the_rank_that_the_condition_names_stays_while_it_is_slow(void **state)
{
	const struct hf_condition *told;

	(void)state;
	set_up(0);
	brain_pod(&b, "demo-hand-2")->pod.slow_permille = 1500;
	brain_quiet(&b);
	/* Another rank is slower in this report.  The condition keeps the rank that it names, or
	 * the two would take turns. */
	brain_pod(&b, "demo-hand-0")->pod.slow_permille = 1600;
	brain_step(&b);
	assert_null(brain_event(&b, "Straggler"));
	told = hf_status_condition(&b.plan.status, HF_COND_STRAGGLER);
	assert_true(hf_str_has_prefix(told->message, "hand-2 "));
	assert_non_null(strstr(told->message, "1 more are slow"));
	assert_true(brain_says(&b, HF_TOPIC_EVIDENCE, "1.50 times as long"));
	brain_release(&b);
}

static void a_finished_job_has_no_straggler(void **state)
{
	(void)state;
	set_up(0);
	brain_pod(&b, "demo-hand-2")->pod.slow_permille = 1500;
	brain_quiet(&b);
	for (int i = 0; i < 3; i++)
		brain_exit(&b, i == 0 ? "demo-hand-0" : i == 1 ? "demo-hand-1" : "demo-hand-2", 0);
	brain_quiet(&b);
	assert_string_equal(hf_status_condition(&b.plan.status, HF_COND_STRAGGLER)->status,
			    "False");
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_restart_once_when_the_deadline_is_over_and_begin_a_new_one),
		cmocka_unit_test(what_was_said_before_the_deadline_may_be_over),
		cmocka_unit_test(an_end_explains_why_the_others_wait),
		cmocka_unit_test(on_a_lost_node_the_agents_last_word_is_of_the_past),
		cmocka_unit_test(a_caller_without_agents_repeats_the_stored_condition),
		cmocka_unit_test(the_rank_that_the_condition_names_stays_while_it_is_slow),
		cmocka_unit_test(a_finished_job_has_no_straggler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
