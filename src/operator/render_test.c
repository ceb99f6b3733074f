/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "operator/operator_internal.h"

#include "api/job.h"
#include "base/mem.h"

#include "framework/framework.h"

#include <string.h>

#define TEXT_MAX 65536

static const char job_text[] =
	"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"ddp\","
	"\"namespace\":\"team-a\",\"uid\":\"u-1\"},\"spec\":{\"pytorchReplicaSpecs\":{\"worker\":{"
	"\"template\":{\"metadata\":{\"name\":\"ignored\",\"labels\":{\"app\":\"x\",\"a\":\"user\"},"
	"\"annotations\":{\"k\":\"v\"},\"finalizers\":[\"f/f\"],\"creationTimestamp\":null},"
	"\"spec\":{\"restartPolicy\":\"Always\",\"unknownField\":{\"deep\":[1,2]},\"containers\":["
	"{\"name\":\"pytorch\",\"image\":\"i\",\"env\":[{\"name\":\"MINE\",\"value\":\"1\"}]},"
	"{\"name\":\"side\",\"image\":\"s\"}]}}},"
	"\"Master\":{\"template\":{}}}}}";

#define OWNER                                                                                      \
	"\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\","        \
	"\"name\":\"ddp\",\"uid\":\"u-1\",\"controller\":true,\"blockOwnerDeletion\":true}]"

struct bench {
	struct hf_doc *job;
	struct hf_settings settings;
	char spec[HF_SPEC_DIGEST_SIZE];
	struct hf_render_args args;
};

static int setup(void **state)
{
	static struct bench bench;

	bench = (struct bench){.job = hf_doc_from_text(job_text, strlen(job_text))};
	hf_job_spec_digest(hf_doc_json(bench.job), bench.spec);
	bench.args = (struct hf_render_args){.job = bench.job,
					     .spec = bench.spec,
					     .framework = &hf_framework_pytorch,
					     .settings = &bench.settings};
	*state = &bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hf_doc_unref(bench->job);
	return 0;
}

static void assert_json(const struct hf_json *got, const char *want_text)
{
	HF_AUTO_STRBUF got_text = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF want = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_JSON json = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(want_text, strlen(want_text), NULL, &json, &err), &err);
	hf_json_write(got, HF_JSON_SORTED, &got_text);
	hf_json_write(json, HF_JSON_SORTED, &want);
	assert_string_equal(got_text.data, want.data);
}

static struct hf_action pod_action(const struct hf_edit *edits, size_t len)
{
	return (struct hf_action){.kind = HF_ACTION_CREATE_POD,
				  .name = "ddp-worker-0",
				  .role = 1,
				  .edits = edits,
				  .edits_len = len};
}

static void test_a_pod_is_the_kept_template_with_name_and_owner(void **state)
{
	struct bench *bench = *state;
	struct hf_action action = pod_action(NULL, 0);
	HF_AUTO_DOC pod = NULL;
	struct hf_error err;

	assert_ok(hf_render_pod(&bench->args, &action, &pod, &err), &err);
	assert_json(
		hf_doc_json(pod),
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"ddp-worker-0\","
		"\"namespace\":\"team-a\",\"labels\":{\"app\":\"x\",\"a\":\"user\"},"
		"\"annotations\":{\"k\":\"v\",\"holdfast.dev/spec\":\"b717c28302af8a4d\"},"
		"\"finalizers\":[\"f/f\"]," OWNER "},"
		"\"spec\":{\"restartPolicy\":\"Always\",\"unknownField\":{\"deep\":[1,2]},"
		"\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\",\"env\":[{\"name\":"
		"\"MINE\",\"value\":\"1\"}]},{\"name\":\"side\",\"image\":\"s\"}]}}");
	/* Rendering has not changed the job's document. */
	HF_AUTO_DOC fresh = hf_doc_from_text(job_text, strlen(job_text));

	assert_true(hf_json_equal(hf_doc_json(bench->job), hf_doc_json(fresh)));
}

