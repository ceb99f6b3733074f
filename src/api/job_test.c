/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "base/str.h"
#include "framework/framework.h"
#include "harness/json_text.h"
#include "harness/test.h"

#include <string.h>

#define ARENA_BYTES ((size_t)16 << 20)

struct fixture {
	struct hf_arena *arena;
	struct hf_doc *doc;
	struct hf_field_errors errors;
	struct hf_job_view view;
};

static void read_text(struct fixture *f, const char *text)
{
	struct hf_error err;

	assert_ok(hf_doc_parse(text, strlen(text), NULL, &f->doc, &err), &err);
	f->arena = hf_arena_create(ARENA_BYTES);
	hf_field_errors_init(&f->errors, f->arena);
	hf_job_read(f->doc, &hf_framework_pytorch, NULL, f->arena, &f->errors, &f->view);
}

static void release(struct fixture *f)
{
	f->doc = hf_doc_unref(f->doc);
	f->arena = hf_arena_destroy(f->arena);
}

static const char *first_error(struct fixture *f)
{
	static char text[2048];
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(sizeof(text) - 1);

	assert_true(f->errors.len > 0);
	hf_field_error_write(&f->errors.items[0], &sb);
	memcpy(text, sb.data, sb.len + 1);
	return text;
}

static const char full[] =
	"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\","
	"\"metadata\":{\"name\":\"ddp\",\"namespace\":\"team\",\"uid\":\"u1\",\"resourceVersion\":\"7\","
	"\"generation\":3,\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
	"\"labels\":{\"kueue.x-k8s.io/queue-name\":\"q\"},"
	"\"annotations\":{\"holdfast.dev/restart\":\"now\"}},"
	"\"spec\":{\"nprocPerNode\":\"2\","
	"\"elasticPolicy\":{\"minReplicas\":1,\"maxReplicas\":4,\"rdzvBackend\":\"c10d\","
	"\"rdzvConf\":[{\"key\":\"a\",\"value\":\"b\"}],\"maxRestarts\":3},"
	"\"runPolicy\":{\"cleanPodPolicy\":\"All\",\"backoffLimit\":0,\"suspend\":false,"
	"\"ttlSecondsAfterFinished\":60,\"activeDeadlineSeconds\":100,\"managedBy\":\"\","
	"\"schedulingPolicy\":{\"minAvailable\":2,\"queue\":\"x\"},"
	"\"podFailurePolicy\":{\"rules\":[{\"name\":\"r\",\"action\":\"RestartJob\","
	"\"replicaTypes\":[\"Worker\"],\"onExitCodes\":{\"containerName\":\"pytorch\","
	"\"operator\":\"NotIn\",\"values\":[1,220]}},"
	"{\"action\":\"Ignore\",\"onPodConditions\":[{\"type\":\"DisruptionTarget\"}]}]},"
	"\"recovery\":{\"restartScope\":\"Job\",\"infrastructureLimit\":5,"
	"\"backoff\":{\"initialSeconds\":1,\"maxSeconds\":2},"
	"\"nodeLost\":{\"afterSeconds\":30,\"forceDelete\":\"Never\",\"selfFence\":true},"
	"\"device\":{\"onUnhealthy\":\"Fail\",\"avoid\":false}}},"
	"\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":2,\"restartPolicy\":\"ExitCode\","
	"\"template\":{\"spec\":{\"terminationGracePeriodSeconds\":9,\"initContainers\":[{\"name\":\"i\"}],"
	"\"containers\":[{\"name\":\"pytorch\",\"image\":\"x\",\"ports\":"
	"[{\"name\":\"p\",\"containerPort\":1234}]}]}}},\"Master\":null}}}";

static void expect_digest(const char *spec, const char *other, bool equal)
{
	HF_AUTO_DOC a = json_doc_of(spec);
	HF_AUTO_DOC b = json_doc_of(other);
	char of_a[HF_SPEC_DIGEST_SIZE], of_b[HF_SPEC_DIGEST_SIZE];

	hf_job_spec_digest(hf_doc_json(a), of_a);
	hf_job_spec_digest(hf_doc_json(b), of_b);
	assert_int_equal(strlen(of_a), HF_SPEC_DIGEST_SIZE - 1);
	assert_int_equal(hf_streq(of_a, of_b), equal);
}

