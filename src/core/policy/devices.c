/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * Devices that fail, and the pods that hold them.
 *
 * Two speak of devices: the node's agent, who reads the kernel and the driver, and the kubelet, who
 * repeats what a plugin said last.  Either one's "it is broken" counts; neither one's silence does.
 * A device that cannot be worked with explains the end of its pod, whatever the exit code, and is
 * reason enough to restart a pod that still runs.  One that is degraded explains nothing by itself:
 * a program with a fault of its own would be restarted for ever on a device that is merely slow.
 */

/* The kernel's line may be dated a little after the death that it tells of. */
#define AFTER_SECONDS 10
/* Collectives give up on a peer after half an hour at most. */
#define BEFORE_SECONDS 1800
/* Plugins that restart call devices broken for a moment; who runs on well is not moved for that. */
#define KUBELET_SECONDS 30

static bool may_explain(const struct hf_device_seen *device, hf_time at)
{
	if (at == HF_TIME_NONE)
		return true;
	if (device->first != HF_TIME_NONE &&
	    device->first > hf_time_add(at, hf_seconds(AFTER_SECONDS)))
		return false;
	/* What is fatal does not pass by itself; what is weak or over must have been seen lately. */
	return (device->fatal && !device->over) || device->last == HF_TIME_NONE ||
	       hf_time_add(device->last, hf_seconds(BEFORE_SECONDS)) >= at;
}

/* Fatal before weak, the agent's word before the kubelet's, then by name. */
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

/* A pod on a lost node is that one's; what its agent said last may be long over. */
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

/* ---- what is told late ---------------------------------------------------------------------- */