/* Upstream leaves out the finalizers of MPIJobs, because no controller would remove them. */
static void test_a_pod_of_an_mpijob_has_no_finalizers(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"m\"},\"spec\":{\"mpiReplicaSpecs\":{\"Worker\":{\"template\":{"
		"\"metadata\":{\"labels\":{\"a\":\"b\"},\"finalizers\":[\"f/f\"]},\"spec\":{}}}}}}";
	HF_AUTO_DOC job = hf_doc_from_text(text, strlen(text));
	const struct hf_render_args args = {
		.job = job, .spec = "0", .framework = &hf_framework_mpi};
	struct hf_action action = pod_action(NULL, 0);
	HF_AUTO_DOC pod = NULL;
	struct hf_error err;

	assert_ok(hf_render_pod(&args, &action, &pod, &err), &err);
	assert_json(hf_json_path(hf_doc_json(pod), "metadata", "labels", NULL), "{\"a\":\"b\"}");
	assert_null(hf_json_path(hf_doc_json(pod), "metadata", "finalizers", NULL));
}

static void test_edits_are_applied_in_order_behind_what_the_user_wrote(void **state)
{
	struct bench *bench = *state;
	const struct hf_edit edits[] = {
		{.kind = HF_EDIT_LABEL, .name = "a", .value = "operator"},
		{.kind = HF_EDIT_ANNOTATION, .name = "holdfast.dev/generation", .value = "3"},
		{.kind = HF_EDIT_ENV,
		 .container = HF_EDIT_EVERY_CONTAINER,
		 .name = "RANK",
		 .value = "1"},
		{.kind = HF_EDIT_ENV, .container = 0, .name = "RANK", .value = "2"},
		{.kind = HF_EDIT_ENV_FIELD, .container = 1, .name = "IP", .value = "status.podIP"},
		{.kind = HF_EDIT_PORT, .container = 0, .name = "p", .number = 23456},
		{.kind = HF_EDIT_RESTART_POLICY, .value = "Never"},
		{.kind = HF_EDIT_SCHEDULER_NAME, .value = "volcano"},
	};
	struct hf_action action = pod_action(edits, HF_ARRAY_LEN(edits));
	HF_AUTO_DOC pod = NULL;
	struct hf_error err;

	assert_ok(hf_render_pod(&bench->args, &action, &pod, &err), &err);
	assert_json(
		hf_json_get(hf_doc_json(pod), "spec"),
		"{\"restartPolicy\":\"Never\",\"schedulerName\":\"volcano\",\"unknownField\":"
		"{\"deep\":[1,2]},\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\",\"env\":["
		"{\"name\":\"MINE\",\"value\":\"1\"},{\"name\":\"RANK\",\"value\":\"1\"},"
		"{\"name\":\"RANK\",\"value\":\"2\"}],\"ports\":[{\"name\":\"p\","
		"\"containerPort\":23456}]},{\"name\":\"side\",\"image\":\"s\",\"env\":["
		"{\"name\":\"RANK\",\"value\":\"1\"},{\"name\":\"IP\",\"valueFrom\":{\"fieldRef\":"
		"{\"fieldPath\":\"status.podIP\"}}}]}]}");
	assert_json(hf_json_path(hf_doc_json(pod), "metadata", "labels", NULL),
		    "{\"app\":\"x\",\"a\":\"operator\"}");
	assert_json(
		hf_json_path(hf_doc_json(pod), "metadata", "annotations", NULL),
		"{\"k\":\"v\",\"holdfast.dev/generation\":\"3\",\"holdfast.dev/spec\":\"b717c28302af8a4d\"}");
}

