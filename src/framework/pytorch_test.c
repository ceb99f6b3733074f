/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "framework/framework.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

#include <string.h>

/* Tests of PyTorchJobs. Complete plans are in tests/golden/defaults and tests/golden/end. */

static struct brain b;

static void begin_job(int master, int workers)
{
	brain_init(&b, &hf_framework_pytorch, master, workers);
}

static const char *env_value(const char *pod, const char *name)
{
	return brain_edit(&b, pod, HF_EDIT_ENV, name);
}

static void elastic_bounds_default_to_each_other_and_to_the_workers(void **state)
{
	static const struct {
		struct hf_opt_int min, max;
		const char *nnodes;
	} rows[] = {
		{{false, 0}, {false, 0}, "2:2"},
		{{true, 1}, {true, 3}, "1:3"},
		{{true, 1}, {false, 0}, "1:1"},
		{{false, 0}, {true, 4}, "4:4"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		begin_job(0, 2);
		b.view.elastic.present = true;
		b.view.elastic.min_replicas = rows[i].min;
		b.view.elastic.max_replicas = rows[i].max;
		brain_step(&b);
		assert_string_equal(env_value("demo-worker-0", "PET_NNODES"), rows[i].nnodes);
		brain_release(&b);
	}
}

static void processes_per_node_multiply_the_world_when_they_are_a_number(void **state)
{
	static const struct {
		const char *nproc;
		const char *world;
		const char *seen;
	} rows[] = {{NULL, "3", "auto"},
		    {"auto", "3", "auto"},
		    {"gpu", "3", "gpu"},
		    {"4", "12", "4"},
		    {"1", "3", "1"}};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		begin_job(1, 2);
		b.view.nproc_per_node = rows[i].nproc;
		brain_step(&b);
		assert_string_equal(env_value("demo-worker-1", "WORLD_SIZE"), rows[i].world);
		assert_string_equal(env_value("demo-worker-1", "PET_NPROC_PER_NODE"), rows[i].seen);
		assert_string_equal(env_value("demo-worker-1", "RANK"), "2");
		assert_string_equal(env_value("demo-master-0", "RANK"), "0");
		brain_release(&b);
	}
}

/* Such a job can exist if it was created under another operator, which accepts the number. */
static void a_number_that_is_too_large_is_named_and_no_pod_is_created(void **state)
{
	static const char *const numbers[] = {"9223372036854775807", "-9223372036854775808",
					      "99999999999999999999", "+1000000000"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(numbers); i++) {
		begin_job(1, 2);
		brain_step(&b);
		brain_write_status(&b);
		b.view.nproc_per_node = numbers[i];
		brain_step(&b);
		assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
		assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "spec.nprocPerNode"));
		brain_release(&b);
	}
	begin_job(1, 2);
	b.view.nproc_per_node = "999999999";
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-1", "WORLD_SIZE"), "2999999997");
	brain_release(&b);
}

static void a_too_long_rdzv_conf_is_refused_not_cut(void **state)
{
	static char long_value[(16 << 10) + 1];
	static const struct hf_key_value conf[] = {{"a", long_value}};

	(void)state;
	memset(long_value, 'x', sizeof(long_value) - 1);
	begin_job(0, 2);
	b.view.elastic.present = true;
	b.view.elastic.has_rdzv_conf = true;
	b.view.elastic.rdzv_conf = conf;
	b.view.elastic.rdzv_conf_len = 1;
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "spec.elasticPolicy.rdzvConf"));
	brain_release(&b);
}

static void the_deprecated_field_wins_only_alone(void **state)
{
	(void)state;
	begin_job(0, 1);
	b.view.elastic.present = true;
	b.view.elastic.nproc_per_node = HF_SOME_INT(2);
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-0", "PET_NPROC_PER_NODE"), "2");
	brain_release(&b);
}

