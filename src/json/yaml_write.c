/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Writes a JSON value as YAML, as kubectl -o yaml prints it.
 *
 * libyaml's emitter and the emitter of kubectl have the same origin. With the same styles they give
 * the same layout, folding and quoting, so this file only chooses the styles and sorts the keys.
 */
#include "json/yaml_write.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "json/json_internal.h"
#include "json/number_internal.h"
#include "json/yaml_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct writer {
	yaml_emitter_t emitter;
	struct hf_strbuf *sb;
};

static int write_bytes(void *data, unsigned char *bytes, size_t len)
{
	hf_strbuf_add(data, bytes, len);
	return 1;
}

/* The emitter can only fail for lack of memory, because its input is UTF-8 and well nested. */
static void emit_event(struct writer *w, yaml_event_t *event, int initialized)
{
	hf_assert(initialized);
	hf_assert(yaml_emitter_emit(&w->emitter, event));
}

static void write_scalar(struct writer *w, const char *text, yaml_scalar_style_t style)
{
	yaml_event_t event;
	/* libyaml only copies the text, although its parameter is not const. */
	yaml_char_t *bytes = (yaml_char_t *)(uintptr_t)text;

	emit_event(w, &event,
		   yaml_scalar_event_initialize(&event, NULL, NULL, bytes, (int)strlen(text), 1, 1,
						style));
}

/* True if the text has NEL, LS or PS. They end a line in YAML 1.1, so only escapes preserve
 * them. */
static bool has_unicode_break(const char *text)
{
	return strstr(text, "\xc2\x85") || strstr(text, "\xe2\x80\xa8") ||
	       strstr(text, "\xe2\x80\xa9");
}

