/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * Restart all ranks as one generation.  The new generation is written first.  From then on a pod
 * of an older generation is the operator's to delete, and its termination is never counted.  No
 * pod of the new generation is created while an older one exists (hf_brain.older_pods, checked in
 * actions/pods.c).
 */
void hf_gang_restart(struct hf_brain *b)
{
	hf_assert(b->ledger.present);
	/* Pods without stamps that were taken over count as generation 0.  The next generation
	 * must differ from a first generation, which has the plain rendezvous id. */
	b->ledger.generation = b->ledger.generation == 0 ? 2 : b->ledger.generation + 1;
	/* From now on a pod without stamps is of an older generation. */
	b->ledger.phase = HF_PHASE_TEARING;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			/* Ranks that succeeded run again: the other ranks start from the
			 * checkpoint and need them as peers. */
			slot->created = slot->succeeded = slot->trained = slot->covered = false;
			slot->seen = 0;
		}
	}
	hf_ranks_refresh(b);
	hf_assert(b->ledger.generation > 1);
}
