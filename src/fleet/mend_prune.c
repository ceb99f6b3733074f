/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "base/mem.h"

#include <stdlib.h>

/*
 * Chooses a finished Remediation that may be deleted.
 * Input: the cache of Remediations. Output: a name. Invariants: an object that is not at an end, or has the
 * finalizer, stays; so do the newest of each node, which tell what was tried and whether a person
 * cancelled it. The highest number of a node is never free again.
 */

/* Attempts of the ladder count for a week (health/fleet.h). */
#define KEEP_SPAN (8 * HF_DAY)
#define KEEP_ON_NODE 8
/* Beyond this number of objects only the newest of each node is kept. */
#define CROWDED 10000

/* The highest attempt of each node. */
static struct hf_map *find_highest(const struct fleet_mend *mend)
{
	struct hf_map *highest = hf_map_create(HF_MEND_OBJECTS_MAX, mend->fleet->env.seed, free);
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(mend->cache, &it)) != NULL;) {
		const struct mend_object *object = entry->view;
		int32_t *attempt;

		if (!object->readable)
			continue;
		attempt = hf_map_get(highest, object->r.spec.node);
		if (attempt == NULL) {
			attempt = hf_xcalloc(1, sizeof(*attempt));
			if (!hf_map_put(highest, object->r.spec.node, attempt)) {
				free(attempt);
				continue;
			}
		}
		hf_fleet_mend_note_attempt(attempt, object->r.spec.attempt);
	}
	return highest;
}

static bool is_old(const struct mend_object *object, int32_t highest, bool crowded, hf_time now)
{
	int32_t keep = crowded ? 1 : KEEP_ON_NODE;

	return object->r.spec.attempt <= highest - keep &&
	       (crowded ||
		(object->r.created_at != HF_TIME_NONE && now - object->r.created_at > KEEP_SPAN));
}

const struct hf_cache_entry *hf_fleet_mend_find_old(const struct fleet_mend *mend)
{
	struct hf_map *highest = find_highest(mend);
	bool crowded = hf_cache_len(mend->cache) > CROWDED;
	const struct hf_cache_entry *entry, *oldest = NULL;
	hf_time now = hf_fleet_now(mend->fleet), oldest_at = HF_TIME_NEVER;

	for (size_t it = 0; (entry = hf_cache_next(mend->cache, &it)) != NULL;) {
		const struct mend_object *object = entry->view;
		const int32_t *attempt =
			object->readable ? hf_map_get(highest, object->r.spec.node) : NULL;

		if (attempt == NULL || object->unfinished || object->r.deleting ||
		    !is_old(object, *attempt, crowded, now) || object->r.created_at >= oldest_at)
			continue;
		oldest = entry;
		oldest_at = object->r.created_at;
	}
	hf_map_destroy(highest);
	return oldest;
}
