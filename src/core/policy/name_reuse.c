/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/compare.h"

#include <stdlib.h>
#include <string.h>

/*
 * Pod names that must stay unused for a while.
 *
 * The taint controller keeps a timer for each pod of a tainted node, by name.  It cancels the timer
 * when it sees that the pod is gone.  If a new pod with that name already exists on another node,
 * the controller does not cancel the timer, and the timer deletes the new pod.
 */

static int compare_gone_key(const void *key, const void *item)
{
	const struct hf_gone_seen *const *gone = item;

	return strcmp(key, (*gone)->name);
}

static void index_gone(const struct hf_brain *b)
{
	const struct hf_observed *seen = b->seen;

	b->cache->gone = HF_ARENA_ARRAY(b->arena, const struct hf_gone_seen *, seen->gone_len + 1);
	for (size_t i = 0; i < seen->gone_len; i++) {
		if (seen->gone[i].no_execute)
			b->cache->gone[b->cache->gone_len++] = &seen->gone[i];
	}
	if (b->cache->gone_len > 0)
		qsort(b->cache->gone, b->cache->gone_len, sizeof(const struct hf_gone_seen *),
		      hf_compare_pointers_by_name);
}

/* The rank may have had a pod that disappeared before the operator began to watch.  So the operator
 * may have missed its end, and the name stays unused for the same delay.  Pods are created after the
 * first ledger is stored; a pod of the first attempt may have come and gone before the ledger lists
 * it as created. */
static bool may_have_lost_pod(const struct hf_brain *b, const struct hf_slot *slot, hf_time delay)
{
	hf_time since = b->seen->watched_since;
	bool began_before = b->view->status.ledger.present && b->view->creation_time < since;

	return since != HF_TIME_NONE && b->now < hf_time_add(since, delay) &&
	       (slot->attempt > 0 || b->ledger.generation > 1 || began_before);
}

bool hf_name_reuse_waits(const struct hf_brain *b, int role, int32_t index,
			 struct hf_empty_names *empty)
{
	const struct hf_role_slots *ranks = &b->roles[role];
	hf_time delay = hf_seconds(b->job.recovery.replace_delay_seconds);
	bool unknown = may_have_lost_pod(b, &ranks->slots[index], delay);
	const struct hf_gone_seen **gone = NULL;
	const char *name;
	hf_time until;

	if (!b->cache->gone)
		index_gone(b);
	if (b->cache->gone_len == 0 && !unknown)
		return false;
	name = hf_rank_pod_name(b, role, index);
	if (b->cache->gone_len > 0)
		gone = bsearch(name, b->cache->gone, b->cache->gone_len,
			       sizeof(const struct hf_gone_seen *), compare_gone_key);
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

void hf_name_reuse_tell(const struct hf_brain *b, const struct hf_empty_names *empty)
{
	if (empty->count == 0)
		return;
	hf_wake(b, empty->until);
	hf_say(b, empty->until, HF_TOPIC_NEXT,
	       "%d name(s) stay empty until %s, %s first: a taint's timer might delete a new pod "
	       "(replaceDelaySeconds)",
	       empty->count, hf_time_text(b->arena, empty->until), empty->first);
}
