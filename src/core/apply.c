/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/step_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * Decides all terminations of one step together.
 *
 * One step sees several terminations at once, so their order is not certain.  Therefore at most one
 * incident opens for the pods among them.  The termination that best explains the others opens it:
 * one with evidence of infrastructure or a device, else the first to finish.
 *
 * Words used here:
 *
 * - An incident covers a termination if the rank's attempt had started before the incident opened
 *   (hf_incident_covers).  A covered termination is charged nothing.
 * - An incident adopts a termination as its cause if the termination has better evidence than the
 *   application's cause that the incident has so far (hf_incident_adopt).
 * - A verdict gives way (gave_way) if hf_verdict_reconsider withdrew it in this step, because a
 *   cause outranks it.  Then the step acts only on that cause.  A second verdict would be withdrawn
 *   for the same cause, and that cause would be charged twice.
 * - A termination is stray if the pod was evicted for a taint that its own node does not have
 *   (classify.c).  No budget is charged for it.
 * - noProgressLimit forbids a restart that would start from the same step again (hf_steps_allow).
 *
 * Writes: the ledger's incident, charges and verdict, the slots, and what the step restarts.
 */

/* Open an incident for the termination and charge it; or, if the job must fail, set the verdict.
 * Returns false if a verdict was set. */
static bool open_for(struct hf_brain *b, const struct hf_termination *termination)
{
	/* A verdict charges nothing yet, because later evidence may still show another cause. */
	if (termination->fate == HF_FATE_FAIL) {
		hf_verdict_of_termination(b, termination);
		return false;
	}
	if (!hf_budget_allows(b, termination->budget)) {
		hf_incident_open(b, termination, termination->cls, HF_BUDGET_PENDING);
		hf_verdict_set(b, hf_budget_verdict(termination->budget),
			       hf_budget_message(b, termination->budget));
		return false;
	}
	if (!hf_steps_allow(b, termination->cls)) {
		hf_incident_open(b, termination, termination->cls, HF_BUDGET_PENDING);
		hf_verdict_set(b, HF_VERDICT_NO_PROGRESS, hf_steps_message(b));
		return false;
	}
	/* A termination that a rule exempts from charges still lengthens the delay.  Otherwise the
	 * rank would restart in a loop without a pause. */
	if (termination->kind != HF_TERMINATION_RESTARTED && !termination->same_fault)
		hf_delay_next(b, hf_class_budget(termination->cls));
	hf_incident_open(b, termination, termination->cls, termination->budget);
	hf_steps_note(b);
	if (termination->kind == HF_TERMINATION_RESTARTED)
		b->ledger.records[0].scope = "Container";
	hf_restart_tell(b, termination->cls);
	return true;
}

/* A verdict was withdrawn in this step, and this termination would set a verdict again.  It is left
 * to the next step, after the cause of the withdrawn verdict has been acted upon. */
static bool is_for_later(const struct hf_brain *b, const struct hf_termination *termination)
{
	return b->gave_way && !hf_incident_covers(b, termination) &&
	       (termination->fate == HF_FATE_FAIL || !hf_budget_allows(b, termination->budget) ||
		!hf_steps_allow(b, termination->cls));
}

/*
 * Counts the restarts of containers by the kubelet.  The first restart of a pod in an incident is
 * covered; its second restart opens the next incident.  Each round counts one restart of every
 * rank.  So two restarts of each of a thousand ranks are two incidents and not a thousand.
 */
static void count_restarts(struct hf_brain *b)
{
	bool more = true;

	for (int32_t round = 1; more && !hf_verdict_pending(b); round++) {
		more = false;
		for (size_t i = 0; i < b->terminations_len; i++) {
			struct hf_termination *termination = &b->terminations[i];
			struct hf_slot *slot =
				&b->roles[termination->role].slots[termination->index];

			if (termination->kind != HF_TERMINATION_RESTARTED ||
			    termination->units < round)
				continue;
			if (is_for_later(b, termination))
				continue;
			more = true;
			if (!hf_incident_covers(b, termination) && !open_for(b, termination))
				return;
			slot->covered = true;
			(*(termination->before_start ? &slot->init_seen : &slot->seen))++;
			if (b->ledger.records_len > 0 && !b->ledger.records[0].scope)
				b->ledger.records[0].scope = "Container";
		}
	}
}

/* The termination that matches a rule with action FailJob, or NULL.  Such a rule comes before the
 * other rules, as in batch/v1. */
static const struct hf_termination *find_fail_rule(const struct hf_brain *b)
{
	for (size_t i = 0; i < b->terminations_len; i++) {
		if (b->terminations[i].fate == HF_FATE_FAIL && b->terminations[i].rule >= 0)
			return &b->terminations[i];
	}
	return NULL;
}

