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
			  .begun = phase >= HF_ROLLOUT_PROVING,
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
	v.stuck_pod = NULL;
	v.left_pod = "team/slow";
	expect_end(&v, HF_ROLLOUT_SKIPPED, "a device after 3600 s, first team/slow");
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

/* It has no proof yet, so its cordon stays. */
static void a_failed_node_that_is_not_taken_back_fails_again(void **state)
{
	(void)state;
	for (int phase = HF_ROLLOUT_WAITING; phase <= HF_ROLLOUT_CHANGING; phase++) {
		struct hf_rollout_node_view v = in_phase((enum hf_rollout_phase)phase);

		v.backwards = v.had_failed = true;
		v.stops = true;
		v.stop_why = "the rollout halted";
		expect_end(&v, HF_ROLLOUT_FAILED, "not taken back: the rollout halted");
		v.stops = false;
		v.now = hf_time_add(v.since, v.empty_for);
		v.other_lock = "kured";
		if (phase != HF_ROLLOUT_CORDONED && phase != HF_ROLLOUT_BASELINE)
			expect_end(&v, HF_ROLLOUT_FAILED, "kured is at work");
		v.other_lock = NULL;
		v.lease = HF_ROLLOUT_LEASE_OTHERS;
		expect_end(&v, HF_ROLLOUT_FAILED, "");
		v.lease = HF_ROLLOUT_LEASE_OURS;
		v.pods_left = 1;
		if (phase == HF_ROLLOUT_EMPTYING)
			expect_end(&v, HF_ROLLOUT_FAILED, "1 pod still requests a device");
		v.node_exists = false;
		expect_end(&v, HF_ROLLOUT_SKIPPED, "does not exist");
	}
}

/* The change could not be proved, and would be blamed. */
static void a_device_that_fails_before_the_change_ends_the_work(void **state)
{
	static const enum hf_rollout_phase before[] = {HF_ROLLOUT_WAITING,  HF_ROLLOUT_LOCKED,
						       HF_ROLLOUT_CORDONED, HF_ROLLOUT_EMPTYING,
						       HF_ROLLOUT_BASELINE, HF_ROLLOUT_CHANGING};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(before); i++) {
		struct hf_rollout_node_view v = in_phase(before[i]);

		v.proof.sick = "GPU-1";
		v.proof.sick_class = "gpu-reset";
		expect_end(&v, HF_ROLLOUT_SKIPPED, "nothing was changed: device GPU-1: gpu-reset");
		/* What the change has broken is taken back. */
		v.backwards = true;
		assert_int_not_equal(step(&v).outcome, HF_ROLLOUT_SKIPPED);
	}
}

/* An agent that has just begun knows nothing for a second. */
static void a_node_with_an_unknown_device_waits_before_its_change(void **state)
{
	static const enum hf_rollout_phase before[] = {HF_ROLLOUT_WAITING, HF_ROLLOUT_LOCKED,
						       HF_ROLLOUT_EMPTYING, HF_ROLLOUT_CHANGING};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(before); i++) {
		struct hf_rollout_node_view v = in_phase(before[i]);

		v.proof.unknown = "GPU-2";
		expect_wait(&v, "waits: the agent knows nothing of device GPU-2");
		v.now = hf_time_add(v.since, v.empty_for);
		expect_end(&v, HF_ROLLOUT_SKIPPED, "the agent knows nothing of device GPU-2");
		v.backwards = true;
		assert_int_not_equal(step(&v).outcome, HF_ROLLOUT_SKIPPED);
	}
}

static void the_mark_comes_before_the_change(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_CHANGING);

	(void)state;
	expect_act(&v, HF_ROLLOUT_MARK);
	v.marked = true;
	expect_act(&v, HF_ROLLOUT_CHANGE);
	v.proof.changed = v.proof.begun = true;
	expect_phase(&v, HF_ROLLOUT_PROVING);
	/* Another has changed the node: without a mark nothing would tell later that the rollout has proved it. */
	v.marked = false;
	expect_act(&v, HF_ROLLOUT_MARK);
	v.marked = true;
	v.proof.changed = false;
	v.marked_at = T0;
	v.now = T0 + 15 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_FAILED, "no proof within 900 s");
	/* No operator ran for an hour: the change may never have been made. */
	v.seen_since = T0 + HF_HOUR;
	v.now = v.seen_since + 15 * HF_MINUTE - HF_SECOND;
	expect_act(&v, HF_ROLLOUT_CHANGE);
	v.now += HF_SECOND;
	expect_end(&v, HF_ROLLOUT_FAILED, "no proof within 900 s");
}

