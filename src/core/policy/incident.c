/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"

#include <string.h>

/*
 * Incidents: one fault and all terminations that it causes.
 *
 * An incident opens at the first counted termination.  It covers each termination of an attempt
 * that had started before the incident, and such terminations charge nothing.  Each pod is stamped
 * with the number of the incident after which it was created, so the comparison needs no time
 * window. Writes: the ledger's incident and records.
 */

bool hf_incident_is_open(const struct hf_brain *b)
{
	const struct hf_ledger *ledger = &b->ledger;
	hf_time running_at;

	hf_assert(ledger->present);
	if (ledger->incident.id == 0)
		return false;
	if (ledger->records_len > 0 && ledger->records[0].running_at == HF_TIME_NONE)
		return true;
	/* If the record was erased with its ledger, the incident counts from the moment at which
	 * the operator began the new ledger. */
	running_at = ledger->records_len > 0 ? ledger->records[0].running_at
					     : ledger->incident.opened_at;
	return b->now < hf_time_add(running_at, hf_seconds(b->job.recovery.incident_seconds));
}

/* The operator usually sees a termination within a minute.  Later than that, the operator was away,
 * or the node's clock is behind. */
#define SEEN_LATE_SECONDS 60

hf_time hf_incident_time(const struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];
	hf_time opened_at = b->ledger.incident.opened_at, at;

	if (b->ledger.records_len == 0 || last->incident != b->ledger.incident.id ||
	    hf_record_is_node_loss(last) || last->ended_at == HF_TIME_NONE ||
	    opened_at == HF_TIME_NONE)
		return opened_at;
	at = hf_time_add(last->ended_at, hf_seconds(SEEN_LATE_SECONDS));
	return at < opened_at ? at : opened_at;
}

/* A rule with action Ignore matched the termination of this incident.  Such an incident covers
 * nothing: the next failure is a fault of its own. */
static bool is_ignored(const struct hf_incident *incident)
{
	return incident->charged == HF_BUDGET_NONE && hf_class_is_application(incident->cause);
}

/* A lost node is one fault until its pod is gone and all ranks run again.  Until then the peers of
 * its rank crash again and again, and each crash would be charged to the same node. */
static bool is_loss_being_mended(const struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];
	const struct hf_pod there = {.node = last->node, .deletion_time = HF_TIME_NONE};

	if (b->ledger.records_len == 0 || last->incident != b->ledger.incident.id ||
	    b->ledger.incident.charged != HF_BUDGET_INFRASTRUCTURE ||
	    !hf_streq(last->reason, HF_REASON_NODE_LOST))
		return false;
	return last->running_at == HF_TIME_NONE || hf_node_lost(b, &there);
}

/* The open incident has an application's cause so far, and a lost node may turn out to be its real
 * cause. */
static bool is_loss_suspected(const struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];
	const struct hf_incident *incident = &b->ledger.incident;
	struct hf_suspect *suspect = &b->cache->suspect;
	struct hf_termination termination;

	if (b->nodes_lost == 0 || b->ledger.records_len == 0 || last->incident != incident->id ||
	    !hf_incident_is_open(b) || incident->opened_at == HF_TIME_NONE ||
	    !hf_class_is_application(incident->cause) || incident->charged != HF_BUDGET_APPLICATION)
		return false;
	if (suspect->incident != incident->id) {
		*suspect = (struct hf_suspect){.incident = incident->id};
		suspect->found =
			hf_node_loss_suspect(b, incident->id, hf_incident_time(b), &termination);
		if (suspect->found) {
			suspect->role = termination.role;
			suspect->index = termination.index;
		}
	}
	return suspect->found;
}

