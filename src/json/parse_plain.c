/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A fast parser for ordinary JSON, about three times as fast as jansson's. (jansson reads every
 * byte through a function and a buffer, and looks up every key first.)
 *
 * It decides nothing about validity. A text that it accepts is certainly valid JSON, and its tree
 * equals jansson's. At anything else it gives up and returns NULL: real numbers, \u escapes, long
 * keys, errors, exceeded limits. The caller then reads the text from the start with jansson.
 */
#include "json/json_internal.h"

#include "base/ascii.h"

#include <string.h>

#define KEY_BYTES_MAX 255
#define DIGITS_MAX 18 /* every number with this many digits fits into 64 bits */

struct plain {
	const char *p, *end;
	int depth, depth_max;
	struct hf_strbuf scratch; /* for strings with escapes */
};

/* A string in the text or in the scratch buffer. */
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

/* Skips blanks and the character c; false if another character follows. */
static bool skip_char(struct plain *s, char c)
{
	skip_blanks(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* The character that a short escape stands for; '\0' if c is no short escape. */
static char unescape_short(char c)
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

/* Returns the end of a run of bytes without special meaning. *bits becomes the OR of these
 * bytes. */
static const char *skip_plain_bytes(const char *p, const char *end, unsigned char *bits)
{
	unsigned char all = *bits;

	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		all |= (unsigned char)*p++;
	*bits = all;
	return p;
}

/* Reads a string after its opening quote. ret_string points into the text or the scratch buffer. */
static bool read_string(struct plain *s, struct plain_string *ret_string)
{
	const char *start = s->p, *p;
	unsigned char bits = 0;
	bool escaped = false;

	for (p = skip_plain_bytes(start, s->end, &bits); p < s->end && *p == '\\';
	     p = skip_plain_bytes(start, s->end, &bits)) {
		char c = s->end - p < 2 ? '\0' : unescape_short(p[1]);
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
	/* json_stringn also checks UTF-8. */
	return string.ascii ? json_stringn_nocheck(string.bytes, string.len)
			    : json_stringn(string.bytes, string.len);
}

static json_t *read_integer(struct plain *s)
{
	bool negative = *s->p == '-';
	const char *digits = s->p + negative, *p = digits;
	json_int_t value = 0;

	while (p < s->end && hf_ascii_is_digit(*p) && p - digits < DIGITS_MAX)
		value = value * 10 + (*p++ - '0');
	if (p == digits || (*digits == '0' && p - digits > 1) || (negative && value == 0))
		return NULL;
	/* A number with more digits, or one that is not an integer, is left to jansson. */
	if (p < s->end && (hf_ascii_is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E'))
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

/* Reads "key": value into the object. False if the text is different, the key exists already, or
 * the object has too many keys. */
static bool read_member(struct plain *s, json_t *object)
{
	size_t before = json_object_size(object);
	struct plain_string string;
	char key[KEY_BYTES_MAX + 1];
	json_t *value;

	if (before == HF_JSON_KEYS_MAX || !skip_char(s, '"') || !read_string(s, &string) ||
	    !string.ascii || string.len > KEY_BYTES_MAX)
		return false;
	/* Copy the key: reading the value may overwrite the scratch buffer. */
	memcpy(key, string.bytes, string.len);
	key[string.len] = '\0';
	if (!skip_char(s, ':'))
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

/* Reads the entries of a container after its opening bracket. */
static json_t *read_container(struct plain *s, json_t *container, char close,
			      bool (*read_entry)(struct plain *s, json_t *container))
{
	bool good = ++s->depth <= s->depth_max;

	if (good && !skip_char(s, close)) {
		do
			good = read_entry(s, container);
		while (good && skip_char(s, ','));
		good = good && skip_char(s, close);
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
	default: return read_integer(s); /* returns NULL if the text is no integer */
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
