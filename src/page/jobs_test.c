/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/jobs.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/page_tables.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A table of jobs on a virtual clock, with a session that may see all or some. */
struct bench {
	struct page_tables tables;
	int changes, dropped;
};

static void on_changed(void *arg)
{
	((struct bench *)arg)->changes++;
}

static void on_dropped(void *arg, const struct hf_page_row *row,
		       const struct hf_page_restart *restart)
{
	((struct bench *)arg)->dropped++;
}

static int open_bench(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	const struct hf_page_jobs_options options = {
		.changed = on_changed, .dropped = on_dropped, .arg = bench};

	page_tables_open(&bench->tables, hf_loop_create_virtual(1767225600 * HF_SECOND), &options);
	*state = bench;
	return 0;
}

static int close_bench(void **state)
{
	struct bench *bench = *state;

	page_tables_close(&bench->tables);
	hf_loop_destroy(bench->tables.loop);
	free(bench);
	return 0;
}

static void put(struct bench *bench, const char *ns, const char *name, const char *state,
		int restarts)
{
	hf_page_jobs_touch(bench->tables.jobs,
			   page_source_put(bench->tables.source, ns, name,
					   page_source_status(state, restarts)));
}

static void settle(struct bench *bench)
{
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + HF_PAGE_SETTLE);
}

static struct hf_json *list(struct bench *bench, const struct hf_page_query *query)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_PAGE_LIST_BYTES_MAX);
	struct hf_json *json;

	hf_page_jobs_list(bench->tables.jobs, bench->tables.session, query, &text);
	assert_int_equal(hf_json_parse(text.data, text.len, NULL, &json, NULL), 0);
	return json;
}

/* The names of the listed jobs, with blanks between. */
static char *names_of(const struct hf_json *json)
{
	const struct hf_json *items = hf_json_get(json, "items");
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	for (size_t i = 0; i < hf_json_len(items); i++)
		hf_strbuf_addf(&text, "%s%s", i > 0 ? " " : "",
			       hf_json_path_str(hf_json_item(items, i), "name", NULL));
	return hf_strbuf_detach(&text);
}

static void assert_list(struct bench *bench, const struct hf_page_query *query, const char *want)
{
	HF_AUTO_JSON json = list(bench, query);
	HF_AUTOFREE char *names = names_of(json);

	assert_string_equal(names, want);
}

static void changes_of_a_job_are_told_once_after_they_settle(void **state)
{
	struct bench *bench = *state;

	put(bench, "a", "one", "Created", 0);
	hf_loop_run_until(bench->tables.loop,
			  hf_loop_mono(bench->tables.loop) + HF_PAGE_SETTLE / 2);
	put(bench, "a", "one", "Running", 0);
	put(bench, "a", "one", "Running", 1);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), 0);
	settle(bench);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), 1);
	assert_int_equal(bench->changes, 1);
	assert_non_null(strstr(hf_page_ring_at(bench->tables.ring, 1)->text->bytes, "\"Running\""));
}

static void a_change_that_the_page_does_not_show_is_not_told(void **state)
{
	struct bench *bench = *state;

	put(bench, "a", "one", "Running", 0);
	settle(bench);
	put(bench, "a", "one", "Running", 0);
	settle(bench);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), 1);
	assert_int_equal(bench->changes, 1);
}

static void a_job_that_is_gone_is_told_and_its_restarts_are_kept(void **state)
{
	struct bench *bench = *state;

	put(bench, "a", "one", "Running", 1);
	settle(bench);
	page_source_remove(bench->tables.source, "a", "one");
	hf_page_jobs_touch(bench->tables.jobs, "pytorchjobs/a/one");
	settle(bench);
	assert_int_equal(hf_page_ring_at(bench->tables.ring, 2)->change, HF_PAGE_CHANGE_GONE_JOB);
	assert_string_equal(hf_page_ring_at(bench->tables.ring, 2)->text->bytes,
			    "{\"kind\":\"PyTorchJob\",\"namespace\":\"a\",\"name\":\"one\"}");
	assert_int_equal(hf_page_jobs_len(bench->tables.jobs), 0);
	assert_int_equal(bench->dropped, 1);
}

static void while_no_operator_runs_here_the_rows_stay(void **state)
{
	struct bench *bench = *state;

	put(bench, "a", "one", "Running", 0);
	settle(bench);
	bench->tables.source->ready = false;
	page_source_remove(bench->tables.source, "a", "one");
	hf_page_jobs_touch_all(bench->tables.jobs);
	settle(bench);
	assert_int_equal(hf_page_jobs_len(bench->tables.jobs), 1);
	bench->tables.source->ready = true;
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + 2 * HF_SECOND);
	assert_int_equal(hf_page_jobs_len(bench->tables.jobs), 0);
}

