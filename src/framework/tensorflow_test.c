/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "framework/framework.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

#include <string.h>

static struct brain b;

static const char *env_value(const char *pod, const char *name)
{
	return brain_edit(&b, pod, HF_EDIT_ENV, name);
}

static struct hf_field_errors errors;

/* Example: begin_job("Chief", 1, "PS", 2); second may be NULL. */
static void begin_job(const char *type, int replicas, const char *second, int more)
{
	brain_init(&b, &hf_framework_tensorflow, replicas, second ? more : 0);
	b.replicas[0].type = type;
	if (second)
		b.replicas[1].type = second;
}

static void every_rank_gets_all_addresses(void **state)
{
	(void)state;
	begin_job("Worker", 2, "PS", 1);
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-1", "TF_CONFIG"),
			    "{\"cluster\":{\"ps\":[\"demo-ps-0.lab.svc:2222\"],\"worker\":["
			    "\"demo-worker-0.lab.svc:2222\",\"demo-worker-1.lab.svc:2222\"]},"
			    "\"task\":{\"type\":\"worker\",\"index\":1},"
			    "\"environment\":\"cloud\"}");
	assert_non_null(strstr(env_value("demo-ps-0", "TF_CONFIG"),
			       "\"task\":{\"type\":\"ps\",\"index\":0}"));
	brain_release(&b);
}

static void the_operators_cluster_domain_is_appended(void **state)
{
	(void)state;
	begin_job("Chief", 1, "Worker", 1);
	b.settings.cluster_domain = "tf.training.com";
	brain_step(&b);
	assert_non_null(strstr(env_value("demo-chief-0", "TF_CONFIG"),
			       "\"chief\":[\"demo-chief-0.lab.svc.tf.training.com:2222\"]"));
	brain_release(&b);
}

static void one_rank_trains_locally(void **state)
{
	(void)state;
	begin_job("Worker", 1, NULL, 0);
	brain_step(&b);
	assert_true(brain_creates(&b, "demo-worker-0"));
	assert_null(env_value("demo-worker-0", "TF_CONFIG"));
	brain_release(&b);
}

static void a_dynamic_worker_gets_its_own_address_and_the_servers(void **state)
{
	(void)state;
	begin_job("Worker", 2, "PS", 2);
	b.view.dynamic_workers = true;
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-1", "TF_CONFIG"),
			    "{\"cluster\":{\"worker\":{\"1\":\"demo-worker-1.lab.svc:2222\"},"
			    "\"ps\":[\"demo-ps-0.lab.svc:2222\",\"demo-ps-1.lab.svc:2222\"]},"
			    "\"task\":{\"type\":\"worker\",\"index\":1}}");
	assert_string_equal(env_value("demo-ps-1", "TF_CONFIG"),
			    "{\"cluster\":{\"worker\":{},\"ps\":[\"demo-ps-1.lab.svc:2222\"]},"
			    "\"task\":{\"type\":\"ps\",\"index\":1}}");
	brain_release(&b);
	begin_job("Worker", 2, "Evaluator", 1);
	b.view.dynamic_workers = true;
	brain_step(&b);
	assert_non_null(strstr(env_value("demo-worker-0", "TF_CONFIG"), "\"ps\":null"));
	assert_non_null(
		strstr(env_value("demo-evaluator-0", "TF_CONFIG"), "\"worker\":{},\"ps\":[]"));
	brain_release(&b);
}

/* The cluster section is made once in a step; each rank adds its own task. */
static void all_ranks_get_the_same_cluster(void **state)
{
	const char *first, *other, *task;

	(void)state;
	begin_job("Worker", 3, "PS", 1);
	brain_step(&b);
	first = env_value("demo-ps-0", "TF_CONFIG");
	other = env_value("demo-worker-2", "TF_CONFIG");
	task = strstr(first, ",\"task\"");
	assert_non_null(task);
	assert_memory_equal(first, other, (size_t)(task - first));
	assert_non_null(strstr(task, "\"type\":\"ps\",\"index\":0"));
	assert_non_null(strstr(other, "\"type\":\"worker\",\"index\":2"));
	brain_release(&b);
}

