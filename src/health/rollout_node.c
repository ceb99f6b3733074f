/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/rollout_node.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

/*
 * The phases of a DeviceRollout on one node, with one function for each phase.  A function first checks whether the
 * work ends, then whether it has to wait, and then asks for the next piece of work.
 */

static const char *const phase_names[HF_ROLLOUT_PHASES] = {
	"Waiting", "Locked",    "Cordoned", "Emptying", "Baseline",   "Changing", "Proving",
	"Canary",  "Restoring", "Done",     "Failed",   "RolledBack", "Skipped"};
static const char *const do_names[HF_ROLLOUT_DOS] = {
	"nothing",   "take-lease", "cordon",          "set-condition", "evict",
	"mark",      "change",     "ask-report",      "create-canary", "delete-canary",
	"keep-pace", "uncordon",   "clear-condition", "release-lease"};

#define BIT(phase) (1u << HF_ROLLOUT_##phase)
static const unsigned may_follow[HF_ROLLOUT_PHASES] = {
	[HF_ROLLOUT_WAITING] = BIT(LOCKED) | BIT(RESTORING),
	[HF_ROLLOUT_LOCKED] = BIT(CORDONED) | BIT(RESTORING),
	[HF_ROLLOUT_CORDONED] = BIT(EMPTYING) | BIT(RESTORING),
	[HF_ROLLOUT_EMPTYING] = BIT(BASELINE) | BIT(CHANGING) | BIT(RESTORING),
	[HF_ROLLOUT_BASELINE] = BIT(CHANGING) | BIT(RESTORING),
	[HF_ROLLOUT_CHANGING] = BIT(PROVING) | BIT(RESTORING),
	[HF_ROLLOUT_PROVING] = BIT(CANARY) | BIT(RESTORING),
	[HF_ROLLOUT_CANARY] = BIT(RESTORING),
	[HF_ROLLOUT_RESTORING] = BIT(DONE) | BIT(FAILED) | BIT(ROLLED_BACK) | BIT(SKIPPED),
	/* A proved node may fail later; a rollback begins anew with each changed node. */
	[HF_ROLLOUT_DONE] = BIT(FAILED) | BIT(WAITING),
	[HF_ROLLOUT_FAILED] = BIT(WAITING),
	[HF_ROLLOUT_SKIPPED] = BIT(WAITING),
};

bool hf_rollout_phase_may_follow(enum hf_rollout_phase from, enum hf_rollout_phase to)
{
	return from == to || (may_follow[from] & (1u << to)) != 0;
}

bool hf_rollout_phase_is_end(enum hf_rollout_phase phase)
{
	return phase >= HF_ROLLOUT_DONE;
}

const char *hf_rollout_phase_name(enum hf_rollout_phase phase)
{
	return phase_names[phase];
}

const char *hf_rollout_do_name(enum hf_rollout_do act)
{
	return do_names[act];
}

bool hf_rollout_phase_of(const char *name, enum hf_rollout_phase *ret_phase)
{
	for (unsigned i = 0; i < HF_ROLLOUT_PHASES; i++)
		if (hf_streq(name, phase_names[i])) {
			*ret_phase = (enum hf_rollout_phase)i;
			return true;
		}
	return false;
}

/* ---- answers -------------------------------------------------------------------------------- */

HF_PRINTF(2, 3)
static void set_message(struct hf_rollout_node_step *step, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(step->message, sizeof(step->message), fmt, ap);
	va_end(ap);
}

/* The caller has set the message. */
static void end_work(struct hf_rollout_node_step *step, enum hf_rollout_phase outcome)
{
	step->next = HF_ROLLOUT_RESTORING;
	step->outcome = outcome;
}

/* The node is not changed, or not taken back. A node that had failed has no proof yet, so it keeps its cordon. */
static void end_without_change(const struct hf_rollout_node_view *view,
			       struct hf_rollout_node_step *step)
{
	end_work(step,
		 view->had_failed && view->node_exists ? HF_ROLLOUT_FAILED : HF_ROLLOUT_SKIPPED);
}

