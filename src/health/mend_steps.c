/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/mend_steps.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

/*
 * The phases of a Remediation, with one function for each phase.  A function checks the facts in this order: facts
 * that end the act, facts that hold the act back, work that is left.
 */

static const char *const phase_names[HF_MEND_PHASES] = {"Pending",   "Draining",  "Approved",
							"Acting",    "Verifying", "Restoring",
							"Succeeded", "Failed",    "Cancelled"};
static const char *const rung_names[HF_MEND_RUNGS] = {
	"restart-process", "reset-device", "restart-plugin", "reboot", "external", "person"};
static const char *const do_names[HF_MEND_DOS] = {
	"nothing",    "quarantine", "take-lease", "operands-off", "move-pods",    "create-pod",
	"delete-pod", "act-here",   "ask-report", "restore",      "release-lease"};

#define BIT(phase) (1u << HF_MEND_##phase)
static const unsigned may_follow[HF_MEND_PHASES] = {
	[HF_MEND_PENDING] =
		BIT(DRAINING) | BIT(RESTORING) | BIT(SUCCEEDED) | BIT(FAILED) | BIT(CANCELLED),
	[HF_MEND_DRAINING] = BIT(APPROVED) | BIT(RESTORING),
	/* The actor writes the phase Acting; for remedies without an actor the controller writes it. */
	[HF_MEND_APPROVED] = BIT(DRAINING) | BIT(ACTING) | BIT(RESTORING),
	[HF_MEND_ACTING] = BIT(VERIFYING) | BIT(RESTORING),
	[HF_MEND_VERIFYING] = BIT(RESTORING),
	[HF_MEND_RESTORING] = BIT(SUCCEEDED) | BIT(FAILED) | BIT(CANCELLED),
};

bool hf_mend_phase_may_follow(enum hf_mend_phase from, enum hf_mend_phase to)
{
	return from == to || (may_follow[from] & (1u << to)) != 0;
}

bool hf_mend_is_final(enum hf_mend_phase phase)
{
	return phase == HF_MEND_SUCCEEDED || phase == HF_MEND_FAILED || phase == HF_MEND_CANCELLED;
}

bool hf_mend_has_actor(enum hf_mend_rung rung)
{
	return rung == HF_MEND_RESET_DEVICE || rung == HF_MEND_REBOOT;
}

bool hf_mend_disturbs_work(enum hf_mend_rung rung)
{
	return rung == HF_MEND_RESET_DEVICE || rung == HF_MEND_REBOOT || rung == HF_MEND_EXTERNAL;
}

/* ---- answers -------------------------------------------------------------------------------- */

HF_PRINTF(2, 3)
static void set_message(struct hf_mend_step *step, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(step->message, sizeof(step->message), fmt, ap);
	va_end(ap);
}

/* Ends the act: by the phase Restoring if something must be put back, else at once.  The caller has set the
 * message. */
static void end_act(const struct hf_mend_view *view, struct hf_mend_step *step,
		    enum hf_mend_phase outcome)
{
	step->outcome = outcome;
	step->next = view->phase == HF_MEND_PENDING && !view->saved ? outcome : HF_MEND_RESTORING;
}

static hf_time deadline_of(const struct hf_mend_view *view)
{
	return hf_time_add(view->approved_at, view->deadline);
}

static void wake_by(struct hf_mend_step *step, hf_time at)
{
	if (at != HF_TIME_NONE && at < step->wake_at)
		step->wake_at = at;
}

/* ---- what ends the act before it begins ------------------------------------------------------ */

static bool other_boot(const char *wanted, const char *is)
{
	return !hf_str_is_empty(wanted) && !hf_str_is_empty(is) && !hf_streq(wanted, is);
}

static bool never_acts(const struct hf_mend_view *view)
{
	return view->dry_run || view->rung == HF_MEND_PERSON;
}

static bool ends_before_act(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	enum hf_mend_phase outcome = HF_MEND_CANCELLED;

	if (view->act_started_at != HF_TIME_NONE) {
		outcome = HF_MEND_FAILED;
		set_message(step,
			    "the status has an act already, though the phase is %s: the "
			    "object is not acted on again",
			    phase_names[view->phase]);
	} else if (view->cancel || view->deleting) {
		set_message(step, "%s before the act began",
			    view->cancel ? "cancelled" : "deleted");
	} else if (never_acts(view) && view->phase != HF_MEND_PENDING) {
		set_message(step, "phase %s is not allowed: %s does not act",
			    phase_names[view->phase], view->dry_run ? "a dry run" : "rung person");
	} else if (!view->node_exists) {
		set_message(step, "the node does not exist any more");
	} else if (other_boot(view->boot_id, view->node_boot_id)) {
		set_message(step, "the node has rebooted since the fault");
	} else if (view->fault_at != HF_TIME_NONE && view->mended_at != HF_TIME_NONE &&
		   view->fault_at <= view->mended_at) {
		set_message(step, "the fault is older than the last act that mended this node");
	} else {
		return false;
	}
	end_act(view, step, outcome);
	return true;
}

