/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/pod.h"

#include "harness/test.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)

static struct hf_doc *parse(const char *text)
{
	struct hf_doc *doc = NULL;
	struct hf_error err;

	assert_ok(hf_doc_parse(text, strlen(text), NULL, &doc, &err), &err);
	return doc;
}

static struct hf_doc *from_text(const char *text)
{
	return hf_doc_from_text(text, strlen(text));
}

static const char pod_text[] =
	"{\"metadata\":{\"name\":\"j-worker-1\",\"uid\":\"p\",\"resourceVersion\":\"9\","
	"\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"deletionTimestamp\":\"2026-01-02T03:05:05Z\","
	"\"deletionGracePeriodSeconds\":30,\"ownerReferences\":[{\"uid\":\"other\"},{\"uid\":\"job\",\"controller\":true,"
	"\"kind\":\"PyTorchJob\",\"name\":\"j\",\"apiVersion\":\"kubeflow.org/v1\"}],"
	"\"annotations\":{\"holdfast.dev/generation\":\"2\",\"holdfast.dev/attempt\":\"1\","
	"\"holdfast.dev/incident\":\"0\"}},\"spec\":{\"nodeName\":\"n\",\"restartPolicy\":\"Always\",\"initContainers\":["
	"{\"name\":\"i\"},{\"name\":\"log\",\"restartPolicy\":\"Always\"}]},"
	"\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low\","
	"\"startTime\":\"2026-01-02T03:04:07Z\","
	"\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":\"r\"}],"
	"\"initContainerStatuses\":[{\"name\":\"i\",\"restartCount\":1,"
	"\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off 10s\"}},"
	"\"lastState\":{\"terminated\":{\"exitCode\":143,\"signal\":15}}},"
	"{\"name\":\"log\",\"restartCount\":4,\"state\":{\"running\":{}}}],"
	"\"containerStatuses\":[{\"name\":\"pytorch\",\"restartCount\":2,\"state\":{\"terminated\":"
	"{\"exitCode\":137,\"signal\":9,\"reason\":\"OOMKilled\","
	"\"finishedAt\":\"2026-01-02T03:04:06Z\"}}},"
	"{\"name\":\"side\",\"state\":{\"running\":{\"startedAt\":\"2026-01-02T03:04:06Z\"}}}]}}";

static void read_whole(struct hf_doc *doc)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
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
	assert_int_equal(pod.deleted_at - pod.creation_time, 30 * HF_SECOND);
	assert_int_equal(pod.bound_at, HF_TIME_NONE);
	assert_int_equal(pod.start_time - pod.creation_time, 2 * HF_SECOND);
	assert_int_equal(pod.conditions_len, 1);
	assert_int_equal(pod.containers_len, 4);
	assert_true(pod.containers[0].init);
	assert_int_equal(pod.containers[0].restart_count, 1);
	assert_string_equal(pod.containers[0].waiting_reason, "CrashLoopBackOff");
	assert_string_equal(pod.containers[0].waiting_message, "back-off 10s");
	assert_true(pod.containers[0].last_exit_code.set);
	assert_int_equal(pod.containers[0].last_exit_code.value, 143);
	assert_int_equal(pod.containers[0].last_signal, 15);
	/* An init container that succeeds is not restarted, even under restartPolicy Always. */
	assert_int_equal(pod.containers[0].again, HF_AGAIN_ON_FAILURE);
	assert_int_equal(pod.containers[2].again, HF_AGAIN_ALWAYS);
	/* The kubelet restarts a sidecar by itself, so the termination of a sidecar is not its
	 * end. */
	assert_true(pod.containers[1].init);
	assert_int_equal(pod.containers[1].again, HF_AGAIN_NEVER);
	assert_int_equal(pod.containers[1].restart_count, 0);
	assert_false(pod.containers[2].last_exit_code.set);
	assert_int_equal(pod.containers[2].exit_code, 137);
	assert_int_equal(pod.containers[2].signal, 9);
	assert_int_equal(pod.containers[2].finished_at - pod.creation_time, HF_SECOND);
	assert_int_equal(pod.containers[3].phase, HF_CONTAINER_RUNNING);
}

static void a_pod_is_read_whole_from_tree_and_text(void **state)
{
	HF_AUTO_DOC tree = parse(pod_text);
	HF_AUTO_DOC text = from_text(pod_text);

	read_whole(tree);
	read_whole(text);
}

