/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_SCAN_INTERNAL_H
#define HF_HEALTH_SCAN_INTERNAL_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * A cursor over bytes that any program may have written: never past `end`; NUL is a byte like any other.  A function
 * moves the cursor only if it succeeds.
 */
struct hf_scan {
	const char *at;
	const char *end;
};

struct hf_scan hf_scan_of(const char *bytes, size_t len);
size_t hf_scan_left(const struct hf_scan *s);
bool hf_scan_text(struct hf_scan *s, const char *text); /* exactly these bytes come next */
bool hf_scan_char(struct hf_scan *s, char c);
void hf_scan_blanks(struct hf_scan *s);
/* Reads one to digits_max decimal digits that no other digit follows. */
bool hf_scan_decimal(struct hf_scan *s, int digits_max, uint64_t *ret_value);
/* Reads "0x" and one to eight hexadecimal digits. */
bool hf_scan_hex32(struct hf_scan *s, uint32_t *ret_value);
/* Moves behind the first `text`; ret_before, which may be NULL, gets the bytes before it.  False: `text` does not
 * occur, and nothing moves. */
bool hf_scan_until(struct hf_scan *s, const char *text, struct hf_scan *ret_before);
/* Reads letters, digits and characters of `also`; false: there is none. */
bool hf_scan_word(struct hf_scan *s, const char *also, struct hf_scan *ret_word);
bool hf_scan_has(const struct hf_scan *s, const char *text);

/* Copies printable ASCII, and '?' for any other byte; cut off to fit size, which counts the NUL. */
void hf_scan_print(const struct hf_scan *s, char *ret_text, size_t size);

HF_END_DECLS

#endif