static void the_digest_is_of_what_pods_are_made_from(void **state)
{
	(void)state;
	expect_digest("{'spec':{'a':{'replicas':1},'runPolicy':{'suspend':true}}}",
		      "{'spec':{'runPolicy':{'backoffLimit':3},'a':{'replicas':1}}}", true);
	expect_digest("{'spec':{'a':{'replicas':1}}}", "{'spec':{'a':{'replicas':2}}}", false);
	expect_digest("{'spec':{'a':{'cpu':0.5}}}", "{'spec':{'a':{'cpu':1.5}}}", false);
	expect_digest("{'spec':{'a':1,'b':2}}", "{'spec':{'a':2,'b':1}}", false);
	expect_digest("{'spec':{}}", "{}", true);
}

static void every_block_of_the_spec_is_read(void **state)
{
	struct fixture f;
	const struct hf_job_view *v = &f.view;

	read_text(&f, full);
	assert_int_equal(f.errors.len, 0);
	assert_string_equal(v->name, "ddp");
	assert_string_equal(v->ns, "team");
	assert_string_equal(v->kueue_queue, "q");
	assert_string_equal(v->restart, "now");
	assert_int_equal(v->object_generation, 3);
	assert_int_equal(v->creation_time, INT64_C(1767323045) * HF_SECOND);
	assert_string_equal(v->nproc_per_node, "2");
	assert_true(v->elastic.present && v->elastic.max_restarts.value == 3);
	assert_string_equal(v->elastic.rdzv_conf[0].value, "b");
	assert_true(v->run_policy.backoff_limit.set && v->run_policy.backoff_limit.value == 0);
	assert_string_equal(v->run_policy.managed_by, "");
	assert_int_equal(v->run_policy.rules_len, 2);
	assert_int_equal(v->run_policy.rules[0].action, HF_RULE_RESTART_JOB);
	assert_int_equal(v->run_policy.rules[0].op, HF_RULE_NOT_IN);
	assert_int_equal(v->run_policy.rules[0].values[1], 220);
	assert_true(v->run_policy.rules[1].has_pod_conditions);
	assert_false(v->run_policy.rules[1].has_exit_codes);
	assert_string_equal(v->run_policy.recovery.restart_scope, "Job");
	assert_int_equal(v->run_policy.recovery.backoff_max_seconds.value, 2);
	assert_false(v->run_policy.recovery.backoff_reset_after_seconds.set);
	assert_true(v->run_policy.recovery.node_lost_self_fence.value);
	assert_string_equal(v->run_policy.recovery.device_on_unhealthy, "Fail");
	release(&f);
}

static void replicas_are_read_with_the_facts_of_their_template(void **state)
{
	struct fixture f;
	const struct hf_replica_spec *worker;

	read_text(&f, full);
	assert_int_equal(f.view.replicas_len, 2);
	worker = &f.view.replicas[0];
	assert_string_equal(worker->type, "Worker");
	assert_int_equal(worker->replicas.value, 2);
	assert_string_equal(worker->restart_policy, "ExitCode");
	assert_int_equal(worker->pod.termination_grace_seconds.value, 9);
	assert_string_equal(worker->pod.init_containers[0].name, "i");
	assert_int_equal(worker->pod.containers[0].ports[0].number, 1234);
	assert_true(f.view.replicas[1].null);
	release(&f);
}

#define ASKS(pod)                                                                                        \
	"{\"metadata\":{\"name\":\"ddp\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"template\":{" \
	"\"spec\":{" pod "}}}}}}"
#define AMOUNTS(key, amounts)                                                                      \
	"\"containers\":[{\"name\":\"a\"},{\"name\":\"b\",\"resources\":{\"" key "\":{" amounts    \
	"}}}]"

