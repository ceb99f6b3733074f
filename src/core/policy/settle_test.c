/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

static struct brain b;

/* hand-0 exits with 2 under ExitCode while node n1 was last heard of ten seconds before. */
static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	b.replicas[1].restart_policy = "ExitCode";
	brain_run_up(&b);
	brain_after(&b, 10);
	b.nodes[0].renewed_at = b.now;
	brain_exit(&b, "demo-hand-0", 2);
	brain_step(&b);
}

static bool failed(void)
{
	brain_step(&b);
	return hf_status_is_true(&b.plan.status, HF_COND_FAILED);
}

static void a_verdict_waits_for_the_nodes_of_the_job(void **state)
{
	(void)state;
	begin();
	assert_false(hf_status_is_finished(&b.plan.status));
	assert_string_equal(b.plan.status.ledger.verdict.reason, "ExitCode");
	/* Clients print the last condition, so it must be Running while the verdict settles. */
	assert_string_equal(b.plan.status.conditions[b.plan.status.conditions_len - 1].type,
			    HF_COND_RUNNING);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_RUNNING));
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	assert_true(b.plan.wake_at == b.now + 20 * HF_SECOND);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "node n1"));
	brain_perform_all(&b);
	brain_after(&b, 3);
	assert_false(failed());
	b.nodes[1].renewed_at = b.now;
	assert_true(failed());
	brain_release(&b);
}

static void at_most_settle_seconds(void **state)
{
	(void)state;
	begin();
	brain_perform_all(&b);
	brain_after(&b, 19);
	assert_false(failed());
	brain_after(&b, 1);
	assert_true(failed());
	brain_release(&b);
}

static void longer_while_a_node_is_suspect(void **state)
{
	(void)state;
	begin();
	b.nodes[1].ready = HF_NODE_NOT_READY;
	brain_perform_all(&b);
	brain_after(&b, 119);
	assert_false(failed());
	brain_after(&b, 1);
	assert_true(failed());
	brain_release(&b);
}

static void a_longer_settling_is_not_shortened_by_suspicion(void **state)
{
	(void)state;
	begin();
	b.view.run_policy.recovery.settle_seconds = HF_SOME_INT(300);
	b.nodes[1].ready = HF_NODE_NOT_READY;
	brain_perform_all(&b);
	brain_after(&b, 299);
	assert_false(failed());
	brain_after(&b, 1);
	assert_true(failed());
	brain_release(&b);
}

static void a_silent_agent_is_waited_for(void **state)
{
	(void)state;
	begin();
	brain_perform_all(&b);
	brain_after(&b, 1);
	b.nodes[1].renewed_at = b.now;
	b.nodes[1].has_agent = true;
	for (size_t i = 0; i < b.pods_len; i++)
		b.pods[i].pod.watched = true;
	assert_false(failed());
	b.nodes[1].reported_at = b.now;
	assert_true(failed());
	brain_release(&b);
}

static void an_agent_that_watches_none_of_the_pods_is_not_waited_for(void **state)
{
	(void)state;
	begin();
	brain_perform_all(&b);
	brain_after(&b, 1);
	b.nodes[1].renewed_at = b.now;
	b.nodes[1].has_agent = true;
	assert_true(failed());
	brain_release(&b);
}

/* Node n1 becomes Unknown, one second after the verdict, and its Lease does not move any more. */
static void lose_n1(void)
{
	begin();
	brain_perform_all(&b);
	brain_after(&b, 1);
	b.nodes[1].ready = HF_NODE_UNKNOWN;
	b.nodes[1].unreachable = true;
	b.nodes[1].since = b.nodes[1].unknown_at = b.nodes[1].lease_since = b.now;
	assert_false(failed());
	assert_int_equal(b.plan.status.ledger.incident.cause, HF_CLASS_APPLICATION);
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "node n1"));
}

/* While n1 is only Unknown it may be heard of again, so it is not the cause. */
static void a_node_that_is_unknown_for_a_while_is_no_cause(void **state)
{
	(void)state;
	lose_n1();
	brain_after(&b, 30);
	b.nodes[0].renewed_at = b.nodes[1].lease_read_at = b.now;
	assert_false(failed());
	assert_int_equal(b.plan.status.ledger.incident.cause, HF_CLASS_APPLICATION);
	b.nodes[1].ready = HF_NODE_READY;
	b.nodes[1].unknown_at = HF_TIME_NONE;
	b.nodes[1].renewed_at = b.now;
	assert_true(failed());
	brain_release(&b);
}

/* In a storm no node ever counts as lost.  When the wait is over, an Unknown node is taken as the
 * cause, because a failed job cannot be taken back. */
