/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A reader over JSON text that makes no tree and allocates nothing. Input: text; output: the values
 * that the caller asks for, in order.
 *
 * Invariant: the reader never reads beyond `end`. Every value is consumed exactly once.
 */
#include "json/skip.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/json_internal.h"
#include "json/skip_internal.h"

#include <stdlib.h>
#include <string.h>

void hf_skip_init(struct hf_skip *s, const char *text, size_t len)
{
	s->start = s->p = text;
	s->end = text + len;
}

/* The next byte that is not a blank; '\0' at the end (a NUL in the text is invalid JSON anyway). */
static char peek_byte(struct hf_skip *s)
{
	while (s->p < s->end && hf_ascii_is_space(*s->p))
		s->p++;
	return s->p < s->end ? *s->p : '\0';
}

enum hf_json_type hf_skip_peek(struct hf_skip *s)
{
	char c = peek_byte(s);

	switch (c) {
	case '{': return HF_JSON_OBJECT;
	case '[': return HF_JSON_ARRAY;
	case '"': return HF_JSON_STRING;
	case 't':
	case 'f': return HF_JSON_BOOL;
	case 'n': return HF_JSON_NULL;
	}
	return c == '-' || hf_ascii_is_digit(c) ? HF_JSON_INT : HF_JSON_ABSENT;
}

bool hf_skip_enter(struct hf_skip *s)
{
	char c = peek_byte(s);

	if (c != '{' && c != '[')
		return false;
	s->p++;
	return true;
}

/* Moves over the comma between two entries. The reader then stands at the entry, or after the
 * closing bracket. */
static enum hf_skip_next advance_entry(struct hf_skip *s, bool *first, char closing)
{
	char c = peek_byte(s);

	if (c == closing) {
		s->p++;
		return HF_SKIP_END;
	}
	if (*first) {
		*first = false;
		return HF_SKIP_ENTRY;
	}
	if (c != ',')
		return HF_SKIP_BROKEN;
	s->p++;
	return HF_SKIP_ENTRY;
}

enum hf_skip_next hf_skip_next_key(struct hf_skip *s, bool *first, struct hf_skip_string *ret_key)
{
	enum hf_skip_next next = advance_entry(s, first, '}');

	if (next != HF_SKIP_ENTRY)
		return next;
	if (!hf_skip_string(s, ret_key) || peek_byte(s) != ':')
		return HF_SKIP_BROKEN;
	s->p++;
	return HF_SKIP_ENTRY;
}

enum hf_skip_next hf_skip_next_item(struct hf_skip *s, bool *first)
{
	return advance_entry(s, first, ']');
}

bool hf_skip_string(struct hf_skip *s, struct hf_skip_string *ret_string)
{
	bool escaped = false;

	if (peek_byte(s) != '"')
		return false;
	const char *behind = hf_skip_string_end(s->p, s->end, &escaped);
	if (!behind)
		return false;
	ret_string->bytes = s->p + 1;
	ret_string->len = (size_t)(behind - s->p) - 2;
	ret_string->escaped = escaped;
	s->p = behind;
	return true;
}

/* Skips a word. The next call checks what follows: only a comma, a closing bracket or the end is
 * valid. */
static bool skip_word(struct hf_skip *s, const char *word, size_t len)
{
	if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0)
		return false;
	s->p += len;
	return true;
}

bool hf_skip_bool(struct hf_skip *s, bool *ret_value)
{
	bool value = peek_byte(s) == 't';

	if (!(value ? skip_word(s, "true", 4) : skip_word(s, "false", 5)))
		return false;
	*ret_value = value;
	return true;
}

bool hf_skip_null(struct hf_skip *s)
{
	return peek_byte(s) == 'n' && skip_word(s, "null", 4);
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && hf_ascii_is_digit(*p))
		p++;
	return p;
}

/* Returns the position after the number at p, or NULL if the number is malformed. *ret_real is
 * true for a real number. */
static const char *skip_number(const char *p, const char *end, bool *ret_real)
{
	const char *digits = p + (p < end && *p == '-');

	p = skip_digits(digits, end);
	if (p == digits || (*digits == '0' && p - digits > 1))
		return NULL;
	*ret_real = false;
	if (p < end && *p == '.') {
		*ret_real = true;
		digits = p + 1;
		p = skip_digits(digits, end);
		if (p == digits)
			return NULL;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		*ret_real = true;
		digits = p + 1;
		if (digits < end && (*digits == '+' || *digits == '-'))
			digits++;
		p = skip_digits(digits, end);
		if (p == digits)
			return NULL;
	}
	return p;
}

static bool read_integer(const char *p, const char *end, int64_t *ret_integer)
{
	bool negative = *p == '-';
	int64_t value = 0; /* built as a negative number: INT64_MIN has no positive counterpart */

	for (p += negative; p < end; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, *p - '0', &value))
			return false;
	if (!negative && __builtin_sub_overflow(0, value, &value))
		return false;
	*ret_integer = value;
	return true;
}

