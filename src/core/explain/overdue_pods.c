/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include <string.h>

/*
 * Pods that should be gone by now on a node that is reachable: a process that cannot be killed, a
 * volume that cannot be unmounted, a finalizer that is not removed.  They are never deleted by
 * force, because their containers may still run.  Output: the condition PodStuckTerminating, which
 * names the pods and what keeps them.
 */

/* Seconds after the pod's own deadline at which it counts as stuck.  The kubelet needs part of this
 * time to unmount volumes and to report. */
#define STUCK_SECONDS 30

struct stuck {
	int32_t count;
	const struct hf_pod *first; /* the first by name */
};

/* The pod may count as stuck.  On a lost node that is only a pod that was deleted by force and that
 * finalizers keep. */
static bool is_held(const struct hf_brain *b, const struct hf_pod *pod)
{
	if (pod->forced)
		return pod->finalizers_len > 0;
	return !hf_node_lost(b, pod);
}

static void note_if_overdue(const struct hf_brain *b, const struct hf_pod *pod, struct stuck *stuck)
{
	hf_time at;

	if (!pod->owned || pod->deletion_time == HF_TIME_NONE)
		return;
	at = hf_time_add(pod->deletion_time, hf_seconds(STUCK_SECONDS));
	if (!is_held(b, pod))
		return;
	if (b->now < at) {
		hf_wake(b, at);
		return;
	}
	if (stuck->count++ == 0 || strcmp(pod->name, stuck->first->name) < 0)
		stuck->first = pod;
}

static const char *list_finalizers(const struct hf_brain *b, const struct hf_pod *pod)
{
	const char *text = pod->finalizers[0];

	for (size_t i = 1; i < pod->finalizers_len; i++)
		text = hf_arena_printf(b->arena, "%s, %s", text, pod->finalizers[i]);
	return text;
}

static const char *describe_holder(const struct hf_brain *b, const struct hf_pod *pod)
{
	if (pod->finalizers_len > 0)
		return hf_arena_printf(b->arena, "finalizer %s keeps it", list_finalizers(b, pod));
	if (!pod->node)
		return "the pod has no node, so the API server should have removed it";
	return hf_arena_printf(b->arena,
			       "the kubelet of node %s%s has not confirmed the end of the pod; "
			       "Holdfast does not delete it by force",
			       pod->node, hf_node_of(b, pod) ? ", which is reachable," : "");
}

void hf_overdue_pods_tell(struct hf_brain *b)
{
	struct stuck stuck = {0};
	const char *message;

	if (hf_cond_tell_blind(b, HF_COND_POD_STUCK))
		return;
	for (size_t i = 0; i < b->seen->pods_len; i++)
		note_if_overdue(b, &b->seen->pods[i], &stuck);
	if (stuck.count == 0) {
		hf_cond_lower(b, HF_COND_POD_STUCK, "PodsGone",
			      "No pod of the job is past its grace on a node that is reachable.");
		return;
	}
	message = hf_arena_printf(
		b->arena, "%d pod(s) should have been gone by now, %s first (since %s): %s",
		stuck.count, stuck.first->name, hf_time_text(b->arena, stuck.first->deletion_time),
		describe_holder(b, stuck.first));
	if (!hf_cond_is_true(b, HF_COND_POD_STUCK))
		hf_event(b, true, "PodStuckTerminating", message);
	hf_cond_set(b, HF_COND_POD_STUCK, true,
		    stuck.first->finalizers_len > 0 ? "Finalizers" : "Kubelet", message);
	hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s", message);
	hf_block(b, message);
}
