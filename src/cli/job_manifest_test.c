/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/job_manifest.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tests of bad manifests: each is refused with exit code 2, and the error names the file, and the
 * line or the field. */

#define TEMPLATE                                                                                   \
	"      template:\n        spec:\n          containers:\n"                                  \
	"          - {name: pytorch, image: x, command: [ls]}\n"
#define HEAD "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n"
#define GOOD HEAD "spec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n" TEMPLATE

/* Loads the one job of a file. */
static int load_one(struct hf_cli *cli, const char *path, struct hf_manifest *ret_manifest)
{
	struct hf_manifests set = {.n_jobs = 0};
	int rc = hf_manifests_add(cli, path, &set);

	if (rc == 0 && set.n_jobs == 1) {
		*ret_manifest = set.jobs[0];
		set.n_jobs = 0;
	}
	hf_manifests_release(&set);
	return rc;
}

/* Loads a manifest from text, and checks the exit code and what is printed. */
static int load_text(const char *text, size_t len, char **ret_printed,
		     struct hf_manifest *ret_manifest)
{
	char path[] = "/tmp/hf-manifest-XXXXXX";
	size_t printed_len;
	struct hf_cli cli = {.out = stdout};
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	assert_int_equal(close(fd), 0);
	cli.err = open_memstream(ret_printed, &printed_len);
	rc = load_one(&cli, path, ret_manifest);
	assert_int_equal(fclose(cli.err), 0);
	assert_int_equal(unlink(path), 0);
	return rc;
}

static void assert_refused_bytes(const char *text, size_t len, const char *with)
{
	struct hf_manifest manifest = {.doc = NULL};
	char *printed = NULL;
	int rc = load_text(text, len, &printed, &manifest);

	if (rc != HF_EXIT_USAGE)
		fail_msg("accepted, though it should say '%s'", with);
	if (strstr(printed, with) == NULL)
		fail_msg("does not say '%s' but: %s", with, printed);
	assert_null(manifest.doc);
	/* A reported problem is one line, without control characters. */
	for (const char *at = printed; *at != '\0'; at++)
		assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
	free(printed);
}

static void assert_refused(const char *text, const char *with)
{
	assert_refused_bytes(text, strlen(text), with);
}

static void a_good_manifest_loads(void **state)
{
	struct hf_manifest manifest = {.doc = NULL};
	char *printed = NULL;

	assert_int_equal(load_text(GOOD, strlen(GOOD), &printed, &manifest), 0);
	assert_string_equal(printed, "");
	assert_string_equal(hf_doc_name(manifest.doc), "j");
	assert_string_equal(manifest.framework->kind, "PyTorchJob");
	hf_manifest_release(&manifest);
	free(printed);
}

/* The valid manifest with other metadata. */
#define WITH(meta)                                                                                 \
	"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: " meta                           \
	"\nspec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n" TEMPLATE

static void metadata_that_a_server_refuses_is_refused(void **state)
{
	assert_refused(WITH("{name: j, labels: {'a b': c}}"), ":3: metadata.labels: ");
	assert_refused(WITH("{name: j, labels: {a: 'b c'}}"), ":3: metadata.labels: ");
	assert_refused(WITH("{name: j, labels: {a: 1}}"), ":3: metadata.labels: ");
	assert_refused(WITH("{name: j, annotations: {x: 1}}"), ":3: metadata.annotations: ");
	assert_refused(WITH("{name: j, finalizers: [ab c]}"), ":3: metadata.finalizers: ");
	assert_refused(WITH("{name: j, finalizers: 5}"), ":3: metadata.finalizers: ");
	assert_refused(WITH("{name: j, ownerReferences: [{kind: Pod}]}"),
		       ":3: metadata.ownerReferences[0].uid: ");
	assert_refused(WITH("{name: j, namespace: Foo}"), ":3: metadata.namespace: ");
	assert_refused(WITH("{name: j, resourceVersion: '7'}"), ":3: metadata.resourceVersion: ");
	assert_refused(WITH("{generateName: A_}"), "metadata.name: ");
	assert_refused(WITH("{}"), "metadata.name: ");
	assert_refused(WITH("5"), "metadata");
}

