/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Evaluates a compiled jsonpath. Input: a path and a value; output: the values found, printed.
 *
 * Each step maps a list of values to the next list, as in client-go. Invariant: lists are limited
 * to HF_JSONPATH_RESULTS_MAX, and a step visits each value once, so the cost is limited too.
 */
#include "base/vec.h"
#include "json/json_internal.h"
#include "json/jsonpath_internal.h"
#include "json/number_internal.h"

#include <string.h>

/* Values found; they belong to the document or the path. */
struct found {
	HF_VEC(const struct hf_json *) v;
};

static void init_found(struct found *found)
{
	*found = (struct found){.v = HF_VEC_INIT(HF_JSONPATH_RESULTS_MAX)};
}

static void release_found(struct found *found)
{
	HF_VEC_RELEASE(&found->v);
}
#define AUTO_FOUND HF_CLEANUP(release_found) struct found

static int walk_steps(const struct hf_jsonpath_step *steps, const struct hf_json *value,
		      struct found *out, struct hf_error *err);

static int add_found(struct found *out, const struct hf_json *value, struct hf_error *err)
{
	if (!HF_VEC_PUSH(&out->v, value))
		return hf_error_set(err, HF_E_TOO_LARGE, "jsonpath: more than %d values found",
				    HF_JSONPATH_RESULTS_MAX);
	return 0;
}

static int add_children(const struct hf_json *value, struct found *out, struct hf_error *err)
{
	const char *key;
	struct hf_json *item;
	int rc = 0;

	for (void *it = NULL; rc == 0 && (it = hf_json_next(value, it, &key, &item));)
		rc = add_found(out, item, err);
	for (size_t i = 0; rc == 0 && (item = hf_json_item(value, i)); i++)
		rc = add_found(out, item, err);
	return rc;
}

static int report_out_of_bounds(int64_t index, int64_t len, struct hf_error *err)
{
	return hf_error_set(err, HF_E_INVALID,
			    "jsonpath: array index out of bounds: index %lld, length %lld",
			    (long long)index, (long long)len);
}

/* Computes the first item and the end of a slice for an array of len items. The errors equal
 * those of client-go's evalArray. */
static int compute_bounds(const struct hf_jsonpath_step *step, int64_t len, int64_t *ret_start,
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
		return report_out_of_bounds(start, len, err);
	if (end < 0 || end > len)
		return report_out_of_bounds(end - 1, len, err);
	if (start > end)
		return hf_error_set(
			err, HF_E_INVALID,
			"jsonpath: starting index %lld is greater than ending index %lld",
			(long long)start, (long long)end);
	return 0;
}

static int take_slice(const struct hf_jsonpath_step *step, const struct hf_json *value,
		      struct found *out, struct hf_error *err)
{
	int64_t start, end;

	if (hf_json_type(value) == HF_JSON_NULL)
		return 0;
	if (hf_json_type(value) != HF_JSON_ARRAY)
		return hf_error_set(err, HF_E_INVALID, "jsonpath: %s is not an array",
				    hf_json_type_name(hf_json_type(value)));
	int rc = compute_bounds(step, (int64_t)hf_json_len(value), &start, &end, err);
	for (int64_t i = start; rc == 0 && i < end; i++)
		rc = add_found(out, hf_json_item(value, (size_t)i), err);
	return rc;
}

static bool is_number(enum hf_json_type type)
{
	return type == HF_JSON_INT || type == HF_JSON_REAL;
}

static int sign_of(bool less, bool greater)
{
	return (int)greater - (int)less;
}

/* Compares two values of one type. Numbers are compared by value, whole or not. */
static int compare_values(const struct hf_json *a, const struct hf_json *b, int *ret_order,
			  struct hf_error *err)
{
	enum hf_json_type x = hf_json_type(a), y = hf_json_type(b);