/* The container runtime or the program writes the message of a termination. A message of 4 KiB
 * keeps its beginning and end. */
static void the_message_of_a_termination_is_kept(void **state)
{
#define ENDED(reason)                                                                              \
	"{\"name\":\"a\",\"state\":{\"terminated\":{\"exitCode\":128,\"reason\":\"" reason         \
	"\",\"message\":\"exec: x\"}}}"
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc =
		parse("{\"metadata\":{\"name\":\"p\"},\"status\":{\"containerStatuses\":[" ENDED(
			"StartError") "," ENDED("Error") "]}}");
	struct hf_pod pod;

	hf_pod_read(doc, "job", arena, &pod);
	assert_int_equal(pod.containers_len, 2);
	assert_string_equal(pod.containers[0].terminated_message, "exec: x");
	assert_string_equal(pod.containers[1].terminated_message, "exec: x");
}

static void a_long_message_of_a_program_is_shortened(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	char text[4600], long_message[4097];
	HF_AUTO_DOC doc = NULL;
	struct hf_pod pod;

	memset(long_message, 'x', sizeof(long_message) - 1);
	long_message[sizeof(long_message) - 1] = '\0';
	snprintf(
		text, sizeof(text),
		"{\"metadata\":{\"name\":\"p\"},\"status\":{\"containerStatuses\":[{\"name\":\"a\","
		"\"state\":{\"running\":{}},\"lastState\":{\"terminated\":{\"exitCode\":1,"
		"\"message\":\"%s\"}}}]}}",
		long_message);
	doc = parse(text);
	hf_pod_read(doc, "job", arena, &pod);
	assert_true(strlen(pod.containers[0].last_message) <= 400);
}

static void a_pod_of_another_owner_is_not_owned(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = parse(pod_text);
	struct hf_pod pod;

	/* An owner reference counts as the controller only with controller: true. */
	hf_pod_read(doc, "other", arena, &pod);
	assert_false(pod.owned);
}

static const char *maker_of(struct hf_arena *arena, const char *pod, const char *owner)
{
	char text[512];
	struct hf_pod read;

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{%s,\"uid\":\"u\"}]}}", pod,
		 owner);
	HF_AUTO_DOC doc = from_text(text);

	hf_pod_read(doc, "job", arena, &read);
	assert_false(read.owned);
	return read.maker == NULL ? NULL : hf_arena_strdup(arena, read.maker);
}

static void the_owner_of_a_rank_is_read_from_controller_and_name(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	static const char ddp[] = "\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\","
				  "\"name\":\"ddp\",\"controller\":true";
	static const char other[] = "\"apiVersion\":\"apps/v1\",\"kind\":\"PyTorchJob\","
				    "\"name\":\"ddp\",\"controller\":true";
	static const char owner[] = "\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\","
				    "\"name\":\"ddp\"";

	(void)state;
	assert_string_equal(maker_of(arena, "ddp-worker-1", ddp), "PyTorchJob");
	assert_string_equal(maker_of(arena, "ddp-launcher", ddp), "PyTorchJob");
	assert_null(maker_of(arena, "ddp-b-worker-1", ddp));
	assert_null(maker_of(arena, "dd-worker-1", ddp));
	assert_null(maker_of(arena, "ddp", ddp));
	assert_null(maker_of(arena, "ddp-worker-1", other));
	assert_null(maker_of(arena, "ddp-worker-1", owner));
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

static void an_empty_pod_is_pending_and_has_no_owner(void **state)
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
	assert_int_equal(pod.deleted_at, HF_TIME_NONE);
}

