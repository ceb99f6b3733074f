/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"
#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

/* The state of one job.  Static because of its size; each test sets the state up anew. */
static struct brain b;

/* Two Hands run, each on a node of its own, and the node of hand-1 becomes Unknown.  Returns the
 * pod of hand-1. */
static struct brain_pod *lose(void)
{
	struct brain_pod *pod;

	brain_init(&b, &brain_kind, 0, 2);
	b.view.run_policy.backoff_limit = HF_SOME_INT(0);
	brain_run_up(&b);
	brain_after(&b, 100);
	brain_nodes_heard(&b);
	pod = brain_pod(&b, "demo-hand-1");
	assert_string_not_equal(pod->node, brain_pod(&b, "demo-hand-0")->node);
	brain_lose(&b, pod->node);
	brain_step(&b);
	brain_answer(&b);
	return pod;
}

/* Perform the plan, answer the requests for reads, and step again. */
static void turn(void)
{
	brain_perform_all(&b);
	brain_answer(&b);
	brain_step(&b);
}

static const struct hf_condition *unreachable(void)
{
	return hf_status_condition(&b.plan.status, HF_COND_NODE_UNREACHABLE);
}

static void a_lost_node_is_shown_and_asked_about_at_once(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = lose();
	brain_step(&b);
	assert_string_equal(unreachable()->status, "True");
	assert_string_equal(unreachable()->reason, "AwaitingEvidence");
	assert_true(brain_asks(&b, HF_ASK_LEASE, pod->node));
	assert_int_equal(b.plan.asks_len, 1);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_int_equal(b.plan.wake_at, b.now + 60 * HF_SECOND);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "Unknown"));
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_release(&b);
}

