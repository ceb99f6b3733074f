/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "operator/operator_internal.h"

#include "api/pod.h"
#include "base/str.h"

#include <malloc.h>
#include <string.h>

#define ARENA_MAX ((size_t)1 << 20)

/* A pod of a job as it looks on a real cluster, as far as views keep it. */
static const char running[] =
	"{\"metadata\":{\"name\":\"ddp-worker-1\",\"namespace\":\"default\",\"uid\":"
	"\"0b9f5f0e-7c5c-4a37-9b53-0d2a4a3a8c11\",\"resourceVersion\":\"123456\","
	"\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{"
	"\"holdfast.dev/generation\":\"1\",\"holdfast.dev/attempt\":\"0\","
	"\"holdfast.dev/incident\":\"0\"},\"ownerReferences\":[{\"uid\":"
	"\"5d6d33c0-9c6f-4b0e-8a49-5c7d6f0d6c55\",\"controller\":true}]},"
	"\"spec\":{\"nodeName\":\"node-17\"},\"status\":{\"phase\":\"Running\",\"conditions\":["
	"{\"type\":\"Initialized\",\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"True\"},"
	"{\"type\":\"ContainersReady\",\"status\":\"True\"},"
	"{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":"
	"\"2026-01-01T00:00:00Z\"}],"
	"\"initContainerStatuses\":[{\"name\":\"init-pytorch\",\"restartCount\":0,\"state\":{"
	"\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\",\"startedAt\":"
	"\"2026-01-01T00:00:01Z\",\"finishedAt\":\"2026-01-01T00:00:02Z\"}}}],"
	"\"containerStatuses\":[{\"name\":\"pytorch\",\"restartCount\":0,\"state\":{\"running\":{"
	"\"startedAt\":\"2026-01-01T00:00:03Z\"}}}]}}";

/* Everything that hf_pod_read can find. */
static const char full[] =
	"{\"metadata\":{\"name\":\"ddp-worker-1\",\"namespace\":\"n\",\"uid\":\"p1\","
	"\"resourceVersion\":\"5\",\"creationTimestamp\":\"1969-12-31T23:59:59Z\","
	"\"deletionTimestamp\":\"2026-01-01T00:02:00Z\",\"deletionGracePeriodSeconds\":0,"
	"\"finalizers\":[\"a/b\",\"True\"],\"annotations\":{\"holdfast.dev/generation\":\"3\","
	"\"holdfast.dev/attempt\":\"200\",\"holdfast.dev/incident\":\"70000\","
	"\"holdfast.dev/avoids\":\"n7,n8\",\"holdfast.dev/stopped\":\"JobFailed\",\"holdfast.dev/spec\":\"0123456789abcdef\"},"
	"\"ownerReferences\":[{\"uid\":\"u-1\",\"controller\":true}]},"
	"\"spec\":{\"nodeName\":\"a\",\"restartPolicy\":\"OnFailure\",\"activeDeadlineSeconds\":300,\"terminationGracePeriodSeconds\":60,"
	"\"tolerations\":[{\"key\":"
	"\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
	"\"tolerationSeconds\":300}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
	"\"claimName\":\"data\"}}]},\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\","
	"\"message\":\"\",\"startTime\":\"2026-01-01T00:00:20Z\",\"conditions\":[{\"type\":\"holdfast.dev/DeviceHealthy\",\"status\":"
	"\"False\",\"reason\":\"Reboot\",\"message\":\"0000:1a:00.0 lost\"},{\"type\":\"DisruptionTarget\",\"status\":\"True\","
	"\"reason\":\"R\",\"message\":\"words of its own\"},{\"type\":\"x/y\",\"status\":"
	"\"Unknown\"}],\"initContainerStatuses\":[{\"name\":\"i\",\"restartCount\":1,\"state\":{"
	"\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off\"}}}],"
	"\"containerStatuses\":[{\"name\":\"pytorch\",\"restartCount\":4,\"state\":{"
	"\"terminated\":{\"exitCode\":137,\"signal\":9,\"reason\":\"OOMKilled\",\"startedAt\":"
	"\"2026-01-01T00:00:30Z\",\"finishedAt\":\"2026-01-01T00:01:00Z\"}},\"lastState\":{"
	"\"terminated\":{\"exitCode\":-1,\"signal\":15,\"reason\":\"Error\",\"message\":\"m\"}}},"
	"{\"name\":\"side\",\"state\":{\"terminated\":{\"exitCode\":128,\"reason\":\"StartError\","
	"\"message\":\"exec: x\"}}}]}}";

