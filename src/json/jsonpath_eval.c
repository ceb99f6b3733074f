/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/vec.h"
#include "json/json_internal.h"
#include "json/jsonpath_internal.h"
#include "json/number_internal.h"

#include <string.h>

/*
 * Every step maps a list of values to the next one, as client-go has it.  Lists are bounded,
 * and so is what they cost: a step visits each value once.
 */

/* Values found, borrowed from the document or the path. */
struct found {
	HF_VEC(const struct hf_json *) v;
};

static void init(struct found *found)
{
	*found = (struct found){.v = HF_VEC_INIT(HF_JSONPATH_RESULTS_MAX)};
}

static void release(struct found *found)
{
	HF_VEC_RELEASE(&found->v);
}
#define AUTO_FOUND HF_CLEANUP(release) struct found

static int walk(const struct hf_jsonpath_step *steps, const struct hf_json *value,
		struct found *out, struct hf_error *err);

static int add(struct found *out, const struct hf_json *value, struct hf_error *err)
{
	if (!HF_VEC_PUSH(&out->v, value))
		return hf_error_set(err, HF_E_TOO_LARGE, "jsonpath: more than %d values found",
				    HF_JSONPATH_RESULTS_MAX);
	return 0;
}

static int add_all(const struct hf_json *value, struct found *out, struct hf_error *err)
{
	const char *key;
	struct hf_json *item;
	int rc = 0;

	for (void *it = NULL; rc == 0 && (it = hf_json_next(value, it, &key, &item));)
		rc = add(out, item, err);
	for (size_t i = 0; rc == 0 && (item = hf_json_item(value, i)); i++)
		rc = add(out, item, err);
	return rc;
}

static int out_of_bounds(int64_t index, int64_t len, struct hf_error *err)
{
	return hf_error_set(err, HF_E_INVALID,
			    "jsonpath: array index out of bounds: index %lld, length %lld",
			    (long long)index, (long long)len);
}

/* From which item up to which of len; the errors are those of client-go's evalArray. */
static int bounds(const struct hf_jsonpath_step *step, int64_t len, int64_t *ret_start,
		  int64_t *ret_end, struct hf_error *err)
{
	int64_t start = step->has_start ? step->start : 0;
	int64_t end = step->single ? step->start + 1 : step->has_end ? step->end : len;

	if (start < 0)
		start += len;
	if (end < 0 || (end == 0 && step->single))
		end += len;
	*ret_start = start;
	*ret_end = end;
	if (start == end)
		return 0;
	if (start < 0 || start >= len)
		return out_of_bounds(start, len, err);
	if (end < 0 || end > len)
		return out_of_bounds(end - 1, len, err);
	if (start > end)
		return hf_error_set(
			err, HF_E_INVALID,
			"jsonpath: starting index %lld is greater than ending index %lld",
			(long long)start, (long long)end);
	return 0;
}

static int slice(const struct hf_jsonpath_step *step, const struct hf_json *value,
		 struct found *out, struct hf_error *err)
{
	int64_t start, end;

	if (hf_json_type(value) == HF_JSON_NULL)
		return 0;
	if (hf_json_type(value) != HF_JSON_ARRAY)
		return hf_error_set(err, HF_E_INVALID, "jsonpath: %s is not an array",
				    hf_json_type_name(hf_json_type(value)));
	int rc = bounds(step, (int64_t)hf_json_len(value), &start, &end, err);
	for (int64_t i = start; rc == 0 && i < end; i++)
		rc = add(out, hf_json_item(value, (size_t)i), err);
	return rc;
}

static bool is_number(enum hf_json_type type)
{
	return type == HF_JSON_INT || type == HF_JSON_REAL;
}

static int three_way(bool less, bool greater)
{
	return (int)greater - (int)less;
}

/* Values of one kind; numbers by value, however they are written. */
static int order(const struct hf_json *a, const struct hf_json *b, int *ret_order,
		 struct hf_error *err)
{
	enum hf_json_type x = hf_json_type(a), y = hf_json_type(b);

	if (is_number(x) && is_number(y)) {
		double p = hf_json_num(a, 0), q = hf_json_num(b, 0);
		int64_t i = hf_json_i64(a, 0), j = hf_json_i64(b, 0);
		bool whole = x == HF_JSON_INT && y == HF_JSON_INT;
		*ret_order = whole ? three_way(i<j, i> j) : three_way(p<q, p> q);
		return 0;
	}
	if (x == HF_JSON_STRING && y == HF_JSON_STRING) {
		*ret_order = strcmp(hf_json_str(a, ""), hf_json_str(b, ""));
		return 0;
	}
	if (x == HF_JSON_BOOL && y == HF_JSON_BOOL) {
		*ret_order = hf_json_true(a, false) - hf_json_true(b, false);
		return 0;
	}
	return hf_error_set(err, HF_E_INVALID, "jsonpath: %s and %s cannot be compared",
			    hf_json_type_name(x), hf_json_type_name(y));
}

static bool passes(enum hf_jsonpath_op op, int order)
{
	switch (op) {
	case HF_JSONPATH_EQ: return order == 0;
	case HF_JSONPATH_NE: return order != 0;
	case HF_JSONPATH_LT: return order < 0;
	case HF_JSONPATH_LE: return order <= 0;
	case HF_JSONPATH_GT: return order > 0;
	case HF_JSONPATH_GE: return order >= 0;
	case HF_JSONPATH_EXISTS: break;
	}
	return true;
}

