/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/fake_store.h"
#include "harness/test.h"
#include "operator/operator_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)16 << 20)
#define POD_MAX 4096

static struct hf_doc *pod(const char *name, const char *uid, const char *owner, const char *node)
{
	char text[POD_MAX], ref[512] = "";

	if (owner != NULL)
		snprintf(ref, sizeof(ref),
			 ",\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":"
			 "\"PyTorchJob\",\"name\":\"ddp\",\"uid\":\"%s\",\"controller\":true}]",
			 owner);
	snprintf(
		text, sizeof(text),
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\","
		"\"resourceVersion\":\"5\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
		"\"annotations\":{\"holdfast.dev/generation\":\"3\",\"holdfast.dev/attempt\":\"2\","
		"\"holdfast.dev/incident\":\"1\"}%s},\"spec\":{\"nodeName\":\"%s\",\"containers\":["
		"{\"name\":\"pytorch\"}]},\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\","
		"\"message\":\"m\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
		"\"True\",\"reason\":\"R\"}],\"containerStatuses\":[{\"name\":\"pytorch\","
		"\"restartCount\":4,\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":"
		"\"OOMKilled\",\"finishedAt\":\"2026-01-01T00:01:00Z\"}}}]}}",
		name, uid, ref, node);
	return hf_doc_from_text(text, strlen(text));
}

/* --- what a step sees ------------------------------------------------------------------------- */

struct bench {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_cache *pods, *services;
	struct hf_arena *arena;
	struct hf_doc *job;
	struct hf_job_view view;
};

static void *decode_pod(void *arg, struct hf_doc *doc)
{
	struct bench *bench = arg;

	return hf_view_of_pod(doc, bench->arena);
}

static void *decode_service(void *arg, struct hf_doc *doc)
{
	struct bench *bench = arg;

	return hf_view_of_service(doc, bench->arena);
}

static const char *by_controller(const struct hf_cache_entry *entry)
{
	return ((const struct hf_view *)entry->view)->controller_uid;
}

static struct hf_cache *make_cache(struct bench *bench, const struct hf_resource *resource,
				   void *(*decode)(void *, struct hf_doc *))
{
	const struct hf_cache_options options = {.loop = bench->loop,
						 .store = &bench->store->base,
						 .resource = resource,
						 .decode = decode,
						 .view_free = hf_view_unref,
						 .index_key = {by_controller},
						 .arg = bench};

	return hf_cache_create(&options);
}

static int setup(void **state)
{
	static const char job[] =
		"{\"metadata\":{\"name\":\"ddp\",\"namespace\":\"n\",\"uid\":\"u-1\"},\"spec\":{"
		"\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":3,\"template\":{\"spec\":{"
		"\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}}}}";
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	bench->loop = hf_loop_create_virtual(0);
	bench->store = fake_store_create();
	bench->arena = hf_arena_create(ARENA_MAX);
	bench->pods = make_cache(bench, &hf_pods, decode_pod);
	bench->services = make_cache(bench, &hf_services, decode_service);
	bench->job = hf_doc_from_text(job, strlen(job));
	hf_job_read(bench->job, &hf_framework_pytorch, NULL, bench->arena, NULL, &bench->view);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hf_cache_destroy(bench->pods);
	hf_cache_destroy(bench->services);
	hf_doc_unref(bench->job);
	hf_arena_destroy(bench->arena);
	fake_store_destroy(bench->store);
	hf_loop_destroy(bench->loop);
	free(bench);
	return 0;
}

static void add(struct bench *bench, const char *name, const char *uid, const char *owner,
		const char *node)
{
	HF_AUTO_DOC doc = pod(name, uid, owner, node);

	assert_true(hf_cache_put_reply(bench->pods, doc));
	assert_true(hf_cache_put_reply(bench->services, doc));
}

static void observe(struct bench *bench, struct hf_views *views, struct hf_observed *seen)
{
	const struct hf_observe_args args = {
		.pods = bench->pods, .services = bench->services, .job = &bench->view, .now = 77};

	hf_observe(&args, bench->arena, views, seen);
}