static const char bare[] = "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"}}";

static void same(const char *a, const char *b)
{
	assert_true((a == NULL) == (b == NULL));
	if (a != NULL)
		assert_string_equal(a, b);
}

static void same_option(const struct hf_opt_int *a, const struct hf_opt_int *b)
{
	assert_int_equal(a->set, b->set);
	assert_int_equal(a->value, b->value);
}

static void same_texts(const char *const *a, size_t a_len, const char *const *b, size_t b_len)
{
	assert_int_equal(a_len, b_len);
	for (size_t i = 0; i < a_len; i++)
		same(a[i], b[i]);
}

static void same_container(const struct hf_container_seen *a, const struct hf_container_seen *b)
{
	same(a->name, b->name);
	assert_int_equal(a->init, b->init);
	assert_int_equal(a->again, b->again);
	assert_int_equal(a->restart_count, b->restart_count);
	assert_int_equal(a->phase, b->phase);
	same(a->waiting_reason, b->waiting_reason);
	same(a->waiting_message, b->waiting_message);
	assert_int_equal(a->exit_code, b->exit_code);
	assert_int_equal(a->signal, b->signal);
	same(a->terminated_reason, b->terminated_reason);
	same(a->terminated_message, b->terminated_message);
	assert_int_equal(a->finished_at, b->finished_at);
	assert_int_equal(a->started_at, b->started_at);
	same_option(&a->last_exit_code, &b->last_exit_code);
	assert_int_equal(a->last_signal, b->last_signal);
	same(a->last_reason, b->last_reason);
	same(a->last_message, b->last_message);
}

static void same_pod(const struct hf_pod *a, const struct hf_pod *b)
{
	same(a->name, b->name);
	same(a->uid, b->uid);
	same(a->resource_version, b->resource_version);
	assert_int_equal(a->owned, b->owned);
	same(a->maker, b->maker);
	assert_int_equal(a->stamped, b->stamped);
	assert_int_equal(a->generation, b->generation);
	assert_int_equal(a->attempt, b->attempt);
	assert_int_equal(a->incident, b->incident);
	same(a->avoids, b->avoids);
	same(a->stopped, b->stopped);
	same(a->spec, b->spec);
	same_option(&a->active_deadline_seconds, &b->active_deadline_seconds);
	same_option(&a->grace_seconds, &b->grace_seconds);
	assert_int_equal(a->phase, b->phase);
	same(a->reason, b->reason);
	same(a->message, b->message);
	assert_int_equal(a->creation_time, b->creation_time);
	assert_int_equal(a->start_time, b->start_time);
	assert_int_equal(a->deletion_time, b->deletion_time);
	assert_int_equal(a->deleted_at, b->deleted_at);
	assert_int_equal(a->bound_at, b->bound_at);
	same(a->node, b->node);
	assert_int_equal(a->news_at, b->news_at);
	assert_int_equal(a->unwell_at, b->unwell_at);
	same_option(&a->tolerates_unreachable, &b->tolerates_unreachable);
	assert_int_equal(a->forced, b->forced);
	same_texts(a->claims, a->claims_len, b->claims, b->claims_len);
	same_texts(a->finalizers, a->finalizers_len, b->finalizers, b->finalizers_len);
	assert_int_equal(a->containers_len, b->containers_len);
	for (size_t i = 0; i < a->containers_len; i++)
		same_container(&a->containers[i], &b->containers[i]);
	assert_int_equal(a->conditions_len, b->conditions_len);
	for (size_t i = 0; i < a->conditions_len; i++) {
		same(a->conditions[i].type, b->conditions[i].type);
		same(a->conditions[i].status, b->conditions[i].status);
		same(a->conditions[i].reason, b->conditions[i].reason);
		same(a->conditions[i].message, b->conditions[i].message);
	}
	assert_int_equal(a->devices_len, b->devices_len);
	for (size_t i = 0; i < a->devices_len; i++) {
		same(a->devices[i].id, b->devices[i].id);
		same(a->devices[i].cls, b->devices[i].cls);
		assert_int_equal(a->devices[i].agent, b->devices[i].agent);
		assert_int_equal(a->devices[i].fatal, b->devices[i].fatal);
		assert_int_equal(a->devices[i].over, b->devices[i].over);
		assert_int_equal(a->devices[i].held, b->devices[i].held);
		assert_int_equal(a->devices[i].first, b->devices[i].first);
		assert_int_equal(a->devices[i].last, b->devices[i].last);
	}
}

