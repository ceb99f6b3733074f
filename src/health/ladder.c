/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Proposes the next remedy for one node, without regard to budgets.
 * Input: the node's faults and its attempts.  Output: doing, action and reason.
 */
#include "health/ladder_internal.h"

#include "base/str.h"

#define FLAPS_MAX 3 /* most quarantines of one node within the window of quarantines */
/* A new agent learns the UUIDs of its devices from the driver within moments, or never. */
#define UUID_WAIT (10 * HF_MINUTE)

static struct hf_health_decision make_decision(const struct hf_health_node *node,
					       enum hf_health_doing doing,
					       enum hf_health_answer answer, enum hf_health_why why)
{
	return (struct hf_health_decision){.node = node->name,
					   .doing = doing,
					   .action = HF_HEALTH_RECORD,
					   .answer = answer,
					   .why = why};
}

/* ---- remedies that were tried, and the next one -------------------------------------------------- */

static int32_t count_tried(const struct hf_health_node *node, const struct hf_health_fleet *fleet,
			   enum hf_health_action action, hf_time window)
{
	int32_t n = 0;

	for (size_t i = 0; i < node->attempts_len; i++) {
		const struct hf_health_attempt *a = &node->attempts[i];

		n += (action == HF_HEALTH_ACTIONS || a->action == action) &&
		     fleet->now - a->at <= window;
	}
	return n;
}

/* No device of the node can be named in a reset. */
static bool has_no_reset(const struct hf_health_node *node, const struct hf_health_fleet *fleet)
{
	return node->no_reset && node->owned && fleet->now - node->owned_at >= UUID_WAIT;
}

/* The mildest remedy that may still be tried, from the one that the evidence asks for; RECORD: none.  A remedy
 * that failed is not tried again in the same quarantine: it would not help the second time either. */
static enum hf_health_action next_rung(const struct hf_health_node *node,
				       const struct hf_health_fleet *fleet,
				       const struct hf_health_policy *policy)
{
	enum hf_health_action from = node->action;

	for (size_t i = 0; i < node->attempts_len; i++) {
		const struct hf_health_attempt *a = &node->attempts[i];

		if (a->failed && node->owned && a->at >= node->owned_at && a->action >= from)
			from = a->action + 1;
	}
	for (int r = from; r < HF_HEALTH_ACTIONS; r++) {
		const struct hf_health_rung *rung = &policy->rungs[r];

		/* A restart of the driver does not mend what a reset could not, and the reverse is true as well.
		 * So each class gets the remedy that it asks for, then the restart of the node. */
		if ((r != (int)node->action && r < HF_HEALTH_RESTART_NODE) ||
		    (r == HF_HEALTH_RESET_DEVICE && has_no_reset(node, fleet)))
			continue;
		if (rung->attempts > 0 && count_tried(node, fleet, (enum hf_health_action)r,
						      rung->window) < rung->attempts)
			return (enum hf_health_action)r;
	}
	return HF_HEALTH_RECORD;
}

/* ---- waiting for a remedy under way --------------------------------------------------------------- */

static bool find_under_way(const struct hf_health_node *node, const struct hf_health_fleet *fleet,
			   const struct hf_health_policy *policy, hf_time *ret_wake,
			   struct hf_health_decision *ret)
{
	hf_time end;

	if (node->running != HF_HEALTH_RECORD) {
		end = hf_time_add(node->running_since, policy->rungs[node->running].timeout);
		*ret = make_decision(node, HF_HEALTH_DO_NOTHING, HF_HEALTH_WAITS,
				     HF_HEALTH_WHY_RUNNING);
		ret->action = node->running;
		if (fleet->now < end) {
			*ret_wake = end;
		} else {
			ret->doing = HF_HEALTH_DO_FAIL;
			ret->answer = HF_HEALTH_GO;
			ret->why = HF_HEALTH_WHY_TIMED_OUT;
		}
		return true;
	}
	/* Faults in the first minutes after a remedy may be an effect of the remedy. A fault after the proof is none. The
	 * next remedy waits all the same, but no node may stay in use because of that. */
	for (size_t i = 0; i < node->attempts_len; i++) {
		const struct hf_health_attempt *a = &node->attempts[i];

		end = hf_time_add(a->at, policy->rungs[a->action].settle);
		if (fleet->now >= end || a->failed || (a->before_fault && !node->owned))
			continue;
		*ret = make_decision(node, HF_HEALTH_DO_NOTHING, HF_HEALTH_WAITS,
				     HF_HEALTH_WHY_SETTLING);
		*ret_wake = end;
		return true;
	}
	return false;
}

/* ---- nodes about which nothing is decided --------------------------------------------------------- */

static bool is_agent_silent(const struct hf_health_node *node, const struct hf_health_fleet *fleet)
{
	const struct hf_health_breaker *breaker = &fleet->breaker;

	if (!node->same_boot || node->evidence_at == HF_TIME_NONE)
		return true;
	return breaker->closed_at != HF_TIME_NONE && node->evidence_at < breaker->closed_at;
}

