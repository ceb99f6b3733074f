/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/ranks.h"

#include "framework/framework.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static const struct hf_page_job job = {
	.framework = &hf_framework_pytorch, .ns = "a", .name = "ddp", .uid = "u"};

static void fill_pods(struct hf_pod *pods, char names[][32], size_t len)
{
	for (size_t i = 0; i < len; i++) {
		snprintf(names[i], 32, "ddp-worker-%zu", i);
		pods[i] = (struct hf_pod){.name = names[i],
					  .uid = names[i],
					  .phase = HF_POD_RUNNING,
					  .deletion_time = HF_TIME_NONE};
	}
}

static void report(struct hf_page_ranks *ranks, const char *uid, int64_t step, hf_time at,
		   int64_t own)
{
	const struct hf_page_rank_report args = {
		.uid = uid, .step = step, .total = 100, .own_us = own, .at = at};

	hf_page_ranks_report(ranks, &args);
}

static void the_time_of_a_step_is_that_between_two_reports(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	char names[1][32];
	struct hf_pod pods[1];
	struct hf_page_progress progress;

	fill_pods(pods, names, 1);
	report(ranks, names[0], 10, 100 * HF_SECOND, 0);
	report(ranks, names[0], 14, 102 * HF_SECOND, 0);
	progress = hf_page_ranks_progress(ranks, pods, 1);
	assert_int_equal(progress.step, 14);
	assert_int_equal(progress.total, 100);
	assert_true(progress.steps_per_second > 1.99 && progress.steps_per_second < 2.01);
	/* The process began again from its checkpoint: no step took a negative time. */
	report(ranks, names[0], 3, 110 * HF_SECOND, 0);
	progress = hf_page_ranks_progress(ranks, pods, 1);
	assert_int_equal(progress.step, 3);
	assert_true(progress.steps_per_second > 1.99);
	hf_page_ranks_destroy(ranks);
}

static void the_slowest_rank_gives_the_speed_of_the_job(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	char names[2][32];
	struct hf_pod pods[2];

	fill_pods(pods, names, 2);
	for (int64_t i = 1; i <= 2; i++) {
		report(ranks, names[0], i, i * HF_SECOND, 0);
		report(ranks, names[1], i, 4 * i * HF_SECOND, 0);
	}
	assert_true(hf_page_ranks_progress(ranks, pods, 2).steps_per_second < 0.26);
	hf_page_ranks_destroy(ranks);
}

static void stragglers_come_first_and_are_counted(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	const struct hf_page_query query = {.limit = 2, .sort = HF_PAGE_SORT_STRAGGLER};
	const struct hf_json *items;
	char names[4][32];
	struct hf_pod pods[4];
	HF_AUTO_JSON json = NULL;

	fill_pods(pods, names, 4);
	for (size_t i = 0; i < 4; i++)
		report(ranks, names[i], 1, HF_SECOND, i == 2 ? 30000 : 20000);
	json = hf_page_ranks_json(ranks, &job, pods, 4, &query);
	assert_int_equal(hf_json_i64(hf_json_get(json, "total"), 0), 4);
	assert_int_equal(hf_json_i64(hf_json_get(json, "ranksBehind"), -1), 1);
	assert_string_equal(hf_json_path_str(json, "continue", NULL), "2");
	items = hf_json_get(json, "items");
	assert_int_equal(hf_json_len(items), 2);
	assert_string_equal(hf_json_path_str(hf_json_item(items, 0), "name", NULL), "worker-2");
	assert_true(hf_json_num(hf_json_get(hf_json_item(items, 0), "score"), 0) > 1.49);
	assert_string_equal(hf_json_path_str(hf_json_item(items, 1), "name", NULL), "worker-0");
	hf_page_ranks_destroy(ranks);
}

static void a_rank_whose_container_ended_waits(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	const struct hf_page_query query = {.limit = 2, .sort = HF_PAGE_SORT_RANK};
	struct hf_container_seen containers[2] = {
		{.name = "pytorch", .phase = HF_CONTAINER_RUNNING},
		{.name = "pytorch", .phase = HF_CONTAINER_TERMINATED}};
	const struct hf_json *items;
	char names[2][32];
	struct hf_pod pods[2];
	HF_AUTO_JSON json = NULL;

	fill_pods(pods, names, 2);
	for (size_t i = 0; i < 2; i++) {
		pods[i].phase = HF_POD_RUNNING;
		pods[i].containers = &containers[i];
		pods[i].containers_len = 1;
	}
	json = hf_page_ranks_json(ranks, &job, pods, 2, &query);
	items = hf_json_get(json, "items");
	assert_string_equal(hf_json_path_str(hf_json_item(items, 0), "phase", NULL), "Running");
	assert_string_equal(hf_json_path_str(hf_json_item(items, 1), "phase", NULL), "Waiting");
	hf_page_ranks_destroy(ranks);
}

