/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/recovery.h"

#include "base/mem.h"
#include "harness/page_tables.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

/* page_source_status has a restart at 00:02 of this day. */
#define MIDNIGHT (1767225600 * HF_SECOND)
#define NOW (MIDNIGHT + 30 * HF_MINUTE)

struct bench {
	struct page_tables tables;
	struct hf_page_recovery *recovery;
};

static void keep_restart(void *arg, const struct hf_page_row *row,
			 const struct hf_page_restart *restart)
{
	hf_page_recovery_keep(((struct bench *)arg)->recovery, row, restart);
}

static int open_bench(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	const struct hf_page_jobs_options options = {.dropped = keep_restart, .arg = bench};

	page_tables_open(&bench->tables, hf_loop_create_virtual(NOW), &options);
	bench->recovery = hf_page_recovery_create(MIDNIGHT);
	*state = bench;
	return 0;
}

static int close_bench(void **state)
{
	struct bench *bench = *state;

	page_tables_close(&bench->tables);
	hf_page_recovery_destroy(bench->recovery);
	hf_loop_destroy(bench->tables.loop);
	free(bench);
	return 0;
}

static void put(struct bench *bench, const char *ns, const char *name, const char *state)
{
	hf_page_jobs_touch(bench->tables.jobs, page_source_put(bench->tables.source, ns, name,
							       page_source_status(state, 1)));
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + HF_PAGE_SETTLE);
}

static struct hf_json *report(struct bench *bench, bool sees_all)
{
	const struct hf_page_recovery_args args = {.jobs = bench->tables.jobs,
						   .session = bench->tables.session,
						   .now = NOW,
						   .window = HF_HOUR,
						   .bucket = HF_MINUTE,
						   .sees_all = sees_all,
						   .sees_nodes = sees_all};

	return hf_page_recovery_json(bench->recovery, &args);
}

static int64_t count_of(const struct hf_json *json)
{
	return hf_json_i64(hf_json_path(json, "totals", "restarts", "application", NULL), -1);
}

static void restarts_are_counted_in_their_bucket(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = NULL;
	const struct hf_json *list;

	put(bench, "a", "one", "Running");
	json = report(bench, true);
	list = hf_json_path(json, "restarts", "application", NULL);
	assert_int_equal(hf_json_len(list), 60);
	/* The window begins at 23:30, the restart was at 00:02. */
	assert_int_equal(hf_json_i64(hf_json_item(list, 32), -1), 1);
	assert_int_equal(count_of(json), 1);
	assert_true(hf_json_num(hf_json_path(json, "mttr", "decide", "p50", NULL), -1) == 1);
	assert_true(hf_json_num(hf_json_path(json, "mttr", "total", "p90", NULL), -1) == 11);
	assert_int_equal(hf_json_type(hf_json_path(json, "mttr", "down", "p50", NULL)),
			 HF_JSON_NULL);
	assert_string_equal(
		hf_json_path_str(hf_json_item(hf_json_get(json, "worst"), 0), "name", NULL), "one");
}

static void restarts_of_jobs_that_are_gone_still_count(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = NULL;

	put(bench, "a", "one", "Running");
	page_source_remove(bench->tables.source, "a", "one");
	hf_page_jobs_touch(bench->tables.jobs, "pytorchjobs/a/one");
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + HF_PAGE_SETTLE);
	json = report(bench, true);
	assert_int_equal(count_of(json), 1);
	assert_int_equal(hf_json_len(hf_json_get(json, "worst")), 0);
}

static void the_termination_that_ended_a_job_is_no_restart(void **state)
{
	static const char status[] =
		"{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}],\"recovery\":{\"schema\":1,"
		"\"generation\":1,\"last\":{\"generation\":1,\"incident\":1,\"cause\":\"application\","
		"\"scope\":\"\",\"detectedAt\":\"2026-01-01T00:02:00.000000Z\"}}}";
	struct bench *bench = *state;
	HF_AUTO_JSON json = NULL;

	hf_page_jobs_touch(bench->tables.jobs,
			   page_source_put(bench->tables.source, "a", "one", status));
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + HF_PAGE_SETTLE);
	json = report(bench, true);
	assert_int_equal(count_of(json), 0);
	assert_int_equal(hf_json_len(hf_json_get(json, "worst")), 0);
}

static void a_session_counts_what_it_may_see(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = NULL;

	put(bench, "a", "one", "Running");
	put(bench, "b", "two", "Running");
	hf_page_recovery_sample(bench->recovery, bench->tables.jobs, 2, NOW);
	bench->tables.session->all = false;
	hf_page_session_grant(bench->tables.session, "pytorchjobs", "b")->right =
		HF_PAGE_RIGHT_ALLOWED;
	json = report(bench, false);
	assert_int_equal(count_of(json), 1);
	for (size_t i = 0; i < 60; i++) {
		assert_int_equal(hf_json_type(hf_json_item(hf_json_get(json, "ettr"), i)),
				 HF_JSON_NULL);
		assert_int_equal(
			hf_json_type(hf_json_item(hf_json_get(json, "lostDeviceHours"), i)),
			HF_JSON_NULL);
	}
}

static void samples_give_ettr_and_lost_device_hours(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = NULL;

	put(bench, "a", "one", "Running");
	hf_page_recovery_sample(bench->recovery, bench->tables.jobs, 3, NOW - HF_MINUTE);
	hf_page_recovery_sample(bench->recovery, bench->tables.jobs, 3, NOW - 2 * HF_HOUR);
	json = report(bench, true);
	assert_true(hf_json_num(hf_json_item(hf_json_get(json, "lostDeviceHours"), 59), -1) ==
		    0.05);
	assert_int_equal(hf_json_type(hf_json_item(hf_json_get(json, "ettr"), 0)), HF_JSON_NULL);
}