/* Whether facts hold the act back, as long as they last. */
static bool is_held(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (view->held)
		set_message(step, "held by annotation holdfast.dev/hold on the node");
	else if (view->other_lock != NULL)
		set_message(step, "waits: %s is at work on the node", view->other_lock);
	else if (!view->allowed)
		set_message(step, "waits: %s", hf_str_or(view->why_not, "the policy forbids it"));
	else
		return false;
	return true;
}

static bool lost_lease(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (view->lease == HF_MEND_LEASE_OURS)
		return false;
	set_message(step, "the Lease of the node was lost%s%s",
		    view->lease == HF_MEND_LEASE_OTHERS ? " to " : "",
		    view->lease == HF_MEND_LEASE_OTHERS ? hf_str_or(view->lease_holder, "another")
							: "");
	end_act(view, step, HF_MEND_CANCELLED);
	return true;
}

static bool needs_quarantine(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (!hf_mend_disturbs_work(view->rung) || view->quarantined)
		return false;
	step->act = HF_MEND_QUARANTINE;
	set_message(step, "waits for the quarantine of the node");
	return true;
}

/* ---- proof ---------------------------------------------------------------------------------- */

enum proof { PROOF_WAITS, PROOF_YES, PROOF_NO };

static const struct hf_mend_seen *find_seen(const struct hf_mend_view *view,
					    const struct hf_mend_target *target)
{
	for (size_t i = 0; i < view->seen_len; i++)
		if (hf_streq(view->seen[i].uuid, target->uuid))
			return &view->seen[i];
	return NULL;
}

/* Finds another device at the target's address. */
static const struct hf_mend_seen *find_other(const struct hf_mend_view *view,
					     const struct hf_mend_target *target)
{
	for (size_t i = 0; i < view->seen_len; i++)
		if (!hf_str_is_empty(target->id) && hf_streq(view->seen[i].id, target->id) &&
		    !hf_str_is_empty(view->seen[i].uuid) &&
		    !hf_streq(view->seen[i].uuid, target->uuid))
			return &view->seen[i];
	return NULL;
}

static bool has_new_fault(const struct hf_mend_seen *seen, hf_time since)
{
	return seen->fault_at != HF_TIME_NONE && seen->fault_at > since;
}

/* A GPU that has not come back is in no bad state: the agent knows nothing of it. */
static bool is_known(const struct hf_mend_seen *seen, struct hf_mend_step *step)
{
	if (seen->unknown)
		set_message(step, "waits for device %s, of which the agent knows nothing",
			    hf_str_or(seen->uuid, hf_str_or(seen->id, "node")));
	return !seen->unknown;
}

static bool all_known(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	for (size_t i = 0; i < view->seen_len; i++)
		if (!is_known(&view->seen[i], step))
			return false;
	return true;
}

/* Proves that the targets are there with the same UUIDs, and without a fault newer than `since`. */
static enum proof prove_targets(const struct hf_mend_view *view, hf_time since,
				struct hf_mend_step *step)
{
	for (size_t i = 0; i < view->targets_len; i++) {
		const struct hf_mend_target *target = &view->targets[i];
		const struct hf_mend_seen *seen = find_seen(view, target);

		if (seen == NULL && find_other(view, target) != NULL) {
			set_message(step, "%s has another UUID after the act: %s, not %s",
				    target->id, find_other(view, target)->uuid, target->uuid);
			return PROOF_NO;
		}
		if (seen == NULL) {
			set_message(step, "waits for device %s, which the agent does not see",
				    target->uuid);
			return PROOF_WAITS;
		}
		if (has_new_fault(seen, since)) {
			set_message(step, "device %s has a new fault after the act: %s",
				    target->uuid, hf_str_or(seen->fault, "unknown"));
			return PROOF_NO;
		}
		if (!is_known(seen, step))
			return PROOF_WAITS;
	}
	return PROOF_YES;
}