static void wake_by(struct hf_rollout_node_step *step, hf_time at)
{
	if (at != HF_TIME_NONE && at < step->wake_at)
		step->wake_at = at;
}

static bool ask_for(struct hf_rollout_node_step *step, bool wanted, enum hf_rollout_do what)
{
	if (wanted)
		step->act = what;
	return wanted;
}

/* ---- before the change ------------------------------------------------------------------------ */

static bool is_uncordoned(const struct hf_rollout_node_view *view)
{
	return view->node_exists && !view->stops && view->lease == HF_ROLLOUT_LEASE_OURS &&
	       view->phase > HF_ROLLOUT_LOCKED && !view->cordoned;
}

/* A device that is out of use before the change could not prove the change, and the change is not the cause. What mends the
 * device needs the Lease of the node. */
static bool is_sick_before(const struct hf_rollout_node_view *view)
{
	return !view->backwards && view->proof.sick != NULL;
}

/* A node that is not changed yet is left as it was. */
static bool ends_before_change(const struct hf_rollout_node_view *view,
			       struct hf_rollout_node_step *step)
{
	if (!view->node_exists)
		set_message(step, "the node does not exist any more");
	else if (view->stops)
		set_message(step, "%s: %s",
			    view->backwards ? "not taken back" : "nothing was changed",
			    hf_str_or(view->stop_why, "the rollout stops"));
	else if (view->phase > HF_ROLLOUT_WAITING && view->lease != HF_ROLLOUT_LEASE_OURS)
		set_message(step, "the Lease of the node was lost%s%s",
			    view->lease == HF_ROLLOUT_LEASE_OTHERS ? " to " : "",
			    view->lease == HF_ROLLOUT_LEASE_OTHERS
				    ? hf_str_or(view->lease_holder, "another")
				    : "");
	else if (is_uncordoned(view))
		set_message(step, "a person took the cordon off: the node is left alone");
	else if (is_sick_before(view))
		set_message(step, "nothing was changed: device %s: %s", view->proof.sick,
			    hf_str_or(view->proof.sick_class, "out of use"));
	else
		return false;
	step->gives_up = is_uncordoned(view);
	end_without_change(view, step);
	return true;
}

/* Returns true if the node has to wait.  After the time that emptying may take, the node is skipped and the wave goes
 * on. */
static bool is_held(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	hf_time until = hf_time_add(view->since, view->empty_for);

	if (view->other_lock != NULL)
		set_message(step, "waits: %s is at work on the node", view->other_lock);
	else if (view->held != NULL)
		set_message(step, "waits: %s", view->held);
	else if (!view->backwards && view->proof.unknown != NULL)
		/* The agent has just begun, or the device is lost and could not prove the change. */
		set_message(step, "waits: the agent knows nothing of device %s",
			    view->proof.unknown);
	else
		return false;
	if (view->now >= until)
		end_without_change(view, step);
	wake_by(step, until);
	return true;
}

static void step_waiting(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	if (ends_before_change(view, step) || is_held(view, step))
		return;
	if (view->lease == HF_ROLLOUT_LEASE_OTHERS) {
		hf_time until = hf_time_add(view->since, view->empty_for);

		set_message(step, "waits: %s holds the Lease of the node",
			    hf_str_or(view->lease_holder, "another"));
		if (view->now >= until)
			end_without_change(view, step);
		wake_by(step, until);
		return;
	}
	if (ask_for(step, view->lease == HF_ROLLOUT_LEASE_FREE, HF_ROLLOUT_TAKE_LEASE))
		return;
	step->next = HF_ROLLOUT_LOCKED;
	set_message(step, "the node is locked");
}

static void step_locked(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	if (ends_before_change(view, step) || is_held(view, step))
		return;
	if (ask_for(step, !view->cordoned, HF_ROLLOUT_CORDON))
		return;
	step->next = HF_ROLLOUT_CORDONED;
	set_message(step,
		    view->own_cordon ? "the node is cordoned" : "the node was cordoned before");
}

