/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_ASCII_H
#define HF_BASE_ASCII_H

#include "base/compiler.h"

#include <stdbool.h>

HF_BEGIN_DECLS

/*
 * Classes of ASCII characters.
 *
 * <ctype.h> is not used: its answers depend on the locale, and a negative char is undefined
 * behaviour there. Here every byte of a text is a valid argument. Bytes from 0x80 on, which
 * belong to UTF-8 sequences, are in no class.
 */
static inline bool hf_ascii_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool hf_ascii_is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static inline bool hf_ascii_is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static inline bool hf_ascii_is_letter(char c)
{
	return hf_ascii_is_lower(c) || hf_ascii_is_upper(c);
}

static inline bool hf_ascii_is_alnum(char c)
{
	return hf_ascii_is_letter(c) || hf_ascii_is_digit(c);
}

/* Returns the lower-case letter for 'A' to 'Z', and every other character unchanged. */
static inline char hf_ascii_to_lower(char c)
{
	return hf_ascii_is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

/* Returns the value of a hexadecimal digit, 0 to 15, in upper or lower case; -1 for any other
 * character. */
static inline int hf_ascii_hex_value(char c)
{
	if (hf_ascii_is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

HF_END_DECLS

#endif