/* How well the termination explains the others. One that a rule ignores, with action Ignore, is the last choice. */
static int rate(const struct hf_termination *termination)
{
	if (hf_termination_outranks(termination))
		return termination->stray || termination->same_fault ? 3 : 4;
	return hf_termination_is_ignored(termination) ? 1 : 2;
}

/* The termination that opens a new incident; NULL: the open incident covers all terminations. */
static const struct hf_termination *find_opener(const struct hf_brain *b)
{
	const struct hf_termination *best = NULL;

	for (size_t i = 0; i < b->terminations_len; i++) {
		const struct hf_termination *termination = &b->terminations[i];

		if (termination->kind == HF_TERMINATION_RESTARTED ||
		    hf_incident_covers(b, termination))
			continue;
		if (!best || rate(termination) > rate(best))
			best = termination;
	}
	return best;
}

/* If a termination with better evidence belongs to the open incident, make it the incident's cause.
 * Returns false if the budget of that cause is used up; then a verdict is set. */
static bool adopt_causes(struct hf_brain *b)
{
	for (size_t i = 0; i < b->terminations_len; i++) {
		const struct hf_termination *termination = &b->terminations[i];

		if (termination->used_by_verdict || !hf_termination_outranks(termination) ||
		    !hf_incident_covers(b, termination) ||
		    !hf_node_loss_precedes(b, termination, hf_incident_time(b)))
			continue;
		if (!hf_incident_adopt(b, termination)) {
			enum hf_budget budget = hf_class_budget(termination->cls);

			hf_assert(!termination->stray);
			hf_verdict_set(b, hf_budget_verdict(budget), hf_budget_message(b, budget));
			return false;
		}
		/* The recovery of the incident begins again with this termination. */
		if (b->ledger.records_len > 0)
			b->ledger.records[0].running_at = HF_TIME_NONE;
	}
	return true;
}

static void report_stray(struct hf_brain *b, const struct hf_termination *termination)
{
	b->plan->metrics[HF_METRIC_STRAYS]++;
	hf_event_pod(b, true, HF_REASON_STRAY,
		     hf_arena_printf(b->arena,
				     "Pod %s was evicted for a taint that its node %s does not "
				     "have: the eviction timer was set for an earlier pod of that "
				     "name",
				     termination->pod->name, termination->pod->node),
		     termination->pod);
}

/* The kubelet may write a pod's reason ("Evicted") after the termination was counted.  Then the
 * incident's record gets the reason now. */
static void retell_counted(struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_record *last = &b->ledger.records[0];

	if (termination->counted && !hf_termination_outranks(termination) &&
	    b->ledger.records_len > 0 && hf_class_is_application(b->ledger.incident.cause) &&
	    hf_streq(last->pod, termination->pod->name))
		hf_incident_set_cause(b, termination);
}

/* Restart each terminated rank alone.  Returns true if at least one rank restarts in its present
 * pod. */
static bool restart_each(struct hf_brain *b)
{
	bool in_place = false;

	for (size_t i = 0; i < b->terminations_len; i++) {
		const struct hf_termination *termination = &b->terminations[i];

		if (termination->kind != HF_TERMINATION_RESTARTED)
			in_place |=
				hf_restart_replica_any(b, termination->role, termination->index);
	}
	if (in_place)
		hf_ranks_refresh(b);
	return in_place;
}

/* The pods are to go for a reason outside of the program, and their programs still run: the others
 * are well, and can save.  A device that has failed makes its peers wait in vain. */
static bool are_all_planned(const struct hf_brain *b)
{
	for (size_t i = 0; i < b->terminations_len; i++) {
		const struct hf_termination *termination = &b->terminations[i];
		const struct hf_container_seen *own =
			termination->pod ? hf_own_container(b, termination->role, termination->pod)
					 : NULL;

		if (termination->kind != HF_TERMINATION_DELETED || !own ||
		    own->phase != HF_CONTAINER_RUNNING || termination->cls == HF_CLASS_DEVICE ||
		    hf_node_lost(b, termination->pod))
			return false;
	}
	return true;
}

/* Restart the ranks that terminated.  If one of the terminations has scope Job, restart all
 * ranks. */