/* Whether no device of the node is out of use. */
static bool all_well(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	for (size_t i = 0; i < view->seen_len; i++) {
		const struct hf_mend_seen *seen = &view->seen[i];

		if (!seen->out)
			continue;
		set_message(step, "device %s is out of use after the act: %s",
			    hf_str_or(seen->uuid, hf_str_or(seen->id, "node")),
			    hf_str_or(seen->fault, "unknown fault"));
		return false;
	}
	return true;
}

/* Whether no fault that acts is newer than `since`; NONE: whether no fault acts.  A fault that lasts, such as that of a
 * plugin that stays away, takes no device out of use, but the node is not mended. */
static bool no_fault_since(const struct hf_mend_view *view, hf_time since,
			   struct hf_mend_step *step)
{
	for (size_t i = 0; i < view->seen_len; i++) {
		const struct hf_mend_seen *seen = &view->seen[i];

		if (!has_new_fault(seen, since))
			continue;
		set_message(step, "waits for the end of a fault after the act: %s of %s",
			    hf_str_or(seen->fault, "unknown"),
			    hf_str_or(seen->uuid, hf_str_or(seen->id, "the node")));
		return false;
	}
	return true;
}

/* Whether the node is mended, by whatever an act or a person has done. */
static bool is_mended(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	return all_well(view, step) && all_known(view, step) &&
	       no_fault_since(view, HF_TIME_NONE, step);
}

/* Whether the agent's report is newer than the act, and than the time in which faults of the act itself may come. */
static bool report_is_new(const struct hf_mend_view *view, hf_time since, struct hf_mend_step *step)
{
	if (view->health_exists && view->observed_at != HF_TIME_NONE &&
	    view->observed_at > hf_time_add(since, view->settle))
		return true;
	set_message(step, "waits for a report of the agent that is newer than the act");
	return false;
}

static enum proof prove_reboot(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	/* The actor may have recorded a boot other than the approved boot. The recorded boot does
	 * not prove a reboot. */
	if (hf_str_is_empty(view->node_boot_id) ||
	    hf_streq(view->node_boot_id, view->approved_boot_id) ||
	    hf_streq(view->node_boot_id, view->act_boot_id)) {
		set_message(step, "waits for another boot of the node");
		return PROOF_WAITS;
	}
	if (!view->node_ready) {
		set_message(step, "the node has rebooted; waits until it is Ready");
		return PROOF_WAITS;
	}
	if (!report_is_new(view, view->act_started_at, step))
		return PROOF_WAITS;
	if (!hf_streq(view->health_boot_id, view->node_boot_id)) {
		set_message(step, "waits for a report of the agent from the new boot");
		return PROOF_WAITS;
	}
	if (!all_well(view, step))
		return PROOF_NO;
	if (!all_known(view, step) || !no_fault_since(view, view->act_started_at, step))
		return PROOF_WAITS;
	return prove_targets(view, view->act_started_at, step);
}

/* Whether the driver answered the agent after the act.  The report alone does not show it: the agent
 * reports a device that it knows, also while the driver does not answer. */
static bool driver_answered(const struct hf_mend_view *view, hf_time since,
			    struct hf_mend_step *step)
{
	if (view->driver_at == HF_TIME_NONE ? !view->driver_asked : view->driver_at > since)
		return true;
	set_message(step, "waits until the driver answers the agent");
	return false;
}

/* Whether a target is still out of use after the actor was lost.  The actor may have died after its intent and
 * before the reset, so the proof waits until the agent has ended the target's fault. */
static bool is_still_out(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	for (size_t i = 0; i < view->targets_len && view->act_ended_at == HF_TIME_NONE; i++) {
		const struct hf_mend_seen *seen = find_seen(view, &view->targets[i]);

		if (!seen->out)
			continue;
		set_message(step, "the actor was lost, and device %s is still out of use: %s",
			    view->targets[i].uuid, hf_str_or(seen->fault, "unknown fault"));
		return true;
	}
	return false;
}

/* Whether a target has a fault that needs more than the reset.  After the proof the agent would end each of the target's
 * faults, so such a fault must not be taken for mended.  The driver may still end it by itself. */
static bool has_graver_fault(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	for (size_t i = 0; i < view->targets_len; i++) {
		const struct hf_mend_seen *seen = find_seen(view, &view->targets[i]);

		if (seen->graver == NULL)
			continue;
		set_message(step, "device %s has a fault that a reset does not end: %s",
			    view->targets[i].uuid, seen->graver);
		return true;
	}
	return false;
}

/* The targets are there, and have no new fault. */
static enum proof prove_reset(const struct hf_mend_view *view, hf_time since,
			      struct hf_mend_step *step)
{
	return driver_answered(view, since, step) && !is_still_out(view, step) &&
			       !has_graver_fault(view, step)
		       ? PROOF_YES
		       : PROOF_WAITS;
}

