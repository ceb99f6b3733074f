/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/reader_internal.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * Getters that walk a document, know the path of what they read, and report fields of a wrong type
 * with the API server's text.
 */

size_t hf_reader_enter(struct hf_reader *r, const char *fmt, ...)
{
	size_t mark = r->path_len;
	va_list ap;
	int n;

	/* Without a list of errors (the operator's reads) no path is needed. */
	if (r->errors == NULL)
		return mark;
	va_start(ap, fmt);
	n = vsnprintf(r->path + mark, sizeof(r->path) - mark, fmt, ap);
	va_end(ap);
	hf_assert(n >= 0);
	r->path_len = mark + (size_t)n < sizeof(r->path) ? mark + (size_t)n : sizeof(r->path) - 1;
	return mark;
}

void hf_reader_leave(struct hf_reader *r, size_t mark)
{
	hf_assert(mark <= r->path_len);
	r->path_len = mark;
	r->path[mark] = '\0';
}

const char *hf_reader_path(const struct hf_reader *r)
{
	return r->path[0] == '.' ? r->path + 1 : r->path;
}

/* Reports a wrong type, with the text of the API server's structural check of custom resources. */
void hf_reader_report_type(struct hf_reader *r, const struct hf_json *value, const char *want)
{
	const char *got = hf_json_type_name(hf_json_type(value));
	char quoted[32], detail[HF_READER_PATH_MAX + 80];

	if (r->errors == NULL)
		return;
	(void)snprintf(quoted, sizeof(quoted), "\"%s\"", got);
	(void)snprintf(detail, sizeof(detail), "%s in body must be of type %s: \"%s\"",
		       hf_reader_path(r), want, got);
	hf_field_add(r->errors, HF_PROBLEM_TYPE, quoted, detail, "%s", hf_reader_path(r));
}

static bool is_absent(const struct hf_json *value)
{
	enum hf_json_type type = hf_json_type(value);

	return type == HF_JSON_ABSENT || type == HF_JSON_NULL;
}

static const char *want_name(enum hf_json_type type)
{
	return type == HF_JSON_INT ? "integer" : hf_json_type_name(type);
}

const struct hf_json *hf_reader_get(struct hf_reader *r, const struct hf_json *object,
				    const char *key, enum hf_json_type type)
{
	const struct hf_json *value = hf_json_get(object, key);
	size_t mark;

	if (is_absent(value))
		return NULL;
	if (hf_json_type(value) == type)
		return value;
	mark = hf_reader_enter(r, ".%s", key);
	hf_reader_report_type(r, value, want_name(type));
	hf_reader_leave(r, mark);
	return NULL;
}

const struct hf_json *hf_reader_item(struct hf_reader *r, const struct hf_json *array,
				     const char *key, size_t i, enum hf_json_type type)
{
	const struct hf_json *value = hf_json_item(array, i);
	size_t mark;

	if (hf_json_type(value) == type)
		return value;
	mark = hf_reader_enter(r, ".%s[%zu]", key, i);
	hf_reader_report_type(r, value, want_name(type));
	hf_reader_leave(r, mark);
	return NULL;
}

const char *hf_reader_str(struct hf_reader *r, const struct hf_json *object, const char *key)
{
	const char *text = hf_json_str(hf_reader_get(r, object, key, HF_JSON_STRING), NULL);

	return text != NULL && r->copy ? hf_arena_strdup(r->arena, text) : text;
}

struct hf_opt_int hf_reader_int(struct hf_reader *r, const struct hf_json *object, const char *key,
				int64_t min, int64_t max)
{
	const struct hf_json *value = hf_reader_get(r, object, key, HF_JSON_INT);
	int64_t number = hf_json_i64(value, 0);
	char text[24], detail[96];
	size_t mark;

	if (value == NULL)
		return (struct hf_opt_int){.set = false};
	if (number >= min && number <= max)
		return HF_SOME_INT(number);
	if (r->errors != NULL) {
		(void)snprintf(text, sizeof(text), "%" PRId64, number);
		(void)snprintf(detail, sizeof(detail), "must be between %" PRId64 " and %" PRId64,
			       min, max);
		mark = hf_reader_enter(r, ".%s", key);
		hf_field_add(r->errors, HF_PROBLEM_INVALID, text, detail, "%s", hf_reader_path(r));
		hf_reader_leave(r, mark);
	}
	return (struct hf_opt_int){.set = false};
}

struct hf_opt_int hf_reader_i32(struct hf_reader *r, const struct hf_json *object, const char *key)
{
	return hf_reader_int(r, object, key, INT32_MIN, INT32_MAX);
}

struct hf_opt_bool hf_reader_bool(struct hf_reader *r, const struct hf_json *object,
				  const char *key)
{
	const struct hf_json *value = hf_reader_get(r, object, key, HF_JSON_BOOL);

	if (value == NULL)
		return (struct hf_opt_bool){.set = false};
	return HF_SOME_BOOL(hf_json_true(value, false));
}

hf_time hf_reader_time(struct hf_reader *r, const struct hf_json *object, const char *key)
{
	const char *text = hf_reader_str(r, object, key);
	struct hf_error err;
	hf_time time;
	size_t mark;

	if (text == NULL)
		return HF_TIME_NONE;
	if (hf_time_parse(text, &time, &err) == 0)
		return time;
	if (r->errors != NULL) {
		mark = hf_reader_enter(r, ".%s", key);
		hf_field_add(r->errors, HF_PROBLEM_INVALID, hf_field_quote(r->errors, text),
			     err.text, "%s", hf_reader_path(r));
		hf_reader_leave(r, mark);
	}
	return HF_TIME_NONE;
}

const char *const *hf_reader_strings(struct hf_reader *r, const struct hf_json *object,
				     const char *key, size_t len_max, size_t *ret_len)
{
	const struct hf_json *array = hf_reader_get(r, object, key, HF_JSON_ARRAY);
	size_t n = hf_json_len(array), len = 0;
	const char **texts;

	/* Validation refuses a list that is cut here: it counts the document's own list. */
	if (n > len_max)
		n = len_max;
	texts = HF_ARENA_ARRAY(r->arena, const char *, n + 1);
	for (size_t i = 0; i < n; i++) {
		const char *text =
			hf_json_str(hf_reader_item(r, array, key, i, HF_JSON_STRING), NULL);
		if (text != NULL)
			texts[len++] = r->copy ? hf_arena_strdup(r->arena, text) : text;
	}
	*ret_len = len;
	return texts;
}
