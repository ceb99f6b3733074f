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

static const char *env_field(const char *pod, const char *name)
{
	return brain_edit(&b, pod, HF_EDIT_ENV_FIELD, name);
}

static void collective_workers_meet_at_worker_0(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_paddle, 0, 2);
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-0", "PYTHONUNBUFFERED"), "1");
	assert_string_equal(env_value("demo-worker-0", "PADDLE_JOB_ID"), "demo");
	assert_string_equal(env_value("demo-worker-0", "PADDLE_NNODES"), "2");
	assert_string_equal(env_field("demo-worker-0", "POD_IP_DUMMY"), "status.podIP");
	assert_string_equal(env_value("demo-worker-0", "PADDLE_MASTER"), "$(POD_IP_DUMMY):36543");
	assert_null(env_field("demo-worker-1", "POD_IP_DUMMY"));
	assert_string_equal(env_value("demo-worker-1", "PADDLE_MASTER"), "demo-worker-0:36543");
	assert_null(env_value("demo-worker-1", "PADDLE_TRAINER_NUM"));
	brain_release(&b);
}

static void a_master_is_the_parameter_server(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_paddle, 1, 2);
	brain_step(&b);
	assert_string_equal(env_value("demo-master-0", "PADDLE_MASTER"), "$(POD_IP_DUMMY):36543");
	assert_string_equal(env_value("demo-master-0", "PADDLE_SERVER_NUM"), "1");
	assert_null(env_value("demo-master-0", "PADDLE_TRAINER_NUM"));
	assert_string_equal(env_value("demo-worker-0", "PADDLE_MASTER"), "demo-master-0:36543");
	assert_null(env_field("demo-worker-0", "POD_IP_DUMMY"));
	assert_string_equal(env_value("demo-worker-0", "PADDLE_TRAINER_NUM"), "1");
	assert_string_equal(env_value("demo-worker-0", "PADDLE_NNODES"), "3");
	assert_string_equal(
		brain_edit(&b, "demo-master-0", HF_EDIT_LABEL, "training.kubeflow.org/job-role"),
		"master");
	brain_release(&b);
}

static void a_collective_job_has_no_master(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_paddle, 0, 1);
	brain_step(&b);
	assert_null(
		brain_edit(&b, "demo-worker-0", HF_EDIT_LABEL, "training.kubeflow.org/job-role"));
	brain_release(&b);
}

static void success_is_the_masters_or_all_workers(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_paddle, 1, 1);
	brain_run_up(&b);
	brain_exit(&b, "demo-master-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_SUCCEEDED)->message,
			    "PaddleJob demo is successfully completed.");
	brain_release(&b);
	brain_init(&b, &hf_framework_paddle, 0, 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-worker-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_exit(&b, "demo-worker-1", 0);
	brain_quiet(&b);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_SUCCEEDED)->message,
			    "PaddleJob lab/demo successfully completed.");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collective_workers_meet_at_worker_0),
		cmocka_unit_test(a_master_is_the_parameter_server),
		cmocka_unit_test(a_collective_job_has_no_master),
		cmocka_unit_test(success_is_the_masters_or_all_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
