/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the table of nodes, on a store that answers what the test says. */
#include "page/nodes.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/fake_store.h"
#include "harness/page_tables.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE (200 * HF_MS)
#define NODE(name, version, ready)                                                                 \
	"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"" name                  \
	"\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" version                                 \
	"\"},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"
#define HEALTH                                                                                     \
	"{\"apiVersion\":\"holdfast.dev/v1alpha1\",\"kind\":\"DeviceHealth\",\"metadata\":"        \
	"{\"name\":\"n1\",\"uid\":\"h\",\"resourceVersion\":\"8\"},\"status\":{\"state\":"         \
	"\"Unhealthy\",\"devices\":[{\"id\":\"0000:1a:00.0\",\"kind\":\"gpu\",\"state\":"          \
	"\"Unhealthy\"},{\"id\":\"0000:1b:00.0\",\"kind\":\"gpu\",\"state\":\"Healthy\"}]}}"
#define POLICY                                                                                     \
	"{\"apiVersion\":\"holdfast.dev/v1alpha1\",\"kind\":\"HealthPolicy\",\"metadata\":"        \
	"{\"name\":\"gpus\",\"uid\":\"p\",\"resourceVersion\":\"9\"},\"status\":{\"mode\":"        \
	"\"quarantine\",\"breaker\":{\"state\":\"Open\",\"message\":\"5 nodes failed\"},"          \
	"\"counts\":{\"quarantined\":2},\"budget\":{\"quarantinesLeft\":1},\"nodes\":[{\"name\":"  \
	"\"n1\",\"answer\":\"held\",\"next\":\"quarantine\",\"why\":\"the breaker is open\"}]}}"
#define MEND                                                                                       \
	"{\"apiVersion\":\"holdfast.dev/v1alpha1\",\"kind\":\"Remediation\",\"metadata\":"         \
	"{\"name\":\"n1-1\",\"uid\":\"m\",\"resourceVersion\":\"9\",\"creationTimestamp\":"        \
	"\"2026-01-01T00:00:00Z\"},\"spec\":{\"node\":\"n1\",\"rung\":\"reset\"},\"status\":"      \
	"{\"phase\":\"Failed\",\"message\":\"the tool failed\"}}"

struct bench {
	struct page_tables tables;
	struct fake_store *store;
	struct hf_page_nodes *nodes;
	int changes;
};

static void on_changed(void *arg)
{
	((struct bench *)arg)->changes++;
}

static struct hf_doc *doc(const char *text)
{
	return hf_doc_from_text(text, strlen(text));
}

static void settle(struct bench *bench)
{
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + SETTLE);
}

/* Answers the lists of the four kinds. */
static void answer_lists(struct bench *bench)
{
	struct fake_call *call;

	hf_loop_run_ready(bench->tables.loop);
	while ((call = fake_next(bench->store)) != NULL) {
		const char *plural = call->request->resource->plural;
		struct hf_doc *items[2] = {NULL, NULL};
		size_t n = 1;

		if (hf_streq(plural, "nodes")) {
			items[0] = doc(NODE("n2", "6", "True"));
			items[1] = doc(NODE("n1", "7", "True"));
			n = 2;
		} else {
			items[0] = doc(hf_streq(plural, "devicehealths")    ? HEALTH
				       : hf_streq(plural, "healthpolicies") ? POLICY
									    : MEND);
		}
		fake_answer_list(call, "10", "", items, n);
	}
	settle(bench);
}

static int open_bench(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_page_nodes_options options = {.changed = on_changed, .arg = bench};

	bench->store = fake_store_create();
	page_tables_open(&bench->tables, hf_loop_create_virtual(1767268800 * HF_SECOND), NULL);
	options.loop = bench->tables.loop;
	options.store = &bench->store->base;
	options.source = &bench->tables.source->source;
	options.ranks = bench->tables.ranks;
	options.ring = bench->tables.ring;
	bench->nodes = hf_page_nodes_create(&options);
	answer_lists(bench);
	*state = bench;
	return 0;
}

static int close_bench(void **state)
{
	struct bench *bench = *state;

	hf_page_nodes_destroy(bench->nodes);
	page_tables_close(&bench->tables);
	fake_store_destroy(bench->store);
	hf_loop_destroy(bench->tables.loop);
	free(bench);
	return 0;
}

static struct fake_watch *watch_of(struct bench *bench, const char *plural)
{
	for (size_t i = bench->store->n_watches; i-- > 0;)
		if (bench->store->watches[i].live &&
		    hf_streq(bench->store->watches[i].resource->plural, plural))
			return &bench->store->watches[i];
	return NULL;
}

static struct hf_json *list(struct bench *bench, const struct hf_page_query *query)
{
	return hf_page_nodes_list(bench->nodes, bench->tables.session, query);
}

static const char *name_at(const struct hf_json *json, size_t i)
{
	return hf_json_path_str(hf_json_item(hf_json_get(json, "items"), i), "name", NULL);
}

