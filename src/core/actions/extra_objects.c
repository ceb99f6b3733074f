/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "base/str.h"

/*
 * Extra objects: creates, updates and deletes what differs between the objects that the kind's
 * table wants and the objects that exist.  The pods mount these objects, run with their rights, or
 * are scheduled by them, so they are created before the pods.  Objects with the flag `aside` are
 * created last.
 */

static void see_ranks(const struct hf_brain *b, struct hf_ranks_seen *ret_ranks)
{
	for (int r = 0; r < b->roles_len; r++) {
		const struct hf_role_slots *ranks = &b->roles[r];
		unsigned char *states =
			HF_ARENA_ARRAY(b->arena, unsigned char, (size_t)ranks->replicas + 1);

		for (int32_t i = 0; i < ranks->replicas; i++) {
			const struct hf_pod *pod = ranks->slots[i].pod;

			if (pod)
				states[i] = pod->phase == HF_POD_RUNNING &&
							    pod->deletion_time == HF_TIME_NONE
						    ? HF_RANK_RUNNING
						    : HF_RANK_PRESENT;
		}
		ret_ranks->states[r] = states;
	}
}

static const struct hf_extra_seen *find_seen(const struct hf_brain *b, const struct hf_extra *extra)
{
	for (size_t i = 0; i < b->seen->extras_len; i++) {
		const struct hf_extra_seen *seen = &b->seen->extras[i];

		if (seen->kind == extra->kind && hf_streq(seen->name, extra->name))
			return seen;
	}
	return NULL;
}

static void add_action(struct hf_actions *list, struct hf_brain *b, enum hf_action_kind kind,
		       const struct hf_extra *extra, const struct hf_extra_seen *seen)
{
	struct hf_action action = {
		.kind = kind, .name = extra->name, .uid = seen ? seen->uid : NULL, .extra = extra};

	hf_action_add(b, list, &action);
}

static void plan_delete(struct hf_brain *b, const struct hf_extra *extra, struct hf_actions *list)
{
	const struct hf_extra_seen *seen = find_seen(b, extra);

	if (seen && seen->owned && !seen->terminating)
		add_action(list, b, HF_ACTION_DELETE_EXTRA, extra, seen);
}

static void say_awaited(const struct hf_brain *b, const struct hf_extra *extra,
			const struct hf_extra_seen *seen)
{
	hf_say(b, b->now, HF_TOPIC_BLOCKED,
	       seen ? "no pod is created until Volcano admits PodGroup '%s': the cluster has no "
		      "room for the group, or Volcano has not looked at it yet"
		    : "no pod is created until PodGroup '%s' exists and Volcano admits it",
	       extra->name);
}

/* The name is taken by another owner's object, or by the job's own object that is being deleted. */
static void plan_held(struct hf_brain *b, const struct hf_extra *extra,
		      const struct hf_extra_seen *seen)
{
	b->extras_wait = b->extras_wait || !extra->aside;
	if (!seen->owned) {
		if (!b->extra_taken || (b->extra_taken->aside && !extra->aside))
			b->extra_taken = extra;
		b->extras_staying += !seen->terminating;
	} else if (!extra->aside) {
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "no pod is created until %s '%s', which is being deleted, can be created "
		       "again",
		       hf_extra_kind_name(extra->kind), extra->name);
	}
}

/* A blind caller (`holdfast why`) creates nothing.  It finds the object missing if the operator
 * cannot create it, or is about to. */
static void plan_create(struct hf_brain *b, const struct hf_extra *extra, struct hf_actions *list)
{
	add_action(list, b, HF_ACTION_CREATE_EXTRA, extra, NULL);
	if (b->seen->blind)
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "%s '%s' does not exist; if the operator cannot create it, the job's events "
		       "say why",
		       hf_extra_kind_name(extra->kind), extra->name);
}

