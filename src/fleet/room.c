/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/fleet_internal.h"

#include "base/compare.h"
#include "base/str.h"

#include <stdlib.h>

/*
 * Tells whether a HealthPolicy permits one more node out of use: to other controllers, and to acts that people request.
 * Input: the caches, and the nodes that another controller takes out of use. Output: the limit that forbids it.
 * Invariants: no request; the counts are those of a round (see.c).
 */

/* The nodes of one policy. */
struct room {
	struct fleet_policy *policy;
	struct fleet_seen seen;
	bool *out; /* of each node: out of use, or will be */
};

struct rooms {
	struct hf_fleet *fleet;
	struct hf_arena *arena;
	const struct hf_limit_question *question;
	struct room items[HF_FLEET_POLICIES_MAX];
	size_t len;
};

static size_t find_node(const struct room *room, const char *name)
{
	const struct fleet_item key = {.name = name};
	const struct fleet_item *item = room->seen.len == 0
						? NULL
						: bsearch(&key, room->seen.items, room->seen.len,
							  sizeof(key), hf_compare_by_name);

	return item == NULL ? room->seen.len : (size_t)(item - room->seen.items);
}

/* Looks at the nodes of a policy once. NULL: the policy does not exist any more. */
static struct room *see_policy(struct rooms *rooms, struct fleet_policy *policy)
{
	const struct hf_cache_entry *entry =
		hf_cache_get(rooms->fleet->policies_cache, NULL, policy->name);
	struct room *room;

	for (size_t i = 0; i < rooms->len; i++)
		if (rooms->items[i].policy == policy)
			return &rooms->items[i];
	if (entry == NULL || rooms->len == HF_FLEET_POLICIES_MAX)
		return NULL;
	room = &rooms->items[rooms->len++];
	room->policy = policy;
	hf_fleet_see(rooms->fleet, policy, entry->doc, rooms->arena, &room->seen);
	room->out = HF_ARENA_ARRAY(rooms->arena, bool, room->seen.len + 1);
	for (size_t i = 0; i < room->seen.len; i++)
		room->out[i] = room->seen.nodes[i].unavailable;
	for (size_t i = 0; i < rooms->question->out_len; i++)
		room->out[find_node(room, rooms->question->out[i])] = true;
	return room;
}

/* at: the index of the node; seen.len: the policy does not select the node, so only the number of nodes counts. */
static const char *find_full(const struct room *room, size_t at)
{
	static const struct hf_health_node other_node = {.domain = "", .like = ""};
	const struct hf_health_policy_spec *spec = &room->policy->spec;
	const struct hf_health_node *node =
		at < room->seen.len ? &room->seen.nodes[at] : &other_node;
	int32_t limit =
		hf_health_limit_of(&room->seen.rules.unavailable, (size_t)room->seen.selected);
	int32_t out = 1, in_domain = 1, spares = 0;

	for (size_t i = 0; i < room->seen.len; i++) {
		const struct hf_health_node *other = &room->seen.nodes[i];

		if (i == at)
			continue;
		out += room->out[i];
		in_domain += room->out[i] && hf_streq(other->domain, node->domain);
		spares += !room->out[i] && other->free && hf_streq(other->like, node->like);
	}
	if (limit >= 0 && out > limit)
		return "budget.maxUnavailable of the HealthPolicy is used up";
	if (spec->domain_key != NULL && !hf_str_is_empty(node->domain) &&
	    in_domain > spec->domain_max)
		return "budget.perDomain of the HealthPolicy is used up";
	if (at < room->seen.len && spares < spec->spares_min)
		return "budget.minSpares of the HealthPolicy keeps the free nodes";
	return NULL;
}

static const char *find_limit(struct rooms *rooms, const char *node)
{
	struct fleet_policy *policy = hf_fleet_policy_of(rooms->fleet, node);
	struct room *room;
	const char *limit = NULL;
	size_t at;

	if (policy == NULL)
		return NULL;
	if (!policy->usable || policy->problem != NULL)
		return "the HealthPolicy of the node cannot be read";
	room = see_policy(rooms, policy);
	if (room == NULL)
		return NULL;
	if (room->seen.memory.breaker_open)
		return "the breaker of the HealthPolicy is open";
	at = find_node(room, node);
	if (at < room->seen.len && !room->seen.nodes[at].unavailable)
		limit = find_full(room, at);
	if (limit == NULL)
		room->out[at] = true;
	return limit;
}

void hf_fleet_find_limits(struct hf_controller *controller,
			  const struct hf_limit_question *question)
{
	struct hf_fleet *fleet = (struct hf_fleet *)controller;
	HF_AUTO_ARENA arena = hf_arena_create(HF_FLEET_ARENA_MAX);
	struct rooms rooms = {.fleet = fleet, .arena = arena, .question = question};

	if (fleet->nodes == NULL && hf_cache_synced(fleet->policies_cache))
		return;
	for (size_t i = 0; i < question->len; i++)
		question->ret_limits[i] =
			hf_fleet_can_see(fleet)
				? find_limit(&rooms, question->nodes[i])
				: "the HealthPolicies and their nodes are not listed yet";
}

const char *hf_fleet_find_room(struct hf_fleet *fleet, struct fleet_policy *policy,
			       const char *node)
{
	const struct hf_limit_question question = {.out_len = 0};
	HF_AUTO_ARENA arena = hf_arena_create(HF_FLEET_ARENA_MAX);
	struct rooms rooms = {.fleet = fleet, .arena = arena, .question = &question};
	const struct room *room;
	size_t at;

	if (!hf_fleet_can_see(fleet))
		return "the HealthPolicies and their nodes are not listed yet";
	room = see_policy(&rooms, policy);
	if (room == NULL)
		return "the HealthPolicy does not exist";
	at = find_node(room, node);
	return at < room->seen.len && room->seen.nodes[at].unavailable ? NULL : find_full(room, at);
}
