/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/canary.h"

#include "base/str.h"
#include "harness/json_text.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)
#define T0 (1700000000 * HF_SECOND)
#define POD "'template':{'spec':{'containers':[{'name':'c','image':'i'}]}}"
#define BATCH "{'apiVersion':'batch/v1','kind':'Job','metadata':{'namespace':'a'},'spec':{" POD "}}"

static void a_wrong_template_names_its_field(void **state)
{
	static const struct {
		const char *template, *field;
	} rows[] = {
		{"[]", "t: "},
		{"{}", "t.kind: "},
		{"{'apiVersion':'v1','kind':'Pod'}", "t.kind: "},
		{"{'apiVersion':'batch/v1','kind':'CronJob'}", "t.kind: "},
		{"{'apiVersion':'kubeflow.org/v2','kind':'TFJob'}", "t.kind: "},
		{"{'apiVersion':'kubeflow.org/v1','kind':'Job'}", "t.kind: "},
		{"{'apiVersion':'batch/v1','kind':'Job','spec':{" POD "}}",
		 "t.metadata.namespace: "},
		{"{'apiVersion':'batch/v1','kind':'Job','metadata':{'namespace':'A b'}}",
		 "t.metadata.namespace: "},
		{"{'apiVersion':'batch/v1','kind':'Job','metadata':{'namespace':'a','name':'n'}}",
		 "t.metadata.name: "},
		{"{'apiVersion':'batch/v1','kind':'Job','metadata':{'namespace':'a'},'status':{}}",
		 "t.status: "},
		{"{'apiVersion':'batch/v1','kind':'Job','metadata':{'namespace':'a'}}", "t.spec: "},
		{"{'apiVersion':'batch/v1','kind':'Job','metadata':{'namespace':'a'},"
		 "'spec':{'template':{'spec':[]}}}",
		 "t.spec: "},
		{"{'apiVersion':'kubeflow.org/v1','kind':'MPIJob','metadata':{'namespace':'a'},"
		 "'spec':{'mpiReplicaSpecs':{'Launcher':{" POD "},'Worker':{}}}}",
		 "t.spec: "},
	};
	struct hf_error err;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTO_DOC doc = json_doc_of(rows[i].template);

		assert_int_equal(hf_canary_template_check(hf_doc_json(doc), "t", &err),
				 HF_E_INVALID);
		if (!hf_str_has_prefix(err.text, rows[i].field))
			fail_msg("%s: '%s', expected %s", rows[i].template, err.text,
				 rows[i].field);
	}
	assert_int_equal(hf_canary_template_check(NULL, "t", &err), HF_E_INVALID);
}

static void each_kind_of_job_may_be_a_canary(void **state)
{
	static const char *const kinds[][2] = {{"PyTorchJob", "pytorch"}, {"TFJob", "tf"},
					       {"MPIJob", "mpi"},         {"XGBoostJob", "xgb"},
					       {"PaddleJob", "paddle"},   {"JAXJob", "jax"}};
	struct hf_error err;
	HF_AUTO_DOC batch = json_doc_of(BATCH);

	(void)state;
	assert_ok(hf_canary_template_check(hf_doc_json(batch), "t", &err), &err);
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++) {
		char text[512];
		HF_AUTO_DOC doc = NULL;

		snprintf(text, sizeof(text),
			 "{'apiVersion':'kubeflow.org/v1','kind':'%s','metadata':{'namespace':'a',"
			 "'labels':{'l':'v'},'annotations':{'n':'v'}},'spec':{'%sReplicaSpecs':{"
			 "'Worker':{" POD "}}}}",
			 kinds[i][0], kinds[i][1]);
		doc = json_doc_of(text);
		assert_ok(hf_canary_template_check(hf_doc_json(doc), "t", &err), &err);
	}
}

static const struct hf_owner owner = {.api_version = HF_ROLLOUT_API_VERSION,
				      .kind = HF_ROLLOUT_KIND,
				      .name = "r",
				      .uid = "r-uid"};

static void expect_bound(const struct hf_json *pod, size_t tolerations)
{
	const struct hf_json *list = hf_json_get(pod, "tolerations");
	const struct hf_json *last = hf_json_item(list, tolerations - 1);

	assert_string_equal(hf_json_path_str(pod, "nodeSelector", "kubernetes.io/hostname", NULL),
			    "gpu-1");
	assert_int_equal(hf_json_len(list), tolerations);
	assert_string_equal(hf_json_path_str(last, "key", NULL),
			    "node.kubernetes.io/unschedulable");
	assert_string_equal(hf_json_path_str(last, "operator", NULL), "Exists");
	assert_string_equal(hf_json_path_str(last, "effect", NULL), "NoSchedule");
}

