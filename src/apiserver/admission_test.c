/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/admission.h"
#include "harness/test.h"

#include "base/str.h"
#include "framework/framework.h"
#include "json/yaml.h"
#include "store/resource.h"

#include <string.h>

/* Tests of admission. Input: objects as users write them. Output: the stored object or a Status. */

struct bench {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
};

static int set_up(void **state)
{
	static struct bench bench;
	struct hf_error err;

	bench.loop = hf_loop_create_virtual(0);
	assert_ok(hf_memstore_create(bench.loop, &(struct hf_memstore_options){0}, &bench.memstore,
				     &err),
		  &err);
	hf_admission_install(bench.memstore, hf_frameworks);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_memstore_destroy(bench->memstore);
	hf_loop_destroy(bench->loop);
	return 0;
}

static struct hf_doc *doc_of(const char *yaml)
{
	struct hf_yaml *parsed = NULL;
	struct hf_error err = {0};

	assert_ok(hf_yaml_parse(yaml, strlen(yaml), NULL, &parsed, &err), &err);
	struct hf_doc *doc = hf_doc_from_json(hf_json_ref(hf_yaml_doc(parsed, 0)));
	hf_yaml_destroy(parsed);
	return doc;
}

static void create_object(struct bench *bench, const struct hf_resource *resource, const char *yaml,
			  const char *validation, struct hf_result *ret_result)
{
	HF_AUTO_DOC body = doc_of(yaml);
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = resource,
				     .ns = "default",
				     .body = body,
				     .field_validation = validation,
				     .grace_seconds = HF_GRACE_DEFAULT};

	*ret_result = (struct hf_result){0};
	hf_memstore_apply(bench->memstore, &request, ret_result);
}

static void merge_object(struct bench *bench, const struct hf_resource *resource, const char *name,
			 const char *patch, struct hf_result *ret_result)
{
	HF_AUTO_DOC body = doc_of(patch);
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = resource,
				     .ns = "default",
				     .name = name,
				     .body = body,
				     .patch_type = HF_PATCH_MERGE};

	*ret_result = (struct hf_result){0};
	hf_memstore_apply(bench->memstore, &request, ret_result);
}

static const char *message_of(const struct hf_result *result)
{
	return hf_str_or(hf_json_path_str(hf_doc_json(result->object), "message", NULL), "");
}

static void assert_done(const struct hf_result *result)
{
	if (result->code != 0)
		fail_msg("%s: %s", hf_code_name(result->code), message_of(result));
}

static void assert_refused(struct bench *bench, const struct hf_resource *resource,
			   const char *yaml, int code, const char *message)
{
	HF_AUTO_RESULT result;

	create_object(bench, resource, yaml, "Strict", &result);
	if (result.code != code)
		fail_msg("%s: %s", hf_code_name(result.code), message_of(&result));
	if (strstr(message_of(&result), message) == NULL)
		fail_msg("'%s' lacks '%s'", message_of(&result), message);
}

#define JOB(spec) "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\nspec:\n" spec
#define REPLICAS                                                                                   \
	"  pytorchReplicaSpecs:\n"                                                                 \
	"    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: i}]}}}\n"
#define POD(spec) "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: " spec "\n"

static void a_job_gets_the_defaults_of_its_crd_and_nothing_else(void **state)
{
	HF_AUTO_RESULT result;

	create_object(*state, &hf_pytorchjobs, JOB(REPLICAS), NULL, &result);
	assert_done(&result);
	const struct hf_json *spec = hf_json_get(hf_doc_json(result.object), "spec");
	assert_false(hf_json_true(hf_json_path(spec, "runPolicy", "suspend", NULL), true));
	assert_int_equal(hf_json_len(hf_json_get(spec, "runPolicy")), 1);
	assert_int_equal(hf_json_len(hf_json_path(spec, "pytorchReplicaSpecs", "Master", NULL)), 2);
}

