/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

#include <string.h>

static struct brain b;

static void the_story_of_the_last_restart_can_be_told_later(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.backoff_limit = HF_SOME_INT(6);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 137);
	b.pods[1].containers[0].signal = 9;
	brain_quiet(&b);
	brain_after(&b, 12);
	brain_start_all(&b);
	brain_quiet(&b);
	brain_after(&b, 3600);
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_EVIDENCE, "hand-0 was killed by SIGKILL (128+9)"));
	assert_true(brain_says(&b, HF_TOPIC_CLASS,
			       "application: Holdfast did not send it; most "
			       "often the kernel's OOM killer did"));
	assert_true(brain_says(&b, HF_TOPIC_RULE, "restartPolicy OnFailure"));
	assert_true(brain_says(&b, HF_TOPIC_DECISION, "hand-0 is replaced"));
	assert_true(brain_says(&b, HF_TOPIC_BUDGET, "application budget: 1 of 6 used"));
	assert_true(brain_says(&b, HF_TOPIC_DONE, "every rank runs again, after 12s"));
	brain_release(&b);
}

static void the_summary_says_what_matters_most(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_step(&b);
	assert_string_equal(b.plan.summary, "Created for 0s");
	brain_run_up(&b);
	brain_after(&b, 90);
	brain_step(&b);
	assert_string_equal(b.plan.summary, "Running for 90s");
	brain_exit(&b, "demo-hand-1", 1);
	brain_quiet(&b);
	brain_after(&b, 5);
	brain_step(&b);
	assert_string_equal(b.plan.summary,
			    "Restarting for 5s: hand-1 exited with code 1 on node n1");
	b.view.run_policy.active_deadline_seconds = HF_SOME_INT(1);
	brain_step(&b);
	assert_string_equal(b.plan.summary, "Failed for 0s: Job demo has failed because it was "
					    "active longer than specified deadline");
	brain_release(&b);
}

/* The kubelet's text goes through the ledger, the condition, the event and the lines of why. */
static void a_program_that_never_started_is_told_with_its_reason(void **state)
{
	static const char *const told =
		"StartError: exec: \"trian.py\": executable file not found in $PATH";
	struct hf_container_seen *container;

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-1", 128);
	container = &brain_pod(&b, "demo-hand-1")->containers[0];
	container->terminated_reason = "StartError";
	container->terminated_message = "exec: \"trian.py\":\nexecutable file not found in $PATH";
	brain_step(&b);
	assert_string_equal(b.plan.status.ledger.records[0].reason, "StartError");
	assert_string_equal(b.plan.status.ledger.records[0].message, told + strlen("StartError: "));
	assert_true(brain_says(&b, HF_TOPIC_EVIDENCE, "hand-1 never started on node n1: "));
	assert_true(brain_says(&b, HF_TOPIC_EVIDENCE, told));
	assert_true(brain_says(&b, HF_TOPIC_CLASS,
			       "application: the container runtime could not start the program"));
	assert_non_null(strstr(b.plan.summary, told));
	brain_release(&b);
}

/* The kubelet writes code 137 for a container that it cannot find, without any signal. */
static void a_code_that_the_kubelet_made_up_is_no_signal(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-1", 137);
	brain_pod(&b, "demo-hand-1")->containers[0].terminated_reason = "ContainerStatusUnknown";
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_EVIDENCE,
			       "hand-1 ended with an unknown exit code on node n1: "
			       "ContainerStatusUnknown"));
	assert_true(brain_says(&b, HF_TOPIC_CLASS,
			       "application: the kubelet found no trace of the container"));
	brain_release(&b);
}

/* The ledger has room for one text of a node. */
static void only_the_newest_record_keeps_the_nodes_text(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.view.status.ledger.records_len = 1;
	b.view.status.ledger.records[0] = (struct hf_record){
		.incident = 1,
		.cause = HF_CLASS_APPLICATION,
		.reason = "StartError",
		.message = "exec: no such file",
		.detected_at = b.now,
		.decided_at = b.now,
		.running_at = b.now,
	};
	brain_after(&b, 3600);
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.records_len, 2);
	assert_null(b.plan.status.ledger.records[1].message);
	assert_string_equal(b.plan.status.ledger.records[1].reason, "StartError");
	brain_release(&b);
}

static void lines_are_bounded(void **state)
{
	struct hf_notes notes = {0};
	struct hf_brain brain = {.notes = &notes};

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain.arena = b.pass;
	notes.reasons = HF_ARENA_ARRAY(b.pass, struct hf_reason, HF_REASONS_MAX);
	for (int i = 0; i < HF_REASONS_MAX + 10; i++)
		hf_say(&brain, b.now, HF_TOPIC_NEXT, "line %d", i);
	assert_int_equal(notes.reasons_len, HF_REASONS_MAX);
	assert_string_equal(notes.reasons[0].text, "line 0");
	brain_release(&b);
}

/* 511 bytes of a text fit; the 170th character of three bytes would be cut in its middle. */
static void a_long_line_ends_with_a_whole_character(void **state)
{
	struct hf_notes notes = {0};
	struct hf_brain brain = {.notes = &notes};
	char text[3 * 300 + 1] = "";

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain.arena = b.pass;
	notes.reasons = HF_ARENA_ARRAY(b.pass, struct hf_reason, HF_REASONS_MAX);
	for (int i = 0; i < 300; i++)
		memcpy(text + 3 * i, "\u20ac", 4);
	for (int shift = 0; shift < 3; shift++) {
		const char *said;

		hf_say(&brain, b.now, HF_TOPIC_NEXT, "%.*s%s", shift, "xx", text);
		said = notes.reasons[shift].text;
		assert_true(hf_utf8_valid(said, strlen(said)));
		assert_true(strlen(said) > 500);
		assert_string_equal(said + strlen(said) - 3, "...");
	}
	brain_release(&b);
}

static void the_earliest_wake_up_wins(void **state)
{
	struct hf_notes notes = {.wake_at = HF_TIME_NEVER};
	struct hf_brain brain = {.notes = &notes, .now = 10};

	(void)state;
	hf_wake(&brain, 100);
	hf_wake(&brain, 50);
	hf_wake(&brain, 70);
	assert_int_equal(notes.wake_at, 50);
}

static void spans_and_times_are_for_people(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	assert_string_equal(hf_time_text(b.pass, b.now), "2026-01-01T00:00:00Z");
	assert_string_equal(hf_time_text(b.pass, HF_TIME_NONE), "");
	assert_string_equal(hf_span_text(b.pass, 90 * HF_SECOND), "90s");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_story_of_the_last_restart_can_be_told_later),
		cmocka_unit_test(the_summary_says_what_matters_most),
		cmocka_unit_test(a_program_that_never_started_is_told_with_its_reason),
		cmocka_unit_test(a_code_that_the_kubelet_made_up_is_no_signal),
		cmocka_unit_test(only_the_newest_record_keeps_the_nodes_text),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(a_long_line_ends_with_a_whole_character),
		cmocka_unit_test(the_earliest_wake_up_wins),
		cmocka_unit_test(spans_and_times_are_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
