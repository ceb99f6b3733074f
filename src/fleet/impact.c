/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/impact.h"

#include "base/str.h"

/*
 * How a DeviceHealth affects the pods that hold a device.  Input: one DeviceHealth, and one of its
 * devices.  Output: enum hf_impact.  Pure: the operator uses this file as well.
 */

enum hf_health_state hf_impact_state(const char *text)
{
	enum hf_health_state state;

	return hf_health_state_of(hf_str_or(text, ""), &state) ? state : HF_HEALTH_UNKNOWN;
}

bool hf_impact_is_by(const struct hf_device_fault *fault, enum hf_health_detector detector)
{
	enum hf_health_detector d;

	return hf_health_detector_of(hf_str_or(fault->detector, ""), &d) && d == detector;
}

const struct hf_device_report *hf_impact_node_report(const struct hf_device_health *health)
{
	for (size_t i = 0; i < health->devices.len; i++)
		if (hf_str_is_empty(health->devices.items[i].id))
			return &health->devices.items[i];
	return NULL;
}

bool hf_impact_is_gpu(const struct hf_device_report *device)
{
	return hf_streq(device->kind, hf_health_kind_name(HF_HEALTH_GPU));
}

bool hf_impact_is_unknown_gpu(const struct hf_device_report *device)
{
	return hf_impact_is_gpu(device) && !hf_str_is_empty(device->uuid) &&
	       hf_impact_state(device->state) == HF_HEALTH_UNKNOWN;
}

bool hf_impact_is_of_device(const struct hf_device_fault *fault)
{
	enum hf_health_class cls;

	return !hf_health_class_of(hf_str_or(fault->cls, ""), &cls) || cls >= HF_HEALTH_SOFTWARE;
}

bool hf_impact_counts(const struct hf_device_fault *fault)
{
	return fault->acts && hf_impact_is_of_device(fault);
}

static bool is_held_against(const struct hf_device_report *device)
{
	for (size_t i = 0; i < device->faults.len; i++)
		if (hf_impact_counts(&device->faults.items[i]))
			return true;
	return false;
}

enum hf_impact hf_impact_of_device(const struct hf_device_report *device)
{
	enum hf_health_state state = hf_impact_state(device->state);

	if (state == HF_HEALTH_FAILED && !is_held_against(device))
		return HF_IMPACT_SLOW;
	if (hf_health_is_out(state))
		return HF_IMPACT_STOPPED;
	return state == HF_HEALTH_DEGRADED_STATE ? HF_IMPACT_SLOW : HF_IMPACT_NONE;
}

static bool is_lost(const struct hf_device_report *device)
{
	for (size_t i = 0; i < device->faults.len; i++)
		if (device->faults.items[i].acts &&
		    hf_impact_is_by(&device->faults.items[i], HF_HEALTH_BUSLOST))
			return hf_impact_of_device(device) == HF_IMPACT_STOPPED;
	return false;
}

/* The node reports fewer devices than it had, and an entry of a device says which one fell off the
 * bus: no other device is missing. */
static bool is_known(const struct hf_device_health *health)
{
	for (size_t i = 0; i < health->devices.len; i++)
		if (is_lost(&health->devices.items[i]))
			return true;
	return false;
}

/* The faults of the node stop each of its devices. False: they concern some devices only, such as a
 * fault that peers share or a missing device with a known name. */
static bool stops_all(const struct hf_device_health *health, const struct hf_device_report *node)
{
	for (size_t i = 0; i < node->faults.len; i++) {
		const struct hf_device_fault *fault = &node->faults.items[i];
		enum hf_health_class cls;

		if (!fault->acts || (hf_health_class_of(hf_str_or(fault->cls, ""), &cls) &&
				     !hf_health_is_fatal(cls)))
			continue;
		if (!hf_impact_is_by(fault, HF_HEALTH_PEERS) &&
		    !(hf_impact_is_by(fault, HF_HEALTH_COUNT) && is_known(health)))
			return true;
	}
	return hf_impact_state(node->state) != HF_HEALTH_UNHEALTHY;
}

/* The device has a fatal fault that does not act, because a fault of the whole node covers it. The
 * fault has not ended. */
static bool is_covered(const struct hf_device_report *device)
{
	enum hf_health_class cls;

	for (size_t i = 0; i < device->faults.len; i++)
		if (!device->faults.items[i].acts &&
		    hf_health_class_of(hf_str_or(device->faults.items[i].cls, ""), &cls) &&
		    hf_health_is_fatal(cls))
			return hf_impact_state(device->state) == HF_HEALTH_UNKNOWN;
	return false;
}

enum hf_impact hf_impact_of_node(const struct hf_device_health *health,
				 const struct hf_device_report *device)
{
	const struct hf_device_report *node = hf_impact_node_report(health);
	enum hf_impact impact = node != NULL ? hf_impact_of_device(node) : HF_IMPACT_NONE;

	if (impact != HF_IMPACT_STOPPED || is_covered(device) || stops_all(health, node))
		return impact;
	return HF_IMPACT_SLOW;
}
