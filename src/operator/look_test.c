/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/look.h"

#include "operator/script_test.h"

#include <string.h>

/* Tests what a reader in the same process sees of the caches, and when it is told of changes. */

static void test_jobs_are_iterated_and_found_by_name(void **state)
{
	const struct hf_job_ref ddp = {&hf_framework_pytorch, "n", "ddp"},
				none = {&hf_framework_pytorch, "n", "none"},
				other = {&hf_framework_tensorflow, "n", "ddp"};
	struct hf_operator_iterator it = {0};
	struct bench *bench = *state;
	struct hf_operator_job job;

	start(bench);
	turn(bench);
	assert_true(hf_operator_next_job(bench->op, &it, &job));
	assert_string_equal(job.name, "ddp");
	assert_ptr_equal(job.framework, &hf_framework_pytorch);
	assert_false(hf_operator_next_job(bench->op, &it, &job));
	assert_true(hf_operator_find_job(bench->op, &ddp, &job));
	assert_string_equal(job.uid, "u-1");
	assert_false(hf_operator_find_job(bench->op, &none, &job));
	assert_false(hf_operator_find_job(bench->op, &other, &job));
}

static void test_the_pods_of_a_job_are_those_that_it_controls(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct bench *bench = *state;
	const struct hf_pod *pods;

	start(bench);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("ddp-worker-0", "p1", 101, "u-1", ""));
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("ddp-worker-1", "p2", 102, "u-other", ""));
	assert_int_equal(hf_operator_find_pods(bench->op, "u-1", arena, &pods), 1);
	assert_string_equal(pods[0].name, "ddp-worker-0");
	assert_string_equal(pods[0].uid, "p1");
	assert_int_equal(hf_operator_find_pods(bench->op, "u-none", arena, &pods), 0);
}

static void test_changes_of_a_job_and_of_its_pods_are_told_by_the_key(void **state)
{
	struct bench *bench = *state;
	int told;

	start(bench);
	assert_string_equal(bench->told, "pytorchjobs/n/ddp");
	told = bench->n_told;
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("anything", "p1", 101, "u-1", ""));
	assert_int_equal(bench->n_told, told + 1);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("foreign", "p2", 102, "u-other", ""));
	assert_int_equal(bench->n_told, told + 1);
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_DELETED,
		   job_doc("ddp", "u-1", 103, ""));
	assert_int_equal(bench->n_told, told + 2);
}

static void add_restart(void *arg, const struct hf_device_restart *restart)
{
	struct hf_strbuf *text = arg;
	char at[HF_TIME_TEXT_MAX];

	hf_time_format(restart->at, at);
	hf_strbuf_addf(text, "%s %s\n", restart->node, at);
}

static void test_restarts_by_devices_are_read_from_ledgers(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);
	struct hf_doc *jobs[] = {
		job_doc("a", "u-1", 7,
			",\"status\":{\"recovery\":{\"last\":{\"cause\":\"device\",\"node\":"
			"\"n1\",\"detectedAt\":\"2026-01-02T03:04:05.000000Z\"},\"history\":["
			"{\"cause\":\"application\",\"node\":\"n2\",\"detectedAt\":"
			"\"2026-01-02T03:04:00.000000Z\"},{\"cause\":\"device\",\"node\":\"n3\","
			"\"detectedAt\":\"2026-01-02T03:03:00.000000Z\"},{\"cause\":\"device\","
			"\"detectedAt\":\"2026-01-02T03:02:00.000000Z\"},{\"cause\":\"device\","
			"\"node\":\"n4\",\"detectedAt\":7}]}}"),
		job_doc("b", "u-2", 8, ""),
		/* A ledger of a wrong type is none. */
		job_doc("c", "u-3", 9, ",\"status\":{\"recovery\":[]}"),
	};

	start_with(bench, jobs, 3);
	turn(bench);
	hf_operator_each_device_restart(bench->op, add_restart, &text);
	assert_string_equal(text.data, "n1 2026-01-02T03:04:05Z\nn3 2026-01-02T03:03:00Z\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_jobs_are_iterated_and_found_by_name),
		T(test_the_pods_of_a_job_are_those_that_it_controls),
		T(test_changes_of_a_job_and_of_its_pods_are_told_by_the_key),
		T(test_restarts_by_devices_are_read_from_ledgers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