static bool is_silent(const struct hf_health_node *node, const struct hf_health_fleet *fleet,
		      const struct hf_health_policy *policy)
{
	return node->observed_at == HF_TIME_NONE ||
	       fleet->now - node->observed_at > policy->stale_after ||
	       node->state == HF_HEALTH_UNKNOWN;
}

/* Whether a remedy has failed in this quarantine, and nothing is heard of the node: the remedy may have been its end. */
static bool is_lost(const struct hf_health_node *node, const struct hf_health_fleet *fleet,
		    const struct hf_health_policy *policy)
{
	bool failed = false;

	for (size_t i = 0; i < node->attempts_len && node->owned && !node->excluded; i++)
		failed |= node->attempts[i].failed && node->attempts[i].at >= node->owned_at &&
			  node->attempts[i].action >= HF_HEALTH_RESET_DEVICE;
	if (!failed || !is_silent(node, fleet, policy))
		return false;
	/* The next report may still come. After a boot it takes the driver minutes to name the devices. */
	return !node->awaited;
}

static bool is_left_alone(const struct hf_health_node *node, const struct hf_health_fleet *fleet,
			  const struct hf_health_policy *policy, struct hf_health_decision *ret)
{
	enum hf_health_why why;

	if (node->excluded)
		why = HF_HEALTH_WHY_EXCLUDED;
	else if (is_silent(node, fleet, policy))
		why = HF_HEALTH_WHY_SILENT;
	/* The state Failed gets no remedy; but such a node is still quarantined, because work fails there. */
	else if (node->state == HF_HEALTH_FAILED && (node->owned || node->cls < HF_HEALTH_SOFTWARE))
		why = HF_HEALTH_WHY_FAILED_STATE;
	else if (node->state == HF_HEALTH_SUSPECT && !node->owned)
		why = HF_HEALTH_WHY_UNCONFIRMED;
	else
		return false;
	*ret = make_decision(node, HF_HEALTH_DO_NOTHING, HF_HEALTH_NOTHING, why);
	return true;
}

/* ---- choosing the next remedy ----------------------------------------------------------------------- */

static bool needs_idle_device(enum hf_health_action action)
{
	return action == HF_HEALTH_RESET_DEVICE || action == HF_HEALTH_RESTART_DRIVER;
}

static struct hf_health_decision decide_remedy(const struct hf_health_node *node,
					       const struct hf_health_fleet *fleet,
					       const struct hf_health_policy *policy)
{
	struct hf_health_decision d =
		make_decision(node, HF_HEALTH_DO_REMEDY, HF_HEALTH_GO, HF_HEALTH_WHY_EVIDENCE);

	d.action = next_rung(node, fleet, policy);
	if (d.action == HF_HEALTH_RECORD ||
	    count_tried(node, fleet, HF_HEALTH_ACTIONS, policy->node_window) >=
		    policy->node_attempts ||
	    node->cls >= HF_HEALTH_SUPPORT) {
		d.doing = HF_HEALTH_DO_GIVE_UP;
		d.action = HF_HEALTH_REPLACE_NODE;
		d.why = node->cls >= HF_HEALTH_SUPPORT ? HF_HEALTH_WHY_EVIDENCE
						       : HF_HEALTH_WHY_EXHAUSTED;
		return d;
	}
	if (d.action == HF_HEALTH_REPLACE_NODE) {
		d.doing = HF_HEALTH_DO_GIVE_UP;
		d.why = HF_HEALTH_WHY_EXHAUSTED;
		return d;
	}
	if (d.action != node->action)
		d.why = HF_HEALTH_WHY_ESCALATED;
	if (needs_idle_device(d.action) && node->device_busy) {
		d.answer = HF_HEALTH_HELD;
		d.why = HF_HEALTH_WHY_DEVICE_BUSY;
	} else if (d.action == HF_HEALTH_RESTART_NODE && node->undrainable &&
		   !policy->force_drain) {
		d.answer = HF_HEALTH_HELD;
		d.why = HF_HEALTH_WHY_UNDRAINABLE;
	}
	return d;
}

/* Whether the node was quarantined too often within the window: it must not use up the budget of other nodes. */
static bool is_flapping(const struct hf_health_node *node, const struct hf_health_fleet *fleet,
			const struct hf_health_policy *policy, hf_time *ret_wake)
{
	hf_time first = fleet->now;
	int32_t n = 0;

	if (hf_health_limit_of(&policy->quarantines, fleet->selected) < 0)
		return false;
	for (size_t i = 0; i < fleet->quarantined_len; i++) {
		const struct hf_health_quarantined *q = &fleet->quarantined[i];

		if (!hf_streq(q->node, node->name) ||
		    fleet->now - q->at > policy->quarantine_window)
			continue;
		n++;
		first = q->at < first ? q->at : first;
	}
	if (n < FLAPS_MAX)
		return false;
	*ret_wake = hf_time_add(first, policy->quarantine_window + 1);
	return true;
}

