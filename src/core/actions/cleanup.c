/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "base/str.h"
#include "core/model/names.h"

/*
 * The pods of a finished job.  Each pod is deleted, stopped and kept, or kept as it is:
 *
 *     by cleanPodPolicy, or created late          deleted
 *     the job has failed, podsAfterEnd: Stop
 *         it has not begun                        deleted: it never begins
 *         it runs                                 stopped and kept, with its logs
 *     its program has succeeded, and the grace    stopped and kept
 *     of its other containers is over
 *     any other                                   kept
 *
 * Pods that still run after that are told.  Nothing is charged: a finished job counts no
 * terminations.  A pod that is being deleted or was stopped is not asked for again.
 */

/* Ranks of a job end within a second or two of each other: the condition PodsStillRun waits this
 * long after the end of the job. */
#define TELL_SECONDS 30

/* The two STOP values differ in the reason that the annotation holdfast.dev/stopped names. */
enum fate { FATE_KEEP, FATE_DELETE, FATE_STOP_FAILED, FATE_STOP_SUCCEEDED };

/* The pods of a finished job that still run, by the reason why they do. */
struct left {
	int32_t running;  /* pods that are kept and run on */
	int32_t waiting;  /* pods that are kept although the program has not begun */
	int32_t stopping; /* pods that were told to end */
	/* part of `stopping`: pods that were told to end because the rank had succeeded */
	int32_t stopping_succeeded;
	const char *first, *first_stopping;
};

static bool is_active(const struct hf_pod *pod)
{
	return pod->phase == HF_POD_PENDING || pod->phase == HF_POD_RUNNING;
}

/* The role of a pod that has not the name of a rank.  Such a pod has no own container. */
#define NO_ROLE (-1)

/* The kubelet has never started the pod's own container (that of the kind's name).  Containers
 * beside it do not count. */
static bool is_unbegun(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	const struct hf_container_seen *own =
		role == NO_ROLE ? NULL : hf_own_container(b, role, pod);

	if (own && own->phase == HF_CONTAINER_WAITING)
		return is_active(pod) && !hf_container_has_begun(own);
	return pod->phase == HF_POD_PENDING && !hf_pod_has_begun(pod);
}

/* The ledger knows the pod.  A pod that the ledger does not know was created late: by a leader that
 * had lost its lease, or by a slow request.  A job without a ledger ended under another operator:
 * none of its pods is late. */
static bool is_of_record(const struct hf_brain *b, const struct hf_role_slots *ranks,
			 const struct hf_slot *slot)
{
	return !b->ledger.present || !ranks->present ||
	       (slot->current && (slot->created || slot->succeeded));
}

static bool is_cleaned(const struct hf_brain *b, const struct hf_pod *pod)
{
	return b->job.clean == HF_CLEAN_ALL || (b->job.clean == HF_CLEAN_RUNNING && is_active(pod));
}

/* What becomes of a pod that cleanPodPolicy keeps.  If the job succeeded, the pod stays as under
 * upstream's operator.  If the job has no ledger, the pod stays as the other operator left it. */
static enum fate find_fate(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	if (b->job.recovery.after_end == HF_AFTER_END_KEEP || !b->ledger.present ||
	    !is_active(pod) || !hf_cond_is_true(b, HF_COND_FAILED))
		return FATE_KEEP;
	if (is_unbegun(b, role, pod))
		return FATE_DELETE;
	return FATE_STOP_FAILED;
}

/* A pod that carries the annotation holdfast.dev/stopped counts as stopped, even if the present
 * settings would keep it. */
static enum fate find_old_fate(const struct hf_pod *pod, enum fate fate)
{
	if (fate != FATE_KEEP || !pod->stopped)
		return fate;
	return hf_streq(pod->stopped, HF_STOPPED_SUCCEEDED) ? FATE_STOP_SUCCEEDED
							    : FATE_STOP_FAILED;
}

static void apply_fate(struct hf_brain *b, int role, const struct hf_pod *pod, enum fate fate,
		       struct left *left)
{
	static const char *const stamps[] = {
		[FATE_STOP_FAILED] = HF_STOPPED_JOB_FAILED,
		[FATE_STOP_SUCCEEDED] = HF_STOPPED_SUCCEEDED,
	};

	fate = find_old_fate(pod, fate);
	if (fate == FATE_DELETE)
		hf_pod_delete(b, pod, (struct hf_opt_int){0});
	else if (fate != FATE_KEEP)
		hf_pod_stop(b, pod, stamps[fate]);
	if (fate == FATE_DELETE || !is_active(pod) || pod->deletion_time != HF_TIME_NONE)
		return;
	if (fate != FATE_KEEP) {
		if (left->stopping++ == 0)
			left->first_stopping = pod->name;
		left->stopping_succeeded += fate == FATE_STOP_SUCCEEDED;
		return;
	}
	if (left->running + left->waiting == 0)
		left->first = pod->name;
	if (is_unbegun(b, role, pod))
		left->waiting++;
	else
		left->running++;
}