static void step_cordoned(const struct hf_rollout_node_view *view,
			  struct hf_rollout_node_step *step)
{
	if (ends_before_change(view, step))
		return;
	if (ask_for(step, !view->in_maintenance, HF_ROLLOUT_SET_CONDITION))
		return;
	step->next = HF_ROLLOUT_EMPTYING;
	set_message(step, "waits until no pod of the node requests a device");
}

/* ---- the canary --------------------------------------------------------------------------------- */

/* A job of the rollout exists. */
static bool has_canary(const struct hf_rollout_node_view *view)
{
	return view->canary.state > HF_ROLLOUT_JOB_OTHERS;
}

static bool is_measured(const struct hf_rollout_pace *pace)
{
	return pace->run_ms > 0;
}

/* A rollback is proved by the devices alone: it mends, and must not wait for a job. */
static bool needs_baseline(const struct hf_rollout_node_view *view)
{
	return view->canary.wanted && view->canary.slower_percent >= 0 && !view->backwards &&
	       !is_measured(&view->canary.before);
}

/* The caller has set the message. outcome: Skipped before the change, Failed after it. */
static void fail_canary(struct hf_rollout_node_step *step, enum hf_rollout_phase outcome)
{
	step->act = HF_ROLLOUT_DO_NOTHING;
	step->canary_failed = true;
	/* The node is not emptied again for a canary that fails on it. */
	step->gives_up = outcome == HF_ROLLOUT_SKIPPED;
	end_work(step, outcome);
}

/* Waits for the canary's job. */
/* The end of a time that begins at `from`, if the cluster is read all the time. */
static hf_time end_of(const struct hf_rollout_node_view *view, hf_time from, hf_time lasts)
{
	return hf_time_add(from > view->seen_since ? from : view->seen_since, lasts);
}

static void await_canary(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step,
			 const struct hf_rollout_pace *known, enum hf_rollout_phase outcome)
{
	const struct hf_rollout_canary *c = &view->canary;
	hf_time until = end_of(view, view->since, c->within);
	const char *when = outcome == HF_ROLLOUT_SKIPPED ? " before the change" : "";

	wake_by(step, until);
	if (view->now >= until) {
		set_message(step, "the canary, job %s, has not succeeded%s within %lld s%s%.160s",
			    c->job, when, (long long)(c->within / HF_SECOND),
			    c->why != NULL || c->state == HF_ROLLOUT_JOB_OTHERS ? ": " : "",
			    c->state == HF_ROLLOUT_JOB_OTHERS ? "the job is not of this rollout"
							      : hf_str_or(c->why, ""));
		fail_canary(step, outcome);
		return;
	}
	set_message(step, "waits for the canary, job %s", c->job);
	step->takes_pace = c->seen.step_us > 0 && c->seen.step_us != known->step_us;
	step->pace = (struct hf_rollout_pace){.step_us = c->seen.step_us};
	(void)(ask_for(step, c->state == HF_ROLLOUT_JOB_NONE, HF_ROLLOUT_CREATE_CANARY) ||
	       ask_for(step, view->lease == HF_ROLLOUT_LEASE_FREE, HF_ROLLOUT_TAKE_LEASE));
}

/* Creates the canary and waits for its end. known: its times as far as the entry has them; complete once the job has
 * succeeded. */
static void run_canary(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step,
		       const struct hf_rollout_pace *known, enum hf_rollout_phase outcome)
{
	const struct hf_rollout_canary *c = &view->canary;
	const char *when = outcome == HF_ROLLOUT_SKIPPED ? " before the change" : "";

	if (c->state == HF_ROLLOUT_JOB_FAILED) {
		set_message(step, "the canary, job %s, failed%s: %.180s", c->job, when,
			    hf_str_or(c->why, "no message"));
		fail_canary(step, outcome);
	} else if (c->state == HF_ROLLOUT_JOB_SUCCEEDED && c->took > c->within) {
		set_message(step, "the canary, job %s, succeeded%s after %lld s, and has %lld s",
			    c->job, when, (long long)(c->took / HF_SECOND),
			    (long long)(c->within / HF_SECOND));
		fail_canary(step, outcome);
	} else if (c->state == HF_ROLLOUT_JOB_SUCCEEDED) {
		step->takes_pace = true;
		step->pace = (struct hf_rollout_pace){
			.step_us = c->seen.step_us > 0 ? c->seen.step_us : known->step_us,
			.run_ms = c->seen.run_ms > 0 ? c->seen.run_ms : 1};
		set_message(step, "the canary, job %s, has succeeded", c->job);
	} else {
		await_canary(view, step, known, outcome);
	}
}