static struct hf_health_decision decide_quarantine(const struct hf_health_node *node,
						   const struct hf_health_fleet *fleet,
						   const struct hf_health_policy *policy,
						   hf_time *ret_wake)
{
	struct hf_health_decision d =
		make_decision(node, HF_HEALTH_DO_QUARANTINE, HF_HEALTH_GO, HF_HEALTH_WHY_EVIDENCE);

	d.action = HF_HEALTH_QUARANTINE;
	if (node->foreign) {
		/* A person or another tool has taken the node out: it takes no new pods, and its faults may come
		 * from their work. */
		d.answer = HF_HEALTH_HELD;
		d.why = HF_HEALTH_WHY_FOREIGN;
	} else if (is_agent_silent(node, fleet)) {
		d.answer = HF_HEALTH_HELD;
		d.why = HF_HEALTH_WHY_STALE;
	} else if (!hf_health_is_fatal(node->cls) && !node->replaceable) {
		/* No free node could take the work, and slow work is better than none. */
		d.answer = HF_HEALTH_HELD;
		d.why = HF_HEALTH_WHY_NO_CAPACITY;
	} else if (!node->counted && is_flapping(node, fleet, policy, ret_wake)) {
		/* Holdfast's taint was taken off each time, so Holdfast does not set it again. */
		d.answer = HF_HEALTH_HELD;
		d.why = HF_HEALTH_WHY_FLAPS;
	}
	return d;
}

/* Releases a quarantined node after the end of its faults, or if its remaining faults end only without the taint. */
static struct hf_health_decision decide_release(const struct hf_health_node *node,
						const struct hf_health_fleet *fleet,
						const struct hf_health_policy *policy,
						hf_time *ret_wake)
{
	bool well = node->by_pods ? node->rest_well : node->state == HF_HEALTH_HEALTHY;

	/* A node that is not well yet, for example on probation, stays quarantined. */
	if (!well)
		return make_decision(node, HF_HEALTH_DO_NOTHING, HF_HEALTH_WAITS,
				     HF_HEALTH_WHY_SETTLING);
	if (node->of_act)
		return make_decision(node, HF_HEALTH_DO_NOTHING, HF_HEALTH_WAITS,
				     HF_HEALTH_WHY_OF_ACT);
	/* Evidence of an earlier boot does not count in this boot. */
	if (!node->same_boot)
		return make_decision(node, HF_HEALTH_DO_RELEASE, HF_HEALTH_HELD,
				     HF_HEALTH_WHY_STALE);
	if (is_flapping(node, fleet, policy, ret_wake))
		return make_decision(node, HF_HEALTH_DO_RELEASE, HF_HEALTH_HELD,
				     HF_HEALTH_WHY_FLAPS);
	return make_decision(node, HF_HEALTH_DO_RELEASE, HF_HEALTH_GO,
			     node->by_pods ? HF_HEALTH_WHY_PODS : HF_HEALTH_WHY_MENDED);
}

struct hf_health_decision hf_health_ladder(const struct hf_health_node *node,
					   const struct hf_health_fleet *fleet,
					   const struct hf_health_policy *policy, hf_time *ret_wake)
{
	struct hf_health_decision d;

	*ret_wake = HF_TIME_NEVER;
	if (node->excluded && !node->owned)
		return make_decision(node, HF_HEALTH_DO_NOTHING, HF_HEALTH_NOTHING,
				     HF_HEALTH_WHY_EXCLUDED);
	if (find_under_way(node, fleet, policy, ret_wake, &d))
		return d;
	if (is_lost(node, fleet, policy)) {
		d = make_decision(node, HF_HEALTH_DO_GIVE_UP, HF_HEALTH_GO, HF_HEALTH_WHY_LOST);
		d.action = HF_HEALTH_REPLACE_NODE;
		return d;
	}
	if (is_left_alone(node, fleet, policy, &d))
		return d;
	/* If the worst device is Suspect, no fault is confirmed: no remedy follows, and the quarantine stays. */
	if (node->owned &&
	    (node->cls < HF_HEALTH_SOFTWARE || node->by_pods || node->state == HF_HEALTH_SUSPECT))
		return decide_release(node, fleet, policy, ret_wake);
	if (node->cls < HF_HEALTH_SOFTWARE)
		return make_decision(node, HF_HEALTH_DO_NOTHING, HF_HEALTH_NOTHING,
				     HF_HEALTH_WHY_WELL);
	if (node->by_pods)
		return make_decision(node, HF_HEALTH_DO_NOTHING, HF_HEALTH_NOTHING,
				     HF_HEALTH_WHY_PODS);
	if (!node->owned)
		return decide_quarantine(node, fleet, policy, ret_wake);
	if (is_agent_silent(node, fleet))
		return make_decision(node, HF_HEALTH_DO_REMEDY, HF_HEALTH_HELD,
				     HF_HEALTH_WHY_STALE);
	return decide_remedy(node, fleet, policy);
}
