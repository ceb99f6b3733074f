/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_LEDGER_TEXT_H
#define HF_TESTS_HARNESS_LEDGER_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Read the short texts of a stored ledger, for tests that do not trust the reader of the program. NULL is an empty text. */

/* The number of the index in "0:2,7:1"; 0: it is not listed. */
static inline int64_t ledger_text_number(const char *text, long long index)
{
	for (const char *at = text != NULL ? text : ""; *at != '\0';) {
		char *end;
		long long i = strtoll(at, &end, 10);
		long long v = strtoll(end + 1, &end, 10);

		if (i == index)
			return v;
		at = *end == ',' ? end + 1 : end;
	}
	return 0;
}

/* True if "0-3,7" has the index. */
static inline bool ledger_text_has(const char *text, long long index)
{
	for (const char *at = text != NULL ? text : ""; *at != '\0';) {
		char *end;
		long long from = strtoll(at, &end, 10), to = from;

		if (*end == '-')
			to = strtoll(end + 1, &end, 10);
		if (index >= from && index <= to)
			return true;
		at = *end == ',' ? end + 1 : end;
	}
	return false;
}

#endif
