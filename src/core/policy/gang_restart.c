/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * Restart all ranks as one generation, in new pods or in the present ones.
 *
 * In new pods: the new generation is written first.  From then on the operator deletes each pod of
 * an older generation, and never counts its termination.  No pod of the new generation is created
 * while an older one exists (hf_brain.older_pods, checked in actions/pods.c).
 *
 * In place: the pods stay.  Every rank is held: the agents stop its process and start the next one
 * only when no rank is held any more (barrier.c).  If the pod of a rank cannot stay, the rank gets
 * a new pod, which is held as well.
 */

void hf_gang_restart(struct hf_brain *b)
{
	hf_assert(b->ledger.present);
	/* A job that was taken over from upstream's operator has pods without stamps, in generation
	 * 0.  Its next generation is 2: generation 1 is the first generation of a new job, which
	 * has the plain rendezvous id. */
	b->ledger.generation = b->ledger.generation == 0 ? 2 : b->ledger.generation + 1;
	/* In this phase a pod without stamps counts as a pod of an older generation. */
	b->ledger.phase = HF_PHASE_TEARING;
	b->ledger.in_place_base = b->ledger.in_place_incident = 0;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			/* Ranks that had succeeded run again: the other ranks continue from the
			 * checkpoint and need them as peers. */
			slot->created = slot->succeeded = slot->trained = slot->covered = false;
			slot->held = slot->fell = false;
			slot->seen = slot->init_seen = slot->in_place = slot->in_place_since = 0;
		}
	}
	hf_ranks_refresh(b);
	hf_assert(b->ledger.generation > 1);
}

/* If the pod stays, keep the counts of its terminations.  Otherwise begin a new attempt in a new
 * pod. */
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

	/* hf_in_place_rank reads the present generation, so all ranks are asked before it is
	 * raised. */
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
	const char *refusal = in_place ? NULL : hf_in_place_refusal(b);

	if (refusal)
		hf_event(b, false, "PodsReplaced",
			 hf_arena_printf(b->arena, "all pods are re-created: %s", refusal));
	if (in_place)
		restart_all_in_place(b);
	else
		hf_gang_restart(b);
	return in_place;
}