static void a_pod_that_asks_for_extended_resources_or_claims_has_devices(void **state)
{
	static const char *const devices[] = {
		ASKS(AMOUNTS("limits", "\"cpu\":8,\"nvidia.com/gpu\":8")),
		ASKS(AMOUNTS("requests", "\"rdma/hca\":\"1\"")),
		ASKS("\"initContainers\":[{\"resources\":{\"limits\":{\"amd.com/gpu\":1}}}]"),
		ASKS("\"resourceClaims\":[{\"name\":\"gpu\"}]"),
	};
	static const char *const none[] = {
		ASKS("\"containers\":[{\"name\":\"a\"}]"),
		ASKS(AMOUNTS("limits", "\"cpu\":8,\"memory\":\"1Gi\",\"hugepages-2Mi\":1")),
		ASKS(AMOUNTS("limits", "\"nvidia.com/gpu\":0")),
		ASKS(AMOUNTS("limits", "\"nvidia.com/gpu\":\"0\"")),
		ASKS(AMOUNTS("limits", "\"example.kubernetes.io/foo\":1")),
		ASKS("\"resourceClaims\":[],\"containers\":{\"resources\":{\"limits\":{\"a/b\":1}}}"),
	};
	struct fixture f;

	for (size_t i = 0; i < HF_ARRAY_LEN(devices); i++) {
		read_text(&f, devices[i]);
		assert_true(f.view.replicas[0].pod.devices);
		release(&f);
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(none); i++) {
		read_text(&f, none[i]);
		assert_false(f.view.replicas[0].pod.devices);
		release(&f);
	}
}

static void a_claim_that_is_not_made_for_the_pod_is_shared(void **state)
{
	static const struct {
		const char *text;
		bool shared;
	} cases[] = {
		{ASKS("\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimTemplateName\":\"t\"},"
		      "{\"name\":\"b\",\"resourceClaimName\":\"gpus\"}]"),
		 true},
		{ASKS("\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimTemplateName\":\"t\"}]"),
		 false},
		{ASKS(AMOUNTS("limits", "\"nvidia.com/gpu\":8")), false},
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		read_text(&f, cases[i].text);
		assert_int_equal(f.view.replicas[0].pod.shared_claims, cases[i].shared);
		release(&f);
	}
}

static void what_is_absent_stays_absent(void **state)
{
	struct fixture f;

	read_text(&f, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"runPolicy\":null}}");
	assert_int_equal(f.errors.len, 0);
	assert_false(f.view.run_policy.backoff_limit.set);
	assert_null(f.view.run_policy.clean_pod_policy);
	assert_false(f.view.has_replicas);
	assert_false(f.view.status.ledger.present);
	assert_int_equal(f.view.deletion_time, HF_TIME_NONE);
	release(&f);
}

static void a_wrong_type_is_reported_as_an_api_server_reports_it(void **state)
{
	struct fixture f;

	read_text(&f, "{\"spec\":{\"runPolicy\":{\"backoffLimit\":\"3\"}}}");
	assert_string_equal(
		first_error(&f),
		"spec.runPolicy.backoffLimit: Invalid value: \"string\": "
		"spec.runPolicy.backoffLimit in body must be of type integer: \"string\"");
	assert_false(f.view.run_policy.backoff_limit.set);
	release(&f);
}

static void a_number_beyond_its_range_is_reported(void **state)
{
	struct fixture f;

	read_text(&f, "{\"spec\":{\"runPolicy\":{\"backoffLimit\":3000000000}}}");
	assert_non_null(
		strstr(first_error(&f), "spec.runPolicy.backoffLimit: Invalid value: 3000000000"));
	release(&f);
	/* An exit code that does not fit its type is reported, and the report quotes the number of
	 * the document. */
	read_text(&f, "{\"kind\":\"PyTorchJob\",\"spec\":{\"runPolicy\":{\"podFailurePolicy\":{"
		      "\"rules\":[{\"onExitCodes\":{\"values\":[1,2147483648]}}]}}}}");
	assert_non_null(
		strstr(first_error(&f),
		       "onExitCodes.values[1]: Invalid value: 2147483648: must be between"));
	release(&f);
}

