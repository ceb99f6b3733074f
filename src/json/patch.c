/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * JSON patches (RFC 6902). Input: a document and an array of operations; output: a new document, or
 * an error.
 *
 * All operations work on one private copy, which is dropped if any of them fails. Each operation
 * walks from the root again; a typical patch has three operations.
 *
 * Invariant: limits on operations, copied bytes, depth and visited values bound the cost.
 */
#include "json/patch.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Values that the depth checks of one patch may visit, in all operations together. Without the
 * limit, thousands of moves of a large subtree would take seconds. */
#define VISITS_MAX 4000000
/* bytes of a path that error texts show */
#define PATH_SHOWN_MAX 200

enum kind { ADD, REMOVE, REPLACE, MOVE, COPY, TEST };

static const struct {
	const char *name;
	bool has_value, has_from;
} kinds[] = {
	[ADD] = {"add", true, false},         [REMOVE] = {"remove", false, false},
	[REPLACE] = {"replace", true, false}, [MOVE] = {"move", false, true},
	[COPY] = {"copy", false, true},       [TEST] = {"test", true, false},
};

struct operation {
	size_t index;
	enum kind kind;
	const char *path, *from;
	const struct hf_json *value;
};

struct patching {
	struct hf_json *root;
	const struct operation *op;
	size_t copied_bytes, visits;
	struct hf_error *err;
};

static int report_failure(const struct patching *p, int code, const char *why)
{
	return hf_error_set(p->err, code, "operation %zu (%s %.*s): %s", p->op->index,
			    kinds[p->op->kind].name, PATH_SHOWN_MAX, p->op->path, why);
}

/* Returns the next step of a pointer with ~1 and ~0 resolved, which the caller frees. Moves
 * *pointer behind the step. */
static char *next_step(const char **pointer)
{
	const char *p = *pointer + 1;
	size_t len = strcspn(p, "/"), n = 0;
	char *step = hf_xmalloc(len + 1);

	for (size_t i = 0; i < len; i++) {
		bool escape = p[i] == '~';
		step[n++] = escape ? (p[i + 1] == '1' ? '/' : '~') : p[i];
		i += escape;
	}
	step[n] = '\0';
	*pointer = p + len;
	return step;
}

/* True if the text is a JSON pointer. It is checked before the first operation, so that
 * next_step never meets an invalid escape. */
static bool is_pointer(const char *text)
{
	if (*text != '\0' && *text != '/')
		return false;
	for (const char *p = text; (p = strchr(p, '~')); p++)
		if (p[1] != '0' && p[1] != '1')
			return false;
	return true;
}

static int count_steps(const char *pointer)
{
	int steps = 0;

	for (; *pointer; pointer++)
		steps += *pointer == '/';
	return steps;
}

/* Reads an index of an array of len items. "-" and len mean the position after the last item. */
static bool read_index(const char *step, size_t len, size_t *ret_index)
{
	int64_t index;

	if (strcmp(step, "-") == 0) {
		*ret_index = len;
		return true;
	}
	if ((step[0] == '0' && step[1] != '\0') || step[0] == '-' ||
	    hf_str_to_i64(step, 0, (int64_t)len, &index, NULL) != 0)
		return false;
	*ret_index = (size_t)index;
	return true;
}

static struct hf_json *find_child(const struct hf_json *parent, const char *step)
{
	size_t index;

	if (hf_json_type(parent) == HF_JSON_OBJECT)
		return hf_json_get(parent, step);
	if (hf_json_type(parent) == HF_JSON_ARRAY && read_index(step, hf_json_len(parent), &index))
		return hf_json_item(parent, index);
	return NULL;
}

/* Returns the container of the value that the pointer names, and in *ret_step the last step,
 * which the caller frees. NULL if the path does not exist. The pointer must not be "". */
static struct hf_json *find_parent(const struct patching *p, const char *pointer, char **ret_step)
{
	struct hf_json *at = p->root;
	char *step = next_step(&pointer);

	while (*pointer) {
		at = find_child(at, step);
		free(step);
		step = next_step(&pointer);
	}
	*ret_step = step;
	return at;
}

static struct hf_json *find_value(const struct patching *p, const char *pointer)
{
	HF_AUTOFREE char *step = NULL;