/* Is the item one that the filter keeps? */
static int keeps(const struct hf_jsonpath_step *step, const struct hf_json *item, bool *ret_keep,
		 struct hf_error *err)
{
	AUTO_FOUND left, right;
	int how = 0;

	init(&left);
	init(&right);
	*ret_keep = false;
	int rc = walk(step->left, item, &left, err);
	if (step->op == HF_JSONPATH_EXISTS) {
		/* What cannot be reached is not there. */
		*ret_keep = rc == 0 && left.v.len > 0;
		return 0;
	}
	if (rc == 0)
		rc = walk(step->right, item, &right, err);
	if (rc != 0 || left.v.len == 0 || right.v.len == 0)
		return rc;
	if (left.v.len > 1 || right.v.len > 1)
		return hf_error_set(err, HF_E_INVALID,
				    "jsonpath: only one value can be compared at a time");
	rc = order(left.v.items[0], right.v.items[0], &how, err);
	*ret_keep = rc == 0 && passes(step->op, how);
	return rc;
}

static int filter(const struct hf_jsonpath_step *step, const struct hf_json *value,
		  struct found *out, struct hf_error *err)
{
	bool keep;

	if (hf_json_type(value) != HF_JSON_ARRAY)
		return hf_error_set(err, HF_E_INVALID, "jsonpath: %s cannot be filtered",
				    hf_json_type_name(hf_json_type(value)));
	for (size_t i = 0; i < hf_json_len(value); i++) {
		const struct hf_json *item = hf_json_item(value, i);
		int rc = keeps(step, item, &keep, err);
		if (rc == 0 && keep)
			rc = add(out, item, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int take_step(const struct hf_jsonpath_step *step, const struct hf_json *value,
		     struct found *out, struct hf_error *err)
{
	const struct hf_json *inner;

	switch (step->kind) {
	case HF_JSONPATH_FIELD:
		inner = hf_json_get(value, step->name);
		return inner ? add(out, inner, err) : 0;
	case HF_JSONPATH_WILDCARD: return add_all(value, out, err);
	case HF_JSONPATH_SLICE: return slice(step, value, out, err);
	case HF_JSONPATH_FILTER: return filter(step, value, out, err);
	case HF_JSONPATH_LITERAL: break;
	}
	return add(out, step->literal, err);
}

static int walk(const struct hf_jsonpath_step *steps, const struct hf_json *value,
		struct found *out, struct hf_error *err)
{
	int rc = value ? add(out, value, err) : 0;

	for (; steps && rc == 0; steps = steps->next) {
		AUTO_FOUND next;
		init(&next);
		/* A text stands for itself once, however many values were found before. */
		if (steps->kind == HF_JSONPATH_LITERAL &&
		    hf_json_type(steps->literal) == HF_JSON_STRING)
			rc = add(&next, steps->literal, err);
		else
			for (size_t i = 0; i < out->v.len && rc == 0; i++)
				rc = take_step(steps, out->v.items[i], &next, err);
		struct found done = *out;
		*out = next;
		next = done;
	}
	return rc;
}

static void print_value(const struct hf_json *value, struct hf_strbuf *sb)
{
	char real[HF_JSON_REAL_TEXT_MAX];

	switch (hf_json_type(value)) {
	case HF_JSON_STRING: hf_strbuf_addstr(sb, hf_json_str(value, "")); break;
	case HF_JSON_REAL:
		hf_json_format_real_short(hf_json_num(value, 0), real);
		hf_strbuf_addstr(sb, real);
		break;
	default: hf_json_write_escaped(value, sb);
	}
}

static int print_parts(const struct hf_jsonpath_part *part, const struct hf_json *value,
		       struct hf_strbuf *sb, struct hf_error *err)
{
	int rc = 0;

	for (; part && rc == 0 && !sb->full; part = part->next) {
		AUTO_FOUND found;
		init(&found);
		if (part->kind == HF_JSONPATH_TEXT) {
			hf_strbuf_addstr(sb, part->text);
			continue;
		}
		rc = walk(part->steps, value, &found, err);
		for (size_t i = 0; i < found.v.len && rc == 0 && !sb->full; i++) {
			if (part->kind == HF_JSONPATH_RANGE) {
				rc = print_parts(part->body, found.v.items[i], sb, err);
				continue;
			}
			if (i > 0)
				hf_strbuf_addch(sb, ' ');
			print_value(found.v.items[i], sb);
		}
	}
	return rc;
}

int hf_jsonpath_print(const struct hf_jsonpath *path, const struct hf_json *value,
		      struct hf_strbuf *sb, struct hf_error *err)
{
	int rc = print_parts(path->parts, value, sb, err);

	return rc != 0 ? rc : hf_strbuf_ok(sb, "what the jsonpath prints", err);
}

int hf_jsonpath_column(const struct hf_jsonpath *path, const struct hf_json *value,
		       struct hf_strbuf *sb, struct hf_error *err)
{
	AUTO_FOUND found;

	init(&found);
	int rc = walk(path->parts->steps, value, &found, err);
	if (rc != 0)
		return rc;
	if (found.v.len == 0)
		hf_strbuf_addstr(sb, "<none>");
	for (size_t i = 0; i < found.v.len; i++) {
		if (i > 0)
			hf_strbuf_addch(sb, ',');
		if (hf_json_type(found.v.items[i]) == HF_JSON_NULL)
			hf_strbuf_addstr(sb, "<none>");
		else
			print_value(found.v.items[i], sb);
	}
	return hf_strbuf_ok(sb, "a column", err);
}
