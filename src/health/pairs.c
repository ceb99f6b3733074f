/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads and writes lines of "KEY=VALUE" pairs.  Input: bytes of any process. */
#include "health/pairs_internal.h"

#include <stdarg.h>
#include <stdio.h>

int hf_pairs_find_key(const char *const *keys, int keys_len, const struct hf_scan *name)
{
	for (int key = 0; key < keys_len; key++) {
		struct hf_scan s = *name;

		if (hf_scan_text(&s, keys[key]) && hf_scan_left(&s) == 0)
			return key;
	}
	return -1;
}

bool hf_pairs_take_number(struct hf_scan *value, int digits_max, uint64_t max, uint64_t *ret_number)
{
	uint64_t number;

	if (!hf_scan_decimal(value, digits_max, &number) || number > max || hf_scan_left(value) > 0)
		return false;
	*ret_number = number;
	return true;
}

void hf_pairs_add(struct hf_pairs *pairs, const char *fmt, ...)
{
	size_t room = pairs->size - pairs->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(pairs->text + pairs->len, room, fmt, ap);
	va_end(ap);
	hf_assert(n >= 0 && (size_t)n < room);
	pairs->len += (size_t)n;
}
