/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/mend_steps.h"

#include "base/random.h"
#include "base/str.h"
#include "harness/mend.h"

#include <stdio.h>
#include <string.h>

static void a_reset_goes_straight_to_its_end(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.quarantined = false;
	expect_step(&v, "Pending/quarantine", "quarantine");
	v.quarantined = true;
	expect_step(&v, "Pending/take-lease", "Lease");
	v.lease = HF_MEND_LEASE_OURS;
	expect_step(&v, "Draining/nothing", "moves the pods");
	v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);
	v.pods_left = 2;
	v.operands_off = false;
	v.operands_left = 3;
	expect_step(&v, "Draining/move-pods", "2 pods still use the devices");
	v.pods_left = 0;
	expect_step(&v, "Draining/operands-off", "operands");
	v.operands_off = true;
	expect_step(&v, "Draining/nothing", "3 operand pods have left");
	v.operands_left = 0;
	expect_step(&v, "Approved/nothing", "approved");
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);
	expect_step(&v, "Approved/create-pod", "starts the actor");
	v.pod = HF_MEND_POD_LIVES;
	expect_step(&v, "Approved/nothing", "waits for the actor");
	v = mend_view_in(HF_MEND_ACTING, HF_MEND_RESET_DEVICE);
	expect_step(&v, "Acting/nothing", "acts: reset-device");
	v.act_ended_at = MEND_T0 + 6 * HF_SECOND;
	expect_step(&v, "Verifying/nothing", "waits for the proof");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);
	expect_step(&v, "Restoring/nothing/Succeeded", "same UUID and no new fault");
	v = mend_view_in(HF_MEND_RESTORING, HF_MEND_RESET_DEVICE);
	v.outcome = HF_MEND_SUCCEEDED;
	v.pod = HF_MEND_POD_LIVES;
	v.saved = true;
	expect_step(&v, "Restoring/restore/Succeeded", "puts back");
	v.saved = false;
	expect_step(&v, "Succeeded/nothing/Succeeded", "");
	v.phase = HF_MEND_SUCCEEDED;
	expect_step(&v, "Succeeded/delete-pod/Succeeded", "");
	v.pod = HF_MEND_POD_ENDED;
	expect_step(&v, "Succeeded/release-lease/Succeeded", "");
	v.lease = HF_MEND_LEASE_FREE;
	expect_step(&v, "Succeeded/delete-pod/Succeeded", "");
	v.pod = HF_MEND_POD_NONE;
	expect_step(&v, "Succeeded/nothing/Succeeded", "");
}

/* An actor that dies between its intent and the start of the tool has reset nothing. */
static void a_lost_actor_is_no_proof_while_the_device_is_out(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.act_ended_at = HF_TIME_NONE;
	mend_seen.out = true;
	expect_step(&v, "Verifying/nothing", "is still out of use");
	v.now = v.approved_at + v.deadline;
	expect_step(&v, "Restoring/nothing/Failed", "is still out of use");
	mend_seen.out = false;
	expect_step(&v, "Restoring/nothing/Succeeded", "same UUID");
	/* If the tool ended, a device that is still out is no obstacle: the agent learns of the reset afterwards. */
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);
	mend_seen.out = true;
	expect_step(&v, "Restoring/nothing/Succeeded", "same UUID");
}

static void only_an_approval_and_a_proof_are_written(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);
	struct hf_mend_step step;

	(void)state;
	hf_mend_step(&v, &step);
	assert_true(step.approve && !step.unapprove && !step.prove);
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);
	v.act_holders = 1;
	hf_mend_step(&v, &step);
	assert_true(!step.approve && step.unapprove && !step.prove);
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);
	hf_mend_step(&v, &step);
	assert_true(!step.approve && !step.unapprove && step.prove);
	mend_seen.fault_at = MEND_T0 + 20 * HF_SECOND;
	hf_mend_step(&v, &step);
	assert_true(!step.approve && !step.unapprove && !step.prove);
}

static void a_reboot_is_proved_by_another_boot(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_DRAINING, HF_MEND_REBOOT);

	(void)state;
	/* For a reboot no operands have to be turned off. */
	v.operands_off = false;
	expect_step(&v, "Approved/nothing", "approved");
	v = mend_view_in(HF_MEND_ACTING, HF_MEND_REBOOT);
	expect_step(&v, "Acting/nothing", "acts: reboot");
	v.node_boot_id = "b-2";
	expect_step(&v, "Verifying/nothing", "has rebooted");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_REBOOT);
	v.act_ended_at = HF_TIME_NONE;
	expect_step(&v, "Restoring/nothing/Succeeded", "rebooted into boot b-2");
	v.node_boot_id = "b-1";
	expect_step(&v, "Verifying/nothing", "waits for another boot");
	v.node_boot_id = "b-2";
	v.node_ready = false;
	expect_step(&v, "Verifying/nothing", "until it is Ready");
	v.node_ready = true;
	v.health_boot_id = "b-1";
	expect_step(&v, "Verifying/nothing", "from the new boot");
	v.health_boot_id = "b-2";
	mend_seen.out = true;
	expect_step(&v, "Restoring/nothing/Failed", "GPU-1 is out of use");
	mend_seen.out = false;
	/* A fault that came after the boot, and takes no device out of use. */
	mend_seen.fault_at = v.act_started_at + 1;
	expect_step(&v, "Verifying/nothing", "the end of a fault after the act");
	mend_seen.fault_at = v.act_started_at;
	/* The fault has ended with the boot, and the GPU has not come back. */
	mend_seen.unknown = true;
	v.targets_len = 0;
	expect_step(&v, "Verifying/nothing",
		    "waits for device GPU-1, of which the agent knows nothing");
	v.now = v.approved_at + v.deadline;
	expect_step(&v, "Restoring/nothing/Failed", "of which the agent knows nothing");
	v.now = v.approved_at + HF_MINUTE;
	v.targets_len = 1;
	mend_seen.unknown = false;
	v.seen_len = 0;
	expect_step(&v, "Verifying/nothing", "waits for device GPU-1");
}

