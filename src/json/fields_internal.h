/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_FIELDS_INTERNAL_H
#define HF_JSON_FIELDS_INTERNAL_H

#include "json/fields.h"
#include "json/skip.h"

/*
 * What fields.c (the decoding) is written on: one face over tree and text, and the words
 * for problems.  A value of the text form is the one the skip reader stands before, so each
 * source must be consumed exactly once, in order.
 */

/* Where a value is, linked from the inside out on the stack of the decoding. */
struct hf_fields_step {
	const struct hf_fields_step *up;
	enum hf_fields_step_kind {
		HF_FIELDS_STEP_NAME,  /* .key */
		HF_FIELDS_STEP_KEY,   /* [key] */
		HF_FIELDS_STEP_INDEX, /* [index] */
	} kind;
	const char *key;
	size_t index;
};

struct hf_fields_reader {
	const struct hf_fields_options *options;
	struct hf_arena *arena;
	struct hf_error *err;
	int rc;       /* what the read returns: the first problem, or what ended it */
	int problems; /* so far */
};

/* Either json (may be NULL: absent) or, where skip is set, the value at the reader. */
struct hf_fields_source {
	const struct hf_json *json;
	struct hf_skip *skip;
};

struct hf_fields_scalar {
	enum hf_json_type type; /* of any value; arrays and objects were skipped */
	const char *string;     /* STRING: in the arena */
	size_t len;
	int64_t integer; /* INT, and 0 or 1 of a BOOL */
	double real;
};

struct hf_fields_entries {
	struct hf_fields_source src;
	void *it;
	size_t index;
	bool first;
};

/* All of these: 0, or -1 with r->rc and r->err set and the decoding to end. */

enum hf_json_type hf_fields_peek(struct hf_fields_source src);
int hf_fields_scalar(struct hf_fields_reader *r, struct hf_fields_source src,
		     struct hf_fields_scalar *ret_scalar);
int hf_fields_skip(struct hf_fields_reader *r, struct hf_fields_source src);
int hf_fields_enter(struct hf_fields_reader *r, struct hf_fields_source src,
		    struct hf_fields_entries *ret_entries);
/* 1: an entry, 0: no more, -1 as above. */
int hf_fields_next_member(struct hf_fields_reader *r, struct hf_fields_entries *entries,
			  struct hf_skip_string *ret_key, struct hf_fields_source *ret_value);
int hf_fields_next_item(struct hf_fields_reader *r, struct hf_fields_entries *entries,
			struct hf_fields_source *ret_item);
/* Zeroed memory or a text from the arena; NULL instead of -1. */
void *hf_fields_alloc(struct hf_fields_reader *r, size_t size);
const char *hf_fields_key(struct hf_fields_reader *r, struct hf_fields_source src,
			  const struct hf_skip_string *key);

/* Report a problem: 0 when reading may go on.  broken always ends it. */
int hf_fields_problem(struct hf_fields_reader *r, enum hf_field_problem kind,
		      const struct hf_fields_step *at, const char *fmt, ...) HF_PRINTF(4, 5);
int hf_fields_invalid(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
		      const struct hf_fields_step *at, const char *fmt, ...) HF_PRINTF(4, 5);
int hf_fields_wrong_type(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
			 const char *want, const struct hf_fields_step *at);
/* As wrong_type; consumes the value. */
int hf_fields_not_container(struct hf_fields_reader *r, struct hf_fields_source src,
			    const char *want, const struct hf_fields_step *at);
int hf_fields_broken(struct hf_fields_reader *r, struct hf_fields_source src, const char *what);

/* The text of a string or number as a quantity is read from it; NULL for other types. */
const char *hf_fields_number_text(struct hf_fields_reader *r,
				  const struct hf_fields_scalar *scalar);

#endif
