/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/pod.h"

#include "harness/test.h"

#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)

static struct hf_doc *parse(const char *text)
{
	struct hf_doc *doc = NULL;
	struct hf_error err;

	assert_ok(hf_doc_parse(text, strlen(text), NULL, &doc, &err), &err);
	return doc;
}

static const char pod_text[] =
	"{\"metadata\":{\"name\":\"j-worker-1\",\"uid\":\"p\",\"resourceVersion\":\"9\","
	"\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"deletionTimestamp\":\"2026-01-02T03:05:05Z\","
	"\"ownerReferences\":[{\"uid\":\"other\"},{\"uid\":\"job\",\"controller\":true,"
	"\"kind\":\"PyTorchJob\",\"name\":\"j\",\"apiVersion\":\"kubeflow.org/v1\"}],"
	"\"annotations\":{\"holdfast.dev/generation\":\"2\",\"holdfast.dev/attempt\":\"1\","
	"\"holdfast.dev/incident\":\"0\"}},\"spec\":{\"nodeName\":\"n\"},"
	"\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low\","
	"\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":\"r\"}],"
	"\"initContainerStatuses\":[{\"name\":\"i\",\"restartCount\":1,"
	"\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}],"
	"\"containerStatuses\":[{\"name\":\"pytorch\",\"restartCount\":2,\"state\":{\"terminated\":"
	"{\"exitCode\":137,\"signal\":9,\"reason\":\"OOMKilled\","
	"\"finishedAt\":\"2026-01-02T03:04:06Z\"}}},"
	"{\"name\":\"side\",\"state\":{\"running\":{\"startedAt\":\"2026-01-02T03:04:06Z\"}}}]}}";

static void a_pod_is_read_whole(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = parse(pod_text);
	struct hf_pod pod;

	hf_pod_read(doc, "job", arena, &pod);
	assert_string_equal(pod.name, "j-worker-1");
	assert_true(pod.owned);
	assert_true(pod.stamped);
	assert_int_equal(pod.generation, 2);
	assert_int_equal(pod.attempt, 1);
	assert_int_equal(pod.phase, HF_POD_FAILED);
	assert_string_equal(pod.reason, "Evicted");
	assert_string_equal(pod.node, "n");
	assert_int_equal(pod.deletion_time - pod.creation_time, HF_MINUTE);
	assert_int_equal(pod.conditions_len, 1);
	assert_int_equal(pod.containers_len, 3);
	assert_true(pod.containers[0].init);
	assert_string_equal(pod.containers[0].waiting_reason, "CrashLoopBackOff");
	assert_int_equal(pod.containers[1].exit_code, 137);
	assert_int_equal(pod.containers[1].signal, 9);
	assert_int_equal(pod.containers[1].finished_at - pod.creation_time, HF_SECOND);
	assert_int_equal(pod.containers[2].phase, HF_CONTAINER_RUNNING);
}

static void a_pod_of_another_owner_is_not_owned(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = parse(pod_text);
	struct hf_pod pod;

	/* An ownerReference that is no controller's does not count. */
	hf_pod_read(doc, "other", arena, &pod);
	assert_false(pod.owned);
}

static void stamps_count_together_or_not_at_all(void **state)
{
	static const char *const broken[] = {
		"{}",
		"{\"holdfast.dev/generation\":\"2\",\"holdfast.dev/attempt\":\"1\"}",
		"{\"holdfast.dev/generation\":\"2\",\"holdfast.dev/attempt\":\"-1\","
		"\"holdfast.dev/incident\":\"0\"}",
		"{\"holdfast.dev/generation\":\"2x\",\"holdfast.dev/attempt\":\"1\","
		"\"holdfast.dev/incident\":\"0\"}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(broken); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
		struct hf_pod pod;
		hf_strbuf_addf(&text, "{\"metadata\":{\"name\":\"a\",\"annotations\":%s}}",
			       broken[i]);
		HF_AUTO_DOC doc = parse(text.data);
		hf_pod_read(doc, "job", arena, &pod);
		assert_false(pod.stamped);
		assert_int_equal(pod.generation, 0);
	}
}

static void an_empty_pod_is_pending_and_of_nobody(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = parse("{\"status\":{\"containerStatuses\":{},\"conditions\":7}}");
	struct hf_pod pod;

	hf_pod_read(doc, "job", arena, &pod);
	assert_int_equal(pod.phase, HF_POD_PENDING);
	assert_false(pod.owned);
	assert_int_equal(pod.containers_len, 0);
	assert_int_equal(pod.conditions_len, 0);
	assert_int_equal(pod.deletion_time, HF_TIME_NONE);
}

static void a_service_tells_whose_it_is_and_whether_it_goes(void **state)
{
	HF_AUTO_DOC doc = parse(pod_text);
	struct hf_service_seen service;
	const char *api_version, *kind, *name, *uid;

	hf_service_read(doc, "job", &service);
	assert_true(service.owned);
	assert_true(service.terminating);
	assert_string_equal(hf_controller_uid(doc), "job");
	assert_true(hf_controller_ref(doc, &api_version, &kind, &name, &uid));
	assert_string_equal(kind, "PyTorchJob");
	assert_string_equal(name, "j");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_read_whole),
		cmocka_unit_test(a_pod_of_another_owner_is_not_owned),
		cmocka_unit_test(stamps_count_together_or_not_at_all),
		cmocka_unit_test(an_empty_pod_is_pending_and_of_nobody),
		cmocka_unit_test(a_service_tells_whose_it_is_and_whether_it_goes),
	};

	return cmocka_run_group_tests_name("pod", tests, NULL, NULL);
}
