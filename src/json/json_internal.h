/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_JSON_INTERNAL_H
#define HF_JSON_JSON_INTERNAL_H

#include "json/json.h"

#include <jansson.h>

/*
 * struct hf_json is json_t seen through a cast; only this module knows.
 *
 * jansson counts references inside its values, so a const value still has to be
 * handed to it without the const: hf_json_raw is the one place where that happens.
 */
static inline json_t *hf_json_raw(const struct hf_json *value)
{
	return (json_t *)(uintptr_t)value;
}

static inline struct hf_json *hf_json_of(json_t *raw)
{
	return (struct hf_json *)(void *)raw;
}

/* Memory of trees (blocks.c): what jansson has for malloc and free.  Never NULL. */
void *hf_json_block_alloc(size_t size);
void hf_json_block_free(void *block); /* NULL is fine */

/* Must have run before jansson allocates or makes its first object: see values.c. */
void hf_json_prepare(void);

/* The tree of a text that is JSON beyond doubt and within the limits (HF_JSON_KEYS_MAX is the
 * other); NULL where jansson has to look (parse_plain.c).  prepare has run. */
json_t *hf_json_parse_plain(const char *text, size_t len, int depth_max);

/* A copy of bytes in which every invalid UTF-8 sequence and every NUL is U+FFFD; owned by the
 * caller. */
char *hf_json_clean_text(const char *bytes, size_t len);

/* As Go's json.Marshal writes a map: one line, sorted keys, < > & escaped. */
void hf_json_write_escaped(const struct hf_json *value, struct hf_strbuf *sb);

/* "line L, column C: what" for the byte `at` of a text; returns code. */
int hf_json_error_at(struct hf_error *err, int code, const char *text, const char *at,
		     const char *what);

/* The keys of an object in byte order, hf_json_len(object) of them.  The array is the caller's
 * to free, the keys stay the object's. */
const char **hf_json_sorted_keys(const struct hf_json *object);

#endif