/* ---- emptying ------------------------------------------------------------------------------------ */

static void begin_change(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	step->next = HF_ROLLOUT_CHANGING;
	set_message(step, view->backwards ? "the change is taken back" : "the node is changed");
}

static bool is_occupied(const struct hf_rollout_node_view *view)
{
	return view->empty != HF_ROLLOUT_EMPTY_NEVER && view->pods_left > 0;
}

static void give_up_emptying(const struct hf_rollout_node_view *view,
			     struct hf_rollout_node_step *step)
{
	bool stuck = view->stuck_pod != NULL;

	set_message(step, "%zu pod%s still request%s a device after %lld s%s%s%s%s",
		    view->pods_left, view->pods_left == 1 ? "" : "s",
		    view->pods_left == 1 ? "s" : "", (long long)(view->empty_for / HF_SECOND),
		    stuck ? ": " : ", first ",
		    hf_str_or(stuck ? view->stuck_pod : view->left_pod, "?"), stuck ? " " : "",
		    hf_str_or(view->stuck_why, ""));
	end_without_change(view, step);
}

static void empty_node(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	if (view->stuck_pod != NULL)
		set_message(step, "waits for pod %s, which %s", view->stuck_pod, view->stuck_why);
	else
		set_message(step, "waits for %zu pod%s that request%s a device, first %s",
			    view->pods_left, view->pods_left == 1 ? "" : "s",
			    view->pods_left == 1 ? "s" : "", hf_str_or(view->left_pod, "?"));
	(void)ask_for(step, view->empty == HF_ROLLOUT_EMPTY_SAVE && view->stuck_pod == NULL,
		      HF_ROLLOUT_EVICT);
}

static void step_emptying(const struct hf_rollout_node_view *view,
			  struct hf_rollout_node_step *step)
{
	hf_time until = hf_time_add(view->since, view->empty_for);

	if (ends_before_change(view, step) || is_held(view, step))
		return;
	if (is_occupied(view) && view->now >= until) {
		give_up_emptying(view, step);
		return;
	}
	if (is_occupied(view)) {
		empty_node(view, step);
		wake_by(step, until);
		return;
	}
	if (needs_baseline(view)) {
		step->next = HF_ROLLOUT_BASELINE;
		set_message(step, "a canary runs before the change");
		return;
	}
	begin_change(view, step);
}

static void step_baseline(const struct hf_rollout_node_view *view,
			  struct hf_rollout_node_step *step)
{
	hf_time until = hf_time_add(hf_time_add(view->since, view->canary.within), view->empty_for);

	if (ends_before_change(view, step))
		return;
	if (needs_baseline(view)) {
		run_canary(view, step, &view->canary.before, HF_ROLLOUT_SKIPPED);
		return;
	}
	if (!has_canary(view) && !is_occupied(view)) {
		begin_change(view, step);
		return;
	}
	set_message(step, "waits until the canary, job %s, has left the node", view->canary.job);
	(void)ask_for(step, has_canary(view) && !view->canary.leaving, HF_ROLLOUT_DELETE_CANARY);
	wake_by(step, until);
	if (view->now < until)
		return;
	step->act = HF_ROLLOUT_DO_NOTHING;
	end_work(step, HF_ROLLOUT_SKIPPED);
}

/* ---- the change and its proof ------------------------------------------------------------------ */

/* The time from which the deadline of the proof counts. */
static hf_time proof_begins(const struct hf_rollout_node_view *view)
{
	return view->changed_at != HF_TIME_NONE ? view->changed_at : view->since;
}

