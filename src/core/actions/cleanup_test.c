/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "core/model/names.h"

#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;

static void run_up(int hands)
{
	brain_init(&b, &brain_kind, 1, hands);
	brain_run_up(&b);
	brain_after(&b, 60);
}

/* Fail the job: with backoffLimit 0, the first failure of a rank exceeds the limit. */
static void fail_job(void)
{
	b.view.run_policy.backoff_limit = HF_SOME_INT(0);
	brain_exit(&b, "demo-hand-0", 1);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_FAILED));
}

/* Make the pod Pending, because the kubelet has not started one of its containers. */
static void hold_back(const char *name, int container)
{
	struct brain_pod *pod = brain_pod(&b, name);

	pod->pod.phase = HF_POD_PENDING;
	pod->containers[container].phase = HF_CONTAINER_WAITING;
}

static const struct hf_condition *still_run(void)
{
	return hf_status_condition(&b.view.status, HF_COND_STILL_RUN);
}

static void a_failed_job_ends_what_runs_and_keeps_it(void **state)
{
	const struct hf_action *action;

	(void)state;
	run_up(2);
	fail_job();
	assert_true(b.plan.status_urgent);
	assert_int_equal(brain_count(&b, HF_ACTION_STOP_POD), 2);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 0);
	action = brain_action(&b, HF_ACTION_STOP_POD, "demo-boss-0");
	assert_string_equal(action->message, HF_STOPPED_JOB_FAILED);
	assert_true(brain_says(&b, HF_TOPIC_NEXT,
			       "2 pod(s) are ended and kept with their logs, demo-boss-0 first"));
	brain_perform_all(&b);
	assert_int_equal(brain_quiet(&b), 1);
	assert_int_equal(b.pods_len, 3);
	assert_int_equal(b.view.status.replicas[BRAIN_BOSS].active, 0);
	assert_int_equal(b.view.status.replicas[BRAIN_HAND].failed, 1);
	brain_after(&b, 60);
	brain_quiet(&b);
	assert_null(still_run());
	brain_release(&b);
}

static void nothing_of_it_is_charged(void **state)
{
	int64_t charged;

	(void)state;
	run_up(2);
	fail_job();
	charged = b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION];
	brain_perform_all(&b);
	brain_quiet(&b);
	assert_string_equal(brain_pod(&b, "demo-boss-0")->pod.reason, "DeadlineExceeded");
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], charged);
	assert_int_equal(b.view.status.ledger.incident.id, 1);
	brain_release(&b);
}

/* In this test the program ignores SIGTERM, and the pod has a long grace. */
static void a_pod_that_does_not_end_is_told_after_half_a_minute(void **state)
{
	const struct hf_condition *told;

	(void)state;
	run_up(2);
	fail_job();
	assert_null(hf_status_condition(&b.plan.status, HF_COND_STILL_RUN));
	assert_true(b.plan.wake_at <= hf_time_add(b.now, 30 * HF_SECOND));
	brain_perform_all(&b);
	brain_pod(&b, "demo-boss-0")->pod.phase = HF_POD_RUNNING;
	brain_pod(&b, "demo-boss-0")->containers[0].phase = HF_CONTAINER_RUNNING;
	brain_after(&b, 31);
	brain_step(&b);
	told = hf_status_condition(&b.plan.status, HF_COND_STILL_RUN);
	assert_non_null(told);
	assert_string_equal(told->reason, "ToldToEnd");
	assert_non_null(
		strstr(told->message, "were told to end when the job failed and still run"));
	assert_non_null(brain_event(&b, "PodsStillRun"));
	brain_release(&b);
}

static void what_has_not_begun_is_deleted(void **state)
{
	(void)state;
	run_up(2);
	hold_back("demo-hand-1", 0);
	fail_job();
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_null(brain_action(&b, HF_ACTION_STOP_POD, "demo-hand-1"));
	assert_non_null(brain_action(&b, HF_ACTION_STOP_POD, "demo-boss-0"));
	brain_release(&b);
}

/* The kubelet cannot pull the proxy's image, so the pod's phase stays Pending. */
static void a_pending_pod_whose_program_runs_is_ended_not_deleted(void **state)
{
	(void)state;
	run_up(2);
	brain_add_sidecar(&b, "demo-hand-1");
	hold_back("demo-hand-1", 1);
	fail_job();
	assert_false(brain_deletes(&b, "demo-hand-1"));
	assert_non_null(brain_action(&b, HF_ACTION_STOP_POD, "demo-hand-1"));
	brain_release(&b);
}

static void after_success_a_pod_that_has_not_begun_stays(void **state)
{
	(void)state;
	run_up(2);
	hold_back("demo-hand-1", 0);
	brain_exit(&b, "demo-boss-0", 0);
	brain_step(&b);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_SUCCEEDED));
	assert_false(brain_deletes(&b, "demo-hand-1"));
	assert_int_equal(brain_count(&b, HF_ACTION_STOP_POD), 0);
	brain_release(&b);
}

/* The proxy runs while the kubelet pulls the image of the training container. */
static void a_program_that_has_not_begun_does_not_begin_for_its_sidecar(void **state)
{
	(void)state;
	run_up(2);
	brain_add_sidecar(&b, "demo-hand-1");
	hold_back("demo-hand-1", 0);
	fail_job();
	assert_true(brain_deletes(&b, "demo-hand-1"));
	brain_release(&b);
}