static const struct hf_pod *find(const struct hf_observed *seen, const char *name)
{
	for (size_t i = 0; i < seen->pods_len; i++)
		if (hf_streq(seen->pods[i].name, name))
			return &seen->pods[i];
	return NULL;
}

static void test_a_step_sees_what_the_job_owns_and_strangers_under_its_names(void **state)
{
	struct bench *bench = *state;
	struct hf_observed seen;

	add(bench, "ddp-worker-0", "p0", "u-1", "a");
	/* a pod of a deleted job with the same name */
	add(bench, "ddp-worker-1", "p1", "u-old", "b");
	add(bench, "ddp-worker-2", "p2", NULL, "c");  /* no owner */
	add(bench, "ddp-worker-7", "p7", "u-1", "a"); /* beyond the replicas */
	/* a pod of another owner, with a name that the job does not use */
	add(bench, "ddp-worker-8", "p8", "u-old", "a");
	add(bench, "other", "p9", NULL, "a");
	observe(bench, NULL, &seen);
	assert_int_equal(seen.pods_len, 4);
	assert_true(find(&seen, "ddp-worker-0")->owned);
	assert_false(find(&seen, "ddp-worker-1")->owned);
	assert_false(find(&seen, "ddp-worker-2")->owned);
	assert_true(find(&seen, "ddp-worker-7")->owned);
	assert_int_equal(seen.services_len, 4);
}

static void test_nodes_are_those_of_our_pods_each_once_and_alive_now(void **state)
{
	struct bench *bench = *state;
	struct hf_observed seen;

	add(bench, "ddp-worker-0", "p0", "u-1", "a");
	add(bench, "ddp-worker-1", "p1", "u-1", "b");
	add(bench, "ddp-worker-2", "p2", "u-1", "a");
	add(bench, "ddp-worker-3", "p3", "u-1", "");
	observe(bench, NULL, &seen);
	assert_int_equal(seen.nodes_len, 2);
	assert_string_equal(seen.nodes[0].name, "a");
	assert_string_equal(seen.nodes[1].name, "b");
	assert_int_equal(seen.nodes[0].renewed_at, 77);
	assert_int_equal(seen.nodes[0].ready, HF_NODE_READY);
}

/* A terminating pod of an earlier job of the same name: the step needs to know whether its node is
 * lost. */
static void test_the_node_of_what_an_earlier_job_has_left_is_seen(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"ddp-worker-1\",\"namespace\":\"n\",\"uid\":\"p1\","
		"\"resourceVersion\":\"5\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
		"\"deletionTimestamp\":\"2026-01-01T00:02:00Z\",\"ownerReferences\":[{"
		"\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"name\":\"ddp\","
		"\"uid\":\"u-old\",\"controller\":true}]},\"spec\":{\"nodeName\":\"b\"}}";
	struct bench *bench = *state;
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
	struct hf_observed seen;

	assert_true(hf_cache_put_reply(bench->pods, doc));
	observe(bench, NULL, &seen);
	assert_int_equal(seen.nodes_len, 0);
	bench->view.creation_time = seen.pods[0].creation_time;
	observe(bench, NULL, &seen);
	assert_int_equal(seen.nodes_len, 1);
	assert_string_equal(seen.nodes[0].name, "b");
}

static void test_views_that_were_taken_outlive_the_cache_entries(void **state)
{
	struct bench *bench = *state;
	struct hf_views views = {.len_max = 100};
	struct hf_observed seen;

	add(bench, "ddp-worker-0", "p0", "u-1", "a");
	observe(bench, &views, &seen);
	hf_cache_put_gone(bench->pods, "n", "ddp-worker-0", "p0");
	assert_string_equal(seen.pods[0].uid, "p0");
	assert_int_equal(views.len, 2);
	hf_views_release(&views);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_step_sees_what_the_job_owns_and_strangers_under_its_names),
		T(test_nodes_are_those_of_our_pods_each_once_and_alive_now),
		T(test_the_node_of_what_an_earlier_job_has_left_is_seen),
		T(test_views_that_were_taken_outlive_the_cache_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
