/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/str.h"

#include <signal.h>

/*
 * Ends a pod, because of a deletion, a deadline, a phase that another client has set, or a drain.
 * The shim records the reason first; then the containers get SIGTERM, and SIGKILL after the grace
 * period.
 */
#define KILL_AGAIN HF_SECOND
/* A drain that waits this long after SIGKILL kills the shim: the shim does not answer, or cannot
 * write to its journal. */
#define SHIM_KILL_AFTER (10 * HF_SECOND)

void hf_kubelet_pod_stop(struct hf_kubelet_pod *pod, enum hf_kubelet_pod_stop why, hf_time grace)
{
	hf_time now = hf_loop_mono(pod->kubelet->loop);

	if (pod->state == HF_KUBELET_POD_QUITTING || pod->state == HF_KUBELET_POD_ENDED)
		return;
	if (pod->stop == HF_KUBELET_POD_GO) {
		pod->stop = why;
		pod->stop_since = now;
		pod->stop_grace = grace;
	} else if (hf_time_add(pod->stop_since, pod->stop_grace) > hf_time_add(now, grace)) {
		pod->stop_grace = now + grace - pod->stop_since;
	} else {
		/* Each run of sync_pod calls this. The pod is being stopped already, with a grace
		 * that is not longer, so there is nothing to do. */
		return;
	}
	hf_kubelet_pod_wake(pod);
}

/* Tells the shim to record the stop before any container gets a signal. The record shows a later
 * reader of the journal that the kubelet caused the terminations, even if this program is killed
 * meanwhile. Returns false if the shim cannot take the command now. */
bool hf_kubelet_pod_tell_stop(struct hf_kubelet_pod *pod)
{
	if (pod->stop_told || pod->past.stop != HF_STOPPED_NOT)
		return true;
	if (pod->stop == HF_KUBELET_POD_STOP_DRAIN)
		pod->stop_told = hf_kubelet_shim_command(pod->shim, "stop drain");
	else if (pod->stop == HF_KUBELET_POD_STOP_DEADLINE)
		pod->stop_told = hf_kubelet_shim_command(pod->shim, "stop deadline");
	else
		pod->stop_told = true;
	return pod->stop_told;
}

static const struct hf_container_past *running_past(const struct hf_kubelet_pod *pod, size_t i)
{
	const struct hf_container_past *past =
		hf_pod_past_find(&pod->past, pod->containers[i].name);

	return past && hf_attempt_running(&past->last) ? past : NULL;
}

/* Tells whether the container has to wait: a sidecar ends after the main containers, and sidecars
 * end in the reverse order of their starts. */
static bool waits_for_others(const struct hf_kubelet_pod *pod, size_t i)
{
	for (size_t k = 0; pod->containers[i].sidecar && k < pod->n; k++)
		if (k != i && running_past(pod, k) && (!pod->containers[k].sidecar || k > i))
			return true;
	return false;
}

/* Signals a running container: SIGTERM first, SIGKILL when `left` (the rest of the grace period)
 * is over. */
static void stop_container(struct hf_kubelet_pod *pod, size_t i, hf_time left)
{
	struct hf_kubelet_pod_container *c = &pod->containers[i];
	unsigned attempt = running_past(pod, i)->last.number;
	bool failed = c->fail_attempt == (int64_t)attempt;

	if (left <= -SHIM_KILL_AFTER && pod->stop == HF_KUBELET_POD_STOP_DRAIN) {
		(void)hf_process_id_kill(&pod->past.shim, SIGKILL, NULL);
	} else if (left <= 0) {
		hf_kubelet_shim_command(pod->shim, "signal %s %u %d", c->name, attempt, SIGKILL);
	} else if (c->term_sent < (int64_t)attempt && (failed || !waits_for_others(pod, i)) &&
		   hf_kubelet_pre_stop(c, attempt, left)) {
		c->term_sent = (int64_t)attempt;
		if (!failed)
			hf_kubelet_event(pod, "Normal", "Killing", "Stopping container %s",
					 c->name);
		hf_kubelet_shim_command(pod->shim, "signal %s %u %d", c->name, attempt, SIGTERM);
	}
	hf_kubelet_pod_wake_in(pod, left <= 0 ? KILL_AGAIN : left);
}

