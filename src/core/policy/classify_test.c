/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

/* Do a step and return the class of the termination, from the record of its incident. */
static const char *class_of_step(void)
{
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.records_len, 1);
	return hf_class_name(b.plan.status.ledger.records[0].cause);
}

static struct brain_pod *begin(void)
{
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	return brain_pod(&b, "demo-hand-0");
}

static void a_failed_pod_is_application(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-0", 1);
	assert_string_equal(class_of_step(), "application");
	brain_release(&b);
}

static void out_of_memory_outranks_a_disruption(void **state)
{
	struct brain_pod *pod = begin();

	(void)state;
	brain_exit(&b, "demo-hand-0", 137);
	brain_disrupt(&b, "demo-hand-0");
	pod->containers[0].terminated_reason = "OOMKilled";
	assert_string_equal(class_of_step(), "out-of-memory");
	brain_release(&b);
}

/* The proxy was killed for its memory long before the training container failed. */
static void another_containers_memory_is_not_the_cause(void **state)
{
	struct brain_pod *pod = begin();

	(void)state;
	brain_add_sidecar(&b, "demo-hand-0");
	brain_exit(&b, "demo-hand-0", 139);
	pod->containers[1].phase = HF_CONTAINER_TERMINATED;
	pod->containers[1].exit_code = 137;
	pod->containers[1].terminated_reason = "OOMKilled";
	assert_string_equal(class_of_step(), "application");
	brain_release(&b);
}

static void a_disruption_is_infrastructure_ended_or_not(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-0", 1);
	brain_disrupt(&b, "demo-hand-0");
	assert_string_equal(class_of_step(), "infrastructure");
	brain_release(&b);
	begin();
	brain_terminate(&b, "demo-hand-0");
	brain_disrupt(&b, "demo-hand-0");
	assert_string_equal(class_of_step(), "infrastructure");
	brain_release(&b);
}

static void restarts_in_place_are_the_applications_whatever_ends_the_pod(void **state)
{
	(void)state;
	begin();
	brain_crash_in_place(&b, "demo-hand-0");
	brain_crash_in_place(&b, "demo-hand-0");
	brain_exit(&b, "demo-hand-0", 137);
	brain_disrupt(&b, "demo-hand-0");
	brain_step(&b);
	/* The two restarts by the kubelet are two incidents.  The end of the pod belongs to the
	 * second one, because the pod is older than both, and it is that incident's cause. */
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
}

static void a_disruption_that_is_not_true_is_none(void **state)
{
	struct brain_pod *pod = begin();

	(void)state;
	brain_exit(&b, "demo-hand-0", 1);
	brain_disrupt(&b, "demo-hand-0");
	pod->condition.status = "False";
	assert_string_equal(class_of_step(), "application");
	brain_release(&b);
}

