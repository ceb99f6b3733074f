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

/* The four blanks of JSON and of configuration files: space, tab, newline and carriage return. */
static inline bool hf_ascii_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
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

/* Returns the upper-case letter for 'a' to 'z', and every other character unchanged. */
static inline char hf_ascii_to_upper(char c)
{
	return hf_ascii_is_lower(c) ? (char)(c - 'a' + 'A') : c;
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

/* Returns the byte of two hexadecimal digits, 0 to 255; -1 if text does not begin with two.  Never
 * reads behind a NUL. */
static inline int hf_ascii_hex_byte(const char *text)
{
	int high = hf_ascii_hex_value(text[0]);
	int low = high < 0 ? -1 : hf_ascii_hex_value(text[1]);

	return low < 0 ? -1 : high << 4 | low;
}

HF_END_DECLS

#endif