static enum proof prove_act(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	/* If the node's clock stepped back during the act, the end is before the start.  NONE is below all times. */
	hf_time since = view->act_ended_at > view->act_started_at ? view->act_ended_at
								  : view->act_started_at;
	enum proof proof;

	if (view->rung == HF_MEND_REBOOT)
		return prove_reboot(view, step);
	if (hf_mend_has_actor(view->rung) &&
	    other_boot(view->approved_boot_id, view->act_boot_id)) {
		set_message(step, "the act was done in boot %s, which was not approved",
			    view->act_boot_id);
		return PROOF_NO;
	}
	if (!report_is_new(view, since, step)) {
		if (view->health_exists && !view->report_asked)
			step->act = HF_MEND_ASK_REPORT;
		return PROOF_WAITS;
	}
	proof = prove_targets(view, since, step);
	if (proof != PROOF_YES)
		return proof;
	if (view->rung == HF_MEND_RESET_DEVICE)
		return prove_reset(view, since, step);
	return is_mended(view, step) ? PROOF_YES : PROOF_WAITS;
}

static void tell_proof(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (view->rung == HF_MEND_REBOOT)
		set_message(step, "rebooted into boot %s; Ready, all devices are well",
			    view->node_boot_id);
	else if (view->rung == HF_MEND_RESET_DEVICE)
		set_message(step, "%zu device%s back with the same UUID and no new fault",
			    view->targets_len, view->targets_len == 1 ? "" : "s");
	else
		set_message(step, "all devices are well after the act");
}

/* ---- phases --------------------------------------------------------------------------------- */

/* Succeeded: the act could begin, and each pod would be evicted. */
static void end_dry_run(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	struct hf_mend_step held = {.next = view->phase};
	char lost[64] = "";
	bool begins = false;

	if (is_held(view, &held))
		set_message(step, "dry run: the act would not begin now: %s", held.message);
	else if (view->lease == HF_MEND_LEASE_OTHERS)
		set_message(step, "dry run: the act would wait for the Lease, which %s holds",
			    hf_str_or(view->lease_holder, "another"));
	else if (view->pods_stay > 0)
		set_message(
			step,
			"dry run: the act would begin now, but %zu of %zu pod%s would stay: %.240s",
			view->pods_stay, view->pods_left, view->pods_left == 1 ? "" : "s",
			hf_str_or(view->pod_left, ""));
	else
		begins = true;
	if (view->pods_lost > 0)
		snprintf(lost, sizeof(lost), ", %zu of them without a controller: lost",
			 view->pods_lost);
	if (begins)
		set_message(step, "dry run: the act would begin now; %zu pod%s would move%s",
			    view->pods_left, view->pods_left == 1 ? "" : "s", lost);
	end_act(view, step, begins ? HF_MEND_SUCCEEDED : HF_MEND_CANCELLED);
}

static void wait_for_person(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	struct hf_mend_step well = {.next = view->phase};

	if (view->fault_at != HF_TIME_NONE && report_is_new(view, view->fault_at, &well) &&
	    is_mended(view, &well) && prove_targets(view, view->fault_at, &well) == PROOF_YES) {
		set_message(step, "all devices are well again");
		end_act(view, step, HF_MEND_SUCCEEDED);
		step->prove = true;
		return;
	}
	set_message(step, "a person has to repair the node; spec.cancel ends this wait");
}

static void step_pending(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (ends_before_act(view, step))
		return;
	if (view->dry_run) {
		end_dry_run(view, step);
		return;
	}
	if (view->rung == HF_MEND_PERSON) {
		wait_for_person(view, step);
		return;
	}
	if (is_held(view, step))
		return;
	/* The node stays in use meanwhile. */
	if (view->lease == HF_MEND_LEASE_OTHERS) {
		set_message(step, "waits for the Lease of the node, which %s holds",
			    hf_str_or(view->lease_holder, "another"));
		return;
	}
	if (needs_quarantine(view, step))
		return;
	if (view->lease == HF_MEND_LEASE_FREE) {
		step->act = HF_MEND_TAKE_LEASE;
		set_message(step, "takes the Lease of the node");
		return;
	}
	step->next = HF_MEND_DRAINING;
	set_message(step, "moves the pods that use the devices");
}

