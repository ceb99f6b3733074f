/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

/*
 * The size of an object's JSON text, as an upper bound: real numbers and literals count at their
 * longest, and each member includes a comma. A write measures only the changed parts.
 */

static size_t string_size(const char *s)
{
	size_t n = 2;

	/* An escaped character takes two bytes, a control character six. */
	for (; *s; s++)
		n += (unsigned char)*s < 0x20 ? 6 : *s == '"' || *s == '\\' ? 2 : 1;
	return n;
}

static size_t count_digits(int64_t i)
{
	size_t n = i < 0 ? 2 : 1;

	while (i /= 10)
		n++;
	return n;
}

size_t hf_json_text_size(const struct hf_json *value, size_t max)
{
	const char *key;
	struct hf_json *member;
	size_t n = 2;

	switch (hf_json_type(value)) {
	case HF_JSON_STRING: return string_size(hf_json_str(value, ""));
	case HF_JSON_INT: return count_digits(hf_json_i64(value, 0));
	case HF_JSON_REAL: return 24; /* longest: 17 digits, sign, point, exponent */
	case HF_JSON_OBJECT:
		for (void *it = NULL; n <= max && (it = hf_json_next(value, it, &key, &member));)
			n += string_size(key) + 2 + hf_json_text_size(member, max - n);
		return n;
	case HF_JSON_ARRAY:
		for (size_t i = 0; n <= max && i < hf_json_len(value); i++)
			n += 1 + hf_json_text_size(hf_json_item(value, i), max - n);
		return n;
	default: return 5;
	}
}

/* bytes of a member beside key and value: a colon and a comma, as in hf_json_text_size */
#define MEMBER_EXTRA 2
#define ITEM_EXTRA 1

static int64_t size_of(const struct hf_json *value)
{
	return (int64_t)hf_json_text_size(value, SIZE_MAX);
}

static int64_t member_size(const char *key, const struct hf_json *value)
{
	return (int64_t)string_size(key) + MEMBER_EXTRA + size_of(value);
}

static int64_t value_growth(const struct hf_json *before, const struct hf_json *after);

static int64_t object_growth(const struct hf_json *before, const struct hf_json *after)
{
	int64_t n = 0;
	size_t kept = 0;
	void *at = NULL;
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(after, it, &key, &value));) {
		const struct hf_json *old = hf_json_get_along(before, &at, key);
		kept += old != NULL;
		n += old ? value_growth(old, value) : member_size(key, value);
	}
	if (kept == hf_json_len(before))
		return n;
	for (void *it = NULL; (it = hf_json_next(before, it, &key, &value));)
		if (!hf_json_get(after, key))
			n -= member_size(key, value);
	return n;
}

static int64_t array_growth(const struct hf_json *before, const struct hf_json *after)
{
	size_t n_before = hf_json_len(before), n_after = hf_json_len(after);
	int64_t n = 0;

	for (size_t i = 0; i < n_after; i++) {
		const struct hf_json *item = hf_json_item(after, i);
		n += i < n_before ? value_growth(hf_json_item(before, i), item)
				  : ITEM_EXTRA + size_of(item);
	}
	for (size_t i = n_after; i < n_before; i++)
		n -= ITEM_EXTRA + size_of(hf_json_item(before, i));
	return n;
}

/* Returns how many bytes the text of `after` is longer than the text of `before`. Skips parts that
 * both share. */
static int64_t value_growth(const struct hf_json *before, const struct hf_json *after)
{
	enum hf_json_type type = hf_json_type(after);

	if (before == after)
		return 0;
	if (type == HF_JSON_OBJECT && hf_json_type(before) == type)
		return object_growth(before, after);
	if (type == HF_JSON_ARRAY && hf_json_type(before) == type)
		return array_growth(before, after);
	return size_of(after) - size_of(before);
}

size_t hf_json_text_size_after(const struct hf_json *before, size_t bytes_before,
			       const struct hf_json *after)
{
	return (size_t)((int64_t)bytes_before + value_growth(before, after));
}
