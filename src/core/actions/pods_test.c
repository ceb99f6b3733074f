/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static void labels_and_stamps_are_set_on_every_pod(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_step(&b);
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_LABEL, "training.kubeflow.org/operator-name"),
		"testjob-controller");
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_LABEL, "training.kubeflow.org/job-name"),
		"demo");
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_LABEL, "training.kubeflow.org/replica-type"),
		"hand");
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_LABEL, "training.kubeflow.org/replica-index"),
		"1");
	assert_null(brain_edit(&b, "demo-hand-1", HF_EDIT_LABEL, "training.kubeflow.org/job-role"));
	assert_string_equal(
		brain_edit(&b, "demo-boss-0", HF_EDIT_LABEL, "training.kubeflow.org/job-role"),
		"master");
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_ANNOTATION, "holdfast.dev/attempt"), "0");
	brain_release(&b);
}

static void a_template_with_a_restart_policy_is_warned_of_once(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.replicas[1].pod.restart_policy = "Never";
	brain_step(&b);
	assert_true(brain_event(&b, "SetPodTemplateRestartPolicy")->warning);
	assert_int_equal(b.plan.events_len, 1);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	assert_null(brain_event(&b, "SetPodTemplateRestartPolicy"));
	brain_release(&b);
}

static void what_terminates_is_not_deleted_twice(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.replicas[1].replicas = HF_SOME_INT(1);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-1"));
	brain_perform_all(&b);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void a_create_that_was_lost_is_planned_again(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_step(&b);
	brain_write_status(&b);
	brain_perform(&b, &b.plan.stages[0].actions[0]);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 5);
	brain_release(&b);
}

static int no_pod(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		  struct hf_error *err)
{
	return hf_error_set(err, HF_E_INVALID, "replica %d lacks a port", rank->index);
}

static void a_pod_that_cannot_be_made_is_said_and_the_others_are_made(void **state)
{
	struct hf_framework kind = brain_kind;

	(void)state;
	kind.pod = no_pod;
	brain_init(&b, &kind, 1, 2);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_SERVICE), 3);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "lacks a port"));
	brain_release(&b);
}

static void the_delay_holds_every_create_back(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	for (int i = 0; i < 2; i++) {
		brain_exit(&b, "demo-hand-0", 1);
		brain_quiet(&b);
		brain_start_all(&b);
		brain_quiet(&b);
	}
	brain_terminate(&b, "demo-hand-1"); /* a client deletes a peer meanwhile */
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 1);
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "2 pod(s) are created in 10s"));
	b.now = b.plan.wake_at;
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 3);
	brain_release(&b);
}

static void pods_of_a_type_that_was_taken_out_go_on(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.view.replicas_len = 1;
	brain_quiet(&b);
	assert_int_equal(b.pods_len, 3);
	assert_int_equal(b.services_len, 3);
	assert_int_equal(brain_pod(&b, "demo-hand-1")->pod.deletion_time, HF_TIME_NONE);
	/* Put back, they are its ranks. */
	b.view.replicas_len = 2;
	brain_quiet(&b);
	assert_int_equal(b.created, 3);
	assert_int_equal(b.view.status.ledger.phase, HF_PHASE_RUNNING);
	brain_release(&b);
}

static void a_new_generation_leaves_no_pod_of_a_type_that_was_taken_out(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up(&b);
	b.view.replicas_len = 1;
	brain_exit(&b, "demo-boss-0", 1);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-boss-0"));
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_and_stamps_are_set_on_every_pod),
		cmocka_unit_test(a_template_with_a_restart_policy_is_warned_of_once),
		cmocka_unit_test(what_terminates_is_not_deleted_twice),
		cmocka_unit_test(a_create_that_was_lost_is_planned_again),
		cmocka_unit_test(a_pod_that_cannot_be_made_is_said_and_the_others_are_made),
		cmocka_unit_test(the_delay_holds_every_create_back),
		cmocka_unit_test(pods_of_a_type_that_was_taken_out_go_on),
		cmocka_unit_test(a_new_generation_leaves_no_pod_of_a_type_that_was_taken_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