static void a_name_that_is_left_to_the_server_is_made(void **state)
{
	static const char text[] = WITH("{generateName: try-}");
	struct hf_manifest manifest = {.doc = NULL};
	char *printed = NULL;

	assert_int_equal(load_text(text, strlen(text), &printed, &manifest), 0);
	assert_string_equal(printed, "");
	assert_memory_equal(hf_doc_name(manifest.doc), "try-", 4);
	assert_int_equal(strlen(hf_doc_name(manifest.doc)), 9);
	hf_manifest_release(&manifest);
	free(printed);
}

static void a_name_too_long_for_services_is_warned_of(void **state)
{
	static const char text[] =
		WITH("{name: a2345678901234567890123456789012345678901234567890123456789}");
	struct hf_manifest manifest = {.doc = NULL};
	char *printed = NULL;

	assert_int_equal(load_text(text, strlen(text), &printed, &manifest), 0);
	assert_non_null(strstr(printed, "warning: the job's name is too long: service 'a23456"));
	hf_manifest_release(&manifest);
	free(printed);
}

static void nothing_in_the_file_is_said(void **state)
{
	assert_refused("", "no document");
	assert_refused("# only a comment\n---\n", "no document");
}

static void each_document_is_checked_with_its_own_lines(void **state)
{
	HF_AUTOFREE char *two = hf_xasprintf("%s---\n%s", GOOD, WITH("{name: j, labels: {a: 1}}"));

	assert_refused(two, ":15: metadata.labels: ");
	assert_refused("apiVersion: v1\nkind: List\nitems:\n- apiVersion: kubeflow.org/v1\n"
		       "  kind: PyTorchJob\n  metadata: {name: j, namespace: Foo}\n"
		       "  spec: {pytorchReplicaSpecs: {}}\n",
		       ":6: metadata.namespace: ");
	assert_refused("apiVersion: v1\nkind: List\nitems: [5]\n", ":3: not a Kubernetes object");
	assert_refused("apiVersion: apps/v1\nkind: PyTorchJob\n", "did you mean PyTorchJob (");
}

struct passed {
	char text[256];
};

static void note_passed(void *arg, const char *file, const struct hf_json *object, bool known)
{
	struct passed *passed = arg;
	size_t len = strlen(passed->text);

	(void)snprintf(passed->text + len, sizeof(passed->text) - len, "%s %s;",
		       hf_json_path_str(object, "kind", NULL), known ? "known" : "unknown");
}

static void other_objects_are_passed_over(void **state)
{
	static const char text[] =
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n" GOOD
		"---\napiVersion: v1\nkind: List\nitems:\n"
		"- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n"
		"- {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}\n";
	struct passed passed = {""};
	struct hf_manifests set = {.passed = note_passed, .arg = &passed};
	struct hf_cli cli = {.out = stdout, .err = stderr};
	char path[] = "/tmp/hf-manifest-XXXXXX";
	int fd = mkstemp(path);

	assert_int_equal(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(hf_manifests_add(&cli, path, &set), 0);
	assert_string_equal(passed.text, "ConfigMap known;Secret known;Deployment unknown;");
	assert_int_equal(set.n_jobs, 1);
	assert_int_equal(set.objects.len, 2);
	assert_string_equal(hf_doc_name(set.objects.items[1]), "s");
	assert_int_equal(hf_manifests_add(&cli, path, &set), 0);
	assert_int_equal(set.n_jobs, 2);
	assert_string_equal(set.job_files[1], path);
	hf_manifests_release(&set);
	assert_int_equal(unlink(path), 0);
}

static void tabs_as_indentation_are_refused_with_their_line(void **state)
{
	assert_refused("apiVersion: v1\nspec:\n\tx: 1\n", "line 3");
}

static void duplicate_keys_are_refused_with_both_lines(void **state)
{
	assert_refused("kind: A\napiVersion: v1\nkind: B\n", "line 3");
}

static void an_unclosed_bracket_is_refused_with_its_line(void **state)
{
	assert_refused("kind: [a, b\nx: 1\n", "line ");
}

static void anchors_that_explode_are_refused(void **state)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(65536);

	hf_strbuf_addstr(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 10; i++) {
		hf_strbuf_addf(&text, "a%d: &a%d [", i, i);
		for (int k = 0; k < 10; k++)
			hf_strbuf_addf(&text, "%s*a%d", k > 0 ? ", " : "", i - 1);
		hf_strbuf_addstr(&text, "]\n");
	}
	assert_refused(text.data, "expanded aliases included");
}

