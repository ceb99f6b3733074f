/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * Evidence that arrives after its incident was opened: a node turns out to be lost, or a device
 * turns out to have failed.  As long as the incident has an application's cause and not all ranks
 * run again, it takes the new cause, and its charge moves to that budget.  Writes: the ledger's
 * incident and verdict.
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
