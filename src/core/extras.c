/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/brain_internal.h"

#include "base/str.h"

/*
 * Extra objects, level-triggered like everything: what the kind's table wants against what is
 * seen.  They come before the pods, which mount them and run with their rights.
 */

static void see_ranks(struct hf_brain *b, struct hf_ranks_seen *ret_ranks)
{
	for (int r = 0; r < b->crews_len; r++) {
		const struct hf_crew *crew = &b->crews[r];
		unsigned char *states =
			HF_ARENA_ARRAY(b->arena, unsigned char, (size_t)crew->replicas + 1);

		for (int32_t i = 0; i < crew->replicas; i++) {
			const struct hf_pod *pod = crew->slots[i].pod;

			if (pod)
				states[i] = pod->phase == HF_POD_RUNNING &&
							    pod->deletion_time == HF_TIME_NONE
						    ? HF_RANK_RUNNING
						    : HF_RANK_PRESENT;
		}
		ret_ranks->states[r] = states;
	}
}

static const struct hf_extra_seen *find(const struct hf_brain *b, const struct hf_extra *extra)
{
	for (size_t i = 0; i < b->seen->extras_len; i++) {
		const struct hf_extra_seen *seen = &b->seen->extras[i];

		if (seen->kind == extra->kind && hf_streq(seen->name, extra->name))
			return seen;
	}
	return NULL;
}

static void add(struct hf_brain *b, enum hf_action_kind kind, const struct hf_extra *extra,
		const struct hf_extra_seen *seen)
{
	struct hf_action action = {
		.kind = kind, .name = extra->name, .uid = seen ? seen->uid : NULL, .extra = extra};

	hf_action_add(b, &b->extras, &action);
}

static void plan_one(struct hf_brain *b, const struct hf_extra *extra)
{
	const struct hf_extra_seen *seen = find(b, extra);

	hf_assert(b->job.framework->extra_kinds & HF_EXTRA_BIT(extra->kind));
	if (extra->gone) {
		if (seen && seen->owned && !seen->terminating)
			add(b, HF_ACTION_DELETE_EXTRA, extra, seen);
	} else if (!seen) {
		add(b, HF_ACTION_CREATE_EXTRA, extra, NULL);
	} else if (!seen->owned && extra->shared) {
		return;
	} else if (!seen->owned) {
		b->extras_wait = true;
		if (!b->extra_taken)
			b->extra_taken = extra;
		b->extras_staying += !seen->terminating;
	} else if (seen->terminating) {
		b->extras_wait = true;
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "no pod is made until %s '%s', which is being deleted, can be made anew",
		       hf_extra_kind_name(extra->kind), extra->name);
	} else if (hf_extra_kind_root(extra->kind) && seen->digest != hf_extra_digest(extra)) {
		add(b, HF_ACTION_UPDATE_EXTRA, extra, seen);
	}
}

void hf_extras_plan(struct hf_brain *b)
{
	struct hf_extras extras = {.arena = b->arena};
	struct hf_ranks_seen ranks = {0};

	hf_assert(!b->job.suspend);
	if (!b->job.framework->extras || b->seen->blind)
		return;
	see_ranks(b, &ranks);
	b->job.framework->extras(&b->job, &ranks, &extras);
	for (size_t i = 0; i < extras.len; i++)
		plan_one(b, &extras.items[i]);
}