static void an_alias_inside_its_own_anchor_is_refused(void **state)
{
	assert_refused("a: &a [*a]\n", "line 1");
}

static void fifty_megabytes_are_refused_without_reading_them_all(void **state)
{
	size_t len = (size_t)50 << 20;
	HF_AUTOFREE char *text = hf_xmalloc(len);

	memset(text, 'a', len);
	assert_refused_bytes(text, len, "than");
}

static void bytes_that_are_no_utf8_are_refused(void **state)
{
	assert_refused("kind: \xff\xfe\n", "UTF-8");
	assert_refused_bytes("kind: a\0b\n", 10, "line 1");
}

static void values_nested_too_deep_are_refused(void **state)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(65536);

	for (int i = 0; i < 2000; i++)
		hf_strbuf_addch(&text, '[');
	for (int i = 0; i < 2000; i++)
		hf_strbuf_addch(&text, ']');
	assert_refused(text.data, "deep");
}

static void what_is_no_object_is_refused(void **state)
{
	assert_refused("just text\n", "not a Kubernetes object");
	assert_refused("[1, 2]\n", "not a Kubernetes object");
	assert_refused("kind: PyTorchJob\n", "not a Kubernetes object");
}

static void an_unknown_kind_is_refused_with_those_that_are_known(void **state)
{
	assert_refused(
		"apiVersion: kubeflow.org/v1\nkind: PyTorchjob\n",
		":2: unknown kind 'PyTorchjob' in 'kubeflow.org/v1': did you mean PyTorchJob "
		"(kubeflow.org/v1)?\n");
	assert_refused("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\n",
		       "did you mean MPIJob (kubeflow.org/v1)?");
	assert_refused("apiVersion: kubeflow.org/v1\nkind: SparkApplication\n",
		       "; known kinds: TFJob (kubeflow.org/v1) PyTorchJob (kubeflow.org/v1)");
}

static void an_unknown_field_is_refused_with_its_path_and_line(void **state)
{
	assert_refused(
		HEAD
		"spec:\n  runPolicy: {backofLimit: 3}\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n" TEMPLATE,
		":5: unknown field \"spec.runPolicy.backofLimit\"");
}

static void an_unknown_field_of_a_container_is_refused(void **state)
{
	assert_refused(
		HEAD "spec:\n  pytorchReplicaSpecs:\n    Master:\n      template:\n        spec:\n"
		     "          containers:\n          - {name: pytorch, image: x, comand: [a]}\n",
		"unknown field \"spec.pytorchReplicaSpecs.Master.template.spec.containers[0].comand\"");
}

static void a_number_in_quotes_is_a_wrong_type(void **state)
{
	assert_refused(
		HEAD "spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: \"2\"\n" TEMPLATE,
		":7: spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: \"string\"");
}

static void a_list_where_an_object_belongs_is_a_wrong_type(void **state)
{
	assert_refused(HEAD "spec: []\n", "spec: Invalid value: \"array\"");
	assert_refused(HEAD "spec:\n  pytorchReplicaSpecs: []\n", "must be of type object");
}

static void a_name_that_is_no_label_is_refused(void **state)
{
	assert_refused("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: Bad_Name}\n"
		       "spec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n" TEMPLATE,
		       ":3: metadata.name: Invalid value: \"Bad_Name\"");
	assert_refused("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: 1a}\n"
		       "spec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n" TEMPLATE,
		       "metadata.name: Invalid value");
}

static void negative_replicas_are_refused(void **state)
{
	assert_refused(HEAD
		       "spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: -1\n" TEMPLATE,
		       ":7: spec.pytorchReplicaSpecs[Worker].replicas: Forbidden");
}

static void a_billion_replicas_are_refused(void **state)
{
	assert_refused(
		HEAD
		"spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: 1000000000\n" TEMPLATE,
		":5: spec.pytorchReplicaSpecs: Invalid value");
	assert_refused(
		HEAD
		"spec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: 10000000000\n" TEMPLATE,
		"replicas");
}

static void two_masters_are_refused(void **state)
{
	assert_refused(HEAD
		       "spec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 2\n" TEMPLATE,
		       "must be 1");
}

