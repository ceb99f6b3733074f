/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Writes a JSON value as text, compact or as kubectl prints it.
 *
 * It does not use jansson's writer, which prints 0.1 as 0.10000000000000001 and has no kubectl
 * layout.
 */
#include "json/json.h"

#include "base/compare.h"
#include "base/mem.h"
#include "json/json_internal.h"
#include "json/number_internal.h"

#include <stdlib.h>
#include <string.h>

struct writer {
	struct hf_strbuf *sb;
	bool indented, sorted, html_safe;
};

static void write_value(const struct writer *w, const struct hf_json *value, int depth);

const char **hf_json_sorted_keys(const struct hf_json *object)
{
	const char **keys = hf_xcalloc(hf_json_len(object) + 1, sizeof(*keys));
	struct hf_json *value;
	size_t n = 0;

	for (void *it = NULL; (it = hf_json_next(object, it, &keys[n], &value));)
		n++;
	qsort(keys, n, sizeof(*keys), hf_compare_by_name);
	return keys;
}

/* Starts a new line if the style is indented. Callers do this only in containers that are not
 * empty, because empty ones stay on one line. */
static void start_line(const struct writer *w, int depth)
{
	if (!w->indented)
		return;
	hf_strbuf_addch(w->sb, '\n');
	for (int i = 0; i < depth; i++)
		hf_strbuf_addstr(w->sb, "    ");
}

/* Returns the escape for the character at *p and its length in *ret_len; NULL if it needs none. */
static const char *find_escape(const struct writer *w, const char *p, size_t *ret_len)
{
	*ret_len = 1;
	switch (*p) {
	case '"': return "\\\"";
	case '\\': return "\\\\";
	case '\b': return "\\b";
	case '\f': return "\\f";
	case '\n': return "\\n";
	case '\r': return "\\r";
	case '\t': return "\\t";
	}
	if (!w->html_safe)
		return NULL;
	/* Go's encoder escapes <, >, &, U+2028 and U+2029, so that JSON can stand inside an HTML
	 * script element. */
	switch (*p) {
	case '<': return "\\u003c";
	case '>': return "\\u003e";
	case '&': return "\\u0026";
	}
	*ret_len = 3;
	if (strncmp(p, "\xe2\x80\xa8", 3) == 0)
		return "\\u2028";
	if (strncmp(p, "\xe2\x80\xa9", 3) == 0)
		return "\\u2029";
	return NULL;
}

/* The number of bytes at the start that need no escape in any style. The others: quotes,
 * backslashes, control characters, < > &, and the first byte of U+2028 and U+2029. */
static size_t count_plain_bytes(const char *s)
{
	static const bool special[256] = {
		[0 ... 0x1f] = true, ['"'] = true, ['\\'] = true, ['<'] = true,
		['>'] = true,        ['&'] = true, [0xe2] = true,
	};
	const char *p = s;

	while (!special[(unsigned char)*p])
		p++;
	return (size_t)(p - s);
}

static void write_escaped(const struct writer *w, const char *s)
{
	const char *plain = s;

	hf_strbuf_addch(w->sb, '"');
	while (*s) {
		size_t len;
		const char *text = find_escape(w, s, &len);
		bool control = !text && (unsigned char)*s < 0x20;
		if (!text && !control) {
			s++;
			continue;
		}
		hf_strbuf_add(w->sb, plain, (size_t)(s - plain));
		if (control)
			hf_strbuf_addf(w->sb, "\\u%04x", (unsigned)(unsigned char)*s);
		else
			hf_strbuf_addstr(w->sb, text);
		s += control ? 1 : len;
		plain = s;
	}
	hf_strbuf_add(w->sb, plain, (size_t)(s - plain));
	hf_strbuf_addch(w->sb, '"');
}

