/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_PAIRS_INTERNAL_H
#define HF_HEALTH_PAIRS_INTERNAL_H

#include "health/scan_internal.h"

HF_BEGIN_DECLS

/* Functions for lines of "KEY=VALUE" pairs, which beat.c and process_line.c share. */

/* The index of the name in the list of keys; -1: the list does not have it. */
int hf_pairs_find_key(const char *const *keys, int keys_len, const struct hf_scan *name);
/* Reads a value that is one number.  False: it is no number, or too large, and *ret_number is unchanged. */
bool hf_pairs_take_number(struct hf_scan *value, int digits_max, uint64_t max,
			  uint64_t *ret_number);

/* A line that is being written.  The buffer has room for all keys with their longest values, so nothing is cut
 * off. */
struct hf_pairs {
	char *text;
	size_t size, len; /* len: without the NUL */
};
void hf_pairs_add(struct hf_pairs *pairs, const char *fmt, ...) HF_PRINTF(2, 3);

HF_END_DECLS

#endif
