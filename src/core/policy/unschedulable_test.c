/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;

static const struct hf_pod_condition refused = {
	.type = "PodScheduled", .status = "False", .reason = "Unschedulable"};
static const struct hf_sick_seen sick[] = {{.node = "n8", .since = HF_TIME_NONE},
					   {.node = "n7", .since = HF_TIME_NONE}};

/* A device failed on node n7, and later one on n8.  Pod demo-hand-0 is excluded from both nodes,
 * and no other node takes it. */
static struct brain_pod *wait_for_a_node(void)
{
	static const struct hf_record records[] = {
		{.incident = 2, .cause = HF_CLASS_DEVICE, .node = "n8"},
		{.incident = 1, .cause = HF_CLASS_DEVICE, .node = "n7"},
	};
	struct hf_ledger *ledger;
	struct brain_pod *pod;

	brain_init(&b, &brain_kind, 0, 2);
	brain_run_up(&b);
	ledger = &b.view.status.ledger;
	ledger->incident = (struct hf_incident){
		.id = 2, .opened_at = b.now, .cause = HF_CLASS_DEVICE, .charged = HF_BUDGET_DEVICE};
	for (size_t i = 0; i < HF_ARRAY_LEN(records); i++) {
		ledger->records[i] = records[i];
		ledger->records[i].generation = 1;
		ledger->records[i].detected_at = b.now;
		ledger->records[i].decided_at = b.now;
		ledger->records[i].running_at = HF_TIME_NONE;
	}
	ledger->records_len = HF_ARRAY_LEN(records);
	pod = brain_pod(&b, "demo-hand-0");
	pod->pod.phase = HF_POD_PENDING;
	pod->node[0] = '\0';
	pod->pod.avoids = "n8,n7";
	pod->condition = refused;
	pod->pod.conditions_len = 1;
	b.sick = sick;
	b.sick_len = HF_ARRAY_LEN(sick);
	return pod;
}

static const struct hf_condition *shown(void)
{
	return hf_status_condition(&b.plan.status, HF_COND_POD_UNPLACED);
}

static void an_unschedulable_pod_is_shown_once_and_looked_at_again(void **state)
{
	(void)state;
	wait_for_a_node();
	brain_step(&b);
	assert_string_equal(shown()->status, "True");
	assert_non_null(strstr(shown()->message, "hand-0 first, which must not run on n8,n7"));
	assert_non_null(brain_event(&b, "PodUnschedulable"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "which must not run on n8,n7"));
	assert_true(b.plan.wake_at <= b.now + 30 * HF_SECOND);
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_write_status(&b);
	brain_after(&b, 30);
	brain_step(&b);
	assert_null(brain_event(&b, "PodUnschedulable"));
	assert_true(b.plan.wake_at <= b.now + 30 * HF_SECOND);
	brain_release(&b);
}

/* The device may be withheld from new pods a moment after its failure. */
static void the_first_looks_come_soon_after_the_creation(void **state)
{
	static const struct {
		hf_time age, wait;
	} cases[] = {{0, 2 * HF_SECOND},
		     {-HF_MINUTE, 2 * HF_SECOND},
		     {4 * HF_SECOND, 4 * HF_SECOND},
		     {HF_HOUR, 30 * HF_SECOND}};
	struct brain_pod *pod = wait_for_a_node();

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		pod->pod.creation_time = b.now - cases[i].age;
		brain_step(&b);
		assert_int_equal(b.plan.wake_at - b.now, cases[i].wait);
	}
	brain_release(&b);
}

