/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/compare.h"
#include "core/model/names.h"

#include <stdlib.h>

/*
 * Fills the slots of all ranks, from the ledger's texts and the objects seen.
 */

struct place {
	int role; /* -1: no replica's name */
	int32_t index;
};

static struct place find_place(const struct hf_brain *b, const char *name)
{
	struct place place = {.role = -1, .index = -1};

	if (!hf_rank_find(b, name, &place.role, &place.index))
		place.role = -1;
	return place;
}

static void extend_slots(struct hf_brain *b, struct place place)
{
	if (place.role >= 0 && place.index >= b->roles[place.role].slots_len)
		b->roles[place.role].slots_len = place.index + 1;
}

/* Put a pod into the slot of its rank.  If the job and another owner each have a pod of that name,
 * the slot's `pod` is the job's. */
static void put_pod(struct hf_brain *b, const struct hf_pod *pod, struct place place)
{
	struct hf_slot *slot;

	if (place.role < 0) {
		if (pod->owned)
			b->strays[b->strays_len++] = pod;
		return;
	}
	slot = &b->roles[place.role].slots[place.index];
	if (pod->owned) {
		slot->pod = pod;
		return;
	}
	slot->pod_taken = true;
	slot->pod_holder = pod;
	slot->pod_leaving = pod->deletion_time != HF_TIME_NONE;
}

static void put_service(struct hf_brain *b, const struct hf_service_seen *service,
			struct place place)
{
	struct hf_slot *slot;

	if (place.role < 0)
		return;
	slot = &b->roles[place.role].slots[place.index];
	if (service->owned) {
		slot->service = service;
		return;
	}
	slot->service_taken = true;
	slot->service_leaving = service->terminating;
}

/* Note the last state of a pod that has disappeared: it may explain a termination.  No slot is
 * added for such a pod. */
static void put_gone(struct hf_brain *b, const struct hf_gone_seen *gone)
{
	struct place place;

	if (!gone->last)
		return;
	place = find_place(b, gone->name);
	if (place.role >= 0 && place.index < b->roles[place.role].slots_len)
		b->roles[place.role].slots[place.index].last = gone->last;
}

/* Size the lists of slots.  They cover each index that the spec, the ledger or an object names:
 * ranks beyond the replicas must be seen to be removed. */
static int size_roles(struct hf_brain *b, struct hf_error *err)
{
	const struct hf_framework *framework = b->job.framework;

	b->roles_len = framework->roles_len;
	for (int r = 0; r < b->roles_len; r++) {
		struct hf_role_slots *ranks = &b->roles[r];

		ranks->type = framework->roles[r].name;
		ranks->lower = hf_type_lower(b->arena, ranks->type);
		ranks->single = hf_has_role(framework->single_roles, r);
		ranks->present = b->job.roles[r].present;
		ranks->replicas = b->job.roles[r].replicas;
	}
	/* All types are set before the texts are read, because a message about an unreadable text
	 * names the type. */
	for (int r = 0; r < b->roles_len; r++) {
		struct hf_role_slots *ranks = &b->roles[r];
		int32_t top = -1;

		if (hf_ledger_top(&b->ledger.roles[r], ranks->type, &top, err) < 0)
			return HF_E_INVALID;
		ranks->slots_len = ranks->replicas > top + 1 ? ranks->replicas : top + 1;
	}
	return 0;
}

/*
 * Another operator created this pod while Holdfast was away and the ledger stayed.
 *
 * The remains of a given-up pod have no stamps either, if that pod was taken over from another
 * operator.  But then the attempt was raised, or the generation is being torn down, and the pod is
 * older than that decision.
 */
static bool is_newly_made(const struct hf_brain *b, const struct hf_slot *slot)
{
	const struct hf_pod *pod = slot->pod;

	if (!pod || pod->stamped || b->ledger.generation == 0)
		return false;
	if (slot->attempt == 0 && b->ledger.phase != HF_PHASE_TEARING)
		return true;
	return pod->deletion_time == HF_TIME_NONE && pod->phase != HF_POD_FAILED &&
	       b->ledger.since != HF_TIME_NONE && pod->creation_time != HF_TIME_NONE &&
	       pod->creation_time > b->ledger.since;
}

static void adopt_made(struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			if (slot->created || !is_newly_made(b, slot))
				continue;
			slot->created = true;
			hf_slot_count_all(b, r, slot, slot->pod);
		}
	}
}

/* The objects are read twice: first to find the highest index, then to fill the slots. */
int hf_ranks_load(struct hf_brain *b, struct hf_error *err)
{
	const struct hf_observed *seen = b->seen;
	struct place *pods = HF_ARENA_ARRAY(b->arena, struct place, seen->pods_len + 1);
	struct place *services = HF_ARENA_ARRAY(b->arena, struct place, seen->services_len + 1);
	int rc;

	hf_assert(b->roles_len == 0);
	rc = size_roles(b, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < seen->pods_len; i++) {
		pods[i] = find_place(b, seen->pods[i].name);
		extend_slots(b, pods[i]);
	}
	for (size_t i = 0; i < seen->services_len; i++) {
		services[i] = find_place(b, seen->services[i].name);
		extend_slots(b, services[i]);
	}
	for (int r = 0; r < b->roles_len; r++)
		b->roles[r].slots =
			HF_ARENA_ARRAY(b->arena, struct hf_slot, (size_t)b->roles[r].slots_len + 1);
	b->strays = HF_ARENA_ARRAY(b->arena, const struct hf_pod *, seen->pods_len + 1);
	for (size_t i = 0; i < seen->pods_len; i++)
		put_pod(b, &seen->pods[i], pods[i]);
	for (size_t i = 0; i < seen->services_len; i++)
		put_service(b, &seen->services[i], services[i]);
	for (size_t i = 0; i < seen->gone_len; i++)
		put_gone(b, &seen->gone[i]);
	qsort(b->strays, b->strays_len, sizeof(*b->strays), hf_compare_pointers_by_name);
	rc = hf_ledger_read(b, err);
	if (rc == 0 && b->ledger.present && !b->job.suspend)
		adopt_made(b);
	return rc;
}
