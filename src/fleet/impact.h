/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_IMPACT_H
#define HF_FLEET_IMPACT_H

#include "api/device_health.h"
#include "health/types.h"

HF_BEGIN_DECLS

/* What a DeviceHealth says of those who hold a device: by the device's own row, and by the node's. */

enum hf_impact {
	HF_IMPACT_NONE,
	HF_IMPACT_SLOW,    /* it is slow, or not as it should be, and can be worked with */
	HF_IMPACT_STOPPED, /* it cannot */
};

/* UNKNOWN for a word that is none. */
enum hf_health_state hf_impact_state(const char *text);
bool hf_impact_is_by(const struct hf_device_fault *fault, enum hf_health_detector detector);
/* It acts, and is more than a note or a program's. */
bool hf_impact_counts(const struct hf_device_fault *fault);
/* The row of the node itself; NULL: there is none. */
const struct hf_device_report *hf_impact_node_report(const struct hf_device_health *health);
/* By its own row.  Failed by suspicions alone, with nothing that acts any more, it is slow. */
enum hf_impact hf_impact_of_device(const struct hf_device_report *device);
/* By the node's: what is wrong with the node is wrong with each of its devices, or with some. */
enum hf_impact hf_impact_of_node(const struct hf_device_health *health,
				 const struct hf_device_report *device);

HF_END_DECLS

#endif
