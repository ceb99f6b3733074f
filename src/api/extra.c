/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/extra.h"

#include "api/pod.h"
#include "base/str.h"
#include "base/strbuf.h"

#include <string.h>

/* Documents nest no deeper than the parser lets them; paths are as long as their keys. */
#define PATH_MAX_BYTES ((size_t)64 << 10)

/* ---- reading -------------------------------------------------------------------------------- */

static uint64_t digest(const struct hf_json *value, struct hf_strbuf *path);

static uint64_t digest_members(const struct hf_json *object, struct hf_strbuf *path)
{
	struct hf_json *value;
	const char *key;
	uint64_t sum = 0;

	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value)) != NULL;) {
		size_t mark = path->len;

		hf_strbuf_addf(path, "/%s", key);
		sum += digest(value, path);
		hf_strbuf_truncate(path, mark);
	}
	return sum;
}

static uint64_t digest_items(const struct hf_json *array, struct hf_strbuf *path)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < hf_json_len(array); i++) {
		size_t mark = path->len;

		hf_strbuf_addf(path, "/[%zu]", i);
		sum += digest(hf_json_item(array, i), path);
		hf_strbuf_truncate(path, mark);
	}
	return sum;
}

/* Only texts are ever wanted: of anything else it is enough that it does not count as one. */
static uint64_t digest(const struct hf_json *value, struct hf_strbuf *path)
{
	switch (hf_json_type(value)) {
	case HF_JSON_OBJECT: return digest_members(value, path);
	case HF_JSON_ARRAY: return digest_items(value, path);
	case HF_JSON_STRING: return hf_leaf_digest(path->data, hf_json_str(value, ""));
	case HF_JSON_NULL: return 0;
	default: return hf_leaf_digest(path->data, "\x01");
	}
}

const char *hf_extra_read(struct hf_doc *doc, enum hf_extra_kind kind, const char *job_uid,
			  struct hf_arena *arena, struct hf_extra_seen *ret_seen)
{
	const char *controller = hf_controller_uid(doc, arena);
	const char *root = hf_extra_kind_root(kind);

	*ret_seen = (struct hf_extra_seen){
		.kind = kind,
		.name = hf_doc_name(doc),
		.uid = hf_doc_uid(doc),
		.resource_version = hf_doc_resource_version(doc),
		.owned = controller != NULL && (job_uid == NULL || hf_streq(controller, job_uid)),
		.terminating = hf_is_terminating(doc, arena),
	};
	if (root != NULL && controller != NULL) {
		HF_AUTO_STRBUF path = HF_STRBUF_INIT(PATH_MAX_BYTES);

		hf_strbuf_addstr(&path, root);
		ret_seen->digest = digest(hf_json_get(hf_doc_json(doc), root), &path);
	}
	return controller;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* "[3]" is the fourth place in a list. */
static bool is_place(const char *key, size_t *ret_place)
{
	char digits[16];
	int64_t place;
	size_t len;

	if (key[0] != '[')
		return false;
	len = strcspn(key + 1, "]");
	hf_assert(len < sizeof(digits));
	memcpy(digits, key + 1, len);
	digits[len] = '\0';
	if (hf_str_to_i64(digits, 0, INT32_MAX, &place, NULL) != 0)
		return false;
	*ret_place = (size_t)place;
	return true;
}

/* What is under one key, made if it is missing.  Places come in order, so the next one is new. */
static struct hf_json *descend(struct hf_json *at, const char *key, bool list)
{
	struct hf_json *next;
	size_t place;

	if (!is_place(key, &place))
		return list ? hf_json_ensure_array(at, key) : hf_json_ensure_object(at, key);
	if (place < hf_json_len(at))
		return hf_json_item(at, place);
	next = list ? hf_json_array() : hf_json_object();
	hf_json_append(at, next);
	return next;
}

static void set_leaf(struct hf_json *object, const struct hf_leaf *leaf)
{
	struct hf_json *at = object;
	char path[256], *key = path, *slash;

	hf_assert(strlen(leaf->path) < sizeof(path));
	memcpy(path, leaf->path, strlen(leaf->path) + 1);
	while ((slash = strchr(key, '/')) != NULL) {
		*slash = '\0';
		at = descend(at, key, slash[1] == '[');
		key = slash + 1;
	}
	if (key[0] == '[')
		hf_json_append(at, hf_json_string(leaf->value));
	else
		hf_json_set_str(at, key, leaf->value);
}

struct hf_json *hf_extra_write(const struct hf_extra *extra)
{
	struct hf_json *object = hf_json_object(), *meta;

	hf_json_set_str(object, "apiVersion", hf_extra_kind_version(extra->kind));
	hf_json_set_str(object, "kind", hf_extra_kind_name(extra->kind));
	meta = hf_json_ensure_object(object, "metadata");
	hf_json_set_str(meta, "name", extra->name);
	for (size_t i = 0; i < extra->labels_len; i++)
		hf_json_set_str(hf_json_ensure_object(meta, "labels"), extra->labels[i].path,
				extra->labels[i].value);
	for (size_t i = 0; i < extra->content_len; i++)
		set_leaf(object, &extra->content[i]);
	return object;
}

static void add_operation(struct hf_json *patch, const char *op, const char *path,
			  struct hf_json *value)
{
	struct hf_json *operation = hf_json_object();

	hf_json_set_str(operation, "op", op);
	hf_json_set_str(operation, "path", path);
	hf_json_set(operation, "value", value);
	hf_json_append(patch, operation);
}

struct hf_json *hf_extra_patch(const struct hf_extra *extra, const char *uid)
{
	const char *root = hf_extra_kind_root(extra->kind);
	HF_AUTO_JSON whole = hf_extra_write(extra);
	struct hf_json *patch = hf_json_array();
	char path[64];

	hf_assert(root != NULL && uid != NULL && strlen(root) < sizeof(path) - 1);
	path[0] = '/';
	memcpy(path + 1, root, strlen(root) + 1);
	add_operation(patch, "test", "/metadata/uid", hf_json_string(uid));
	add_operation(patch, "add", path, hf_json_ref(hf_json_get(whole, root)));
	return patch;
}
