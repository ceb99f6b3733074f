/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "operator/rival.h"

#include "base/mem.h"

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
	return hf_rival_wrote(doc, SINCE, arena, manager);
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

static void test_we_and_people_are_no_rivals(void **state)
{
	assert_false(wrote(ENTRY("holdfast", "status", LATER), "{}"));
	assert_false(wrote(ENTRY("kubectl-edit", "status", LATER), "{}"));
	assert_false(wrote(ENTRY("kubectl-patch", "status", LATER), "{}"));
}

static void test_who_adds_a_condition_is_no_operator(void **state)
{
	assert_false(wrote("{\"manager\":\"progress\",\"subresource\":\"status\",\"time\":\"" LATER
			   "\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{}}}}",
			   "{}"));
	assert_true(
		wrote("{\"manager\":\"manager\",\"subresource\":\"status\",\"time\":\"" LATER
		      "\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{},\"f:startTime\":{}}}}",
		      "{}"));
}

static void test_who_writes_elsewhere_in_the_job_is_no_rival(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_status_written_by_another_manager_is_a_rivals),
		cmocka_unit_test(test_what_was_written_before_we_began_is_history),
		cmocka_unit_test(test_we_and_people_are_no_rivals),
		cmocka_unit_test(test_who_adds_a_condition_is_no_operator),
		cmocka_unit_test(test_who_writes_elsewhere_in_the_job_is_no_rival),
		cmocka_unit_test(test_a_job_that_is_managed_elsewhere_is_written_elsewhere),
		cmocka_unit_test(test_what_cannot_be_read_shows_nothing),
		cmocka_unit_test(test_a_deployment_with_a_ready_replica_is_a_rival),
		cmocka_unit_test(test_our_own_deployment_may_have_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
