/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "base/str.h"

/*
 * Names of ranks that objects of other owners have.  Holdfast leaves such objects alone, so a rank
 * may never run.  The condition NameTaken and an event report this, with the reason of upstream's
 * event for a refused create.
 *
 * - An object that is being deleted is not reported: it is usually left by a job that was created
 *   again under its name.
 * - A pod that should be gone by now is reported.  Holdfast never deletes such a pod by force, not
 *   even on a dead node.
 * - Exception: a pod that an earlier job of this name and kind left is given up with its node
 *   (policy/lost_pods.c).
 */

/* Seconds after a pod's own deadline at which it should be gone, as in overdue_pods.c. */
#define OVERDUE_SECONDS 30

/* What is reported: the first rank blocked by an object that is not being deleted, else the first
 * blocked rank; and how many ranks are blocked by objects that are not being deleted. */
struct taken {
	const char *rank; /* name of the blocked rank; NULL: no rank is blocked */
	int32_t staying;
	/* the pods of other owners that the text names, and the ranks that lack the name */
	const struct hf_pod *holder, *overdue;
	const char *holder_rank, *overdue_rank;
};

static const char *name_rank(const struct hf_brain *b, int role, int32_t index)
{
	return hf_arena_printf(b->arena, "%s-%d", b->roles[role].lower, index);
}

static void note_name(const struct hf_brain *b, int role, int32_t index, bool leaving,
		      struct taken *taken)
{
	if (!taken->rank || (!leaving && taken->staying == 0))
		taken->rank = name_rank(b, role, index);
	taken->staying += !leaving;
}

static void note_pod(const struct hf_brain *b, int role, int32_t index, struct taken *taken)
{
	const struct hf_pod *holder = b->roles[role].slots[index].pod_holder;
	bool leaving = holder->deletion_time != HF_TIME_NONE;
	hf_time at = leaving ? hf_time_add(holder->deletion_time, hf_seconds(OVERDUE_SECONDS))
			     : HF_TIME_NONE;
	bool overdue = leaving && b->now >= at;

	if (leaving && !overdue)
		hf_wake(b, at);
	if (!leaving && !taken->holder) {
		taken->holder = holder;
		taken->holder_rank = name_rank(b, role, index);
	}
	if (overdue && !taken->overdue) {
		taken->overdue = holder;
		taken->overdue_rank = name_rank(b, role, index);
	}
	note_name(b, role, index, leaving && !overdue, taken);
}

static void find_taken(const struct hf_brain *b, struct taken *pods, struct taken *services)
{
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (slot->pod_taken && !slot->pod && !slot->succeeded)
				note_pod(b, r, i, pods);
			if (slot->service_taken && !slot->service && b->job.framework->has_services)
				note_name(b, r, i, slot->service_leaving, services);
		}
	}
}

static void show_taken(struct hf_brain *b, const char *thing, const char *message)
{
	const char *reason = b->job.framework->taken_reason;

	if (!hf_cond_is_true(b, HF_COND_NAME_TAKEN))
		hf_event(b, true,
			 reason ? reason : hf_arena_printf(b->arena, "FailedCreate%s", thing),
			 hf_arena_printf(b->arena, "Error creating: %s", message));
	hf_cond_set(b, HF_COND_NAME_TAKEN, true,
		    hf_arena_printf(b->arena, "%sOfAnotherOwner", thing), message);
}

/* Tells in `holdfast why` what a person has to do so that the name becomes free. */
static void say_way_out(const struct hf_brain *b, const struct taken *pods)
{
	if (pods->holder)
		hf_say(b, b->now, HF_TOPIC_NEXT,
		       "the rank's pod is created as soon as pod %s is gone: delete that pod, if "
		       "it is not needed",
		       pods->holder->name);
	else if (pods->overdue)
		hf_say(b, b->now, HF_TOPIC_NEXT,
		       "the rank's pod is created as soon as pod %s is gone; if its node%s%s is "
		       "known to be dead, delete the pod by force (kubectl delete --force)",
		       pods->overdue->name, pods->overdue->node ? " " : "",
		       hf_str_or(pods->overdue->node, ""));
}

/* The text for pods that have the name of a rank.  It holds no time that changes. */
static const char *describe_pods(const struct hf_brain *b, const struct taken *pods)
{
	if (!pods->holder && pods->overdue) {
		bool inherited = hf_pod_is_inherited(b->view, pods->overdue);

		return hf_arena_printf(
			b->arena,
			"the name of %s is taken by a pod of %s, which should have been gone since "
			"%s%s%s; %s",
			pods->overdue_rank,
			inherited ? "an earlier job of this name" : "another owner",
			hf_time_text(b->arena, pods->overdue->deletion_time),
			pods->overdue->node ? ", on node " : "", hf_str_or(pods->overdue->node, ""),
			inherited ? "Holdfast deletes that pod by force when its node is known to "
				    "be dead"
				  : "that pod is not of this job, so Holdfast does not delete it");
	}
	return hf_arena_printf(b->arena, "the name of %s is taken by a pod of another owner",
			       pods->holder ? pods->holder_rank : pods->rank);
}

static const char *describe_services(const struct hf_brain *b, const struct taken *services)
{
	return hf_arena_printf(b->arena, "the name of %s is taken by a service of another owner",
			       services->rank);
}

/* Report that an extra object's name is taken.  Returns true if the condition was set; an object
 * that is being deleted does not set the condition. */
static bool tell_taken_extra(struct hf_brain *b, bool aside)
{
	const struct hf_extra *extra = b->extra_taken;
	const char *kind, *message;

	if (!extra || extra->aside != aside)
		return false;
	kind = hf_extra_kind_name(extra->kind);
	message = hf_arena_printf(b->arena, "the name '%s' is taken by a %s of another owner",
				  extra->name, kind);
	hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s%s", aside ? "" : "no pod is made: ", message);
	if (b->extras_staying > 0)
		show_taken(b, kind, message);
	return b->extras_staying > 0;
}

void hf_taken_names_tell(struct hf_brain *b)
{
	struct taken pods = {0}, services = {0};

	if (hf_cond_tell_blind(b, HF_COND_NAME_TAKEN)) {
		find_taken(b, &pods, &services);
		say_way_out(b, &pods);
		return;
	}
	/* Without the extra object no pod is created, so a taken name of an extra object is
	 * reported first. */
	if (tell_taken_extra(b, false))
		return;
	find_taken(b, &pods, &services);
	/* A rank without a pod matters more than a rank without a service. */
	if (pods.rank)
		hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s", describe_pods(b, &pods));
	else if (services.rank)
		hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s", describe_services(b, &services));
	say_way_out(b, &pods);
	if (pods.staying > 0)
		show_taken(b, "Pod", describe_pods(b, &pods));
	else if (services.staying > 0)
		show_taken(b, "Service", describe_services(b, &services));
	else if (!tell_taken_extra(b, true))
		hf_cond_lower(b, HF_COND_NAME_TAKEN, "NamesFree",
			      "No object of another owner has a name that the job needs.");
}

void hf_taken_names_clear(struct hf_brain *b)
{
	hf_cond_lower(b, HF_COND_NAME_TAKEN, "NamesNotNeeded",
		      "The job is suspended or finished and creates no pods.");
}