	if (*pointer == '\0')
		return p->root;
	const struct hf_json *parent = find_parent(p, pointer, &step);
	return find_child(parent, step);
}

/* True if value has at most depth_max levels. */
static bool is_within_depth(struct patching *p, const struct hf_json *value, int depth_max)
{
	const char *key;
	struct hf_json *inner;
	bool shallow = ++p->visits <= VISITS_MAX;

	if (hf_json_type(value) != HF_JSON_OBJECT && hf_json_type(value) != HF_JSON_ARRAY)
		return shallow;
	if (depth_max <= 0)
		return false;
	for (void *it = NULL; shallow && (it = hf_json_next(value, it, &key, &inner));)
		shallow = is_within_depth(p, inner, depth_max - 1);
	for (size_t i = 0; shallow && (inner = hf_json_item(value, i)); i++)
		shallow = is_within_depth(p, inner, depth_max - 1);
	return shallow;
}

static void set_root(struct patching *p, struct hf_json *value)
{
	hf_json_unref(p->root);
	p->root = value;
}

/* Adds a value; takes over the reference. */
static int add_value(struct patching *p, struct hf_json *value)
{
	HF_AUTOFREE char *step = NULL;
	HF_AUTO_JSON owned = value;
	size_t index;

	/* The result must not be deeper than a parse allows, because other functions recurse. */
	if (!is_within_depth(p, value, HF_JSON_DEPTH_MAX - count_steps(p->op->path)))
		return report_failure(p, HF_E_TOO_LARGE, "nested too deeply, or too much is moved");
	if (*p->op->path == '\0') {
		set_root(p, hf_steal(&owned));
		return 0;
	}
	struct hf_json *parent = find_parent(p, p->op->path, &step);
	switch (hf_json_type(parent)) {
	case HF_JSON_OBJECT:
		if (hf_json_len(parent) >= HF_JSON_KEYS_MAX)
			return report_failure(p, HF_E_TOO_LARGE, "too many keys in one object");
		hf_json_set(parent, step, hf_steal(&owned));
		return 0;
	case HF_JSON_ARRAY:
		if (!read_index(step, hf_json_len(parent), &index))
			return report_failure(p, HF_E_INVALID, "the index is out of range");
		hf_json_insert(parent, index, hf_steal(&owned));
		return 0;
	case HF_JSON_ABSENT:
		return report_failure(p, HF_E_INVALID,
				      "the parent of the path is not in the document");
	default:
		return report_failure(p, HF_E_INVALID,
				      "the parent is neither an object nor an array");
	}
}

/* Removes the value at the pointer; the caller has checked that it exists. */
static void remove_value(struct patching *p, const char *pointer)
{
	HF_AUTOFREE char *step = NULL;
	struct hf_json *parent = find_parent(p, pointer, &step);
	size_t index;

	if (hf_json_type(parent) == HF_JSON_OBJECT) {
		hf_json_remove(parent, step);
		return;
	}
	hf_assert(read_index(step, hf_json_len(parent), &index));
	hf_json_remove_item(parent, index);
}

static int replace_value(struct patching *p)
{
	HF_AUTOFREE char *step = NULL;
	size_t index;

	if (*p->op->path == '\0') {
		set_root(p, hf_json_copy(p->op->value));
		return 0;
	}
	if (!is_within_depth(p, p->op->value, HF_JSON_DEPTH_MAX - count_steps(p->op->path)))
		return report_failure(p, HF_E_TOO_LARGE, "nested too deeply");
	struct hf_json *parent = find_parent(p, p->op->path, &step);
	if (hf_json_type(parent) == HF_JSON_OBJECT) {
		hf_json_set(parent, step, hf_json_copy(p->op->value));
		return 0;
	}
	hf_assert(read_index(step, hf_json_len(parent), &index));
	hf_json_replace_item(parent, index, hf_json_copy(p->op->value));
	return 0;
}

/* Sizes are measured as text, as the API server does. */
static int copy_value(struct patching *p, const struct hf_json *source)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_JSON_PATCH_COPY_BYTES_MAX - p->copied_bytes);

	hf_json_write(source, HF_JSON_COMPACT, &sb);
	if (sb.full)
		return report_failure(p, HF_E_TOO_LARGE, "the patch copies more than 3 MiB");
	p->copied_bytes += sb.len;
	return add_value(p, hf_json_copy(source));
}