static void tell_pods_left(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	const char *what = view->rung == HF_MEND_RESET_DEVICE ? "still use the devices"
							      : "have not left the node";

	if (view->pods_left == 1)
		what = view->rung == HF_MEND_RESET_DEVICE ? "still uses the devices"
							  : "has not left the node";
	set_message(step, "%zu pod%s %s%s%.240s", view->pods_left, view->pods_left == 1 ? "" : "s",
		    what, view->pod_left == NULL ? "" : ": ", hf_str_or(view->pod_left, ""));
}

/* Finds the pods and operands that must leave the node before the act, and starts their removal. */
static bool must_drain(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (!hf_mend_disturbs_work(view->rung))
		return false;
	if (view->pods_left > 0) {
		step->act = HF_MEND_MOVE_PODS;
		tell_pods_left(view, step);
		return true;
	}
	if (view->rung != HF_MEND_RESET_DEVICE)
		return false;
	if (view->pod_unreported != NULL) {
		if (view->health_exists && !view->report_asked)
			step->act = HF_MEND_ASK_REPORT;
		set_message(step,
			    "waits for a report of the agent that is newer than pod %.200s, which "
			    "may hold the devices",
			    view->pod_unreported);
		return true;
	}
	if (!view->operands_off) {
		step->act = HF_MEND_OPERANDS_OFF;
		set_message(step, "turns off the GPU Operator's operands on the node");
		return true;
	}
	if (view->operands_left > 0) {
		set_message(step, "waits until %zu operand pod%s left the node",
			    view->operands_left, view->operands_left == 1 ? " has" : "s have");
		return true;
	}
	return false;
}

/* After a withdrawal no approval follows at once.  Two leaders that judge the facts differently would
 * else approve and withdraw without a pause.  A process that keeps the devices may do so for the whole drain, and each
 * approval starts an actor: the pauses grow to a quarter of the time of the drain. */
#define APPROVE_AGAIN_MIN (5 * HF_SECOND)
#define APPROVE_AGAIN_MAX HF_MINUTE

static bool pauses_after_withdrawal(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	hf_time pause = APPROVE_AGAIN_MIN, drained;

	if (view->withdrawn_at == HF_TIME_NONE)
		return false;
	if (view->drain_since != HF_TIME_NONE && view->drain_since < view->withdrawn_at) {
		drained = view->withdrawn_at - view->drain_since;
		if (drained / 4 > pause)
			pause = drained / 4 < APPROVE_AGAIN_MAX ? drained / 4 : APPROVE_AGAIN_MAX;
	}
	if (view->now >= hf_time_add(view->withdrawn_at, pause))
		return false;
	wake_by(step, hf_time_add(view->withdrawn_at, pause));
	set_message(step, "the approval was withdrawn; the next one follows after %lld s%s%.200s",
		    (long long)(pause / HF_SECOND), view->withdrawn_why == NULL ? "" : ": ",
		    hf_str_or(view->withdrawn_why, ""));
	return true;
}

static void step_draining(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (ends_before_act(view, step) || lost_lease(view, step))
		return;
	wake_by(step, view->drain_until);
	if (view->now >= view->drain_until) {
		struct hf_mend_step left = {.next = view->phase};

		set_message(step, "the node was not emptied in time: %s",
			    must_drain(view, &left)
				    ? left.message
				    : hf_str_or(view->kept_open, "processes kept the devices"));
		end_act(view, step, HF_MEND_FAILED);
		return;
	}
	if (is_held(view, step) || needs_quarantine(view, step))
		return;
	if (view->pod != HF_MEND_POD_NONE) {
		if (view->pod != HF_MEND_POD_LEAVES)
			step->act = HF_MEND_DELETE_POD;
		set_message(step, "removes the actor's pod of the former approval");
		return;
	}
	if (must_drain(view, step) || pauses_after_withdrawal(view, step))
		return;
	step->next = HF_MEND_APPROVED;
	step->approve = true;
	set_message(step, "approved; the act may begin");
}

/* No pod holds a device of the act, and no pod may have been given one since the newest report. */
static bool are_jobs_moved(const struct hf_mend_view *view)
{
	return view->pods_left == 0 &&
	       (view->rung != HF_MEND_RESET_DEVICE || view->pod_unreported == NULL);
}

static void back_to_draining(struct hf_mend_step *step)
{
	step->next = HF_MEND_DRAINING;
	step->unapprove = true;
}