/* The device is in the report, but no state of it is known: it may be gone since the act. */
static void a_device_of_which_nothing_is_known_proves_nothing(void **state)
{
	static const enum hf_mend_rung rungs[] = {HF_MEND_RESET_DEVICE, HF_MEND_RESTART_PLUGIN,
						  HF_MEND_EXTERNAL};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rungs); i++) {
		struct hf_mend_view v = mend_view_in(HF_MEND_VERIFYING, rungs[i]);

		mend_seen.unknown = true;
		expect_step(&v, "Verifying/nothing", "of which the agent knows nothing");
		mend_seen.unknown = false;
		mend_seen.fault_at = HF_TIME_NONE;
		expect_step(&v, "Restoring/nothing/Succeeded", "");
	}
}

/* The pod of the actor is deleted, so the object keeps the reason. */
static void what_the_actors_pod_shows_is_told(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_APPROVED, HF_MEND_REBOOT);

	(void)state;
	v.pod = HF_MEND_POD_LIVES;
	v.pod_why = "ImagePullBackOff";
	expect_step(&v, "Approved/nothing", "waits for the actor: ImagePullBackOff");
	v.pod = HF_MEND_POD_ENDED;
	v.pod_exit = 2;
	v.pod_why = "refused: no method";
	expect_step(&v, "Restoring/nothing/Failed", "exit code 2: refused: no method");
	v.now = v.approved_at + v.deadline;
	expect_step(&v, "Restoring/nothing/Failed", "before the deadline: refused: no method");
}

static void the_actor_may_die_at_any_moment(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);

	(void)state;
	/* Before the intent. */
	v.pod = HF_MEND_POD_ENDED;
	v.pod_exit = 137;
	expect_step(&v, "Restoring/nothing/Failed", "without an act, exit code 137");
	/* After the intent. */
	v = mend_view_in(HF_MEND_ACTING, HF_MEND_RESET_DEVICE);
	v.pod = HF_MEND_POD_ENDED;
	expect_step(&v, "Verifying/nothing", "the proof decides");
	v.pod = HF_MEND_POD_NONE;
	expect_step(&v, "Verifying/nothing", "the proof decides");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);
	v.act_ended_at = HF_TIME_NONE;
	v.act_exit = -1;
	expect_step(&v, "Restoring/nothing/Succeeded", "same UUID");
}

static void processes_that_stay_send_the_act_back(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);

	(void)state;
	v.pod = HF_MEND_POD_ENDED;
	v.pod_exit = HF_MEND_EXIT_BUSY;
	v.act_ended_at = MEND_T0 + 3 * HF_SECOND;
	v.act_holders = 2;
	v.act_holder = "python (4711)";
	expect_step(&v, "Draining/nothing", "2 processes kept the devices open: python (4711)");
	/* The names could not be written. */
	v.act_holders = 0;
	expect_step(&v, "Draining/nothing", "names are not known");
	v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);
	v.pod = HF_MEND_POD_ENDED;
	expect_step(&v, "Draining/delete-pod", "former approval");
	v.pod = HF_MEND_POD_LEAVES;
	expect_step(&v, "Draining/nothing", "former approval");
	v.now = v.drain_until;
	expect_step(&v, "Restoring/nothing/Failed", "processes kept the devices");
	v.pods_left = 1;
	expect_step(&v, "Restoring/nothing/Failed", "1 pod still uses the devices");
}

static void another_boot_ends_the_act_before_it_begins(void **state)
{
	(void)state;
	for (int p = HF_MEND_PENDING; p <= HF_MEND_APPROVED; p++) {
		struct hf_mend_view v = mend_view_in((enum hf_mend_phase)p, HF_MEND_RESET_DEVICE);

		v.node_boot_id = "b-2";
		expect_step(&v,
			    p == HF_MEND_PENDING ? "Cancelled/nothing/Cancelled"
						 : "Restoring/nothing/Cancelled",
			    "rebooted since the fault");
		/* A Remediation without a fault may act in any boot, but an approval is valid for one boot. */
		v.boot_id = NULL;
		if (p == HF_MEND_APPROVED)
			expect_step(&v, "Restoring/nothing/Cancelled", "since the approval");
		/* Without an agent or a kubelet nothing is proved. */
		v.boot_id = "b-1";
		v.node_boot_id = NULL;
		v.pod = p == HF_MEND_APPROVED ? HF_MEND_POD_LIVES : HF_MEND_POD_NONE;
		if (p == HF_MEND_APPROVED)
			expect_step(&v, "Approved/nothing", "waits for the actor");
	}
}