/* The change has 15 minutes from its mark on. */
static void a_hold_does_not_count_for_the_change(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_CHANGING);

	(void)state;
	v.held = "annotation holdfast.dev/hold of the node";
	v.now = T0 + 20 * HF_MINUTE;
	expect_wait(&v, "waits: annotation holdfast.dev/hold");
	v.held = NULL;
	expect_act(&v, HF_ROLLOUT_MARK);
	v.marked = true;
	v.marked_at = v.now;
	expect_act(&v, HF_ROLLOUT_CHANGE);
	v.now += 15 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_FAILED, "no proof within 900 s");
	/* The mark is of an earlier try. */
	v.marked_at = T0 - HF_HOUR;
	v.now = T0 + HF_MINUTE;
	expect_act(&v, HF_ROLLOUT_CHANGE);
	/* The mark is refused. */
	v.marked = false;
	v.now = T0 + HF_HOUR + 15 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_FAILED, "no proof within 900 s");
}

/* The DaemonSet was gone when the change was marked. It came back after the rollout had halted. */
static void a_change_that_is_marked_and_has_not_begun_is_stopped(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_CHANGING);

	(void)state;
	v.marked = true;
	v.stops = true;
	v.stop_why = "the rollout halted";
	expect_end(&v, HF_ROLLOUT_SKIPPED, "nothing was changed: the rollout halted");
	v.proof.begun = true;
	expect_act(&v, HF_ROLLOUT_CHANGE);
	v.proof.changed = true;
	expect_phase(&v, HF_ROLLOUT_PROVING);
}

/* The holder of the Lease may have taken it because a person deleted it. */
static void the_own_condition_is_cleared_without_the_lease(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_RESTORING);

	(void)state;
	v.cordoned = v.own_cordon = false;
	v.lease = HF_ROLLOUT_LEASE_FREE;
	expect_act(&v, HF_ROLLOUT_CLEAR_CONDITION);
	v.in_maintenance = false;
	expect_phase(&v, HF_ROLLOUT_DONE);
}

/* Else a later cordon of a person would pass for the rollout's. */
static void the_annotation_goes_after_a_person_took_the_cordon_off(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_RESTORING);

	(void)state;
	v.cordoned = false;
	expect_act(&v, HF_ROLLOUT_UNCORDON);
	v.own_cordon = false;
	expect_act(&v, HF_ROLLOUT_CLEAR_CONDITION);
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
	v.proof.unknown = "GPU-1";
	expect_wait(&v, "the agent knows nothing of device GPU-1");
	v = good;
	v.proof.driver_wanted = "571";
	expect_wait(&v, "driver version 570 instead of 571");
	v.now = T0 + 15 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_FAILED, "driver version 570 instead of 571");
	v.proof.driver_wanted = "570";
	expect_end(&v, HF_ROLLOUT_DONE, "driver version 570");
}

/* A person has deleted the Lease of a node that is changed. */
static void a_lost_lease_is_taken_again_until_the_proof(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_PROVING);

	(void)state;
	v.proof.pod_ready = false;
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	v.lease = HF_ROLLOUT_LEASE_FREE;
	expect_act(&v, HF_ROLLOUT_TAKE_LEASE);
	v.lease = HF_ROLLOUT_LEASE_OTHERS;
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	/* A refused Lease does not keep the deadline away. */
	v.lease = HF_ROLLOUT_LEASE_FREE;
	v.now = T0 + 15 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_FAILED, "no proof within 900 s");
	v.now = NOW;
	/* The holder of the Lease asks for a report, and no other. */
	v.proof.pod_ready = true;
	v.proof.observed_at = T0 - 1;
	v.lease = HF_ROLLOUT_LEASE_OTHERS;
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	v.lease = HF_ROLLOUT_LEASE_OURS;
	expect_act(&v, HF_ROLLOUT_ASK_REPORT);
	v.proof.observed_at = T0 + HF_SECOND;
	v.on_hold = true;
	v.lease = HF_ROLLOUT_LEASE_FREE;
	expect_act(&v, HF_ROLLOUT_TAKE_LEASE);
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
	/* Another rollout changes the node, and counts on the cordon. */
	v.lease = HF_ROLLOUT_LEASE_OTHERS;
	v.lease_holder = "rollout/b";
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	expect_phase(&v, HF_ROLLOUT_FAILED);
	v.lease = HF_ROLLOUT_LEASE_FREE;
	expect_act(&v, HF_ROLLOUT_UNCORDON);
}

