/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "core/model/names.h"

#include <string.h>

static struct brain b;

/* All ranks run.  The Boss and the first Hand each have a second container. */
static void run_up(void)
{
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_add_sidecar(&b, "demo-boss-0");
	brain_add_sidecar(&b, "demo-hand-0");
	brain_after(&b, 60);
	brain_quiet(&b);
}

static const struct hf_condition *held(void)
{
	return hf_status_condition(&b.view.status, HF_COND_SIDECAR);
}

static void a_failure_beside_a_sidecar_is_handled_at_once(void **state)
{
	(void)state;
	run_up();
	brain_exit_own(&b, "demo-hand-0", 3);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(b.plan.status.ledger.records[0].exit_code.value, 3);
	brain_perform_all(&b);
	brain_terminating_gone(&b);
	brain_run_up(&b);
	assert_int_equal(brain_pod(&b, "demo-hand-0")->pod.attempt, 1);
	assert_int_equal(b.view.status.ledger.phase, HF_PHASE_RUNNING);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_release(&b);
}

static void a_rule_sees_it_like_any_other_failure(void **state)
{
	(void)state;
	run_up();
	brain_fail_on(&b, 3);
	brain_exit_own(&b, "demo-hand-0", 3);
	brain_step(&b);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_FAILED));
	assert_int_equal(b.plan.status.replicas[BRAIN_HAND].failed, 1);
	assert_int_equal(b.plan.status.replicas[BRAIN_HAND].active, 1);
	assert_non_null(brain_action(&b, HF_ACTION_STOP_POD, "demo-hand-0"));
	brain_release(&b);
}

/* All containers of the pod have ended, and the kubelet has not written the reason yet.  For an
 * eviction, the kubelet writes the reason together with the pod's phase. */
static void a_pod_with_no_container_left_waits_for_its_phase(void **state)
{
	struct brain_pod *pod;

	(void)state;
	run_up();
	brain_exit_own(&b, "demo-hand-0", 137);
	pod = brain_pod(&b, "demo-hand-0");
	pod->containers[1].phase = HF_CONTAINER_TERMINATED;
	pod->containers[1].again = HF_AGAIN_NEVER;
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void what_the_kubelet_starts_again_has_not_ended(void **state)
{
	(void)state;
	run_up();
	brain_exit_own(&b, "demo-hand-0", 3);
	brain_pod(&b, "demo-hand-0")->containers[0].again = HF_AGAIN_UNKNOWN; /* rules of its own */
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "waiting for hand-0 to start"));
	brain_release(&b);
}

static void a_success_is_told_at_once_and_shown_after_five_minutes(void **state)
{
	static const char text[] =
		"container main of boss-0 ended with 0; the pod is kept by container proxy";

	(void)state;
	run_up();
	brain_exit_own(&b, "demo-boss-0", 0);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, text));
	assert_non_null(strstr(b.plan.summary, text));
	assert_int_equal(b.plan.status.ledger.phase, HF_PHASE_RUNNING);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_RUNNING));
	brain_quiet(&b);
	assert_null(held());
	assert_int_equal(b.plan.wake_at, b.now + 300 * HF_SECOND);
	brain_after(&b, 300);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_true(brain_event(&b, "HeldBySidecar")->warning);
	assert_string_equal(brain_event(&b, "HeldBySidecar")->message, text);
	brain_quiet(&b);
	assert_string_equal(held()->status, "True");
	assert_null(brain_event(&b, "HeldBySidecar"));
	/* A new operator sees the end of the container at a later time. */
	brain_pod(&b, "demo-boss-0")->pod.own_ended_at = b.now;
	brain_quiet(&b);
	assert_string_equal(held()->status, "True");
	brain_exit(&b, "demo-boss-0", 0);
	brain_quiet(&b);
	assert_string_equal(held()->status, "False");
	assert_true(hf_status_is_true(&b.view.status, HF_COND_SUCCEEDED));
	brain_release(&b);
}