static void only_workers_of_a_master_wait_for_its_name(void **state)
{
	(void)state;
	begin_job(1, 1);
	brain_step(&b);
	assert_non_null(brain_edit(&b, "demo-worker-0", HF_EDIT_INIT_CONTAINER, NULL));
	assert_null(brain_edit(&b, "demo-master-0", HF_EDIT_INIT_CONTAINER, NULL));
	brain_release(&b);
	begin_job(0, 1);
	brain_step(&b);
	assert_null(brain_edit(&b, "demo-worker-0", HF_EDIT_INIT_CONTAINER, NULL));
	brain_release(&b);
}

static const struct hf_edit *init_container(void)
{
	for (size_t s = 0; s < b.plan.stages_len; s++) {
		for (size_t a = 0; a < b.plan.stages[s].actions_len; a++) {
			const struct hf_action *action = &b.plan.stages[s].actions[a];

			for (size_t i = 0; i < action->edits_len; i++) {
				if (action->edits[i].kind == HF_EDIT_INIT_CONTAINER)
					return &action->edits[i];
			}
		}
	}
	return NULL;
}

static void the_init_container_is_the_operators_to_choose(void **state)
{
	(void)state;
	begin_job(1, 1);
	b.settings.init_container_image = "busybox";
	b.settings.init_container_max_tries = 7;
	brain_step(&b);
	assert_string_equal(init_container()->add->image, "busybox");
	assert_non_null(strstr(init_container()->add->command[2], "seq 7"));
	b.settings.init_container_template = true;
	brain_step(&b);
	assert_null(init_container()->add);
	assert_string_equal(init_container()->value, "demo-master-0");
	brain_release(&b);
}

static void the_rendezvous_id_changes_with_the_generation_only(void **state)
{
	(void)state;
	begin_job(0, 2);
	b.view.elastic.present = true;
	b.view.elastic.rdzv_id = "meet";
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-0", "PET_RDZV_ID"), "meet");
	brain_run_up(&b);
	brain_exit(&b, "demo-worker-1", 1);
	brain_step(&b);
	brain_perform_all(&b);
	brain_step(&b);
	/* The new pod has the same id as its peers. */
	assert_string_equal(env_value("demo-worker-1", "PET_RDZV_ID"), "meet");
	brain_run_up(&b);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_after(&b, 60);
	brain_exit(&b, "demo-worker-1", 1);
	brain_quiet(&b);
	brain_terminating_gone(&b);
	b.now = b.plan.wake_at < HF_TIME_NEVER ? b.plan.wake_at : b.now;
	brain_step(&b);
	assert_string_equal(env_value("demo-worker-0", "PET_RDZV_ID"), "meet-2");
	brain_release(&b);
}

static void without_the_named_container_there_is_no_port_and_no_pod(void **state)
{
	static const struct hf_container other = {.name = "other", .image = "x"};

	(void)state;
	begin_job(1, 1);
	brain_step(&b);
	/* After the job's first status, core no longer applies the rules for new jobs. */
	brain_write_status(&b);
	b.replicas[0].pod.containers = &other;
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "no container named 'pytorch'"));
	brain_release(&b);
}