/* Find the rank that had its pod on the lost node and does not run again yet. */
static bool is_rank_missed(const struct hf_brain *b, int *ret_role, int32_t *ret_index)
{
	const struct hf_record *last = &b->ledger.records[0];
	const struct hf_slot *slot;

	/* If all ranks restart together, no peer starts before the lost rank. */
	if (b->ledger.records_len == 0 || hf_streq(last->scope, "Job"))
		return false;
	if (is_loss_suspected(b)) {
		*ret_role = b->cache->suspect.role;
		*ret_index = b->cache->suspect.index;
		return true;
	}
	if (!is_loss_being_mended(b) || !last->pod ||
	    !hf_rank_find(b, last->pod, ret_role, ret_index) ||
	    *ret_index >= b->roles[*ret_role].replicas)
		return false;
	slot = &b->roles[*ret_role].slots[*ret_index];
	return !slot->succeeded && (!hf_slot_is_up(slot) || hf_node_blamed(b, slot->pod));
}

int64_t hf_incident_stamp(const struct hf_brain *b, int role, int32_t index)
{
	int64_t id = b->ledger.incident.id;
	int32_t missed_index;
	int missed_role;

	hf_assert(role < b->roles_len);
	if (!is_rank_missed(b, &missed_role, &missed_index))
		return id;
	/* Other ranks get the number of the previous incident, so that the open incident covers
	 * their next termination.  The lost rank gets the present number: its next termination is a
	 * new fault. */
	return role == missed_role && index == missed_index ? id : id - 1;
}

/* The pod restarted in place within the incident, and its device had failed before the incident
 * opened.  So the device is the cause of this incident, not of a new one. */
static bool is_fault_older(const struct hf_brain *b, const struct hf_termination *termination)
{
	hf_time opened_at = b->ledger.incident.opened_at;
	const struct hf_pod *pod = termination->pod;

	return termination->cls == HF_CLASS_DEVICE && termination->device &&
	       pod->incident < b->ledger.incident.id && opened_at != HF_TIME_NONE &&
	       termination->device->first != HF_TIME_NONE &&
	       termination->device->first <= hf_time_add(opened_at, HF_LINE_LATE);
}

/* The attempt that terminated had started before the incident opened. */
static bool is_older_attempt(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_slot *slot = &b->roles[termination->role].slots[termination->index];

	/* A restart of this container within the incident was already counted, so its next
	 * termination is another fault.  Exception: evidence of infrastructure or a device is the
	 * cause of the whole incident. */
	if (slot->covered && !hf_termination_outranks(termination))
		return false;
	if (termination->kind == HF_TERMINATION_RESTARTED)
		return true;
	/* The pod is gone, and its stamps with it.  The termination belongs to the incident as long
	 * as not all ranks run again. */
	if (!termination->pod)
		return b->ledger.records_len > 0 && b->ledger.records[0].running_at == HF_TIME_NONE;
	return hf_slot_incident(b, slot, termination->pod) < b->ledger.incident.id ||
	       is_fault_older(b, termination);
}

/* All ranks have run again, and now a rank is taken away, its device fails or its node is lost: that is another fault. It also
 * stops ranks that have started since, and the open incident does not cover these. Exceptions:
 *
 * - The node was silent when the incident opened, or the incident took a rank of this node before: the loss is reported late.
 * - In the first minute after a failure of the application, such evidence may still be its cause, unless the eviction was
 *   requested after that failure.
 *
 * A device that had failed before the incident opened is the same fault, and charges nothing (hf_incident_is_same_fault). */
static bool is_next_fault(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_incident *incident = &b->ledger.incident;
	const struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len == 0 || last->incident != incident->id ||
	    last->running_at == HF_TIME_NONE || !termination->pod ||
	    hf_class_is_application(termination->cls) ||
	    termination->kind == HF_TERMINATION_RESTARTED)
		return false;
	if (is_fault_older(b, termination))
		return !hf_class_is_application(incident->cause);
	if (termination->kind == HF_TERMINATION_LOST || termination->lost)
		return !hf_streq(last->node, termination->pod->node) &&
		       !hf_node_loss_precedes(b, termination, hf_incident_time(b));
	return !hf_class_is_application(incident->cause) || incident->opened_at == HF_TIME_NONE ||
	       termination->pod->deleted_at > incident->opened_at ||
	       b->now > hf_time_add(incident->opened_at, hf_seconds(SEEN_LATE_SECONDS));
}

