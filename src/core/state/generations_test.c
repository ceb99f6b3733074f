/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static void stamps_above_the_ledger_are_believed(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	for (size_t i = 0; i < b.pods_len; i++)
		b.pods[i].pod.generation = 4;
	brain_pod(&b, "demo-hand-1")->pod.attempt = 3;
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.generation, 4);
	assert_string_equal(b.plan.status.ledger.roles[BRAIN_HAND].attempts, "1:3");
	assert_true(b.plan.status_urgent);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

/* A ledger that took over such high stamps would reach the limit of its counters. */
static void stamps_beyond_the_limit_cost_only_their_pod(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up(&b);
	brain_pod(&b, "demo-hand-0")->pod.generation = 1000000000;
	brain_pod(&b, "demo-hand-1")->pod.attempt = 999999999;
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_false(brain_deletes(&b, "demo-boss-0"));
	brain_perform_all(&b);
	brain_terminating_gone(&b);
	brain_run_up(&b);
	assert_int_equal(b.view.status.ledger.generation, 1);
	assert_int_equal(b.view.status.ledger.incident.id, 0);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	for (int i = 0; i < 2; i++) {
		brain_exit(&b, "demo-hand-0", 1);
		brain_quiet(&b);
		brain_terminating_gone(&b);
		brain_after(&b, 600);
		brain_run_up(&b);
	}
	assert_int_equal(b.view.status.ledger.generation, 3);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_release(&b);
}

static void a_waiting_container_is_not_up(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	brain_run_up(&b);
	assert_int_equal(b.view.status.ledger.phase, HF_PHASE_RUNNING);
	b.pods[0].containers[0].phase = HF_CONTAINER_WAITING; /* CrashLoopBackOff */
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.phase, HF_PHASE_CREATING);
	/* If the containers of a pod are not reported, the pod counts as running by its phase. */
	b.pods[0].pod.containers_len = 0;
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.phase, HF_PHASE_RUNNING);
	brain_release(&b);
}

static void only_the_kinds_container_decides_whether_a_pod_is_up(void **state)
{
	struct brain_pod *pod;

	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	brain_run_up(&b);
	pod = brain_pod(&b, "demo-hand-0");
	pod->containers[1] = (struct hf_container_seen){
		.name = "side", .phase = HF_CONTAINER_WAITING, .finished_at = HF_TIME_NONE};
	pod->containers[2] = pod->containers[1];
	pod->containers[2].name = "main";
	/* an init container with the name of the main container, which Kubernetes allows */
	pod->containers[2].init = true;
	pod->pod.containers_len = 3;
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.phase, HF_PHASE_RUNNING);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamps_above_the_ledger_are_believed),
		cmocka_unit_test(stamps_beyond_the_limit_cost_only_their_pod),
		cmocka_unit_test(a_waiting_container_is_not_up),
		cmocka_unit_test(only_the_kinds_container_decides_whether_a_pod_is_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