static void nodes_are_listed_by_name_with_counts(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = list(bench, &(struct hf_page_query){.limit = 50});

	assert_int_equal(hf_json_i64(hf_json_get(json, "total"), -1), 2);
	assert_string_equal(name_at(json, 0), "n1");
	assert_string_equal(name_at(json, 1), "n2");
	assert_int_equal(hf_json_i64(hf_json_path(json, "states", "Unhealthy", NULL), -1), 1);
	assert_int_equal(hf_json_i64(hf_json_path(json, "states", "Ready", NULL), -1), 1);
	assert_int_equal(hf_page_nodes_lost_devices(bench->nodes), 1);
}

static void lists_are_filtered_and_paged(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON some = list(bench, &(struct hf_page_query){.limit = 50, .state = "Ready"});
	HF_AUTO_JSON found = list(bench, &(struct hf_page_query){.limit = 50, .q = "1"});
	HF_AUTO_JSON first = list(bench, &(struct hf_page_query){.limit = 1});
	HF_AUTO_JSON second = list(bench, &(struct hf_page_query){.limit = 1, .token = "n1"});

	assert_string_equal(name_at(some, 0), "n2");
	assert_int_equal(hf_json_len(hf_json_get(some, "items")), 1);
	assert_string_equal(name_at(found, 0), "n1");
	assert_string_equal(hf_json_path_str(first, "continue", NULL), "n1");
	assert_string_equal(name_at(second, 0), "n2");
	assert_int_equal(hf_json_type(hf_json_get(second, "continue")), HF_JSON_NULL);
}

static void breaker_and_budgets_are_those_of_the_policies(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = list(bench, &(struct hf_page_query){.limit = 50});
	const struct hf_json *budget = hf_json_item(hf_json_get(json, "budgets"), 0);

	assert_true(hf_json_true(hf_json_path(json, "breaker", "open", NULL), false));
	assert_string_equal(hf_json_path_str(json, "breaker", "sentence", NULL),
			    "policy gpus: 5 nodes failed");
	assert_string_equal(hf_json_path_str(budget, "policy", NULL), "gpus");
	assert_int_equal(hf_json_i64(hf_json_get(budget, "used"), -1), 2);
	assert_int_equal(hf_json_i64(hf_json_get(budget, "limit"), -1), 3);
}

static void one_node_has_devices_acts_and_the_policys_answer(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON json = hf_page_nodes_one(bench->nodes, bench->tables.session, "n1");
	const struct hf_json *act = hf_json_item(hf_json_get(json, "remediations"), 0);

	assert_int_equal(hf_json_len(hf_json_get(json, "devices")), 2);
	assert_int_equal(hf_json_i64(hf_json_path(json, "deviceCounts", "well", NULL), -1), 1);
	assert_string_equal(hf_json_path_str(act, "state", NULL), "Failed");
	assert_non_null(strstr(hf_json_path_str(json, "sentence", NULL),
			       "policy: held quarantine: the breaker is open"));
	assert_null(hf_page_nodes_one(bench->nodes, bench->tables.session, "none"));
}

static void the_jobs_of_a_node_are_those_that_the_session_may_see(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON all = NULL;
	HF_AUTO_JSON some = NULL;

	page_source_put(bench->tables.source, "a", "one", page_source_status("Running", 0));
	page_source_put(bench->tables.source, "b", "two", page_source_status("Running", 0));
	all = hf_page_nodes_one(bench->nodes, bench->tables.session, "n1");
	assert_int_equal(hf_json_len(hf_json_get(all, "jobs")), 2);
	bench->tables.session->all = false;
	hf_page_session_grant(bench->tables.session, "pytorchjobs", "b")->right =
		HF_PAGE_RIGHT_ALLOWED;
	some = hf_page_nodes_one(bench->nodes, bench->tables.session, "n1");
	assert_int_equal(hf_json_len(hf_json_get(some, "jobs")), 1);
}

static void a_change_of_a_node_is_told_and_a_heartbeat_is_not(void **state)
{
	struct bench *bench = *state;
	uint64_t before = hf_page_ring_newest(bench->tables.ring);

	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED, doc(NODE("n2", "11", "True")));
	settle(bench);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), before);
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED, doc(NODE("n2", "12", "False")));
	settle(bench);
	assert_int_equal(hf_page_ring_newest(bench->tables.ring), before + 1);
	assert_non_null(strstr(hf_page_ring_at(bench->tables.ring, before + 1)->text->bytes,
			       "\"state\":\"NotReady\""));
	fake_event(watch_of(bench, "nodes"), HF_EVENT_DELETED, doc(NODE("n2", "13", "False")));
	settle(bench);
	assert_int_equal(hf_page_ring_at(bench->tables.ring, before + 2)->change,
			 HF_PAGE_CHANGE_GONE_NODE);
	assert_true(bench->changes > 0);
}

int main(void)
{
#define BENCH_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_bench, close_bench)
	const struct CMUnitTest tests[] = {
		BENCH_TEST(nodes_are_listed_by_name_with_counts),
		BENCH_TEST(lists_are_filtered_and_paged),
		BENCH_TEST(breaker_and_budgets_are_those_of_the_policies),
		BENCH_TEST(one_node_has_devices_acts_and_the_policys_answer),
		BENCH_TEST(the_jobs_of_a_node_are_those_that_the_session_may_see),
		BENCH_TEST(a_change_of_a_node_is_told_and_a_heartbeat_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