static void missing_containers_are_refused(void **state)
{
	assert_refused(HEAD "spec:\n  pytorchReplicaSpecs:\n    Master: {template: {spec: {}}}\n",
		       "spec.pytorchReplicaSpecs[Master].template.spec.containers");
	assert_refused(HEAD "spec: {}\n", "spec.pytorchReplicaSpecs");
}

static void a_missing_image_is_refused(void **state)
{
	assert_refused(HEAD "spec:\n  pytorchReplicaSpecs:\n    Master: {template: {spec: "
			    "{containers: [{name: pytorch}]}}}\n",
		       "image");
}

static void an_unknown_replica_type_is_refused(void **state)
{
	assert_refused(HEAD "spec:\n  pytorchReplicaSpecs:\n    Wroker:\n" TEMPLATE, "Wroker");
}

static void an_unknown_restart_policy_is_refused(void **state)
{
	assert_refused(
		HEAD
		"spec:\n  pytorchReplicaSpecs:\n    Master:\n      restartPolicy: Sometimes\n" TEMPLATE,
		"restartPolicy");
}

static void control_characters_of_the_file_do_not_reach_the_terminal(void **state)
{
	assert_refused("apiVersion: \"kubeflow.org/a\\e[31m\"\nkind: \"b\\u0007\"\n",
		       "unknown kind");
}

static void a_file_that_is_not_there_is_named(void **state)
{
	struct hf_manifest manifest;
	char *printed = NULL;
	size_t len;
	struct hf_cli cli = {.out = stdout, .err = open_memstream(&printed, &len)};

	assert_int_equal(load_one(&cli, "/nowhere/job.yaml", &manifest), HF_EXIT_USAGE);
	assert_int_equal(load_one(&cli, "/tmp", &manifest), HF_EXIT_USAGE);
	assert_int_equal(fclose(cli.err), 0);
	assert_non_null(strstr(printed, "/nowhere/job.yaml"));
	assert_non_null(strstr(printed, "/tmp"));
	free(printed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_manifest_loads),
		cmocka_unit_test(metadata_that_a_server_refuses_is_refused),
		cmocka_unit_test(a_name_that_is_left_to_the_server_is_made),
		cmocka_unit_test(a_name_too_long_for_services_is_warned_of),
		cmocka_unit_test(nothing_in_the_file_is_said),
		cmocka_unit_test(each_document_is_checked_with_its_own_lines),
		cmocka_unit_test(other_objects_are_passed_over),
		cmocka_unit_test(tabs_as_indentation_are_refused_with_their_line),
		cmocka_unit_test(duplicate_keys_are_refused_with_both_lines),
		cmocka_unit_test(an_unclosed_bracket_is_refused_with_its_line),
		cmocka_unit_test(anchors_that_explode_are_refused),
		cmocka_unit_test(an_alias_inside_its_own_anchor_is_refused),
		cmocka_unit_test(fifty_megabytes_are_refused_without_reading_them_all),
		cmocka_unit_test(bytes_that_are_no_utf8_are_refused),
		cmocka_unit_test(values_nested_too_deep_are_refused),
		cmocka_unit_test(what_is_no_object_is_refused),
		cmocka_unit_test(an_unknown_kind_is_refused_with_those_that_are_known),
		cmocka_unit_test(an_unknown_field_is_refused_with_its_path_and_line),
		cmocka_unit_test(an_unknown_field_of_a_container_is_refused),
		cmocka_unit_test(a_number_in_quotes_is_a_wrong_type),
		cmocka_unit_test(a_list_where_an_object_belongs_is_a_wrong_type),
		cmocka_unit_test(a_name_that_is_no_label_is_refused),
		cmocka_unit_test(negative_replicas_are_refused),
		cmocka_unit_test(a_billion_replicas_are_refused),
		cmocka_unit_test(two_masters_are_refused),
		cmocka_unit_test(missing_containers_are_refused),
		cmocka_unit_test(a_missing_image_is_refused),
		cmocka_unit_test(an_unknown_replica_type_is_refused),
		cmocka_unit_test(an_unknown_restart_policy_is_refused),
		cmocka_unit_test(control_characters_of_the_file_do_not_reach_the_terminal),
		cmocka_unit_test(a_file_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
