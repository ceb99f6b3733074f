/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/compare.h"

#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

/*
 * Names that stay empty for a while.  Taint eviction holds a timer for each pod of a tainted node,
 * by name.  It cancels the timer when it sees that the pod is gone; if a pod of that name is there
 * again by then, on another node, it does not, and the timer deletes the new one.
 */

static int find_name(const void *key, const void *item)
{
	const struct hf_gone_seen *const *gone = item;

	return strcmp(key, (*gone)->name);
}

static void index_gone(struct hf_brain *b)
{
	const struct hf_observed *seen = b->seen;

	b->gone = HF_ARENA_ARRAY(b->arena, const struct hf_gone_seen *, seen->gone_len + 1);
	for (size_t i = 0; i < seen->gone_len; i++) {
		if (seen->gone[i].no_execute)
			b->gone[b->gone_len++] = &seen->gone[i];
	}
	if (b->gone_len > 0)
		qsort(b->gone, b->gone_len, sizeof(const struct hf_gone_seen *),
		      hf_compare_pointers_by_name);
}

/* It had a pod, and may have lost it just before we began to look. */
static bool is_unknown(const struct hf_brain *b, const struct hf_slot *slot, hf_time delay)
{
	hf_time since = b->seen->watched_since;

	return since != HF_TIME_NONE && b->now < hf_time_add(since, delay) &&
	       (slot->attempt > 0 || b->ledger.generation > 1);
}

bool hf_replace_waits(struct hf_brain *b, int role, int32_t index, struct hf_empty *empty)
{
	const struct hf_crew *crew = &b->crews[role];
	hf_time delay = hf_seconds(b->job.recovery.replace_delay_seconds);
	bool unknown = is_unknown(b, &crew->slots[index], delay);
	const struct hf_gone_seen **gone = NULL;
	const char *name;
	hf_time until;

	if (!b->gone)
		index_gone(b);
	if (b->gone_len == 0 && !unknown)
		return false;
	name = hf_rank_pod_name(b, role, index);
	if (b->gone_len > 0)
		gone = bsearch(name, b->gone, b->gone_len, sizeof(const struct hf_gone_seen *),
			       find_name);
	if (!gone && !unknown)
		return false;
	until = hf_time_add(gone ? (*gone)->at : b->seen->watched_since, delay);
	if (b->now >= until)
		return false;
	if (empty->count++ == 0)
		empty->first = name;
	if (empty->count == 1 || until < empty->until)
		empty->until = until;
	return true;
}

void hf_replace_say(struct hf_brain *b, const struct hf_empty *empty)
{
	if (empty->count == 0)
		return;
	hf_wake(b, empty->until);
	hf_say(b, empty->until, HF_TOPIC_NEXT,
	       "%d name(s) stay empty until %s, %s first: a taint's timer might delete a new pod "
	       "(replaceDelaySeconds)",
	       empty->count, hf_time_text(b->arena, empty->until), empty->first);
}