/* The affinity of a pod that avoids the nodes a and b, if its template has the given affinity. */
static struct hf_json *avoided(struct bench *bench, const char *affinity, int32_t number)
{
	static const char text[] = "{\"metadata\":{\"name\":\"ddp\",\"uid\":\"u\"},\"spec\":{"
				   "\"pytorchReplicaSpecs\":{\"Worker\":{\"template\":{\"spec\":{%s"
				   "\"containers\":[{\"name\":\"pytorch\"}]}}}}}}";
	const struct hf_edit edits[] = {
		{.kind = HF_EDIT_AVOID_NODE, .name = "a", .number = number},
		{.kind = HF_EDIT_AVOID_NODE, .name = "b", .number = number},
	};
	struct hf_action action = pod_action(edits, HF_ARRAY_LEN(edits));
	HF_AUTO_STRBUF job = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_DOC pod = NULL;
	struct hf_error err;

	hf_strbuf_addf(&job, text, affinity);
	hf_doc_unref(bench->job);
	bench->job = hf_doc_from_text(job.data, job.len);
	bench->args.job = bench->job;
	assert_ok(hf_render_pod(&bench->args, &action, &pod, &err), &err);
	return hf_json_copy(hf_json_path(hf_doc_json(pod), "spec", "affinity", NULL));
}

#define OFF(node) "{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"" node "\"]}"
#define REQUIRED "\"requiredDuringSchedulingIgnoredDuringExecution\""
#define PREFERRED "\"preferredDuringSchedulingIgnoredDuringExecution\""

static void test_a_node_is_kept_off_in_every_term(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON bare = avoided(bench, "", 1);
	HF_AUTO_JSON users = avoided(
		bench,
		"\"affinity\":{\"podAffinity\":{\"x\":1},\"nodeAffinity\":{" REQUIRED
		":{\"nodeSelectorTerms\":[{\"matchExpressions\":[1]},{},{\"matchFields\":[2]}]}}},",
		1);

	assert_json(bare,
		    "{\"nodeAffinity\":{" REQUIRED
		    ":{\"nodeSelectorTerms\":[{\"matchFields\":[" OFF("a") "," OFF("b") "]}]}}}");
	/* Terms are ORed.  An empty term matches no node and must stay empty. */
	assert_json(
		users,
		"{\"podAffinity\":{\"x\":1},\"nodeAffinity\":{" REQUIRED
		":{\"nodeSelectorTerms\":[{\"matchExpressions\":[1],\"matchFields\":[" OFF(
			"a") "," OFF("b") "]},{},{\"matchFields\":[2," OFF("a") "," OFF("b") "]}]}}}");
}

static void test_a_node_is_rather_avoided_beside_what_the_user_prefers(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_JSON got = avoided(bench,
				   "\"affinity\":{\"nodeAffinity\":{" PREFERRED
				   ":[{\"weight\":1,\"preference\":{\"matchExpressions\":[1]}}]}},",
				   0);

	assert_json(
		got,
		"{\"nodeAffinity\":{" PREFERRED ":[{\"weight\":1,\"preference\":{"
		"\"matchExpressions\":[1]}},{\"weight\":100,\"preference\":{\"matchFields\":[" OFF(
			"a") "]}},{\"weight\":100,\"preference\":{\"matchFields\":[" OFF("b") "]}}]}}");
}

static void test_an_init_container_is_written_out(void **state)
{
	struct bench *bench = *state;
	static const char *const command[] = {"sh", "-c", "true"};
	static const struct hf_key_value limits[] = {{"cpu", "100m"}};
	const struct hf_container_build build = {.name = "init-pytorch",
						 .image = "alpine:3.10",
						 .image_pull_policy = "IfNotPresent",
						 .command = command,
						 .command_len = 3,
						 .limits = limits,
						 .limits_len = 1};
	const struct hf_edit edit = {.kind = HF_EDIT_INIT_CONTAINER, .add = &build};
	struct hf_action action = pod_action(&edit, 1);
	HF_AUTO_DOC pod = NULL;
	struct hf_error err;

	assert_ok(hf_render_pod(&bench->args, &action, &pod, &err), &err);
	assert_json(
		hf_json_path(hf_doc_json(pod), "spec", "initContainers", NULL),
		"[{\"name\":\"init-pytorch\",\"image\":\"alpine:3.10\",\"imagePullPolicy\":"
		"\"IfNotPresent\",\"command\":[\"sh\",\"-c\",\"true\"],\"resources\":{\"limits\":"
		"{\"cpu\":\"100m\"},\"requests\":{}}}]");
}