/* Sets the message to what was missing, which the caller has written, and ends the work. */
static void fail_if_late(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step,
			 hf_time from)
{
	char missing[HF_ROLLOUT_STEP_MESSAGE_MAX];
	hf_time until = end_of(view, from, view->prove_within);

	wake_by(step, until);
	if (view->now < until)
		return;
	snprintf(missing, sizeof(missing), "%s", step->message);
	set_message(step, "no proof within %lld s: %.240s",
		    (long long)(view->prove_within / HF_SECOND), missing);
	step->act = HF_ROLLOUT_DO_NOTHING;
	end_work(step, HF_ROLLOUT_FAILED);
}

/* The time from which the deadline of the change counts: a hold may delay the mark, and says nothing about the change. */
static hf_time change_begins(const struct hf_rollout_node_view *view)
{
	if (!view->marked && !view->proof.begun)
		return hf_time_add(view->since, view->empty_for);
	return view->marked && view->marked_at > view->since ? view->marked_at : view->since;
}

static void step_changing(const struct hf_rollout_node_view *view,
			  struct hf_rollout_node_step *step)
{
	if (!view->node_exists) {
		set_message(step, "the node does not exist any more");
		end_work(step, HF_ROLLOUT_SKIPPED);
		return;
	}
	if (!view->proof.begun && (ends_before_change(view, step) || is_held(view, step)))
		return;
	/* If the kubelet has evicted the driver's pod, the node has the change before its mark. */
	if (!view->proof.changed || !view->marked) {
		set_message(step, view->backwards ? "waits until the change is taken back"
						  : "waits until the change is there");
		(void)(ask_for(step, !view->marked, HF_ROLLOUT_MARK) ||
		       ask_for(step, true, HF_ROLLOUT_CHANGE));
		fail_if_late(view, step, change_begins(view));
		return;
	}
	step->next = HF_ROLLOUT_PROVING;
	set_message(step, "waits for the proof");
}

static const struct hf_rollout_resource *find_lost(const struct hf_rollout_proof *proof)
{
	for (size_t i = 0; i < proof->resources_len; i++)
		if (proof->resources[i].now_milli < proof->resources[i].before_milli)
			return &proof->resources[i];
	return NULL;
}

/* Returns true if the DeviceHealth proves the change; else the message says what is missing. */
static bool prove_health(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	const struct hf_rollout_proof *p = &view->proof;

	if (!p->health_exists && !p->health_wanted)
		return true;
	if (!p->health_exists || p->observed_at == HF_TIME_NONE ||
	    p->observed_at <= p->complete_at || p->observed_at <= view->changed_at) {
		set_message(step, "no report of the agent from after the change");
		/* If two rollouts ask on one node, each replaces the request of the other again and again. */
		(void)ask_for(step,
			      p->health_exists && !p->report_asked &&
				      view->lease == HF_ROLLOUT_LEASE_OURS,
			      HF_ROLLOUT_ASK_REPORT);
		return false;
	}
	if (!hf_str_is_empty(p->boot_id) && !hf_streq(p->boot_id, p->health_boot_id)) {
		set_message(step, "no report of the agent from this boot");
		return false;
	}
	if (p->sick != NULL) {
		set_message(step, "device %s: %s", p->sick, hf_str_or(p->sick_class, "out of use"));
		return false;
	}
	if (p->unknown != NULL) {
		set_message(step, "the agent knows nothing of device %s", p->unknown);
		return false;
	}
	if (p->driver_wanted != NULL && !hf_streq(p->driver_version, p->driver_wanted)) {
		set_message(step, "driver version %s instead of %s",
			    hf_str_or(p->driver_version, "unknown"), p->driver_wanted);
		return false;
	}
	return true;
}

static bool prove_node(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	const struct hf_rollout_proof *p = &view->proof;
	const struct hf_rollout_resource *lost = find_lost(p);

	if (!p->changed)
		set_message(step, "the change is not there any more");
	else if (!p->node_ready)
		set_message(step, "the node is not Ready");
	else if (!p->pod_ready)
		set_message(step, "the pod of the DaemonSet is not Ready");
	else if (lost != NULL)
		set_message(step, "the node offers %lld of %s, and offered %lld before the change",
			    (long long)(lost->now_milli / 1000), lost->name,
			    (long long)(lost->before_milli / 1000));
	else
		return prove_health(view, step);
	return false;
}

