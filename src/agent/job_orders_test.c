/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/job_orders.h"

#include "base/mem.h"
#include "harness/test.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

#define META "\"metadata\":{\"name\":\"job\",\"uid\":\"u1\"}"

static struct hf_json *parse(const char *text)
{
	struct hf_json *value = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), NULL, &value, &err), &err);
	return value;
}

/* Expects this target, as a line, for rank worker-7 of a pod that was created for generation 2 and attempt 1;
 * listed: its process is published. */
static void expect_of(const char *job_text, bool listed, const char *wanted)
{
	HF_AUTO_JSON job = parse(job_text);
	struct hf_job_orders *orders = hf_job_orders_read(job);
	const struct hf_pod_rank rank = {.kind = &hf_pytorchjobs,
					 .job = "job",
					 .job_uid = "u1",
					 .type = "worker",
					 .index = 7,
					 .generation = 2,
					 .attempt = 1,
					 .grace_s = 30};
	struct hf_process_target target;
	char line[HF_PROCESS_LINE_BYTES_MAX];
	bool is_listed = hf_job_orders_target(orders, &rank, &target);

	(void)hf_process_target_format(&target, line);
	if (is_listed != listed || strcmp(line, wanted) != 0)
		fail_msg("%s gave %s", job_text, line);
	hf_job_orders_destroy(orders);
}

static void expect(const char *job_text, const char *wanted)
{
	expect_of(job_text, true, wanted);
}

/* No order, no wait. */
static void expect_none(const char *job_text)
{
	expect_of(job_text, false, "target");
}

#define RECOVERY(text) "{" META ",\"status\":{\"recovery\":{" text "}}}"
#define LEDGER(text) RECOVERY("\"generation\":3,\"inPlaceBase\":2,\"inPlaceWaitSeconds\":60," text)
#define WORKERS(text) LEDGER("\"replicas\":{\"Worker\":{" text "}}")
#define ATTEMPTS "\"replicas\":{\"Worker\":{\"attempts\":\"7:1\"}}"
#define LINE(text) "target generation=3 " text " first_generation=2 first_attempt=1 rendezvous=3"
#define LINE2(text) "target generation=2 attempt=1 " text " first_generation=2 first_attempt=1"

static void test_targets(void **state HF_UNUSED)
{
	expect(WORKERS("\"attempts\":\"0:1,7:1\""), LINE("attempt=1 wait=60 grace=30"));
	expect(WORKERS("\"attempts\":\"7:4\",\"inPlace\":\"7:3\",\"hold\":\"0-3,6-8\""),
	       LINE("attempt=4 hold=1 wait=60 grace=30"));
	expect(WORKERS("\"attempts\":\"7:1,17:4\",\"hold\":\"0-6,8,70-79\""),
	       LINE("attempt=1 wait=60 grace=30"));
	/* All pods were created together, for the ledger's generation. */
	expect(RECOVERY("\"generation\":2,\"inPlaceWaitSeconds\":9," ATTEMPTS),
	       LINE2("wait=9 grace=30"));
}

/* The grace of a restart, else that of the pod; ranks save only where the operator asks for it. */
static void test_spans(void **state HF_UNUSED)
{
#define SPANS(more) RECOVERY("\"generation\":2,\"inPlaceWaitSeconds\":9," more "," ATTEMPTS)
	expect(SPANS("\"inPlaceGraceSeconds\":5"), LINE2("wait=9 grace=5"));
	expect(SPANS("\"inPlaceSaveSeconds\":120,\"saveUntil\":\"2026-01-01T00:00:00.000000Z\""),
	       LINE2("wait=9 grace=30 save=120"));
	expect(SPANS("\"inPlaceSaveSeconds\":120"), LINE2("wait=9 grace=30"));
	/* A held rank waits for several repeats of its target.  Without restarts in place no wait is told. */
#define HELD(wait) \
	RECOVERY("\"generation\":2," wait "\"replicas\":{\"Worker\":{\"attempts\":\"7:1\",\"hold\":\"7\"}}")
	expect(HELD("\"inPlaceWaitSeconds\":1,"), LINE2("hold=1 wait=30 grace=30"));
	expect(HELD("\"inPlaceWaitSeconds\":31,"), LINE2("hold=1 wait=31 grace=30"));
	expect(HELD(""), LINE2("hold=1 grace=30"));
}

