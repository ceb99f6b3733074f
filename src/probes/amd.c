/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Decodes the table gpu_metrics of AMD's driver. A pure function; the input may be any bytes. */
#include "probes/amd.h"

#include <string.h>

/* The layout of gpu_metrics_v1_6 to v1_8 in the kernel's kgd_pp_interface.h. A header has the
 * table's size (16 bits) and the format and content version (8 bits each). The fields follow at
 * their natural alignment. */
#define FORMAT 1
#define CONTENT_SIX 6
#define CONTENT_LAST 8
#define LOAD 12 /* offset of the load in percent, behind three temperatures and the power */
#define CYCLES_OF_SIX 32
#define CYCLES_OF_SEVEN 40 /* version 1.7 added the memory bandwidth before the cycle count */

/* Offsets from the cycle count to the counters PROCHOT, PPT (skipped), socket, voltage regulators
 * and memory. */
static const size_t behind[HF_AMD_LIMITS] = {4, 12, 16, 20};

static uint32_t u32_at(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static uint32_t load_at(const unsigned char *at)
{
	uint32_t percent = (uint32_t)at[0] | (uint32_t)at[1] << 8;

	return percent <= 100 ? percent : 0;
}

void hf_amd_metrics(const void *bytes, size_t len, struct hf_amd_throttle *ret_throttle)
{
	const unsigned char *at = bytes;
	size_t cycles;

	memset(ret_throttle, 0, sizeof(*ret_throttle));
	/* Ignore a table if the size in its header is not the size of the file. */
	if (len < 4 || ((size_t)at[0] | (size_t)at[1] << 8) != len || at[2] != FORMAT ||
	    at[3] < CONTENT_SIX || at[3] > CONTENT_LAST)
		return;
	cycles = at[3] == CONTENT_SIX ? CYCLES_OF_SIX : CYCLES_OF_SEVEN;
	if (len < cycles + behind[HF_AMD_LIMITS - 1] + 4)
		return;
	ret_throttle->cycles = u32_at(at + cycles);
	ret_throttle->load_percent = load_at(at + LOAD);
	for (int i = 0; i < HF_AMD_LIMITS; i++) {
		ret_throttle->held[i] = u32_at(at + cycles + behind[i]);
		ret_throttle->known |= ret_throttle->held[i] != UINT32_MAX;
	}
	/* If a device does not report a value, the driver fills the field with one bits. */
	ret_throttle->known = ret_throttle->known && ret_throttle->cycles != UINT32_MAX;
}

bool hf_amd_throttled(const struct hf_amd_throttle *before, const struct hf_amd_throttle *now,
		      uint32_t *ret_percent)
{
	uint64_t longest = 0, span;
	bool known = false;

	/* If the cycle count stands still or fell, the device was reset and its counters began
	 * anew: no rate is known. */
	if (!before->known || !now->known || now->cycles <= before->cycles)
		return false;
	span = now->cycles - before->cycles;
	for (int i = 0; i < HF_AMD_LIMITS; i++) {
		uint64_t held;

		if (before->held[i] == UINT32_MAX || now->held[i] == UINT32_MAX ||
		    now->held[i] < before->held[i])
			continue;
		held = now->held[i] - before->held[i];
		/* A limit cannot act longer than the time between the two looks: this counter
		 * counts something else. */
		if (held > span)
			continue;
		known = true;
		longest = held > longest ? held : longest;
	}
	if (known)
		*ret_percent = (uint32_t)(longest * 100 / span);
	return known;
}