	if (is_number(x) && is_number(y)) {
		double p = hf_json_num(a, 0), q = hf_json_num(b, 0);
		int64_t i = hf_json_i64(a, 0), j = hf_json_i64(b, 0);
		bool whole = x == HF_JSON_INT && y == HF_JSON_INT;
		*ret_order = whole ? sign_of(i<j, i> j) : sign_of(p<q, p> q);
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

static bool is_satisfied(enum hf_jsonpath_op op, int compare_values)
{
	switch (op) {
	case HF_JSONPATH_EQ: return compare_values == 0;
	case HF_JSONPATH_NE: return compare_values != 0;
	case HF_JSONPATH_LT: return compare_values < 0;
	case HF_JSONPATH_LE: return compare_values <= 0;
	case HF_JSONPATH_GT: return compare_values > 0;
	case HF_JSONPATH_GE: return compare_values >= 0;
	case HF_JSONPATH_EXISTS: break;
	}
	return true;
}

/* Decides whether the filter keeps an item. */
static int evaluate_filter(const struct hf_jsonpath_step *step, const struct hf_json *item,
			   bool *ret_keep, struct hf_error *err)
{
	AUTO_FOUND left, right;
	int how = 0;

	init_found(&left);
	init_found(&right);
	*ret_keep = false;
	int rc = walk_steps(step->left, item, &left, err);
	if (step->op == HF_JSONPATH_EXISTS) {
		/* A value that cannot be reached counts as absent. */
		*ret_keep = rc == 0 && left.v.len > 0;
		return 0;
	}
	if (rc == 0)
		rc = walk_steps(step->right, item, &right, err);
	if (rc != 0 || left.v.len == 0 || right.v.len == 0)
		return rc;
	if (left.v.len > 1 || right.v.len > 1)
		return hf_error_set(err, HF_E_INVALID,
				    "jsonpath: only one value can be compared at a time");
	rc = compare_values(left.v.items[0], right.v.items[0], &how, err);
	*ret_keep = rc == 0 && is_satisfied(step->op, how);
	return rc;
}

static int filter_items(const struct hf_jsonpath_step *step, const struct hf_json *value,
			struct found *out, struct hf_error *err)
{
	bool keep;

	if (hf_json_type(value) != HF_JSON_ARRAY)
		return hf_error_set(err, HF_E_INVALID, "jsonpath: %s cannot be filtered",
				    hf_json_type_name(hf_json_type(value)));
	for (size_t i = 0; i < hf_json_len(value); i++) {
		const struct hf_json *item = hf_json_item(value, i);
		int rc = evaluate_filter(step, item, &keep, err);
		if (rc == 0 && keep)
			rc = add_found(out, item, err);
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
		return inner ? add_found(out, inner, err) : 0;
	case HF_JSONPATH_WILDCARD: return add_children(value, out, err);
	case HF_JSONPATH_SLICE: return take_slice(step, value, out, err);
	case HF_JSONPATH_FILTER: return filter_items(step, value, out, err);
	case HF_JSONPATH_LITERAL: break;
	}
	return add_found(out, step->literal, err);
}

static int walk_steps(const struct hf_jsonpath_step *steps, const struct hf_json *value,
		      struct found *out, struct hf_error *err)
{
	int rc = value ? add_found(out, value, err) : 0;

	for (; steps && rc == 0; steps = steps->next) {
		AUTO_FOUND next;
		init_found(&next);
		/* A text literal gives one value, however many values the previous step found. */
		if (steps->kind == HF_JSONPATH_LITERAL &&
		    hf_json_type(steps->literal) == HF_JSON_STRING)
			rc = add_found(&next, steps->literal, err);
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
		init_found(&found);
		if (part->kind == HF_JSONPATH_TEXT) {
			hf_strbuf_addstr(sb, part->text);
			continue;
		}
		rc = walk_steps(part->steps, value, &found, err);
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

	return rc != 0 ? rc : hf_strbuf_ok(sb, "the output of the jsonpath", err);
}

int hf_jsonpath_column(const struct hf_jsonpath *path, const struct hf_json *value,
		       struct hf_strbuf *sb, struct hf_error *err)
{
	AUTO_FOUND found;

	init_found(&found);
	int rc = walk_steps(path->parts->steps, value, &found, err);
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