static void the_deadline_ends_each_phase(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);
	struct hf_mend_step step;

	(void)state;
	v.pod = HF_MEND_POD_LIVES;
	hf_mend_step(&v, &step);
	assert_int_equal(step.wake_at, MEND_T0 + 10 * HF_MINUTE);
	v.now = MEND_T0 + 10 * HF_MINUTE;
	expect_step(&v, "Restoring/nothing/Failed", "did not begin before the deadline");
	v = mend_view_in(HF_MEND_ACTING, HF_MEND_RESET_DEVICE);
	v.now = MEND_T0 + 10 * HF_MINUTE;
	expect_step(&v, "Restoring/nothing/Failed",
		    "within 600 s of the approval: the act did not end");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);
	v.now = MEND_T0 + 10 * HF_MINUTE;
	v.health_exists = false;
	expect_step(&v, "Restoring/nothing/Failed",
		    "within 600 s of the approval: waits for a report");
	/* A late proof counts as long as the operator has not given up. */
	v.health_exists = true;
	expect_step(&v, "Restoring/nothing/Succeeded", "same UUID");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_REBOOT);
	v.node_boot_id = "b-1";
	v.now = MEND_T0 + 10 * HF_MINUTE;
	expect_step(&v, "Restoring/nothing/Failed", "waits for another boot");
}

static void a_cancel_works_until_the_act_begins(void **state)
{
	static const char *const want[HF_MEND_PHASES] = {
		[HF_MEND_PENDING] = "Cancelled/nothing/Cancelled",
		[HF_MEND_DRAINING] = "Restoring/nothing/Cancelled",
		[HF_MEND_APPROVED] = "Restoring/nothing/Cancelled",
		[HF_MEND_ACTING] = "Acting/nothing",
		[HF_MEND_VERIFYING] = "Restoring/nothing/Succeeded",
		[HF_MEND_RESTORING] = "Failed/nothing/Failed",
		[HF_MEND_SUCCEEDED] = "Succeeded/release-lease",
		[HF_MEND_FAILED] = "Failed/release-lease",
		[HF_MEND_CANCELLED] = "Cancelled/release-lease",
	};
	static const char *const words[HF_MEND_PHASES] = {
		"cancelled before",
		"cancelled before",
		"cancelled before",
		"too late to cancel",
		"same UUID",
		"",
		"",
		"",
		"",
	};

	(void)state;
	for (int p = 0; p < HF_MEND_PHASES; p++) {
		struct hf_mend_view v = mend_view_in((enum hf_mend_phase)p, HF_MEND_RESET_DEVICE);

		v.cancel = true;
		expect_step(&v, want[p], words[p]);
		v.cancel = false;
		v.deleting = true;
		expect_step(&v, want[p],
			    p <= HF_MEND_APPROVED    ? "deleted before"
			    : p == HF_MEND_VERIFYING ? "same UUID"
						     : "");
	}
	/* Changes from a former try are put back. */
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_RESET_DEVICE);

	v.cancel = v.saved = true;
	expect_step(&v, "Restoring/nothing/Cancelled", "cancelled");
}

static void a_hold_stops_what_would_be_done(void **state)
{
	static const char *const want[HF_MEND_PHASES] = {
		[HF_MEND_PENDING] = "Pending/nothing",
		[HF_MEND_DRAINING] = "Draining/nothing",
		[HF_MEND_APPROVED] = "Draining/nothing", /* the approval is withdrawn */
		[HF_MEND_ACTING] = "Acting/nothing",
		[HF_MEND_VERIFYING] = "Restoring/nothing/Succeeded", /* only reads */
		[HF_MEND_RESTORING] = "Restoring/nothing/Failed",
	};

	(void)state;
	for (int p = 0; p <= HF_MEND_RESTORING; p++) {
		struct hf_mend_view v = mend_view_in((enum hf_mend_phase)p, HF_MEND_RESET_DEVICE);

		v.held = true;
		v.pods_left = 1;
		v.saved = p == HF_MEND_RESTORING;
		expect_step(&v, want[p],
			    p == HF_MEND_ACTING || p == HF_MEND_VERIFYING ? ""
									  : "holdfast.dev/hold");
	}
}

/* The agent learns of the proof at once, because that changes nothing on the node. */
static void a_hold_does_not_delay_what_the_agent_is_told(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_RESTORING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.outcome = HF_MEND_SUCCEEDED;
	v.held = v.saved = v.untold = true;
	expect_step(&v, "Restoring/restore/Succeeded", "");
	v.untold = false;
	expect_step(&v, "Restoring/nothing/Succeeded", "holdfast.dev/hold");
}