static void test_a_view_says_of_a_pod_what_its_document_does(void **state)
{
	static const char *const texts[] = {running, full, bare};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(ARENA_MAX);
		HF_AUTO_DOC doc = hf_doc_from_text(texts[i], strlen(texts[i]));
		struct hf_view *view = hf_view_of_pod(doc, arena);
		struct hf_pod read, seen;
		const char *uid = hf_pod_read(doc, NULL, arena, &read);

		hf_view_pod(view, arena, &seen);
		same_pod(&seen, &read);
		same(view->controller_uid, uid);
		hf_view_unref(view);
	}
}

static void test_the_full_pod_has_every_field_set(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_MAX);
	HF_AUTO_DOC doc = hf_doc_from_text(full, strlen(full));
	struct hf_pod pod;

	(void)hf_pod_read(doc, NULL, arena, &pod);
	assert_true(pod.stamped && pod.forced && pod.tolerates_unreachable.set);
	assert_int_equal(pod.grace_seconds.value, 60);
	assert_int_equal(pod.incident, 70000);
	assert_int_equal(pod.claims_len, 1);
	assert_int_equal(pod.finalizers_len, 2);
	assert_int_equal(pod.containers_len, 3);
	assert_int_equal(pod.containers[1].last_exit_code.value, -1);
	assert_string_equal(pod.containers[2].terminated_message, "exec: x");
	assert_int_equal(pod.containers[1].again, HF_AGAIN_ON_FAILURE);
	assert_true(pod.creation_time < 0);
}

static void test_a_view_needs_neither_document_nor_arena_it_was_made_with(void **state)
{
	struct hf_arena *arena = hf_arena_create(ARENA_MAX);
	struct hf_doc *doc = hf_doc_from_text(running, strlen(running));
	struct hf_view *view = hf_view_of_pod(doc, arena), *second = hf_view_ref(view);
	struct hf_pod pod;

	hf_doc_unref(doc);
	hf_arena_destroy(arena);
	hf_view_unref(view);
	arena = hf_arena_create(ARENA_MAX);
	hf_view_pod(second, arena, &pod);
	assert_string_equal(pod.name, "ddp-worker-1");
	assert_string_equal(pod.conditions[1].type, "Ready");
	assert_string_equal(second->node, "node-17");
	hf_arena_destroy(arena);
	hf_view_unref(second);
	hf_view_unref(NULL);
}

static void test_a_view_says_of_a_service_what_its_document_does(void **state)
{
	static const char *const texts[] = {running, full, bare};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(ARENA_MAX);
		HF_AUTO_DOC doc = hf_doc_from_text(texts[i], strlen(texts[i]));
		struct hf_view *view = hf_view_of_service(doc, arena);
		struct hf_service_seen read, seen;
		const char *uid = hf_service_read(doc, NULL, arena, &read);

		hf_view_service(view, &seen);
		same(seen.name, read.name);
		same(seen.uid, read.uid);
		same(seen.resource_version, read.resource_version);
		assert_int_equal(seen.owned, read.owned);
		assert_int_equal(seen.terminating, read.terminating);
		same(view->controller_uid, uid);
		hf_view_unref(view);
	}
}

/* The operator holds ten thousands of pods.  A change that needs more bytes for each pod must raise
 * these numbers. */
static void test_a_pod_takes_so_many_bytes(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_MAX);
	HF_AUTO_DOC doc = hf_doc_from_text(running, strlen(running));
	struct hf_view *view = hf_view_of_pod(doc, arena);

	assert_true(malloc_usable_size(view) <= 264);
	hf_view_unref(view);
	view = hf_view_of_service(doc, arena);
	assert_true(malloc_usable_size(view) <= 168);
	hf_view_unref(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_view_says_of_a_pod_what_its_document_does),
		cmocka_unit_test(test_the_full_pod_has_every_field_set),
		cmocka_unit_test(test_a_view_needs_neither_document_nor_arena_it_was_made_with),
		cmocka_unit_test(test_a_view_says_of_a_service_what_its_document_does),
		cmocka_unit_test(test_a_pod_takes_so_many_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
