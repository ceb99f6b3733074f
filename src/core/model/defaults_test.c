/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/framework.h"

#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;
static struct hf_job job;

static void normal_form(void)
{
	hf_job_defaults(&b.view, b.pass, &job);
}

static void recovery_has_the_documented_defaults(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	normal_form();
	assert_int_equal(job.recovery.scope, HF_SCOPE_REPLICA);
	assert_int_equal(job.recovery.backoff_initial_seconds, 10);
	assert_int_equal(job.recovery.backoff_max_seconds, 600);
	assert_int_equal(job.recovery.backoff_reset_after_seconds, 3600);
	assert_int_equal(job.recovery.incident_seconds, 1800);
	assert_int_equal(job.recovery.settle_seconds, 20);
	assert_int_equal(job.recovery.node_lost_after_seconds, 60);
	assert_false(job.recovery.restart_grace_seconds.set);
	for (int i = 0; i < HF_BUDGETS; i++)
		assert_false(job.recovery.limits[i].set);
	brain_release(&b);
}

static void a_jobs_own_field_wins_over_the_clusters(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.settings.recovery.restart_scope = "Job";
	b.settings.recovery.settle_seconds = HF_SOME_INT(5);
	b.settings.recovery.device_limit = HF_SOME_INT(3);
	b.settings.recovery.pods_after_end = "Keep";
	b.settings.recovery.sidecar_grace_seconds = HF_SOME_INT(7);
	normal_form();
	assert_int_equal(job.recovery.after_end, HF_AFTER_END_KEEP);
	assert_int_equal(job.recovery.sidecar_grace_seconds.value, 7);
	assert_int_equal(job.recovery.scope, HF_SCOPE_JOB);
	assert_int_equal(job.recovery.settle_seconds, 5);
	assert_int_equal(job.recovery.limits[HF_BUDGET_DEVICE].value, 3);
	b.view.run_policy.recovery.restart_scope = "Replica";
	b.view.run_policy.recovery.settle_seconds = HF_SOME_INT(0);
	b.view.run_policy.recovery.pods_after_end = "Stop";
	b.view.run_policy.recovery.sidecar_grace_seconds = HF_SOME_INT(0);
	normal_form();
	assert_int_equal(job.recovery.after_end, HF_AFTER_END_STOP);
	assert_true(job.recovery.sidecar_grace_seconds.set);
	assert_int_equal(job.recovery.sidecar_grace_seconds.value, 0);
	assert_int_equal(job.recovery.scope, HF_SCOPE_REPLICA);
	assert_int_equal(job.recovery.settle_seconds, 0);
	brain_release(&b);
}

static void a_restart_in_place_is_the_default_and_can_be_refused(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 0, 1);
	normal_form();
	assert_true(job.recovery.in_place);
	assert_int_equal(job.recovery.in_place_limit, 3);
	assert_int_equal(job.recovery.in_place_wait_seconds, 60);
	assert_int_equal(job.recovery.checkpoint_grace_seconds, 0);
	assert_int_equal(job.recovery.no_progress_limit, 0);
	b.view.run_policy.recovery.in_place = "Never";
	normal_form();
	assert_false(job.recovery.in_place);
	b.view.run_policy.recovery.in_place = NULL;
	b.settings.recovery.in_place = "Never";
	normal_form();
	assert_false(job.recovery.in_place);
	b.view.run_policy.recovery.in_place = "Auto";
	normal_form();
	assert_true(job.recovery.in_place);
	b.view.run_policy.recovery.in_place_limit = HF_SOME_INT(0);
	normal_form();
	assert_false(job.recovery.in_place);
	brain_release(&b);
}

static void roles_get_the_kinds_defaults(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.replicas[1].replicas.set = false;
	b.replicas[1].restart_policy = NULL;
	normal_form();
	assert_true(job.roles[BRAIN_HAND].present);
	assert_int_equal(job.roles[BRAIN_HAND].replicas, 1);
	assert_int_equal(job.roles[BRAIN_HAND].restart, HF_RESTART_ON_FAILURE);
	assert_int_equal(job.roles[BRAIN_HAND].port, 4242);
	assert_true(job.roles[BRAIN_HAND].add_port);
	assert_int_equal(job.ranks, 2);
	brain_release(&b);
}