static void what_the_policy_forbids_waits(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.allowed = false;
	v.why_not = "breaker: too many at once";
	expect_step(&v, "Pending/nothing", "breaker");
	v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);
	v.allowed = false;
	expect_step(&v, "Draining/nothing", "the policy forbids it");
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);
	v.allowed = false;
	expect_step(&v, "Draining/nothing", "forbids");
	v = mend_view_in(HF_MEND_PENDING, HF_MEND_RESET_DEVICE);
	v.other_lock = "kured";
	expect_step(&v, "Pending/nothing", "kured is at work");
	v.other_lock = NULL;
	v.lease = HF_MEND_LEASE_OTHERS;
	v.lease_holder = "n1-2";
	expect_step(&v, "Pending/nothing", "n1-2");
}

static void a_node_may_vanish(void **state)
{
	static const char *const want[HF_MEND_PHASES] = {
		[HF_MEND_PENDING] = "Cancelled/nothing/Cancelled",
		[HF_MEND_DRAINING] = "Restoring/nothing/Cancelled",
		[HF_MEND_APPROVED] = "Restoring/nothing/Cancelled",
		[HF_MEND_ACTING] = "Restoring/nothing/Failed",
		[HF_MEND_VERIFYING] = "Restoring/nothing/Failed",
		[HF_MEND_RESTORING] = "Failed/nothing/Failed",
	};

	(void)state;
	for (int p = 0; p <= HF_MEND_RESTORING; p++) {
		struct hf_mend_view v = mend_view_in((enum hf_mend_phase)p, HF_MEND_REBOOT);

		v.node_exists = v.node_ready = v.health_exists = false;
		v.node_boot_id = NULL;
		v.saved = p == HF_MEND_RESTORING;
		expect_step(&v, want[p], "");
	}
}

static void a_lost_lease_ends_the_act_before_it_begins(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.lease = HF_MEND_LEASE_FREE;
	expect_step(&v, "Restoring/nothing/Cancelled", "Lease of the node was lost");
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);
	v.lease = HF_MEND_LEASE_OTHERS;
	v.lease_holder = "kubectl";
	expect_step(&v, "Restoring/nothing/Cancelled", "lost to kubectl");
	v = mend_view_in(HF_MEND_ACTING, HF_MEND_RESET_DEVICE);
	v.lease = HF_MEND_LEASE_OTHERS;
	expect_step(&v, "Acting/nothing", "acts");
}

static void an_approval_falls_with_its_grounds(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);

	(void)state;
	v.quarantined = false;
	expect_step(&v, "Draining/nothing", "quarantine was removed");
	v.quarantined = true;
	v.pods_left = 1;
	expect_step(&v, "Draining/nothing", "pods came back");
	v.pods_left = 0;
	v.approved_at = HF_TIME_NONE;
	expect_step(&v, "Restoring/nothing/Cancelled", "approval");
}

static void no_approval_follows_a_withdrawal_at_once(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);

	(void)state;
	expect_step(&v, "Approved/nothing", "approved");
	v.withdrawn_at = v.now - 4 * HF_SECOND;
	expect_step(&v, "Draining/nothing",
		    "the approval was withdrawn; the next one follows after 5 s");
	v.withdrawn_at = v.now - 5 * HF_SECOND;
	expect_step(&v, "Approved/nothing", "approved");
}

/* A process may keep the devices for the whole drain. Seconds: the drain before the withdrawal, the pause after it. */
static void pauses_between_approvals_grow(void **state)
{
	static const hf_time cases[][2] = {{1, 5}, {40, 10}, {7200, 60}};
	struct hf_mend_view v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.withdrawn_why = "1 process kept the devices open: dcgm (pid 42)";
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		v.withdrawn_at = v.now - cases[i][1] * HF_SECOND + 1;
		v.drain_since = v.withdrawn_at - cases[i][0] * HF_SECOND;
		expect_step(&v, "Draining/nothing", " s: 1 process kept the devices open: dcgm");
		v.now++;
		expect_step(&v, "Approved/nothing", "approved");
	}
}

static void an_old_report_proves_nothing(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.report_asked = true;
	v.observed_at = v.act_ended_at;
	expect_step(&v, "Verifying/nothing", "newer than the act");
	/* The report is newer than the act, but from the time in which faults of the act itself may come. */
	v.observed_at = v.act_ended_at + v.settle;
	expect_step(&v, "Verifying/nothing", "newer than the act");
	v.observed_at = v.act_ended_at + v.settle + 1;
	expect_step(&v, "Restoring/nothing/Succeeded", "same UUID");
	v.observed_at = HF_TIME_NONE;
	expect_step(&v, "Verifying/nothing", "newer than the act");
	/* The node's clock stepped back during the act. */
	v.act_ended_at = v.act_started_at - HF_MINUTE;
	v.observed_at = v.act_started_at;
	expect_step(&v, "Verifying/nothing", "newer than the act");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_REBOOT);
	v.observed_at = v.act_started_at;
	expect_step(&v, "Verifying/nothing", "newer than the act");
}

