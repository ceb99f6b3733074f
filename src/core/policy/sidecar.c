/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/names.h"

/*
 * Ranks that have trained, which means that their training is over: the kind's own container has
 * ended with 0 for good, and another container keeps the pod.  Such a rank counts as succeeded in
 * three cases:
 *
 * - Its pod ends with success.
 * - sidecarGraceSeconds have passed since the end of its own container; then its pod is stopped.
 * - Another container fails the pod, or the pod is deleted, evicted, or lost with its node.
 *
 * The ledger keeps such ranks in `trained`.  The wait is measured on the operator's clock, from the
 * moment at which the operator saw the container's end.  A new operator begins the wait anew, so no
 * pod is stopped too early.
 */

/* The condition HeldBySidecar and its event wait this long.  Most proxies and uploaders end
 * earlier. */
#define TELL_SECONDS 300

struct held {
	int32_t count;
	int role;
	int32_t index;
	const struct hf_container_seen *own, *keeper; /* of the first rank */
	const struct hf_pod *pod;
	bool due; /* at least one of these ranks has waited for TELL_SECONDS */
};

static bool find_held_rank(const struct hf_brain *b, int role, const struct hf_slot *slot,
			   struct held *ret_held)
{
	if (slot->phase != HF_SLOT_TRAINED)
		return false;
	ret_held->pod = slot->pod;
	ret_held->own = hf_own_container(b, role, slot->pod);
	ret_held->keeper = hf_pod_keeper(slot->pod, ret_held->own);
	return ret_held->keeper != NULL;
}

/* When the operator may stop the pod.  HF_TIME_NEVER: the job sets no sidecarGraceSeconds, or the
 * caller does not watch pods. */
static hf_time find_grace_end(const struct hf_brain *b, const struct hf_pod *pod)
{
	const struct hf_opt_int *grace = &b->job.recovery.sidecar_grace_seconds;

	if (!grace->set || pod->own_ended_at == HF_TIME_NONE)
		return HF_TIME_NEVER;
	return hf_time_add(pod->own_ended_at, hf_seconds(grace->value));
}

static bool is_grace_over(const struct hf_brain *b, const struct hf_slot *slot)
{
	hf_time at = find_grace_end(b, slot->pod);

	if (b->now >= at)
		return true;
	if (at != HF_TIME_NEVER)
		hf_wake(b, at);
	return false;
}

bool hf_sidecar_is_over(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	struct held held;

	return find_held_rank(b, role, slot, &held) && is_grace_over(b, slot);
}

/* Keep the first rank, which the message describes, and count all. */
static void count_held(struct held *first, const struct held *held)
{
	int32_t count = first->count + 1;

	if (count == 1)
		*first = *held;
	first->count = count;
}

static void tell_released(const struct hf_brain *b, const struct held *first)
{
	const char *rank = hf_rank_name(b->arena, b->roles[first->role].type, first->index);
	const char *message = hf_arena_printf(
		b->arena,
		"container %s of %s%s ended with 0 more than %lld s ago (sidecarGraceSeconds): the "
		"rank counts as succeeded, and its pod, which container %s kept, is ended",
		first->own->name, rank,
		first->count > 1 ? hf_arena_printf(b->arena, " and %d more", first->count - 1) : "",
		(long long)b->job.recovery.sidecar_grace_seconds.value, first->keeper->name);

	hf_event(b, false, "SidecarGraceOver", message);
	hf_say(b, b->now, HF_TOPIC_DECISION, "%s", message);
}

/* ---- pods that end after their rank has trained --------------------------------------------------- */

/* The first failed container other than the own container; NULL: no such container. */
static const struct hf_container_seen *find_failed(const struct hf_pod *pod,
						   const struct hf_container_seen *own)
{
	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *other = &pod->containers[i];

		if (other != own && other->phase == HF_CONTAINER_TERMINATED &&
		    other->exit_code != 0)
			return other;
	}
	return NULL;
}

/* The pod was ended as a whole: by its kubelet, which gives a reason, or by a controller.  Then the
 * own container may have ended with 0 because the kubelet told it to end, in the middle of its
 * work. */