static void rules_that_are_null_are_none(void **state)
{
	struct fixture f;

	read_text(&f, "{\"kind\":\"PyTorchJob\",\"spec\":{\"runPolicy\":{\"podFailurePolicy\":{"
		      "\"rules\":null}}}}");
	assert_string_equal(first_error(&f),
			    "spec.runPolicy.podFailurePolicy.rules: Required value");
	release(&f);
}

static void one_rule_too_many_is_kept_for_validation_to_see(void **state)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(65536);
	struct fixture f;

	hf_strbuf_addstr(&text, "{\"spec\":{\"runPolicy\":{\"podFailurePolicy\":{\"rules\":[");
	for (int i = 0; i < 50; i++)
		hf_strbuf_addf(&text, "%s{\"action\":\"Count\"}", i > 0 ? "," : "");
	hf_strbuf_addstr(&text, "]}}}}");
	read_text(&f, text.data);
	assert_int_equal(f.view.run_policy.rules_len, HF_RULES_MAX + 1);
	release(&f);
}

static void keys_that_no_field_has_are_found_at_every_level(void **state)
{
	static const char text[] =
		"{\"kind\":\"x\",\"sepc\":1,\"metadata\":{\"nmae\":1},\"spec\":{\"foo\":1,"
		"\"runPolicy\":{\"recovery\":{\"device\":{\"x\":1}},\"podFailurePolicy\":{\"rules\":"
		"[{\"onExitCodes\":{\"vals\":[]}}]}},\"pytorchReplicaSpecs\":{\"Master\":{\"temlate\":1,"
		"\"template\":{\"spec\":{\"container\":[],\"nodeSelector\":{\"any\":1},\"volumes\":"
		"[{\"name\":\"v\",\"emptyDir\":{\"size\":1}}]}}}}},\"status\":{\"others\":1}}";
	static const char *const want[] = {
		"sepc",
		"metadata.nmae",
		"spec.foo",
		"spec.runPolicy.recovery.device.x",
		"spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.vals",
		"spec.pytorchReplicaSpecs.Master.temlate",
		"spec.pytorchReplicaSpecs.Master.template.spec.container",
		"spec.pytorchReplicaSpecs.Master.template.spec.volumes[0].emptyDir.size",
	};
	struct fixture f;

	read_text(&f, text);
	hf_field_errors_init(&f.errors, f.arena);
	hf_job_read_unknown(f.doc, &hf_framework_pytorch, &f.errors);
	assert_int_equal(f.errors.len, HF_ARRAY_LEN(want));
	for (size_t i = 0; i < HF_ARRAY_LEN(want); i++)
		assert_string_equal(f.errors.items[i].field, want[i]);
	release(&f);
}

static void no_key_of_a_full_spec_is_unknown(void **state)
{
	struct fixture f;

	read_text(&f, full);
	hf_job_read_unknown(f.doc, &hf_framework_pytorch, &f.errors);
	assert_int_equal(f.errors.len, 0);
	release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_digest_is_of_what_pods_are_made_from),
		cmocka_unit_test(every_block_of_the_spec_is_read),
		cmocka_unit_test(replicas_are_read_with_the_facts_of_their_template),
		cmocka_unit_test(a_pod_that_asks_for_extended_resources_or_claims_has_devices),
		cmocka_unit_test(a_claim_that_is_not_made_for_the_pod_is_shared),
		cmocka_unit_test(what_is_absent_stays_absent),
		cmocka_unit_test(a_wrong_type_is_reported_as_an_api_server_reports_it),
		cmocka_unit_test(a_number_beyond_its_range_is_reported),
		cmocka_unit_test(one_rule_too_many_is_kept_for_validation_to_see),
		cmocka_unit_test(keys_that_no_field_has_are_found_at_every_level),
		cmocka_unit_test(rules_that_are_null_are_none),
		cmocka_unit_test(no_key_of_a_full_spec_is_unknown),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
