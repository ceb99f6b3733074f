/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/compare.h"
#include "base/str.h"
#include "core/model/ledger_text_internal.h"
#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

/* The ledger and the objects seen, put together: one slot per rank. */

void *hf_grow(struct hf_arena *arena, void *items, size_t len, size_t *cap, size_t size)
{
	void *grown;

	hf_assert(len <= *cap && size > 0);
	if (len < *cap)
		return items;
	*cap = *cap ? 2 * *cap : 8;
	grown = hf_arena_array(arena, *cap, size);
	if (len > 0)
		memcpy(grown, items, len * size);
	return grown;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The index behind the last dash: decimal, no leading zero. */
static bool parse_index(const char *text, int32_t *ret_index)
{
	int64_t index = 0;

	if (text[0] < '0' || text[0] > '9' || (text[0] == '0' && text[1] != '\0'))
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		index = index * 10 + (*text - '0');
		if (index >= HF_RANKS_MAX)
			return false;
	}
	*ret_index = (int32_t)index;
	return true;
}

const char *hf_rank_pod_name(struct hf_brain *b, int role, int64_t index)
{
	hf_assert(role < b->crews_len);
	return hf_framework_pod_name(b->job.framework, role, b->arena, b->view->name, index);
}

bool hf_world_find(const struct hf_brain *b, const char *name, int *ret_role, int32_t *ret_index)
{
	size_t job_len = strlen(b->view->name);

	hf_assert(name && b->crews_len > 0);
	if (strncmp(name, b->view->name, job_len) != 0 || name[job_len] != '-')
		return false;
	name += job_len + 1;
	for (int r = 0; r < b->crews_len; r++) {
		size_t len = strlen(b->crews[r].lower);

		if (strncmp(name, b->crews[r].lower, len) != 0)
			continue;
		if (b->crews[r].single
			    ? name[len] == '\0'
			    : name[len] == '-' && parse_index(name + len + 1, ret_index)) {
			if (b->crews[r].single)
				*ret_index = 0;
			*ret_role = r;
			return true;
		}
	}
	return false;
}

/* ---- slots ------------------------------------------------------------------------------------ */

struct place {
	int role; /* -1: no replica's name */
	int32_t index;
};

static struct place find_place(const struct hf_brain *b, const char *name)
{
	struct place place = {.role = -1, .index = -1};

	if (!hf_world_find(b, name, &place.role, &place.index))
		place.role = -1;
	return place;
}

static void reach(struct hf_brain *b, struct place place)
{
	if (place.role >= 0 && place.index >= b->crews[place.role].slots_len)
		b->crews[place.role].slots_len = place.index + 1;
}

/* Between one of ours and one of another owner under the same name, ours is what counts. */
static void put_pod(struct hf_brain *b, const struct hf_pod *pod, struct place place)
{
	struct hf_slot *slot;

	if (place.role < 0) {
		if (pod->owned)
			b->strays[b->strays_len++] = pod;
		return;
	}
	slot = &b->crews[place.role].slots[place.index];
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
	slot = &b->crews[place.role].slots[place.index];
	if (service->owned) {
		slot->service = service;
		return;
	}
	slot->service_taken = true;
	slot->service_leaving = service->terminating;
}

/* What stands in no slot any more may explain why: no slot is made for it. */
static void put_gone(struct hf_brain *b, const struct hf_gone_seen *gone)
{
	struct place place;

	if (!gone->last)
		return;
	place = find_place(b, gone->name);
	if (place.role >= 0 && place.index < b->crews[place.role].slots_len)
		b->crews[place.role].slots[place.index].last = gone->last;
}

/* As many slots as the spec, the ledger or an object names: what is beyond the replicas has to be
 * seen to be cleared away. */
static int size_crews(struct hf_brain *b, struct hf_error *err)
{
	const struct hf_framework *framework = b->job.framework;

	b->crews_len = framework->roles_len;
	for (int r = 0; r < b->crews_len; r++) {
		struct hf_crew *crew = &b->crews[r];

		crew->type = framework->roles[r].name;
		crew->lower = hf_type_lower(b->arena, crew->type);
		crew->single = (framework->single_roles >> r & 1u) != 0;
		crew->present = b->job.roles[r].present;
		crew->replicas = b->job.roles[r].replicas;
	}
	/* The names are there even if a text is broken: what is said of it uses them. */
	for (int r = 0; r < b->crews_len; r++) {
		struct hf_crew *crew = &b->crews[r];
		int32_t top = -1;

		if (hf_ledger_top(&b->ledger.roles[r], crew->type, &top, err) < 0)
			return HF_E_INVALID;
		crew->slots_len = crew->replicas > top + 1 ? crew->replicas : top + 1;
	}
	return 0;
}