static void the_whole_way_of_a_pod_that_is_given_up(void **state)
{
	const struct hf_action *action;

	(void)state;
	lose();
	brain_perform_all(&b);
	brain_after(&b, 61);
	/* It is counted and deleted … */
	brain_step(&b);
	turn();
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_string_equal(b.plan.status.ledger.records[0].reason, "NodeLost");
	turn();
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	/* The pod is deleting now: a grace of 30 s, then recovery.forceDeleteAfterSeconds, here 5.
	 * Then the operator sets its phase to Failed … */
	brain_after(&b, 34);
	turn();
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_after(&b, 1);
	turn();
	action = brain_action(&b, HF_ACTION_FAIL_POD, "demo-hand-1");
	assert_non_null(action);
	assert_string_equal(action->resource_version, brain_pod(&b, "demo-hand-1")->version);
	assert_non_null(strstr(action->message, "Unknown since"));
	/* … and its object removed, … */
	turn();
	action = brain_action(&b, HF_ACTION_DELETE_POD, "demo-hand-1");
	assert_non_null(action);
	assert_int_equal(action->grace_seconds.value, 0);
	assert_string_equal(action->resource_version, brain_pod(&b, "demo-hand-1")->version);
	assert_int_equal(b.plan.metrics[HF_METRIC_FORCED_PRESUMED], 1);
	/* … and two seconds later it creates the new pod, on another node. */
	turn();
	assert_null(brain_pod(&b, "demo-hand-1"));
	assert_false(brain_creates(&b, "demo-hand-1"));
	assert_string_equal(unreachable()->status, "False");
	brain_after(&b, 2);
	turn();
	assert_true(brain_creates(&b, "demo-hand-1"));
	brain_perform_all(&b);
	brain_run_up(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	assert_int_equal(b.plan.status.ledger.incident.id, 1);
	brain_release(&b);
}

/* The peer of the lost rank crashes, and the kubelet restarts it again and again: all that is one
 * fault. */
static void a_peer_that_crashes_meanwhile_charges_it_no_second_time(void **state)
{
	const struct hf_ledger *ledger = &b.plan.status.ledger;

	(void)state;
	lose();
	b.view.run_policy.backoff_limit = HF_SOME_INT(1);
	b.view.run_policy.recovery.infrastructure_limit = HF_SOME_INT(2);
	for (int i = 0; i < 6; i++) {
		brain_crash_in_place(&b, "demo-hand-0");
		turn();
		brain_after(&b, 2);
	}
	assert_int_equal(ledger->restarts[HF_BUDGET_APPLICATION], 1);
	/* So far the node is only Unknown.  60 s later it counts as lost and becomes the cause. */
	brain_after(&b, 60);
	for (int i = 0; i < 12; i++)
		turn();
	assert_int_equal(ledger->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_int_equal(ledger->restarts[HF_BUDGET_APPLICATION], 0);
	assert_null(ledger->verdict.reason);
	assert_string_equal(ledger->records[0].node, brain_pod(&b, "demo-hand-1")->node);
	/* If one step sees all these terminations at once, the verdict is withdrawn, and the
	 * incident covers the crashes that were not counted with it. */
	brain_release(&b);
	lose();
	b.view.run_policy.backoff_limit = HF_SOME_INT(1);
	for (int i = 0; i < 6; i++)
		brain_crash_in_place(&b, "demo-hand-0");
	turn();
	brain_after(&b, 60);
	for (int i = 0; i < 12; i++)
		turn();
	assert_int_equal(ledger->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_null(ledger->verdict.reason);
	brain_release(&b);
}

/* The peer of the lost rank fails again and again, and gets a new pod each time.  Until the lost
 * rank runs again that is one fault, which charges one unit. */
static void a_peer_that_fails_meanwhile_charges_it_no_second_time(void **state)
{
	const struct hf_ledger *ledger = &b.plan.status.ledger;

	(void)state;
	lose();
	b.view.run_policy.backoff_limit = HF_SOME_INT(1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(brain_pod(&b, "demo-hand-0")->pod.incident, 0);
		brain_exit(&b, "demo-hand-0", 137);
		brain_quiet(&b);
		assert_int_equal(ledger->incident.id, 1);
		/* The incident covers a peer's new pod as well, and each new pod waits longer. */
		assert_true(i <= 2 || !brain_pod(&b, "demo-hand-0"));
		brain_after(&b, i <= 2 ? 2 : 6 << (i - 3));
		brain_quiet(&b);
		brain_start(&b, "demo-hand-0");
		brain_quiet(&b);
	}
	/* The node was only Unknown and is heard of again, so the crashes of the peer are the
	 * application's. */
	assert_int_equal(ledger->restarts[HF_BUDGET_INFRASTRUCTURE], 0);
	assert_int_equal(ledger->restarts[HF_BUDGET_APPLICATION], 1);
	/* The node is back: pods that are created from now on are charged for their own
	 * terminations. */
	brain_regain(&b, brain_pod(&b, "demo-hand-1")->node);
	brain_after(&b, 20);
	brain_exit(&b, "demo-hand-0", 137);
	brain_quiet(&b);
	brain_after(&b, 60);
	brain_run_up(&b);
	assert_int_equal(ledger->incident.id, 1);
	assert_int_equal(brain_pod(&b, "demo-hand-0")->pod.incident, 1);
	brain_exit(&b, "demo-hand-0", 137);
	brain_step(&b);
	assert_int_equal(ledger->incident.id, 2);
	assert_string_equal(ledger->verdict.reason, "BackoffLimitExceeded");
	brain_release(&b);
}

/* The replacement of the lost rank is charged for its own termination.  With scope Job that holds
 * for all ranks, because all were replaced. */
static void the_lost_rank_itself_and_a_whole_generation_answer_for_themselves(void **state)
{
	(void)state;
	lose();
	brain_node(&b, brain_pod(&b, "demo-hand-1")->node)->out_of_service = true;
	for (int i = 0; i < 8; i++) {
		turn();
		brain_after(&b, 2);
	}
	assert_int_equal(b.plan.status.ledger.incident.id, 1);
	assert_int_equal(brain_pod(&b, "demo-hand-1")->pod.incident, 1);
	brain_release(&b);
	lose();
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_node(&b, brain_pod(&b, "demo-hand-1")->node)->out_of_service = true;
	for (int i = 0; i < 8; i++) {
		turn();
		brain_terminating_gone(&b);
		brain_after(&b, 2);
	}
	assert_int_equal(brain_pod(&b, "demo-hand-0")->pod.incident, 1);
	assert_int_equal(brain_pod(&b, "demo-hand-1")->pod.incident, 1);
	brain_release(&b);
}

static void a_sign_of_life_of_another_pod_on_the_node_counts(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = lose();
	memcpy(brain_pod(&b, "demo-hand-0")->node, pod->node, BRAIN_TEXT_MAX);
	brain_after(&b, 50);
	brain_pod(&b, "demo-hand-0")->pod.news_at = b.now;
	brain_after(&b, 11);
	brain_step(&b);
	brain_answer(&b);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_after(&b, 49);
	brain_answer(&b);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-1"));
	brain_release(&b);
}

static void a_kubelet_that_writes_one_word_wins(void **state)
{
	struct brain_pod *pod;

	(void)state;
	lose();
	brain_perform_all(&b);
	brain_after(&b, 61);
	brain_step(&b);
	turn();
	turn();
	brain_after(&b, 40);
	turn();
	assert_non_null(brain_action(&b, HF_ACTION_FAIL_POD, "demo-hand-1"));
	/* Between the plan and the request. */
	pod = brain_pod(&b, "demo-hand-1");
	brain_disrupt(&b, "demo-hand-1");
	pod->pod.news_at = b.now;
	brain_perform_all(&b);
	assert_int_equal(pod->pod.phase, HF_POD_RUNNING);
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_string_equal(unreachable()->reason, "SignsOfLife");
	brain_release(&b);
}

static void a_pod_without_a_version_is_not_forced(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = lose();
	brain_node(&b, pod->node)->out_of_service = true;
	brain_terminate(&b, "demo-hand-1");
	brain_step(&b);
	assert_true(brain_asks(&b, HF_ASK_NODE, pod->node));
	assert_null(brain_action(&b, HF_ACTION_FAIL_POD, "demo-hand-1"));
	brain_answer(&b);
	brain_step(&b);
	assert_non_null(brain_action(&b, HF_ACTION_FAIL_POD, "demo-hand-1"));
	pod->version[0] = '\0';
	brain_step(&b);
	assert_null(brain_action(&b, HF_ACTION_FAIL_POD, "demo-hand-1"));
	brain_release(&b);
}

static void others_pods_are_left_alone(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = lose();
	brain_node(&b, pod->node)->out_of_service = true;
	brain_terminate(&b, "demo-hand-1");
	pod->pod.owned = false;
	brain_step(&b);
	assert_null(brain_action(&b, HF_ACTION_FAIL_POD, "demo-hand-1"));
	assert_null(unreachable());
	brain_release(&b);
}

/* A job was deleted and created again under its name.  The pod of the deleted job is on a dead
 * node, and only the new job can give it up. */
static void what_an_earlier_job_has_left_is_given_up_by_the_same_evidence(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = lose();
	brain_terminate(&b, "demo-hand-1");
	pod->pod.owned = false;
	pod->pod.maker = "TestJob";
	pod->pod.creation_time = b.view.creation_time;
	brain_after(&b, 61);
	brain_quiet(&b);
	assert_true(brain_asks(&b, HF_ASK_LEASE, pod->node));
	brain_answer(&b);
	brain_step(&b);
	assert_non_null(brain_action(&b, HF_ACTION_FAIL_POD, "demo-hand-1"));
	turn();
	assert_int_equal(brain_action(&b, HF_ACTION_DELETE_POD, "demo-hand-1")->grace_seconds.value,
			 0);
	turn();
	brain_after(&b, 2);
	brain_quiet(&b);
	assert_true(brain_pod(&b, "demo-hand-1")->pod.owned);
	brain_release(&b);
}

static void what_is_no_legacy_is_left_alone(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = lose();
	brain_node(&b, pod->node)->out_of_service = true;
	brain_terminate(&b, "demo-hand-1");
	pod->pod.owned = false;
	/* Not inherited: a pod of a job of another kind, … */
	pod->pod.maker = "OtherJob";
	assert_false(hf_pod_is_inherited(&b.view, &pod->pod));
	pod->pod.maker = "TestJob";
	pod->pod.creation_time = b.view.creation_time;
	assert_true(hf_pod_is_inherited(&b.view, &pod->pod));
	/* … made after this one, … */
	pod->pod.creation_time = b.view.creation_time + HF_SECOND;
	assert_false(hf_pod_is_inherited(&b.view, &pod->pod));
	brain_step(&b);
	assert_null(brain_action(&b, HF_ACTION_FAIL_POD, "demo-hand-1"));
	/* … or not on its way. */
	pod->pod.creation_time = b.view.creation_time;
	pod->pod.deletion_time = HF_TIME_NONE;
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void many_pods_are_one_line_and_the_hardest_guard_names_the_condition(void **state)
{
	static const char *const claims[] = {"data"};
	struct brain_pod *pod;

	(void)state;
	brain_init(&b, &brain_kind, 0, 6);
	brain_run_up(&b);
	for (size_t i = 0; i < b.pods_len; i++)
		memcpy(b.pods[i].node, "n1", 3);
	pod = brain_pod(&b, "demo-hand-4");
	pod->pod.claims = claims;
	pod->pod.claims_len = 1;
	b.claims_exclusive = true;
	brain_lose(&b, "n1");
	brain_step(&b);
	assert_true(brain_asks(&b, HF_ASK_CLAIM, "data"));
	turn();
	assert_string_equal(unreachable()->reason, "ExclusiveVolume");
	assert_non_null(strstr(unreachable()->message, "6 pod(s)"));
	assert_non_null(strstr(unreachable()->message, "demo-hand-4"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "demo-hand-0 and 4 more on node n1"));
	brain_release(&b);
}

static void a_caller_that_sees_no_nodes_repeats_the_status(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = lose();
	brain_step(&b);
	brain_perform_all(&b);
	brain_terminate(&b, "demo-hand-1");
	brain_quiet(&b);
	brain_after(&b, 1000);
	b.blind = true;
	brain_regain(&b, pod->node);
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "without a sign of life"));
	assert_string_equal(unreachable()->status, "True");
	assert_null(hf_status_condition(&b.plan.status, HF_COND_POD_STUCK));
	brain_release(&b);
}

static void a_pending_verdict_gives_way_only_once(void **state)
{
	(void)state;
	lose();
	b.view.run_policy.recovery.infrastructure_limit = HF_SOME_INT(0);
	b.replicas[0].restart_policy = "Never";
	brain_perform_all(&b);
	brain_after(&b, 1);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	turn();
	assert_string_equal(b.plan.status.ledger.verdict.reason, "RestartPolicyNever");
	brain_after(&b, 60);
	turn();
	turn();
	assert_string_equal(b.plan.status.ledger.verdict.reason, "InfrastructureLimitExceeded");
	brain_after(&b, 1);
	brain_nodes_heard(&b);
	turn();
	assert_true(hf_status_is_finished(&b.plan.status));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_node_is_shown_and_asked_about_at_once),
		cmocka_unit_test(the_whole_way_of_a_pod_that_is_given_up),
		cmocka_unit_test(a_peer_that_crashes_meanwhile_charges_it_no_second_time),
		cmocka_unit_test(a_peer_that_fails_meanwhile_charges_it_no_second_time),
		cmocka_unit_test(the_lost_rank_itself_and_a_whole_generation_answer_for_themselves),
		cmocka_unit_test(a_sign_of_life_of_another_pod_on_the_node_counts),
		cmocka_unit_test(a_kubelet_that_writes_one_word_wins),
		cmocka_unit_test(a_pod_without_a_version_is_not_forced),
		cmocka_unit_test(others_pods_are_left_alone),
		cmocka_unit_test(what_an_earlier_job_has_left_is_given_up_by_the_same_evidence),
		cmocka_unit_test(what_is_no_legacy_is_left_alone),
		cmocka_unit_test(many_pods_are_one_line_and_the_hardest_guard_names_the_condition),
		cmocka_unit_test(a_caller_that_sees_no_nodes_repeats_the_status),
		cmocka_unit_test(a_pending_verdict_gives_way_only_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