/* The fast path for strings without escapes; nearly all strings and keys are of this kind. */
static void write_string(const struct writer *w, const char *s)
{
	size_t len = count_plain_bytes(s);
	char *at = s[len] == '\0' ? hf_strbuf_reserve(w->sb, len + 2) : NULL;

	if (at == NULL || w->sb->full) {
		write_escaped(w, s);
		return;
	}
	at[0] = '"';
	memcpy(at + 1, s, len);
	at[len + 1] = '"';
	hf_strbuf_grew(w->sb, len + 2);
}

/* Written by hand, because a status has many numbers and printf is slow. */
static void write_int(const struct writer *w, int64_t value)
{
	char text[24], *at = text + sizeof(text);
	/* INT64_MIN has no positive counterpart in int64_t. */
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (value < 0)
		*--at = '-';
	hf_strbuf_add(w->sb, at, (size_t)(text + sizeof(text) - at));
}

static void write_array(const struct writer *w, const struct hf_json *array, int depth)
{
	size_t len = hf_json_len(array);

	hf_strbuf_addch(w->sb, '[');
	for (size_t i = 0; i < len; i++) {
		if (i > 0)
			hf_strbuf_addch(w->sb, ',');
		start_line(w, depth + 1);
		write_value(w, hf_json_item(array, i), depth + 1);
	}
	if (len > 0)
		start_line(w, depth);
	hf_strbuf_addch(w->sb, ']');
}

static void write_member(const struct writer *w, const char *key, const struct hf_json *value,
			 int depth)
{
	start_line(w, depth + 1);
	write_string(w, key);
	hf_strbuf_addstr(w->sb, w->indented ? ": " : ":");
	write_value(w, value, depth + 1);
}

static void write_object(const struct writer *w, const struct hf_json *object, int depth)
{
	size_t len = hf_json_len(object);
	const char *key;
	struct hf_json *value;

	hf_strbuf_addch(w->sb, '{');
	if (w->sorted) {
		HF_AUTOFREE const char **keys = hf_json_sorted_keys(object);
		for (size_t i = 0; i < len; i++) {
			if (i > 0)
				hf_strbuf_addch(w->sb, ',');
			write_member(w, keys[i], hf_json_get(object, keys[i]), depth);
		}
	} else {
		size_t i = 0;
		for (void *it = NULL; (it = hf_json_next(object, it, &key, &value));) {
			if (i++ > 0)
				hf_strbuf_addch(w->sb, ',');
			write_member(w, key, value, depth);
		}
	}
	if (len > 0)
		start_line(w, depth);
	hf_strbuf_addch(w->sb, '}');
}

static void write_value(const struct writer *w, const struct hf_json *value, int depth)
{
	char real[HF_JSON_REAL_TEXT_MAX];

	switch (hf_json_type(value)) {
	case HF_JSON_ABSENT: break;
	case HF_JSON_NULL: hf_strbuf_addstr(w->sb, "null"); break;
	case HF_JSON_BOOL:
		hf_strbuf_addstr(w->sb, hf_json_true(value, false) ? "true" : "false");
		break;
	case HF_JSON_INT: write_int(w, hf_json_i64(value, 0)); break;
	case HF_JSON_REAL:
		hf_json_format_real(hf_json_num(value, 0), real);
		hf_strbuf_addstr(w->sb, real);
		break;
	case HF_JSON_STRING: write_string(w, hf_json_str(value, "")); break;
	case HF_JSON_ARRAY: write_array(w, value, depth); break;
	case HF_JSON_OBJECT: write_object(w, value, depth); break;
	}
}

void hf_json_write(const struct hf_json *value, enum hf_json_style style, struct hf_strbuf *sb)
{
	const struct writer w = {
		.sb = sb,
		.indented = style == HF_JSON_INDENTED,
		.sorted = style != HF_JSON_COMPACT,
		.html_safe = style == HF_JSON_INDENTED,
	};

	write_value(&w, value, 0);
}

void hf_json_write_escaped(const struct hf_json *value, struct hf_strbuf *sb)
{
	const struct writer w = {.sb = sb, .sorted = true, .html_safe = true};

	write_value(&w, value, 0);
}