static void restart_ended(struct hf_brain *b)
{
	enum hf_scope scope = HF_SCOPE_REPLICA;
	const struct hf_termination *first = NULL;
	bool in_place;

	for (size_t i = 0; i < b->terminations_len; i++) {
		const struct hf_termination *termination = &b->terminations[i];

		/* The kubelet has already restarted this container.  The step acts on it only if
		 * all ranks restart together. */
		if (termination->kind == HF_TERMINATION_RESTARTED &&
		    termination->scope != HF_SCOPE_JOB)
			continue;
		if (!first)
			first = termination;
		if (termination->scope == HF_SCOPE_JOB)
			scope = HF_SCOPE_JOB;
		hf_termination_event(b, termination);
		retell_counted(b, termination);
		if (termination->stray)
			report_stray(b, termination);
	}
	if (!first)
		return;
	hf_assert(!hf_verdict_pending(b));
	b->restarting = true;
	b->restarting_role = first->role;
	b->restarting_count = b->failed_count[first->role] > 0 ? b->failed_count[first->role] : 1;
	b->plan->restart_scope = scope;
	hf_incident_ensure_record(b, first);
	/* hf_barrier_is_of_all reads the scope, so it is set before the ranks restart. */
	b->ledger.records[0].scope = scope == HF_SCOPE_JOB ? "Job" : "Replica";
	if (scope == HF_SCOPE_JOB && are_all_planned(b))
		hf_job_save_request(b);
	in_place = scope == HF_SCOPE_JOB ? hf_gang_restart_any(b) : restart_each(b);
	hf_in_place_count(b, in_place);
	b->ledger.records[0].in_place = in_place;
	b->ledger.records[0].down_at = HF_TIME_NONE;
	b->ledger.records[0].generation = b->ledger.generation;
	/* A covered termination may come after the job had recovered: the recovery begins again. */
	b->ledger.records[0].running_at = HF_TIME_NONE;
	hf_restart_when_too_large(b);
}

/* The termination to charge.  If a node of the job counts as lost now, its loss is taken as the
 * cause of what the peers of its rank do now. */
static const struct hf_termination *find_cause(const struct hf_brain *b,
					       const struct hf_termination *opener,
					       struct hf_termination *lost)
{
	if (!opener || opener->fate == HF_FATE_FAIL || opener->budget != HF_BUDGET_APPLICATION ||
	    !hf_node_loss_cause(b, b->ledger.incident.id + 1, b->now, lost))
		return opener;
	hf_restart_policy_decide(b, lost);
	return lost;
}

/* The rank was started again within the open incident, and the incident covers its termination as
 * well. */
static bool repeats_incident(const struct hf_brain *b, const struct hf_termination *termination)
{
	hf_time opened_at = b->ledger.incident.opened_at;

	return termination->kind != HF_TERMINATION_RESTARTED && termination->pod &&
	       opened_at != HF_TIME_NONE && termination->pod->creation_time != HF_TIME_NONE &&
	       termination->pod->creation_time > opened_at;
}

/* A rank that starts before the fault is repaired may terminate of it again.  Nothing is charged
 * then, but the next start is delayed. */
static void delay_repeats(struct hf_brain *b)
{
	for (size_t i = 0; i < b->terminations_len; i++) {
		if (repeats_incident(b, &b->terminations[i])) {
			hf_delay_next(b, HF_BUDGET_INFRASTRUCTURE);
			return;
		}
	}
}

/* A copy of the open incident's charges and record, made before late evidence changes them. */
struct previous_incident {
	int64_t incident, restarts[HF_BUDGETS];
	struct hf_record record;
};

static void save_previous(const struct hf_brain *b, struct previous_incident *previous)
{
	previous->incident = b->ledger.incident.id;
	memcpy(previous->restarts, b->ledger.restarts, sizeof(previous->restarts));
	previous->record = b->ledger.records[0];
}

/* If this step's verdict opened a newer incident, restore the previous incident's charges and its
 * record.  The late evidence may still withdraw the verdict, and one event is the cause of one
 * incident. */
static void restore_previous(struct hf_brain *b, const struct previous_incident *previous)
{
	struct hf_ledger *ledger = &b->ledger;

	if (ledger->incident.id == previous->incident)
		return;
	hf_assert(ledger->incident.charged == HF_BUDGET_PENDING);
	memcpy(ledger->restarts, previous->restarts, sizeof(previous->restarts));
	if (ledger->records_len > 1 && ledger->records[1].incident == previous->record.incident)
		ledger->records[1] = previous->record;
}

void hf_terminations_apply(struct hf_brain *b)
{
	const struct hf_termination *termination;
	struct previous_incident previous;
	struct hf_termination lost;

	hf_assert(b->ledger.present && !hf_verdict_pending(b));
	if (b->terminations_len == 0)
		return;
	termination = find_fail_rule(b);
	if (termination) {
		hf_verdict_of_termination(b, termination);
		return;
	}
	/* Container restarts are counted before the ends of pods, because the container ran before
	 * its pod ended. */
	count_restarts(b);
	save_previous(b, &previous);
	if (hf_verdict_pending(b) || !adopt_causes(b))
		return;
	termination = b->gave_way ? NULL : find_cause(b, find_opener(b), &lost);
	if (termination && !open_for(b, termination)) {
		restore_previous(b, &previous);
		return;
	}
	if (!termination)
		delay_repeats(b);
	restart_ended(b);
}
