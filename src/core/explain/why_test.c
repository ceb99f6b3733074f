/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

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
			       "application: Holdfast did not send the signal; most often the "
			       "kernel's OOM killer did"));
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

/* The kubelet's text reaches the ledger, the condition, the event and the lines of `holdfast
 * why`. */
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
			       "infrastructure: the kubelet found no trace of the container"));
	brain_release(&b);
}

/* Only the newest record keeps a node's text, because the ledger has room for one. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_story_of_the_last_restart_can_be_told_later),
		cmocka_unit_test(the_summary_says_what_matters_most),
		cmocka_unit_test(a_program_that_never_started_is_told_with_its_reason),
		cmocka_unit_test(a_code_that_the_kubelet_made_up_is_no_signal),
		cmocka_unit_test(only_the_newest_record_keeps_the_nodes_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
