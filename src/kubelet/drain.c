/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

/* Ends every pod of the node. Calls back when no process of any pod runs and the store has the
 * final statuses. */

/* time limit for writing the final statuses after the last container has ended */
#define DRAIN_STATUS_MAX (5 * HF_SECOND)

static bool is_quiet(const struct hf_kubelet *k)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);)
		if (hf_kubelet_pod_active(value))
			return false;
	return true;
}

static bool is_settled(const struct hf_kubelet *k)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);)
		if (!hf_kubelet_pod_settled(value))
			return false;
	return true;
}

static void end_drain(struct hf_kubelet *k)
{
	void (*done)(void *) = k->drained;

	hf_timer_disarm(k->drain_timer);
	k->drained = NULL;
	if (done)
		done(k->drained_arg);
}

/* Time is up: the store does not accept the final statuses. The next kubelet on this folder writes
 * them from the journals. */
static void on_drain_timer(void *arg)
{
	struct hf_kubelet *k = arg;

	if (k->drained)
		hf_kubelet_notice(k, "the store did not accept the final status of every pod; the "
				     "next start writes them from the journals");
	end_drain(k);
}

static void on_drain_task(void *arg)
{
	struct hf_kubelet *k = arg;

	if (!k->draining || !k->drained || !is_quiet(k))
		return;
	if (is_settled(k))
		end_drain(k);
	else if (!hf_timer_armed(k->drain_timer))
		hf_timer_arm(k->drain_timer, DRAIN_STATUS_MAX);
}

void hf_kubelet_check_drained(struct hf_kubelet *k)
{
	if (k->draining)
		hf_task_post(k->drain_task);
}

void hf_kubelet_drain_pod(struct hf_kubelet_pod *pod)
{
	hf_time grace = pod->kubelet->drain_grace;

	/* Without the document of the store, the containers and the grace of a pod that was found on
	 * disk are unknown. The pod is stopped when the document arrives. */
	if (pod->spec_doc)
		hf_kubelet_pod_stop(pod, HF_KUBELET_POD_STOP_DRAIN,
				    grace == HF_TIME_NONE ? hf_kubelet_pod_grace(pod) : grace);
}

void hf_kubelet_drain(struct hf_kubelet *k, hf_time grace, void (*done)(void *arg), void *arg)
{
	const char *uid;
	void *value;

	k->draining = true;
	k->drain_grace = grace;
	hf_timer_disarm(k->drain_timer);
	k->drained = done;
	k->drained_arg = arg;
	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);)
		hf_kubelet_drain_pod(value);
	hf_kubelet_check_drained(k);
}

void hf_kubelet_drain_init(struct hf_kubelet *k)
{
	k->drain_task = hf_task_create(k->loop, on_drain_task, k);
	k->drain_timer = hf_timer_create(k->loop, on_drain_timer, k);
}

void hf_kubelet_drain_release(struct hf_kubelet *k)
{
	k->drain_task = hf_task_destroy(k->drain_task);
	k->drain_timer = hf_timer_destroy(k->drain_timer);
}
