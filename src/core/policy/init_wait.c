/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * Some kinds add an init container that waits for the ranks of another role, and gives up after a
 * while.  The program has not begun then and is not at fault.  So nothing is charged, no other rank
 * restarts, and a new pod waits again.  Writes: attempts of slots, notBefore.
 */

static const struct hf_container_seen *find_added(const struct hf_brain *b, int role,
						  const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (hf_init_wait_is_added(b, role, &pod->containers[i]))
			return &pod->containers[i];
	}
	return NULL;
}

static hf_time find_start_time(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	const struct hf_container_seen *own = hf_own_container(b, role, pod);

	return own ? own->started_at : HF_TIME_NONE;
}

/* Returns true if all ranks that the init container waits for ran before it started, by their
 * nodes' clocks. Then the init container failed for another cause. */
static bool did_awaited_run(const struct hf_brain *b, const struct hf_container_seen *wait)
{
	int role = b->job.framework->awaited_role;

	for (int32_t i = 0; i < b->roles[role].replicas; i++) {
		const struct hf_slot *slot = &b->roles[role].slots[i];
		hf_time at;

		if (slot->succeeded)
			continue;
		at = hf_slot_is_up(slot) ? find_start_time(b, role, slot->pod) : HF_TIME_NONE;
		if (at == HF_TIME_NONE || wait->started_at == HF_TIME_NONE || at > wait->started_at)
			return false;
	}
	return true;
}

const struct hf_container_seen *hf_init_wait_gave_up(const struct hf_brain *b,
						     const struct hf_termination *termination)
{
	const struct hf_container_seen *added;

	if (termination->kind != HF_TERMINATION_FAILED ||
	    !b->roles[termination->role].slots[termination->index].current ||
	    hf_pod_has_begun(termination->pod))
		return NULL;
	added = find_added(b, termination->role, termination->pod);
	if (!added || added->phase != HF_CONTAINER_TERMINATED || added->exit_code == 0)
		return NULL;
	return did_awaited_run(b, added) ? NULL : added;
}

/* The pod name of the first awaited rank that does not run.  If all run, sets ret_up and returns
 * the name of the first awaited rank. */
static const char *find_awaited(const struct hf_brain *b, bool *ret_up)
{
	int role = b->job.framework->awaited_role;
	int32_t index = 0;

	while (index < b->roles[role].replicas && (hf_slot_is_up(&b->roles[role].slots[index]) ||
						   b->roles[role].slots[index].succeeded))
		index++;
	*ret_up = index >= b->roles[role].replicas;
	return hf_rank_pod_name(b, role, *ret_up ? 0 : index);
}

static void tell_restart(const struct hf_brain *b, const struct hf_pod *pod, int32_t count,
			 const char *whom, bool up)
{
	const char *message = hf_arena_printf(
		b->arena,
		"Pod %s%s waited in vain for %s, which %s: init container %s ended before the "
		"program began. The pod is created again, and nothing is charged",
		pod->name, count > 1 ? hf_arena_printf(b->arena, " and %d more", count - 1) : "",
		whom, up ? "runs by now" : "does not run", b->job.framework->init_container);

	hf_event_pod(b, true, "WaitedInVain", message, pod);
	hf_say(b, b->now, HF_TOPIC_DECISION, "%s", message);
}

void hf_init_wait_restart(struct hf_brain *b)
{
	const struct hf_pod *first = NULL;
	const char *whom;
	int32_t count = 0;
	bool up;

	hf_assert(!hf_verdict_pending(b));
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			/* If all ranks were restarted in this step for another reason, this pod
			 * belongs to an old attempt. */
			if (!slot->gave_up || !slot->current)
				continue;
			if (count++ == 0)
				first = slot->pod;
			hf_restart_replica(b, r, i);
		}
	}
	if (count == 0)
		return;
	whom = find_awaited(b, &up);
	hf_delay_waited(b, !up);
	tell_restart(b, first, count, whom, up);
	hf_restart_when_too_large(b);
}

void hf_init_wait_tell(const struct hf_brain *b)
{
	const char *first = NULL, *whom;
	int32_t count = 0;
	bool up;

	for (int r = 0; b->job.framework->init_container && r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];
			const struct hf_container_seen *added;

			if (!slot->current || slot->pod->phase != HF_POD_PENDING ||
			    slot->pod->deletion_time != HF_TIME_NONE)
				continue;
			added = find_added(b, r, slot->pod);
			if (added && added->phase == HF_CONTAINER_RUNNING && count++ == 0)
				first = slot->pod->name;
		}
	}
	if (count == 0)
		return;
	whom = find_awaited(b, &up);
	if (!up)
		hf_say(b, b->now, HF_TOPIC_NEXT, "%s%s wait%s in init container %s until %s runs",
		       first, count > 1 ? hf_arena_printf(b->arena, " and %d more", count - 1) : "",
		       count > 1 ? "" : "s", b->job.framework->init_container, whom);
}
