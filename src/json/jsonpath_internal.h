/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_JSONPATH_INTERNAL_H
#define HF_JSON_JSONPATH_INTERNAL_H

#include "base/arena.h"
#include "json/jsonpath.h"

/* The compiled form of a template: made by jsonpath.c, evaluated by jsonpath_eval.c. */

enum hf_jsonpath_op {
	HF_JSONPATH_EXISTS,
	HF_JSONPATH_EQ,
	HF_JSONPATH_NE,
	HF_JSONPATH_LT,
	HF_JSONPATH_LE,
	HF_JSONPATH_GT,
	HF_JSONPATH_GE,
};

/* One step maps the values found so far to the next ones. */
struct hf_jsonpath_step {
	struct hf_jsonpath_step *next;
	enum hf_jsonpath_step_kind {
		HF_JSONPATH_FIELD,
		/* Selects all values of an object, or all items of an array. */
		HF_JSONPATH_WILDCARD,
		/* Selects a range of an array's items; [2] is the range [2:3]. */
		HF_JSONPATH_SLICE,
		HF_JSONPATH_FILTER,
		HF_JSONPATH_LITERAL,
	} kind;
	const char *name; /* FIELD: the key */
	/* SLICE: */
	bool single; /* [2], not a range */
	bool has_start, has_end;
	int64_t start, end;
	/* FILTER: */
	enum hf_jsonpath_op op;
	struct hf_jsonpath_step *left, *right;
	struct hf_json *literal;                /* LITERAL; the path owns the reference */
	struct hf_jsonpath_step *literal_older; /* list of all literals, to release them */
};

struct hf_jsonpath_part {
	struct hf_jsonpath_part *next;
	enum hf_jsonpath_part_kind {
		HF_JSONPATH_TEXT,
		HF_JSONPATH_EXPR,
		HF_JSONPATH_RANGE,
	} kind;
	const char *text;               /* TEXT: the text to print */
	struct hf_jsonpath_step *steps; /* EXPR, RANGE; NULL: the current value */
	struct hf_jsonpath_part *body;  /* RANGE: the parts to repeat for each value */
};

struct hf_jsonpath {
	struct hf_arena *arena;
	struct hf_jsonpath_part *parts;
	struct hf_jsonpath_step *literals;
};

#endif
