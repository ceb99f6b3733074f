/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

/*
 * JSON merge patch (RFC 7386), like json/patch.h, but without a copy: the result shares all
 * unchanged parts with the target, and is the target itself if nothing changed. So a status patch
 * of a large pod copies only the changed nodes, not the pod.
 */

/* Copies a value without null members, as RFC 7386 asks for new values. */
static struct hf_json *without_nulls(const struct hf_json *value)
{
	const char *key;
	struct hf_json *member;

	if (hf_json_type(value) != HF_JSON_OBJECT)
		return hf_json_share(value);
	struct hf_json *out = hf_json_object();
	for (void *it = NULL; (it = hf_json_next(value, it, &key, &member));)
		if (hf_json_type(member) != HF_JSON_NULL)
			hf_json_set(out, key, without_nulls(member));
	return out;
}

struct hf_json *hf_patch_merge(const struct hf_json *target, const struct hf_json *patch)
{
	struct hf_json *out = NULL; /* NULL: no change so far */
	const char *key;
	struct hf_json *desired;

	if (hf_json_type(patch) != HF_JSON_OBJECT)
		return hf_json_equal(target, patch) ? hf_json_share(target) : hf_json_share(patch);
	if (hf_json_type(target) != HF_JSON_OBJECT)
		return without_nulls(patch);
	for (void *it = NULL; (it = hf_json_next(patch, it, &key, &desired));) {
		struct hf_json *old = hf_json_get(target, key);
		struct hf_json *new = NULL;
		if (hf_json_type(desired) != HF_JSON_NULL)
			new = old ? hf_patch_merge(old, desired) : without_nulls(desired);
		if (new == old) {
			hf_json_unref(new);
			continue;
		}
		if (!out)
			out = hf_json_shallow(target);
		if (new)
			hf_json_set(out, key, new);
		else
			hf_json_remove(out, key);
	}
	return out ? out : hf_json_share(target);
}