static void of_many_nodes_a_few_are_named(void **state)
{
	static struct hf_sick_seen many[10];
	static const char names[] = "n8,n7,a,b,c,d,e,f,g,h";

	(void)state;
	wait_for_a_node()->pod.avoids = names;
	for (int i = 0; i < 10; i++)
		many[i] = (struct hf_sick_seen){
			.node = i < 8 ? hf_arena_printf(b.stored[0], "%c", 'a' + i)
				      : sick[i - 8].node,
			.since = b.now};
	b.replicas[0].pod.devices = true;
	b.sick = many;
	b.sick_len = HF_ARRAY_LEN(many);
	brain_step(&b);
	assert_non_null(strstr(shown()->message, "not run on n8,n7,a,b,c,d,e,f and 2 more: a"));
	/* A role without devices is excluded only from nodes that a record names, not from all
	 * these nodes. */
	b.replicas[0].pod.devices = false;
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

/* All failed devices of both nodes are withheld from new claims. */
static void a_pod_with_a_shared_claim_waits_and_is_told_why(void **state)
{
	static const struct hf_sick_seen withheld[] = {
		{.node = "n8", .since = HF_TIME_NONE, .withheld = true},
		{.node = "n7", .since = HF_TIME_NONE, .withheld = true}};

	(void)state;
	wait_for_a_node();
	b.sick = withheld;
	b.replicas[0].pod.shared_claims = true;
	brain_step(&b);
	assert_non_null(
		strstr(shown()->message,
		       "out of service there, and the ResourceClaim that the pod names may "));
	b.replicas[0].pod.shared_claims = false;
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

static void a_job_that_is_suspended_waits_for_no_node(void **state)
{
	(void)state;
	wait_for_a_node();
	brain_step(&b);
	brain_write_status(&b);
	b.view.run_policy.suspend = (struct hf_opt_bool){.set = true, .value = true};
	brain_step(&b);
	assert_string_equal(shown()->status, "False");
	assert_string_equal(shown()->reason, "PodsPlaced");
	brain_release(&b);
}

static void one_of_two_that_is_mended_makes_the_pod_anew_at_no_cost(void **state)
{
	(void)state;
	wait_for_a_node();
	brain_step(&b);
	brain_write_status(&b);
	b.sick_len = 1;
	brain_step(&b);
	assert_string_equal(shown()->status, "False");
	assert_true(brain_deletes(&b, "demo-hand-0"));
	assert_true(b.plan.status_urgent);
	assert_int_equal(b.plan.status.ledger.incident.id, 2);
	brain_perform_all(&b);
	brain_terminating_gone(&b);
	brain_step(&b);
	assert_true(brain_creates(&b, "demo-hand-0"));
	assert_string_equal(
		brain_edit(&b, "demo-hand-0", HF_EDIT_ANNOTATION, "holdfast.dev/avoids"), "n8");
	brain_release(&b);
}

static void after_a_day_nothing_keeps_it_off(void **state)
{
	(void)state;
	wait_for_a_node();
	brain_after(&b, 24 * 3600);
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	brain_perform_all(&b);
	brain_terminating_gone(&b);
	brain_step(&b);
	assert_null(brain_edit(&b, "demo-hand-0", HF_EDIT_ANNOTATION, "holdfast.dev/avoids"));
	brain_release(&b);
}

/* While a verdict settles, the operator replaces no waiting pod, but keeps the condition true. */
static void while_a_verdict_settles_the_condition_is_kept_true(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = wait_for_a_node();
	brain_step(&b);
	brain_write_status(&b);
	brain_after(&b, 10);
	b.view.status.ledger.verdict =
		(struct hf_verdict){.reason = "ExitCode", .message = "it failed", .at = b.now};
	brain_step(&b);
	assert_false(hf_status_is_finished(&b.plan.status));
	assert_string_equal(shown()->status, "True");
	/* The scheduler has found a node. */
	pod->pod.conditions_len = 0;
	brain_step(&b);
	assert_false(hf_status_is_finished(&b.plan.status));
	assert_string_equal(shown()->status, "False");
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_release(&b);
}

static void what_the_scheduler_has_not_refused_is_left_alone(void **state)
{
	struct brain_pod *pod;

	(void)state;
	pod = wait_for_a_node();
	pod->pod.conditions_len = 0;
	b.sick_len = 0;
	brain_step(&b);
	assert_null(shown());
	assert_false(brain_deletes(&b, "demo-hand-0"));
	/* A pod that no node takes, but that Holdfast has excluded from no node, is not replaced
	 * either. */
	pod->pod.conditions_len = 1;
	pod->pod.avoids = NULL;
	brain_step(&b);
	assert_null(shown());
	assert_false(brain_deletes(&b, "demo-hand-0"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unschedulable_pod_is_shown_once_and_looked_at_again),
		cmocka_unit_test(the_first_looks_come_soon_after_the_creation),
		cmocka_unit_test(of_many_nodes_a_few_are_named),
		cmocka_unit_test(a_pod_with_a_shared_claim_waits_and_is_told_why),
		cmocka_unit_test(a_job_that_is_suspended_waits_for_no_node),
		cmocka_unit_test(one_of_two_that_is_mended_makes_the_pod_anew_at_no_cost),
		cmocka_unit_test(after_a_day_nothing_keeps_it_off),
		cmocka_unit_test(while_a_verdict_settles_the_condition_is_kept_true),
		cmocka_unit_test(what_the_scheduler_has_not_refused_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