static void ranks_are_sorted_by_their_number(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	const struct hf_page_query query = {.limit = 50, .sort = HF_PAGE_SORT_RANK};
	char names[12][32];
	struct hf_pod pods[12];
	const struct hf_json *items;
	HF_AUTO_JSON json = NULL;

	fill_pods(pods, names, 12);
	json = hf_page_ranks_json(ranks, &job, pods, 12, &query);
	items = hf_json_get(json, "items");
	assert_string_equal(hf_json_path_str(hf_json_item(items, 2), "name", NULL), "worker-2");
	assert_string_equal(hf_json_path_str(hf_json_item(items, 10), "name", NULL), "worker-10");
	assert_int_equal(hf_json_type(hf_json_get(hf_json_item(items, 0), "step")), HF_JSON_NULL);
	assert_int_equal(hf_json_type(hf_json_get(json, "continue")), HF_JSON_NULL);
	hf_page_ranks_destroy(ranks);
}

static void a_spark_line_has_the_last_steps(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	const struct hf_page_query query = {.limit = 1};
	char names[1][32];
	struct hf_pod pods[1];
	const struct hf_json *spark;
	HF_AUTO_JSON json = NULL;
	hf_time at = 0;

	fill_pods(pods, names, 1);
	for (int64_t i = 1; i <= 40; i++)
		report(ranks, names[0], i, at += i * HF_SECOND, 0);
	json = hf_page_ranks_json(ranks, &job, pods, 1, &query);
	spark = hf_json_get(hf_json_item(hf_json_get(json, "items"), 0), "spark");
	assert_int_equal(hf_json_len(spark), HF_PAGE_SPARK_MAX);
	assert_true(hf_json_num(hf_json_item(spark, 0), 0) == 9);
	assert_true(hf_json_num(hf_json_item(spark, HF_PAGE_SPARK_MAX - 1), 0) == 40);
	hf_page_ranks_destroy(ranks);
}

static void a_spark_line_is_exact_to_a_microsecond(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	const struct hf_page_query query = {.limit = 1};
	char names[1][32];
	struct hf_pod pods[1];
	const struct hf_json *spark;
	HF_AUTO_JSON json = NULL;

	fill_pods(pods, names, 1);
	report(ranks, names[0], 1, HF_SECOND, 0);
	report(ranks, names[0], 2, HF_SECOND + 123456 * HF_US, 0);
	json = hf_page_ranks_json(ranks, &job, pods, 1, &query);
	spark = hf_json_get(hf_json_item(hf_json_get(json, "items"), 0), "spark");
	assert_true(hf_json_num(hf_json_item(spark, 0), 0) == 0.123456);
	hf_page_ranks_destroy(ranks);
}

static void pods_that_are_gone_give_way_when_the_table_is_full(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	char names[2][32];
	struct hf_pod pods[2];

	fill_pods(pods, names, 2);
	for (size_t i = 1; i < HF_PAGE_RANKS_MAX; i++) {
		char uid[32];

		snprintf(uid, sizeof(uid), "gone-%zu", i);
		report(ranks, uid, 1, HF_SECOND, 0);
	}
	report(ranks, names[0], 7, HF_PAGE_RANK_SILENT, 0);
	report(ranks, names[1], 8, HF_PAGE_RANK_SILENT, 0);
	assert_int_equal(hf_page_ranks_progress(ranks, &pods[1], 1).step, 0);
	report(ranks, names[0], 9, HF_PAGE_RANK_SILENT + HF_MINUTE, 0);
	report(ranks, names[1], 10, HF_PAGE_RANK_SILENT + HF_MINUTE, 0);
	assert_int_equal(hf_page_ranks_progress(ranks, &pods[0], 1).step, 9);
	assert_int_equal(hf_page_ranks_progress(ranks, &pods[1], 1).step, 10);
	hf_page_ranks_destroy(ranks);
}

static void a_report_without_a_pod_or_step_is_harmless(void **state)
{
	struct hf_page_ranks *ranks = hf_page_ranks_create();
	char names[1][32];
	struct hf_pod pods[1];

	fill_pods(pods, names, 1);
	report(ranks, NULL, 1, HF_SECOND, 1);
	report(ranks, names[0], 0, HF_SECOND, 1);
	report(ranks, names[0], INT64_MAX, HF_TIME_NONE, INT64_MAX);
	report(ranks, names[0], 1, HF_TIME_NONE, INT64_MAX);
	assert_int_equal(hf_page_ranks_progress(ranks, pods, 1).step, 1);
	hf_page_ranks_destroy(ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_time_of_a_step_is_that_between_two_reports),
		cmocka_unit_test(the_slowest_rank_gives_the_speed_of_the_job),
		cmocka_unit_test(stragglers_come_first_and_are_counted),
		cmocka_unit_test(a_rank_whose_container_ended_waits),
		cmocka_unit_test(ranks_are_sorted_by_their_number),
		cmocka_unit_test(a_spark_line_has_the_last_steps),
		cmocka_unit_test(a_spark_line_is_exact_to_a_microsecond),
		cmocka_unit_test(pods_that_are_gone_give_way_when_the_table_is_full),
		cmocka_unit_test(a_report_without_a_pod_or_step_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
