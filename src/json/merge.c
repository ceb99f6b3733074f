/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * JSON merge patches (RFC 7386): applying a patch, and the smallest patch between two objects.
 * The functions recurse; HF_JSON_DEPTH_MAX limits the depth of documents.
 */
#include "json/patch.h"

/* Merges patch into target, which the caller may change. */
static void merge_into(struct hf_json *target, const struct hf_json *patch)
{
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(patch, it, &key, &value));) {
		struct hf_json *old = hf_json_get(target, key);
		if (hf_json_type(value) == HF_JSON_NULL)
			hf_json_remove(target, key);
		else if (hf_json_type(value) == HF_JSON_OBJECT &&
			 hf_json_type(old) == HF_JSON_OBJECT)
			merge_into(old, value);
		else
			hf_json_set(target, key, hf_json_merge_patch(NULL, value));
	}
}

struct hf_json *hf_json_merge_patch(const struct hf_json *target, const struct hf_json *patch)
{
	struct hf_json *result;

	if (hf_json_type(patch) != HF_JSON_OBJECT)
		return hf_json_copy(patch);
	result = hf_json_type(target) == HF_JSON_OBJECT ? hf_json_copy(target) : hf_json_object();
	merge_into(result, patch);
	return result;
}

static bool is_nothing(const struct hf_json *value)
{
	return !value || hf_json_type(value) == HF_JSON_NULL;
}

/* Adds the difference of one member to patch. Objects are compared member by member. Every other
 * value, arrays included, is replaced as a whole, because a merge patch cannot change parts of
 * it. */
static void diff_member(const struct hf_json *old, const struct hf_json *new, const char *key,
			struct hf_json *patch)
{
	if (is_nothing(new)) {
		if (!is_nothing(old))
			hf_json_set(patch, key, hf_json_null());
	} else if (hf_json_type(old) == HF_JSON_OBJECT && hf_json_type(new) == HF_JSON_OBJECT) {
		struct hf_json *inner = hf_json_merge_diff(old, new);
		if (hf_json_len(inner) > 0)
			hf_json_set(patch, key, inner);
		else
			hf_json_unref(inner);
	} else if (!hf_json_equal(old, new)) {
		/* Merging with an absent target removes the nulls inside `new`. A merge patch
		 * cannot set a value to null, so the nulls have no effect. */
		hf_json_set(patch, key, hf_json_merge_patch(NULL, new));
	}
}

struct hf_json *hf_json_merge_diff(const struct hf_json *from, const struct hf_json *to)
{
	struct hf_json *patch = hf_json_object();
	const char *key;
	struct hf_json *value;

	hf_assert(hf_json_type(from) == HF_JSON_OBJECT && hf_json_type(to) == HF_JSON_OBJECT);
	for (void *it = NULL; (it = hf_json_next(from, it, &key, &value));)
		diff_member(value, hf_json_get(to, key), key, patch);
	for (void *it = NULL; (it = hf_json_next(to, it, &key, &value));)
		if (!hf_json_get(from, key))
			diff_member(NULL, value, key, patch);
	return patch;
}