static bool is_ended_as_a_whole(const struct hf_pod *pod)
{
	if (!hf_str_is_empty(pod->reason))
		return true;
	for (size_t i = 0; i < pod->conditions_len; i++) {
		if (hf_streq(pod->conditions[i].type, "DisruptionTarget") &&
		    hf_streq(pod->conditions[i].status, "True"))
			return true;
	}
	return false;
}

/* What a runtime may need beyond the grace. */
#define KILL_MARGIN_SECONDS 60

/*
 * The own container ended by itself before its pod was ended as a whole.
 *
 * A kubelet that ends a pod tells all containers at once, and kills them when the grace is over.
 * So if another container ended later than the grace after the own container, nothing had told the
 * own container to end.  All times are of one node's clock.
 */
static bool is_ended_long_before(const struct hf_pod *pod, const struct hf_container_seen *own)
{
	int64_t grace = pod->grace_seconds.set ? pod->grace_seconds.value : HF_POD_GRACE_SECONDS;
	hf_time until;

	if (own->finished_at == HF_TIME_NONE)
		return false;
	until = hf_time_add(own->finished_at, hf_seconds(grace + KILL_MARGIN_SECONDS));
	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *other = &pod->containers[i];

		if (other != own && !other->init && other->phase == HF_CONTAINER_TERMINATED &&
		    other->finished_at != HF_TIME_NONE && other->finished_at > until)
			return true;
	}
	return false;
}

/* The own container had succeeded, and later another container failed the pod, or the pod was ended
 * as a whole. */
static bool is_failed_beside(const struct hf_pod *pod, const struct hf_container_seen *own)
{
	if (!own || own->phase != HF_CONTAINER_TERMINATED || own->exit_code != 0 ||
	    own->again == HF_AGAIN_ALWAYS)
		return false;
	return is_ended_as_a_whole(pod) ? is_ended_long_before(pod, own)
					: find_failed(pod, own) != NULL;
}

static const char *put_in_brackets(const struct hf_brain *b, const char *reason)
{
	return hf_str_is_empty(reason) ? "" : hf_arena_printf(b->arena, " (%s)", reason);
}

/* How the pod of a rank failed after the rank's own container had ended with 0, for a message.
 * NULL: neither the ledger nor the pod shows that the own container had ended with 0. */
static const char *describe_failed(const struct hf_brain *b, int role, const struct hf_slot *slot,
				   const struct hf_pod *pod)
{
	const struct hf_container_seen *own = hf_own_container(b, role, pod);
	const struct hf_container_seen *failed = find_failed(pod, own);

	if (!slot->trained && !is_failed_beside(pod, own))
		return NULL;
	if (failed && !is_ended_as_a_whole(pod))
		return hf_arena_printf(
			b->arena, "container %s failed with %d%s", failed->name,
			(int)failed->exit_code,
			put_in_brackets(b, hf_container_reason_telling(failed->terminated_reason)));
	return hf_arena_printf(b->arena, "its pod failed%s", put_in_brackets(b, pod->reason));
}

/* How the pod of a rank ended after the rank's own container had ended with 0, for a message.
 * NULL: the pod runs on, or the own container has not ended with 0. */
static const char *find_later_end(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	const struct hf_pod *pod = hf_slot_pod(b, slot);
	const struct hf_node *node;

	if (slot->pod && !slot->current)
		return NULL;
	if (!pod)
		return slot->created && slot->trained && !slot->pod_taken ? "its pod vanished"
									  : NULL;
	if (pod->phase == HF_POD_FAILED)
		return describe_failed(b, role, slot, pod);
	if (!slot->trained)
		return NULL;
	if (pod->deletion_time != HF_TIME_NONE)
		return "its pod was deleted";
	node = hf_node_lost(b, pod);
	if (node && hf_node_counts_as_lost(b, node, pod))
		return hf_arena_printf(b->arena, "node %s was lost", node->seen->name);
	return NULL;
}

static void tell_later_end(const struct hf_brain *b, const struct held *first, const char *what)
{
	const char *message = hf_arena_printf(
		b->arena,
		"container %s of %s ended with 0, and then %s: the rank counts as succeeded%s",
		hf_own_container_name(b, first->role),
		hf_rank_name(b->arena, b->roles[first->role].type, first->index), what,
		first->count > 1 ? hf_arena_printf(b->arena, "; so do %d more", first->count - 1)
				 : "");

	hf_event(b, false, "SucceededBeforePodEnd", message);
	hf_say(b, b->now, HF_TOPIC_DECISION, "%s", message);
}

