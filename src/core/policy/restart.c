/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * Restart one rank, and what every restart does: report it, retire ranks beyond the replicas, empty
 * a ledger that is too large.  Writes: the slots' attempts and bits.
 */

/* Begin the rank's next attempt in a new pod.  The previous attempt's pod is not current any more:
 * actions/pods.c deletes it, and creates the new pod when the name is free. */
void hf_restart_replica(struct hf_brain *b, int role, int32_t index)
{
	struct hf_slot *slot = &b->roles[role].slots[index];

	hf_assert(role < b->roles_len && index < b->roles[role].slots_len);
	hf_assert(!slot->succeeded);
	slot->attempt++;
	slot->in_place = slot->in_place_since = 0;
	slot->seen = slot->init_seen = 0;
	slot->created = slot->trained = slot->covered = slot->current = false;
	/* During a restart of all ranks in place, the new pod of a held rank is held as well. */
	slot->held = slot->held && hf_barrier_is_of_all(b);
	slot->phase = HF_SLOT_ABSENT;
}

/* Begin the rank's next attempt in its present pod, and keep the counts of that pod's terminations.
 * The rank is held until its process is down and the delay is over. */
static void restart_in_place(struct hf_brain *b, int role, int32_t index)
{
	struct hf_slot *slot = &b->roles[role].slots[index];
	const struct hf_process_seen *process = hf_slot_process(b, role, slot);

	hf_assert(process && slot->current && !slot->succeeded);
	slot->held = process->phase != HF_PROCESS_ENDED ||
		     (b->ledger.not_before != HF_TIME_NONE && b->now < b->ledger.not_before);
	b->ledger.in_place_at = b->now;
	slot->attempt++;
	slot->in_place++;
	slot->in_place_since = b->ledger.incident.id;
	slot->covered = slot->trained = false;
	slot->phase = HF_SLOT_STARTING;
}

bool hf_restart_replica_any(struct hf_brain *b, int role, int32_t index)
{
	bool in_place = hf_in_place_allows_rank(b, role, index);

	if (in_place)
		restart_in_place(b, role, index);
	else
		hf_restart_replica(b, role, index);
	return in_place;
}

void hf_restart_tell(struct hf_brain *b, enum hf_class cause)
{
	hf_assert(b->ledger.incident.id > 0);
	hf_cause_event(b);
	b->plan->metrics[HF_METRIC_RESTARTED]++;
	b->plan->metrics[HF_METRIC_RESTARTS]++;
	b->plan->restart_cause = cause;
}

/* Ranks beyond the replicas begin a new attempt.  So the operator deletes their pods, even if the
 * job grows again before the pods are gone. */
void hf_restart_retire_ranks(struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		/* Pods of a type that was removed from the spec stay as they are. */
		for (int32_t i = b->roles[r].replicas;
		     b->roles[r].present && i < b->roles[r].slots_len; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			if (slot->current) {
				hf_job_save_request(b);
				slot->attempt++;
			}
			slot->in_place = slot->in_place_since = 0;
			slot->held = false;
			slot->seen = slot->init_seen = 0;
			slot->created = slot->trained = slot->covered = slot->current = false;
			slot->phase = HF_SLOT_ABSENT;
		}
	}
}

/* If the ledger is too large, restart all ranks, and begin all attempts from 0 again.  Only a job
 * of thousands of ranks that restart one by one needs this: its list of attempts does not shorten
 * to ranges. */
void hf_restart_when_too_large(struct hf_brain *b)
{
	hf_ledger_write(b);
	if (hf_ledger_bytes(&b->ledger) <= HF_LEDGER_BYTES_MAX)
		return;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++)
			b->roles[r].slots[i].attempt = 0;
	}
	hf_gang_restart(b);
	/* The list may be empty: no record is written for a pod with an init container that waited
	 * in vain. */
	if (b->ledger.records_len > 0) {
		b->ledger.records_len = 1;
		b->ledger.records[0].scope = "Job";
		b->ledger.records[0].generation = b->ledger.generation;
	}
	b->plan->restart_scope = HF_SCOPE_JOB;
	hf_say(b, b->now, HF_TOPIC_DECISION,
	       "the ledger has outgrown its limit: all ranks restart, and the ledger begins anew");
}
