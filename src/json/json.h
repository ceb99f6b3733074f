/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_JSON_H
#define HF_JSON_JSON_H

#include "base/error.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * JSON values: a thin face over jansson, which no other module sees.
 *
 * Values are reference-counted.  A tree may be changed only by whoever built it
 * and has shown it to nobody yet; what is shared is read-only (copy it first).
 * Functions that take "const struct hf_json *" take NULL as well, as a value
 * that is absent: lookups can be chained without checks in between.
 */
struct hf_json;

enum hf_json_type {
	HF_JSON_ABSENT, /* what a NULL is */
	HF_JSON_NULL,
	HF_JSON_BOOL,
	HF_JSON_INT, /* fits int64_t */
	HF_JSON_REAL,
	HF_JSON_STRING,
	HF_JSON_ARRAY,
	HF_JSON_OBJECT,
};

/*
 * Where the hash of object keys starts; call it once in main, before any value is made, with
 * a random number: keys are hostile, and whoever knows the seed can make keys that collide.
 * Without the call the seed is a constant, as tests want it, and HF_JSON_KEYS_MAX alone
 * bounds the harm.  Order of iteration is that of insertion, whatever the seed.
 */
void hf_json_seed(uint32_t seed);

/* Where the memory of trees comes from, and goes (NULL is to be fine there), instead of malloc and the
 * few blocks that wait before it.  Before any value is made; alloc never fails. */
void hf_json_memory(void *(*alloc)(size_t size), void (*release)(void *block));

/* Limits of a parse; the defaults bound one Kubernetes object (etcd's request limit is
 * 1.5 MiB, an API server takes bodies up to 3 MiB). */
struct hf_json_limits {
	size_t bytes_max; /* 0: HF_JSON_BYTES_MAX */
	int depth_max;    /* 0: HF_JSON_DEPTH_MAX */
};
#define HF_JSON_BYTES_MAX ((size_t)3 << 20)
#define HF_JSON_DEPTH_MAX 64
#define HF_JSON_DEPTH_CEILING 256 /* what depth_max may be at most */
/* Keys of one object.  1 MiB of ConfigMap has 16,384 of 64 bytes each; keys that all collide
 * would cost about 0.5 s an object. */
#define HF_JSON_KEYS_MAX 16384

/* The whole text must be one value.  Refused with line and column: duplicate keys, invalid
 * UTF-8, NUL in a string, integers beyond 64 bits, reals beyond a double: HF_E_BAD_REQUEST;
 * depth, size or keys of one object over the limit: HF_E_TOO_LARGE.  limits may be NULL, text too where len is 0. */
int hf_json_parse(const char *text, size_t len, const struct hf_json_limits *limits,
		  struct hf_json **ret_value, struct hf_error *err) HF_MUST_CHECK;

enum hf_json_style {
	HF_JSON_COMPACT,  /* one line, keys in the order they were put */
	HF_JSON_INDENTED, /* as kubectl -o json prints: four spaces, sorted keys, < > & escaped */
	HF_JSON_SORTED,   /* compact with sorted keys: equal values, equal bytes */
};
/* Nothing for NULL.  Reading the text back gives an equal value; a real stays one ("1.0"). */
void hf_json_write(const struct hf_json *value, enum hf_json_style style, struct hf_strbuf *sb);

struct hf_json *hf_json_ref(struct hf_json *value);   /* NULL is fine */
struct hf_json *hf_json_unref(struct hf_json *value); /* NULL is fine; returns NULL */
void hf_json_cleanup(struct hf_json **value);
#define HF_AUTO_JSON HF_CLEANUP(hf_json_cleanup) struct hf_json *

/* New values, owned by the caller. */
struct hf_json *hf_json_object(void);
struct hf_json *hf_json_array(void);
struct hf_json *hf_json_string(const char *s); /* invalid UTF-8 is replaced by U+FFFD */
struct hf_json *hf_json_stringn(const char *s, size_t len); /* a NUL inside: U+FFFD too */
struct hf_json *hf_json_int(int64_t i);
struct hf_json *hf_json_real(double d); /* must be finite */
struct hf_json *hf_json_bool(bool b);
struct hf_json *hf_json_null(void);
struct hf_json *hf_json_copy(const struct hf_json *value); /* deep; NULL gives NULL */

enum hf_json_type hf_json_type(const struct hf_json *value);
const char *hf_json_type_name(enum hf_json_type type); /* "string", as error texts call it */
/* The order of keys aside, and numbers by value: 1 equals 1.0. */
bool hf_json_equal(const struct hf_json *a, const struct hf_json *b);

/* Scalars; the fallback where the value is absent or of another type. */
const char *hf_json_str(const struct hf_json *value, const char *fallback);
int64_t hf_json_i64(const struct hf_json *value, int64_t fallback);
double hf_json_num(const struct hf_json *value, double fallback); /* int or real */
bool hf_json_true(const struct hf_json *value, bool fallback);

/* Objects and arrays.  Borrowed results; NULL when absent or not a container. */
struct hf_json *hf_json_get(const struct hf_json *object, const char *key);
/* The same for one key after the other: *at, NULL before the first, is where the last one was found,
 * so that keys in the order of the object's own are not looked up. */
struct hf_json *hf_json_get_along(const struct hf_json *object, void **at, const char *key);
struct hf_json *hf_json_item(const struct hf_json *array, size_t i);
size_t hf_json_len(const struct hf_json *container); /* keys or items; 0 for all else */
/* Walk down keys: hf_json_path(pod, "metadata", "labels", NULL). */
struct hf_json *hf_json_path(const struct hf_json *object, ...) __attribute__((sentinel));
/* As hf_json_str(hf_json_path(…), NULL). */
const char *hf_json_path_str(const struct hf_json *object, ...) __attribute__((sentinel));

/* for (void *it = NULL; (it = hf_json_next(object, it, &key, &value));) …   borrowed */
void *hf_json_next(const struct hf_json *object, void *it, const char **ret_key,
		   struct hf_json **ret_value);

/* Changing what you built.  The value's reference is taken over; a NULL value is ignored by
 * set and append. */
void hf_json_set(struct hf_json *object, const char *key, struct hf_json *value);
void hf_json_set_str(struct hf_json *object, const char *key, const char *s); /* NULL s: no-op */
void hf_json_set_i64(struct hf_json *object, const char *key, int64_t i);
void hf_json_set_bool(struct hf_json *object, const char *key, bool b);
void hf_json_remove(struct hf_json *object, const char *key);
void hf_json_append(struct hf_json *array, struct hf_json *value);
void hf_json_insert(struct hf_json *array, size_t i, struct hf_json *value);
void hf_json_replace_item(struct hf_json *array, size_t i, struct hf_json *value);
void hf_json_remove_item(struct hf_json *array, size_t i);
/* The object under key, made if absent (or replaced if it was no object); borrowed. */
struct hf_json *hf_json_ensure_object(struct hf_json *object, const char *key);
struct hf_json *hf_json_ensure_array(struct hf_json *object, const char *key);

#endif
