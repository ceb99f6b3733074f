/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "json/json_internal.h"

#include <string.h>

/*
 * A parser of nearly all JSON that there is, about three times as fast as jansson's: that one
 * takes every byte through a function and a buffer of its own, and looks every key up first.
 *
 * It decides nothing.  What it takes is JSON beyond doubt and the tree is the one that jansson
 * would have made; at anything else (real numbers, \u escapes, long keys, and whatever is wrong)
 * it gives up, also at what passes a limit, and others read the text from its start, to accept or to
 * say what is wrong.
 */
#define KEY_BYTES_MAX 255
#define DIGITS_MAX 18 /* fits 64 bits, whatever the digits */

struct plain {
	const char *p, *end;
	int depth, depth_max;
	struct hf_strbuf scratch; /* of strings with escapes */
};

/* Of a string in its text. */
struct plain_string {
	const char *bytes;
	size_t len;
	bool ascii;
};

static json_t *read_value(struct plain *s);

static void skip_blanks(struct plain *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

/* Over c and the blanks before it; false where something else stands. */
static bool take(struct plain *s, char c)
{
	skip_blanks(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* '\0': not one of the short ones. */
static char unescape(char c)
{
	switch (c) {
	case '"':
	case '\\':
	case '/': return c;
	case 'b': return '\b';
	case 'f': return '\f';
	case 'n': return '\n';
	case 'r': return '\r';
	case 't': return '\t';
	default: return '\0';
	}
}

/* The end of a run of bytes that stand for themselves; collects their bits. */
static const char *span(const char *p, const char *end, unsigned char *bits)
{
	unsigned char all = *bits;

	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		all |= (unsigned char)*p++;
	*bits = all;
	return p;
}

/* p is behind the opening quote.  The bytes are the text's or the scratch buffer's. */
static bool read_string(struct plain *s, struct plain_string *ret_string)
{
	const char *start = s->p, *p;
	unsigned char bits = 0;
	bool escaped = false;

	for (p = span(start, s->end, &bits); p < s->end && *p == '\\';
	     p = span(start, s->end, &bits)) {
		char c = s->end - p < 2 ? '\0' : unescape(p[1]);
		if (c == '\0')
			return false;
		if (!escaped)
			hf_strbuf_clear(&s->scratch);
		escaped = true;
		hf_strbuf_add(&s->scratch, start, (size_t)(p - start));
		hf_strbuf_addch(&s->scratch, c);
		start = p + 2;
	}
	if (p == s->end || *p != '"')
		return false;
	if (escaped)
		hf_strbuf_add(&s->scratch, start, (size_t)(p - start));
	ret_string->bytes = escaped ? s->scratch.data : start;
	ret_string->len = escaped ? s->scratch.len : (size_t)(p - start);
	ret_string->ascii = bits < 0x80;
	s->p = p + 1;
	return !s->scratch.full;
}

static json_t *read_string_value(struct plain *s)
{
	struct plain_string string;

	if (!read_string(s, &string))
		return NULL;
	/* The second one checks UTF-8, as a parse does. */
	return string.ascii ? json_stringn_nocheck(string.bytes, string.len)
			    : json_stringn(string.bytes, string.len);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static json_t *read_integer(struct plain *s)
{
	bool negative = *s->p == '-';
	const char *digits = s->p + negative, *p = digits;
	json_int_t value = 0;

	while (p < s->end && is_digit(*p) && p - digits < DIGITS_MAX)
		value = value * 10 + (*p++ - '0');
	if (p == digits || (*digits == '0' && p - digits > 1) || (negative && value == 0))
		return NULL;
	/* Longer, or no integer. */
	if (p < s->end && (is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E'))
		return NULL;
	s->p = p;
	return json_integer(negative ? -value : value);
}

static json_t *read_word(struct plain *s, const char *word, json_t *value)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0)
		return NULL;
	s->p += len;
	return value;
}

/* "key": value, into the object; false where that is not there, the key is not new, or there are
 * too many. */
static bool read_member(struct plain *s, json_t *object)
{
	size_t before = json_object_size(object);
	struct plain_string string;
	char key[KEY_BYTES_MAX + 1];
	json_t *value;

	if (before == HF_JSON_KEYS_MAX || !take(s, '"') || !read_string(s, &string) ||
	    !string.ascii || string.len > KEY_BYTES_MAX)
		return false;
	/* The value may need the scratch buffer. */
	memcpy(key, string.bytes, string.len);
	key[string.len] = '\0';
	if (!take(s, ':'))
		return false;
	value = read_value(s);
	return value != NULL && json_object_set_new_nocheck(object, key, value) == 0 &&
	       json_object_size(object) == before + 1;
}

static bool read_item(struct plain *s, json_t *array)
{
	json_t *value = read_value(s);

	return value != NULL && json_array_append_new(array, value) == 0;
}

/* s is behind the bracket. */
static json_t *read_container(struct plain *s, json_t *container, char close,
			      bool (*read_entry)(struct plain *s, json_t *container))
{
	bool good = ++s->depth <= s->depth_max;

	if (good && !take(s, close)) {
		do
			good = read_entry(s, container);
		while (good && take(s, ','));
		good = good && take(s, close);
	}
	s->depth--;
	if (good)
		return container;
	json_decref(container);
	return NULL;
}

static json_t *read_value(struct plain *s)
{
	skip_blanks(s);
	if (s->p == s->end)
		return NULL;
	switch (*s->p) {
	case '{': s->p++; return read_container(s, json_object(), '}', read_member);
	case '[': s->p++; return read_container(s, json_array(), ']', read_item);
	case '"': s->p++; return read_string_value(s);
	case 't': return read_word(s, "true", json_true());
	case 'f': return read_word(s, "false", json_false());
	case 'n': return read_word(s, "null", json_null());
	default: return read_integer(s); /* if it is one */
	}
}

json_t *hf_json_parse_plain(const char *text, size_t len, int depth_max)
{
	struct plain s = {.p = text,
			  .end = text + len,
			  .depth_max = depth_max,
			  .scratch = HF_STRBUF_INIT(len)};
	json_t *value = read_value(&s);

	skip_blanks(&s);
	if (value != NULL && s.p != s.end) {
		json_decref(value);
		value = NULL;
	}
	hf_strbuf_release(&s.scratch);
	return value;
}
