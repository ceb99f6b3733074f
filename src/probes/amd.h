/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_AMD_H
#define HF_PROBES_AMD_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * What sysfs's gpu_metrics says of how long an AMD device was held back: counters in cycles of its
 * firmware.  The file is a table of which each version has its own layout, named in its first
 * bytes; 1.6 to 1.8 (the MI300 series) have these counters.  Of any other nothing is known.
 */

/* Too hot somewhere on the board (PROCHOT), the socket, its voltage regulators, its memory.  Power
 * capping (PPT) is left out: a device that works as hard as it may is capped. */
#define HF_AMD_LIMITS 4

struct hf_amd_throttle {
	bool known;
	uint32_t cycles;              /* that passed */
	uint32_t held[HF_AMD_LIMITS]; /* of these cycles; UINT32_MAX: not reported */
	uint32_t load_percent;        /* 0: not reported */
};

/* Reads any bytes; ret_throttle->known is false if they hold no known counters. */
void hf_amd_metrics(const void *bytes, size_t len, struct hf_amd_throttle *ret_throttle);

/* Percent of the time between two looks, for the longest of the causes; false: not known. */
bool hf_amd_throttled(const struct hf_amd_throttle *before, const struct hf_amd_throttle *now,
		      uint32_t *ret_percent);

HF_END_DECLS

#endif
