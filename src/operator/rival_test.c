/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "operator/rival.h"

#include "base/mem.h"
#include "framework/framework.h"

#include <string.h>

#define SINCE (1700000000 * HF_SECOND) /* 2023-11-14T22:13:20Z */

static char manager[HF_RIVAL_NAME_MAX];

static bool wrote(const char *entry, const char *spec)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"manager\":\"kubectl-create\","
		"\"operation\":\"Update\",\"time\":\"2033-01-01T00:00:00Z\",\"fieldsV1\":{}},%s]},"
		"\"spec\":%s}",
		entry, spec);
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));

	manager[0] = '\0';
	return hf_rival_wrote(doc, SINCE, SINCE + HF_MINUTE, arena, manager);
}

#define ENTRY(name, sub, time)                                                                     \
	"{\"manager\":\"" name "\",\"operation\":\"Update\",\"subresource\":\"" sub                \
	"\",\"time\":\"" time "\",\"fieldsV1\":{\"f:status\":{\"f:replicaStatuses\":{}}}}"
#define LATER "2023-11-14T22:13:21Z"

static void test_a_status_written_by_another_manager_is_a_rivals(void **state)
{
	assert_true(wrote(ENTRY("manager", "status", LATER), "{}"));
	assert_string_equal(manager, "manager");
	assert_true(wrote(ENTRY("training-operator", "status", LATER),
			  "{\"runPolicy\":{\"managedBy\":\"kubeflow.org/training-operator\"}}"));
}

static void test_what_was_written_before_we_began_is_history(void **state)
{
	assert_false(wrote(ENTRY("manager", "status", "2023-11-14T22:13:20Z"), "{}"));
	assert_false(wrote(ENTRY("manager", "status", "2020-01-01T00:00:00Z"), "{}"));
}

static void test_what_is_to_come_has_not_been_written(void **state)
{
	assert_true(wrote(ENTRY("manager", "status", "2023-11-14T22:14:20Z"), "{}"));
	assert_false(wrote(ENTRY("manager", "status", "2023-11-14T22:14:21Z"), "{}"));
	assert_false(wrote(ENTRY("manager", "status", "2099-01-01T00:00:00Z"), "{}"));
}

static void test_we_and_people_are_no_rivals(void **state)
{
	assert_false(wrote(ENTRY("holdfast", "status", LATER), "{}"));
	assert_false(wrote(ENTRY("kubectl-edit", "status", LATER), "{}"));
	assert_false(wrote(ENTRY("kubectl-patch", "status", LATER), "{}"));
}

static void test_a_client_that_adds_a_condition_is_no_operator(void **state)
{
	assert_false(wrote("{\"manager\":\"progress\",\"subresource\":\"status\",\"time\":\"" LATER
			   "\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{}}}}",
			   "{}"));
	assert_true(
		wrote("{\"manager\":\"manager\",\"subresource\":\"status\",\"time\":\"" LATER
		      "\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{},\"f:startTime\":{}}}}",
		      "{}"));
}

static void test_a_client_that_writes_elsewhere_in_the_job_is_no_rival(void **state)
{
	assert_false(wrote(ENTRY("kueue", "scale", LATER), "{}"));
	assert_false(wrote("{\"manager\":\"kueue\",\"time\":\"" LATER "\"}", "{}"));
}

static void test_a_job_that_is_managed_elsewhere_is_written_elsewhere(void **state)
{
	assert_false(wrote(ENTRY("kueue-admission", "status", LATER),
			   "{\"runPolicy\":{\"managedBy\":\"kueue.x-k8s.io/multikueue\"}}"));
}

static void test_what_cannot_be_read_shows_nothing(void **state)
{
	assert_false(wrote("7", "{}"));
	assert_false(wrote(ENTRY("manager", "status", "yesterday"), "{}"));
	assert_false(
		wrote("{\"manager\":1,\"subresource\":\"status\",\"time\":\"" LATER "\"}", "{}"));
	assert_false(wrote(ENTRY("manager", "status", LATER), "\"x\""));
}

static bool ready(const char *text)
{
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));

	return hf_rival_is_ready(doc);
}

static void test_a_deployment_with_a_ready_replica_is_a_rival(void **state)
{
	assert_true(ready("{\"status\":{\"readyReplicas\":1}}"));
	assert_false(ready("{\"status\":{\"readyReplicas\":0}}"));
	assert_false(ready("{\"status\":{}}"));
	assert_false(ready("{}"));
}

static void test_our_own_deployment_may_have_its_name(void **state)
{
	assert_false(ready("{\"metadata\":{\"labels\":{\"app.kubernetes.io/name\":\"holdfast\"}},"
			   "\"status\":{\"readyReplicas\":1}}"));
}

/* Whether the container serves PyTorchJobs or JAXJobs in that namespace. */
static bool shares(const char *container, const char *ns)
{
	static const struct hf_framework *const ours[] = {&hf_framework_pytorch, &hf_framework_jax,
							  NULL};
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"metadata\":{\"name\":\"training-operator\",\"namespace\":\"kubeflow\"},\"spec\":{"
		"\"template\":{\"spec\":{\"containers\":[%s]}}}}",
		container);
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));

	return hf_rival_shares(doc, ours, ns);
}