/* pace: the times of the canary; "": the spec has no canary. */
static void tell_proof(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step,
		       const char *pace)
{
	set_message(step, "%s: Ready%s%s%s, %zu resource%s as before%s%s",
		    view->backwards ? "taken back and proved" : "changed and proved",
		    view->proof.health_exists ? ", all devices well" : "",
		    view->proof.driver_wanted != NULL ? ", driver version " : "",
		    hf_str_or(view->proof.driver_wanted, ""), view->proof.resources_len,
		    view->proof.resources_len == 1 ? "" : "s",
		    *pace != '\0' ? ", the canary took " : "", pace);
}

/* A node on hold keeps its cordon, and no canary begins on it. */
static bool is_on_hold(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	if (view->on_hold)
		set_message(step, "the node is well; held by annotation holdfast.dev/hold");
	(void)ask_for(step, view->on_hold && view->lease == HF_ROLLOUT_LEASE_FREE,
		      HF_ROLLOUT_TAKE_LEASE);
	return view->on_hold;
}

/* The proof is awaited. A person may have deleted the Lease: then no other work may begin on the node all the same. */
static void await_proof(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step,
			hf_time from)
{
	(void)ask_for(step, view->lease == HF_ROLLOUT_LEASE_FREE, HF_ROLLOUT_TAKE_LEASE);
	fail_if_late(view, step, from);
}

/* Devices that the previous driver has published prove nothing. The time until they are gone does not count for the deadline. */
static bool waits_for_devices(const struct hf_rollout_node_view *view,
			      struct hf_rollout_node_step *step)
{
	char text[HF_TIME_TEXT_MAX];

	if (view->now >= view->proof.fresh_at)
		return false;
	hf_time_format(view->proof.fresh_at, text);
	set_message(step,
		    "the node is well; until %s its ResourceSlices may be of the previous driver",
		    text);
	wake_by(step, view->proof.fresh_at);
	(void)ask_for(step, view->lease == HF_ROLLOUT_LEASE_FREE, HF_ROLLOUT_TAKE_LEASE);
	return true;
}

static void step_proving(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	if (!view->node_exists) {
		set_message(step, "the node does not exist any more");
		end_work(step, HF_ROLLOUT_SKIPPED);
		return;
	}
	if (!prove_node(view, step)) {
		await_proof(view, step, proof_begins(view));
		return;
	}
	if (waits_for_devices(view, step) || is_on_hold(view, step))
		return;
	if (view->canary.wanted && !view->backwards) {
		step->next = HF_ROLLOUT_CANARY;
		set_message(step, "the node is well; a canary runs");
		return;
	}
	end_work(step, view->backwards ? HF_ROLLOUT_ROLLED_BACK : HF_ROLLOUT_DONE);
	tell_proof(view, step, "");
}

/* Returns true if the canary was slower than before: then the node has failed. */
static bool fails_by_pace(const struct hf_rollout_node_view *view,
			  struct hf_rollout_node_step *step, const char *pace)
{
	const struct hf_rollout_canary *c = &view->canary;

	if (c->slower_percent < 0 ||
	    !hf_rollout_is_slower(&c->before, &c->after, c->slower_percent))
		return false;
	set_message(step, "the canary, job %s, took %s the change: more than %d %% longer", c->job,
		    pace, c->slower_percent);
	fail_canary(step, HF_ROLLOUT_FAILED);
	return true;
}

static void step_canary(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	const struct hf_rollout_canary *c = &view->canary;
	struct hf_rollout_pace before =
		c->slower_percent < 0 ? (struct hf_rollout_pace){0} : c->before;
	char pace[HF_ROLLOUT_PACE_TEXT_MAX];

	if (!view->node_exists) {
		set_message(step, "the node does not exist any more");
		end_work(step, HF_ROLLOUT_SKIPPED);
		return;
	}
	if (!is_measured(&c->after)) {
		run_canary(view, step, &c->after, HF_ROLLOUT_FAILED);
		return;
	}
	hf_rollout_pace_text(&before, &c->after, pace);
	if (fails_by_pace(view, step, pace))
		return;
	/* A device may have failed meanwhile. */
	if (!prove_node(view, step)) {
		await_proof(view, step, hf_time_add(view->since, c->within));
		return;
	}
	if (is_on_hold(view, step) ||
	    ask_for(step, c->slower_percent >= 0 && !c->kept, HF_ROLLOUT_KEEP_PACE))
		return;
	end_work(step, HF_ROLLOUT_DONE);
	tell_proof(view, step, pace);
}

