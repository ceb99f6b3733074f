/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * Which device explains a termination, and which device is reason to restart a running pod. Input:
 * the devices of one pod, as its node's agent and its kubelet report them.
 *
 * A report of a broken device counts, whether the agent or the kubelet wrote it.  A missing report
 * does not mean that a device works.  An unusable device (fatal) explains the termination of its
 * pod, with any exit code, and is reason to restart a running pod.  A degraded device explains
 * nothing by itself: a program with a fault of its own would be restarted for ever on a slow
 * device.
 */

/* A device fault this long before a termination may still be its cause: collective operations give
 * up on a dead peer after half an hour at most. */
#define BEFORE_SECONDS 1800
/* A running pod is restarted only after the kubelet has called its device unhealthy for this long.
 * A device plugin that restarts reports all its devices as broken for a moment. */
#define KUBELET_SECONDS 30

static bool may_explain(const struct hf_device_seen *device, hf_time at)
{
	if (at == HF_TIME_NONE)
		return true;
	if (device->first != HF_TIME_NONE && device->first > hf_time_add(at, HF_LINE_LATE))
		return false;
	/* A fatal fault does not pass by itself.  A weak fault, or a fault that is over, must have
	 * been seen within BEFORE_SECONDS before the termination. */
	return (device->fatal && !device->over) || device->last == HF_TIME_NONE ||
	       hf_time_add(device->last, hf_seconds(BEFORE_SECONDS)) >= at;
}

/* Order of devices as evidence: fatal before weak, the agent's report before the kubelet's, then by
 * name and class. */
bool hf_device_is_better(const struct hf_device_seen *a, const struct hf_device_seen *b)
{
	int order;

	if (!b || a->fatal != b->fatal)
		return !b || a->fatal;
	if (a->agent != b->agent)
		return a->agent;
	order = strcmp(a->id, b->id);
	return order != 0 ? order < 0 : strcmp(a->cls, b->cls) < 0;
}

const struct hf_device_seen *hf_device_find_cause(const struct hf_pod *pod, hf_time at)
{
	const struct hf_device_seen *best = NULL;

	for (size_t i = 0; i < pod->devices_len; i++) {
		const struct hf_device_seen *device = &pod->devices[i];

		if (device->fatal && may_explain(device, at) && hf_device_is_better(device, best))
			best = device;
	}
	return best;
}

const struct hf_device_seen *hf_device_match(const struct hf_rule *rule, const struct hf_pod *pod,
					     hf_time at)
{
	const struct hf_device_seen *best = NULL;

	for (size_t c = 0; c < rule->device_classes_len; c++) {
		for (size_t i = 0; i < pod->devices_len; i++) {
			const struct hf_device_seen *device = &pod->devices[i];

			if (hf_streq(rule->device_classes[c], device->cls) &&
			    may_explain(device, at) && hf_device_is_better(device, best))
				best = device;
		}
	}
	return best;
}

/* On a lost node the agent's last report may be out of date, so node_loss.c decides on the pod. */
bool hf_device_ends_pod(const struct hf_brain *b, const struct hf_pod *pod)
{
	hf_time at;
	bool ends = false;

	if (pod->devices_len == 0 || b->job.recovery.on_unhealthy == HF_DEVICE_IGNORE ||
	    hf_node_lost(b, pod))
		return false;
	for (size_t i = 0; i < pod->devices_len && !ends; i++) {
		const struct hf_device_seen *device = &pod->devices[i];

		if (!device->fatal || !device->held || device->over)
			continue;
		ends = device->agent || pod->unwell_at == HF_TIME_NONE;
		if (ends)
			break;
		at = hf_time_add(pod->unwell_at, hf_seconds(KUBELET_SECONDS));
		ends = b->now >= at;
		if (!ends)
			hf_wake(b, at);
	}
	return ends;
}