static void a_grace_ends_the_wait(void **state)
{
	(void)state;
	run_up();
	b.view.run_policy.recovery.sidecar_grace_seconds = HF_SOME_INT(60);
	brain_exit_own(&b, "demo-hand-0", 0);
	brain_quiet(&b);
	assert_int_equal(b.plan.wake_at, b.now + 60 * HF_SECOND);
	brain_after(&b, 60);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_true(b.plan.status_urgent);
	assert_int_equal(b.plan.status.replicas[BRAIN_HAND].succeeded, 1);
	assert_int_equal(b.plan.status.replicas[BRAIN_HAND].active, 1);
	assert_string_equal(brain_action(&b, HF_ACTION_STOP_POD, "demo-hand-0")->message,
			    HF_STOPPED_SUCCEEDED);
	assert_non_null(brain_event(&b, "SidecarGraceOver"));
	brain_quiet(&b);
	/* The kubelet has ended the pod: its phase is Failed, with reason DeadlineExceeded. */
	assert_int_equal(brain_pod(&b, "demo-hand-0")->pod.phase, HF_POD_FAILED);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].succeeded, 1);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].failed, 0);
	assert_int_equal(b.view.status.ledger.incident.id, 0);
	assert_int_equal(b.view.status.ledger.phase, HF_PHASE_RUNNING);
	brain_release(&b);
}

static void the_wait_begins_when_the_end_was_seen(void **state)
{
	(void)state;
	run_up();
	b.view.run_policy.recovery.sidecar_grace_seconds = HF_SOME_INT(60);
	brain_exit_own(&b, "demo-hand-0", 0);
	brain_after(&b, 90);
	brain_nodes_heard(&b);
	brain_pod(&b, "demo-hand-0")->pod.own_ended_at = b.now - 59 * HF_SECOND;
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_pod(&b, "demo-hand-0")->pod.own_ended_at = HF_TIME_NONE;
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void the_grace_of_the_last_rank_ends_the_job(void **state)
{
	(void)state;
	run_up();
	b.view.run_policy.recovery.sidecar_grace_seconds = HF_SOME_INT(0);
	brain_exit_own(&b, "demo-boss-0", 0);
	brain_step(&b);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_SUCCEEDED));
	assert_string_equal(brain_action(&b, HF_ACTION_STOP_POD, "demo-boss-0")->message,
			    HF_STOPPED_SUCCEEDED);
	brain_quiet(&b);
	assert_int_equal(b.view.status.replicas[BRAIN_BOSS].succeeded, 1);
	assert_int_equal(b.view.status.replicas[BRAIN_BOSS].failed, 0);
	brain_release(&b);
}

static void clean_up_deletes_such_a_pod_where_it_deletes(void **state)
{
	(void)state;
	run_up();
	b.view.run_policy.recovery.sidecar_grace_seconds = HF_SOME_INT(0);
	b.view.run_policy.clean_pod_policy = "Running";
	brain_exit_own(&b, "demo-boss-0", 0);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-boss-0"));
	assert_int_equal(brain_count(&b, HF_ACTION_STOP_POD), 0);
	brain_release(&b);
}

/* If the ledger was erased, the pod's annotation holdfast.dev/stopped still shows the success. */
static void a_success_outlives_the_ledger(void **state)
{
	(void)state;
	run_up();
	b.view.run_policy.recovery.sidecar_grace_seconds = HF_SOME_INT(0);
	brain_exit_own(&b, "demo-hand-0", 0);
	brain_quiet(&b);
	b.view.status.ledger = (struct hf_ledger){.present = false};
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 0);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].succeeded, 1);
	brain_release(&b);
}

static void a_device_of_a_rank_that_has_trained_restarts_nothing(void **state)
{
	static const struct hf_device_seen device = {.id = "gpu-0",
						     .cls = "gpu-reset",
						     .agent = true,
						     .fatal = true,
						     .held = true,
						     .first = HF_TIME_NONE,
						     .last = HF_TIME_NONE};

	(void)state;
	run_up();
	brain_exit_own(&b, "demo-hand-0", 0);
	brain_pod(&b, "demo-hand-0")->pod.devices = &device;
	brain_pod(&b, "demo-hand-0")->pod.devices_len = 1;
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_beside_a_sidecar_is_handled_at_once),
		cmocka_unit_test(a_rule_sees_it_like_any_other_failure),
		cmocka_unit_test(a_pod_with_no_container_left_waits_for_its_phase),
		cmocka_unit_test(what_the_kubelet_starts_again_has_not_ended),
		cmocka_unit_test(a_success_is_told_at_once_and_shown_after_five_minutes),
		cmocka_unit_test(a_grace_ends_the_wait),
		cmocka_unit_test(the_wait_begins_when_the_end_was_seen),
		cmocka_unit_test(the_grace_of_the_last_rank_ends_the_job),
		cmocka_unit_test(clean_up_deletes_such_a_pod_where_it_deletes),
		cmocka_unit_test(a_success_outlives_the_ledger),
		cmocka_unit_test(a_device_of_a_rank_that_has_trained_restarts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