/* The row of a job that trains for hours is not made anew: nothing changes. */
static void a_sample_counts_the_present_run(void **state)
{
	static const char status[] =
		"{\"conditions\":[{\"type\":\"Running\",\"status\":\"True\","
		"\"lastTransitionTime\":\"2026-01-01T00:10:00Z\"}],\"startTime\":\"2026-01-01T00:00:00Z\","
		"\"recovery\":{\"schema\":1,\"generation\":1,\"phase\":\"Running\",\"since\":\"2026-01-01T00:10:00Z\"}}";
	struct bench *bench = *state;
	struct hf_page_recovery_args args = {.jobs = bench->tables.jobs,
					     .session = bench->tables.session,
					     .window = HF_HOUR,
					     .bucket = HF_MINUTE,
					     .sees_all = true};
	HF_AUTO_JSON json = NULL;

	hf_page_jobs_touch(bench->tables.jobs,
			   page_source_put(bench->tables.source, "a", "one", status));
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + HF_PAGE_SETTLE);
	args.now = MIDNIGHT + 1000 * HF_MINUTE;
	hf_page_recovery_sample(bench->recovery, bench->tables.jobs, 0, args.now - HF_SECOND);
	json = hf_page_recovery_json(bench->recovery, &args);
	assert_true(hf_json_num(hf_json_item(hf_json_get(json, "ettr"), 59), -1) > 0.98);
}

/* A job with two restarts of a second, and one whose only restart took a minute. */
static void the_worst_job_is_the_one_that_lost_most(void **state)
{
	static const char often[] =
		"{\"conditions\":[{\"type\":\"Running\",\"status\":\"True\"}],"
		"\"startTime\":\"2026-01-01T00:00:00Z\",\"recovery\":{\"schema\":1,\"generation\":1,"
		"\"last\":{\"generation\":1,\"incident\":2,\"scope\":\"Container\",\"replica\":\"worker-1\",\"cause\":\"application\","
		"\"detectedAt\":\"2026-01-01T00:10:00.000000Z\",\"decidedAt\":\"2026-01-01T00:10:00.000000Z\","
		"\"runningAt\":\"2026-01-01T00:10:01.000000Z\"},"
		"\"history\":[{\"generation\":1,\"incident\":1,\"scope\":\"Container\",\"replica\":\"worker-1\",\"cause\":\"application\","
		"\"detectedAt\":\"2026-01-01T00:05:00.000000Z\",\"decidedAt\":\"2026-01-01T00:05:00.000000Z\","
		"\"runningAt\":\"2026-01-01T00:05:01.000000Z\"}]}}";
	static const char once[] =
		"{\"conditions\":[{\"type\":\"Running\",\"status\":\"True\"}],"
		"\"startTime\":\"2026-01-01T00:00:00Z\",\"recovery\":{\"schema\":1,\"generation\":1,"
		"\"last\":{\"generation\":1,\"incident\":1,\"scope\":\"Container\",\"replica\":\"worker-1\",\"cause\":\"infrastructure\","
		"\"detectedAt\":\"2026-01-01T00:02:00.000000Z\",\"decidedAt\":\"2026-01-01T00:02:00.000000Z\","
		"\"runningAt\":\"2026-01-01T00:03:00.000000Z\"}}}";
	struct bench *bench = *state;
	HF_AUTO_JSON json = NULL;
	const struct hf_json *worst;

	hf_page_jobs_touch(bench->tables.jobs,
			   page_source_put(bench->tables.source, "a", "often", often));
	hf_page_jobs_touch(bench->tables.jobs,
			   page_source_put(bench->tables.source, "a", "once", once));
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + HF_PAGE_SETTLE);
	json = report(bench, true);
	worst = hf_json_get(json, "worst");
	assert_int_equal(hf_json_len(worst), 2);
	assert_string_equal(hf_json_path_str(hf_json_item(worst, 0), "name", NULL), "once");
	assert_int_equal(hf_json_i64(hf_json_get(hf_json_item(worst, 1), "restartsInWindow"), -1),
			 2);
}

static void the_worst_jobs_are_at_most_ten(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = NULL;

	for (int i = 0; i < 15; i++) {
		HF_AUTOFREE char *name = hf_xasprintf("job-%d", i);

		put(bench, "a", name, "Running");
	}
	json = report(bench, true);
	assert_int_equal(hf_json_len(hf_json_get(json, "worst")), HF_PAGE_WORST_MAX);
	assert_int_equal(count_of(json), 15);
}

int main(void)
{
#define BENCH_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_bench, close_bench)
	const struct CMUnitTest tests[] = {
		BENCH_TEST(restarts_are_counted_in_their_bucket),
		BENCH_TEST(restarts_of_jobs_that_are_gone_still_count),
		BENCH_TEST(the_termination_that_ended_a_job_is_no_restart),
		BENCH_TEST(a_session_counts_what_it_may_see),
		BENCH_TEST(samples_give_ettr_and_lost_device_hours),
		BENCH_TEST(a_sample_counts_the_present_run),
		BENCH_TEST(the_worst_job_is_the_one_that_lost_most),
		BENCH_TEST(the_worst_jobs_are_at_most_ten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