static void the_port_of_the_named_container_is_found(void **state)
{
	static const struct hf_port ports[] = {{"other", 1}, {"test-port", 99}};
	static const struct hf_container two[] = {
		{.name = "side", .image = "x", .ports = ports, .ports_len = 2},
		{.name = "main", .image = "x", .ports = ports, .ports_len = 2}};

	(void)state;
	brain_init(&b, &brain_kind, 0, 1);
	b.replicas[0].pod.containers = two;
	b.replicas[0].pod.containers_len = 2;
	normal_form();
	assert_int_equal(job.roles[BRAIN_HAND].default_container, 1);
	assert_int_equal(job.roles[BRAIN_HAND].port, 99);
	assert_false(job.roles[BRAIN_HAND].add_port);
	/* If no container has the kind's name, the first container counts, as upstream. */
	b.replicas[0].pod.containers_len = 1;
	normal_form();
	assert_int_equal(job.roles[BRAIN_HAND].default_container, 0);
	b.replicas[0].pod.containers_len = 0;
	normal_form();
	assert_false(job.roles[BRAIN_HAND].add_port);
	brain_release(&b);
}

static void keys_fold_to_their_canonical_case_and_the_canonical_one_wins(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 0, 1);
	b.replicas[0].type = "hand";
	normal_form();
	assert_true(job.roles[BRAIN_HAND].present);
	b.replicas[1] = b.replicas[0];
	b.replicas[1].type = "Hand";
	b.replicas[1].replicas = HF_SOME_INT(5);
	b.view.replicas_len = 2;
	normal_form();
	assert_int_equal(job.roles[BRAIN_HAND].replicas, 5);
	b.replicas[1].type = "HAND"; /* before "hand" in bytes */
	normal_form();
	assert_int_equal(job.roles[BRAIN_HAND].replicas, 5);
	b.replicas[1].null = true;
	normal_form();
	assert_int_equal(job.roles[BRAIN_HAND].replicas, 1);
	brain_release(&b);
}

static void replicas_out_of_range_are_cut(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 0, 1);
	b.replicas[0].replicas = HF_SOME_INT(-3);
	normal_form();
	assert_int_equal(job.roles[BRAIN_HAND].replicas, 0);
	b.replicas[0].replicas = HF_SOME_INT(INT64_MAX);
	normal_form();
	assert_int_equal(job.roles[BRAIN_HAND].replicas, HF_RANKS_MAX);
	brain_release(&b);
}

static void clean_pod_policy_reads_as_upstream_does(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 0, 1);
	normal_form();
	assert_int_equal(job.clean, HF_CLEAN_NONE);
	b.view.run_policy.clean_pod_policy = "Running";
	normal_form();
	assert_int_equal(job.clean, HF_CLEAN_RUNNING);
	b.view.run_policy.clean_pod_policy = "None";
	normal_form();
	assert_int_equal(job.clean, HF_CLEAN_NONE);
	b.view.run_policy.clean_pod_policy = "";
	normal_form();
	assert_int_equal(job.clean, HF_CLEAN_ALL);
	brain_release(&b);
}

static void the_order_of_specs_is_the_kinds_then_by_name(void **state)
{
	const struct hf_replica_spec *const *specs;

	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	b.replicas[2] = b.replicas[3] = b.replicas[0];
	b.replicas[0].type = "zebra";
	b.replicas[1].type = "Hand";
	b.replicas[2].type = "ant";
	b.replicas[3].type = "Boss";
	b.view.replicas_len = 4;
	specs = hf_job_replicas(&b.view, b.pass);
	assert_string_equal(specs[0]->type, "Boss");
	assert_string_equal(specs[1]->type, "Hand");
	assert_string_equal(specs[2]->type, "ant");
	assert_string_equal(specs[3]->type, "zebra");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recovery_has_the_documented_defaults),
		cmocka_unit_test(a_jobs_own_field_wins_over_the_clusters),
		cmocka_unit_test(a_restart_in_place_is_the_default_and_can_be_refused),
		cmocka_unit_test(roles_get_the_kinds_defaults),
		cmocka_unit_test(the_port_of_the_named_container_is_found),
		cmocka_unit_test(keys_fold_to_their_canonical_case_and_the_canonical_one_wins),
		cmocka_unit_test(replicas_out_of_range_are_cut),
		cmocka_unit_test(clean_pod_policy_reads_as_upstream_does),
		cmocka_unit_test(the_order_of_specs_is_the_kinds_then_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