static void each_pod_is_bound_to_the_cordoned_node(void **state)
{
	HF_AUTO_DOC template = json_doc_of(
		"{'apiVersion':'kubeflow.org/v1','kind':'TFJob','metadata':{'namespace':'a'},'spec':{"
		"'tfReplicaSpecs':{'Chief':{" POD "},'Worker':{'template':{'spec':{'nodeSelector':{"
		"'x':'y'},'tolerations':[{'operator':'Exists'}],'containers':[]}}}}}}");
	HF_AUTO_DOC job = hf_canary_job(hf_doc_json(template), "canary-1", &owner, "gpu-1");
	const struct hf_json *roles =
		hf_json_path(hf_doc_json(job), "spec", "tfReplicaSpecs", NULL);

	(void)state;
	assert_string_equal(hf_doc_name(job), "canary-1");
	assert_string_equal(hf_doc_namespace(job), "a");
	assert_true(hf_is_owned_by(hf_doc_json(job), "r-uid"));
	expect_bound(hf_json_path(roles, "Chief", "template", "spec", NULL), 1);
	expect_bound(hf_json_path(roles, "Worker", "template", "spec", NULL), 2);
	assert_string_equal(
		hf_json_path_str(roles, "Worker", "template", "spec", "nodeSelector", "x", NULL),
		"y");
	/* The template stays as it is: it belongs to the DeviceRollout. */
	assert_null(hf_json_path(hf_doc_json(template), "spec", "tfReplicaSpecs", "Chief",
				 "template", "spec", "tolerations", NULL));
}

static void a_batch_job_is_bound_too(void **state)
{
	HF_AUTO_DOC template = json_doc_of(BATCH);
	HF_AUTO_DOC job = hf_canary_job(hf_doc_json(template), "canary-1", &owner, "gpu-1");

	(void)state;
	expect_bound(hf_json_path(hf_doc_json(job), "spec", "template", "spec", NULL), 1);
}

static void the_job_stays_after_its_end(void **state)
{
	HF_AUTO_DOC batch = json_doc_of(
		"{'apiVersion':'batch/v1','kind':'Job','metadata':{'namespace':'a'},'spec':{"
		"'ttlSecondsAfterFinished':0," POD "}}");
	HF_AUTO_DOC train = json_doc_of(
		"{'apiVersion':'kubeflow.org/v1','kind':'TFJob','metadata':{'namespace':'a'},'spec':{"
		"'runPolicy':{'ttlSecondsAfterFinished':0,'backoffLimit':1},'tfReplicaSpecs':{'Chief':"
		"{" POD "}}}}");
	HF_AUTO_DOC job = hf_canary_job(hf_doc_json(batch), "canary-1", &owner, "gpu-1");
	HF_AUTO_DOC other = hf_canary_job(hf_doc_json(train), "canary-1", &owner, "gpu-1");
	const struct hf_json *policy = hf_json_path(hf_doc_json(other), "spec", "runPolicy", NULL);

	(void)state;
	assert_null(hf_json_path(hf_doc_json(job), "spec", "ttlSecondsAfterFinished", NULL));
	assert_null(hf_json_get(policy, "ttlSecondsAfterFinished"));
	assert_int_equal(hf_json_i64(hf_json_get(policy, "backoffLimit"), 0), 1);
}

static void the_name_tells_node_try_and_side_apart(void **state)
{
	struct hf_canary_place place = {.rollout_uid = "u", .node = "gpu-1.rack.example.com"};
	char first[HF_CANARY_NAME_MAX], next[HF_CANARY_NAME_MAX];

	(void)state;
	hf_canary_name(&place, first);
	assert_string_equal(hf_canary_name(&place, next), first);
	assert_null(hf_dns1123_label_problem(first));
	assert_true(hf_str_has_prefix(first, "canary-gpu-1-rack-example-com-"));
	place.tries = 1;
	assert_string_not_equal(hf_canary_name(&place, next), first);
	place.tries = 0;
	place.before = true;
	assert_string_not_equal(hf_canary_name(&place, next), first);
	place.before = false;
	place.rollout_uid = "v";
	assert_string_not_equal(hf_canary_name(&place, next), first);
	/* Long names of nodes differ behind the part that the name repeats. */
	place.node = "a-node-with-a-name-that-is-long-1";
	hf_canary_name(&place, first);
	assert_null(hf_dns1123_label_problem(first));
	place.node = "a-node-with-a-name-that-is-long-2";
	assert_string_not_equal(hf_canary_name(&place, next), first);
}

static void read_state(const char *version, const char *status, struct hf_arena *arena,
		       struct hf_canary_state *ret_state)
{
	char text[1024];
	HF_AUTO_DOC doc = NULL;