static void an_unknown_field_is_refused_warned_of_or_dropped_as_asked(void **state)
{
	static const char job[] = JOB("  foo: 1\n  runPolicy: {bar.baz: 2}\n" REPLICAS);
	HF_AUTO_RESULT warned;
	HF_AUTO_RESULT ignored;

	assert_refused(*state, &hf_pytorchjobs, job, HF_E_BAD_REQUEST,
		       "PyTorchJob in version \"v1\" cannot be handled as a PyTorchJob: strict "
		       "decoding error: unknown field \"spec.foo\"");
	create_object(*state, &hf_pytorchjobs, job, "Warn", &warned);
	assert_done(&warned);
	assert_int_equal(warned.n_warnings, 2);
	assert_string_equal(warned.warnings[0], "unknown field \"spec.foo\"");
	assert_null(hf_json_path(hf_doc_json(warned.object), "spec", "foo", NULL));
	assert_int_equal(
		hf_json_len(hf_json_path(hf_doc_json(warned.object), "spec", "runPolicy", NULL)),
		1);
	merge_object(*state, &hf_pytorchjobs, "x", "spec: {foo: 3}", &ignored);
	assert_done(&ignored);
	assert_null(hf_json_path(hf_doc_json(ignored.object), "spec", "foo", NULL));
}

static void a_thousand_unknown_fields_are_removed(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
	HF_AUTO_RESULT result;

	hf_strbuf_addstr(&sb, JOB(REPLICAS));
	for (int i = 0; i < 1000; i++)
		hf_strbuf_addf(&sb, "  u%d: 1\n", i);
	create_object(*state, &hf_pytorchjobs, sb.data, "Ignore", &result);
	assert_done(&result);
	assert_int_equal(hf_json_len(hf_json_get(hf_doc_json(result.object), "spec")), 2);
}

static void a_job_that_breaks_rules_is_invalid_with_causes(void **state)
{
	HF_AUTO_RESULT result;

	create_object(
		*state, &hf_pytorchjobs,
		JOB("  pytorchReplicaSpecs:\n    Master: {replicas: 2, template: {spec: {containers: "
		    "[{name: pytorch, image: i}]}}}\n"),
		NULL, &result);
	assert_int_equal(result.code, HF_E_INVALID);
	assert_non_null(
		strstr(message_of(&result), "PyTorchJob.kubeflow.org \"x\" is invalid: spec."));
	assert_non_null(strstr(message_of(&result), "Forbidden"));
	const struct hf_json *cause = hf_json_item(
		hf_json_path(hf_doc_json(result.object), "details", "causes", NULL), 0);
	assert_string_equal(hf_json_path_str(cause, "reason", NULL), "FieldValueForbidden");
	assert_non_null(strstr(hf_json_path_str(cause, "field", NULL), "replicas"));
	assert_true(hf_str_has_prefix(hf_json_path_str(cause, "message", NULL), "Forbidden"));
}

static void a_wrong_type_in_a_job_is_invalid_with_its_field(void **state)
{
	assert_refused(*state, &hf_pytorchjobs, JOB("  runPolicy: {backoffLimit: many}\n" REPLICAS),
		       HF_E_INVALID, "spec.runPolicy.backoffLimit");
}

static void the_manager_of_a_job_does_not_change(void **state)
{
	HF_AUTO_RESULT made;
	HF_AUTO_RESULT changed;

	create_object(*state, &hf_pytorchjobs,
		      JOB("  runPolicy: {managedBy: kubeflow.org/training-operator}\n" REPLICAS),
		      NULL, &made);
	assert_done(&made);
	merge_object(*state, &hf_pytorchjobs, "x",
		     "spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}}", &changed);
	assert_int_equal(changed.code, HF_E_INVALID);
	assert_non_null(strstr(message_of(&changed), "managedBy"));
}

static void every_kind_of_job_has_its_table(void **state HF_UNUSED)
{
	for (size_t i = 0; i < hf_resource_count(); i++)
		if (hf_resource_is_job(hf_resource_at(i)->resource))
			assert_non_null(hf_framework_by_name(hf_resource_at(i)->resource->plural));
}