static void a_rollback_ends_rolled_back(void **state)
{
	struct hf_rollout_node_view v = in_phase(HF_ROLLOUT_PROVING);

	(void)state;
	v.backwards = true;
	expect_end(&v, HF_ROLLOUT_ROLLED_BACK, "taken back and proved");
}

/* ---- the canary ---------------------------------------------------------------------------------- */

#define JOB "team-a/canary-n1-0-b"

/* A node in this phase. The canary has 300 s, and may be 10 % slower than before. */
static struct hf_rollout_node_view with_canary(enum hf_rollout_phase phase)
{
	struct hf_rollout_node_view v = in_phase(phase);

	v.canary = (struct hf_rollout_canary){.wanted = true,
					      .slower_percent = 10,
					      .within = 5 * HF_MINUTE,
					      .job = JOB,
					      .took = HF_MINUTE};
	if (phase > HF_ROLLOUT_BASELINE)
		v.canary.before = (struct hf_rollout_pace){.step_us = 100000, .run_ms = 60000};
	return v;
}

static void a_canary_runs_before_the_change_only_without_history(void **state)
{
	struct hf_rollout_node_view v = with_canary(HF_ROLLOUT_EMPTYING), good = v;

	(void)state;
	expect_phase(&v, HF_ROLLOUT_BASELINE);
	/* The steps alone are no history: the job did not succeed. */
	v.canary.before.step_us = 100000;
	expect_phase(&v, HF_ROLLOUT_BASELINE);
	v.canary.before.run_ms = 60000;
	expect_phase(&v, HF_ROLLOUT_CHANGING);
	v = good;
	v.canary.slower_percent = -1;
	expect_phase(&v, HF_ROLLOUT_CHANGING);
	v = good;
	v.backwards = true;
	expect_phase(&v, HF_ROLLOUT_CHANGING);
	v = good;
	v.pods_left = 1;
	expect_act(&v, HF_ROLLOUT_EVICT);
}

static void the_first_canary_is_created_measured_and_deleted(void **state)
{
	struct hf_rollout_node_view v = with_canary(HF_ROLLOUT_BASELINE);
	struct hf_rollout_node_step s;

	(void)state;
	expect_act(&v, HF_ROLLOUT_CREATE_CANARY);
	v.canary.state = HF_ROLLOUT_JOB_RUNS;
	v.pods_left = 1; /* of the canary */
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	expect_wait(&v, JOB);
	assert_false(step(&v).takes_pace);
	/* The steps are seen while the job runs: their report ends with it. */
	v.canary.seen.step_us = 101000;
	s = step(&v);
	assert_true(s.takes_pace);
	assert_int_equal(s.pace.step_us, 101000);
	assert_int_equal(s.pace.run_ms, 0);
	v.canary.before.step_us = 101000;
	assert_false(step(&v).takes_pace);
	v.canary.state = HF_ROLLOUT_JOB_SUCCEEDED;
	v.canary.seen = (struct hf_rollout_pace){.run_ms = 61000};
	s = step(&v);
	assert_true(s.takes_pace);
	assert_int_equal(s.pace.step_us, 101000);
	assert_int_equal(s.pace.run_ms, 61000);
	assert_int_equal(s.act, HF_ROLLOUT_DO_NOTHING);
	v.canary.before = s.pace;
	expect_act(&v, HF_ROLLOUT_DELETE_CANARY);
	v.canary.leaving = true;
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	v.canary.state = HF_ROLLOUT_JOB_NONE;
	/* Its pods still end. */
	expect_wait(&v, "has left the node");
	v.pods_left = 0;
	expect_phase(&v, HF_ROLLOUT_CHANGING);
}

