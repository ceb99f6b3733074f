/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * Restart all ranks as one generation, in new pods or in the present ones.  The new generation is
 * written first.  From then on a pod of an older generation is the operator's to delete, and its
 * termination is never counted.  No pod of the new generation is created while an older one exists
 * (hf_brain.older_pods, checked in actions/pods.c).
 *
 * In place the pods stay.  Every rank is held: the agents stop its process and start the next one
 * only when no rank is held any more (barrier.c).  A rank whose pod cannot stay gets a new one,
 * which is held as well.
 */
void hf_gang_restart(struct hf_brain *b)
{
	hf_assert(b->ledger.present);
	/* Pods without stamps that were taken over count as generation 0.  The next generation
	 * must differ from a first generation, which has the plain rendezvous id. */
	b->ledger.generation = b->ledger.generation == 0 ? 2 : b->ledger.generation + 1;
	/* From now on a pod without stamps is of an older generation. */
	b->ledger.phase = HF_PHASE_TEARING;
	b->ledger.in_place_base = b->ledger.in_place_incident = 0;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			/* Ranks that succeeded run again: the other ranks start from the
			 * checkpoint and need them as peers. */
			slot->created = slot->succeeded = slot->trained = slot->covered = false;
			slot->held = slot->fell = false;
			slot->seen = slot->init_seen = slot->in_place = slot->in_place_since = 0;
		}
	}
	hf_ranks_refresh(b);
	hf_assert(b->ledger.generation > 1);
}

/* The pod stays, with what was counted of its containers; or the rank gets a new one. */
static void hold_rank(struct hf_slot *slot, bool stays, bool wanted)
{
	slot->succeeded = slot->trained = slot->covered = false;
	slot->held = wanted;
	if (stays) {
		slot->created = true;
		return;
	}
	slot->attempt++;
	slot->in_place = slot->in_place_since = slot->seen = slot->init_seen = 0;
	slot->created = slot->fell = false;
}

static void restart_all_in_place(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	bool *stays[HF_ROLES_MAX];

	/* Each answer rests on the generation of before. */
	for (int r = 0; r < b->roles_len; r++) {
		stays[r] = HF_ARENA_ARRAY(b->arena, bool, (size_t)b->roles[r].slots_len + 1);
		for (int32_t i = 0; i < b->roles[r].replicas; i++)
			stays[r][i] = hf_in_place_rank(b, r, i) == HF_IN_PLACE_STAYS;
	}
	if (ledger->in_place_base == 0)
		ledger->in_place_base = ledger->generation;
	ledger->generation++;
	ledger->in_place_incident = ledger->incident.id;
	ledger->in_place_at = b->now;
	ledger->phase = HF_PHASE_TEARING;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++)
			hold_rank(&b->roles[r].slots[i], stays[r][i], i < b->roles[r].replicas);
	}
	hf_ranks_refresh(b);
}

bool hf_gang_restart_any(struct hf_brain *b)
{
	bool in_place = b->ledger.generation > 0 && hf_in_place_allows_all(b);

	if (in_place)
		restart_all_in_place(b);
	else
		hf_gang_restart(b);
	return in_place;
}
