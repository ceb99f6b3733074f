/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_UNPLACED_H
#define HF_AGENT_UNPLACED_H

#include "health/step.h"

HF_BEGIN_DECLS

/*
 * Evidence about an address on the PCI bus that no known device has and no known device is below.
 *
 * When an agent starts, it reads the kernel's log of this boot at once, and learns a moment later
 * (minutes, where the driver is slow) which devices there are.  Evidence of the bus is kept for so long, and
 * given out when its device is named.  Limits: HF_UNPLACED_MAX pieces, the oldest goes first; ten minutes from
 * the creation of the list.
 */
#define HF_UNPLACED_MAX 64
#define HF_UNPLACED_SPAN (10 * HF_MINUTE)

struct hf_unplaced;

struct hf_unplaced *hf_unplaced_create(hf_time now);
struct hf_unplaced *hf_unplaced_destroy(struct hf_unplaced *list); /* NULL is fine; returns NULL */

/* The brain drops such evidence where it does not know the device. */
bool hf_unplaced_is_kept(const struct hf_health_evidence *evidence);
/* The evidence is of that device, or of a port above it. */
bool hf_unplaced_fits(const struct hf_health_evidence *evidence,
		      const struct hf_health_presence *device);
/* Keeps evidence that none of the devices fits; else, and after the span, does nothing.  True: it is kept. */
bool hf_unplaced_keep(struct hf_unplaced *list, const struct hf_health_evidence *evidence,
		      const struct hf_health_presence *devices, size_t len, hf_time now);
/* Takes the oldest piece that fits the device out of the list.  False: there is none. */
bool hf_unplaced_take(struct hf_unplaced *list, const struct hf_health_presence *device,
		      struct hf_health_evidence *ret_evidence);

HF_END_DECLS

#endif