static void a_pod_gets_its_defaults(void **state)
{
	HF_AUTO_RESULT result;

	create_object(
		*state, &hf_pods,
		POD("{containers: [{name: c, image: 'r/i:1', ports: [{containerPort: 80}], resources: "
		    "{limits: {cpu: 1}}, livenessProbe: {httpGet: {port: 80}}}], volumes: [{name: v}, "
		    "{name: s, secret: {secretName: s}}], tolerations: null}"),
		"Strict", &result);
	assert_done(&result);
	const struct hf_json *spec = hf_json_get(hf_doc_json(result.object), "spec");
	const struct hf_json *c = hf_json_item(hf_json_get(spec, "containers"), 0);
	assert_string_equal(hf_json_path_str(spec, "restartPolicy", NULL), "Always");
	assert_int_equal(hf_json_i64(hf_json_get(spec, "terminationGracePeriodSeconds"), 0), 30);
	assert_string_equal(hf_json_path_str(spec, "dnsPolicy", NULL), "ClusterFirst");
	assert_string_equal(hf_json_path_str(c, "terminationMessagePath", NULL),
			    "/dev/termination-log");
	assert_string_equal(hf_json_path_str(c, "imagePullPolicy", NULL), "IfNotPresent");
	assert_int_equal(hf_json_i64(hf_json_path(c, "resources", "requests", "cpu", NULL), 0), 1);
	assert_int_equal(hf_json_i64(hf_json_path(c, "livenessProbe", "periodSeconds", NULL), 0),
			 10);
	const struct hf_json *volumes = hf_json_get(spec, "volumes");
	assert_non_null(hf_json_get(hf_json_item(volumes, 0), "emptyDir"));
	assert_int_equal(
		hf_json_i64(hf_json_path(hf_json_item(volumes, 1), "secret", "defaultMode", NULL),
			    0),
		420);
	assert_null(hf_json_get(spec, "tolerations"));
}