static void the_sentence_is_that_of_the_last_plan(void **state)
{
	struct bench *bench = *state;

	put(bench, "a", "one", "Running", 0);
	settle(bench);
	assert_non_null(
		strstr(hf_page_ring_at(bench->tables.ring, 1)->text->bytes, "\"sentence\":\"m\""));
	hf_page_jobs_tell(bench->tables.jobs, "pytorchjobs/a/one", "Held: wait for it");
	settle(bench);
	assert_non_null(strstr(hf_page_ring_at(bench->tables.ring, 2)->text->bytes,
			       "\"sentence\":\"Held: wait for it\""));
}

static void a_sentence_has_no_span_that_would_grow_old(void **state)
{
	struct bench *bench = *state;

	put(bench, "a", "one", "Running", 0);
	hf_page_jobs_tell(bench->tables.jobs, "pytorchjobs/a/one", "Running for 1s");
	settle(bench);
	assert_non_null(strstr(hf_page_ring_at(bench->tables.ring, 1)->text->bytes,
			       "\"sentence\":\"Running\""));
	hf_page_jobs_tell(bench->tables.jobs, "pytorchjobs/a/one", "Running for 2m10s");
	settle(bench);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), 1);
	hf_page_jobs_tell(bench->tables.jobs, "pytorchjobs/a/one",
			  "Restarting for 12s: worker-3 waits for a node");
	settle(bench);
	assert_non_null(strstr(hf_page_ring_at(bench->tables.ring, 2)->text->bytes,
			       "\"sentence\":\"Restarting: worker-3 waits for a node\""));
}

static void a_list_renews_the_steps_of_its_rows(void **state)
{
	struct bench *bench = *state;
	struct hf_page_rank_report report = {.step = 7, .at = 1767225600 * HF_SECOND};

	put(bench, "a", "one", "Running", 0);
	settle(bench);
	report.uid = bench->tables.source->jobs[0]->pod_uid;
	hf_page_ranks_report(bench->tables.ranks, &report);
	settle(bench);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), 1);
	assert_list(bench, &(struct hf_page_query){.limit = 50}, "one");
	settle(bench);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), 2);
	assert_non_null(strstr(hf_page_ring_at(bench->tables.ring, 2)->text->bytes, "\"step\":7,"));
}

static void many_changes_are_made_in_slices(void **state)
{
	struct bench *bench = *state;
	char name[32];

	for (int i = 0; i < 3 * HF_PAGE_SLICE; i++) {
		snprintf(name, sizeof(name), "job-%d", i);
		put(bench, "a", name, "Running", 0);
	}
	settle(bench);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), 3 * HF_PAGE_SLICE);
	assert_int_equal(bench->changes, 3);
}

static void lists_are_filtered_and_sorted(void **state)
{
	struct bench *bench = *state;

	put(bench, "a", "one", "Running", 2);
	put(bench, "b", "two", "Failed", 0);
	put(bench, "a", "three", "Succeeded", 5);
	settle(bench);
	assert_list(bench, &(struct hf_page_query){.limit = 50}, "one three two");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .ns = "a"}, "one three");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .state = "Failed"}, "two");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .q = "T"}, "three two");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .kind = "PyTorchJob"},
		    "one three two");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .kind = "tfjobs"}, "");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .cause = "device"}, "");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .sort = HF_PAGE_SORT_RESTARTS},
		    "three one two");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .sort = HF_PAGE_SORT_STATE},
		    "two one three");
	assert_list(bench, &(struct hf_page_query){.limit = 50, .sort = HF_PAGE_SORT_AGE},
		    "three two one");
}

static void a_list_counts_states_and_names_namespaces(void **state)
{
	struct bench *bench = *state;
	const struct hf_page_query query = {.limit = 1, .state = "Running"};
	HF_AUTO_JSON json = NULL;

	put(bench, "a", "one", "Running", 0);
	put(bench, "b", "two", "Failed", 0);
	put(bench, "b", "three", "Running", 0);
	settle(bench);
	json = list(bench, &query);
	assert_int_equal(hf_json_i64(hf_json_get(json, "total"), -1), 2);
	assert_int_equal(hf_json_i64(hf_json_path(json, "states", "Failed", NULL), -1), 1);
	assert_int_equal(hf_json_i64(hf_json_path(json, "states", "Running", NULL), -1), 2);
	assert_int_equal(hf_json_len(hf_json_get(json, "namespaces")), 2);
	assert_string_equal(hf_json_str(hf_json_item(hf_json_get(json, "kinds"), 0), ""),
			    "PyTorchJob");
}