static void keep_leaves_everything_as_upstream_does(void **state)
{
	(void)state;
	run_up(2);
	b.view.run_policy.recovery.pods_after_end = "Keep";
	hold_back("demo-hand-1", 0);
	fail_job();
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_true(brain_says(&b, HF_TOPIC_NEXT,
			       "1 pod(s) still run and 1 pod(s) wait to start, demo-boss-0 first: "
			       "cleanPodPolicy is None, and recovery.podsAfterEnd is Keep"));
	brain_release(&b);
}

static void a_policy_that_deletes_still_deletes(void **state)
{
	static const char *const policies[] = {"Running", "All"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(policies); i++) {
		run_up(2);
		b.view.run_policy.clean_pod_policy = policies[i];
		fail_job();
		assert_int_equal(brain_count(&b, HF_ACTION_STOP_POD), 0);
		assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), i == 0 ? 2 : 3);
		brain_release(&b);
	}
}

static void what_runs_on_after_a_success_is_told_after_half_a_minute(void **state)
{
	(void)state;
	run_up(2);
	brain_exit(&b, "demo-boss-0", 0);
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_NEXT,
			       "2 pod(s) still run, demo-hand-0 first: cleanPodPolicy is None"));
	assert_null(brain_event(&b, "PodsStillRun"));
	brain_perform_all(&b);
	brain_quiet(&b);
	assert_null(still_run());
	assert_int_equal(b.plan.wake_at, b.view.status.completion_time + 30 * HF_SECOND);
	b.now = b.plan.wake_at;
	brain_step(&b);
	assert_string_equal(brain_event(&b, "PodsStillRun")->message,
			    "2 pod(s) still run, demo-hand-0 first: cleanPodPolicy is None");
	brain_perform_all(&b);
	brain_step(&b);
	assert_null(brain_event(&b, "PodsStillRun"));
	assert_string_equal(still_run()->status, "True");
	brain_exit(&b, "demo-hand-0", 0);
	brain_exit(&b, "demo-hand-1", 0);
	brain_quiet(&b);
	assert_string_equal(still_run()->status, "False");
	brain_release(&b);
}

/* The pod gets activeDeadlineSeconds once.  The deadline acts when the kubelet comes back, so the
 * operator does not set it again. */
static void a_pod_on_a_lost_node_is_told_once(void **state)
{
	(void)state;
	run_up(2);
	brain_lose(&b, brain_pod(&b, "demo-boss-0")->node);
	b.view.run_policy.active_deadline_seconds = HF_SOME_INT(30);
	brain_step(&b);
	assert_non_null(brain_action(&b, HF_ACTION_STOP_POD, "demo-boss-0"));
	for (int i = 0; i < 100; i++) {
		brain_perform_all(&b);
		brain_answer(&b);
		brain_nodes_heard(&b);
		brain_after(&b, 2);
		brain_step(&b);
	}
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_FAILED));
	assert_int_equal(b.plan.wake_at, HF_TIME_NEVER);
	brain_release(&b);
}

static void a_deadline_of_the_template_is_lowered(void **state)
{
	(void)state;
	run_up(2);
	brain_pod(&b, "demo-boss-0")->pod.active_deadline_seconds = HF_SOME_INT(86400);
	brain_pod(&b, "demo-hand-1")->pod.active_deadline_seconds = HF_SOME_INT(1);
	fail_job();
	assert_non_null(brain_action(&b, HF_ACTION_STOP_POD, "demo-boss-0"));
	assert_null(brain_action(&b, HF_ACTION_STOP_POD, "demo-hand-1"));
	brain_release(&b);
}

/* The job ended under another operator, which also decided about the job's pods. */
static void a_job_that_ended_without_a_ledger_is_left_alone(void **state)
{
	(void)state;
	run_up(2);
	fail_job();
	brain_write_status(&b);
	b.view.status.ledger = (struct hf_ledger){.present = false};
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_after(&b, 60);
	brain_quiet(&b);
	assert_null(still_run());
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_job_ends_what_runs_and_keeps_it),
		cmocka_unit_test(nothing_of_it_is_charged),
		cmocka_unit_test(a_pod_that_does_not_end_is_told_after_half_a_minute),
		cmocka_unit_test(what_has_not_begun_is_deleted),
		cmocka_unit_test(a_pending_pod_whose_program_runs_is_ended_not_deleted),
		cmocka_unit_test(after_success_a_pod_that_has_not_begun_stays),
		cmocka_unit_test(a_program_that_has_not_begun_does_not_begin_for_its_sidecar),
		cmocka_unit_test(keep_leaves_everything_as_upstream_does),
		cmocka_unit_test(a_policy_that_deletes_still_deletes),
		cmocka_unit_test(what_runs_on_after_a_success_is_told_after_half_a_minute),
		cmocka_unit_test(a_pod_on_a_lost_node_is_told_once),
		cmocka_unit_test(a_deadline_of_the_template_is_lowered),
		cmocka_unit_test(a_job_that_ended_without_a_ledger_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
