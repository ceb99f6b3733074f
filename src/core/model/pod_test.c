/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/framework.h"
#include "core/model/model_internal.h"
#include "harness/test.h"

static struct hf_container_seen ended(const char *name, enum hf_container_again again, int code)
{
	return (struct hf_container_seen){
		.name = name, .again = again, .phase = HF_CONTAINER_TERMINATED, .exit_code = code};
}

static struct hf_container_seen running(const char *name)
{
	return (struct hf_container_seen){
		.name = name, .again = HF_AGAIN_NEVER, .phase = HF_CONTAINER_RUNNING};
}

static void a_container_is_over_when_the_kubelet_does_not_start_it_again(void **state)
{
	struct hf_container_seen never = ended("c", HF_AGAIN_NEVER, 1);
	struct hf_container_seen success = ended("c", HF_AGAIN_ON_FAILURE, 0);
	struct hf_container_seen failure = ended("c", HF_AGAIN_ON_FAILURE, 1);
	struct hf_container_seen always = ended("c", HF_AGAIN_ALWAYS, 0);
	struct hf_container_seen unknown = ended("c", HF_AGAIN_UNKNOWN, 0);
	struct hf_container_seen runs = running("c");

	(void)state;
	assert_true(hf_container_is_over(&never));
	assert_true(hf_container_is_over(&success));
	assert_false(hf_container_is_over(&failure));
	assert_false(hf_container_is_over(&always));
	assert_false(hf_container_is_over(&unknown));
	assert_false(hf_container_is_over(&runs));
}

static void another_main_container_or_a_native_sidecar_keeps_a_pod(void **state)
{
	struct hf_container_seen containers[] = {ended("own", HF_AGAIN_NEVER, 0), running("proxy")};
	struct hf_pod pod = {.containers = containers, .containers_len = 2};

	(void)state;
	assert_ptr_equal(hf_pod_keeper(&pod, &containers[0]), &containers[1]);
	assert_true(hf_pod_goes_on(&pod, &containers[0]));
	/* A native sidecar does not keep the pod alive.  But the kubelet ends it last, so the pod
	 * goes on while it runs. */
	containers[1].init = true;
	assert_null(hf_pod_keeper(&pod, &containers[0]));
	assert_true(hf_pod_goes_on(&pod, &containers[0]));
	containers[1].phase = HF_CONTAINER_TERMINATED;
	assert_false(hf_pod_goes_on(&pod, &containers[0]));
}

static void a_pod_has_begun_with_the_first_start_of_a_main_container(void **state)
{
	struct hf_container_seen containers[] = {running("init"),
						 {.name = "own", .phase = HF_CONTAINER_WAITING}};
	struct hf_pod pod = {.containers = containers, .containers_len = 2};

	(void)state;
	containers[0].init = true;
	assert_false(hf_pod_has_begun(&pod));
	/* The container ran before and waits to be started again, so the pod has begun. */
	containers[1].restart_count = 1;
	assert_true(hf_pod_has_begun(&pod));
	containers[1].restart_count = 0;
	containers[1].last_exit_code = HF_SOME_INT(1);
	assert_true(hf_pod_has_begun(&pod));
}

static void a_phase_that_a_controller_set_is_no_report_of_the_kubelet(void **state)
{
	struct hf_container_seen containers[] = {running("own"), ended("init", HF_AGAIN_NEVER, 0)};
	struct hf_pod pod = {.phase = HF_POD_FAILED, .containers = containers, .containers_len = 2};

	(void)state;
	assert_false(hf_pod_is_reported(&pod, &containers[0]));
	pod.reason = "Evicted";
	assert_true(hf_pod_is_reported(&pod, &containers[0]));
	pod.reason = NULL;
	containers[0] = ended("own", HF_AGAIN_NEVER, 1);
	assert_true(hf_pod_is_reported(&pod, &containers[0]));
	/* While another container runs on, the termination of the own container is the kubelet's
	 * report. */
	pod.phase = HF_POD_RUNNING;
	assert_true(hf_pod_is_reported(&pod, &containers[0]));
	assert_false(hf_pod_is_reported(&pod, NULL));
}

static void a_lost_container_ended_as_its_last_state_says(void **state)
{
	struct hf_container_seen container = ended("own", HF_AGAIN_NEVER, 137);

	(void)state;
	container.terminated_reason = "ContainerStatusUnknown";
	assert_int_equal(hf_container_last_termination(&container).exit_code.value, 137);
	container.last_exit_code = HF_SOME_INT(3);
	container.last_reason = "Error";
	assert_int_equal(hf_container_last_termination(&container).exit_code.value, 3);
	assert_string_equal(hf_container_last_termination(&container).reason, "Error");
}

static void a_pod_of_an_earlier_job_of_the_name_is_inherited(void **state)
{
	struct hf_framework kind = {.kind = "TestJob"};
	struct hf_job_view job = {.framework = &kind, .creation_time = 100 * HF_SECOND};
	struct hf_pod pod = {.maker = "TestJob",
			     .creation_time = 50 * HF_SECOND,
			     .deletion_time = 90 * HF_SECOND};

	(void)state;
	assert_true(hf_pod_is_inherited(&job, &pod));
	pod.owned = true;
	assert_false(hf_pod_is_inherited(&job, &pod));
	pod.owned = false;
	pod.creation_time = 101 * HF_SECOND;
	assert_false(hf_pod_is_inherited(&job, &pod));
	pod.creation_time = 50 * HF_SECOND;
	pod.deletion_time = HF_TIME_NONE;
	assert_false(hf_pod_is_inherited(&job, &pod));
	pod.deletion_time = 90 * HF_SECOND;
	pod.maker = "OtherJob";
	assert_false(hf_pod_is_inherited(&job, &pod));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_is_over_when_the_kubelet_does_not_start_it_again),
		cmocka_unit_test(another_main_container_or_a_native_sidecar_keeps_a_pod),
		cmocka_unit_test(a_pod_has_begun_with_the_first_start_of_a_main_container),
		cmocka_unit_test(a_phase_that_a_controller_set_is_no_report_of_the_kubelet),
		cmocka_unit_test(a_lost_container_ended_as_its_last_state_says),
		cmocka_unit_test(a_pod_of_an_earlier_job_of_the_name_is_inherited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
