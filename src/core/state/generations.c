/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "core/model/ledger_text_internal.h"

/*
 * Finds the pods of the present generation and attempt, and how far each rank's pod has come. Runs
 * after the ledger is loaded, and again after the generation or an attempt was raised.  Writes the
 * slots' `current` and `phase`, and takes over stamps that are higher than the ledger's.
 */

/* The phase of a pod that has not ended.  If all its containers are terminated, the kubelet is
 * about to write the pod's phase and reason, and a failure waits for them. */
static enum hf_slot_phase find_phase(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	const struct hf_container_seen *own = hf_own_container(b, role, pod);

	if (own && hf_container_is_over(own) && own->exit_code == 0)
		return HF_SLOT_TRAINED;
	if (own && hf_container_is_over(own))
		return hf_pod_goes_on(pod, own) ? HF_SLOT_BROKEN : HF_SLOT_ENDED;
	/* If the kubelet has reported no containers, the pod's own phase decides. */
	if (own && (own->phase == HF_CONTAINER_WAITING || own->phase == HF_CONTAINER_TERMINATED))
		return HF_SLOT_STARTING;
	return pod->phase == HF_POD_RUNNING ? HF_SLOT_RUNNING : HF_SLOT_STARTING;
}

/* The phase of a rank with a running own container.  Under exec the process decides.  If no
 * agent has reported the process of a rank that may start, the rank counts as running after two
 * seconds. */
static enum hf_slot_phase find_process_phase(const struct hf_brain *b, int role,
					     const struct hf_slot *slot)
{
	const struct hf_process_seen *process = hf_slot_process(b, role, slot);
	bool reached = process && hf_slot_is_reached(b, slot, process);
	bool waits = process && process->phase != HF_PROCESS_RUNNING;
	hf_time presumed_at;

	if (slot->held)
		return HF_SLOT_STARTING;
	if (reached && process->phase == HF_PROCESS_ENDED)
		return HF_SLOT_BROKEN;
	if (reached && process->phase == HF_PROCESS_RUNNING)
		return HF_SLOT_RUNNING;
	if (!waits && hf_slot_has_new_pod(b, slot))
		return HF_SLOT_RUNNING;
	presumed_at = hf_slot_presumed_at(b);
	if (b->now >= presumed_at)
		return HF_SLOT_RUNNING;
	hf_wake(b, presumed_at);
	return HF_SLOT_STARTING;
}

static enum hf_slot_phase phase_of(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	const struct hf_pod *pod = slot->pod;
	enum hf_slot_phase phase;

	if (!slot->current || pod->deletion_time != HF_TIME_NONE)
		return HF_SLOT_ABSENT;
	if (pod->phase == HF_POD_SUCCEEDED || pod->phase == HF_POD_FAILED)
		return HF_SLOT_ENDED;
	phase = find_phase(b, role, pod);
	return phase == HF_SLOT_RUNNING && pod->stamped ? find_process_phase(b, role, slot) : phase;
}

/*
 * Take over stamps of pods that are higher than the ledger's numbers.  Either the ledger was erased
 * or reset, or the operator's view of the job is older than the pods.  In both cases the stamps are
 * right.  If the view is old, the guarded patch of the status is refused and nothing else happens.
 */
static void adopt_stamps(struct hf_brain *b, int role, int32_t index)
{
	struct hf_slot *slot = &b->roles[role].slots[index];

	if (!slot->pod || !slot->pod->stamped || hf_cond_finished(b))
		return;
	/* A stamp above HF_STAMP_MAX was edited by hand.  The pod belongs to no attempt: it is
	 * deleted, and nothing is charged. */
	if (slot->pod->generation > HF_STAMP_MAX || slot->pod->attempt > HF_STAMP_MAX) {
		slot->created = false;
		return;
	}
	if (slot->pod->generation > b->ledger.generation) {
		b->ledger.generation = slot->pod->generation;
		b->ledger.in_place_base = b->ledger.in_place_incident = 0;
		for (int r = 0; r < b->roles_len; r++) {
			for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
				b->roles[r].slots[i].created = false;
				b->roles[r].slots[i].succeeded = false;
				b->roles[r].slots[i].trained = false;
				b->roles[r].slots[i].held = false;
				b->roles[r].slots[i].in_place = 0;
				b->roles[r].slots[i].in_place_since = 0;
			}
		}
	}
	if (slot->pod->generation == b->ledger.generation && slot->pod->attempt > slot->attempt) {
		slot->attempt = slot->pod->attempt;
		slot->in_place = slot->in_place_since = 0;
		slot->created = slot->trained = false;
		hf_slot_count_all(b, role, slot, slot->pod);
	}
}

/* The pod belongs to an older generation, so it keeps the new generation from starting.  A restart
 * of all ranks in place keeps the pods.  Then only two kinds count: a pod that was given up and is
 * not gone yet, and a rank with a process that is not known to be down. */
static bool is_older(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	const struct hf_pod *pod = slot->pod;

	if (!pod->stamped)
		return b->ledger.phase == HF_PHASE_TEARING && !slot->current;
	if (slot->current)
		return slot->held && hf_barrier_is_of_all(b) && !hf_slot_has_new_pod(b, slot) &&
		       !hf_slot_is_down(b, role, slot);
	return pod->generation < b->ledger.generation &&
	       ((b->barrier && hf_barrier_is_of_all(b)) ||
		pod->generation < b->ledger.in_place_base || b->ledger.in_place_base == 0);
}

static bool is_any_held(const struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			if (b->roles[r].slots[i].held)
				return true;
		}
	}
	return false;
}

void hf_ranks_refresh(struct hf_brain *b)
{
	b->older_pods = 0;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++)
			adopt_stamps(b, r, i);
	}
	b->barrier = is_any_held(b);
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];
			const struct hf_pod *pod = slot->pod;

			slot->current = false;
			slot->phase = HF_SLOT_ABSENT;
			if (!pod)
				continue;
			slot->current = hf_slot_is_current(b, slot, pod);
			b->older_pods += is_older(b, r, slot);
			slot->phase = phase_of(b, r, slot);
		}
	}
}