static int move_value(struct patching *p, struct hf_json *source)
{
	const char *from = p->op->from, *path = p->op->path;
	size_t len = strlen(from);

	if (strcmp(from, path) == 0)
		return 0;
	if (strncmp(from, path, len) == 0 && path[len] == '/')
		return report_failure(p, HF_E_INVALID, "a value cannot be moved into itself");
	HF_AUTO_JSON value = hf_json_ref(source);
	remove_value(p, from);
	return add_value(p, hf_steal(&value));
}

static int apply_operation(struct patching *p)
{
	const struct operation *op = p->op;
	struct hf_json *target =
		find_value(p, op->kind == MOVE || op->kind == COPY ? op->from : op->path);

	if (count_steps(op->path) > HF_JSON_DEPTH_MAX)
		return report_failure(p, HF_E_INVALID,
				      "the parent of the path is not in the document");
	if (!target && op->kind != ADD)
		return report_failure(p, HF_E_INVALID,
				      kinds[op->kind].has_from ? "'from' is not in the document"
							       : "the path is not in the document");
	switch (op->kind) {
	case ADD: return add_value(p, hf_json_copy(op->value));
	case REMOVE:
		if (*op->path == '\0')
			return report_failure(p, HF_E_INVALID,
					      "the whole document cannot be removed");
		remove_value(p, op->path);
		return 0;
	case REPLACE: return replace_value(p);
	case MOVE: return move_value(p, target);
	case COPY: return copy_value(p, target);
	case TEST:
		if (!hf_json_equal(target, op->value))
			return report_failure(p, HF_E_INVALID,
					      "test failed: the value is different");
		return 0;
	}
	return 0;
}

static int report_bad_operation(size_t index, const char *why, struct hf_error *err)
{
	return hf_error_set(err, HF_E_BAD_REQUEST, "operation %zu: %s", index, why);
}

static int read_operation(const struct hf_json *json, struct operation *ret_op,
			  struct hf_error *err)
{
	const char *name = hf_json_path_str(json, "op", NULL);
	size_t kind = 0;

	ret_op->path = hf_json_path_str(json, "path", NULL);
	ret_op->from = hf_json_path_str(json, "from", NULL);
	ret_op->value = hf_json_get(json, "value");
	if (!name)
		return report_bad_operation(ret_op->index, "'op' must be a string", err);
	if (!ret_op->path || !is_pointer(ret_op->path))
		return report_bad_operation(ret_op->index, "'path' must be a JSON pointer", err);
	while (kind < HF_ARRAY_LEN(kinds) && strcmp(kinds[kind].name, name) != 0)
		kind++;
	if (kind == HF_ARRAY_LEN(kinds))
		return hf_error_set(err, HF_E_INVALID, "operation %zu: no such operation '%.*s'",
				    ret_op->index, PATH_SHOWN_MAX, name);
	if (kinds[kind].has_value && !ret_op->value)
		return report_bad_operation(ret_op->index, "'value' is missing", err);
	if (kinds[kind].has_from && (!ret_op->from || !is_pointer(ret_op->from)))
		return report_bad_operation(ret_op->index, "'from' must be a JSON pointer", err);
	ret_op->kind = (enum kind)kind;
	return 0;
}

int hf_json_patch(const struct hf_json *target, const struct hf_json *ops,
		  struct hf_json **ret_value, struct hf_error *err)
{
	struct patching p = {.err = err};
	size_t count = hf_json_len(ops);
	int rc = 0;

	if (hf_json_type(ops) != HF_JSON_ARRAY)
		return hf_error_set(err, HF_E_BAD_REQUEST, "a JSON patch must be an array");
	if (count > HF_JSON_PATCH_OPS_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "a JSON patch may have at most %d operations, this has %zu",
				    HF_JSON_PATCH_OPS_MAX, count);
	p.root = hf_json_copy(target);
	for (size_t i = 0; i < count && rc == 0; i++) {
		struct operation op = {.index = i};
		p.op = &op;
		rc = read_operation(hf_json_item(ops, i), &op, err);
		if (rc == 0)
			rc = apply_operation(&p);
	}
	if (rc == 0)
		*ret_value = hf_steal(&p.root);
	hf_json_unref(p.root);
	return rc;
}