static void a_reset_has_to_bring_the_same_device_back(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);

	(void)state;
	mend_seen.uuid = "GPU-9";
	expect_step(&v, "Restoring/nothing/Failed", "another UUID after the act: GPU-9, not GPU-1");
	mend_seen.uuid = NULL;
	expect_step(&v, "Verifying/nothing", "waits for device GPU-1");
	mend_seen.uuid = "GPU-1";
	mend_seen.fault_at = v.act_ended_at + 1;
	mend_seen.fault = "xid 79";
	expect_step(&v, "Restoring/nothing/Failed", "new fault after the act: xid 79");
	/* The fault for which the act was made is older than the act. */
	mend_seen.fault_at = v.act_ended_at;
	expect_step(&v, "Restoring/nothing/Succeeded", "same UUID");
}

static void a_tool_that_fails_is_believed(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.act_failed = true;
	v.act_exit = 15;
	v.act_message = "GPU is lost";
	expect_step(&v, "Restoring/nothing/Failed", "exit code 15: GPU is lost");
	v.act_exit = -1;
	v.act_message = "nvidia-smi was ended after its deadline: no output";
	expect_step(&v, "Restoring/nothing/Failed", "the act failed: nvidia-smi was ended");
	/* A reboot may still come although the tool failed. */
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_REBOOT);
	v.act_failed = true;
	v.act_exit = 1;
	expect_step(&v, "Restoring/nothing/Succeeded", "rebooted");
}

static void a_dry_run_tells_which_pods_would_be_lost(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_REBOOT);

	(void)state;
	v.dry_run = true;
	v.pods_left = 3;
	expect_step(&v, "Succeeded/nothing/Succeeded", "begin now; 3 pods would move");
	v.pods_lost = 2;
	expect_step(&v, "Succeeded/nothing/Succeeded",
		    "3 pods would move, 2 of them without a controller: lost");
}

/* The act would begin, and fail at the end of its drain. */
static void a_dry_run_tells_of_a_pod_that_would_stay(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_REBOOT);

	(void)state;
	v.dry_run = true;
	v.pods_left = 3;
	v.pod_left = "a/b: one more eviction would fail its job";
	v.pods_stay = 1;
	expect_step(&v, "Cancelled/nothing/Cancelled",
		    "would begin now, but 1 of 3 pods would stay: a/b: one more eviction");
}

static void a_dry_run_does_nothing(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_REBOOT);

	(void)state;
	v.dry_run = true;
	v.quarantined = false;
	v.pods_left = 1;
	expect_step(&v, "Succeeded/nothing/Succeeded", "would begin now; 1 pod would move");
	v.held = true;
	/* The end says whether it could begin. */
	expect_step(&v, "Cancelled/nothing/Cancelled", "would not begin now: held");
	v.held = false;
	v.lease = HF_MEND_LEASE_OTHERS;
	v.lease_holder = "n1-2";
	expect_step(&v, "Cancelled/nothing/Cancelled", "which n1-2 holds");
	/* Another program has changed the status. */
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_REBOOT);
	v.dry_run = true;
	expect_step(&v, "Restoring/nothing/Cancelled", "does not act");
}

static void an_old_object_is_not_acted_on_again(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_RESET_DEVICE);

	(void)state;
	/* The status was put back to an earlier phase. */
	v.act_started_at = MEND_T0;
	expect_step(&v, "Failed/nothing/Failed", "has an act already");
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);
	v.act_started_at = MEND_T0;
	expect_step(&v, "Restoring/nothing/Failed", "has an act already");
	/* The object was created again from a copy: its fault is mended already. */
	v = mend_view_in(HF_MEND_PENDING, HF_MEND_RESET_DEVICE);
	v.mended_at = v.fault_at;
	expect_step(&v, "Cancelled/nothing/Cancelled", "older than the last act");
	v.mended_at = v.fault_at - 1;
	expect_step(&v, "Pending/take-lease", "");
	/* The phase requires an act, and the status has none. */
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);
	v.act_started_at = HF_TIME_NONE;
	expect_step(&v, "Restoring/nothing/Failed", "no act that could be verified");
	v = mend_view_in(HF_MEND_RESTORING, HF_MEND_RESET_DEVICE);
	expect_step(&v, "Failed/nothing/Failed", "");
}

/* The boot that the actor wrote has to be the approved one. */
static void an_act_in_another_boot_proves_nothing(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.act_boot_id = "b-2";
	expect_step(&v, "Restoring/nothing/Failed", "done in boot b-2, which was not approved");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_REBOOT);
	v.act_boot_id = "b-2";
	expect_step(&v, "Verifying/nothing", "waits for another boot");
	v.node_boot_id = v.health_boot_id = "b-3";
	expect_step(&v, "Restoring/nothing/Succeeded", "rebooted into boot b-3");
	/* An older actor wrote none. */
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_REBOOT);
	v.act_boot_id = NULL;
	expect_step(&v, "Restoring/nothing/Succeeded", "rebooted");
}

