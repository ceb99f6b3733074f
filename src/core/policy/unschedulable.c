/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/*
 * Pods that no node takes, because Holdfast excludes nodes (avoided_nodes.c) and Kueue or the user
 * allows no other.  A pod keeps the affinity with which it was created.  So when a reason is over,
 * a new pod replaces the waiting one, which never ran, and nothing is charged.  Writes: attempts of
 * slots, the condition PodUnschedulable.
 */

/* Seconds between two looks.  No watch reports that an agent has changed its report on a node
 * without a pod of the job.  The first looks come soon after the creation of the pod: a device that
 * has just failed may be withheld from new pods a moment later, and then the node can be used. */
#define LOOK_SECONDS_MIN 2
#define LOOK_SECONDS_MAX 30
#define NODES_SHOWN 8

struct unplaced {
	int32_t count;
	int role; /* of the first pod */
	int32_t index;
	const char *nodes;
	hf_time newest; /* creation of the newest pod */
};

static bool is_pod_waiting(const struct hf_slot *slot)
{
	const struct hf_pod *pod = slot->pod;

	if (!pod || !slot->current || slot->succeeded || hf_str_is_empty(pod->avoids) ||
	    pod->phase != HF_POD_PENDING || pod->node || pod->deletion_time != HF_TIME_NONE)
		return false;
	for (size_t i = 0; i < pod->conditions_len; i++) {
		if (hf_streq(pod->conditions[i].type, "PodScheduled"))
			return hf_streq(pod->conditions[i].reason, "Unschedulable");
	}
	return false;
}

/* Returns true if a node in the list `avoids`, separated by commas, need not be excluded any
 * more. */
static bool is_avoidance_over(const struct hf_brain *b, int role, const char *avoids)
{
	for (const char *at = avoids; *at != '\0';) {
		size_t len = strcspn(at, ",");

		if (!hf_avoid_is_must(b, role, at, len))
			return true;
		at += len;
		at += *at == ',';
	}
	return false;
}

/* The first NODES_SHOWN names, and the number of the others. */
static const char *shorten_names(const struct hf_brain *b, const char *avoids)
{
	size_t commas = 0;
	int len = 0;

	for (const char *at = avoids; *at != '\0'; at++)
		if (*at == ',' && ++commas == NODES_SHOWN)
			len = (int)(at - avoids);
	return len == 0 ? avoids
			: hf_arena_printf(b->arena, "%.*s and %zu more", len, avoids,
					  commas + 1 - NODES_SHOWN);
}

/* The next look is as far away as the creation of the newest pod. */
static hf_time find_next_look(const struct hf_brain *b, const struct unplaced *unplaced)
{
	hf_time min = hf_seconds(LOOK_SECONDS_MIN), max = hf_seconds(LOOK_SECONDS_MAX);
	hf_time age = unplaced->newest == HF_TIME_NONE ? max : hf_elapsed(unplaced->newest, b->now);

	return hf_time_add(b->now, age < min ? min : age > max ? max : age);
}

static void show_unschedulable(struct hf_brain *b, const struct unplaced *unplaced)
{
	const char *rank = hf_rank_name(b->arena, b->roles[unplaced->role].type, unplaced->index);
	const char *message = hf_arena_printf(
		b->arena,
		"no node takes %d pod(s), %s first, which must not run on %s: a device is out of "
		"service there%s",
		unplaced->count, rank, shorten_names(b, unplaced->nodes),
		b->job.roles[unplaced->role].pod->shared_claims
			? ", and the ResourceClaim that the pod names may still have it"
			: "");

	if (!hf_cond_is_true(b, HF_COND_POD_UNPLACED))
		hf_event(b, true, "PodUnschedulable", message);
	hf_cond_set(b, HF_COND_POD_UNPLACED, true, "NodesAvoided", message);
	hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s", message);
	hf_say(b, b->now, HF_TOPIC_NEXT,
	       "the pods are created again when a device on these nodes is repaired, or a day "
	       "after its failure at the latest; another node that the job may use helps at once");
	hf_wake(b, find_next_look(b, unplaced));
	hf_block(b, message);
}

void hf_unschedulable_clear(struct hf_brain *b)
{
	hf_cond_lower(b, HF_COND_POD_UNPLACED, "PodsPlaced",
		      "No pod of the job waits because nodes are avoided.");
}

void hf_unschedulable_step(struct hf_brain *b)
{
	struct unplaced unplaced = {0};

	if (hf_cond_tell_blind(b, HF_COND_POD_UNPLACED))
		return;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (!is_pod_waiting(slot))
				continue;
			if (is_avoidance_over(b, r, slot->pod->avoids)) {
				/* While a verdict settles, no pod is replaced. */
				if (!hf_verdict_pending(b))
					hf_restart_replica(b, r, i);
				continue;
			}
			if (unplaced.count++ == 0)
				unplaced = (struct unplaced){1, r, i, slot->pod->avoids,
							     slot->pod->creation_time};
			if (slot->pod->creation_time > unplaced.newest)
				unplaced.newest = slot->pod->creation_time;
		}
	}
	if (unplaced.count > 0)
		show_unschedulable(b, &unplaced);
	else
		hf_unschedulable_clear(b);
}