static void invalid_pods_are_refused(void **state)
{
	static const struct {
		const char *spec, *message;
	} cases[] = {
		{"{}", "Pod \"p\" is invalid: spec.containers: Required value"},
		{"{containers: [{image: i}]}", "spec.containers[0].name: Required value"},
		{"{containers: [{name: c}]}", "spec.containers[0].image: Required value"},
		{"{containers: [{name: C, image: i}]}",
		 "spec.containers[0].name: Invalid value: \"C\""},
		{"{containers: [{name: c, image: i}, {name: c, image: i}]}",
		 "spec.containers[1].name: Duplicate value: \"c\""},
		{"{restartPolicy: Sometimes, containers: [{name: c, image: i}]}",
		 "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
		 "\"OnFailure\", \"Never\""},
		{"{containers: [{name: c, image: i, ports: [{containerPort: 70000}]}]}",
		 "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 "
		 "and 65535, inclusive"},
		{"{containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]}",
		 "spec.containers[0].volumeMounts[0].name: Not found: \"v\""},
		{"{containers: [{name: c, image: i, env: [{value: x}]}]}",
		 "spec.containers[0].env[0].name: Required value"},
		{"{containers: [{name: c, image: i, resources: {limits: {cpu: '1'}, requests: {cpu: "
		 "'2'}}}]}",
		 "spec.containers[0].resources.requests[cpu]: Invalid value: \"2\": must be less than or "
		 "equal to cpu limit"},
		{"{containers: [{name: c, image: i, resources: {limits: {cpu: lots}}}]}",
		 "spec.containers[0].resources.limits[cpu]: Invalid value: \"lots\": quantities must"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
		hf_strbuf_addf(&sb, POD("%s"), cases[i].spec);
		assert_refused(*state, &hf_pods, sb.data, HF_E_INVALID, cases[i].message);
	}
}

static void wrong_types_and_unknown_fields_of_a_pod_cannot_be_decoded(void **state)
{
	assert_refused(*state, &hf_pods, POD("{containers: [{name: c, image: 5}]}"),
		       HF_E_BAD_REQUEST,
		       "json: cannot unmarshal integer into field spec.containers[0].image of type "
		       "string");
	assert_refused(*state, &hf_pods, POD("{containers: [{name: c, image: i, imagee: j}]}"),
		       HF_E_BAD_REQUEST,
		       "strict decoding error: unknown field \"spec.containers[0].imagee\"");
}

static void headless_services_keep_none_and_others_get_no_address(void **state)
{
	HF_AUTO_RESULT headless;

	create_object(*state, &hf_services,
		      "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
		      "spec: {clusterIP: None, ports: [{port: 80}]}\n",
		      "Strict", &headless);
	assert_done(&headless);
	const struct hf_json *spec = hf_json_get(hf_doc_json(headless.object), "spec");
	assert_string_equal(hf_json_path_str(spec, "clusterIP", NULL), "None");
	assert_string_equal(hf_json_path_str(spec, "type", NULL), "ClusterIP");
	assert_int_equal(
		hf_json_i64(hf_json_get(hf_json_item(hf_json_get(spec, "ports"), 0), "targetPort"),
			    0),
		80);
	assert_refused(*state, &hf_services,
		       "apiVersion: v1\nkind: Service\nmetadata: {name: l}\n"
		       "spec: {type: LoadBalancer, ports: [{port: 80}]}\n",
		       HF_E_INVALID, "spec.type: Unsupported value: \"LoadBalancer\"");
}

static void string_data_of_a_secret_is_stored_in_base64(void **state)
{
	HF_AUTO_RESULT result;

	create_object(*state, &hf_secrets,
		      "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
		      "stringData: {a: hello, b: '', c: ab}\n",
		      "Strict", &result);
	assert_done(&result);
	const struct hf_json *root = hf_doc_json(result.object);
	assert_string_equal(hf_json_path_str(root, "data", "a", NULL), "aGVsbG8=");
	assert_string_equal(hf_json_path_str(root, "data", "b", NULL), "");
	assert_string_equal(hf_json_path_str(root, "data", "c", NULL), "YWI=");
	assert_null(hf_json_get(root, "stringData"));
	assert_string_equal(hf_json_path_str(root, "type", NULL), "Opaque");
	assert_refused(*state, &hf_secrets,
		       "apiVersion: v1\nkind: Secret\nmetadata: {name: t}\ndata: {a: '!'}\n",
		       HF_E_INVALID, "illegal base64 data");
}

static void an_immutable_config_map_does_not_change(void **state)
{
	HF_AUTO_RESULT made;
	HF_AUTO_RESULT changed;
	HF_AUTO_RESULT labelled;

	create_object(
		*state, &hf_configmaps,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nimmutable: true\ndata: {a: b}\n",
		"Strict", &made);
	assert_done(&made);
	merge_object(*state, &hf_configmaps, "m", "data: {a: c}", &changed);
	assert_int_equal(changed.code, HF_E_INVALID);
	merge_object(*state, &hf_configmaps, "m", "metadata: {labels: {x: z}}", &labelled);
	assert_done(&labelled);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(a_job_gets_the_defaults_of_its_crd_and_nothing_else),
		T(an_unknown_field_is_refused_warned_of_or_dropped_as_asked),
		T(a_thousand_unknown_fields_are_removed),
		T(a_job_that_breaks_rules_is_invalid_with_causes),
		T(a_wrong_type_in_a_job_is_invalid_with_its_field),
		T(the_manager_of_a_job_does_not_change),
		T(every_kind_of_job_has_its_table),
		T(a_pod_gets_its_defaults),
		T(invalid_pods_are_refused),
		T(wrong_types_and_unknown_fields_of_a_pod_cannot_be_decoded),
		T(headless_services_keep_none_and_others_get_no_address),
		T(string_data_of_a_secret_is_stored_in_base64),
		T(an_immutable_config_map_does_not_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
