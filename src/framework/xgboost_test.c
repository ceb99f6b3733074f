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

static size_t count_problems(void)
{
	hf_field_errors_init(&errors, b.pass);
	b.view.framework->validate(&b.view, &errors);
	return errors.len;
}

static void ranks_count_from_the_master_on(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_xgboost, 1, 2);
	brain_step(&b);
	assert_string_equal(env_value("demo-master-0", "RANK"), "0");
	assert_string_equal(env_value("demo-worker-1", "RANK"), "2");
	assert_string_equal(env_value("demo-worker-1", "MASTER_ADDR"), "demo-master-0");
	assert_string_equal(env_value("demo-worker-1", "MASTER_PORT"), "9999");
	assert_string_equal(env_value("demo-worker-1", "WORLD_SIZE"), "3");
	assert_string_equal(env_value("demo-worker-1", "PYTHONUNBUFFERED"), "1");
	assert_string_equal(env_value("demo-master-0", "WORKER_PORT"), "9999");
	assert_string_equal(env_value("demo-master-0", "WORKER_ADDRS"),
			    "demo-worker-0,demo-worker-1");
	brain_release(&b);
}

static void a_master_alone_has_no_peers(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_xgboost, 1, 0);
	brain_step(&b);
	assert_string_equal(env_value("demo-master-0", "WORLD_SIZE"), "1");
	assert_null(env_value("demo-master-0", "WORKER_ADDRS"));
	brain_release(&b);
}

static void a_master_is_required(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_xgboost, 1, 1);
	b.replicas[0].replicas = HF_SOME_INT(1);
	assert_int_equal(count_problems(), 0);
	b.replicas[0].replicas = HF_SOME_INT(2);
	assert_int_equal(count_problems(), 1);
	assert_string_equal(errors.items[0].field, "spec.xgbReplicaSpecs[Master].replicas");
	brain_release(&b);
	brain_init(&b, &hf_framework_xgboost, 0, 1);
	assert_int_equal(count_problems(), 1);
	assert_string_equal(errors.items[0].field, "spec.xgbReplicaSpecs[Master]");
	assert_int_equal(errors.items[0].problem, HF_PROBLEM_REQUIRED);
	brain_release(&b);
}

/* With 9,000 workers the list of all names is longer than the environment of a process may be. */
static void a_list_of_peers_too_long_for_the_environment_is_reported(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_xgboost, 1, 1);
	b.replicas[1].replicas = HF_SOME_INT(9000);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "WORKER_ADDRS"));
	brain_release(&b);
}

static void the_masters_success_is_the_jobs(void **state)
{
	(void)state;
	brain_init(&b, &hf_framework_xgboost, 1, 1);
	brain_run_up(&b);
	brain_exit(&b, "demo-worker-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_exit(&b, "demo-master-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_SUCCEEDED)->message,
			    "XGBoostJob demo is successfully completed.");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_count_from_the_master_on),
		cmocka_unit_test(a_master_alone_has_no_peers),
		cmocka_unit_test(a_master_is_required),
		cmocka_unit_test(a_list_of_peers_too_long_for_the_environment_is_reported),
		cmocka_unit_test(the_masters_success_is_the_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