static void write_text(struct writer *w, const char *text)
{
	struct hf_yaml_scalar resolved;

	hf_yaml_resolve(text, strlen(text), &resolved);
	if (has_unicode_break(text))
		write_scalar(w, text, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
	else if (strchr(text, '\n'))
		write_scalar(w, text, YAML_LITERAL_SCALAR_STYLE);
	else if (resolved.type == HF_JSON_STRING && !hf_yaml_is_timestamp(text) &&
		 !hf_yaml_is_base60(text))
		write_scalar(w, text, YAML_PLAIN_SCALAR_STYLE);
	else
		write_scalar(w, text, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

/* Every character beyond ASCII counts as a letter, in the order of code points, which UTF-8
 * preserves. */
static bool is_letter(char c)
{
	return hf_ascii_is_letter(c) || (unsigned char)c >= 0x80;
}

/* True if a number that begins at or after start and continues up to end has a digit other than
 * 0. */
static bool has_nonzero_digit(const char *start, const char *end)
{
	while (end > start && hf_ascii_is_digit(end[-1]))
		if (*--end != '0')
			return true;
	return false;
}

static int compare_sizes(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

/* Compares two runs of digits, each possibly empty, after the common part that begins at start. */
static int compare_numbers(const char *start, const char *p, const char *q)
{
	uint64_t x = (*p == '0' || *q == '0') && has_nonzero_digit(start, p), y = x;
	size_t p_len = 0, q_len = 0;

	for (; hf_ascii_is_digit(p[p_len]); p_len++)
		x = x * 10 + (uint64_t)(p[p_len] - '0');
	for (; hf_ascii_is_digit(q[q_len]); q_len++)
		y = y * 10 + (uint64_t)(q[q_len] - '0');
	int by_value = compare_sizes(x, y);
	return by_value ? by_value : compare_sizes(p_len, q_len);
}

/* The order of go-yaml's sorter.go: letters come last, and runs of digits are compared by value,
 * then by length. */
static int compare_keys(const char *a, const char *b)
{
	const char *p = a, *q = b;

	while (*p && *p == *q) {
		p++;
		q++;
	}
	int by_byte = compare_sizes((unsigned char)*p, (unsigned char)*q);
	if (!*p || !*q || (is_letter(*p) && is_letter(*q)))
		return by_byte;
	if (is_letter(*p) || is_letter(*q))
		return is_letter(*q) ? -1 : 1;
	int by_number = compare_numbers(a, p, q);
	return by_number ? by_number : by_byte;
}

/* Merge sort, not qsort: the order is not transitive ("1." < "08" < "0b1" < "1."), which merging
 * tolerates. The keys arrive sorted by bytes, so the result is always the same. */
static void sort_keys(const char **keys, size_t len)
{
	HF_AUTOFREE const char **merged = hf_xcalloc(len + 1, sizeof(*merged));

	for (size_t width = 1; width < len; width *= 2) {
		for (size_t start = 0; start < len; start += 2 * width) {
			size_t i = start, middle = start + width < len ? start + width : len;
			size_t j = middle, end = middle + width < len ? middle + width : len;
			for (size_t k = start; k < end; k++) {
				bool left = j == end ||
					    (i < middle && compare_keys(keys[i], keys[j]) <= 0);
				merged[k] = left ? keys[i++] : keys[j++];
			}
		}
		memcpy(keys, merged, len * sizeof(*keys));
	}
}

static void write_value(struct writer *w, const struct hf_json *json);

static void write_object(struct writer *w, const struct hf_json *json)
{
	yaml_event_t event;
	HF_AUTOFREE const char **keys = hf_json_sorted_keys(json);
	size_t len = hf_json_len(json);

	sort_keys(keys, len);
	emit_event(w, &event,
		   yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
						       YAML_BLOCK_MAPPING_STYLE));
	for (size_t i = 0; i < len; i++) {
		/* A plain << would be a merge key. kubectl prints it plain and cannot read it
		 * back. */
		if (strcmp(keys[i], "<<") == 0)
			write_scalar(w, keys[i], YAML_DOUBLE_QUOTED_SCALAR_STYLE);
		else
			write_text(w, keys[i]);
		write_value(w, hf_json_get(json, keys[i]));
	}
	emit_event(w, &event, yaml_mapping_end_event_initialize(&event));
}

static void write_array(struct writer *w, const struct hf_json *json)
{
	yaml_event_t event;

	emit_event(w, &event,
		   yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
							YAML_BLOCK_SEQUENCE_STYLE));
	for (size_t i = 0; i < hf_json_len(json); i++)
		write_value(w, hf_json_item(json, i));
	emit_event(w, &event, yaml_sequence_end_event_initialize(&event));
}

static void write_number(struct writer *w, const struct hf_json *json)
{
	char text[HF_JSON_REAL_TEXT_MAX];

	if (hf_json_type(json) == HF_JSON_INT)
		snprintf(text, sizeof(text), "%lld", (long long)hf_json_i64(json, 0));
	else
		hf_json_format_real_short(hf_json_num(json, 0), text);
	write_scalar(w, text, YAML_PLAIN_SCALAR_STYLE);
}

static void write_value(struct writer *w, const struct hf_json *json)
{
	switch (hf_json_type(json)) {
	case HF_JSON_OBJECT: write_object(w, json); break;
	case HF_JSON_ARRAY: write_array(w, json); break;
	case HF_JSON_STRING: write_text(w, hf_json_str(json, "")); break;
	case HF_JSON_INT:
	case HF_JSON_REAL: write_number(w, json); break;
	case HF_JSON_BOOL:
		write_scalar(w, hf_json_true(json, false) ? "true" : "false",
			     YAML_PLAIN_SCALAR_STYLE);
		break;
	case HF_JSON_ABSENT:
	case HF_JSON_NULL: write_scalar(w, "null", YAML_PLAIN_SCALAR_STYLE); break;
	}
}

void hf_yaml_write(const struct hf_json *json, struct hf_strbuf *sb)
{
	struct writer w = {.sb = sb};
	yaml_event_t event;

	hf_assert(yaml_emitter_initialize(&w.emitter));
	yaml_emitter_set_unicode(&w.emitter, 1);
	yaml_emitter_set_output(&w.emitter, write_bytes, sb);
	emit_event(&w, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
	emit_event(&w, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
	write_value(&w, json);
	emit_event(&w, &event, yaml_document_end_event_initialize(&event, 1));
	/* If open_ended stays set, libyaml writes a line "..." after a text that ends in "|+". */
	w.emitter.open_ended = 0;
	emit_event(&w, &event, yaml_stream_end_event_initialize(&event));
	yaml_emitter_delete(&w.emitter);
}
