/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;

static void up(void)
{
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_after(&b, 6);
}

/* Let the main container of a pod wait for the given reason. */
static struct hf_container_seen *waits(const char *name, const char *reason, const char *message)
{
	struct hf_container_seen *container = &brain_pod(&b, name)->containers[0];

	container->phase = HF_CONTAINER_WAITING;
	container->waiting_reason = reason;
	container->waiting_message = message;
	return container;
}

static void pends(const char *name)
{
	struct brain_pod *pod = brain_pod(&b, name);

	pod->pod.phase = HF_POD_PENDING;
	pod->node[0] = '\0';
	pod->condition = (struct hf_pod_condition){.type = "PodScheduled",
						   .status = "False",
						   .reason = "Unschedulable",
						   .message = "0/1 nodes: Insufficient cpu"};
	pod->pod.conditions_len = 1;
}

static void pods_without_a_node_are_told_with_the_scheduler_s_words(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_step(&b);
	brain_perform_all(&b);
	pends("demo-hand-0");
	pends("demo-hand-1");
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED,
			       "no node takes hand-0 and 1 more: 0/1 nodes: Insufficient cpu"));
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "as soon as a node has room"));
	assert_string_equal(b.plan.summary, "Created for 0s: no node takes hand-0 and 1 more: 0/1 "
					    "nodes: Insufficient cpu");
	brain_release(&b);
}

static void the_image_of_the_operator_s_init_container_is_the_administrator_s_concern(void **state)
{
	struct hf_framework kind = brain_kind;
	struct hf_container_seen *container;

	(void)state;
	kind.init_container = "wait";
	brain_init(&b, &kind, 1, 2);
	brain_run_up(&b);
	container = waits("demo-hand-0", "ImagePullBackOff", "no route to registry");
	container->name = "wait";
	container->init = true;
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "--pytorch-init-container-image"));
	container->name = "fetch";
	brain_step(&b);
	assert_false(brain_says(&b, HF_TOPIC_NEXT, "--pytorch-init-container-image"));
	brain_release(&b);
}

static void a_container_that_cannot_start_names_itself_and_why(void **state)
{
	(void)state;
	up();
	waits("demo-boss-0", "CreateContainerConfigError", "secret \"s\" not found");
	brain_step(&b);
	assert_true(brain_says(
		&b, HF_TOPIC_BLOCKED,
		"boss-0 cannot start container 'main': CreateContainerConfigError "
		"(a ConfigMap, a Secret or a key that the container names is "
		"missing, its user is root, or the node does not support a field of it): secret \"s\" not found"));
	assert_true(brain_says(&b, HF_TOPIC_NEXT,
			       "the kubelet tries again; the author of the job must provide"));
	/* A text that comes from a node is shown without control characters and is cut when it is
	 * long. */
	waits("demo-boss-0", "ErrImagePull", "no\x1b[2J\nsuch image");
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED,
			       "ErrImagePull (the image could not be pulled): no [2J such image"));
	waits("demo-boss-0", "SomethingNew", "x");
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED,
			       "boss-0 cannot start container 'main': SomethingNew: x"));
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "provide what the container asks for"));
	brain_release(&b);
}

static void ranks_with_different_containers_that_cannot_start_have_a_line_each(void **state)
{
	(void)state;
	up();
	waits("demo-boss-0", "ErrImagePull", "no image train");
	waits("demo-hand-0", "ErrImagePull", "no image lookup")->name = "init-main";
	waits("demo-hand-1", "ErrImagePull", "no image lookup")->name = "init-main";
	brain_step(&b);
	assert_true(
		brain_says(&b, HF_TOPIC_BLOCKED,
			   "boss-0 cannot start container 'main': ErrImagePull (the image could "
			   "not be pulled): no image train"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED,
			       "hand-0 and 1 more cannot start container 'init-main': ErrImagePull "
			       "(the image could not be pulled): no image lookup"));
	brain_release(&b);
}

static void a_crash_loop_is_told_with_how_the_last_run_ended(void **state)
{
	struct hf_container_seen *container;

	(void)state;
	up();
	brain_crash_in_place(&b, "demo-hand-1");
	brain_quiet(&b);
	assert_true(brain_says(&b, HF_TOPIC_DONE, "every rank runs again"));
	container = waits("demo-hand-1", "CrashLoopBackOff", "back-off 10s");
	container->last_exit_code = HF_SOME_INT(128);
	container->last_reason = "StartError";
	container->last_message = "no such file";
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED,
			       "container 'main' of hand-1 waits in CrashLoopBackOff because its "
			       "program never started (StartError): no such file"));
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "after a longer wait each time: back-off 10s"));
	container->last_exit_code = HF_SOME_INT(139);
	container->last_reason = "Error";
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED,
			       "waits in CrashLoopBackOff after SIGSEGV ended it with code 139 "
			       "(Error): no such file"));
	/* The rank waits now, so the line about the last restart says "ran", not "runs". */
	assert_false(brain_says(&b, HF_TOPIC_DONE, "every rank runs again"));
	assert_true(brain_says(&b, HF_TOPIC_DONE, "every rank ran again"));
	brain_release(&b);
}

static const struct hf_condition *not_started(void)
{
	return hf_status_condition(&b.plan.status, HF_COND_NOT_STARTED);
}

