/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

/* The state of one job.  Static because of its size; each test sets the state up anew. */
static struct brain b;

/* A user deletes one of two Hands; the grace of the pod is 30 s. */
static struct brain_pod *delete (void)
{
	brain_init(&b, &brain_kind, 0, 2);
	brain_run_up(&b);
	brain_terminate(&b, "demo-hand-1");
	brain_quiet(&b);
	return brain_pod(&b, "demo-hand-1");
}

static const struct hf_condition *stuck(void)
{
	return hf_status_condition(&b.plan.status, HF_COND_POD_STUCK);
}

static void a_stuck_pod_is_shown_30_s_after_its_deadline_and_never_forced(void **state)
{
	(void)state;
	delete ();
	brain_after(&b, 59);
	brain_step(&b);
	assert_null(stuck());
	assert_int_equal(b.plan.wake_at, b.now + HF_SECOND);
	brain_after(&b, 1);
	brain_step(&b);
	assert_string_equal(stuck()->status, "True");
	assert_string_equal(stuck()->reason, "Kubelet");
	assert_non_null(strstr(stuck()->message, "demo-hand-1"));
	assert_non_null(brain_event(&b, "PodStuckTerminating"));
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	brain_perform_all(&b);
	brain_after(&b, 3600);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_false(b.plan.status_changed);
	brain_release(&b);
}

static void the_condition_ends_when_the_pod_is_gone(void **state)
{
	(void)state;
	delete ();
	brain_after(&b, 60);
	brain_step(&b);
	brain_perform_all(&b);
	brain_gone(&b, "demo-hand-1");
	brain_step(&b);
	assert_string_equal(stuck()->status, "False");
	assert_string_equal(stuck()->reason, "PodsGone");
	brain_release(&b);
}

static void finalizers_are_named(void **state)
{
	static const char *const finalizers[] = {"example.com/a", "example.com/b"};
	struct brain_pod *pod;

	(void)state;
	pod = delete ();
	pod->pod.finalizers = finalizers;
	pod->pod.finalizers_len = 2;
	brain_after(&b, 60);
	brain_step(&b);
	assert_string_equal(stuck()->reason, "Finalizers");
	assert_non_null(strstr(stuck()->message, "example.com/a, example.com/b"));
	brain_release(&b);
}

static void on_a_lost_node_it_is_not_stuck_but_held_there(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = delete ();
	brain_lose(&b, pod->node);
	brain_after(&b, 100);
	brain_step(&b);
	assert_null(stuck());
	assert_non_null(hf_status_condition(&b.plan.status, HF_COND_NODE_UNREACHABLE));
	brain_release(&b);
}

static void the_first_by_name_stands_for_all(void **state)
{
	(void)state;
	delete ();
	brain_terminate(&b, "demo-hand-0");
	brain_quiet(&b);
	brain_after(&b, 100);
	for (b.shuffle = 0; b.shuffle < 2; b.shuffle++) {
		brain_step(&b);
		assert_non_null(strstr(stuck()->message, "2 pod(s)"));
		assert_non_null(strstr(stuck()->message, "demo-hand-0 first"));
	}
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stuck_pod_is_shown_30_s_after_its_deadline_and_never_forced),
		cmocka_unit_test(the_condition_ends_when_the_pod_is_gone),
		cmocka_unit_test(finalizers_are_named),
		cmocka_unit_test(on_a_lost_node_it_is_not_stuck_but_held_there),
		cmocka_unit_test(the_first_by_name_stands_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
