/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_PAIRS_INTERNAL_H
#define HF_HEALTH_PAIRS_INTERNAL_H

#include "health/scan_internal.h"

HF_BEGIN_DECLS

/* What the readers and writers of "KEY=VALUE" lines share: beat.c, process_line.c. */

/* The index of the name in the list; -1: it is not there. */
int hf_pairs_find_key(const char *const *keys, int keys_len, const struct hf_scan *name);
/* A value that is one number; false: it is none, or too large, and *ret_number is unchanged. */
bool hf_pairs_take_number(struct hf_scan *value, int digits_max, uint64_t max,
			  uint64_t *ret_number);

/* A line that is written.  The buffer has room for all keys at their longest, so nothing is ever cut. */
struct hf_pairs {
	char *text;
	size_t size, len; /* len: without the NUL */
};
void hf_pairs_add(struct hf_pairs *pairs, const char *fmt, ...) HF_PRINTF(2, 3);

HF_END_DECLS

#endif