#define ARGS(args) "{\"name\":\"m\",\"command\":[\"/manager\"],\"args\":[" args "]}"

static void test_other_kinds_are_nobodys_rivals(void **state)
{
	assert_true(shares(ARGS(""), NULL));
	assert_false(shares(ARGS("\"--enable-scheme=tfjob\""), NULL));
	assert_false(shares(ARGS("\"-enable-scheme\",\"TFJob\",\"--leader-elect\","
				 "\"--enable-scheme=MPIJob\""),
			    NULL));
	assert_true(shares(ARGS("\"--enable-scheme=tfjob\",\"-enable-scheme=jaxJob\""), NULL));
	assert_true(shares(ARGS("\"--gang-scheduler-name\",\"--enable-scheme=tfjob\""), NULL));
	assert_false(shares("{\"name\":\"m\",\"command\":[\"/manager\",\"--enable-scheme=tfjob\"]}",
			    NULL));
}

static void test_other_namespaces_are_nobodys_rivals(void **state)
{
	assert_true(shares(ARGS("\"--namespace=a\""), NULL));
	assert_true(shares(ARGS("\"--namespace=a\""), "a"));
	assert_false(shares(ARGS("\"--namespace=a\""), "b"));
	assert_true(shares(ARGS("\"--namespace=\""), "b"));
	assert_true(shares(ARGS(""), "b"));
	assert_false(shares(ARGS("\"-namespace\",\"b\",\"--namespace\",\"a\""), "b"));
}

static void test_the_namespace_of_a_rival_may_be_of_the_environment(void **state)
{
#define ENV(value) "{\"name\":\"m\",\"env\":[{\"name\":\"KUBEFLOW_NAMESPACE\"," value "}]}"
	assert_false(shares(ENV("\"value\":\"a\""), "b"));
	assert_true(shares(ENV("\"value\":\"b\""), "b"));
	assert_true(shares(ENV("\"value\":\"$(X)\""), "b"));
	assert_false(shares(
		ENV("\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.namespace\"}}"), "b"));
	assert_true(
		shares(ENV("\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.namespace\"}}"),
		       "kubeflow"));
	assert_true(shares(ENV("\"valueFrom\":{\"configMapKeyRef\":{}}"), "b"));
}

static void test_what_it_serves_and_cannot_be_known_may_be_all(void **state)
{
	assert_true(shares("{\"name\":\"m\",\"command\":[\"sh\",\"-c\",\"/manager "
			   "--enable-scheme=tfjob\"]}",
			   NULL));
	assert_true(shares("{\"name\":\"m\",\"command\":[\"tini\",\"/manager\","
			   "\"--enable-scheme=tfjob\"]}",
			   NULL));
	assert_true(shares(ARGS("\"--enable-scheme=$(KIND)\""), NULL));
	assert_true(shares(ARGS("\"--namespace=$(NS)\""), "b"));
	assert_true(shares(ARGS("\"--enable-scheme=tfjob\",\"--kubeconfig\""), NULL));
	assert_true(shares(ARGS("7,\"--enable-scheme=tfjob\""), NULL));
	assert_true(shares("", NULL));
}

static void test_the_operators_container_is_found_among_others(void **state)
{
	assert_false(shares("{\"name\":\"proxy\"},{\"name\":\"training-operator\",\"args\":["
			    "\"--enable-scheme=tfjob\"]}",
			    NULL));
	assert_true(shares("{\"name\":\"proxy\"},{\"name\":\"manager\",\"args\":["
			   "\"--enable-scheme=tfjob\"]}",
			   NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_status_written_by_another_manager_is_a_rivals),
		cmocka_unit_test(test_what_was_written_before_we_began_is_history),
		cmocka_unit_test(test_what_is_to_come_has_not_been_written),
		cmocka_unit_test(test_we_and_people_are_no_rivals),
		cmocka_unit_test(test_a_client_that_adds_a_condition_is_no_operator),
		cmocka_unit_test(test_a_client_that_writes_elsewhere_in_the_job_is_no_rival),
		cmocka_unit_test(test_a_job_that_is_managed_elsewhere_is_written_elsewhere),
		cmocka_unit_test(test_what_cannot_be_read_shows_nothing),
		cmocka_unit_test(test_a_deployment_with_a_ready_replica_is_a_rival),
		cmocka_unit_test(test_our_own_deployment_may_have_its_name),
		cmocka_unit_test(test_other_kinds_are_nobodys_rivals),
		cmocka_unit_test(test_other_namespaces_are_nobodys_rivals),
		cmocka_unit_test(test_the_namespace_of_a_rival_may_be_of_the_environment),
		cmocka_unit_test(test_what_it_serves_and_cannot_be_known_may_be_all),
		cmocka_unit_test(test_the_operators_container_is_found_among_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
