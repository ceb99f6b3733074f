/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "framework/framework.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

static struct brain b;

static const char *env_value(const char *pod, const char *name)
{
	return brain_edit(&b, pod, HF_EDIT_ENV, name);
}

static void every_rank_knows_the_coordinator_and_its_number(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_jax, 3, 0);
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-2", "PYTHONUNBUFFERED"), "1");
	assert_string_equal(env_value("demo-worker-2", "COORDINATOR_PORT"), "6666");
	assert_string_equal(env_value("demo-worker-2", "COORDINATOR_ADDRESS"), "demo-worker-0");
	assert_string_equal(env_value("demo-worker-2", "NUM_PROCESSES"), "3");
	assert_string_equal(env_value("demo-worker-2", "PROCESS_ID"), "2");
	assert_string_equal(env_value("demo-worker-0", "PROCESS_ID"), "0");
	assert_string_equal(
		brain_edit(&b, "demo-worker-0", HF_EDIT_LABEL, "training.kubeflow.org/job-role"),
		"master");
	assert_null(
		brain_edit(&b, "demo-worker-1", HF_EDIT_LABEL, "training.kubeflow.org/job-role"));
	brain_release(&b);
}

static void a_port_of_the_users_own_is_the_coordinators(void **state)
{
	static const struct hf_port port = {.name = "jaxjob-port", .number = 7000};

	(void)state;
	brain_init(&b, &hf_framework_jax, 2, 0);
	b.container.ports = &port;
	b.container.ports_len = 1;
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-1", "COORDINATOR_PORT"), "7000");
	brain_release(&b);
}

static void the_job_succeeds_when_all_workers_have(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_jax, 2, 0);
	brain_run_up(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_exit(&b, "demo-worker-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_exit(&b, "demo-worker-1", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_SUCCEEDED)->message,
			    "JAXJob lab/demo successfully completed.");
	brain_release(&b);
}

static void a_job_without_ranks_has_succeeded(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_jax, 2, 0);
	brain_run_up(&b);
	b.replicas[0].replicas = HF_SOME_INT(0);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-worker-0"));
	assert_true(brain_deletes(&b, "demo-worker-1"));
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_SERVICE), 2);
	brain_perform_all(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_knows_the_coordinator_and_its_number),
		cmocka_unit_test(a_port_of_the_users_own_is_the_coordinators),
		cmocka_unit_test(the_job_succeeds_when_all_workers_have),
		cmocka_unit_test(a_job_without_ranks_has_succeeded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