static void pages_go_on_behind_the_last_row_whatever_has_changed(void **state)
{
	struct bench *bench = *state;
	struct hf_page_query query = {.limit = 2};
	HF_AUTO_JSON first = NULL;
	HF_AUTO_JSON second = NULL;
	HF_AUTOFREE char *names = NULL;

	put(bench, "a", "a", "Running", 0);
	put(bench, "a", "b", "Running", 0);
	put(bench, "a", "d", "Running", 0);
	put(bench, "a", "e", "Running", 0);
	settle(bench);
	first = list(bench, &query);
	names = names_of(first);
	assert_string_equal(names, "a b");
	query.token = hf_json_path_str(first, "continue", NULL);
	page_source_remove(bench->tables.source, "a", "b");
	hf_page_jobs_touch(bench->tables.jobs, "pytorchjobs/a/b");
	put(bench, "a", "c", "Running", 0);
	settle(bench);
	assert_list(bench, &query, "c d");
	second = list(bench, &query);
	query.token = hf_json_path_str(second, "continue", NULL);
	assert_list(bench, &query, "e");
}

static void a_token_that_cannot_be_read_begins_from_the_start(void **state)
{
	struct bench *bench = *state;
	static const char *const bad[] = {"x", "1/2/3", "///", "99999999999999999999/a/b/c"};

	put(bench, "a", "one", "Running", 0);
	settle(bench);
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_list(bench, &(struct hf_page_query){.limit = 5, .token = bad[i]}, "one");
}

static void a_session_sees_the_namespaces_that_it_may_list(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = NULL;
	int64_t total;

	put(bench, "a", "one", "Running", 0);
	put(bench, "b", "two", "Failed", 0);
	settle(bench);
	bench->tables.session->all = false;
	hf_page_session_grant(bench->tables.session, "pytorchjobs", "b")->right =
		HF_PAGE_RIGHT_ALLOWED;
	json = list(bench, &(struct hf_page_query){.limit = 50});
	assert_int_equal(hf_json_i64(hf_json_get(json, "total"), -1), 1);
	assert_int_equal(hf_json_len(hf_json_get(json, "namespaces")), 1);
	assert_null(hf_json_path(json, "states", "Running", NULL));
	hf_json_unref(hf_page_jobs_count(bench->tables.jobs, bench->tables.session, &total));
	assert_int_equal(total, 1);
}

static void a_session_without_rights_gets_a_hint(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON all = NULL;
	HF_AUTO_JSON none = NULL;
	HF_AUTO_JSON kind = NULL;

	put(bench, "a", "one", "Running", 0);
	settle(bench);
	all = list(bench, &(struct hf_page_query){.limit = 50, .q = "no such job"});
	assert_int_equal(hf_json_type(hf_json_get(all, "hint")), HF_JSON_NULL);
	bench->tables.session->all = false;
	none = list(bench, &(struct hf_page_query){.limit = 50});
	assert_string_equal(
		hf_json_path_str(none, "hint", NULL),
		"User 'ada' may not list jobs in any namespace that has jobs. An administrator "
		"can allow it with a Role.");
	/* The user may list JAXJobs now, and there is no JAXJob: the list is empty for another reason. */
	hf_page_session_grant(bench->tables.session, "jaxjobs", "")->right = HF_PAGE_RIGHT_ALLOWED;
	kind = list(bench, &(struct hf_page_query){.limit = 50});
	assert_int_equal(hf_json_type(hf_json_get(kind, "hint")), HF_JSON_NULL);
}

static void keys_that_are_no_jobs_are_ignored(void **state)
{
	struct bench *bench = *state;

	hf_page_jobs_touch(bench->tables.jobs, "pods");
	hf_page_jobs_touch(bench->tables.jobs, "pods/a/b");
	hf_page_jobs_touch(bench->tables.jobs, "pytorchjobs");
	settle(bench);
	assert_int_equal(hf_page_jobs_len(bench->tables.jobs), 0);
}

int main(void)
{
#define BENCH_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_bench, close_bench)
	const struct CMUnitTest tests[] = {
		BENCH_TEST(changes_of_a_job_are_told_once_after_they_settle),
		BENCH_TEST(a_change_that_the_page_does_not_show_is_not_told),
		BENCH_TEST(a_job_that_is_gone_is_told_and_its_restarts_are_kept),
		BENCH_TEST(while_no_operator_runs_here_the_rows_stay),
		BENCH_TEST(the_sentence_is_that_of_the_last_plan),
		BENCH_TEST(a_sentence_has_no_span_that_would_grow_old),
		BENCH_TEST(a_list_renews_the_steps_of_its_rows),
		BENCH_TEST(many_changes_are_made_in_slices),
		BENCH_TEST(lists_are_filtered_and_sorted),
		BENCH_TEST(a_list_counts_states_and_names_namespaces),
		BENCH_TEST(pages_go_on_behind_the_last_row_whatever_has_changed),
		BENCH_TEST(a_token_that_cannot_be_read_begins_from_the_start),
		BENCH_TEST(a_session_sees_the_namespaces_that_it_may_list),
		BENCH_TEST(a_session_without_rights_gets_a_hint),
		BENCH_TEST(keys_that_are_no_jobs_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
