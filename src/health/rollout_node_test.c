/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/rollout_node.h"

#include "base/str.h"
#include "harness/test.h"

#include <string.h>

#define T0 (1700000000 * HF_SECOND)
#define NOW (T0 + HF_MINUTE)

/* A node in this phase, locked, cordoned by the rollout, empty, and well. */
static struct hf_rollout_node_view in_phase(enum hf_rollout_phase phase)
{
	static const struct hf_rollout_resource gpus[] = {
		{.name = "nvidia.com/gpu", .before_milli = 8000, .now_milli = 8000}};

	return (struct hf_rollout_node_view){
		.now = NOW,
		.phase = phase,
		.outcome = HF_ROLLOUT_DONE,
		.since = T0,
		.changed_at = phase >= HF_ROLLOUT_PROVING ? T0 : HF_TIME_NONE,
		.empty_for = HF_HOUR,
		.prove_within = 15 * HF_MINUTE,
		.node_exists = true,
		.cordoned = true,
		.own_cordon = true,
		.in_maintenance = true,
		.lease = HF_ROLLOUT_LEASE_OURS,
		.proof = {.changed = phase >= HF_ROLLOUT_PROVING,
			  .pod_ready = true,
			  .complete_at = T0,
			  .node_ready = true,
			  .boot_id = "b1",
			  .health_exists = true,
			  .health_wanted = true,
			  .observed_at = T0 + HF_SECOND,
			  .health_boot_id = "b1",
			  .driver_version = "570",
			  .resources = gpus,
			  .resources_len = 1},
	};
}

static struct hf_rollout_node_step step(const struct hf_rollout_node_view *view)
{
	struct hf_rollout_node_step result;

	hf_rollout_node_step(view, &result);
	/* A step changes the phase or does one thing. */
	assert_true(result.next == view->phase || result.act == HF_ROLLOUT_DO_NOTHING);
	return result;
}

static void expect_phase(const struct hf_rollout_node_view *view, enum hf_rollout_phase next)
{
	struct hf_rollout_node_step s = step(view);

	if (s.next != next)
		fail_msg("%s instead of %s: %s", hf_rollout_phase_name(s.next),
			 hf_rollout_phase_name(next), s.message);
}

static void expect_act(const struct hf_rollout_node_view *view, enum hf_rollout_do act)
{
	struct hf_rollout_node_step s = step(view);

	assert_int_equal(s.next, view->phase);
	if (s.act != act)
		fail_msg("%s instead of %s: %s", hf_rollout_do_name(s.act), hf_rollout_do_name(act),
			 s.message);
}

/* The work ends with this outcome, and the message has this part. */
static void expect_end(const struct hf_rollout_node_view *view, enum hf_rollout_phase outcome,
		       const char *part)
{
	struct hf_rollout_node_step s = step(view);

	assert_string_equal(hf_rollout_phase_name(s.next), "Restoring");
	assert_string_equal(hf_rollout_phase_name(s.outcome), hf_rollout_phase_name(outcome));
	if (strstr(s.message, part) == NULL)
		fail_msg("'%s', expected '%s'", s.message, part);
}

static void expect_wait(const struct hf_rollout_node_view *view, const char *part)
{
	struct hf_rollout_node_step s = step(view);

	assert_int_equal(s.next, view->phase);
	if (strstr(s.message, part) == NULL)
		fail_msg("'%s', expected '%s'", s.message, part);
}

static void a_node_is_locked_then_cordoned_then_emptied(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_WAITING);

	(void)state;
	v.cordoned = v.own_cordon = v.in_maintenance = false;
	v.lease = HF_ROLLOUT_LEASE_FREE;
	expect_act(&v, HF_ROLLOUT_TAKE_LEASE);
	v.lease = HF_ROLLOUT_LEASE_OURS;
	expect_phase(&v, HF_ROLLOUT_LOCKED);
	v.phase = HF_ROLLOUT_LOCKED;
	expect_act(&v, HF_ROLLOUT_CORDON);
	v.cordoned = v.own_cordon = true;
	expect_phase(&v, HF_ROLLOUT_CORDONED);
	v.phase = HF_ROLLOUT_CORDONED;
	expect_act(&v, HF_ROLLOUT_SET_CONDITION);
	v.in_maintenance = true;
	expect_phase(&v, HF_ROLLOUT_EMPTYING);
}