/* The operator does not count on this pod any more: another pod replaces it, or will.  Such a pod may come back,
 * with its node, after its job has gone on without it; its process must not start. */
static void test_a_pod_that_was_given_up(void **state HF_UNUSED)
{
	static const char held[] = LINE("attempt=2 hold=1 wait=60 grace=30");

	/* The rank was re-created once or more often since this pod was created. */
	expect(WORKERS("\"attempts\":\"7:2\""), held);
	expect(WORKERS("\"attempts\":\"7:4\",\"inPlace\":\"7:2\""),
	       LINE("attempt=4 hold=1 wait=60 grace=30"));
	/* The pod is newer than the ledger that this agent knows. */
	expect(WORKERS("\"attempts\":\"6:1\""), LINE("attempt=0 hold=1 wait=60 grace=30"));
	expect(LEDGER("\"replicas\":{\"Master\":{\"attempts\":\"7:1\",\"inPlace\":\"7:1\"}}"),
	       LINE("attempt=0 hold=1 wait=60 grace=30"));
	/* It restarted once in its pod. */
	expect(WORKERS("\"attempts\":\"7:2\",\"inPlace\":\"7:1\""),
	       LINE("attempt=2 wait=60 grace=30"));
	/* All pods were re-created since. */
	expect(RECOVERY("\"generation\":3,\"inPlaceBase\":3,\"inPlaceWaitSeconds\":60," ATTEMPTS),
	       "target generation=3 attempt=1 hold=1 wait=60 grace=30 first_generation=2 first_attempt=1");
	expect(RECOVERY("\"generation\":3,\"inPlaceWaitSeconds\":60," ATTEMPTS),
	       "target generation=3 attempt=1 hold=1 wait=60 grace=30 first_generation=2 first_attempt=1");
}

static void test_no_restart_in_place(void **state HF_UNUSED)
{
	expect_none("{" META "}");
	expect_none(RECOVERY(""));
	/* The operator knows no restarts in place, or its configuration says Never; the job's own field does not
	 * count without the ledger's. */
	expect(RECOVERY("\"generation\":3,\"inPlaceBase\":2," ATTEMPTS),
	       LINE("attempt=1 grace=30"));
	expect("{" META
	       ",\"spec\":{\"runPolicy\":{\"recovery\":{\"inPlace\":\"Auto\",\"inPlaceWaitSeconds\":9}}},"
	       "\"status\":{\"recovery\":{\"generation\":2,\"inPlaceWaitSeconds\":0," ATTEMPTS
	       "}}}",
	       LINE2("grace=30"));
	/* Another job with this name. */
	expect_none(
		"{\"metadata\":{\"uid\":\"u2\"},\"status\":{\"recovery\":{\"generation\":2,\"inPlaceWaitSeconds\":9}}}");
	expect_none(
		"{\"metadata\":{\"uid\":\"u1\",\"deletionTimestamp\":\"x\"},\"status\":{\"recovery\":{\"generation\":2,"
		"\"inPlaceWaitSeconds\":9}}}");
	expect_none(
		"{" META
		",\"status\":{\"recovery\":{\"generation\":2,\"inPlaceWaitSeconds\":9},\"conditions\":[{\"type\":\"Failed\","
		"\"status\":\"True\"}]}}");
}

/* A ledger that cannot be read gives no orders. */
static void test_broken_texts(void **state HF_UNUSED)
{
	static const char *const broken[] = {
		"\"attempts\":\"7\"",  "\"attempts\":\"7:\"",      "\"attempts\":\"7:1;8:1\"",
		"\"attempts\":\":1\"", "\"attempts\":\"-7:1\"",    "\"attempts\":\"7:99999999999\"",
		"\"hold\":\"7-\"",     "\"hold\":\"a\"",           "\"hold\":\"7 8\"",
		"\"hold\":\"1--2\"",   "\"hold\":\"99999999999\"", "\"inPlace\":\"7:\"",
	};
	char text[512];

	for (size_t i = 0; i < HF_ARRAY_LEN(broken); i++) {
		snprintf(text, sizeof(text), LEDGER("\"replicas\":{\"Worker\":{%s}}"), broken[i]);
		expect_none(text);
	}
	/* A member of the ledger with a wrong JSON type is ignored. */
	expect(LEDGER("\"replicas\":{\"Worker\":{\"attempts\":\"7:1\",\"hold\":[],\"inPlace\":4}}"),
	       LINE("attempt=1 wait=60 grace=30"));
	expect_none("[]");
}