static void a_canary_that_fails_before_the_change_skips_the_node(void **state)
{
	struct hf_rollout_node_view v = with_canary(HF_ROLLOUT_BASELINE);

	(void)state;
	v.canary.state = HF_ROLLOUT_JOB_FAILED;
	v.canary.why = "BackoffLimitExceeded";
	expect_end(&v, HF_ROLLOUT_SKIPPED,
		   "the canary, job " JOB ", failed before the change: BackoffLimitExceeded");
	assert_true(step(&v).canary_failed);
	assert_true(step(&v).gives_up);
	v.canary.state = HF_ROLLOUT_JOB_RUNS;
	v.canary.why = NULL;
	v.now = T0 + 5 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_SKIPPED,
		   "job " JOB ", has not succeeded before the change within 300 s");
	v.canary.state = HF_ROLLOUT_JOB_NONE;
	v.canary.why = "forbidden: quota";
	expect_end(&v, HF_ROLLOUT_SKIPPED, "within 300 s: forbidden: quota");
	v.canary.state = HF_ROLLOUT_JOB_OTHERS;
	expect_end(&v, HF_ROLLOUT_SKIPPED, "within 300 s: the job is not of this rollout");
	/* A job of another owner is not deleted. */
	v.phase = HF_ROLLOUT_RESTORING;
	expect_act(&v, HF_ROLLOUT_UNCORDON);
}

static void a_well_node_runs_its_canary_after_the_change(void **state)
{
	struct hf_rollout_node_view v = with_canary(HF_ROLLOUT_PROVING);

	(void)state;
	expect_phase(&v, HF_ROLLOUT_CANARY);
	v.proof.pod_ready = false;
	expect_phase(&v, HF_ROLLOUT_PROVING);
	v = with_canary(HF_ROLLOUT_PROVING);
	v.backwards = true;
	expect_end(&v, HF_ROLLOUT_ROLLED_BACK, "taken back and proved");
	v = with_canary(HF_ROLLOUT_CANARY);
	expect_act(&v, HF_ROLLOUT_CREATE_CANARY);
	/* A halt or a cancel does not leave a changed node without its proof. */
	v.stops = v.ends = true;
	expect_act(&v, HF_ROLLOUT_CREATE_CANARY);
	v.canary.state = HF_ROLLOUT_JOB_SUCCEEDED;
	v.canary.seen = (struct hf_rollout_pace){.step_us = 110000, .run_ms = 60000};
	assert_true(step(&v).takes_pace);
	v.canary.after = v.canary.seen;
	expect_act(&v, HF_ROLLOUT_KEEP_PACE);
	v.canary.kept = true;
	expect_end(&v, HF_ROLLOUT_DONE,
		   "resource as before, the canary took 110.0 ms in each step, 100.0 ms before");
	assert_false(step(&v).canary_failed);
}

static void a_slower_canary_fails_the_node_with_its_numbers(void **state)
{
	struct hf_rollout_node_view v = with_canary(HF_ROLLOUT_CANARY);

	(void)state;
	v.canary.state = HF_ROLLOUT_JOB_SUCCEEDED;
	v.canary.after = (struct hf_rollout_pace){.step_us = 110100, .run_ms = 60000};
	expect_end(&v, HF_ROLLOUT_FAILED,
		   "the canary, job " JOB ", took 110.1 ms in each step, 100.0 ms before the "
		   "change: more than 10 % longer");
	assert_true(step(&v).canary_failed);
	assert_false(step(&v).gives_up);
	v.canary.slower_percent = -1;
	expect_end(&v, HF_ROLLOUT_DONE, "the canary took 60 s");
}

static void a_canary_that_fails_after_the_change_fails_the_node(void **state)
{
	struct hf_rollout_node_view v = with_canary(HF_ROLLOUT_CANARY);

	(void)state;
	v.canary.state = HF_ROLLOUT_JOB_FAILED;
	expect_end(&v, HF_ROLLOUT_FAILED, "the canary, job " JOB ", failed: no message");
	v.canary.state = HF_ROLLOUT_JOB_SUCCEEDED;
	v.canary.took = 301 * HF_SECOND;
	expect_end(&v, HF_ROLLOUT_FAILED, "succeeded after 301 s, and has 300 s");
	v.canary.state = HF_ROLLOUT_JOB_RUNS;
	v.now = T0 + 5 * HF_MINUTE - 1;
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	assert_int_equal(step(&v).wake_at, T0 + 5 * HF_MINUTE);
	v.now++;
	expect_end(&v, HF_ROLLOUT_FAILED, "has not succeeded within 300 s");
	v.node_exists = false;
	expect_end(&v, HF_ROLLOUT_SKIPPED, "does not exist");
}