static void a_node_is_changed_only_when_it_is_empty(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_EMPTYING);

	(void)state;
	v.pods_left = 2;
	expect_act(&v, HF_ROLLOUT_EVICT);
	v.empty = HF_ROLLOUT_EMPTY_WAIT;
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	v.empty = HF_ROLLOUT_EMPTY_NEVER;
	expect_phase(&v, HF_ROLLOUT_CHANGING);
	v.empty = HF_ROLLOUT_EMPTY_SAVE;
	v.stuck_pod = "team/bare";
	v.stuck_why = "has no controller that would create it again";
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	expect_wait(&v, "team/bare");
	v.now = T0 + HF_HOUR;
	expect_end(&v, HF_ROLLOUT_SKIPPED, "still request a device after 3600 s: team/bare");
	v.pods_left = 0;
	expect_phase(&v, HF_ROLLOUT_CHANGING);
}

static void nothing_begins_while_others_are_at_work(void **state)
{
	static const enum hf_rollout_phase phases[] = {HF_ROLLOUT_WAITING, HF_ROLLOUT_LOCKED,
						       HF_ROLLOUT_EMPTYING, HF_ROLLOUT_CHANGING};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(phases); i++) {
		struct hf_rollout_node_view v = in_phase(phases[i]);

		v.other_lock = "kured";
		expect_act(&v, HF_ROLLOUT_DO_NOTHING);
		expect_wait(&v, "kured");
		v.other_lock = NULL;
		v.held = "annotation holdfast.dev/hold";
		expect_act(&v, HF_ROLLOUT_DO_NOTHING);
		expect_wait(&v, "holdfast.dev/hold");
		v.now = T0 + HF_HOUR;
		expect_end(&v, HF_ROLLOUT_SKIPPED, "holdfast.dev/hold");
	}
}

static void what_ends_before_the_change_changes_nothing(void **state)
{
	(void)state;
	for (int phase = HF_ROLLOUT_WAITING; phase <= HF_ROLLOUT_CHANGING; phase++) {
		struct hf_rollout_node_view v = in_phase((enum hf_rollout_phase)phase);

		v.stops = true;
		v.stop_why = "the rollout halted";
		expect_end(&v, HF_ROLLOUT_SKIPPED, "the rollout halted");
		v.stops = false;
		v.node_exists = false;
		expect_end(&v, HF_ROLLOUT_SKIPPED, "does not exist");
		v.node_exists = true;
		v.lease = HF_ROLLOUT_LEASE_OTHERS;
		v.lease_holder = "n1-3";
		if (phase > HF_ROLLOUT_WAITING)
			expect_end(&v, HF_ROLLOUT_SKIPPED, "lost to n1-3");
		else
			expect_wait(&v, "n1-3 holds the Lease");
		v.lease = HF_ROLLOUT_LEASE_OURS;
		v.cordoned = v.own_cordon = false;
		if (phase > HF_ROLLOUT_LOCKED) {
			expect_end(&v, HF_ROLLOUT_SKIPPED, "took the cordon off");
			assert_true(step(&v).gives_up);
		}
	}
}

static void the_mark_comes_before_the_change(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_CHANGING);

	(void)state;
	expect_act(&v, HF_ROLLOUT_MARK);
	v.marked = true;
	expect_act(&v, HF_ROLLOUT_CHANGE);
	/* After the mark the change may have happened, so only the proof ends the work. */
	v.stops = true;
	expect_act(&v, HF_ROLLOUT_CHANGE);
	v.proof.changed = true;
	expect_phase(&v, HF_ROLLOUT_PROVING);
	v.proof.changed = false;
	v.now = T0 + 15 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_FAILED, "no proof within 900 s");
}

static void a_proof_needs_each_fact(void **state)
{
	static const struct hf_rollout_resource lost[] = {
		{.name = "nvidia.com/gpu", .before_milli = 8000, .now_milli = 7000}};
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_PROVING), good = v;

	(void)state;
	expect_end(&v, HF_ROLLOUT_DONE, "changed and proved");
	v.proof.changed = false;
	expect_wait(&v, "not there any more");
	v = good;
	v.proof.node_ready = false;
	expect_wait(&v, "not Ready");
	v = good;
	v.proof.pod_ready = false;
	expect_wait(&v, "pod of the DaemonSet");
	v = good;
	v.proof.resources = lost;
	expect_wait(&v, "offers 7 of nvidia.com/gpu, and offered 8");
	v = good;
	v.proof.health_exists = false;
	expect_wait(&v, "no report");
	v = good;
	v.proof.health_boot_id = "b0";
	expect_wait(&v, "from this boot");
	v = good;
	v.proof.sick = "GPU-1";
	v.proof.sick_class = "gpu-reset";
	expect_wait(&v, "device GPU-1: gpu-reset");
	v = good;
	v.proof.driver_wanted = "571";
	expect_wait(&v, "driver version 570 instead of 571");
	v.now = T0 + 15 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_FAILED, "driver version 570 instead of 571");
	v.proof.driver_wanted = "570";
	expect_end(&v, HF_ROLLOUT_DONE, "driver version 570");
}