static void reasons_of_the_kubelet(void **state)
{
	static const struct {
		const char *reason;
		const char *cls;
	} rows[] = {
		{"NodeShutdown", "infrastructure"}, {"Terminated", "infrastructure"},
		{"Evicted", "application"},         {"UnexpectedAdmissionError", "admission"},
		{"OutOfcpu", "admission"},          {"OutOfnvidia.com/gpu", "admission"},
		{"NodeAffinity", "admission"},      {"SomethingElse", "application"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		struct brain_pod *pod = begin();

		pod->pod.phase = HF_POD_FAILED;
		pod->pod.reason = rows[i].reason;
		assert_string_equal(class_of_step(), rows[i].cls);
		brain_release(&b);
	}
}

static void a_deleted_pod_is_the_users_and_a_vanished_one_infrastructure(void **state)
{
	(void)state;
	begin();
	brain_terminate(&b, "demo-hand-0");
	assert_string_equal(class_of_step(), "user");
	brain_release(&b);
	begin();
	brain_gone(&b, "demo-hand-0");
	assert_string_equal(class_of_step(), "infrastructure");
	brain_release(&b);
}

/* The pod was last seen with a deletion timestamp, and disappeared before the next step. */
static void a_pod_that_vanished_is_classified_by_its_last_sight(void **state)
{
	(void)state;
	begin();
	brain_terminate(&b, "demo-hand-0");
	brain_gone(&b, "demo-hand-0");
	assert_string_equal(class_of_step(), "user");
	assert_true(brain_creates(&b, "demo-hand-0"));
	brain_release(&b);
	begin();
	brain_terminate(&b, "demo-hand-0");
	brain_disrupt(&b, "demo-hand-0");
	brain_gone(&b, "demo-hand-0");
	assert_string_equal(class_of_step(), "infrastructure");
	brain_release(&b);
	begin();
	brain_terminate(&b, "demo-hand-0");
	brain_lose(&b, brain_pod(&b, "demo-hand-0")->node);
	brain_gone(&b, "demo-hand-0");
	assert_string_equal(class_of_step(), "infrastructure");
	brain_release(&b);
}

/* The node explains the termination only if it was lost while the pod ran and before a delete was requested. */
static void a_nodes_loss_explains_what_was_there_when_it_was_lost(void **state)
{
	static const struct {
		/* seconds at which the pod is bound, deleted (0: it fails by itself), and its node
		 * Unknown */
		int bound, deleted, unknown;
		const char *cls;
	} cases[] = {
		{10, 0, 20, "application"},     {10, 0, 9, "application"},
		{10, 20, 20, "infrastructure"}, {10, 10, 10, "infrastructure"},
		{10, 20, 21, "user"},           {10, 20, 9, "user"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct brain_pod *pod = begin();
		hf_time start = b.now;

		brain_after(&b, 30);
		brain_lose(&b, pod->node);
		brain_node(&b, pod->node)->unknown_at = start + cases[i].unknown * HF_SECOND;
		pod->pod.bound_at = start + cases[i].bound * HF_SECOND;
		if (cases[i].deleted == 0)
			brain_exit(&b, pod->name, 137);
		else
			brain_terminate(&b, pod->name);
		pod->pod.deleted_at =
			cases[i].deleted == 0 ? HF_TIME_NONE : start + cases[i].deleted * HF_SECOND;
		assert_string_equal(class_of_step(), cases[i].cls);
		brain_release(&b);
	}
}

/* A kubelet that reports a termination was alive at that time, even if its node is Unknown later.
 * The node is the cause only if it counts as lost. */
static void an_end_that_a_kubelet_tells_is_its_nodes_only_where_that_counts_as_lost(void **state)
{
	(void)state;
	for (int silent = 59; silent <= 61; silent++) {
		struct brain_pod *pod = begin();
		struct hf_node_seen *node = brain_node(&b, pod->node);

		brain_after(&b, 30);
		brain_lose(&b, pod->node);
		node->lease_since = b.now;
		brain_after(&b, silent);
		node->lease_read_at = b.now;
		brain_exit(&b, pod->name, 137);
		pod->pod.news_at =
			HF_TIME_NONE; /* the kubelet's report came before the operator watched */
		assert_string_equal(class_of_step(),
				    silent < 60 ? "application" : "infrastructure");
		brain_release(&b);
	}
}

static void a_pod_that_a_controller_failed_is_not_reported_by_its_kubelet(void **state)
{
	struct hf_container_seen containers[] = {
		{.name = "init-pytorch", .init = true, .phase = HF_CONTAINER_TERMINATED},
		{.name = "pytorch", .phase = HF_CONTAINER_RUNNING},
	};
	struct hf_pod pod = {.phase = HF_POD_FAILED, .containers = containers, .containers_len = 2};
	const struct hf_container_seen *own = &containers[1];

	(void)state;
	assert_false(hf_pod_is_reported(&pod, own));
	containers[1].phase = HF_CONTAINER_TERMINATED;
	containers[1].exit_code = 1;
	assert_true(hf_pod_is_reported(&pod, own));
	pod.phase = HF_POD_RUNNING;
	assert_false(hf_pod_is_reported(&pod, own));
	/* Another container keeps the pod, and the kubelet does not start the own container
	 * again. */
	containers[1].again = HF_AGAIN_NEVER;
	assert_true(hf_pod_is_reported(&pod, own));
	pod = (struct hf_pod){.phase = HF_POD_FAILED, .reason = "Evicted"};
	assert_true(hf_pod_is_reported(&pod, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_pod_is_application),
		cmocka_unit_test(out_of_memory_outranks_a_disruption),
		cmocka_unit_test(another_containers_memory_is_not_the_cause),
		cmocka_unit_test(a_disruption_is_infrastructure_ended_or_not),
		cmocka_unit_test(restarts_in_place_are_the_applications_whatever_ends_the_pod),
		cmocka_unit_test(a_disruption_that_is_not_true_is_none),
		cmocka_unit_test(reasons_of_the_kubelet),
		cmocka_unit_test(a_deleted_pod_is_the_users_and_a_vanished_one_infrastructure),
		cmocka_unit_test(a_pod_that_vanished_is_classified_by_its_last_sight),
		cmocka_unit_test(a_nodes_loss_explains_what_was_there_when_it_was_lost),
		cmocka_unit_test(
			an_end_that_a_kubelet_tells_is_its_nodes_only_where_that_counts_as_lost),
		cmocka_unit_test(a_pod_that_a_controller_failed_is_not_reported_by_its_kubelet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
