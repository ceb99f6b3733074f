/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_SKIP_H
#define HF_JSON_SKIP_H

#include "base/arena.h"
#include "json/json.h"

/*
 * A single-pass reader over JSON text for hot paths. It finds the values that the caller asks for
 * and skips the rest at about the speed of memory, without a tree and without allocating.
 *
 * Its checks, compared with hf_json_parse:
 *
 * - Strings, numbers and words that are read are checked completely: grammar, escapes, UTF-8, 64
 *   bits.
 * - In skipped values and keys, only strings and brackets are recognized. Brackets are counted, not
 *   matched by kind. So [1 2}, {"a" 1} and invalid UTF-8 are accepted there.
 * - Duplicate keys are not detected; the caller knows which keys it has seen.
 * - The depth is not limited, because nothing here recurses.
 *
 * So on a text that hf_json_parse accepts, this reader gives the same values. It also accepts some
 * other texts, but never reads outside the text. Use it for text from an API server or from this
 * program. Use hf_json_parse for text from users.
 *
 * A call returns false if the text is invalid. The reader then stands near the error, and further
 * calls fail too.
 */
struct hf_skip {
	const char *start, *p, *end;
};

/* A string in the text, without its quotes. */
struct hf_skip_string {
	const char *bytes;
	size_t len;
	bool escaped; /* contains backslashes; hf_skip_text and hf_skip_copy resolve them */
};

struct hf_skip_number {
	enum hf_json_type type; /* HF_JSON_INT or HF_JSON_REAL */
	int64_t integer;        /* value of an HF_JSON_INT */
	double real;            /* value of an HF_JSON_REAL */
};

void hf_skip_init(struct hf_skip *s, const char *text, size_t len);

/* The type of the next value, judged by its first byte (INT for every number); HF_JSON_ABSENT if
 * no value can start there. */
enum hf_json_type hf_skip_peek(struct hf_skip *s);

/*
 * To read a container, call hf_skip_enter, and then the next function until it returns HF_SKIP_END.
 *
 *     if (!hf_skip_enter(&s)) …
 *     for (bool first = true; (rc = hf_skip_next_key(&s, &first, &key)) == HF_SKIP_ENTRY;)
 *         …read or skip exactly one value…
 */
enum hf_skip_next { HF_SKIP_BROKEN = -1, HF_SKIP_END = 0, HF_SKIP_ENTRY = 1 };
bool hf_skip_enter(struct hf_skip *s) HF_MUST_CHECK;
enum hf_skip_next hf_skip_next_key(struct hf_skip *s, bool *first, struct hf_skip_string *ret_key);
enum hf_skip_next hf_skip_next_item(struct hf_skip *s, bool *first);

bool hf_skip_value(struct hf_skip *s) HF_MUST_CHECK; /* skips one value of any type */
bool hf_skip_string(struct hf_skip *s, struct hf_skip_string *ret_string) HF_MUST_CHECK;
bool hf_skip_number(struct hf_skip *s, struct hf_skip_number *ret_number) HF_MUST_CHECK;
bool hf_skip_bool(struct hf_skip *s, bool *ret_value) HF_MUST_CHECK;
bool hf_skip_null(struct hf_skip *s) HF_MUST_CHECK;
bool hf_skip_at_end(struct hf_skip *s) HF_MUST_CHECK; /* true if only blanks are left */

/* True if the string equals text. Resolves escapes; allocates nothing. */
bool hf_skip_equals(const struct hf_skip_string *string, const char *text, size_t len);
/* Copies the string as a NUL-terminated text into `to`, which has string->len + 1 bytes. False
 * if it is not a valid string (escapes, UTF-8, control characters, \u0000). */
bool hf_skip_copy(const struct hf_skip_string *string, char *to, size_t *ret_len) HF_MUST_CHECK;
/* As hf_skip_copy, into memory from the arena; NULL if the string is not valid. */
char *hf_skip_text(const struct hf_skip_string *string, struct hf_arena *arena, size_t *ret_len);

/* Sets HF_E_BAD_REQUEST with the line and column of the reader. */
int hf_skip_error(const struct hf_skip *s, const char *what, struct hf_error *err);

#endif
