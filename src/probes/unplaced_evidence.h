/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_UNPLACED_EVIDENCE_H
#define HF_PROBES_UNPLACED_EVIDENCE_H

#include "health/step.h"

HF_BEGIN_DECLS

/*
 * Evidence about a PCI address that belongs to no known device and to no port above one.
 *
 * An agent that starts reads the kernel's log of this boot at once. The probes name the devices a
 * moment later, or minutes later if the driver's library is slow. Until then this list keeps
 * evidence of the detectors aer and mlx5. When a probe names the device, the intake takes the
 * evidence out. Limits: HF_UNPLACED_EVIDENCE_MAX pieces, of which the oldest is dropped first, and
 * HF_UNPLACED_EVIDENCE_SPAN from the creation of the list.
 */
#define HF_UNPLACED_EVIDENCE_MAX 64
#define HF_UNPLACED_EVIDENCE_SPAN (10 * HF_MINUTE)

struct hf_unplaced_evidence;

struct hf_unplaced_evidence *hf_unplaced_evidence_create(hf_time now);
struct hf_unplaced_evidence *hf_unplaced_evidence_destroy(
	struct hf_unplaced_evidence *list); /* NULL is fine; returns NULL */

/* The brain drops this kind of evidence if it does not know the device, so the evidence is worth
 * keeping. */
bool hf_unplaced_evidence_is_kept(const struct hf_health_evidence *evidence);
/* Keeps the evidence, unless it fits a known device or HF_UNPLACED_EVIDENCE_SPAN is over. True: it
 * is kept. */
bool hf_unplaced_evidence_keep(struct hf_unplaced_evidence *list,
			       const struct hf_health_evidence *evidence,
			       const struct hf_health_presence *devices, size_t len, hf_time now);
/* Takes the oldest evidence that fits the device out of the list. False: there is none. */
bool hf_unplaced_evidence_take(struct hf_unplaced_evidence *list,
			       const struct hf_health_presence *device,
			       struct hf_health_evidence *ret_evidence);

HF_END_DECLS

#endif