/* Finds facts that withdraw the approval or end the act. */
static bool withdraw_approval(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (ends_before_act(view, step) || lost_lease(view, step))
		return true;
	if (view->approved_at == HF_TIME_NONE ||
	    other_boot(view->approved_boot_id, view->node_boot_id)) {
		set_message(step, "the node has rebooted since the approval");
		end_act(view, step, HF_MEND_CANCELLED);
		return true;
	}
	if (is_held(view, step)) {
		back_to_draining(step);
		return true;
	}
	if (hf_mend_disturbs_work(view->rung) && (!view->quarantined || !are_jobs_moved(view))) {
		set_message(step, view->quarantined ? "pods came back to the node"
						    : "the quarantine was removed");
		back_to_draining(step);
		return true;
	}
	return false;
}

static void step_approved(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (withdraw_approval(view, step))
		return;
	if (!hf_mend_has_actor(view->rung)) {
		step->next = HF_MEND_ACTING;
		step->act = HF_MEND_ACT_HERE;
		set_message(step, "acts: %s", rung_names[view->rung]);
		return;
	}
	wake_by(step, deadline_of(view));
	if (view->act_holders > 0) {
		set_message(step, "%zu process%s kept the devices open: %s", view->act_holders,
			    view->act_holders == 1 ? "" : "es",
			    hf_str_or(view->act_holder, "unknown"));
		back_to_draining(step);
	} else if (view->pod == HF_MEND_POD_ENDED && view->pod_exit == HF_MEND_EXIT_BUSY) {
		set_message(step, "processes kept the devices open; their names are not known");
		back_to_draining(step);
	} else if (view->now >= deadline_of(view)) {
		set_message(step, "the actor did not begin before the deadline: %.200s",
			    hf_str_or(view->pod_why, "its pod shows no reason"));
		end_act(view, step, HF_MEND_FAILED);
	} else if (view->pod == HF_MEND_POD_ENDED) {
		set_message(step, "the actor ended without an act, exit code %d: %.220s",
			    view->pod_exit, hf_str_or(view->pod_why, "its pod shows no reason"));
		end_act(view, step, HF_MEND_FAILED);
	} else if (view->pod == HF_MEND_POD_NONE) {
		step->act = HF_MEND_CREATE_POD;
		set_message(step, "starts the actor on the node");
	} else {
		set_message(step, "waits for the actor%s%.200s", view->pod_why != NULL ? ": " : "",
			    hf_str_or(view->pod_why, ""));
	}
}

static void miss_deadline(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	char missing[HF_MEND_MESSAGE_MAX];

	(void)snprintf(missing, sizeof(missing), "%s", step->message);
	step->act = HF_MEND_DO_NOTHING;
	set_message(step, "no proof within %lld s of the approval: %.200s",
		    (long long)(view->deadline / HF_SECOND), missing);
	end_act(view, step, HF_MEND_FAILED);
}

static bool node_is_gone(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (view->node_exists)
		return false;
	/* The external controller may have made a new node, but the node of this act is gone. */
	if (view->rung == HF_MEND_EXTERNAL) {
		set_message(step, "the node is gone: it was replaced");
		step->prove = true;
		end_act(view, step, HF_MEND_SUCCEEDED);
		return true;
	}
	set_message(step, "the node was deleted after the act had begun");
	end_act(view, step, HF_MEND_FAILED);
	return true;
}

static void step_acting(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (node_is_gone(view, step))
		return;
	wake_by(step, deadline_of(view));
	if (view->act_ended_at != HF_TIME_NONE) {
		step->next = HF_MEND_VERIFYING;
		set_message(step, "the act has ended; waits for the proof");
	} else if (other_boot(view->approved_boot_id, view->node_boot_id)) {
		step->next = HF_MEND_VERIFYING;
		set_message(step, "the node has rebooted; waits for the proof");
	} else if (!hf_mend_has_actor(view->rung) && !view->calling) {
		/* The controller acts right after it has stored the intent. So it has ended, or another controller
		 * leads. */
		step->next = HF_MEND_VERIFYING;
		set_message(step, "the result of the act is not known; the proof decides");
	} else if (hf_mend_has_actor(view->rung) && view->pod != HF_MEND_POD_LIVES &&
		   view->pod != HF_MEND_POD_LEAVES) {
		step->next = HF_MEND_VERIFYING;
		set_message(step, "the actor was lost after it had begun; the proof decides");
	} else if (view->now >= deadline_of(view)) {
		set_message(step, "the act did not end");
		miss_deadline(view, step);
	} else {
		set_message(step, "acts: %s%s", rung_names[view->rung],
			    view->cancel ? "; too late to cancel" : "");
	}
}

/* Whether the tool itself reported a failure.  A reboot that was asked for may still come, so it is waited for. */
static bool tool_failed(const struct hf_mend_view *view)
{
	return view->act_failed && !other_boot(view->approved_boot_id, view->node_boot_id);
}

