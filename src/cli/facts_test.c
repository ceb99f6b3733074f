/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/facts.h"

#include "json/doc.h"

#include "base/mem.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

static struct hf_pod_facts pod_of(const char *text)
{
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
	struct hf_pod_facts facts;

	hf_pod_facts_read(hf_doc_json(doc), &facts);
	return facts;
}

static void a_pod_is_summed_up_as_kubectl_does(void **state)
{
	static const struct {
		const char *pod, *status;
	} cases[] = {
		{"{}", "Pending"},
		{"{\"status\":{\"phase\":\"Running\"}}", "Running"},
		{"{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\"}}", "Evicted"},
		{"{\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":"
		 "{\"terminated\":{\"reason\":\"Error\"}}}]}}",
		 "Error"},
		{"{\"metadata\":{\"deletionTimestamp\":\"x\"},\"status\":{\"phase\":"
		 "\"Running\"}}",
		 "Terminating"},
		{"{\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"state\":"
		 "{\"terminated\":{\"exitCode\":0}}},{\"state\":{\"running\":{}}}]}}",
		 "Init:1/2"},
		{"{\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"state\":"
		 "{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}}]}}",
		 "Init:Error"},
		{"{\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":[{\"state\":"
		 "{\"terminated\":{\"exitCode\":0}}}]}}",
		 "Running"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		assert_string_equal(pod_of(cases[i].pod).status, cases[i].status);
}

static void the_container_of_the_kind_is_the_main_one(void **state)
{
	static const struct {
		const char *kind, *names[2], *main;
	} cases[] = {
		{"PyTorchJob", {"proxy", "pytorch"}, "pytorch"},
		{"PyTorchJob", {"pytorch", "proxy"}, "pytorch"},
		{"PyTorchJob", {"train", "proxy"}, "train"},
		{"MPIJob", {"pytorch", "mpi"}, "mpi"},
		{"ReplicaSet", {"proxy", "pytorch"}, "proxy"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = hf_xasprintf(
			"{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":"
			"\"%s\"}]},\"status\":{\"containerStatuses\":[{\"name\":\"%s\"},{\"name\":\"%s\"}]}}",
			cases[i].kind, cases[i].names[0], cases[i].names[1]);
		HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));

		assert_string_equal(
			hf_json_path_str(hf_pod_main_status(hf_doc_json(doc)), "name", NULL),
			cases[i].main);
	}
	assert_null(hf_pod_main_status(NULL));
}

static void containers_are_counted(void **state)
{
	struct hf_pod_facts facts =
		pod_of("{\"spec\":{\"containers\":[{},{},{}]},\"status\":{\"containerStatuses\":"
		       "[{\"ready\":true,\"restartCount\":2},{\"restartCount\":3}]}}");

	assert_int_equal(facts.containers, 3);
	assert_int_equal(facts.ready, 1);
	assert_int_equal(facts.restarts, 5);
}

static const char *failed_start(const char *status)
{
	static char why[HF_FAILED_START_MAX];
	HF_AUTO_DOC doc = hf_doc_from_text(status, strlen(status));

	assert_non_null(hf_doc_json(doc));
	return hf_container_failed_start(hf_doc_json(doc), why) ? why : "";
}

static void a_container_that_never_started_is_told_from_one_that_ran(void **state)
{
	static const struct {
		const char *status, *why;
	} cases[] = {
		{"{}", ""},
		{"{\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}}", ""},
		{"{\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\",\"message\":\"no c\"}}}",
		 "ContainerCreating: no c"},
		{"{\"state\":{\"waiting\":{\"reason\":\"InvalidImageName\"}}}", "InvalidImageName"},
		{"{\"state\":{\"terminated\":{\"reason\":\"StartError\",\"message\":\"a\\nb\"}}}",
		 "StartError: a b"},
		{"{\"state\":{\"terminated\":{\"reason\":\"Error\",\"message\":\"a\"}}}", ""},
		{"{\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},\"lastState\":"
		 "{\"terminated\":{\"reason\":\"StartError\",\"message\":\"a\"}}}",
		 "StartError: a"},
		/* The program has started since. */
		{"{\"state\":{\"running\":{}},\"lastState\":{\"terminated\":{\"reason\":"
		 "\"StartError\"}}}",
		 ""},
		{"{\"state\":{\"terminated\":{\"reason\":\"Error\"}},\"lastState\":{\"terminated\":"
		 "{\"reason\":\"StartError\"}}}",
		 ""},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		assert_string_equal(failed_start(cases[i].status), cases[i].why);
}

static void a_job_is_what_its_last_true_condition_says(void **state)
{
	static const char text[] =
		"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"spec\":"
		"{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":4},\"Master\":{},"
		"\"Other\":{\"replicas\":9}}},\"status\":{\"conditions\":["
		"{\"type\":\"Created\",\"status\":\"True\"},"
		"{\"type\":\"Running\",\"status\":\"True\",\"message\":\"m\"},"
		"{\"type\":\"Failed\",\"status\":\"False\"}],\"replicaStatuses\":"
		"{\"Worker\":{\"active\":2,\"failed\":1},\"Master\":{\"succeeded\":1}}}}";
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
	struct hf_job_facts facts;

	hf_job_facts_read(hf_doc_json(doc), &facts);
	assert_string_equal(facts.state, "Running");
	assert_string_equal(facts.message, "m");
	assert_int_equal(facts.wanted, 5);
	assert_int_equal(facts.active, 2);
	assert_int_equal(facts.succeeded, 1);
	assert_int_equal(hf_job_ready(&facts, 2), 3);
	/* the status of a job that has succeeded counts ranks that still run as succeeded */
	facts.state = "Succeeded";
	assert_int_equal(hf_job_ready(&facts, 2), 1);
	hf_job_facts_read(NULL, &facts);
	assert_string_equal(facts.state, "Created");
	assert_int_equal(facts.wanted, 0);
	assert_int_equal(hf_job_restarts(&facts), 0);
}

static void restarts_of_all_budgets_are_added(void **state)
{
	static const char text[] = "{\"status\":{\"recovery\":{\"generation\":4,\"restarts\":"
				   "{\"application\":1,\"infrastructure\":2,\"device\":4}}}}";
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
	struct hf_job_facts facts;

	hf_job_facts_read(hf_doc_json(doc), &facts);
	assert_int_equal(hf_job_restarts(&facts), 7);
	facts.restarts[HF_BUDGET_APPLICATION] = INT64_MAX;
	assert_true(hf_job_restarts(&facts) == INT64_MAX);
}

static void the_end_of_the_job_is_no_restart(void **state)
{
	static const char format[] =
		"{\"kind\":\"PyTorchJob\",\"status\":{\"recovery\":{\"incident\":{\"id\":4,\"charged\":"
		"\"application\"},\"restarts\":{\"application\":3,\"device\":1},\"last\":{\"incident\":4"
		"%s}}}}";
	static const struct {
		const char *scope;
		int64_t restarts;
	} cases[] = {{",\"scope\":\"Job\"", 4}, {"", 3}};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = hf_xasprintf(format, cases[i].scope);
		HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
		struct hf_job_facts facts;

		hf_job_facts_read(hf_doc_json(doc), &facts);
		assert_int_equal(hf_job_restarts(&facts), cases[i].restarts);
		assert_int_equal(facts.charged[HF_BUDGET_APPLICATION], 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_summed_up_as_kubectl_does),
		cmocka_unit_test(containers_are_counted),
		cmocka_unit_test(the_container_of_the_kind_is_the_main_one),
		cmocka_unit_test(a_container_that_never_started_is_told_from_one_that_ran),
		cmocka_unit_test(a_job_is_what_its_last_true_condition_says),
		cmocka_unit_test(restarts_of_all_budgets_are_added),
		cmocka_unit_test(the_end_of_the_job_is_no_restart),
	};

	return cmocka_run_group_tests_name("states", tests, NULL, NULL);
}