static bool read_real(const char *p, const char *end, double *ret_real)
{
	char inline_text[64];
	HF_AUTOFREE char *long_text = NULL;
	char *text = inline_text;
	size_t len = (size_t)(end - p);

	if (len < sizeof(inline_text)) {
		memcpy(inline_text, p, len);
		inline_text[len] = '\0';
	} else {
		text = long_text = hf_xstrndup(p, len);
	}
	*ret_real = strtod(text, NULL);
	return __builtin_isfinite(*ret_real);
}

bool hf_skip_number(struct hf_skip *s, struct hf_skip_number *ret_number)
{
	struct hf_skip_number number = {.type = HF_JSON_INT};
	bool is_real;

	(void)peek_byte(s);
	const char *behind = skip_number(s->p, s->end, &is_real);
	if (!behind)
		return false;
	if (is_real) {
		number.type = HF_JSON_REAL;
		if (!read_real(s->p, behind, &number.real))
			return false;
	} else if (!read_integer(s->p, behind, &number.integer)) {
		return false;
	}
	s->p = behind;
	*ret_number = number;
	return true;
}

bool hf_skip_value(struct hf_skip *s)
{
	struct hf_skip_string string;
	const char *behind;
	bool ignored;

	switch (hf_skip_peek(s)) {
	case HF_JSON_OBJECT:
	case HF_JSON_ARRAY:
		behind = hf_skip_container_end(s->p, s->end);
		if (!behind)
			return false;
		s->p = behind;
		return true;
	case HF_JSON_STRING: return hf_skip_string(s, &string);
	case HF_JSON_BOOL: return hf_skip_bool(s, &ignored);
	case HF_JSON_NULL: return hf_skip_null(s);
	case HF_JSON_INT:
	case HF_JSON_REAL:
		behind = skip_number(s->p, s->end, &ignored);
		if (!behind)
			return false;
		s->p = behind;
		return true;
	case HF_JSON_ABSENT: break;
	}
	return false;
}

bool hf_skip_at_end(struct hf_skip *s)
{
	(void)peek_byte(s);
	return s->p == s->end;
}

static int read_hex4(const char *p, const char *end)
{
	int value = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hf_ascii_hex_value(p[i]);
		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* Resolves \uXXXX after "\u", or a pair of them for a character beyond 16 bits. Moves *p behind
 * it. */
static size_t resolve_unicode(const char **p, const char *end, char out[4])
{
	int c = read_hex4(*p, end);

	if (c <= 0 || (c >= 0xdc00 && c <= 0xdfff))
		return 0;
	*p += 4;
	if (c >= 0xd800 && c <= 0xdbff) {
		if (end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
			return 0;
		int low = read_hex4(*p + 2, end);
		if (low < 0xdc00 || low > 0xdfff)
			return 0;
		*p += 6;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	return hf_utf8_encode((uint32_t)c, out);
}

/* Writes one byte or one escape at *p as bytes to out. Returns their number, or 0 for an invalid
 * escape. */
static size_t resolve_char(const char **p, const char *end, char out[4])
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

	if (**p != '\\') {
		out[0] = *(*p)++;
		return 1;
	}
	if (end - *p < 2)
		return 0;
	char c = (*p)[1];
	*p += 2;
	if (c == 'u')
		return resolve_unicode(p, end, out);
	const char *at = memchr(from, c, sizeof(from) - 1);
	if (!at)
		return 0;
	out[0] = to[at - from];
	return 1;
}

bool hf_skip_equals(const struct hf_skip_string *string, const char *text, size_t len)
{
	if (!string->escaped)
		return string->len == len && memcmp(string->bytes, text, len) == 0;

	const char *p = string->bytes, *end = p + string->len;
	size_t at = 0;
	while (p < end) {
		char out[4];
		size_t n = resolve_char(&p, end, out);
		if (n == 0 || n > len - at || memcmp(out, text + at, n) != 0)
			return false;
		at += n;
	}
	return at == len;
}

/* True if the bytes are UTF-8 without control characters. */
static bool is_text(const char *bytes, size_t len)
{
	bool ascii = true;

	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)bytes[i] < 0x20)
			return false;
		ascii &= (unsigned char)bytes[i] < 0x80;
	}
	return ascii || hf_utf8_valid(bytes, len);
}

bool hf_skip_copy(const struct hf_skip_string *string, char *to, size_t *ret_len)
{
	size_t len = 0;

	if (!is_text(string->bytes, string->len))
		return false;
	if (string->escaped) {
		/* An escape is never shorter than its character, so the text fits. */
		const char *p = string->bytes, *end = p + string->len;
		while (p < end) {
			size_t n = resolve_char(&p, end, to + len);
			if (n == 0)
				return false;
			len += n;
		}
	} else {
		len = string->len;
		memcpy(to, string->bytes, len);
	}
	to[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return true;
}

char *hf_skip_text(const struct hf_skip_string *string, struct hf_arena *arena, size_t *ret_len)
{
	char *text = hf_arena_alloc(arena, string->len + 1);

	return hf_skip_copy(string, text, ret_len) ? text : NULL;
}

int hf_skip_error(const struct hf_skip *s, const char *what, struct hf_error *err)
{
	return hf_json_error_at(err, HF_E_BAD_REQUEST, s->start, s->p, what);
}
