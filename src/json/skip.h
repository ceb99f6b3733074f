/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_SKIP_H
#define HF_JSON_SKIP_H

#include "base/arena.h"
#include "json/json.h"

/*
 * A single-pass reader over JSON text for hot paths: it finds what is asked for and skips
 * the rest at about memory speed, without a tree and without allocating.
 *
 * What it checks, and what it leaves to hf_json_parse:
 *
 * - strings, numbers and words that are read are checked as a parse does: grammar, escapes,
 *   UTF-8, 64 bits;
 * - of what is skipped, and of keys passed on the way, only strings and brackets are looked
 *   at, and brackets are counted, not matched by kind: [1 2}, {"a" 1} and bad UTF-8 go
 *   unnoticed there;
 * - duplicate keys are the caller's business, who knows which keys it has seen;
 * - depth is not limited, since nothing here recurses.
 *
 * So on every text that hf_json_parse accepts it reads the same values; of other text it
 * accepts some, always without reading outside the text.  Use it on what comes from an API
 * server or from this program; what people hand in goes through hf_json_parse.
 *
 * Calls return false when the text is broken there; the reader then stands near the place
 * and stays broken.
 */
struct hf_skip {
	const char *start, *p, *end;
};

/* A string as it stands in the text, without its quotes. */
struct hf_skip_string {
	const char *bytes;
	size_t len;
	bool escaped; /* there are backslashes in it: hf_skip_text resolves them */
};

struct hf_skip_number {
	enum hf_json_type type; /* INT or REAL */
	int64_t integer;        /* INT */
	double real;            /* REAL */
};

void hf_skip_init(struct hf_skip *s, const char *text, size_t len);

/* The type of the value that comes next, by its first byte (INT for every number);
 * HF_JSON_ABSENT where no value can start. */
enum hf_json_type hf_skip_peek(struct hf_skip *s);

/*
 * Containers: enter, then next for each entry until it says there are no more.
 *
 *     if (!hf_skip_enter(&s)) …
 *     for (bool first = true; (rc = hf_skip_next_key(&s, &first, &key)) == HF_SKIP_ENTRY;)
 *         …read or skip the value, exactly one…
 */
enum hf_skip_next { HF_SKIP_BROKEN = -1, HF_SKIP_END = 0, HF_SKIP_ENTRY = 1 };
bool hf_skip_enter(struct hf_skip *s) HF_MUST_CHECK;
enum hf_skip_next hf_skip_next_key(struct hf_skip *s, bool *first, struct hf_skip_string *ret_key);
enum hf_skip_next hf_skip_next_item(struct hf_skip *s, bool *first);

bool hf_skip_value(struct hf_skip *s) HF_MUST_CHECK; /* over one value of any type */
bool hf_skip_string(struct hf_skip *s, struct hf_skip_string *ret_string) HF_MUST_CHECK;
bool hf_skip_number(struct hf_skip *s, struct hf_skip_number *ret_number) HF_MUST_CHECK;
bool hf_skip_bool(struct hf_skip *s, bool *ret_value) HF_MUST_CHECK;
bool hf_skip_null(struct hf_skip *s) HF_MUST_CHECK;
bool hf_skip_at_end(struct hf_skip *s) HF_MUST_CHECK; /* only blanks are left */

/* Is the string this one?  Resolves escapes where there are any; no allocation. */
bool hf_skip_equals(const struct hf_skip_string *string, const char *text, size_t len);
/* The string as text, NUL-terminated, into string->len + 1 bytes; false where it is no valid string
 * (escapes, UTF-8, control characters, \u0000). */
bool hf_skip_copy(const struct hf_skip_string *string, char *to, size_t *ret_len) HF_MUST_CHECK;
/* The same from the arena; NULL where it is none. */
char *hf_skip_text(const struct hf_skip_string *string, struct hf_arena *arena, size_t *ret_len);

/* HF_E_BAD_REQUEST with line and column of where the reader stands. */
int hf_skip_error(const struct hf_skip *s, const char *what, struct hf_error *err);

#endif