/*
 * Under a ledger that lived on, what another operator made while we were away is the rank's pod.
 * What is left of a pod that we gave up has no stamps either, if that was taken over: then the
 * attempt has moved, or its generation is being torn down, and it was made before that was decided.
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
	for (int r = 0; r < b->crews_len; r++) {
		for (int32_t i = 0; i < b->crews[r].replicas; i++) {
			struct hf_slot *slot = &b->crews[r].slots[i];

			if (slot->created || !is_newly_made(b, slot))
				continue;
			slot->created = true;
			slot->seen = hf_pod_terminations(b, r, slot->pod);
		}
	}
}

/* Two passes over the objects: the first finds how far the indexes reach. */
int hf_world_load(struct hf_brain *b, struct hf_error *err)
{
	const struct hf_observed *seen = b->seen;
	struct place *pods = HF_ARENA_ARRAY(b->arena, struct place, seen->pods_len + 1);
	struct place *services = HF_ARENA_ARRAY(b->arena, struct place, seen->services_len + 1);
	int rc;

	hf_assert(b->crews_len == 0);
	rc = size_crews(b, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < seen->pods_len; i++) {
		pods[i] = find_place(b, seen->pods[i].name);
		reach(b, pods[i]);
	}
	for (size_t i = 0; i < seen->services_len; i++) {
		services[i] = find_place(b, seen->services[i].name);
		reach(b, services[i]);
	}
	for (int r = 0; r < b->crews_len; r++)
		b->crews[r].slots =
			HF_ARENA_ARRAY(b->arena, struct hf_slot, (size_t)b->crews[r].slots_len + 1);
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

int64_t hf_pod_restarts(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	int64_t sum = 0;

	/* A status that anybody may have written: no negative ones, and a sum that a ledger holds. */
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (pod->containers[i].restart_count > 0 &&
		    !hf_awaited_is_added(b, role, &pod->containers[i]))
			sum += pod->containers[i].restart_count;
	}
	return sum < HF_COUNTER_MAX ? sum : HF_COUNTER_MAX;
}

/* The kubelet moves restartCount with the next start.  Until then the container is Terminated, or
 * Waiting with its last termination beside it.  A container that is just being created has been counted. */
static bool is_to_start_again(const struct hf_container_seen *container)
{
	switch (container->phase) {
	case HF_CONTAINER_TERMINATED:
		return container->again == HF_AGAIN_ALWAYS ||
		       (container->again == HF_AGAIN_ON_FAILURE && container->exit_code != 0);
	case HF_CONTAINER_WAITING:
		return (container->again == HF_AGAIN_ALWAYS ||
			container->again == HF_AGAIN_ON_FAILURE) &&
		       container->last_exit_code.set && container->waiting_reason &&
		       !hf_streq(container->waiting_reason, "ContainerCreating") &&
		       !hf_streq(container->waiting_reason, "PodInitializing");
	case HF_CONTAINER_UNKNOWN:
	case HF_CONTAINER_RUNNING: break;
	}
	return false;
}

int64_t hf_pod_terminations(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	int64_t sum = hf_pod_restarts(b, role, pod);

	/* In a pod that is ending no container is started again: the pod's own end is counted. */
	if (pod->deletion_time != HF_TIME_NONE || pod->phase == HF_POD_FAILED ||
	    pod->phase == HF_POD_SUCCEEDED)
		return sum;
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (is_to_start_again(&pod->containers[i]) &&
		    !hf_awaited_is_added(b, role, &pod->containers[i]))
			sum++;
	}
	return sum < HF_COUNTER_MAX ? sum : HF_COUNTER_MAX;
}

/* ---- generations and attempts -------------------------------------------------------------------- */

bool hf_container_is_over(const struct hf_container_seen *seen)
{
	return seen->phase == HF_CONTAINER_TERMINATED &&
	       (seen->again == HF_AGAIN_NEVER ||
		(seen->again == HF_AGAIN_ON_FAILURE && seen->exit_code == 0));
}

const struct hf_container_seen *hf_pod_keeper(const struct hf_pod *pod,
					      const struct hf_container_seen *own)
{
	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *other = &pod->containers[i];

		if (other != own && !other->init && !hf_container_is_over(other))
			return other;
	}
	return NULL;
}

bool hf_pod_goes_on(const struct hf_pod *pod, const struct hf_container_seen *own)
{
	if (hf_pod_keeper(pod, own))
		return true;
	/* A running init container beside main containers is a native sidecar.  The kubelet ends it last. */
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (pod->containers[i].init && pod->containers[i].phase == HF_CONTAINER_RUNNING)
			return true;
	}
	return false;
}

bool hf_container_has_begun(const struct hf_container_seen *seen)
{
	return seen->phase == HF_CONTAINER_RUNNING || seen->phase == HF_CONTAINER_TERMINATED ||
	       seen->restart_count > 0 || seen->last_exit_code.set;
}

bool hf_pod_has_begun(const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (!pod->containers[i].init && hf_container_has_begun(&pod->containers[i]))
			return true;
	}
	return false;
}