static void step_verifying(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	enum proof proof;

	if (node_is_gone(view, step))
		return;
	if (view->act_started_at == HF_TIME_NONE) {
		set_message(step, "the status has no act that could be verified");
		end_act(view, step, HF_MEND_FAILED);
		return;
	}
	if (tool_failed(view)) {
		/* A tool that was ended has no exit code. */
		if (view->act_exit < 0)
			set_message(step, "the act failed: %.220s",
				    hf_str_or(view->act_message, "no exit code and no message"));
		else
			set_message(step, "the act failed with exit code %d: %.200s",
				    view->act_exit, hf_str_or(view->act_message, "no message"));
		end_act(view, step, HF_MEND_FAILED);
		return;
	}
	wake_by(step, deadline_of(view));
	proof = prove_act(view, step);
	if (proof == PROOF_YES) {
		tell_proof(view, step);
		step->prove = true;
		end_act(view, step, HF_MEND_SUCCEEDED);
	} else if (proof == PROOF_NO) {
		end_act(view, step, HF_MEND_FAILED);
	} else if (view->now >= deadline_of(view)) {
		miss_deadline(view, step);
	}
}

/* Removes the actor's pod: the actor must have ended before another act may begin.  An actor that has written
 * the end of its act does nothing more, so its pod is removed at the very end.  On a node that is lost no
 * kubelet can confirm its end, so the pod's own deadline must be enough. */
static bool removes_pod(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	if (view->pod == HF_MEND_POD_NONE || view->act_ended_at != HF_TIME_NONE ||
	    (view->pod == HF_MEND_POD_LEAVES && !view->node_ready))
		return false;
	if (view->pod != HF_MEND_POD_LEAVES)
		step->act = HF_MEND_DELETE_POD;
	set_message(step, "removes the actor's pod");
	return true;
}

static void step_restoring(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	/* Only another program can have erased the outcome.  Such an object does not count as a success. */
	enum hf_mend_phase outcome =
		hf_mend_is_final(view->outcome) ? view->outcome : HF_MEND_FAILED;

	step->outcome = outcome;
	if (removes_pod(view, step))
		return;
	if ((view->saved && view->node_exists) || view->external_left) {
		/* A hold concerns the node. An agent that is told an hour late keeps the fault, and the
		 * device would be mended again. */
		if (view->held && !view->untold) {
			set_message(step, "held by annotation holdfast.dev/hold on the node: what "
					  "was changed is not put back");
			return;
		}
		step->act = HF_MEND_RESTORE;
		set_message(step, "puts back labels, cordon and persistence mode");
		return;
	}
	step->next = outcome;
}

static void step_final(const struct hf_mend_view *view, struct hf_mend_step *step)
{
	step->outcome = view->outcome;
	/* No other act begins on the node before this actor's pod has ended or is asked to. */
	if (view->pod == HF_MEND_POD_LIVES)
		step->act = HF_MEND_DELETE_POD;
	else if (view->lease == HF_MEND_LEASE_OURS)
		step->act = HF_MEND_RELEASE_LEASE;
	else if (view->pod == HF_MEND_POD_ENDED)
		step->act = HF_MEND_DELETE_POD;
}

void hf_mend_step(const struct hf_mend_view *view, struct hf_mend_step *ret_step)
{
	static void (*const steps[HF_MEND_PHASES])(const struct hf_mend_view *,
						   struct hf_mend_step *) = {
		step_pending,   step_draining, step_approved, step_acting, step_verifying,
		step_restoring, step_final,    step_final,    step_final};

	*ret_step = (struct hf_mend_step){.next = view->phase, .wake_at = HF_TIME_NEVER};
	steps[view->phase](view, ret_step);
	hf_assert(hf_mend_phase_may_follow(view->phase, ret_step->next));
}

/* ---- conditions ------------------------------------------------------------------------------ */

static void set_condition(struct hf_mend_condition *condition, bool is_true, const char *when_true,
			  const char *when_false)
{
	condition->is_true = is_true;
	condition->reason = is_true ? when_true : when_false;
}

static bool is_permitted(const struct hf_mend_view *view)
{
	return !view->held && view->other_lock == NULL && view->allowed;
}

static void set_before_act(const struct hf_mend_view *view, const struct hf_mend_step *step,
			   struct hf_mend_condition *conditions)
{
	bool permitted = is_permitted(view);

