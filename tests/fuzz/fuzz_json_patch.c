/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a document, a NUL, and a second JSON text. An array is a JSON patch. An object is a merge
 * patch, and then a document into which a patch has to turn the first one. Bytes that are not JSON
 * become operations on paths that the document has, which random changes of a text seldom hit. */

#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "json/patch.h"

#include <string.h>

/* Removes nulls from objects: for a merge patch they mean absent members. */
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
	/* The result must be a valid document: it can be written and parsed, so it is not nested
	 * too deeply. */
	hf_json_write(result, HF_JSON_COMPACT, &sb);
	hf_assert(hf_json_parse(sb.data, sb.len, &limits, &back, NULL) == 0);
	hf_assert(hf_json_equal(result, back));
}

#define PLACES_MAX 64

struct places {
	struct hf_json *pointers; /* strings */
	struct hf_strbuf at;
};

static void add_place(struct places *places, const struct hf_json *value, const char *key)
{
	size_t len = places->at.len;
	struct hf_json *inner;

	hf_strbuf_addch(&places->at, '/');
	for (; *key; key++) {
		if (*key == '~' || *key == '/')
			hf_strbuf_addstr(&places->at, *key == '~' ? "~0" : "~1");
		else
			hf_strbuf_addch(&places->at, *key);
	}
	if (hf_json_len(places->pointers) < PLACES_MAX && !places->at.full)
		hf_json_append(places->pointers, hf_json_string(places->at.data));
	for (void *it = NULL; (it = hf_json_next(value, it, &key, &inner));)
		add_place(places, inner, key);
	for (size_t i = 0; (inner = hf_json_item(value, i)) && i < 3; i++)
		add_place(places, inner, i == 0 ? "0" : i == 1 ? "1" : "-");
	hf_strbuf_truncate(&places->at, len);
}

static const char *some_place(const struct places *places, uint8_t byte)
{
	size_t len = hf_json_len(places->pointers);

	return byte == 0 || len == 0 ? ""
				     : hf_json_str(hf_json_item(places->pointers, byte % len), "");
}

/* Makes operations of a JSON patch, each from three bytes: the operation, its path, and its `from`
 * or value. */
static struct hf_json *make_operations(const struct hf_json *target, const uint8_t *data,
				       size_t size)
{
	static const char *const kinds[] = {"add", "remove", "replace", "move", "copy", "test"};
	struct places places = {
		.pointers = hf_json_array(),
		.at = HF_STRBUF_INIT(4096),
	};
	struct hf_json *ops = hf_json_array();

	add_place(&places, target, "new");
	for (size_t i = 0; i + 2 < size && i < 300; i += 3) {
		struct hf_json *op = hf_json_object();
		hf_json_set_str(op, "op", kinds[data[i] % HF_ARRAY_LEN(kinds)]);
		/* Cut "/new" from the pointer: the target's places were listed below that name. */
		const char *path = some_place(&places, data[i + 1]);
		hf_json_set_str(op, "path", data[i] & 0x80 || *path == '\0' ? path : path + 4);
		path = some_place(&places, data[i + 2]);
		hf_json_set_str(op, "from", *path == '\0' ? path : path + 4);
		hf_json_set(op, "value",
			    data[i] & 0x40 ? hf_json_copy(target) : hf_json_int(data[i + 2]));
		hf_json_append(ops, op);
	}
	hf_json_unref(places.pointers);
	hf_strbuf_release(&places.at);
	return ops;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	size_t len = strnlen(text, size);
	HF_AUTO_JSON target = NULL;
	HF_AUTO_JSON patch = NULL;

	if (len == size || hf_json_parse(text, len, NULL, &target, NULL) != 0)
		return 0;
	if (hf_json_parse(text + len + 1, size - len - 1, NULL, &patch, NULL) != 0)
		patch = make_operations(target, data + len + 1, size - len - 1);
	check_patch(target, patch);
	if (hf_json_type(target) == HF_JSON_OBJECT && hf_json_type(patch) == HF_JSON_OBJECT)
		check_merge(target, patch);
	return 0;
}