/* The job's CRD has no field for the ledger, so the ledger is in an annotation. */
static void test_annotations(void **state HF_UNUSED)
{
	expect("{\"metadata\":{\"uid\":\"u1\",\"annotations\":{"
	       "\"holdfast.dev/ledger\":\"{\\\"generation\\\":2,\\\"inPlaceWaitSeconds\\\":7,\\\"inPlaceGraceSeconds\\\":4,"
	       "\\\"replicas\\\":{\\\"Worker\\\":{\\\"attempts\\\":\\\"7:1\\\",\\\"hold\\\":\\\"7\\\"}}}\"}}}",
	       LINE2("hold=1 wait=30 grace=4"));
	expect_none(
		"{\"metadata\":{\"uid\":\"u1\",\"annotations\":{\"holdfast.dev/ledger\":\"{\"}}}");
}

#define POD(more)                                                                                                     \
	"{\"metadata\":{\"name\":\"p\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"x\"}," \
	"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"name\":\"job\",\"uid\":\"u1\","                \
	"\"controller\":true}],\"labels\":{\"training.kubeflow.org/replica-type\":\"Worker\","                        \
	"\"training.kubeflow.org/replica-index\":\"7\"},\"annotations\":{\"holdfast.dev/generation\":\"2\","          \
	"\"holdfast.dev/attempt\":\"1\"}}" more "}"

static struct hf_pod_rank rank_of(const char *text)
{
	HF_AUTO_JSON pod = parse(text);
	struct hf_pod_rank rank;

	hf_pod_rank_read(pod, &rank);
	return rank;
}

/* A pod's rank, read from the text of POD("") with one part replaced. */
static struct hf_pod_rank rank_without(const char *part, const char *by)
{
	const char *text = POD(""), *at = strstr(text, part);
	char other[1024];

	assert_non_null(at);
	snprintf(other, sizeof(other), "%.*s%s%s", (int)(at - text), text, by, at + strlen(part));
	return rank_of(other);
}

static void test_pods(void **state HF_UNUSED)
{
	struct hf_pod_rank rank = rank_of(POD(",\"spec\":{\"terminationGracePeriodSeconds\":5}"));

	assert_ptr_equal(rank.kind, &hf_pytorchjobs);
	assert_string_equal(rank.job, "job");
	assert_string_equal(rank.type, "worker");
	assert_int_equal(rank.index, 7);
	assert_int_equal(rank.generation, 2);
	assert_int_equal(rank.attempt, 1);
	assert_int_equal(rank.grace_s, 5);
	assert_false(rank.deleting);
	assert_int_equal(rank_of(POD("")).grace_s, 30);
	assert_null(rank_of("{}").kind);
	assert_null(rank_without("\"controller\":true", "\"controller\":false").kind);
	assert_null(rank_without("PyTorchJob", "ReplicaSet").kind);
	assert_null(rank_without("\"uid\":\"u1\",", "").kind);
	assert_null(rank_without("replica-type", "other").kind);
	assert_int_equal(rank_without("replica-index", "other").index, 0);
	assert_non_null(rank_without("replica-index", "other").kind);
	assert_null(rank_without(":\"7\"", ":\"7x\"").kind);
	assert_null(rank_without("\"2\"", "\"-2\"").kind);
	assert_null(rank_without("\"holdfast.dev/attempt\":\"1\"", "\"a\":\"1\"").kind);
	assert_null(rank_without("\"7\"", "\"99999999999999999999\"").kind);
	assert_true(rank_without("\"name\":\"p\"", "\"deletionTimestamp\":\"x\"").deleting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_a_pod_that_was_given_up),
		cmocka_unit_test(test_no_restart_in_place),
		cmocka_unit_test(test_broken_texts),
		cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_pods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