static void success_is_the_masters_or_all_workers_or_one_elastic_worker(void **state)
{
	(void)state;
	begin_job(1, 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-worker-0", 0);
	brain_exit(&b, "demo-worker-1", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_exit(&b, "demo-master-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	brain_release(&b);
	begin_job(0, 2);
	brain_run_up(&b);
	brain_exit(&b, "demo-worker-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	b.view.elastic.present = true;
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	brain_release(&b);
}

static void messages_have_upstreams_two_shapes(void **state)
{
	(void)state;
	begin_job(1, 1);
	brain_run_up(&b);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_RUNNING)->message,
			    "PyTorchJob demo is running.");
	brain_release(&b);
	begin_job(0, 1);
	brain_run_up(&b);
	assert_string_equal(hf_status_condition(&b.view.status, HF_COND_RUNNING)->message,
			    "PyTorchJob lab/demo is running.");
	brain_release(&b);
}

static void a_job_without_workers_or_master_has_succeeded(void **state)
{
	(void)state;
	begin_job(0, 1);
	brain_run_up(&b);
	b.replicas[0].replicas = HF_SOME_INT(0);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_SUCCEEDED);
	brain_release(&b);
}

static void the_master_role_is_the_masters_or_worker_0s(void **state)
{
	const char *role = "training.kubeflow.org/job-role";

	(void)state;
	begin_job(1, 1);
	brain_step(&b);
	assert_string_equal(brain_edit(&b, "demo-master-0", HF_EDIT_LABEL, role), "master");
	assert_null(brain_edit(&b, "demo-worker-0", HF_EDIT_LABEL, role));
	brain_release(&b);
	begin_job(0, 2);
	brain_step(&b);
	assert_string_equal(brain_edit(&b, "demo-worker-0", HF_EDIT_LABEL, role), "master");
	assert_null(brain_edit(&b, "demo-worker-1", HF_EDIT_LABEL, role));
	brain_release(&b);
}

/* The autoscaler is created, follows changes, is deleted and created again. After the job has
 * finished, it is left alone. */
static void an_active_job_with_metrics_has_an_autoscaler(void **state)
{
	(void)state;
	begin_job(0, 2);
	b.view.elastic.present = true;
	brain_run_up(&b);
	assert_null(brain_extra(&b, "demo"));
	b.view.elastic.has_metrics = true;
	b.view.elastic.metrics = "[1]";
	brain_run_up(&b);
	assert_non_null(brain_extra(&b, "demo"));
	b.view.elastic.max_replicas = (struct hf_opt_int){.set = true, .value = 5};
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_UPDATE_EXTRA), 1);
	brain_quiet(&b);
	b.view.run_policy.suspend = (struct hf_opt_bool){.set = true, .value = true};
	brain_quiet(&b);
	assert_null(brain_extra(&b, "demo"));
	brain_terminating_gone(&b);
	b.view.run_policy.suspend.value = false;
	brain_run_up(&b);
	assert_non_null(brain_extra(&b, "demo"));
	brain_exit(&b, "demo-worker-0", 0);
	brain_quiet(&b);
	assert_true(hf_status_is_finished(&b.view.status));
	assert_non_null(brain_extra(&b, "demo"));
	brain_release(&b);
}

static void no_pod_waits_for_an_autoscaler(void **state)
{
	(void)state;
	begin_job(0, 1);
	b.view.elastic.present = true;
	b.view.elastic.has_metrics = true;
	brain_step(&b);
	assert_int_equal(b.plan.stages_len, 2);
	assert_int_equal(b.plan.stages[1].actions[0].kind, HF_ACTION_CREATE_EXTRA);
	/* Without an autoscaler controller in the cluster (settings.no_autoscaler) no autoscaler is
	 * planned; an event reports that. */
	b.settings.no_autoscaler = true;
	brain_step(&b);
	assert_int_equal(b.plan.stages_len, 1);
	assert_non_null(brain_event(&b, "NoAutoscaler"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elastic_bounds_default_to_each_other_and_to_the_workers),
		cmocka_unit_test(processes_per_node_multiply_the_world_when_they_are_a_number),
		cmocka_unit_test(a_number_that_is_too_large_is_named_and_no_pod_is_created),
		cmocka_unit_test(a_too_long_rdzv_conf_is_refused_not_cut),
		cmocka_unit_test(the_deprecated_field_wins_only_alone),
		cmocka_unit_test(only_workers_of_a_master_wait_for_its_name),
		cmocka_unit_test(the_init_container_is_the_operators_to_choose),
		cmocka_unit_test(the_rendezvous_id_changes_with_the_generation_only),
		cmocka_unit_test(without_the_named_container_there_is_no_port_and_no_pod),
		cmocka_unit_test(success_is_the_masters_or_all_workers_or_one_elastic_worker),
		cmocka_unit_test(messages_have_upstreams_two_shapes),
		cmocka_unit_test(a_job_without_workers_or_master_has_succeeded),
		cmocka_unit_test(the_master_role_is_the_masters_or_worker_0s),
		cmocka_unit_test(an_active_job_with_metrics_has_an_autoscaler),
		cmocka_unit_test(no_pod_waits_for_an_autoscaler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
