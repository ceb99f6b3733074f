/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 20 /* of 2^64 - 1 */

/* What was written, and what would have been: text that does not fit is counted. */
struct out {
	char *text;
	size_t size, len;
};

static void put(struct out *out, const char *bytes, size_t len)
{
	if (out->len < out->size) {
		size_t room = out->size - out->len;

		memcpy(out->text + out->len, bytes, len < room ? len : room);
	}
	out->len += len;
}

static void put_number(struct out *out, uint64_t number, bool minus)
{
	char digits[DIGITS_MAX + 1];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	if (minus)
		digits[--at] = '-';
	put(out, digits + at, sizeof(digits) - at);
}

static void put_signed(struct out *out, int64_t number)
{
	put_number(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, number < 0);
}

static bool put_string(struct out *out, const char *s, size_t len_max)
{
	if (s == NULL)
		return false;
	put(out, s, len_max == SIZE_MAX ? strlen(s) : strnlen(s, len_max));
	return true;
}

/* The sizes of numbers that are in use, by what stands between % and the letter. */
static bool put_long(struct out *out, const char **at, va_list *args)
{
	if (strncmp(*at, "zu", 2) == 0) {
		put_number(out, va_arg(*args, size_t), false);
		*at += 2;
	} else if (strncmp(*at, "lld", 3) == 0) {
		put_signed(out, va_arg(*args, long long));
		*at += 3;
	} else if (strncmp(*at, "llu", 3) == 0) {
		put_number(out, va_arg(*args, unsigned long long), false);
		*at += 3;
	} else {
		return false;
	}
	return true;
}

/* %.*s */
static bool put_part(struct out *out, const char **at, va_list *args)
{
	if (strncmp(*at, ".*s", 3) != 0)
		return false;
	*at += 3;
	int len = va_arg(*args, int);
	const char *s = va_arg(*args, const char *);

	return put_string(out, s, len < 0 ? SIZE_MAX : (size_t)len);
}

/* What stands behind a %; false: it is for vsnprintf. */
static bool put_one(struct out *out, const char **at, va_list *args)
{
	int number;
	char c;

	switch (**at) {
	case 's': ++*at; return put_string(out, va_arg(*args, const char *), SIZE_MAX);
	case 'd':
		number = va_arg(*args, int);
		put_signed(out, number);
		break;
	case 'u': put_number(out, va_arg(*args, unsigned), false); break;
	case 'c':
		c = (char)va_arg(*args, int);
		put(out, &c, 1);
		break;
	case '%': put(out, "%", 1); break;
	case '.': return put_part(out, at, args);
	default: return put_long(out, at, args);
	}
	++*at;
	return true;
}

static bool put_all(struct out *out, const char *fmt, va_list *args)
{
	for (const char *at = fmt; *at != '\0';) {
		const char *percent = strchrnul(at, '%');

		put(out, at, (size_t)(percent - at));
		if (*percent == '\0')
			break;
		at = percent + 1;
		if (!put_one(out, &at, args))
			return false;
	}
	return out->len <= INT_MAX;
}

int hf_vformat(char *ret_text, size_t size, const char *fmt, va_list ap)
{
	struct out out = {.text = ret_text, .size = size};
	va_list args;
	bool done;

	va_copy(args, ap);
	done = put_all(&out, fmt, &args);
	va_end(args);
	if (!done)
		return vsnprintf(ret_text, size, fmt, ap);
	if (size > 0)
		ret_text[out.len < size ? out.len : size - 1] = '\0';
	return (int)out.len;
}

int hf_format(char *ret_text, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = hf_vformat(ret_text, size, fmt, ap);
	va_end(ap);
	return n;
}