/* The infrastructure was charged for this record, and its incident may still have ends. */
static bool was_charged(const struct hf_brain *b, const struct hf_record *record)
{
	hf_time at = record->running_at != HF_TIME_NONE ? record->running_at : record->detected_at;

	return record->cause == HF_CLASS_INFRASTRUCTURE && record->decided_at != HF_TIME_NONE &&
	       !hf_streq(record->reason, HF_REASON_STRAY) && at != HF_TIME_NONE &&
	       b->now < hf_time_add(at, hf_seconds(b->job.recovery.incident_seconds));
}

static bool is_of_charged_node(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_pod *pod = termination->pod;
	int64_t stamp;

	if (!pod || hf_str_is_empty(pod->node) || termination->cls != HF_CLASS_INFRASTRUCTURE ||
	    termination->kind == HF_TERMINATION_RESTARTED ||
	    termination->kind == HF_TERMINATION_LOST || termination->lost)
		return false;
	stamp = hf_slot_incident(b, &b->roles[termination->role].slots[termination->index], pod);
	for (size_t i = 0; i < b->ledger.records_len; i++) {
		const struct hf_record *record = &b->ledger.records[i];

		if (stamp < record->incident && hf_streq(record->node, pod->node) &&
		    was_charged(b, record))
			return true;
	}
	return false;
}

bool hf_incident_is_same_fault(const struct hf_brain *b, const struct hf_termination *termination)
{
	return is_of_charged_node(b, termination) ||
	       (termination->pod && termination->kind != HF_TERMINATION_RESTARTED &&
		hf_incident_is_open(b) && is_fault_older(b, termination) &&
		!hf_class_is_application(b->ledger.incident.cause));
}

bool hf_incident_covers(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_slot *slot = &b->roles[termination->role].slots[termination->index];

	if (!hf_incident_is_open(b) || is_ignored(&b->ledger.incident))
		return false;
	/* The termination of the container opened the incident; the end of its pod is the same
	 * termination. */
	if (termination->counted && !hf_termination_outranks(termination))
		return true;
	if (is_next_fault(b, termination))
		return false;
	/* If the node was still heard of after the application had failed, its loss is another
	 * fault. */
	if (hf_class_is_application(b->ledger.incident.cause) &&
	    !hf_node_loss_precedes(b, termination, hf_incident_time(b)))
		return false;
	/* Peers of a lost node crash again and again until its rank runs: all that is one fault. */
	if (slot->covered && termination->kind == HF_TERMINATION_RESTARTED)
		return is_loss_being_mended(b) || is_loss_suspected(b);
	return is_older_attempt(b, termination);
}

bool hf_termination_is_ignored(const struct hf_termination *termination)
{
	return termination->fate == HF_FATE_RESTART && termination->budget == HF_BUDGET_NONE &&
	       hf_class_is_application(termination->cls);
}

bool hf_termination_outranks(const struct hf_termination *termination)
{
	/* A missing pod is no evidence of its cause.  Its incident is charged to infrastructure,
	 * but it does not replace a cause that was seen. */
	return termination->evidence &&
	       (termination->cls == HF_CLASS_INFRASTRUCTURE ||
		termination->cls == HF_CLASS_DEVICE || termination->cls == HF_CLASS_ADMISSION);
}

/* Write into the record how the kind's own container ended, although the kubelet starts it again.
 * People and the exit code of `holdfast run` use it; no decision does. */
static void record_last_exit(const struct hf_brain *b, const struct hf_termination *termination,
			     struct hf_record *record)
{
	const struct hf_container_seen *own =
		hf_own_container(b, termination->role, termination->pod);
	struct hf_container_termination last;

	if (!own)
		return;
	last = hf_container_last_termination(own);
	if (!last.exit_code.set)
		return;
	record->exit_code = last.exit_code;
	if (last.signal > 0)
		record->signal = HF_SOME_INT(last.signal);
}

/* The text for the record: the node's message for the record's reason, else the program's own
 * termination message; NULL if there is neither. */
