/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Base64 of RFC 4648, both directions. Input: bytes or a NUL-terminated text; output: appended
 * to a string buffer of the caller.
 */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hf_base64_encode(const void *bytes, size_t len, struct hf_strbuf *sb)
{
	const unsigned char *from = bytes;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)from[i] << 16;
		if (i + 1 < len)
			v |= (uint32_t)from[i + 1] << 8;
		if (i + 2 < len)
			v |= from[i + 2];
		hf_strbuf_addch(sb, digits[v >> 18 & 63]);
		hf_strbuf_addch(sb, digits[v >> 12 & 63]);
		hf_strbuf_addch(sb, i + 1 < len ? digits[v >> 6 & 63] : '=');
		hf_strbuf_addch(sb, i + 2 < len ? digits[v & 63] : '=');
	}
}

int hf_base64_decode(const char *text, struct hf_strbuf *sb, struct hf_error *err)
{
	uint32_t bits = 0;
	size_t n_digits = 0, n_padding = 0;

	for (; *text != '\0'; text++) {
		const char *digit = strchr(digits, *text);
		if (*text == '\n' || *text == '\r')
			continue;
		if (*text == '=')
			n_padding++;
		/* Padding is legal at the end only. */
		if (*text != '=' && (digit == NULL || n_padding > 0))
			return hf_error_set(err, HF_E_INVALID, "not base64");
		if (*text == '=')
			continue;
		bits = bits << 6 | (uint32_t)(digit - digits);
		if (n_digits++ % 4 != 0)
			hf_strbuf_addch(sb, (char)(bits >> (6 - 2 * ((n_digits - 1) % 4)) & 255));
	}
	/* A group of one digit encodes no byte. A group of two digits needs two '=', a group of
	 * three needs one. */
	if (n_digits % 4 == 1 || n_padding != (4 - n_digits % 4) % 4)
		return hf_error_set(err, HF_E_INVALID, "not base64");
	return 0;
}
