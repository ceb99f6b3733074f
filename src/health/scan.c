/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads numbers, words and texts from bytes that any program may have written.
 * Invariant: a read that fails does not move the cursor.
 */
#include "health/scan_internal.h"

#include "base/ascii.h"
#include "base/str.h"

#include <string.h>

struct hf_scan hf_scan_of(const char *bytes, size_t len)
{
	return (struct hf_scan){.at = bytes, .end = bytes + len};
}

size_t hf_scan_left(const struct hf_scan *s)
{
	return (size_t)(s->end - s->at);
}

bool hf_scan_text(struct hf_scan *s, const char *text)
{
	size_t len = strlen(text);

	if (hf_scan_left(s) < len || memcmp(s->at, text, len) != 0)
		return false;
	s->at += len;
	return true;
}

bool hf_scan_char(struct hf_scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

void hf_scan_blanks(struct hf_scan *s)
{
	while (s->at < s->end && *s->at == ' ')
		s->at++;
}

bool hf_scan_decimal(struct hf_scan *s, int digits_max, uint64_t *ret_value)
{
	const char *p = s->at;
	uint64_t value = 0;

	/* 19 digits always fit. */
	hf_assert(digits_max > 0 && digits_max <= 19);
	for (; p < s->end && hf_ascii_is_digit(*p); p++) {
		if (p - s->at == digits_max)
			return false;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	if (p == s->at)
		return false;
	s->at = p;
	*ret_value = value;
	return true;
}

bool hf_scan_hex32(struct hf_scan *s, uint32_t *ret_value)
{
	struct hf_scan p = *s;
	const char *digits;
	uint32_t value = 0;

	if (!hf_scan_text(&p, "0x"))
		return false;
	for (digits = p.at; p.at < p.end && hf_ascii_hex_value(*p.at) >= 0; p.at++) {
		if (p.at - digits == 8)
			return false;
		value = value << 4 | (uint32_t)hf_ascii_hex_value(*p.at);
	}
	if (p.at == digits)
		return false;
	*s = p;
	*ret_value = value;
	return true;
}

bool hf_scan_until(struct hf_scan *s, const char *text, struct hf_scan *ret_before)
{
	size_t len = strlen(text);
	const char *found = hf_scan_left(s) > 0 ? memmem(s->at, hf_scan_left(s), text, len) : NULL;

	if (!found)
		return false;
	if (ret_before)
		*ret_before = (struct hf_scan){.at = s->at, .end = found};
	s->at = found + len;
	return true;
}

static bool is_word(char c, const char *also)
{
	return hf_ascii_is_alnum(c) || (c != '\0' && strchr(also, c) != NULL);
}

bool hf_scan_word(struct hf_scan *s, const char *also, struct hf_scan *ret_word)
{
	const char *p = s->at;

	while (p < s->end && is_word(*p, also))
		p++;
	if (p == s->at)
		return false;
	*ret_word = (struct hf_scan){.at = s->at, .end = p};
	s->at = p;
	return true;
}

bool hf_scan_has(const struct hf_scan *s, const char *text)
{
	struct hf_scan p = *s;

	return hf_scan_until(&p, text, NULL);
}

void hf_scan_print(const struct hf_scan *s, char *ret_text, size_t size)
{
	/* The rest of the buffer is cleared too: records are compared and hashed as bytes. */
	hf_str_print(ret_text, size, s->at, hf_scan_left(s));
}
