/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_DEVICE_TAINT_PLAN_H
#define HF_FLEET_DEVICE_TAINT_PLAN_H

#include "api/device_health.h"
#include "fleet/device_taint_rule.h"

HF_BEGIN_DECLS

/*
 * Which rules the devices of one node need.
 * Input: the DeviceHealth of the node, its ResourceSlices, Holdfast's rules for it.  Output: one write, or why a failed
 * device cannot be taken out of use alone.  Pure.
 *
 * Promises:
 * - A rule is made for a device that has failed, and only if exactly one device of DRA is that device.
 * - A rule stays until the device is Healthy, even if the device is on probation or its driver is away.
 * - A rule whose device is another GPU now is removed, and no rule selects more than one device.
 */

#define HF_DEVICE_TAINTS_MAX 256 /* Holdfast's rules for one node */

enum hf_device_taint_do {
	HF_DEVICE_TAINT_NOTHING,
	HF_DEVICE_TAINT_CREATE, /* `rule` */
	HF_DEVICE_TAINT_CHANGE, /* class and effect of rules[at] */
	HF_DEVICE_TAINT_DELETE, /* rules[at] */
	HF_DEVICE_TAINT_WAIT,   /* a pool is being rewritten: look again soon */
};

struct hf_device_taint_view {
	const char *node;
	const struct hf_device_health *health; /* NULL: there is none */
	/* the effect of the rules of failed devices, of which a slow device gets NoSchedule in the place of NoExecute; NULL: the
	 * node has no quarantine, so no rule is needed */
	const char *effect;
	bool may_create; /* false: nothing new is done now; rules that are not needed go */
	const struct hf_dra_slice *slices;
	size_t slices_len;
	const struct hf_device_taint *rules;
	size_t rules_len;
	/* how many devices of a resource its device plugin withholds, so that no pod can be given them; resource NULL: the
	 * most of any resource */
	int64_t (*withheld)(void *arg, const char *resource);
	void *arg;
};

struct hf_device_taint_plan {
	enum hf_device_taint_do act;
	size_t at;
	struct hf_device_taint rule;
	/* why a failed device cannot be taken out of use alone, so that the node has to be; NULL: every one can */
	const char *why_node;
	/* the same, but the device's plugin and the kubelet may need time to withhold it */
	const char *why_offered;
	bool offers_slow; /* such a device only is slow: no pod is evicted from it */
};

/* Texts come from the arena, the view or are static. */
void hf_device_taint_plan(const struct hf_device_taint_view *view, struct hf_arena *arena,
			  struct hf_device_taint_plan *ret_plan);

/* The failed devices as text of the annotation HF_DEVICES_OUT_ANNOTATION; NULL: none has failed. If the plan has
 * nothing to do and no reason to take the node, no pod can be given one of them. */
const char *hf_device_taint_list(const struct hf_device_taint_view *view, struct hf_arena *arena);

/* Whether all faults that act belong to single devices: else only the whole node can be taken out of use. */
bool hf_device_taint_is_confined(const struct hf_device_health *health);

HF_END_DECLS

#endif
