/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_IMPACT_H
#define HF_FLEET_IMPACT_H

#include "api/device_health.h"
#include "health/types.h"

HF_BEGIN_DECLS

/* How a DeviceHealth affects the pods that hold a device: first by the device's own entry, then by
 * the entry of the node. Pure functions. */

enum hf_impact {
	HF_IMPACT_NONE,
	HF_IMPACT_SLOW,    /* the device works, slower or with errors */
	HF_IMPACT_STOPPED, /* the device does not work */
};

/* HF_HEALTH_UNKNOWN for an unknown text. */
enum hf_health_state hf_impact_state(const char *text);
bool hf_impact_is_gpu(const struct hf_device_report *device);
/* A GPU that had a UUID, and of which the agent knows nothing now: it may be gone, or its driver does not answer. */
bool hf_impact_is_unknown_gpu(const struct hf_device_report *device);
bool hf_impact_is_by(const struct hf_device_fault *fault, enum hf_health_detector detector);
/* The fault is graver than a note or a fault of the program that used the device. */
bool hf_impact_is_of_device(const struct hf_device_fault *fault);
/* The same, and the fault is active. */
bool hf_impact_counts(const struct hf_device_fault *fault);
/* Finds the entry of the node itself in a DeviceHealth. NULL: there is none. */
const struct hf_device_report *hf_impact_node_report(const struct hf_device_health *health);
/* How the device's own entry affects its pods. A device that is Failed because of suspicions alone,
 * without an active fault, counts as slow. */
enum hf_impact hf_impact_of_device(const struct hf_device_report *device);
/* How the entry of the node affects the pods of this device: a node's faults concern all devices,
 * or some. */
enum hf_impact hf_impact_of_node(const struct hf_device_health *health,
				 const struct hf_device_report *device);

HF_END_DECLS

#endif
