/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_IMPACT_H
#define HF_FLEET_IMPACT_H

#include "api/device_health.h"
#include "health/types.h"

HF_BEGIN_DECLS

/* What a DeviceHealth means for the pods that hold a device: by the device's own entry, and by the
 * entry of the node. Pure functions. */

enum hf_impact {
	HF_IMPACT_NONE,
	HF_IMPACT_SLOW,    /* the device works, but slower or with faults */
	HF_IMPACT_STOPPED, /* the device does not work */
};

/* HF_HEALTH_UNKNOWN for an unknown text. */
enum hf_health_state hf_impact_state(const char *text);
bool hf_impact_is_by(const struct hf_device_fault *fault, enum hf_health_detector detector);
/* The fault acts and is graver than a note or a fault of the program. */
bool hf_impact_counts(const struct hf_device_fault *fault);
/* The entry of the node itself. NULL: there is none. */
const struct hf_device_report *hf_impact_node_report(const struct hf_device_health *health);
/* By the device's own entry. Failed because of suspicions alone, with no fault that acts, counts as
 * slow. */
enum hf_impact hf_impact_of_device(const struct hf_device_report *device);
/* By the node's entry: its faults concern each device, or some. */
enum hf_impact hf_impact_of_node(const struct hf_device_health *health,
				 const struct hf_device_report *device);

HF_END_DECLS

#endif