static void a_person_is_waited_for(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_PERSON);

	(void)state;
	mend_seen.out = true;
	expect_step(&v, "Pending/nothing", "a person has to repair");
	mend_seen.out = false;
	mend_seen.unknown = true;
	expect_step(&v, "Pending/nothing", "a person has to repair");
	mend_seen.unknown = false;
	/* A mild fault that lasts. */
	expect_step(&v, "Pending/nothing", "a person has to repair");
	mend_seen.fault_at = HF_TIME_NONE;
	expect_step(&v, "Succeeded/nothing/Succeeded", "well again");
	v.observed_at = v.fault_at;
	expect_step(&v, "Pending/nothing", "a person has to repair");
	v.cancel = true;
	expect_step(&v, "Cancelled/nothing/Cancelled", "");
	/* Another program has changed the status. */
	v = mend_view_in(HF_MEND_DRAINING, HF_MEND_PERSON);
	expect_step(&v, "Restoring/nothing/Cancelled", "rung person does not act");
}

/* The actor has written the end of its act, and does nothing more: nothing waits for its pod. */
static void a_finished_act_waits_for_no_pod(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_RESTORING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.outcome = HF_MEND_SUCCEEDED;
	v.pod = HF_MEND_POD_LIVES;
	expect_step(&v, "Succeeded/nothing/Succeeded", "");
	v.act_ended_at = HF_TIME_NONE;
	expect_step(&v, "Restoring/delete-pod/Succeeded", "removes the actor's pod");
}

/* The agent reports a device that it knows, also while the driver does not answer. */
static void a_reset_is_proved_by_a_driver_that_answers(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.driver_at = v.act_ended_at;
	expect_step(&v, "Verifying/nothing", "until the driver answers");
	v.driver_at = v.act_ended_at + 1;
	expect_step(&v, "Restoring/nothing/Succeeded", "same UUID");
	/* An agent that has started since the act has no answer of the driver yet. */
	v.driver_at = HF_TIME_NONE;
	v.driver_asked = true;
	expect_step(&v, "Verifying/nothing", "until the driver answers");
	v.driver_at = v.act_ended_at - HF_HOUR;
	v.now = v.approved_at + v.deadline;
	expect_step(&v, "Restoring/nothing/Failed", "until the driver answers");
}

static void the_agent_is_asked_for_a_report_once(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.observed_at = v.act_ended_at;
	expect_step(&v, "Verifying/ask-report", "waits for a report");
	v.report_asked = true;
	expect_step(&v, "Verifying/nothing", "waits for a report");
	v.report_asked = false;
	v.now = v.approved_at + v.deadline;
	expect_step(&v, "Restoring/nothing/Failed", "waits for a report");
	v.now = v.act_ended_at;
	v.health_exists = false;
	expect_step(&v, "Verifying/nothing", "waits for a report");
	/* The agent of the new boot reports by itself. */
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_REBOOT);
	v.observed_at = v.act_started_at;
	expect_step(&v, "Verifying/nothing", "waits for a report");
}

static void the_actor_has_ended_before_the_next_act(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_ACTING, HF_MEND_REBOOT);

	(void)state;
	/* A drain has marked the actor's pod for deletion.  The actor goes on until it is killed. */
	v.pod = HF_MEND_POD_LEAVES;
	expect_step(&v, "Acting/nothing", "acts");
	v = mend_view_in(HF_MEND_RESTORING, HF_MEND_REBOOT);
	v.act_ended_at = HF_TIME_NONE;
	v.outcome = HF_MEND_FAILED;
	v.pod = HF_MEND_POD_LIVES;
	expect_step(&v, "Restoring/delete-pod/Failed", "");
	v.pod = HF_MEND_POD_LEAVES;
	expect_step(&v, "Restoring/nothing/Failed", "removes the actor's pod");
	/* The node never came back, so its pod never ends. */
	v.node_ready = false;
	expect_step(&v, "Failed/nothing/Failed", "");
	v.phase = HF_MEND_FAILED;
	expect_step(&v, "Failed/release-lease/Failed", "");
}

/* Expects the conditions that the step writes: "Type=True:Reason …". */
static void expect_conditions(const struct hf_mend_view *view, const char *want)
{
	struct hf_mend_condition conditions[HF_MEND_CONDITIONS];
	struct hf_mend_step step;
	char got[512] = "";

	hf_mend_step(view, &step);
	hf_mend_conditions(view, &step, conditions);
	for (size_t i = 0; i < HF_MEND_CONDITIONS; i++) {
		size_t len = strlen(got);

		if (conditions[i].reason != NULL)
			snprintf(got + len, sizeof(got) - len, "%s%s=%s:%s", len > 0 ? " " : "",
				 conditions[i].type, conditions[i].is_true ? "True" : "False",
				 conditions[i].reason);
	}
	assert_string_equal(got, want);
}

