/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_FIELDS_INTERNAL_H
#define HF_JSON_FIELDS_INTERNAL_H

#include "json/fields.h"
#include "json/skip.h"

/* What the decoder (fields.c) uses: one interface for trees and texts, and the messages for
 * problems. A value of the text form is the one at the skip reader. So each source must be
 * consumed exactly once, in order. */

/* The path of a value: a list on the stack of the decoder, from the inside out. */
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
	int rc;       /* the result so far: the first problem, or the reason for stopping */
	int problems; /* number of problems so far */
};

/* A value: json, which may be NULL (absent), or, if skip is set, the value at the skip reader. */
struct hf_fields_source {
	const struct hf_json *json;
	struct hf_skip *skip;
};

struct hf_fields_scalar {
	/* Type of the value; the content of an array or object was skipped. */
	enum hf_json_type type;
	const char *string; /* STRING; in the arena */
	size_t len;
	int64_t integer; /* value of an INT; 0 or 1 for a BOOL */
	double real;
};

struct hf_fields_entries {
	struct hf_fields_source src;
	void *it;
	size_t index;
	bool first;
};

/* On failure these functions return -1 and set r->rc and r->err; the decoder then stops. Success is
 * 0. */

enum hf_json_type hf_fields_peek(struct hf_fields_source src);
int hf_fields_scalar(struct hf_fields_reader *r, struct hf_fields_source src,
		     struct hf_fields_scalar *ret_scalar);
int hf_fields_skip(struct hf_fields_reader *r, struct hf_fields_source src);
int hf_fields_enter(struct hf_fields_reader *r, struct hf_fields_source src,
		    struct hf_fields_entries *ret_entries);
/* Both functions return 1 for an entry, 0 at the end of the container, and -1 on failure. */
int hf_fields_next_member(struct hf_fields_reader *r, struct hf_fields_entries *entries,
			  struct hf_skip_string *ret_key, struct hf_fields_source *ret_value);
int hf_fields_next_item(struct hf_fields_reader *r, struct hf_fields_entries *entries,
			struct hf_fields_source *ret_item);
/* These functions return memory in the arena: zeroed bytes, or a text. On failure they return NULL
 * and set r->rc and r->err. */
void *hf_fields_alloc(struct hf_fields_reader *r, size_t size);
const char *hf_fields_key(struct hf_fields_reader *r, struct hf_fields_source src,
			  const struct hf_skip_string *key);

/* These functions report a problem, and return 0 if reading may continue. hf_fields_broken always
 * stops the reading. */
int hf_fields_problem(struct hf_fields_reader *r, enum hf_field_problem kind,
		      const struct hf_fields_step *at, const char *fmt, ...) HF_PRINTF(4, 5);
int hf_fields_invalid(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
		      const struct hf_fields_step *at, const char *fmt, ...) HF_PRINTF(4, 5);
int hf_fields_wrong_type(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
			 const char *want, const struct hf_fields_step *at);
/* As hf_fields_wrong_type, and skips the value. */
int hf_fields_not_container(struct hf_fields_reader *r, struct hf_fields_source src,
			    const char *want, const struct hf_fields_step *at);
int hf_fields_broken(struct hf_fields_reader *r, struct hf_fields_source src, const char *what);

/* The text of a string or number, from which a quantity is read; NULL for other types. */
const char *hf_fields_number_text(struct hf_fields_reader *r,
				  const struct hf_fields_scalar *scalar);

#endif
