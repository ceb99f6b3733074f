/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_JSON_INTERNAL_H
#define HF_JSON_JSON_INTERNAL_H

#include "json/json.h"

#include <jansson.h>

/*
 * struct hf_json is jansson's json_t behind a cast; only this module knows that.
 *
 * jansson keeps reference counts inside its values, so it takes no const values. hf_json_raw is the
 * only place that removes the const.
 */
static inline json_t *hf_json_raw(const struct hf_json *value)
{
	return (json_t *)(uintptr_t)value;
}

static inline struct hf_json *hf_json_of(json_t *raw)
{
	return (struct hf_json *)(void *)raw;
}

/* The memory functions for trees (blocks.c), which jansson uses as malloc and free. alloc never
 * returns NULL. */
void *hf_json_block_alloc(size_t size);
void hf_json_block_free(void *block); /* accepts NULL */

/* Must run before jansson allocates memory or makes its first object (see values.c). */
void hf_json_prepare(void);

/* Parses a text that is certainly valid JSON and within the limits, HF_JSON_KEYS_MAX included
 * (parse_plain.c). NULL if jansson must decide. hf_json_prepare must have run. */
json_t *hf_json_parse_plain(const char *text, size_t len, int depth_max);

/* Returns a copy of bytes in which every invalid UTF-8 sequence and every NUL is replaced by
 * U+FFFD. The caller frees it. */
char *hf_json_clean_text(const char *bytes, size_t len);

/* Writes a value as Go's json.Marshal writes a map: one line, sorted keys, < > & escaped. */
void hf_json_write_escaped(const struct hf_json *value, struct hf_strbuf *sb);

/* Sets the error "line L, column C: what" for the byte `at` of a text. Returns code. */
int hf_json_error_at(struct hf_error *err, int code, const char *text, const char *at,
		     const char *what);

/* The keys of an object in byte order, hf_json_len(object) of them. The caller frees the array;
 * the keys belong to the object. */
const char **hf_json_sorted_keys(const struct hf_json *object);

#endif