static void a_container_that_cannot_start_is_shown_in_a_condition(void **state)
{
	struct hf_container_seen *container;

	(void)state;
	up();
	assert_null(not_started());
	waits("demo-hand-0", "ErrImagePull", "manifest unknown");
	container = waits("demo-hand-1", "CrashLoopBackOff", "back-off 10s");
	container->last_exit_code = HF_SOME_INT(128);
	container->last_reason = "StartError";
	brain_step(&b);
	assert_non_null(brain_event(&b, "ContainerNotStarted"));
	brain_perform_all(&b);
	assert_string_equal(not_started()->status, "True");
	assert_string_equal(not_started()->reason, "StartFailed");
	assert_string_equal(not_started()->message,
			    "container main of hand-0 and 1 more cannot start: ErrImagePull (the "
			    "image could not be pulled): manifest unknown");
	/* ImagePullBackOff between two pulls sends no event and keeps the condition's text. */
	waits("demo-hand-0", "ImagePullBackOff", "Back-off pulling image");
	brain_step(&b);
	assert_null(brain_event(&b, "ContainerNotStarted"));
	assert_non_null(strstr(not_started()->message, "manifest unknown"));
	brain_start(&b, "demo-hand-0");
	brain_step(&b);
	assert_non_null(strstr(not_started()->message, "main of hand-1 cannot start: StartError"));
	brain_perform_all(&b);
	brain_start(&b, "demo-hand-1");
	brain_step(&b);
	assert_string_equal(not_started()->status, "False");
	brain_release(&b);
}

static void a_program_that_crashes_has_started(void **state)
{
	struct hf_container_seen *container;

	(void)state;
	up();
	container = waits("demo-hand-1", "CrashLoopBackOff", "back-off 10s");
	container->last_exit_code = HF_SOME_INT(1);
	container->last_reason = "Error";
	brain_step(&b);
	assert_null(not_started());
	brain_release(&b);
}

static void a_failing_readiness_check_is_told(void **state)
{
	(void)state;
	up();
	brain_pod(&b, "demo-hand-0")->condition =
		(struct hf_pod_condition){.type = "Ready",
					  .status = "False",
					  .reason = "ContainersNotReady",
					  .message = "containers with unready status: [main]"};
	brain_pod(&b, "demo-hand-0")->pod.conditions_len = 1;
	brain_step(&b);
	assert_string_equal(b.plan.summary, "Running for 6s: hand-0 runs but is not ready: "
					    "containers with unready status: [main]");
	/* If the node is not heard of, the node is the trouble, and the pod's readiness is not
	 * reported. */
	brain_lose(&b, brain_pod(&b, "demo-hand-0")->node);
	brain_step(&b);
	assert_false(brain_says(&b, HF_TOPIC_BLOCKED, "not ready"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "Unknown"));
	brain_release(&b);
}

static void pods_on_their_way_are_no_trouble(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_step(&b);
	brain_perform_all(&b);
	waits("demo-hand-0", "ContainerCreating", NULL);
	waits("demo-hand-1", "PodInitializing", NULL);
	brain_step(&b);
	assert_false(brain_says(&b, HF_TOPIC_BLOCKED, ""));
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "waiting for boss-0 and 2 more to start"));
	/* A container that waits as ContainerCreating with a message is reported as trouble. */
	waits("demo-hand-0", "ContainerCreating", "configmap \"c\" not found");
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "configmap \"c\" not found"));
	brain_release(&b);
}

static void a_job_that_runs_well_has_nothing_to_say(void **state)
{
	(void)state;
	up();
	brain_step(&b);
	assert_int_equal(b.plan.reasons_len, 0);
	brain_release(&b);
}

static void a_job_of_another_controller_names_the_controller_that_must_act(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.managed_by = "kueue.x-k8s.io/multikueue";
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "managed by 'kueue.x-k8s.io/multikueue'"));
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "Holdfast does nothing for the job"));
	brain_release(&b);
}

static void a_name_too_long_for_services_is_told_and_not_tried(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.name = "a2345678901234567890123456789012345678901234567890123456789";
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "no service can be made for boss-0"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "has 66 characters, at most 63"));
	assert_int_equal(b.plan.stages_len, 0);
	assert_non_null(brain_event(&b, "FailedCreateService"));
	brain_write_status(&b);
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "has 66 characters, at most 63"));
	assert_null(brain_event(&b, "FailedCreateService"));
	brain_release(&b);
}

static void a_suspended_job_says_so_once(void **state)
{
	(void)state;
	up();
	b.view.run_policy.suspend = (struct hf_opt_bool){true, true};
	brain_quiet(&b);
	assert_string_equal(b.plan.summary, "Suspended for 0s: the job waits to be resumed");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_without_a_node_are_told_with_the_scheduler_s_words),
		cmocka_unit_test(a_container_that_cannot_start_names_itself_and_why),
		cmocka_unit_test(
			the_image_of_the_operator_s_init_container_is_the_administrator_s_concern),
		cmocka_unit_test(
			ranks_with_different_containers_that_cannot_start_have_a_line_each),
		cmocka_unit_test(a_crash_loop_is_told_with_how_the_last_run_ended),
		cmocka_unit_test(a_container_that_cannot_start_is_shown_in_a_condition),
		cmocka_unit_test(a_program_that_crashes_has_started),
		cmocka_unit_test(a_failing_readiness_check_is_told),
		cmocka_unit_test(pods_on_their_way_are_no_trouble),
		cmocka_unit_test(a_job_that_runs_well_has_nothing_to_say),
		cmocka_unit_test(a_job_of_another_controller_names_the_controller_that_must_act),
		cmocka_unit_test(a_name_too_long_for_services_is_told_and_not_tried),
		cmocka_unit_test(a_suspended_job_says_so_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