static void plan_object(struct hf_brain *b, const struct hf_extra *extra)
{
	const struct hf_extra_seen *seen = find_seen(b, extra);
	struct hf_actions *list = extra->aside ? &b->asides : &b->extras;

	if (extra->gone) {
		plan_delete(b, extra, list);
		return;
	}
	if (!seen)
		plan_create(b, extra, list);
	else if (!seen->owned && extra->shared)
		return;
	else if (!seen->owned || seen->terminating)
		plan_held(b, extra, seen);
	else if (*hf_extra_kind_members(extra->kind) && seen->digest != hf_extra_digest(extra))
		add_action(list, b, HF_ACTION_UPDATE_EXTRA, extra, seen);
	if (extra->gate && b->gated && (!seen || seen->owned))
		say_awaited(b, extra, seen);
}

static void collect_wanted(const struct hf_brain *b, const struct hf_ranks_seen *ranks,
			   struct hf_extras *extras)
{
	unsigned kinds = hf_extra_kinds(b->job.framework, b->job.settings);

	hf_job_extras(&b->job, ranks, extras);
	for (size_t i = 0; i < extras->len; i++)
		hf_assert(kinds & HF_EXTRA_BIT(extras->items[i].kind));
}

static bool is_kind_unknown(const struct hf_brain *b, const struct hf_extra *extra)
{
	return (b->seen->extras_unknown & HF_EXTRA_BIT(extra->kind)) != 0;
}

/* An event, sent once in the life of a job: no other place shows that no autoscaler will be
 * created. */
static void say_no_autoscaler(const struct hf_brain *b)
{
	if (b->job.settings->no_autoscaler && b->job.elastic.has_metrics &&
	    (b->job.framework->extra_kinds & HF_EXTRA_BIT(HF_EXTRA_AUTOSCALER)) &&
	    b->plan->metrics[HF_METRIC_CREATED] > 0)
		hf_event(b, false, "NoAutoscaler",
			 "no component of this installation scales jobs by elasticPolicy.metrics: "
			 "the job keeps its number of Workers until a user changes it");
}

void hf_extras_plan(struct hf_brain *b)
{
	struct hf_extras extras = {.arena = b->arena};
	struct hf_ranks_seen ranks = {.life = HF_LIFE_ACTIVE};

	hf_assert(!b->job.suspend);
	if (hf_extra_kinds(b->job.framework, b->job.settings) == 0)
		return;
	say_no_autoscaler(b);
	see_ranks(b, &ranks);
	collect_wanted(b, &ranks, &extras);
	for (size_t i = 0; i < extras.len; i++) {
		const struct hf_extra *extra = &extras.items[i];

		/* Objects that pods mount wait for Volcano's admission, as the pods do. */
		if (!is_kind_unknown(b, extra) && (!b->gated || extra->gate || extra->aside))
			plan_object(b, extra);
	}
}

void hf_extras_drop(struct hf_brain *b, enum hf_life life)
{
	struct hf_extras extras = {.arena = b->arena};
	const struct hf_ranks_seen ranks = {.life = life};

	hf_assert(life != HF_LIFE_ACTIVE);
	if (hf_extra_kinds(b->job.framework, b->job.settings) == 0)
		return;
	collect_wanted(b, &ranks, &extras);
	for (size_t i = 0; i < extras.len; i++)
		if (extras.items[i].gone && !is_kind_unknown(b, &extras.items[i]))
			plan_delete(b, &extras.items[i], &b->deletes);
}

void hf_job_extras(const struct hf_job *job, const struct hf_ranks_seen *seen,
		   struct hf_extras *extras)
{
	if (job->framework->extras)
		job->framework->extras(job, seen, extras);
	hf_pod_group_extra(job, seen, extras);
}

unsigned hf_extra_kinds(const struct hf_framework *framework, const struct hf_settings *settings)
{
	unsigned kinds = framework->extra_kinds;

	if (settings && settings->gang_scheduler)
		kinds |= HF_EXTRA_BIT(hf_pod_group_kind(settings));
	return kinds;
}
