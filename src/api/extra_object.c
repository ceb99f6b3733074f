/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/extra_object.h"

#include "api/pod.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"

#include <string.h>

/*
 * Reads and writes the extra objects of jobs (core/model/extra_object.h): pod groups, autoscalers and the like.
 * Reading computes a digest of the members that Holdfast owns, so the planner can compare an object
 * with the wanted one. Writing builds the object, or a JSON patch of those members, from a list of
 * leaves: a path and a value each.
 */

/* Bytes of a path to a member. The JSON parser limits how deep a document nests, but a key may be
 * long. */
#define PATH_MAX_BYTES ((size_t)64 << 10)

/* ---- reading -------------------------------------------------------------------------------- */

static uint64_t digest_value(const struct hf_json *value, struct hf_strbuf *path);

/* Appends "/" and the escaped key, as hf_leaf_key does, but without an arena. */
static void add_key(struct hf_strbuf *path, const char *key)
{
	hf_strbuf_addch(path, '/');
	if (*key == '[')
		hf_strbuf_addstr(path, "~2");
	for (const char *at = *key == '[' ? key + 1 : key; *at; at++) {
		if (*at == '~' || *at == '/')
			hf_strbuf_addstr(path, *at == '~' ? "~0" : "~1");
		else
			hf_strbuf_addch(path, *at);
	}
}

static uint64_t digest_members(const struct hf_json *object, struct hf_strbuf *path)
{
	struct hf_json *value;
	const char *key;
	uint64_t sum = 0;

	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value)) != NULL;) {
		size_t mark = path->len;

		add_key(path, key);
		sum += digest_value(value, path);
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
		sum += digest_value(hf_json_item(array, i), path);
		hf_strbuf_truncate(path, mark);
	}
	return sum;
}

static uint64_t digest_value(const struct hf_json *value, struct hf_strbuf *path)
{
	switch (hf_json_type(value)) {
	case HF_JSON_OBJECT: return digest_members(value, path);
	case HF_JSON_ARRAY: return digest_items(value, path);
	case HF_JSON_STRING: return hf_leaf_digest(path->data, hf_json_str(value, ""));
	case HF_JSON_INT: return hf_number_digest(path->data, hf_json_i64(value, 0));
	case HF_JSON_NULL: return 0;
	/* Members that Holdfast wants are never a boolean or a fraction. So these need any digest
	 * that differs from a wanted value's. */
	default: return hf_leaf_digest(path->data, hf_json_true(value, false) ? "\x01" : "\x02");
	}
}

uint64_t hf_extra_value_digest(const char *path, const struct hf_json *value)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(PATH_MAX_BYTES);

	if (value == NULL)
		return 0;
	hf_strbuf_addstr(&sb, path);
	return digest_value(value, &sb);
}

/* Returns the member at a path such as "spec/minMember", or NULL. */
static struct hf_json *find_member(const struct hf_json *object, const char *path)
{
	const char *slash = strchr(path, '/');
	char first[32];

	if (slash == NULL)
		return hf_json_get(object, path);
	hf_assert((size_t)(slash - path) < sizeof(first));
	memcpy(first, path, (size_t)(slash - path));
	first[slash - path] = '\0';
	return hf_json_get(hf_json_get(object, first), slash + 1);
}

/* Volcano sets the phase to Inqueue once the cluster has room for the group. Groups of other kinds
 * are always ready. */
static bool is_ready(struct hf_doc *doc, enum hf_extra_kind kind)
{
	const char *phase = hf_json_path_str(hf_doc_json(doc), "status", "phase", NULL);

	return kind != HF_EXTRA_VOLCANO_GROUP ||
	       !(hf_str_is_empty(phase) || hf_streq(phase, "Pending"));
}

const char *hf_extra_read(struct hf_doc *doc, enum hf_extra_kind kind, const char *job_uid,
			  struct hf_arena *arena, struct hf_extra_seen *ret_seen)
{
	const char *controller = hf_controller_uid(doc, arena);
	const char *const *members = hf_extra_kind_members(kind);

	*ret_seen = (struct hf_extra_seen){
		.kind = kind,
		.name = hf_doc_name(doc),
		.uid = hf_doc_uid(doc),
		.resource_version = hf_doc_resource_version(doc),
		.owned = controller != NULL && (job_uid == NULL || hf_streq(controller, job_uid)),
		.terminating = hf_is_terminating(doc, arena),
		.ready = is_ready(doc, kind),
	};
	for (size_t i = 0; members[i] != NULL && controller != NULL; i++)
		ret_seen->digest += hf_extra_value_digest(
			members[i], find_member(hf_doc_json(doc), members[i]));
	return controller;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Parses a list index: "[3]" is the fourth item. */
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

/* Returns the object or list under the key and creates it if it is missing. The leaves come in
 * order, so a missing list item is always the next one. */
static struct hf_json *ensure_child(struct hf_json *at, const char *key, bool list)
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

/* Builds a leaf's JSON value. HF_LEAF_JSON texts were written by this program, so they always
 * parse. */
static struct hf_json *value_of(const struct hf_leaf *leaf)
{
	struct hf_json *value = NULL;
	struct hf_error err;
	int rc;

	switch (leaf->type) {
	case HF_LEAF_NUMBER: return hf_json_int(leaf->number);
	case HF_LEAF_OBJECT: return hf_json_object();
	case HF_LEAF_JSON:
		rc = hf_json_parse(leaf->value, strlen(leaf->value), NULL, &value, &err);
		hf_assert(rc == 0);
		return value;
	case HF_LEAF_TEXT: break;
	}
	return hf_json_string(leaf->value);
}

/* Undoes the escapes of hf_leaf_key, in place. Only the last key of a path can have escapes: it may
 * be a user's text, while the keys before it are constants. */
static const char *unescape_key(char *key)
{
	char *to = key;

	for (const char *from = key; *from != '\0'; from++) {
		if (*from == '~' && from[1] != '\0') {
			from++;
			*to++ = *from == '0' ? '~' : *from == '1' ? '/' : '[';
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return key;
}

static void set_leaf(struct hf_json *object, const struct hf_leaf *leaf)
{
	HF_AUTOFREE char *path = hf_xstrdup(leaf->path);
	struct hf_json *at = object;
	char *key = path, *slash;

	while ((slash = strchr(key, '/')) != NULL) {
		*slash = '\0';
		at = ensure_child(at, key, slash[1] == '[');
		key = slash + 1;
	}
	if (key[0] == '[')
		hf_json_append(at, value_of(leaf));
	else
		hf_json_set(at, unescape_key(key), value_of(leaf));
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

/* Sets a member that Holdfast does not want to null, and an API server drops the member. A "remove"
 * operation would fail if the member did not exist. */
struct hf_json *hf_extra_patch(const struct hf_extra *extra, const char *uid)
{
	const char *const *members = hf_extra_kind_members(extra->kind);
	HF_AUTO_JSON whole = hf_extra_write(extra);
	struct hf_json *patch = hf_json_array();

	hf_assert(members[0] != NULL && uid != NULL);
	add_operation(patch, "test", "/metadata/uid", hf_json_string(uid));
	for (size_t i = 0; members[i] != NULL; i++) {
		struct hf_json *value = find_member(whole, members[i]);
		char path[64];

		hf_assert(strlen(members[i]) < sizeof(path) - 1);
		path[0] = '/';
		memcpy(path + 1, members[i], strlen(members[i]) + 1);
		add_operation(patch, "add", path,
			      value == NULL ? hf_json_null() : hf_json_ref(value));
	}
	return patch;
}