static const char *find_message(const struct hf_brain *b, const struct hf_termination *termination,
				const char *reason)
{
	const char *message = NULL;

	if (!termination->pod)
		return NULL;
	/* A plain failure has no reason that says more, so the program's own message is used. */
	if (!reason)
		message = termination->status_message;
	else if (hf_streq(reason, termination->pod->reason))
		message = termination->pod->message;
	else if (hf_streq(reason, termination->status_reason))
		message = termination->status_message;
	return hf_str_is_empty(message) ? NULL : hf_status_message_clean(b->arena, message);
}

static bool is_seen_late(const struct hf_record *record, const struct hf_termination *termination)
{
	return termination->finished_at != HF_TIME_NONE && record->detected_at != HF_TIME_NONE &&
	       hf_elapsed(termination->finished_at, record->detected_at) >
		       hf_seconds(SEEN_LATE_SECONDS);
}

/* The lost node of the pod, if it is known when the control plane called the node Unknown.  The loss of the
 * ranks on the node costs the time since then too, until it is detected.  NULL: the node is not lost, or a
 * peer's termination was detected first. */
static const struct hf_node_seen *find_unknown_node(const struct hf_brain *b,
						    const struct hf_termination *termination,
						    hf_time detected_at)
{
	const struct hf_pod *pod = termination->pod;
	bool lost = termination->kind == HF_TERMINATION_LOST || termination->lost;
	const struct hf_node *node = pod && lost ? hf_node_lost(b, pod) : NULL;

	if (!node || termination->exit_code.set || node->seen->unknown_at == HF_TIME_NONE ||
	    node->seen->unknown_at < pod->creation_time || node->seen->unknown_at > detected_at)
		return NULL;
	return node->seen;
}

/* Write into the record which rank terminated, and how. */
static void record_end(const struct hf_brain *b, const struct hf_termination *termination,
		       struct hf_record *record)
{
	const struct hf_node_seen *node = find_unknown_node(b, termination, record->detected_at);

	record->replica =
		hf_rank_name(b->arena, b->roles[termination->role].type, termination->index);
	record->reason = hf_termination_reason(termination);
	record->message = find_message(b, termination, record->reason);
	record->exit_code = termination->exit_code;
	record->signal = termination->signal;
	if (termination->matched_code != 0)
		record->exit_code = HF_SOME_INT(termination->matched_code);
	record->pod = termination->pod ? termination->pod->name : NULL;
	record->node = termination->pod ? termination->pod->node : NULL;
	/* endedAt is a time of the node's clock, which may be ahead.  The operator's time is the
	 * API server's, in whole seconds, so endedAt is limited to it. */
	record->ended_at = termination->process || is_seen_late(record, termination)
				   ? termination->finished_at
			   : node ? node->unknown_at
				  : HF_TIME_NONE;
	if (record->ended_at > b->now)
		record->ended_at = b->now;
	record->device = termination->cls == HF_CLASS_DEVICE ? termination->device->id : NULL;
	if (termination->pod && termination->kind == HF_TERMINATION_RESTARTED)
		record_last_exit(b, termination, record);
	if (termination->rule >= 0)
		record->rule = hf_str_or(b->view->run_policy.rules[termination->rule].name,
					 hf_arena_printf(b->arena, "#%d", termination->rule));
}

/* Add a record at the front, and drop the oldest if the list is full. */
void hf_incident_record(struct hf_brain *b, const struct hf_termination *termination)
{
	struct hf_ledger *ledger = &b->ledger;
	struct hf_record *first = &ledger->records[0];
	size_t kept =
		ledger->records_len < HF_RECORDS_MAX ? ledger->records_len : HF_RECORDS_MAX - 1;

	memmove(first + 1, first, kept * sizeof(*first));
	ledger->records_len = kept + 1;
	/* The ledger has room for one node's message: only the newest record keeps it. */
	if (kept > 0)
		first[1].message = NULL;
	*first = (struct hf_record){
		.generation = ledger->generation,
		.incident = ledger->incident.id,
		.cause = ledger->incident.cause,
		.detected_at = b->now,
		.decided_at = HF_TIME_NONE,
		.running_at = HF_TIME_NONE,
		.ended_at = HF_TIME_NONE,
		.down_at = HF_TIME_NONE,
		.stepped_at = HF_TIME_NONE,
	};
	if (termination)
		record_end(b, termination, first);
}