	if (hf_mend_disturbs_work(view->rung))
		set_condition(&conditions[HF_MEND_COND_QUARANTINED], view->quarantined, "Tainted",
			      "NotTainted");
	set_condition(&conditions[HF_MEND_COND_LOCKED], view->lease == HF_MEND_LEASE_OURS,
		      "LeaseTaken",
		      view->lease == HF_MEND_LEASE_OTHERS ? "LeaseOfOther" : "LeaseFree");
	/* The time for the drain counts from here on: it does not pass while something holds the act back. */
	if (view->phase != HF_MEND_PENDING || step->next == HF_MEND_DRAINING)
		set_condition(&conditions[HF_MEND_COND_PERMITTED], permitted, "NothingHolds",
			      "Held");
	/* While something holds the act back, pods come and go. */
	if (hf_mend_disturbs_work(view->rung) && view->phase != HF_MEND_PENDING && permitted)
		set_condition(&conditions[HF_MEND_COND_JOBS_MOVED], are_jobs_moved(view), "NoPods",
			      "PodsLeft");
	if (view->act_holders > 0 || view->pod_exit == HF_MEND_EXIT_BUSY)
		set_condition(&conditions[HF_MEND_COND_HOLDERS_GONE], false, NULL, "DevicesOpen");
	if (step->approve || step->unapprove || view->phase == HF_MEND_APPROVED)
		set_condition(&conditions[HF_MEND_COND_APPROVED],
			      !step->unapprove && step->outcome == HF_MEND_PENDING, "Approved",
			      "Withdrawn");
}

void hf_mend_conditions(const struct hf_mend_view *view, const struct hf_mend_step *step,
			struct hf_mend_condition ret_conditions[HF_MEND_CONDITIONS])
{
	static const char *const types[HF_MEND_CONDITIONS] = {
#define X(name, text) text,
		HF_MEND_CONDITION_NAMES(X)
#undef X
	};
	bool begun = view->act_started_at != HF_TIME_NONE;

	for (size_t i = 0; i < HF_MEND_CONDITIONS; i++)
		ret_conditions[i] = (struct hf_mend_condition){.type = types[i]};
	if (view->phase < HF_MEND_ACTING)
		set_before_act(view, step, ret_conditions);
	if (begun && view->rung == HF_MEND_RESET_DEVICE)
		set_condition(&ret_conditions[HF_MEND_COND_HOLDERS_GONE], true, "NoProcess", NULL);
	if (begun)
		set_condition(&ret_conditions[HF_MEND_COND_ACTED], true,
			      view->act_ended_at == HF_TIME_NONE ? "Begun"
			      : view->act_failed                 ? "Failed"
								 : "Done",
			      NULL);
	if (step->prove || (begun && step->outcome != HF_MEND_PENDING))
		set_condition(&ret_conditions[HF_MEND_COND_PROVEN],
			      step->prove || step->outcome == HF_MEND_SUCCEEDED, "Seen", "NotSeen");
	if (view->phase == HF_MEND_RESTORING)
		set_condition(&ret_conditions[HF_MEND_COND_RESTORED], hf_mend_is_final(step->next),
			      "PutBack", "NotYet");
	if (hf_mend_is_final(view->phase))
		set_condition(&ret_conditions[HF_MEND_COND_RELEASED],
			      view->lease != HF_MEND_LEASE_OURS, "LeaseReleased", "LeaseHeld");
}

/* ---- names ---------------------------------------------------------------------------------- */

const char *hf_mend_phase_name(enum hf_mend_phase phase)
{
	return phase < HF_MEND_PHASES ? phase_names[phase] : "?";
}

const char *hf_mend_rung_name(enum hf_mend_rung rung)
{
	return rung < HF_MEND_RUNGS ? rung_names[rung] : "?";
}

const char *hf_mend_do_name(enum hf_mend_do act)
{
	return act < HF_MEND_DOS ? do_names[act] : "?";
}

bool hf_mend_phase_of(const char *name, enum hf_mend_phase *ret_phase)
{
	*ret_phase = HF_MEND_PENDING;
	if (hf_str_is_empty(name))
		return true;
	for (unsigned i = 0; i < HF_MEND_PHASES; i++) {
		if (hf_streq(phase_names[i], name)) {
			*ret_phase = (enum hf_mend_phase)i;
			return true;
		}
	}
	return false;
}

bool hf_mend_rung_of(const char *name, enum hf_mend_rung *ret_rung)
{
	for (unsigned i = 0; i < HF_MEND_RUNGS; i++) {
		if (hf_streq(rung_names[i], name)) {
			*ret_rung = (enum hf_mend_rung)i;
			return true;
		}
	}
	return false;
}