/* ---- putting back ------------------------------------------------------------------------------ */

static bool puts_back(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step,
		      bool keeps_cordon)
{
	/* If a person has taken the cordon off, its annotation is left. */
	bool has_cordon = view->node_exists && view->own_cordon;

	return ask_for(step, has_canary(view) && !view->canary.leaving, HF_ROLLOUT_DELETE_CANARY) ||
	       ask_for(step, has_cordon && !(keeps_cordon && view->cordoned),
		       HF_ROLLOUT_UNCORDON) ||
	       ask_for(step, view->node_exists && view->in_maintenance,
		       HF_ROLLOUT_CLEAR_CONDITION) ||
	       ask_for(step, view->lease == HF_ROLLOUT_LEASE_OURS, HF_ROLLOUT_RELEASE_LEASE);
}

static void step_restoring(const struct hf_rollout_node_view *view,
			   struct hf_rollout_node_step *step)
{
	if (puts_back(view, step, view->outcome == HF_ROLLOUT_FAILED && !view->ends))
		return;
	step->next = view->outcome;
}

/* A failed node keeps its cordon until the rollout ends. The holder of the Lease works on the node, and has found it
 * cordoned: then no pod may come to the node before the Lease is free. */
static void step_ended(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	if (view->ends && view->cordoned && view->own_cordon &&
	    view->lease == HF_ROLLOUT_LEASE_OTHERS) {
		set_message(step, "the cordon stays while %s works on the node",
			    hf_str_or(view->lease_holder, "another"));
		return;
	}
	(void)puts_back(view, step, view->phase == HF_ROLLOUT_FAILED && !view->ends);
}

/* Returns true if the node may have the change, and the spec that tells what proves it cannot be read. The node stays as it
 * is until the spec is repaired. */
static bool awaits_spec(const struct hf_rollout_node_view *view, struct hf_rollout_node_step *step)
{
	if (view->no_spec == NULL || !view->node_exists || view->phase < HF_ROLLOUT_CHANGING ||
	    view->phase > HF_ROLLOUT_CANARY)
		return false;
	set_message(step, "waits for a spec that can be read: %s", view->no_spec);
	(void)ask_for(step, view->lease == HF_ROLLOUT_LEASE_FREE, HF_ROLLOUT_TAKE_LEASE);
	return true;
}

void hf_rollout_node_step(const struct hf_rollout_node_view *view,
			  struct hf_rollout_node_step *ret_step)
{
	*ret_step = (struct hf_rollout_node_step){
		.next = view->phase, .outcome = view->outcome, .wake_at = HF_TIME_NEVER};
	if (awaits_spec(view, ret_step))
		return;
	switch (view->phase) {
	case HF_ROLLOUT_WAITING: step_waiting(view, ret_step); break;
	case HF_ROLLOUT_LOCKED: step_locked(view, ret_step); break;
	case HF_ROLLOUT_CORDONED: step_cordoned(view, ret_step); break;
	case HF_ROLLOUT_EMPTYING: step_emptying(view, ret_step); break;
	case HF_ROLLOUT_BASELINE: step_baseline(view, ret_step); break;
	case HF_ROLLOUT_CHANGING: step_changing(view, ret_step); break;
	case HF_ROLLOUT_PROVING: step_proving(view, ret_step); break;
	case HF_ROLLOUT_CANARY: step_canary(view, ret_step); break;
	case HF_ROLLOUT_RESTORING: step_restoring(view, ret_step); break;
	default: step_ended(view, ret_step); break;
	}
	hf_assert(hf_rollout_phase_may_follow(view->phase, ret_step->next));
}