/* ---- release -------------------------------------------------------------------------------- */

void hf_sidecar_release(struct hf_brain *b)
{
	struct held first = {.count = 0}, later = {.count = 0};
	const char *what = NULL;

	hf_assert(b->ledger.present);
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];
			struct held held = {.role = r, .index = i};
			const char *end = slot->succeeded ? NULL : find_later_end(b, r, slot);

			if (slot->succeeded)
				continue;
			if (end) {
				what = what ? what : end;
				count_held(&later, &held);
			} else if (find_held_rank(b, r, slot, &held) && is_grace_over(b, slot)) {
				count_held(&first, &held);
			} else {
				continue;
			}
			slot->succeeded = true;
			slot->trained = false;
		}
	}
	if (first.count > 0)
		tell_released(b, &first);
	if (later.count > 0)
		tell_later_end(b, &later, what);
}

/* ---- ranks that wait ------------------------------------------------------------------------ */

static void note_held(const struct hf_brain *b, struct held *first, const struct held *held)
{
	hf_time ended = held->pod->own_ended_at, at;

	count_held(first, held);
	if (ended == HF_TIME_NONE)
		return;
	at = hf_time_add(ended, hf_seconds(TELL_SECONDS));
	if (b->now >= at)
		first->due = true;
	else
		hf_wake(b, at);
}

static const char *describe_next(const struct hf_brain *b, const struct held *held)
{
	const struct hf_opt_int *grace = &b->job.recovery.sidecar_grace_seconds;

	if (!grace->set)
		return hf_arena_printf(
			b->arena,
			"the rank counts as succeeded when container %s or the pod ends "
			"(recovery.sidecarGraceSeconds is not set)",
			held->keeper->name);
	return hf_arena_printf(b->arena,
			       "the rank counts as succeeded and its pod is ended %lld s after the "
			       "end of its container (recovery.sidecarGraceSeconds)",
			       (long long)grace->value);
}

static void show_held(struct hf_brain *b, const struct held *held)
{
	const char *rank = hf_rank_name(b->arena, b->roles[held->role].type, held->index);
	const char *message = hf_arena_printf(
		b->arena, "container %s of %s ended with 0; the pod is kept by container %s%s",
		held->own->name, rank, held->keeper->name,
		held->count > 1
			? hf_arena_printf(b->arena, "; %d more rank(s) wait in the same way",
					  held->count - 1)
			: "");
	hf_time at = held->own->finished_at != HF_TIME_NONE ? held->own->finished_at : b->now;

	hf_say(b, at, HF_TOPIC_BLOCKED, "%s", message);
	hf_say(b, b->now, HF_TOPIC_NEXT, "%s", describe_next(b, held));
	if (!b->notes->blocker)
		hf_block(b, message);
	if (!held->due && !hf_cond_is_true(b, HF_COND_SIDECAR))
		return;
	if (!hf_cond_is_true(b, HF_COND_SIDECAR))
		hf_event(b, true, "HeldBySidecar", message);
	hf_cond_set(b, HF_COND_SIDECAR, true,
		    hf_container_has_begun(held->keeper) ? "ContainerRuns" : "ContainerNotStarted",
		    message);
}

void hf_sidecar_clear(struct hf_brain *b)
{
	hf_cond_lower(b, HF_COND_SIDECAR, "NoneHeld",
		      "No rank of an active job waits for another container.");
}

void hf_sidecar_step(struct hf_brain *b)
{
	struct held first = {.count = 0};

	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];
			struct held held = {.role = r, .index = i};

			if (!find_held_rank(b, r, slot, &held))
				continue;
			/* The rank already counts as succeeded, because its node was lost.  If that
			 * node comes back, an uploader in the pod still runs, and the pod is
			 * stopped only after the grace. */
			if (!slot->succeeded)
				note_held(b, &first, &held);
			else if (is_grace_over(b, slot))
				hf_pod_stop(b, slot->pod, HF_STOPPED_SUCCEEDED);
		}
	}
	if (first.count > 0)
		show_held(b, &first);
	else
		hf_sidecar_clear(b);
}
