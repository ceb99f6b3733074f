/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * Evidence that arrives after its incident was opened: a node turns out to be lost, a device turns
 * out to have failed, or another rank turns out to have failed first.  As long as the incident has
 * an application's cause and not all ranks run again, it takes the new cause, and its charge moves
 * to that budget.  Writes: the ledger's incident and verdict.
 */

void hf_late_node_adopt(struct hf_brain *b)
{
	const struct hf_ledger *ledger = &b->ledger;
	const struct hf_incident *incident = &ledger->incident;
	struct hf_termination cause;

	if (!hf_incident_is_open(b) || incident->opened_at == HF_TIME_NONE ||
	    ledger->records_len == 0 || hf_verdict_pending(b) ||
	    !hf_class_is_application(incident->cause) ||
	    !hf_node_loss_suspect(b, incident->id, hf_incident_time(b), &cause))
		return;
	if (!hf_node_loss_cause(b, incident->id, hf_incident_time(b), &cause)) {
		hf_ask(b, HF_ASK_LEASE, cause.pod->node);
		hf_say(b, b->now, HF_TOPIC_NEXT,
		       "incident %lld is attributed to node %s if that node counts as lost, after "
		       "%lld s without a sign of life (nodeLost.afterSeconds)",
		       (long long)incident->id, cause.pod->node,
		       (long long)b->job.recovery.node_lost_after_seconds);
		return;
	}
	if (!hf_incident_adopt(b, &cause)) {
		enum hf_budget budget = hf_class_budget(cause.cls);

		hf_verdict_set(b, hf_budget_verdict(budget), hf_budget_message(b, budget));
	}
}

/* A stand-in for the pod that the record names, which is gone, with the device that was reported
 * late. */
static const struct hf_pod *make_past_pod(const struct hf_brain *b, const struct hf_record *record,
					  const struct hf_late_seen *late)
{
	struct hf_pod *pod = HF_ARENA_NEW(b->arena, struct hf_pod);

	*pod = (struct hf_pod){.name = record->pod,
			       .node = record->node,
			       .creation_time = HF_TIME_NONE,
			       .start_time = HF_TIME_NONE,
			       .deletion_time = HF_TIME_NONE,
			       .deleted_at = HF_TIME_NONE,
			       .bound_at = HF_TIME_NONE,
			       .news_at = HF_TIME_NONE,
			       .unwell_at = HF_TIME_NONE,
			       .own_ended_at = HF_TIME_NONE,
			       .devices = &late->device,
			       .devices_len = 1};
	return pod;
}

static const struct hf_late_seen *find_late(const struct hf_brain *b,
					    const struct hf_record *record)
{
	const struct hf_late_seen *best = NULL;

	for (size_t i = 0; i < b->seen->late_len; i++) {
		const struct hf_late_seen *late = &b->seen->late[i];

		if (hf_streq(late->pod, record->pod) && hf_streq(late->node, record->node) &&
		    late->device.fatal && !late->device.over &&
		    hf_device_is_better(&late->device, best ? &best->device : NULL))
			best = late;
	}
	return best;
}

void hf_late_device_adopt(struct hf_brain *b)
{
	const struct hf_record *record = &b->ledger.records[0];
	struct hf_termination termination = {
		.kind = HF_TERMINATION_FAILED,
		.rule = -1,
		.cls = HF_CLASS_DEVICE,
		.finished_at = b->ledger.records_len > 0 ? record->ended_at : HF_TIME_NONE};
	const struct hf_late_seen *late;

	/* A termination for want of memory explains itself, so no device replaces its cause
	 * (classify.c). */
	if (b->ledger.incident.id == 0 || b->ledger.records_len == 0 ||
	    b->ledger.incident.cause == HF_CLASS_OUT_OF_MEMORY ||
	    record->running_at != HF_TIME_NONE || hf_verdict_pending(b) ||
	    !hf_class_is_application(b->ledger.incident.cause) || !record->pod)
		return;
	late = find_late(b, record);
	if (!late || !hf_rank_find(b, record->pod, &termination.role, &termination.index))
		return;
	termination.pod = make_past_pod(b, record, late);
	termination.device = &late->device;
	termination.evidence = true;
	termination.exit_code = record->exit_code;
	termination.signal = record->signal;
	if (!hf_incident_adopt(b, &termination))
		hf_verdict_set(b, hf_budget_verdict(HF_BUDGET_DEVICE),
			       hf_budget_message(b, HF_BUDGET_DEVICE));
}

/* ---- an end that is reported late ------------------------------------------------------------- */

/* The end of the process for which the rank is held: the restart of all ranks stops the start before
 * the ledger's present one. */
static const struct hf_process_seen *find_stopped_end(const struct hf_brain *b, int role,
						      const struct hf_slot *slot)
{
	const struct hf_process_seen *process = slot->held ? hf_slot_process(b, role, slot) : NULL;

	return process && process->phase == HF_PROCESS_ENDED &&
			       process->generation == b->ledger.generation - 1 &&
			       process->attempt == slot->attempt
		       ? process
		       : NULL;
}

/* If the termination explains the failure of the first rank in the record, make it the incident's
 * cause. */
static void adopt_if_earlier(struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_record *record = &b->ledger.records[0];

	if (termination->process && termination->finished_at != HF_TIME_NONE &&
	    termination->finished_at < record->ended_at &&
	    hf_class_is_application(termination->cls) && !hf_termination_outranks(termination))
		hf_incident_set_cause(b, termination);
}

/*
 * A peer of a failed rank fails a moment later.  If the agent of the failed rank is away at that
 * time, the peer is reported first, and its end opens the incident.  Only the record changes: both
 * ends are of the application, and ranks restart already.
 */
void hf_late_end_adopt(struct hf_brain *b)
{
	const struct hf_ledger *ledger = &b->ledger;
	const struct hf_record *record = &ledger->records[0];

	if (ledger->incident.id == 0 || ledger->records_len == 0 ||
	    record->incident != ledger->incident.id || record->ended_at == HF_TIME_NONE ||
	    record->running_at != HF_TIME_NONE || hf_verdict_pending(b) ||
	    !hf_class_is_application(ledger->incident.cause))
		return;
	for (size_t i = 0; i < b->terminations_len; i++) {
		if (hf_incident_covers(b, &b->terminations[i]))
			adopt_if_earlier(b, &b->terminations[i]);
	}
	if (!hf_streq(record->scope, "Job") || record->generation != ledger->generation)
		return;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_process_seen *process =
				find_stopped_end(b, r, &b->roles[r].slots[i]);
			struct hf_termination termination;

			if (!process)
				continue;
			hf_termination_of_process(b, r, i, process, &termination);
			adopt_if_earlier(b, &termination);
		}
	}
}