/* Namespaces that enforce the restricted standard take the pod, and its own container keeps its settings. */
static void test_the_container_of_exec_has_no_rights(void **state)
{
	struct bench *bench = *state;
	static const struct hf_key_value mounts[] = {{"holdfast-exec", "/holdfast/bin"}};
	const struct hf_container_build build = {.name = "holdfast-exec",
						 .image = "holdfast:1",
						 .image_pull_policy = "IfNotPresent",
						 .mounts = mounts,
						 .mounts_len = 1,
						 .restricted = true};
	const struct hf_edit edit = {.kind = HF_EDIT_INIT_CONTAINER, .add = &build};
	struct hf_action action = pod_action(&edit, 1);
	HF_AUTO_DOC pod = NULL;
	struct hf_error err;

	assert_ok(hf_render_pod(&bench->args, &action, &pod, &err), &err);
	assert_json(
		hf_json_path(hf_doc_json(pod), "spec", "initContainers", NULL),
		"[{\"name\":\"holdfast-exec\",\"image\":\"holdfast:1\",\"imagePullPolicy\":"
		"\"IfNotPresent\",\"resources\":{\"limits\":{},\"requests\":{}},\"volumeMounts\":"
		"[{\"name\":\"holdfast-exec\",\"mountPath\":\"/holdfast/bin\"}],\"securityContext\":"
		"{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]},"
		"\"readOnlyRootFilesystem\":true,\"runAsNonRoot\":true,\"runAsUser\":65532,"
		"\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}}]");
}

static void test_exec_stands_before_the_command_and_mounts_read_only(void **state)
{
	struct bench *bench = *state;
	static const char *const words[] = {"/holdfast/bin/holdfast-exec", "--"};
	const struct hf_edit edits[] = {
		{.kind = HF_EDIT_COMMAND, .value = "train"},
		{.kind = HF_EDIT_COMMAND_BEFORE, .words = words, .words_len = 2},
		{.kind = HF_EDIT_MOUNT, .name = "agent", .value = "/run", .number = 1},
		{.kind = HF_EDIT_VOLUME_HOST, .name = "agent", .value = "/run/holdfast"},
		{.kind = HF_EDIT_VOLUME_CSI, .name = "other", .value = "exec.holdfast.dev"},
	};
	struct hf_action action = pod_action(edits, HF_ARRAY_LEN(edits));
	HF_AUTO_DOC pod = NULL;
	struct hf_error err;
	const struct hf_json *container;

	assert_ok(hf_render_pod(&bench->args, &action, &pod, &err), &err);
	container = hf_json_item(hf_json_path(hf_doc_json(pod), "spec", "containers", NULL), 0);
	assert_json(hf_json_get(container, "command"),
		    "[\"/holdfast/bin/holdfast-exec\",\"--\",\"train\"]");
	assert_json(hf_json_get(container, "volumeMounts"),
		    "[{\"name\":\"agent\",\"mountPath\":\"/run\",\"readOnly\":true}]");
	assert_json(hf_json_path(hf_doc_json(pod), "spec", "volumes", NULL),
		    "[{\"name\":\"agent\",\"hostPath\":{\"path\":\"/run/holdfast\",\"type\":"
		    "\"DirectoryOrCreate\"}},{\"name\":\"other\",\"csi\":{\"driver\":"
		    "\"exec.holdfast.dev\",\"readOnly\":true}}]");
}