static void a_node_that_is_unknown_to_the_end_of_the_wait_is_the_cause(void **state)
{
	hf_time at;

	(void)state;
	lose_n1();
	at = b.plan.status.ledger.verdict.at;
	b.nodes[1].calm_since = HF_TIME_NONE;
	brain_after(&b, 118);
	b.nodes[0].renewed_at = b.nodes[1].lease_read_at = b.now;
	assert_false(failed());
	assert_int_equal(b.plan.status.ledger.incident.cause, HF_CLASS_APPLICATION);
	assert_int_equal(b.plan.wake_at, at + 120 * HF_SECOND);
	brain_perform_all(&b);
	brain_after(&b, 1);
	assert_false(failed());
	assert_int_equal(b.plan.status.ledger.incident.charged, HF_BUDGET_INFRASTRUCTURE);
	brain_release(&b);
}

static void a_node_that_counts_as_lost_meanwhile_is_the_cause(void **state)
{
	(void)state;
	lose_n1();
	brain_after(&b, 60);
	b.nodes[0].renewed_at = b.nodes[1].lease_read_at = b.now;
	assert_false(failed());
	assert_int_equal(b.plan.status.ledger.incident.cause, HF_CLASS_INFRASTRUCTURE);
	assert_int_equal(b.plan.status.ledger.incident.charged, HF_BUDGET_INFRASTRUCTURE);
	assert_null(b.plan.status.ledger.verdict.reason);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	brain_release(&b);
}

/* The node was Unknown before the pod was bound to it, so the operator's view is old.  The verdict
 * waits for the node like for any other, and the node is no cause. */
static void a_node_that_was_lost_before_its_pod_came_is_waited_for(void **state)
{
	(void)state;
	begin();
	brain_perform_all(&b);
	brain_after(&b, 1);
	b.nodes[1].ready = HF_NODE_UNKNOWN;
	b.nodes[1].unknown_at = 0;
	assert_false(failed());
	assert_int_equal(b.plan.status.ledger.incident.cause, HF_CLASS_APPLICATION);
	assert_true(brain_asks(&b, HF_ASK_LEASE, "n1"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "node n1"));
	b.nodes[1].renewed_at = b.now;
	assert_true(failed());
	brain_release(&b);
}

/* The verdict asks for the Leases of all nodes until the last node was heard of.  The caller
 * forgets a Lease that is not asked for, so two nodes would take turns. */
static void leases_are_read_until_the_last_node_is_heard_of(void **state)
{
	(void)state;
	begin();
	brain_perform_all(&b);
	brain_after(&b, 1);
	b.nodes[0].renewed_at = b.now;
	assert_false(failed());
	assert_int_equal(b.plan.asks_len, 2);
	assert_true(brain_asks(&b, HF_ASK_LEASE, "n0"));
	assert_true(brain_asks(&b, HF_ASK_LEASE, "n1"));
	brain_nodes_heard(&b);
	assert_true(failed());
	assert_int_equal(b.plan.asks_len, 0);
	brain_release(&b);
}

static void a_node_that_no_watch_shows_counts_as_silent(void **state)
{
	(void)state;
	begin();
	b.nodes_len = 0;
	brain_perform_all(&b);
	assert_false(failed());
	brain_after(&b, 20);
	assert_true(failed());
	brain_release(&b);
}

static void nodes_without_pods_of_the_job_do_not_matter(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 0, 1);
	b.replicas[0].restart_policy = "Never";
	brain_run_up(&b);
	brain_after(&b, 10);
	for (size_t i = 0; i < b.nodes_len; i++) {
		if (hf_streq(b.nodes[i].name, b.pods[0].node))
			b.nodes[i].renewed_at = b.now;
	}
	brain_exit(&b, "demo-hand-0", 1);
	assert_true(failed());
	brain_release(&b);
}

static void restarts_do_not_wait(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_after(&b, 10);
	brain_exit(&b, "demo-hand-0", 2);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_waits_for_the_nodes_of_the_job),
		cmocka_unit_test(at_most_settle_seconds),
		cmocka_unit_test(longer_while_a_node_is_suspect),
		cmocka_unit_test(a_longer_settling_is_not_shortened_by_suspicion),
		cmocka_unit_test(a_silent_agent_is_waited_for),
		cmocka_unit_test(an_agent_that_watches_none_of_the_pods_is_not_waited_for),
		cmocka_unit_test(a_node_that_is_unknown_for_a_while_is_no_cause),
		cmocka_unit_test(a_node_that_is_unknown_to_the_end_of_the_wait_is_the_cause),
		cmocka_unit_test(a_node_that_counts_as_lost_meanwhile_is_the_cause),
		cmocka_unit_test(a_node_that_was_lost_before_its_pod_came_is_waited_for),
		cmocka_unit_test(leases_are_read_until_the_last_node_is_heard_of),
		cmocka_unit_test(a_node_that_no_watch_shows_counts_as_silent),
		cmocka_unit_test(nodes_without_pods_of_the_job_do_not_matter),
		cmocka_unit_test(restarts_do_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
