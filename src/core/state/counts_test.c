/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static void counts_are(int32_t active, int32_t succeeded, int32_t failed)
{
	const struct hf_replica_status *hand = &b.plan.status.replicas[BRAIN_HAND];

	assert_int_equal(hand->active, active);
	assert_int_equal(hand->succeeded, succeeded);
	assert_int_equal(hand->failed, failed);
}

static void pending_counts_nowhere_and_running_is_active(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_quiet(&b);
	counts_are(0, 0, 0);
	brain_start(&b, "demo-hand-0");
	brain_step(&b);
	counts_are(1, 0, 0);
	assert_false(b.plan.status_urgent);
	assert_true(b.plan.status_changed);
	brain_release(&b);
}

static void a_terminating_pod_is_not_active(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_terminate(&b, "demo-hand-0");
	brain_step(&b);
	counts_are(2, 0, 0);
	brain_release(&b);
}

static void failed_pods_count_while_they_are_there(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	counts_are(2, 0, 1);
	brain_perform_all(&b);
	brain_step(&b);
	counts_are(2, 0, 0);
	brain_release(&b);
}

static void a_success_counts_when_its_pod_is_gone(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 0);
	brain_quiet(&b);
	brain_gone(&b, "demo-hand-0");
	brain_step(&b);
	counts_are(2, 1, 0);
	brain_release(&b);
}

static void the_selector_is_what_scale_needs(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_step(&b);
	assert_string_equal(b.plan.status.replicas[BRAIN_HAND].selector,
			    "training.kubeflow.org/job-name=demo,"
			    "training.kubeflow.org/operator-name=testjob-controller,"
			    "training.kubeflow.org/replica-type=hand");
	brain_release(&b);
}

static void a_type_that_left_the_spec_counts_nothing(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	b.view.replicas_len = 1; /* only the Boss is left */
	brain_step(&b);
	assert_true(b.plan.status.replicas[BRAIN_HAND].present);
	counts_are(0, 0, 0);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pending_counts_nowhere_and_running_is_active),
		cmocka_unit_test(a_terminating_pod_is_not_active),
		cmocka_unit_test(failed_pods_count_while_they_are_there),
		cmocka_unit_test(a_success_counts_when_its_pod_is_gone),
		cmocka_unit_test(the_selector_is_what_scale_needs),
		cmocka_unit_test(a_type_that_left_the_spec_counts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