static void each_step_has_its_condition(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.quarantined = false;
	expect_conditions(&v, "Quarantined=False:NotTainted Locked=False:LeaseFree");
	v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);
	v.pods_left = 1;
	expect_conditions(
		&v, "Quarantined=True:Tainted Locked=True:LeaseTaken Permitted=True:NothingHolds "
		    "JobsMoved=False:PodsLeft");
	v.held = true;
	expect_conditions(&v, "Quarantined=True:Tainted Locked=True:LeaseTaken "
			      "Permitted=False:Held");
	v.held = false;
	v.pods_left = 0;
	expect_conditions(
		&v, "Quarantined=True:Tainted Locked=True:LeaseTaken "
		    "Permitted=True:NothingHolds JobsMoved=True:NoPods Approved=True:Approved");
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);
	v.act_holders = 1;
	expect_conditions(
		&v,
		"Quarantined=True:Tainted Locked=True:LeaseTaken "
		"Permitted=True:NothingHolds JobsMoved=True:NoPods HoldersGone=False:DevicesOpen "
		"Approved=False:Withdrawn");
	v = mend_view_in(HF_MEND_ACTING, HF_MEND_RESET_DEVICE);
	expect_conditions(&v, "HoldersGone=True:NoProcess Acted=True:Begun");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESET_DEVICE);
	expect_conditions(&v, "HoldersGone=True:NoProcess Acted=True:Done Proven=True:Seen");
	v.act_failed = true;
	expect_conditions(&v, "HoldersGone=True:NoProcess Acted=True:Failed Proven=False:NotSeen");
	v = mend_view_in(HF_MEND_RESTORING, HF_MEND_REBOOT);
	v.outcome = HF_MEND_SUCCEEDED;
	v.saved = true;
	expect_conditions(&v, "Acted=True:Done Proven=True:Seen Restored=False:NotYet");
	v.saved = false;
	expect_conditions(&v, "Acted=True:Done Proven=True:Seen Restored=True:PutBack");
	v = mend_view_in(HF_MEND_CANCELLED, HF_MEND_REBOOT);
	v.act_started_at = v.act_ended_at = HF_TIME_NONE;
	v.outcome = HF_MEND_CANCELLED;
	expect_conditions(&v, "Released=False:LeaseHeld");
	v.lease = HF_MEND_LEASE_FREE;
	expect_conditions(&v, "Released=True:LeaseReleased");
}

/* ---- every view ----------------------------------------------------------------------------- */

static hf_time pick_time(struct hf_rng *random)
{
	return hf_rng_below(random, 4) == 0
		       ? HF_TIME_NONE
		       : MEND_T0 + (hf_time)hf_rng_below(random, 40) * HF_SECOND;
}

static bool pick_bool(struct hf_rng *random)
{
	return hf_rng_below(random, 3) == 0;
}

static struct hf_mend_view pick_view(struct hf_rng *random)
{
	static const char *const boots[] = {NULL, "b-1", "b-2"};
	static const char *const uuids[] = {NULL, "GPU-1", "GPU-2"};
	enum hf_mend_phase phase = (enum hf_mend_phase)hf_rng_below(random, HF_MEND_PHASES);
	struct hf_mend_view v =
		mend_view_in(phase, (enum hf_mend_rung)hf_rng_below(random, HF_MEND_RUNGS));

	v.now = MEND_T0 + (hf_time)hf_rng_below(random, 50) * HF_SECOND;
	v.outcome = (enum hf_mend_phase)hf_rng_below(random, HF_MEND_PHASES);
	v.dry_run = pick_bool(random) && pick_bool(random);
	v.cancel = pick_bool(random) && pick_bool(random);
	v.deleting = pick_bool(random) && pick_bool(random);
	v.boot_id = boots[hf_rng_below(random, 3)];
	v.fault_at = pick_time(random);
	v.deadline = (hf_time)hf_rng_below(random, 40) * HF_SECOND;
	v.approved_at = pick_time(random);
	v.approved_boot_id = boots[hf_rng_below(random, 3)];
	v.withdrawn_at = pick_bool(random) ? pick_time(random) : HF_TIME_NONE;
	v.drain_since = pick_bool(random) ? pick_time(random) : HF_TIME_NONE;
	v.act_started_at = pick_bool(random) ? pick_time(random) : v.act_started_at;
	v.act_ended_at = pick_time(random);
	v.act_boot_id = boots[hf_rng_below(random, 3)];
	v.act_failed = pick_bool(random);
	v.calling = pick_bool(random);
	v.act_holders = hf_rng_below(random, 3) / 2;
	v.saved = pick_bool(random);
	v.untold = v.saved && pick_bool(random);
	v.external_left = v.saved && pick_bool(random);
	v.allowed = !pick_bool(random);
	v.drain_until = pick_bool(random) ? MEND_T0 + 20 * HF_SECOND : HF_TIME_NEVER;
	v.mended_at = pick_time(random);
	v.node_exists = !pick_bool(random) || !pick_bool(random);
	v.driver_at = pick_time(random);
	v.driver_asked = pick_bool(random);
	v.report_asked = pick_bool(random);
	v.node_ready = !pick_bool(random);
	v.node_boot_id = boots[hf_rng_below(random, 3)];
	v.held = pick_bool(random);
	v.quarantined = !pick_bool(random);
	v.other_lock = pick_bool(random) ? "kured" : NULL;
	v.lease = (enum hf_mend_lease)hf_rng_below(random, 3);
	v.pods_left = hf_rng_below(random, 3) / 2;
	v.operands_off = !pick_bool(random);
	v.operands_left = hf_rng_below(random, 3) / 2;
	v.pod = (enum hf_mend_pod)hf_rng_below(random, 4);
	v.health_exists = !pick_bool(random);
	v.observed_at = pick_time(random);
	v.health_boot_id = boots[hf_rng_below(random, 3)];
	mend_seen.uuid = uuids[hf_rng_below(random, 3)];
	mend_seen.out = pick_bool(random);
	mend_seen.unknown = pick_bool(random);
	mend_seen.fault_at = pick_time(random);
	return v;
}