void hf_incident_ensure_record(struct hf_brain *b, const struct hf_termination *termination)
{
	hf_assert(b->ledger.incident.id > 0);
	if (b->ledger.records_len > 0)
		return;
	if (b->ledger.incident.cause == HF_CLASS_NONE)
		b->ledger.incident.cause = termination->cls;
	hf_incident_record(b, termination);
	b->ledger.records[0].decided_at = b->now;
}

/* Since when the rank has done no work, as far as is known; NONE: since its termination was detected. */
static hf_time find_idle_since(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_record *record = &b->ledger.records[0];
	const struct hf_node_seen *node = find_unknown_node(b, termination, record->detected_at);

	if (termination->kind == HF_TERMINATION_HUNG)
		return hf_progress_idle_since(b);
	if (node && record->ended_at == node->unknown_at)
		return hf_node_silent_since(node);
	return record->ended_at;
}

/* The time of the first rank that stopped counts. */
static void note_idle(struct hf_brain *b, const struct hf_termination *termination)
{
	hf_time since = find_idle_since(b, termination);

	if (since != HF_TIME_NONE && (b->idle_since == HF_TIME_NONE || since < b->idle_since))
		b->idle_since = since;
}

void hf_incident_open(struct hf_brain *b, const struct hf_termination *termination,
		      enum hf_class cause, enum hf_budget budget)
{
	struct hf_incident *incident = &b->ledger.incident;

	hf_assert(cause != HF_CLASS_NONE && cause != HF_CLASS_OURS);
	incident->id++;
	incident->opened_at = b->now;
	incident->cause = cause;
	incident->charged = budget;
	/* After a failure the other ranks wait for the failed one in vain, and cannot save.  A restart that a person asks for
	 * has no termination: ranks that save go on. */
	if (termination)
		b->ledger.save_until = HF_TIME_NONE;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++)
			b->roles[r].slots[i].covered = false;
	}
	hf_incident_record(b, termination);
	if (termination)
		note_idle(b, termination);
	if (budget == HF_BUDGET_PENDING)
		return;
	b->ledger.records[0].decided_at = b->now;
	hf_budget_charge(b, budget);
}

void hf_incident_set_cause(struct hf_brain *b, const struct hf_termination *termination)
{
	struct hf_ledger *ledger = &b->ledger;

	hf_assert(ledger->incident.id > 0);
	ledger->incident.cause = termination->cls;
	/* The record of the open incident names the cause, not the first rank that terminated
	 * because of it. */
	if (ledger->records_len == 0 || ledger->records[0].incident != ledger->incident.id)
		return;
	ledger->records[0].cause = termination->cls;
	record_end(b, termination, &ledger->records[0]);
}

bool hf_incident_adopt(struct hf_brain *b, const struct hf_termination *termination)
{
	struct hf_incident *incident = &b->ledger.incident;
	enum hf_budget budget = hf_termination_budget(termination);

	hf_assert(hf_termination_outranks(termination) && incident->id > 0 &&
		  budget <= HF_BUDGET_NONE);
	/* An incident with a cause other than the application's keeps its cause. */
	if (!hf_class_is_application(incident->cause))
		return true;
	hf_incident_set_cause(b, termination);
	if (incident->charged != HF_BUDGET_APPLICATION)
		return true;
	if (!hf_budget_allows(b, budget))
		return false;
	/* The next rank of a node costs nothing, but a charge that was made moves: the sum of charges never falls. */
	if (termination->same_fault)
		budget = hf_class_budget(termination->cls);
	if (!hf_budget_allows(b, budget))
		return true;
	/* Any client may have edited the counter, so it may be 0 already. */
	if (b->ledger.restarts[HF_BUDGET_APPLICATION] > 0)
		b->ledger.restarts[HF_BUDGET_APPLICATION]--;
	hf_budget_charge(b, budget);
	return true;
}
