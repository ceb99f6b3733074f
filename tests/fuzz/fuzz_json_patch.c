/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* A document, a NUL, what to do with it: an array is a JSON patch, an object a merge patch
 * and then a document to find the way to. */

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "json/patch.h"

#include <string.h>

/* Nulls in objects are absent members to a merge patch. */
static struct hf_json *without_nulls(const struct hf_json *value)
{
	return hf_json_merge_patch(NULL, value);
}

static void check_merge(const struct hf_json *from, const struct hf_json *to)
{
	HF_AUTO_JSON merged = hf_json_merge_patch(from, to);
	HF_AUTO_JSON patch = hf_json_merge_diff(from, to);
	HF_AUTO_JSON result = hf_json_merge_patch(from, patch);
	HF_AUTO_JSON want = without_nulls(to);
	HF_AUTO_JSON have = without_nulls(result);
	HF_AUTO_JSON nothing = hf_json_merge_diff(result, to);

	hf_assert(hf_json_type(merged) == HF_JSON_OBJECT);
	hf_assert(hf_json_equal(have, want));
	hf_assert(hf_json_len(nothing) == 0);
}

static void check_patch(const struct hf_json *target, const struct hf_json *ops)
{
	HF_AUTO_JSON before = hf_json_copy(target);
	HF_AUTO_JSON result = NULL;
	HF_AUTO_JSON back = NULL;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)64 << 20);
	const struct hf_json_limits limits = {.bytes_max = (size_t)64 << 20};
	struct hf_error err;

	if (hf_json_patch(target, ops, &result, &err) != 0)
		hf_assert(!result && err.text[0] != '\0');
	hf_assert(hf_json_equal(target, before));
	if (!result)
		return;
	/* What comes out is a document like any other: no deeper, for one. */
	hf_json_write(result, HF_JSON_COMPACT, &sb);
	hf_assert(hf_json_parse(sb.data, sb.len, &limits, &back, NULL) == 0);
	hf_assert(hf_json_equal(result, back));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	size_t len = strnlen(text, size);
	HF_AUTO_JSON target = NULL;
	HF_AUTO_JSON patch = NULL;

	if (len == size || hf_json_parse(text, len, NULL, &target, NULL) != 0 ||
	    hf_json_parse(text + len + 1, size - len - 1, NULL, &patch, NULL) != 0)
		return 0;
	check_patch(target, patch);
	if (hf_json_type(target) == HF_JSON_OBJECT && hf_json_type(patch) == HF_JSON_OBJECT)
		check_merge(target, patch);
	return 0;
}