static void the_deciding_role_has_the_master_label(void **state)
{
	static const char label[] = "training.kubeflow.org/job-role";

	(void)state;
	begin_job("Worker", 2, "PS", 1);
	brain_step(&b);
	assert_non_null(brain_edit(&b, "demo-worker-0", HF_EDIT_LABEL, label));
	assert_null(brain_edit(&b, "demo-worker-1", HF_EDIT_LABEL, label));
	assert_null(brain_edit(&b, "demo-ps-0", HF_EDIT_LABEL, label));
	brain_release(&b);
	begin_job("Master", 1, "Worker", 1);
	brain_step(&b);
	assert_non_null(brain_edit(&b, "demo-master-0", HF_EDIT_LABEL, label));
	assert_null(brain_edit(&b, "demo-worker-0", HF_EDIT_LABEL, label));
	brain_release(&b);
}

static void success_is_the_chiefs_or_worker_0s_or_all_workers(void **state)
{
	(void)state;
	begin_job("Chief", 1, "Worker", 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-worker-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_exit(&b, "demo-chief-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	brain_release(&b);
	for (int all = 0; all < 2; all++) {
		begin_job("Worker", 2, "PS", 1);
		b.view.success_policy = all ? "AllWorkers" : "";
		brain_run_up(&b);
		brain_exit(&b, "demo-worker-0", 0);
		brain_quiet(&b);
		assert_string_equal(brain_last_condition(&b),
				    all ? HF_COND_RUNNING : HF_COND_SUCCEEDED);
		brain_exit(&b, "demo-worker-1", 0);
		brain_quiet(&b);
		assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
		assert_string_equal(hf_status_condition(&b.view.status, HF_COND_SUCCEEDED)->message,
				    "TFJob lab/demo successfully completed.");
		brain_release(&b);
	}
}

static void failure_has_words_of_its_own(void **state)
{
	(void)state;
	begin_job("Worker", 2, NULL, 0);
	b.replicas[0].restart_policy = "Never";
	brain_run_up(&b);
	brain_after(&b, 5);
	brain_exit(&b, "demo-worker-1", 1);
	brain_nodes_heard(&b);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_FAILED)->message,
			    "TFJob lab/demo has failed because 1 Worker replica(s) failed.");
	brain_release(&b);
}

static void there_is_one_chief_or_one_master(void **state)
{
	(void)state;
	begin_job("Chief", 1, "Master", 1);
	hf_field_errors_init(&errors, b.pass);
	b.view.framework->validate(&b.view, &errors);
	assert_int_equal(errors.len, 1);
	assert_string_equal(errors.items[0].field, "spec.tfReplicaSpecs");
	b.replicas[1].type = "Trainer"; /* a type that TFJob does not define, but accepts */
	hf_field_errors_init(&errors, b.pass);
	b.view.framework->validate(&b.view, &errors);
	assert_int_equal(errors.len, 0);
	brain_release(&b);
}

/* No process can be started with 2,500 addresses: the problem is reported, and no pod is
 * created. */
static void a_cluster_too_long_for_the_environment_is_reported(void **state)
{
	(void)state;
	begin_job("Worker", 1, "PS", 1);
	b.replicas[0].replicas = HF_SOME_INT(6000);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "TF_CONFIG"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_gets_all_addresses),
		cmocka_unit_test(the_operators_cluster_domain_is_appended),
		cmocka_unit_test(one_rank_trains_locally),
		cmocka_unit_test(a_dynamic_worker_gets_its_own_address_and_the_servers),
		cmocka_unit_test(all_ranks_get_the_same_cluster),
		cmocka_unit_test(the_deciding_role_has_the_master_label),
		cmocka_unit_test(success_is_the_chiefs_or_worker_0s_or_all_workers),
		cmocka_unit_test(failure_has_words_of_its_own),
		cmocka_unit_test(there_is_one_chief_or_one_master),
		cmocka_unit_test(a_cluster_too_long_for_the_environment_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