static void test_a_template_of_the_operators_own_is_expanded(void **state)
{
	struct bench *bench = *state;
	const struct hf_edit edit = {.kind = HF_EDIT_INIT_CONTAINER, .value = "ddp-master-0"};
	struct hf_action action = pod_action(&edit, 1);
	HF_AUTO_DOC pod = NULL;
	struct hf_error err;

	bench->args.init_container_template =
		"- name: wait\n  image: {{ .InitContainerImage }}\n"
		"  command: ['sh', '-c', 'for {{.MaxTries}} {{.MasterAddr}} }} {']\n";
	bench->settings.init_container_max_tries = 7;
	assert_ok(hf_render_pod(&bench->args, &action, &pod, &err), &err);
	assert_json(hf_json_path(hf_doc_json(pod), "spec", "initContainers", NULL),
		    "[{\"name\":\"wait\",\"image\":\"alpine:3.10\",\"command\":[\"sh\",\"-c\","
		    "\"for 7 ddp-master-0 }} {\"]}]");
}

/* The expected texts are results of Go's text/template with trim markers. */
static void test_trim_markers_take_the_blanks_of_the_text_beside_them(void **state)
{
	static const struct {
		const char *template, *command;
	} cases[] = {
		{"seq {{- .MaxTries }}; ok", "seq100; ok"},
		{"up {{- .MasterAddr -}} && exit", "upm&& exit"},
		{"up {{ .MasterAddr -}}  \t && exit", "up m&& exit"},
		{"a {{.MaxTries}} {{- .MasterAddr}} b", "a 100m b"},
		{"a {{.MaxTries -}} {{.MasterAddr}} b", "a 100m b"},
		{"a {{- \t.MasterAddr\t-}} b", "amb"},
		{"a {{\t.MasterAddr  }} b", "a m b"},
	};
	struct hf_settings settings = {0};
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = hf_xasprintf(
			"- name: wait\n  image: i\n  command: [\"%s\"]\n", cases[i].template);
		struct hf_json *list = NULL;

		assert_ok(hf_render_init_containers(text, "m", &settings, &list, &err), &err);
		assert_string_equal(
			hf_json_str(hf_json_item(hf_json_get(hf_json_item(list, 0), "command"), 0),
				    NULL),
			cases[i].command);
		hf_json_unref(list);
	}
}

static void test_every_other_action_of_a_template_is_refused_by_name(void **state)
{
	static const char *const bad[] = {
		"{{ if true }}",
		"{{printf \"%s\" .MasterAddr}}",
		"{{.Other}}",
		"{{/* comment */}}",
		"{{-.MasterAddr}}",
		"{{.MasterAddr-}}",
		"{{ .MasterAddr | quote }}",
		"{{$a := .MasterAddr}}",
		"{{.MasterAddress}}",
		"{{ .MasterAddr - }}",
		"{{}}",
	};
	struct hf_settings settings = {0};
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		HF_AUTOFREE char *text =
			hf_xasprintf("- name: wait\n  image: i\n  command: ['%s']\n", bad[i]);
		struct hf_json *list = NULL;

		assert_code(hf_render_init_containers(text, "m", &settings, &list, &err),
			    HF_E_INVALID);
		assert_non_null(strstr(err.text, "line 3: '"));
		assert_non_null(strstr(err.text, bad[i]));
	}
}

static void test_templates_that_are_no_lists_are_refused(void **state)
{
	static const char *const bad[] = {"", "a: b", "- a\n---\n- b", "\"", "- ["};
	struct hf_settings settings = {0};
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct hf_json *list = NULL;

		assert_code(hf_render_init_containers(bad[i], "m", &settings, &list, &err),
			    HF_E_INVALID);
		assert_non_null(strstr(err.text, "init container template"));
		assert_null(list);
	}
}