	snprintf(text, sizeof(text),
		 "{'apiVersion':'%s','metadata':{'uid':'j','creationTimestamp':"
		 "'2023-11-14T22:13:20Z'},'status':{%s}}",
		 version, status);
	doc = json_doc_of(text);
	hf_canary_read(hf_doc_json(doc), arena, ret_state);
}

static void a_job_is_read_by_its_conditions(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_canary_state s;

	(void)state;
	read_state("batch/v1", "", arena, &s);
	assert_false(s.succeeded || s.failed || s.leaving);
	assert_int_equal(s.created_at, T0);
	assert_int_equal(s.ended_at, HF_TIME_NONE);
	read_state("batch/v1",
		   "'startTime':'2023-11-14T22:13:21Z','completionTime':'2023-11-14T22:13:51Z',"
		   "'conditions':[{'type':'Complete','status':'True'}]",
		   arena, &s);
	assert_true(s.succeeded);
	assert_int_equal(s.run_ms, 30000);
	assert_int_equal(s.ended_at, T0 + 31 * HF_SECOND);
	read_state("batch/v1",
		   "'conditions':[{'type':'Complete','status':'False'},{'type':'Failed','status':"
		   "'True','message':'BackoffLimitExceeded'}]",
		   arena, &s);
	assert_true(s.failed);
	assert_false(s.succeeded);
	assert_string_equal(s.message, "BackoffLimitExceeded");
	/* The condition Complete is of batch/v1 alone, and Succeeded of kubeflow.org. */
	read_state("kubeflow.org/v1", "'conditions':[{'type':'Complete','status':'True'}]", arena,
		   &s);
	assert_false(s.succeeded);
	/* While its ranks did not all run, the job waited for images. */
	read_state("kubeflow.org/v1",
		   "'startTime':'2023-11-14T22:13:21Z','completionTime':'2023-11-14T22:13:51Z',"
		   "'conditions':[{'type':'Succeeded','status':'True'}],"
		   "'recovery':{'productiveSeconds':12}",
		   arena, &s);
	assert_true(s.succeeded);
	assert_int_equal(s.run_ms, 12000);
	/* A job that has succeeded ran at least 1 ms, also if its status has no times. */
	read_state("kubeflow.org/v1", "'conditions':[{'type':'Succeeded','status':'True'}]", arena,
		   &s);
	assert_int_equal(s.run_ms, 1);
}

static void a_history_counts_for_its_template(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	const struct hf_rollout_times times = {.step_us = 120000, .run_ms = 60000};
	HF_AUTO_DOC one = json_doc_of(BATCH);
	HF_AUTO_DOC same =
		json_doc_of("{'spec':{" POD "},'metadata':{'namespace':'a'},'kind':'Job',"
			    "'apiVersion':'batch/v1'}");
	HF_AUTO_DOC other = json_doc_of("{'apiVersion':'batch/v1'}");
	char hash[HF_CANARY_HASH_MAX], next[HF_CANARY_HASH_MAX];
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(1024);
	HF_AUTO_JSON json = NULL;
	struct hf_rollout_times got;

	(void)state;
	hf_canary_hash(hf_doc_json(one), hash);
	assert_string_equal(hf_canary_hash(hf_doc_json(same), next), hash);
	assert_string_not_equal(hf_canary_hash(hf_doc_json(other), next), hash);
	json = hf_canary_history_json(hash, &times);
	hf_json_write(json, HF_JSON_COMPACT, &text);
	assert_true(hf_canary_history_read(text.data, hash, arena, &got));
	assert_memory_equal(&got, &times, sizeof(times));
	assert_false(hf_canary_history_read(text.data, next, arena, &got));
	assert_false(hf_canary_history_read(NULL, hash, arena, &got));
	assert_false(hf_canary_history_read("{}", hash, arena, &got));
	assert_false(
		hf_canary_history_read("{\"template\":\"x\",\"runMillis\":0}", "x", arena, &got));
	assert_false(
		hf_canary_history_read("{\"template\":\"x\",\"runMillis\":-5}", "x", arena, &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_template_names_its_field),
		cmocka_unit_test(each_kind_of_job_may_be_a_canary),
		cmocka_unit_test(each_pod_is_bound_to_the_cordoned_node),
		cmocka_unit_test(a_batch_job_is_bound_too),
		cmocka_unit_test(the_job_stays_after_its_end),
		cmocka_unit_test(the_name_tells_node_try_and_side_apart),
		cmocka_unit_test(a_job_is_read_by_its_conditions),
		cmocka_unit_test(a_history_counts_for_its_template),
	};

	return cmocka_run_group_tests_name("canary", tests, NULL, NULL);
}