/* Of a pod that has not ended.  While all containers are terminated, the kubelet is about to write
 * the pod's phase and the reason of its end: a failure waits for those. */
static enum hf_slot_phase find_phase(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	const struct hf_container_seen *own = hf_own_container(b, role, pod);

	if (own && hf_container_is_over(own) && own->exit_code == 0)
		return HF_SLOT_TRAINED;
	if (own && hf_container_is_over(own))
		return hf_pod_goes_on(pod, own) ? HF_SLOT_BROKEN : HF_SLOT_ENDED;
	/* Without a report of containers, the pod's phase decides. */
	if (own && (own->phase == HF_CONTAINER_WAITING || own->phase == HF_CONTAINER_TERMINATED))
		return HF_SLOT_STARTING;
	return pod->phase == HF_POD_RUNNING ? HF_SLOT_RUNNING : HF_SLOT_STARTING;
}

static enum hf_slot_phase phase_of(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	const struct hf_pod *pod = slot->pod;

	if (!slot->current || pod->deletion_time != HF_TIME_NONE)
		return HF_SLOT_ABSENT;
	if (pod->phase == HF_POD_SUCCEEDED || pod->phase == HF_POD_FAILED)
		return HF_SLOT_ENDED;
	return find_phase(b, role, pod);
}

bool hf_slot_is_up(const struct hf_slot *slot)
{
	static const bool up[HF_SLOT_PHASES] = {
		[HF_SLOT_RUNNING] = true,
		[HF_SLOT_TRAINED] = true,
	};

	hf_assert(slot->phase < HF_SLOT_PHASES);
	return up[slot->phase];
}

/*
 * Stamps higher than the ledger's come from a ledger that was erased or reset by somebody, or
 * from a view of the job that is older than its pods.  In both cases the stamps are right; in
 * the second the guarded status patch is refused and nothing else happens.
 */
static void adopt_stamps(struct hf_brain *b, int role, int32_t index)
{
	struct hf_slot *slot = &b->crews[role].slots[index];

	if (!slot->pod || !slot->pod->stamped || hf_cond_finished(b))
		return;
	/* Nobody counts that far: somebody has edited them.  It is of no attempt, and is deleted as
	 * what has no place here, which is nobody's failure. */
	if (slot->pod->generation > HF_STAMP_MAX || slot->pod->attempt > HF_STAMP_MAX) {
		slot->created = false;
		return;
	}
	if (slot->pod->generation > b->ledger.generation) {
		b->ledger.generation = slot->pod->generation;
		for (int r = 0; r < b->crews_len; r++) {
			for (int32_t i = 0; i < b->crews[r].slots_len; i++) {
				b->crews[r].slots[i].created = false;
				b->crews[r].slots[i].succeeded = false;
				b->crews[r].slots[i].trained = false;
			}
		}
	}
	if (slot->pod->generation == b->ledger.generation && slot->pod->attempt > slot->attempt) {
		slot->attempt = slot->pod->attempt;
		slot->created = slot->trained = false;
		slot->seen = hf_pod_terminations(b, role, slot->pod);
	}
}

/*
 * A pod without stamps was made by another operator, and none of it says which attempt it is: it is
 * the present one as long as the ledger counts that as made.  In generation 0 all pods are so.
 */
static bool is_current(const struct hf_brain *b, const struct hf_slot *slot,
		       const struct hf_pod *pod)
{
	if (!pod->stamped)
		return (pod == slot->pod && slot->created) ||
		       (b->ledger.generation == 0 && slot->attempt == 0);
	return pod->generation == b->ledger.generation && pod->attempt == slot->attempt;
}

static bool is_older(const struct hf_brain *b, const struct hf_slot *slot)
{
	if (!slot->pod->stamped)
		return b->ledger.phase == HF_PHASE_TEARING && !is_current(b, slot, slot->pod);
	return slot->pod->generation < b->ledger.generation;
}

const struct hf_pod *hf_slot_pod(const struct hf_brain *b, const struct hf_slot *slot)
{
	if (slot->pod)
		return slot->pod;
	return slot->last && slot->created && is_current(b, slot, slot->last) ? slot->last : NULL;
}

void hf_world_refresh(struct hf_brain *b)
{
	b->older_pods = 0;
	for (int r = 0; r < b->crews_len; r++) {
		for (int32_t i = 0; i < b->crews[r].slots_len; i++)
			adopt_stamps(b, r, i);
	}
	for (int r = 0; r < b->crews_len; r++) {
		for (int32_t i = 0; i < b->crews[r].slots_len; i++) {
			struct hf_slot *slot = &b->crews[r].slots[i];
			const struct hf_pod *pod = slot->pod;

			slot->current = false;
			slot->phase = HF_SLOT_ABSENT;
			if (!pod)
				continue;
			b->older_pods += is_older(b, slot);
			slot->current = is_current(b, slot, pod);
			slot->phase = phase_of(b, r, slot);
		}
	}
}