static void test_a_template_of_a_container_without_name_or_image_is_refused(void **state)
{
	static const char *const bad[] = {
		"- just words",
		"- name: wait",
		"- name: wait\n  command: [sh]",
		"- name: wait\n  image: ''\n",
		"- name: wait\n  image: [a]",
		"- image: a",
		"- name: wait\n  image: a\n- name: more",
	};
	static const char *const good[] = {"[]", "- {name: wait, image: a}"};
	struct hf_settings settings = {0};
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct hf_json *list = NULL;

		assert_code(hf_render_init_containers(bad[i], "m", &settings, &list, &err),
			    HF_E_INVALID);
		assert_non_null(strstr(err.text, "init container template: container "));
		assert_null(list);
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(good); i++) {
		HF_AUTO_JSON list = NULL;

		assert_ok(hf_render_init_containers(good[i], "m", &settings, &list, &err), &err);
	}
}

static void test_what_cannot_be_rendered_is_refused(void **state)
{
	struct bench *bench = *state;
	const struct hf_edit far = {.kind = HF_EDIT_ENV, .container = 2, .name = "A", .value = ""};
	const struct hf_edit template = {.kind = HF_EDIT_INIT_CONTAINER, .value = "x"};
	struct hf_action action = pod_action(&far, 1);
	struct hf_doc *pod = NULL;
	struct hf_error err;

	assert_code(hf_render_pod(&bench->args, &action, &pod, &err), HF_E_INVALID);
	action = pod_action(&template, 1);
	assert_code(hf_render_pod(&bench->args, &action, &pod, &err), HF_E_INVALID);
	action.edits_len = 0;
	action.role = 0; /* Master, whose template is empty */
	assert_code(hf_render_pod(&bench->args, &action, &pod, &err), HF_E_INVALID);
	assert_string_equal(err.text, "replica type Master has no pod template");
	assert_null(pod);
}

static void test_a_service_is_headless_with_labels_that_select(void **state)
{
	struct bench *bench = *state;
	static const struct hf_key_value labels[] = {{"job", "ddp"}, {"index", "0"}};
	static const struct hf_port ports[] = {{"p", 23456}, {"", 80}};
	const struct hf_action action = {.kind = HF_ACTION_CREATE_SERVICE,
					 .name = "ddp-worker-0",
					 .labels = labels,
					 .labels_len = 2,
					 .ports = ports,
					 .ports_len = 2};
	HF_AUTO_DOC service = hf_render_service(&bench->args, &action);

	assert_json(
		hf_doc_json(service),
		"{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":"
		"\"ddp-worker-0\",\"namespace\":\"team-a\",\"labels\":{\"job\":\"ddp\",\"index\":"
		"\"0\"}," OWNER "},\"spec\":{\"clusterIP\":\"None\",\"selector\":{\"job\":\"ddp\","
		"\"index\":\"0\"},\"ports\":[{\"name\":\"p\",\"port\":23456},{\"port\":80}]}}");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_pod_is_the_kept_template_with_name_and_owner),
		T(test_edits_are_applied_in_order_behind_what_the_user_wrote),
		T(test_a_node_is_kept_off_in_every_term),
		T(test_a_node_is_rather_avoided_beside_what_the_user_prefers),
		T(test_an_init_container_is_written_out),
		T(test_the_container_of_exec_has_no_rights),
		T(test_exec_stands_before_the_command_and_mounts_read_only),
		T(test_a_pod_of_an_mpijob_has_no_finalizers),
		T(test_a_template_of_the_operators_own_is_expanded),
		cmocka_unit_test(test_trim_markers_take_the_blanks_of_the_text_beside_them),
		cmocka_unit_test(test_every_other_action_of_a_template_is_refused_by_name),
		cmocka_unit_test(test_templates_that_are_no_lists_are_refused),
		cmocka_unit_test(test_a_template_of_a_container_without_name_or_image_is_refused),
		T(test_what_cannot_be_rendered_is_refused),
		T(test_a_service_is_headless_with_labels_that_select),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
