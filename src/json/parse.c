/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Parses JSON text with limits. Input: bytes; output: a tree, or an error with line and column.
 *
 * parse_plain.c reads ordinary JSON fast. All other text, valid or not, goes to jansson, which
 * decides and reports errors.
 */
#include "json/json.h"

#include "json/json_internal.h"

#include <string.h>

int hf_json_error_at(struct hf_error *err, int code, const char *text, const char *at,
		     const char *what)
{
	int line = 1;
	const char *start = text;

	for (const char *p; (p = memchr(start, '\n', (size_t)(at - start)));) {
		line++;
		start = p + 1;
	}
	return hf_error_set(err, code, "line %d, column %d: %s", line, (int)(at - start) + 1, what);
}

/* Returns the position after a string, or end. p is at the opening quote. */
static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p < end ? p + 1 : end;
}

/* Checks depth and number of keys before jansson reads the text. jansson recurses up to 2,048
 * levels, and its hash tables are slow for colliding keys. On text that is not JSON the counts
 * are meaningless, but such text fails anyway. */
static int check_limits(const char *text, size_t len, int depth_max, struct hf_error *err)
{
	int keys[HF_JSON_DEPTH_CEILING + 1];
	int depth = 0;
	const char *end = text + len;

	keys[0] = 0;
	for (const char *p = text; p < end;) {
		switch (*p) {
		case '"': p = skip_string(p, end); continue;
		case '{':
		case '[':
			if (++depth > depth_max)
				return hf_json_error_at(err, HF_E_TOO_LARGE, text, p,
							"nested too deeply");
			keys[depth] = 0;
			break;
		case '}':
		case ']':
			if (depth > 0)
				depth--;
			break;
		case ':':
			if (++keys[depth] > HF_JSON_KEYS_MAX)
				return hf_json_error_at(err, HF_E_TOO_LARGE, text, p,
							"too many keys in one object");
			break;
		}
		p++;
	}
	return 0;
}

/* Parses text that is unusual or invalid with jansson, after checking the limits. */
static int parse_rare(const char *text, size_t len, int depth_max, json_t **ret_raw,
		      struct hf_error *err)
{
	json_error_t raw_err;
	int rc = check_limits(text, len, depth_max, err);

	if (rc != 0)
		return rc;
	/* jansson treats a NUL byte as the end of the text in some places. */
	const char *nul = memchr(text, '\0', len);
	if (nul)
		return hf_json_error_at(err, HF_E_BAD_REQUEST, text, nul, "a NUL byte");
	*ret_raw = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &raw_err);
	if (!*ret_raw)
		return hf_error_set(err, HF_E_BAD_REQUEST, "line %d, column %d: %s", raw_err.line,
				    raw_err.column, raw_err.text);
	return 0;
}

int hf_json_parse(const char *text, size_t len, const struct hf_json_limits *limits,
		  struct hf_json **ret_value, struct hf_error *err)
{
	size_t bytes_max = limits && limits->bytes_max ? limits->bytes_max : HF_JSON_BYTES_MAX;
	int depth_max = limits && limits->depth_max ? limits->depth_max : HF_JSON_DEPTH_MAX;

	hf_assert(depth_max <= HF_JSON_DEPTH_CEILING);
	hf_assert(text || len == 0);
	text = text ? text : "";
	if (len > bytes_max)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "%zu bytes of JSON, more than the limit of %zu", len,
				    bytes_max);
	hf_json_prepare();
	json_t *raw = hf_json_parse_plain(text, len, depth_max);
	int rc = raw ? 0 : parse_rare(text, len, depth_max, &raw, err);
	if (rc != 0)
		return rc;
	*ret_value = hf_json_of(raw);
	return 0;
}