static void clean_slot(struct hf_brain *b, int role, int32_t index, struct left *left)
{
	const struct hf_role_slots *ranks = &b->roles[role];
	const struct hf_slot *slot = &ranks->slots[index];
	bool goes = slot->pod && (is_cleaned(b, slot->pod) || !is_of_record(b, ranks, slot));
	bool beyond = ranks->present && index >= ranks->replicas;

	if (slot->pod) {
		bool over = hf_sidecar_is_over(b, role, slot);

		apply_fate(b, role, slot->pod,
			   goes   ? FATE_DELETE
			   : over ? FATE_STOP_SUCCEEDED
				  : find_fate(b, role, slot->pod),
			   left);
	}
	/* A service stays only beside a pod that stays.  The service of a removed rank is deleted. */
	if (slot->service && (beyond || (b->job.clean != HF_CLEAN_NONE && (goes || !slot->pod))))
		hf_service_delete(b, slot->service);
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* "2 pod(s) still run and 1 waits to start, ddp-worker-0 first: cleanPodPolicy is None" */
static const char *describe_left(const struct hf_brain *b, const struct left *left)
{
	bool keep = b->job.recovery.after_end == HF_AFTER_END_KEEP;
	const char *waiting =
		left->waiting > 0
			? hf_arena_printf(b->arena, "%d pod(s) wait to start", left->waiting)
			: "";

	return hf_arena_printf(
		b->arena, "%s%s%s, %s first: cleanPodPolicy is None%s",
		left->running > 0 ? hf_arena_printf(b->arena, "%d pod(s) still run", left->running)
				  : "",
		left->running > 0 && left->waiting > 0 ? " and " : "", waiting, left->first,
		keep ? ", and recovery.podsAfterEnd is Keep" : "");
}

static void say_stopping(const struct hf_brain *b, const struct left *left)
{
	if (left->stopping > 0)
		hf_say(b, b->now, HF_TOPIC_NEXT,
		       "%d pod(s) are ended and kept with their logs, %s first", left->stopping,
		       left->first_stopping);
}

static const char *describe_stopping(const struct hf_brain *b, const struct left *left)
{
	const char *when = left->stopping_succeeded == 0 ? " when the job failed"
			   : left->stopping_succeeded == left->stopping
				   ? " when their ranks had succeeded"
				   : "";

	return hf_arena_printf(
		b->arena,
		"%d pod(s) were told to end%s and still run, %s first: the kubelet waits for the "
		"grace of the pod, or does not answer",
		left->stopping, when, left->first_stopping);
}

/* Set the condition PodsStillRun, but only for pods that still run TELL_SECONDS after the job
 * ended. */
static void tell_left(struct hf_brain *b, const struct left *left)
{
	hf_time at = hf_time_add(b->plan->status.completion_time, hf_seconds(TELL_SECONDS));
	bool kept = left->running + left->waiting > 0;
	const char *message;

	if (!kept && left->stopping == 0) {
		hf_cond_lower(b, HF_COND_STILL_RUN, "AllEnded",
			      "Each pod of the job has ended or is being deleted.");
		return;
	}
	message = kept ? describe_left(b, left) : describe_stopping(b, left);
	if (kept) {
		b->plan->left = message;
		hf_say(b, b->now, HF_TOPIC_NEXT, "%s", message);
	}
	if (!b->ledger.present)
		return;
	if (b->now < at) {
		hf_wake(b, at);
		return;
	}
	if (!hf_cond_is_true(b, HF_COND_STILL_RUN))
		hf_event(b, false, "PodsStillRun", message);
	hf_cond_set(b, HF_COND_STILL_RUN, true, kept ? "CleanPodPolicy" : "ToldToEnd", message);
}

void hf_cleanup_step(struct hf_brain *b)
{
	struct left left = {0};

	hf_assert(hf_cond_finished(b));
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++)
			clean_slot(b, r, i, &left);
	}
	for (size_t i = 0; i < b->strays_len; i++) {
		const struct hf_pod *pod = b->strays[i];

		apply_fate(b, NO_ROLE, pod,
			   is_cleaned(b, pod) ? FATE_DELETE : find_fate(b, NO_ROLE, pod), &left);
	}
	say_stopping(b, &left);
	tell_left(b, &left);
}