static void fields_of_a_wrong_type_are_absent_and_the_rest_is_read(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc =
		from_text("{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"yesterday\","
			  "\"ownerReferences\":[7,{\"uid\":\"job\",\"controller\":true}]},"
			  "\"spec\":\"none\",\"status\":{\"phase\":\"Failed\",\"reason\":[],"
			  "\"conditions\":[{\"type\":\"Ready\",\"status\":true},\"x\"],"
			  "\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":4294967296,"
			  "\"state\":{\"terminated\":{\"exitCode\":3,\"signal\":\"9\"}}}]}}");
	struct hf_pod pod;

	assert_string_equal(hf_pod_read(doc, "job", arena, &pod), "job");
	assert_true(pod.owned);
	assert_int_equal(pod.creation_time, HF_TIME_NONE);
	assert_int_equal(pod.start_time, HF_TIME_NONE);
	assert_null(pod.node);
	assert_int_equal(pod.phase, HF_POD_FAILED);
	assert_null(pod.reason);
	assert_int_equal(pod.conditions_len, 2);
	assert_string_equal(pod.conditions[0].type, "Ready");
	assert_string_equal(pod.conditions[0].status, "");
	assert_string_equal(pod.conditions[1].type, "");
	assert_int_equal(pod.containers_len, 1);
	assert_int_equal(pod.containers[0].restart_count, 0);
	assert_int_equal(pod.containers[0].phase, HF_CONTAINER_TERMINATED);
	assert_int_equal(pod.containers[0].exit_code, 3);
	assert_int_equal(pod.containers[0].signal, 0);
	assert_int_equal(pod.containers[0].finished_at, HF_TIME_NONE);
}

static void broken_text_has_no_fields(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = from_text("{\"metadata\":{\"name\":\"a\"},\"status\":{\"phase\":");
	struct hf_pod pod;

	assert_null(hf_pod_read(doc, NULL, arena, &pod));
	assert_string_equal(pod.name, "a");
	assert_int_equal(pod.phase, HF_POD_PENDING);
	assert_false(pod.owned);
}

static void no_tree_is_made_of_a_text(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = from_text(pod_text);
	struct hf_service_seen service;
	struct hf_pod pod;

	hf_pod_read(doc, NULL, arena, &pod);
	hf_service_read(doc, NULL, arena, &service);
	assert_true(pod.owned && service.owned);
	assert_false(hf_doc_has_tree(doc));
}

static int64_t tolerated(const char *list)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_pod pod;

	hf_strbuf_addf(&text, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"tolerations\":[%s]}}",
		       list);
	HF_AUTO_DOC doc = from_text(text.data);
	hf_pod_read(doc, NULL, arena, &pod);
	return pod.tolerates_unreachable.set ? pod.tolerates_unreachable.value : -1;
}

#define UNREACHABLE "{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\""

static void tolerations_of_a_lost_node_are_read_as_taint_eviction_reads_them(void **state)
{
	assert_int_equal(tolerated(""), -1);
	assert_int_equal(tolerated(UNREACHABLE ",\"effect\":\"NoSchedule\"}"), -1);
	assert_int_equal(tolerated("{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":"
				   "\"Exists\",\"effect\":\"NoExecute\"}"),
			 -1);
	assert_int_equal(tolerated(UNREACHABLE ",\"effect\":\"NoExecute\","
					       "\"tolerationSeconds\":300}"),
			 300);
	assert_int_equal(tolerated(UNREACHABLE "}"), INT64_MAX);
	assert_int_equal(tolerated("{\"operator\":\"Exists\"}"), INT64_MAX);
	/* A toleration without an operator has operator Equal. It matches, because the taint's
	 * value is empty. */
	assert_int_equal(tolerated("{\"key\":\"node.kubernetes.io/unreachable\"}"), INT64_MAX);
	assert_int_equal(tolerated("{\"key\":\"node.kubernetes.io/unreachable\",\"value\":\"x\"}"),
			 -1);
	assert_int_equal(tolerated("{\"operator\":\"Equal\"}"), -1);
	/* If several tolerations match, the shortest counts. A negative time counts as 0. */
	assert_int_equal(tolerated("{\"operator\":\"Exists\"}," UNREACHABLE
				   ",\"tolerationSeconds\":600}," UNREACHABLE
				   ",\"tolerationSeconds\":900}"),
			 600);
	assert_int_equal(tolerated(UNREACHABLE ",\"tolerationSeconds\":-5}"), 0);
}

static void claims_are_those_of_volumes_and_of_ephemeral_ones(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = from_text(
		"{\"metadata\":{\"name\":\"a-worker-0\"},\"spec\":{\"volumes\":["
		"{\"name\":\"tmp\",\"emptyDir\":{}},"
		"{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":\"shared\"}},"
		"{\"name\":\"none\",\"persistentVolumeClaim\":{}},"
		"{\"name\":\"scratch\",\"ephemeral\":{\"volumeClaimTemplate\":{}}}]}}");
	struct hf_pod pod;

	hf_pod_read(doc, NULL, arena, &pod);
	assert_int_equal(pod.claims_len, 2);
	assert_string_equal(pod.claims[0], "shared");
	assert_string_equal(pod.claims[1], "a-worker-0-scratch");
	assert_false(hf_doc_has_tree(doc));
}