static void no_view_breaks_a_promise(void **state)
{
	struct hf_rng random;
	unsigned changed = 0, begun = 0, proved = 0;

	(void)state;
	hf_rng_init(&random, 26);
	for (int i = 0; i < 200000; i++) {
		struct hf_mend_view v = pick_view(&random);
		struct hf_mend_step step;

		hf_mend_step(&v, &step);
		mend_check_promises(&v, &step);
		changed += step.next != v.phase;
		begun += mend_begins_act(&step);
		proved += step.prove;
	}
	/* The random views reach the cases for which the promises are made. */
	assert_true(changed > 10000 && begun > 100 && proved > 100);
}

static void names_go_both_ways(void **state)
{
	enum hf_mend_phase phase;
	enum hf_mend_rung rung;

	(void)state;
	for (unsigned i = 0; i < HF_MEND_PHASES; i++) {
		assert_true(hf_mend_phase_of(hf_mend_phase_name((enum hf_mend_phase)i), &phase));
		assert_int_equal(phase, i);
	}
	for (unsigned i = 0; i < HF_MEND_RUNGS; i++) {
		assert_true(hf_mend_rung_of(hf_mend_rung_name((enum hf_mend_rung)i), &rung));
		assert_int_equal(rung, i);
	}
	assert_true(hf_mend_phase_of(NULL, &phase));
	assert_int_equal(phase, HF_MEND_PENDING);
	assert_false(hf_mend_phase_of("Approving", &phase));
	assert_false(hf_mend_rung_of("", &rung));
	assert_string_equal(hf_mend_phase_name(HF_MEND_PHASES), "?");
	assert_string_equal(hf_mend_do_name(HF_MEND_DOS), "?");
}

static void the_table_of_phases_is_closed(void **state)
{
	(void)state;
	for (unsigned from = 0; from < HF_MEND_PHASES; from++)
		for (unsigned to = 0; to < HF_MEND_PHASES; to++) {
			bool may = hf_mend_phase_may_follow((enum hf_mend_phase)from,
							    (enum hf_mend_phase)to);

			if (from != to && hf_mend_is_final((enum hf_mend_phase)from))
				assert_false(may);
			/* Only an approved act begins. */
			if (to == HF_MEND_ACTING && from != to)
				assert_true(may == (from == HF_MEND_APPROVED));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_goes_straight_to_its_end),
		cmocka_unit_test(only_an_approval_and_a_proof_are_written),
		cmocka_unit_test(a_lost_actor_is_no_proof_while_the_device_is_out),
		cmocka_unit_test(a_reboot_is_proved_by_another_boot),
		cmocka_unit_test(a_device_of_which_nothing_is_known_proves_nothing),
		cmocka_unit_test(what_the_actors_pod_shows_is_told),
		cmocka_unit_test(the_actor_may_die_at_any_moment),
		cmocka_unit_test(processes_that_stay_send_the_act_back),
		cmocka_unit_test(another_boot_ends_the_act_before_it_begins),
		cmocka_unit_test(the_deadline_ends_each_phase),
		cmocka_unit_test(a_cancel_works_until_the_act_begins),
		cmocka_unit_test(a_hold_stops_what_would_be_done),
		cmocka_unit_test(a_hold_does_not_delay_what_the_agent_is_told),
		cmocka_unit_test(what_the_policy_forbids_waits),
		cmocka_unit_test(a_node_may_vanish),
		cmocka_unit_test(a_lost_lease_ends_the_act_before_it_begins),
		cmocka_unit_test(an_approval_falls_with_its_grounds),
		cmocka_unit_test(no_approval_follows_a_withdrawal_at_once),
		cmocka_unit_test(pauses_between_approvals_grow),
		cmocka_unit_test(an_old_report_proves_nothing),
		cmocka_unit_test(a_reset_has_to_bring_the_same_device_back),
		cmocka_unit_test(a_tool_that_fails_is_believed),
		cmocka_unit_test(an_act_in_another_boot_proves_nothing),
		cmocka_unit_test(a_dry_run_does_nothing),
		cmocka_unit_test(a_dry_run_tells_which_pods_would_be_lost),
		cmocka_unit_test(a_dry_run_tells_of_a_pod_that_would_stay),
		cmocka_unit_test(an_old_object_is_not_acted_on_again),
		cmocka_unit_test(a_person_is_waited_for),
		cmocka_unit_test(the_actor_has_ended_before_the_next_act),
		cmocka_unit_test(a_finished_act_waits_for_no_pod),
		cmocka_unit_test(a_reset_is_proved_by_a_driver_that_answers),
		cmocka_unit_test(the_agent_is_asked_for_a_report_once),
		cmocka_unit_test(each_step_has_its_condition),
		cmocka_unit_test(no_view_breaks_a_promise),
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(the_table_of_phases_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
