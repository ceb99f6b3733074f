/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * All ranks as one generation.  The new generation is written first; whatever carries an older
 * one is then ours to delete and never counted; nothing of the new one is created while a pod of
 * an older one exists (hf_brain.older_pods, honoured in pods.c).
 */
void hf_gang_restart(struct hf_brain *b)
{
	hf_assert(b->ledger.present);
	/* Pods that were taken over without stamps count as generation 0; what follows must be
	 * told apart from a first generation, whose rendezvous has the plain id. */
	b->ledger.generation = b->ledger.generation == 0 ? 2 : b->ledger.generation + 1;
	/* From here on, what has no stamps is of an older one. */
	b->ledger.phase = HF_PHASE_TEARING;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			/* Ranks that succeeded run again: the others start from the checkpoint,
			 * and there is nobody to talk to without them. */
			slot->created = slot->succeeded = slot->trained = slot->covered = false;
			slot->seen = 0;
		}
	}
	hf_ranks_refresh(b);
	hf_assert(b->ledger.generation > 1);
}
