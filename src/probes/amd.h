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
 * Reads from sysfs's gpu_metrics how long a limit slowed an AMD device down, in cycles of its
 * firmware. Each version of the table has its own layout and names it in its first bytes. Versions
 * 1.6 to 1.8 (the MI300 series) have these counters; of other versions nothing is known.
 */

/* The limits: heat on the board (PROCHOT), of the socket, of its voltage regulators, and of its
 * memory. Power capping (PPT) is left out, because a device at full load is always capped. */
#define HF_AMD_LIMITS 4

struct hf_amd_throttle {
	bool known;
	uint32_t cycles; /* firmware cycles that passed */
	/* in how many of these cycles each limit acted; UINT32_MAX: not reported */
	uint32_t held[HF_AMD_LIMITS];
	uint32_t load_percent; /* 0: not reported */
};

/* Decodes the bytes of a table. ret_throttle->known is false if the table is not of a known
 * version. */
void hf_amd_metrics(const void *bytes, size_t len, struct hf_amd_throttle *ret_throttle);

/* For how many percent of the time between two looks a limit slowed the device down; of several
 * limits, the longest. False: not known. */
bool hf_amd_throttled(const struct hf_amd_throttle *before, const struct hf_amd_throttle *now,
		      uint32_t *ret_percent);

HF_END_DECLS

#endif