static void an_old_report_proves_nothing(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_PROVING);

	(void)state;
	v.proof.observed_at = T0;
	expect_act(&v, HF_ROLLOUT_ASK_REPORT);
	v.proof.report_asked = true;
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	/* The pod became Ready after the report. */
	v.proof.observed_at = T0 + HF_SECOND;
	v.proof.complete_at = T0 + 2 * HF_SECOND;
	expect_wait(&v, "no report of the agent from after the change");
	v.proof.observed_at = T0 + 3 * HF_SECOND;
	expect_phase(&v, HF_ROLLOUT_RESTORING);
}

static void a_node_without_an_agent_is_proved_by_its_resources(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_PROVING);

	(void)state;
	v.proof.health_exists = v.proof.health_wanted = false;
	expect_end(&v, HF_ROLLOUT_DONE, "1 resource as before");
}

static void only_the_own_cordon_is_taken_off(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_RESTORING);

	(void)state;
	expect_act(&v, HF_ROLLOUT_UNCORDON);
	v.own_cordon = false;
	expect_act(&v, HF_ROLLOUT_CLEAR_CONDITION);
	v.in_maintenance = false;
	expect_act(&v, HF_ROLLOUT_RELEASE_LEASE);
	v.lease = HF_ROLLOUT_LEASE_OTHERS;
	expect_phase(&v, HF_ROLLOUT_DONE);
}

static void a_failed_node_keeps_its_cordon_until_the_end(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_RESTORING);

	(void)state;
	v.outcome = HF_ROLLOUT_FAILED;
	expect_act(&v, HF_ROLLOUT_CLEAR_CONDITION);
	v.in_maintenance = false;
	v.lease = HF_ROLLOUT_LEASE_FREE;
	expect_phase(&v, HF_ROLLOUT_FAILED);
	v.phase = HF_ROLLOUT_FAILED;
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	v.ends = true;
	expect_act(&v, HF_ROLLOUT_UNCORDON);
}

static void a_rollback_ends_rolled_back(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_PROVING);

	(void)state;
	v.backwards = true;
	expect_end(&v, HF_ROLLOUT_ROLLED_BACK, "taken back and proved");
}

static void the_table_of_phases_is_closed(void **state)
{
	enum hf_rollout_phase phase;

	(void)state;
	for (int i = 0; i < HF_ROLLOUT_PHASES; i++) {
		assert_true(hf_rollout_phase_of(hf_rollout_phase_name((enum hf_rollout_phase)i),
						&phase));
		assert_int_equal(phase, i);
		/* Work ends by phase Restoring alone. */
		if (i < HF_ROLLOUT_RESTORING)
			assert_false(hf_rollout_phase_may_follow((enum hf_rollout_phase)i,
								 HF_ROLLOUT_DONE));
	}
	assert_false(hf_rollout_phase_of("waiting", &phase));
	assert_false(hf_rollout_phase_of(NULL, &phase));
	assert_false(hf_rollout_phase_may_follow(HF_ROLLOUT_ROLLED_BACK, HF_ROLLOUT_WAITING));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_is_locked_then_cordoned_then_emptied),
		cmocka_unit_test(a_node_is_changed_only_when_it_is_empty),
		cmocka_unit_test(nothing_begins_while_others_are_at_work),
		cmocka_unit_test(what_ends_before_the_change_changes_nothing),
		cmocka_unit_test(the_mark_comes_before_the_change),
		cmocka_unit_test(a_proof_needs_each_fact),
		cmocka_unit_test(an_old_report_proves_nothing),
		cmocka_unit_test(a_node_without_an_agent_is_proved_by_its_resources),
		cmocka_unit_test(only_the_own_cordon_is_taken_off),
		cmocka_unit_test(a_failed_node_keeps_its_cordon_until_the_end),
		cmocka_unit_test(a_rollback_ends_rolled_back),
		cmocka_unit_test(the_table_of_phases_is_closed),
	};

	return cmocka_run_group_tests_name("rollout_node", tests, NULL, NULL);
}