static void a_device_that_fails_beside_the_canary_is_seen(void **state)
{
	struct hf_rollout_node_view v = with_canary(HF_ROLLOUT_CANARY);

	(void)state;
	v.canary.state = HF_ROLLOUT_JOB_SUCCEEDED;
	v.canary.after = (struct hf_rollout_pace){.step_us = 100000, .run_ms = 60000};
	v.proof.sick = "GPU-1";
	v.proof.sick_class = "gpu-reset";
	expect_act(&v, HF_ROLLOUT_DO_NOTHING);
	expect_wait(&v, "device GPU-1: gpu-reset");
	v.now = T0 + 20 * HF_MINUTE;
	expect_end(&v, HF_ROLLOUT_FAILED, "device GPU-1: gpu-reset");
}

static void the_canary_is_deleted_before_the_cordon_is_taken_off(void **state)
{
	struct hf_rollout_node_view v = with_canary(HF_ROLLOUT_RESTORING);

	(void)state;
	v.canary.state = HF_ROLLOUT_JOB_RUNS;
	expect_act(&v, HF_ROLLOUT_DELETE_CANARY);
	v.outcome = HF_ROLLOUT_FAILED;
	expect_act(&v, HF_ROLLOUT_DELETE_CANARY);
	v.outcome = HF_ROLLOUT_DONE;
	v.canary.leaving = true;
	expect_act(&v, HF_ROLLOUT_UNCORDON);
	/* The node that ends before the change ends its canary too. */
	v = with_canary(HF_ROLLOUT_BASELINE);
	v.canary.state = HF_ROLLOUT_JOB_RUNS;
	v.stops = true;
	expect_end(&v, HF_ROLLOUT_SKIPPED, "nothing was changed");
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
		cmocka_unit_test(a_failed_node_that_is_not_taken_back_fails_again),
		cmocka_unit_test(a_node_with_an_unknown_device_waits_before_its_change),
		cmocka_unit_test(a_device_that_fails_before_the_change_ends_the_work),
		cmocka_unit_test(the_mark_comes_before_the_change),
		cmocka_unit_test(a_hold_does_not_count_for_the_change),
		cmocka_unit_test(a_change_that_is_marked_and_has_not_begun_is_stopped),
		cmocka_unit_test(the_own_condition_is_cleared_without_the_lease),
		cmocka_unit_test(the_annotation_goes_after_a_person_took_the_cordon_off),
		cmocka_unit_test(a_proof_needs_each_fact),
		cmocka_unit_test(a_lost_lease_is_taken_again_until_the_proof),
		cmocka_unit_test(an_old_report_proves_nothing),
		cmocka_unit_test(a_node_without_an_agent_is_proved_by_its_resources),
		cmocka_unit_test(only_the_own_cordon_is_taken_off),
		cmocka_unit_test(a_failed_node_keeps_its_cordon_until_the_end),
		cmocka_unit_test(a_rollback_ends_rolled_back),
		cmocka_unit_test(a_canary_runs_before_the_change_only_without_history),
		cmocka_unit_test(the_first_canary_is_created_measured_and_deleted),
		cmocka_unit_test(a_canary_that_fails_before_the_change_skips_the_node),
		cmocka_unit_test(a_well_node_runs_its_canary_after_the_change),
		cmocka_unit_test(a_slower_canary_fails_the_node_with_its_numbers),
		cmocka_unit_test(a_canary_that_fails_after_the_change_fails_the_node),
		cmocka_unit_test(a_device_that_fails_beside_the_canary_is_seen),
		cmocka_unit_test(the_canary_is_deleted_before_the_cordon_is_taken_off),
		cmocka_unit_test(the_table_of_phases_is_closed),
	};

	return cmocka_run_group_tests_name("rollout_node", tests, NULL, NULL);
}
