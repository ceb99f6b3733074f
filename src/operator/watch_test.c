/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/script_test.h"

#include <stdio.h>
#include <string.h>

/* Tests which changes of pods and services step a job, and how soon. */

static void test_pods_wake_their_job_and_foreign_pods_the_job_of_their_name(void **state)
{
	struct bench *bench = *state;

	start(bench);
	turn(bench);
	assert_int_equal(brain.steps, 1);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("anything", "p1", 101, "u-1", ""));
	gathered(bench);
	assert_int_equal(brain.steps, 2);
	fake_event(watch_of(bench, "services"), HF_EVENT_ADDED,
		   pod_doc("ddp-worker-2", "p2", 102, "u-other", ""));
	turn(bench);
	assert_int_equal(brain.steps, 3);
	assert_int_equal(brain.services, 1);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("other-worker-2", "p3", 103, "u-other", ""));
	turn(bench);
	assert_int_equal(brain.steps, 3);
	fake_event(watch_of(bench, "services"), HF_EVENT_DELETED,
		   pod_doc("ddp-worker-2", "p2", 104, "u-other", ""));
	turn(bench);
	assert_int_equal(brain.steps, 4);
	assert_int_equal(brain.services, 0);
}

static void test_changes_of_pods_gather_for_a_big_job_and_not_for_a_small_one(void **state)
{
	struct bench *bench = *state;
	char name[32], uid[32];

	start(bench);
	turn(bench);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "ddp-worker-%d", i);
		snprintf(uid, sizeof(uid), "p-%d", i);
		fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
			   pod_doc(name, uid, 101 + i, "u-1", ""));
	}
	gathered(bench);
	assert_int_equal(brain.steps, 2);
	assert_int_equal(brain.pods, 300);
	for (int i = 0; i < 10; i++) {
		fake_event(watch_of(bench, "pods"), HF_EVENT_DELETED,
			   pod_doc("ddp-worker-0", "p-0", 500 + i, "u-1", ""));
		fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
			   pod_doc("ddp-worker-0", "p-0", 501 + i, "u-1", ""));
		turn_for(bench, 100 * HF_US);
	}
	assert_int_equal(brain.steps, 2);
	turn_for(bench, 500 * HF_US);
	assert_int_equal(brain.steps, 3);
	/* A change of the job itself is stepped at once. */
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
		   job_doc("ddp", "u-1", 600, ""));
	turn(bench);
	assert_int_equal(brain.steps, 4);
}

static void pod_becomes(struct bench *bench, int version, const char *status)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"ddp-worker-0\",\"namespace\":\"n\",\"uid\":\"p\","
		 "\"resourceVersion\":\"%d\",\"ownerReferences\":[{\"uid\":\"u-1\","
		 "\"controller\":true}]},\"status\":%s}",
		 version, status);
	fake_event(watch_of(bench, "pods"), HF_EVENT_MODIFIED,
		   hf_doc_from_text(text, strlen(text)));
	turn(bench);
}

static void test_a_pod_on_its_way_up_waits_for_others_and_one_that_ends_does_not(void **state)
{
	static const char *const calm[] = {
		"{\"phase\":\"Pending\"}",
		"{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"i\",\"state\":"
		"{\"terminated\":{\"exitCode\":0}}}]}",
		"{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":0,"
		"\"state\":{\"running\":{}}}]}",
	};
	static const char *const urgent[] = {
		"{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":1,"
		"\"state\":{\"running\":{}}}]}",
		"{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":1,"
		"\"state\":{\"terminated\":{\"exitCode\":1}}}]}",
		"{\"phase\":\"Failed\"}",
		"{\"phase\":\"Succeeded\"}",
	};
	struct bench *bench = *state;
	int version = 101, steps;

	start(bench);
	turn(bench);
	for (size_t i = 0; i < HF_ARRAY_LEN(calm); i++)
		pod_becomes(bench, version++, calm[i]);
	assert_int_equal(brain.steps, 1);
	gathered(bench);
	assert_int_equal(brain.steps, 2);
	for (size_t i = 0; i < HF_ARRAY_LEN(urgent); i++) {
		steps = brain.steps;
		pod_becomes(bench, version++, urgent[i]);
		assert_int_equal(brain.steps, steps + 1);
	}
}

static void test_a_change_that_no_step_can_see_steps_nothing(void **state)
{
	static const char *const same[] = {
		"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}",
		"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"},"
		"{\"type\":\"Initialized\",\"status\":\"True\"}]}",
		"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
		"\"lastProbeTime\":\"2024-01-01T00:00:00Z\"},{\"type\":\"PodReadyToStartContainers\","
		"\"status\":\"True\"}],\"podIP\":\"10.0.0.1\"}",
	};
	static const char *const other[] = {
		"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
		("{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"
		 "{\"type\":\"DisruptionTarget\",\"status\":\"True\"}]}"),
		"{\"phase\":\"Running\"}",
	};
	struct bench *bench = *state;
	int version = 101, steps;

	start(bench);
	pod_becomes(bench, version++, same[0]);
	gathered(bench);
	steps = brain.steps;
	for (size_t i = 1; i < HF_ARRAY_LEN(same); i++)
		pod_becomes(bench, version++, same[i]);
	gathered(bench);
	assert_int_equal(brain.steps, steps);
	for (size_t i = 0; i < HF_ARRAY_LEN(other); i++) {
		pod_becomes(bench, version++, other[i]);
		gathered(bench);
		assert_int_equal(brain.steps, ++steps);
	}
}

static void test_ranks_that_succeed_together_are_stepped_together(void **state)
{
	struct bench *bench = *state;
	int steps;

	start(bench);
	pod_becomes(bench, 101, "{\"phase\":\"Running\"}");
	gathered(bench);
	steps = brain.steps;
	pod_becomes(bench, 102, "{\"phase\":\"Succeeded\"}");
	assert_int_equal(brain.steps, steps + 1);
	for (int i = 0; i < 5; i++) {
		turn_for(bench, 7 * HF_MS);
		pod_becomes(bench, 103 + i, "{\"phase\":\"Succeeded\"}");
	}
	assert_int_equal(brain.steps, steps + 1);
	turn_for(bench, 20 * HF_MS);
	assert_int_equal(brain.steps, steps + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_pods_wake_their_job_and_foreign_pods_the_job_of_their_name),
		T(test_changes_of_pods_gather_for_a_big_job_and_not_for_a_small_one),
		T(test_a_pod_on_its_way_up_waits_for_others_and_one_that_ends_does_not),
		T(test_a_change_that_no_step_can_see_steps_nothing),
		T(test_ranks_that_succeed_together_are_stepped_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