static void what_keeps_a_deleted_pod_is_told(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = from_text("{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":"
				    "\"2026-01-02T03:05:05Z\",\"deletionGracePeriodSeconds\":0,"
				    "\"finalizers\":[\"a.example/one\",\"b.example/two\"]}}");
	HF_AUTO_DOC waiting = from_text("{\"metadata\":{\"deletionGracePeriodSeconds\":30}}");
	struct hf_pod pod;

	hf_pod_read(doc, NULL, arena, &pod);
	assert_true(pod.forced);
	assert_int_equal(pod.finalizers_len, 2);
	assert_string_equal(pod.finalizers[1], "b.example/two");
	hf_pod_read(waiting, NULL, arena, &pod);
	assert_false(pod.forced);
	assert_int_equal(pod.finalizers_len, 0);
}

static void a_grace_that_cannot_be_tells_no_time(void **state)
{
	static const char *const graces[] = {"-1", "9223372036854775807", "4294967296"};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	char text[256];
	struct hf_pod pod;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(graces); i++) {
		snprintf(text, sizeof(text),
			 "{\"metadata\":{\"deletionTimestamp\":\"2026-01-02T03:05:05Z\","
			 "\"deletionGracePeriodSeconds\":%s}}",
			 graces[i]);
		HF_AUTO_DOC doc = from_text(text);

		hf_pod_read(doc, NULL, arena, &pod);
		assert_int_not_equal(pod.deletion_time, HF_TIME_NONE);
		assert_int_equal(pod.deleted_at, HF_TIME_NONE);
	}
	/* The deletionTimestamp is the earliest time that hf_time can hold. */
	HF_AUTO_DOC doc = from_text("{\"metadata\":{\"deletionTimestamp\":\"1677-09-21T00:12:44Z\","
				    "\"deletionGracePeriodSeconds\":2147483648}}");

	hf_pod_read(doc, NULL, arena, &pod);
	assert_true(pod.deleted_at == HF_TIME_NONE || pod.deleted_at <= pod.deletion_time);
}

/* A pod was bound when condition PodScheduled became True. Condition PodScheduled with status False
 * or without a time, and other conditions, tell no time. */
static void when_it_was_bound_is_told_by_the_condition_that_is_true(void **state)
{
	static const struct {
		const char *conditions;
		hf_time at;
	} cases[] = {
		{"{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":"
		 "\"1970-01-01T00:01:00Z\"}",
		 HF_MINUTE},
		{"{\"type\":\"PodScheduled\",\"status\":\"False\",\"lastTransitionTime\":"
		 "\"1970-01-01T00:01:00Z\"}",
		 HF_TIME_NONE},
		{"{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":"
		 "\"1970-01-01T00:01:00Z\"}",
		 HF_TIME_NONE},
		{"{\"type\":\"PodScheduled\",\"status\":\"True\"}", HF_TIME_NONE},
	};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	char text[256];
	struct hf_pod pod;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		snprintf(text, sizeof(text), "{\"status\":{\"conditions\":[%s]}}",
			 cases[i].conditions);
		HF_AUTO_DOC doc = from_text(text);

		hf_pod_read(doc, NULL, arena, &pod);
		assert_int_equal(pod.bound_at, cases[i].at);
	}
}

static void a_service_names_its_owner_and_whether_it_is_being_deleted(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = parse(pod_text);
	struct hf_service_seen service;

	assert_string_equal(hf_service_read(doc, "job", arena, &service), "job");
	assert_true(service.owned);
	assert_true(service.terminating);
	assert_string_equal(hf_controller_uid(doc, arena), "job");
	assert_true(hf_is_terminating(doc, arena));
}

static void what_a_delete_answers_tells_whether_the_object_is_gone(void **state)
{
	static const struct {
		const char *metadata;
		bool gone;
	} cases[] = {
		{"{}", true}, /* the plugin's last report */
		{"{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}", false},
		{"{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":30}",
		 false},
		{"{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":0}",
		 true},
		{"{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":0,"
		 "\"finalizers\":[\"a.example/one\"]}",
		 false},
	};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = hf_xasprintf("{\"metadata\":%s}", cases[i].metadata);
		HF_AUTO_DOC doc = parse(text);

		assert_int_equal(hf_is_deleted(doc, arena), cases[i].gone);
	}
}