static void stop_until(struct hf_kubelet_pod *pod, hf_time kill_at, bool sidecars_only)
{
	hf_time now = hf_loop_mono(pod->kubelet->loop);

	for (size_t i = 0; i < pod->n; i++)
		if (running_past(pod, i) && (!sidecars_only || pod->containers[i].sidecar))
			stop_container(pod, i, kill_at - now);
}

void hf_kubelet_pod_stop_containers(struct hf_kubelet_pod *pod)
{
	stop_until(pod, hf_time_add(pod->stop_since, pod->stop_grace), false);
}

void hf_kubelet_pod_stop_sidecars(struct hf_kubelet_pod *pod)
{
	if (pod->sidecars_since == HF_TIME_NONE)
		pod->sidecars_since = hf_loop_mono(pod->kubelet->loop);
	stop_until(pod, hf_time_add(pod->sidecars_since, hf_kubelet_pod_grace(pod)), true);
}

void hf_kubelet_container_fail(struct hf_kubelet_pod_container *c, unsigned attempt,
			       const char *why, int64_t grace_s)
{
	struct hf_kubelet_pod *pod = c->pod;
	hf_time grace = grace_s < 0 || grace_s > HF_DAY / HF_SECOND ? hf_kubelet_pod_grace(pod)
								    : grace_s * HF_SECOND;

	if (c->fail_attempt == (int64_t)attempt)
		return;
	c->fail_attempt = (int64_t)attempt;
	c->fail_kill_at = hf_time_add(hf_loop_mono(pod->kubelet->loop), grace);
	hf_kubelet_event(pod, "Normal", "Killing", "Container %s %s", c->name, why);
	hf_kubelet_pod_wake(pod);
}

void hf_kubelet_pod_stop_failed(struct hf_kubelet_pod *pod)
{
	hf_time now = hf_loop_mono(pod->kubelet->loop);

	for (size_t i = 0; i < pod->n; i++) {
		const struct hf_kubelet_pod_container *c = &pod->containers[i];
		const struct hf_container_past *past = running_past(pod, i);

		if (past && c->fail_attempt == (int64_t)past->last.number)
			stop_container(pod, i, c->fail_kill_at - now);
	}
}

/* Stops the pod if its document asks for that: a deletion, a phase that another client has set, or
 * a passed deadline. */
void hf_kubelet_pod_look_for_ends(struct hf_kubelet_pod *pod)
{
	const struct hf_json *root = hf_doc_json(pod->doc);
	const char *phase = hf_json_path_str(root, "status", "phase", NULL);
	int64_t deadline_s =
		hf_json_i64(hf_json_path(root, "spec", "activeDeadlineSeconds", NULL), -1);
	int64_t grace_s =
		hf_json_i64(hf_json_path(root, "metadata", "deletionGracePeriodSeconds", NULL), -1);

	if (!pod->doc)
		return; /* hf_kubelet_pod_gone_from_store has stopped the pod already */
	if (hf_kubelet_pod_deletion_time(pod))
		hf_kubelet_pod_stop(pod, HF_KUBELET_POD_STOP_DELETED,
				    grace_s < 0 ? hf_kubelet_pod_grace(pod) : grace_s * HF_SECOND);
	if ((hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded")) &&
	    pod->state != HF_KUBELET_POD_ENDED)
		hf_kubelet_pod_stop(pod, HF_KUBELET_POD_STOP_FAILED, hf_kubelet_pod_grace(pod));
	if (deadline_s >= 0 && pod->start_time != HF_TIME_NONE &&
	    pod->state != HF_KUBELET_POD_ENDED) {
		hf_time left = hf_time_add(pod->start_time, deadline_s * HF_SECOND) -
			       hf_loop_wall(pod->kubelet->loop);

		if (left <= 0)
			hf_kubelet_pod_stop(pod, HF_KUBELET_POD_STOP_DEADLINE,
					    hf_kubelet_pod_grace(pod));
		else
			hf_kubelet_pod_wake_in(pod, left);
	}
}