static void read_devices(const char *container, const char *conditions, struct hf_arena *arena,
			 struct hf_pod *ret_pod)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_doc *doc;

	hf_strbuf_addf(
		&text,
		"{\"metadata\":{\"name\":\"p\"},\"status\":{\"containerStatuses\":[{\"name\":"
		"\"a\",\"allocatedResourcesStatus\":%s}],\"conditions\":%s}}",
		container, conditions);
	doc = hf_doc_from_text(text.data, text.len);
	hf_pod_read(doc, NULL, arena, ret_pod);
	hf_doc_unref(doc);
}

static enum hf_container_again read_again(const char *spec)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"metadata\":{\"name\":\"p\"},\"spec\":{%s},\"status\":{\"phase\":\"Running\","
		"\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"terminated\":{\"exitCode\":3}}},"
		"{\"name\":\"d\",\"state\":{\"running\":{}}}]}}",
		spec);
	HF_AUTO_DOC doc = parse(text);
	struct hf_pod pod;

	hf_pod_read(doc, NULL, arena, &pod);
	assert_int_equal(pod.containers_len, 2);
	return pod.containers[0].again;
}

static void test_a_containers_own_restart_policy_overrides_the_pods(void **state)
{
#define OF(policy) "\"restartPolicy\":\"" policy "\""
#define RULE(action, operator, values)                                                             \
	AND("\"restartPolicyRules\":[{\"action\":\"" action "\",\"exitCodes\":{\"operator\":\""    \
	    operator"\",\"values\":[" values "]}}]")
#define AND(more) ",\"containers\":[{\"name\":\"c\"," more "},{\"name\":\"d\"}]"
	static const struct {
		const char *spec;
		enum hf_container_again again;
	} cases[] = {
		{"\"nodeName\":\"n\"", HF_AGAIN_UNKNOWN},
		{OF("Always"), HF_AGAIN_ALWAYS},
		{OF("OnFailure"), HF_AGAIN_ON_FAILURE},
		{OF("Never"), HF_AGAIN_NEVER},
		{OF("Sometimes"), HF_AGAIN_UNKNOWN},
		{OF("Never") AND(OF("Always")), HF_AGAIN_ALWAYS},
		{OF("Always") AND(OF("Never")), HF_AGAIN_NEVER},
		/* The container ended with 3. */
		{OF("Never") RULE("Restart", "In", "3"), HF_AGAIN_ALWAYS},
		{OF("Never") RULE("RestartAllContainers", "NotIn", "4"), HF_AGAIN_ALWAYS},
		{OF("Never") RULE("Restart", "In", "42"), HF_AGAIN_NEVER},
		{OF("OnFailure") RULE("Restart", "NotIn", "1,3"), HF_AGAIN_ON_FAILURE},
		{OF("Never") RULE("Restart", "Above", "1"), HF_AGAIN_NEVER},
		{OF("Never") RULE("Reboot", "In", "3"), HF_AGAIN_UNKNOWN},
		{OF("Never") AND("\"restartPolicyRules\":[{\"action\":\"Restart\"}]"),
		 HF_AGAIN_NEVER},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		assert_int_equal(read_again(cases[i].spec), cases[i].again);
}

static void test_a_pod_that_the_operator_has_ended_says_so(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = parse("{\"metadata\":{\"name\":\"p\",\"annotations\":{"
				"\"holdfast.dev/stopped\":\"JobFailed\"}},"
				"\"spec\":{\"activeDeadlineSeconds\":1}}");
	HF_AUTO_DOC plain = parse("{\"metadata\":{\"name\":\"p\"}}");
	struct hf_pod pod;

	(void)state;
	hf_pod_read(doc, NULL, arena, &pod);
	assert_string_equal(pod.stopped, "JobFailed");
	assert_true(pod.active_deadline_seconds.set);
	assert_int_equal(pod.active_deadline_seconds.value, 1);
	hf_pod_read(plain, NULL, arena, &pod);
	assert_null(pod.stopped);
	assert_false(pod.active_deadline_seconds.set);
}

static void test_only_unhealthy_tells_of_a_device(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_pod pod;

	(void)state;
	read_devices(
		"[{\"name\":\"nvidia.com/gpu\",\"resources\":[{\"resourceID\":\"g0\",\"health\":"
		"\"Healthy\"},{\"resourceID\":\"g1\",\"health\":\"Unhealthy\"},{\"resourceID\":"
		"\"g2\"}]},{\"name\":\"claim:c/r\",\"resources\":[{\"resourceID\":\"d/p/x\","
		"\"health\":\"Unhealthy\"},{\"resourceID\":\"d/p/y\",\"health\":\"Unknown\"}]}]",
		"[]", arena, &pod);
	assert_int_equal(pod.devices_len, 2);
	assert_string_equal(pod.devices[0].id, "g1");
	assert_string_equal(pod.devices[1].id, "d/p/x");
	assert_string_equal(pod.devices[1].cls, HF_DEVICE_UNHEALTHY);
	assert_true(pod.devices[0].fatal && pod.devices[0].held && !pod.devices[0].agent);
	assert_int_equal(pod.devices[0].first, HF_TIME_NONE);
	read_devices("[]", "[]", arena, &pod);
	assert_int_equal(pod.devices_len, 0);
	read_devices("{\"resources\":7}", "[7]", arena, &pod);
	assert_int_equal(pod.devices_len, 0);
}

static void test_the_agents_condition_tells_class_and_device(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_pod pod;

	(void)state;
	read_devices("[]",
		     "[{\"type\":\"holdfast.dev/DeviceHealthy\",\"status\":\"False\",\"reason\":"
		     "\"GpuReset\",\"message\":\"0000:1a:00.0 Unhealthy (xid 119)\"}]",
		     arena, &pod);
	assert_int_equal(pod.devices_len, 1);
	assert_string_equal(pod.devices[0].id, "0000:1a:00.0");
	assert_string_equal(pod.devices[0].cls, "gpu-reset");
	assert_true(pod.devices[0].agent && pod.devices[0].fatal);
	read_devices("[]", "[{\"type\":\"holdfast.dev/DeviceHealthy\",\"status\":\"True\"}]", arena,
		     &pod);
	assert_int_equal(pod.devices_len, 0);
	read_devices("[]", "[{\"type\":\"holdfast.dev/DeviceHealthy\",\"status\":\"False\"}]",
		     arena, &pod);
	assert_int_equal(pod.devices_len, 1);
	assert_string_equal(pod.devices[0].cls, HF_DEVICE_UNHEALTHY);
	assert_true(pod.devices[0].id[0] != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_containers_own_restart_policy_overrides_the_pods),
		cmocka_unit_test(test_a_pod_that_the_operator_has_ended_says_so),
		cmocka_unit_test(test_only_unhealthy_tells_of_a_device),
		cmocka_unit_test(test_the_agents_condition_tells_class_and_device),
		cmocka_unit_test(a_pod_is_read_whole_from_tree_and_text),
		cmocka_unit_test(the_message_of_a_termination_is_kept),
		cmocka_unit_test(a_long_message_of_a_program_is_shortened),
		cmocka_unit_test(a_pod_of_another_owner_is_not_owned),
		cmocka_unit_test(the_owner_of_a_rank_is_read_from_controller_and_name),
		cmocka_unit_test(stamps_count_together_or_not_at_all),
		cmocka_unit_test(an_empty_pod_is_pending_and_has_no_owner),
		cmocka_unit_test(what_a_delete_answers_tells_whether_the_object_is_gone),
		cmocka_unit_test(fields_of_a_wrong_type_are_absent_and_the_rest_is_read),
		cmocka_unit_test(broken_text_has_no_fields),
		cmocka_unit_test(no_tree_is_made_of_a_text),
		cmocka_unit_test(tolerations_of_a_lost_node_are_read_as_taint_eviction_reads_them),
		cmocka_unit_test(claims_are_those_of_volumes_and_of_ephemeral_ones),
		cmocka_unit_test(what_keeps_a_deleted_pod_is_told),
		cmocka_unit_test(a_grace_that_cannot_be_tells_no_time),
		cmocka_unit_test(when_it_was_bound_is_told_by_the_condition_that_is_true),
		cmocka_unit_test(a_service_names_its_owner_and_whether_it_is_being_deleted),
	};

	return cmocka_run_group_tests_name("pod", tests, NULL, NULL);
}
