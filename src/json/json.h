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
 * JSON values: a thin layer over jansson. No other module uses jansson directly.
 *
 * Values are counted references. Change a tree only if you built it and have not shared it yet; a
 * shared tree is read-only (copy it first). Functions that take "const struct hf_json *" accept
 * NULL as an absent value. So lookups can be chained without checks.
 */
struct hf_json;

enum hf_json_type {
	HF_JSON_ABSENT, /* NULL */
	HF_JSON_NULL,
	HF_JSON_BOOL,
	HF_JSON_INT, /* fits into int64_t */
	HF_JSON_REAL,
	HF_JSON_STRING,
	HF_JSON_ARRAY,
	HF_JSON_OBJECT,
};

/* Sets the seed of the hash of object keys. Call it once in main, with a random number, before
 * the first value is made. Keys may come from an attacker, and a known seed lets the attacker
 * choose keys that collide. Without the call the seed is a constant, as tests need it, and only
 * HF_JSON_KEYS_MAX limits the damage. The order of iteration is always that of insertion. */
void hf_json_seed(uint32_t seed);

/* Replaces the memory functions of trees; the default is malloc with lists of free blocks
 * (blocks.c). Call it before the first value is made. alloc must not fail; release must accept
 * NULL. */
void hf_json_memory(void *(*alloc)(size_t size), void (*release)(void *block));

/* Limits of a parse. The defaults are for one Kubernetes object: etcd limits requests to 1.5
 * MiB, API servers limit bodies to 3 MiB. */
struct hf_json_limits {
	size_t bytes_max; /* 0: HF_JSON_BYTES_MAX */
	int depth_max;    /* 0: HF_JSON_DEPTH_MAX */
};
#define HF_JSON_BYTES_MAX ((size_t)3 << 20)
#define HF_JSON_DEPTH_MAX 64
#define HF_JSON_DEPTH_CEILING 256 /* the largest depth_max */
/* Keys of one object. A ConfigMap of 1 MiB has 16,384 keys of 64 bytes. If all of them collide,
 * parsing takes about 0.5 s for an object. */
#define HF_JSON_KEYS_MAX 16384

/* Parses a text that is exactly one value. HF_E_BAD_REQUEST with line and column for invalid
 * JSON, duplicate keys, invalid UTF-8, NUL in a string, integers beyond 64 bits and reals beyond
 * a double. HF_E_TOO_LARGE if the depth, the size or the keys of one object exceed the limit.
 * limits may be NULL; text may be NULL if len is 0. */
int hf_json_parse(const char *text, size_t len, const struct hf_json_limits *limits,
		  struct hf_json **ret_value, struct hf_error *err) HF_MUST_CHECK;

enum hf_json_style {
	HF_JSON_COMPACT,  /* one line, keys in the order of insertion */
	HF_JSON_INDENTED, /* as kubectl -o json prints: four spaces, sorted keys, < > & escaped */
	HF_JSON_SORTED,   /* compact with sorted keys: equal values give equal bytes */
};
/* Writes nothing for NULL. Reading the text gives an equal value; a real stays a real ("1.0"). */
void hf_json_write(const struct hf_json *value, enum hf_json_style style, struct hf_strbuf *sb);

struct hf_json *hf_json_ref(struct hf_json *value);   /* accepts NULL */
struct hf_json *hf_json_unref(struct hf_json *value); /* accepts NULL; returns NULL */
/* A new reference to a value that is only read; accepts NULL. */
struct hf_json *hf_json_share(const struct hf_json *value);
void hf_json_cleanup(struct hf_json **value);
#define HF_AUTO_JSON HF_CLEANUP(hf_json_cleanup) struct hf_json *

/* These functions make a new value; the caller owns the reference. */
struct hf_json *hf_json_object(void);
struct hf_json *hf_json_array(void);
struct hf_json *hf_json_string(const char *s); /* invalid UTF-8 is replaced by U+FFFD */
struct hf_json *hf_json_stringn(const char *s, size_t len); /* a NUL inside becomes U+FFFD too */
struct hf_json *hf_json_int(int64_t i);
struct hf_json *hf_json_real(double d); /* must be finite */
struct hf_json *hf_json_bool(bool b);
struct hf_json *hf_json_null(void);
struct hf_json *hf_json_copy(const struct hf_json *value); /* deep copy; NULL gives NULL */

enum hf_json_type hf_json_type(const struct hf_json *value);
const char *hf_json_type_name(enum hf_json_type type); /* "string" and so on, for error texts */
/* The order of keys does not matter. Numbers are compared by value: 1 equals 1.0. */
bool hf_json_equal(const struct hf_json *a, const struct hf_json *b);

/* The value of a scalar, or the fallback if the value is absent or has another type. */
const char *hf_json_str(const struct hf_json *value, const char *fallback);
int64_t hf_json_i64(const struct hf_json *value, int64_t fallback);
double hf_json_num(const struct hf_json *value, double fallback); /* int or real */
bool hf_json_true(const struct hf_json *value, bool fallback);

/* These functions return a member of an object or array, which still owns the member. NULL: the
 * member is absent, or the value is neither an object nor an array. */
struct hf_json *hf_json_get(const struct hf_json *object, const char *key);
/* As hf_json_get, for looking up several keys one after the other. *at is NULL before the first
 * call and remembers the position of the last key. If the keys come in the object's own order,
 * no hash lookup is needed. */
struct hf_json *hf_json_get_along(const struct hf_json *object, void **at, const char *key);
struct hf_json *hf_json_item(const struct hf_json *array, size_t i);
/* Number of keys or items; 0 for all other types. */
size_t hf_json_len(const struct hf_json *container);
/* Follows a path of keys: hf_json_path(pod, "metadata", "labels", NULL). */
struct hf_json *hf_json_path(const struct hf_json *object, ...) __attribute__((sentinel));
/* Returns hf_json_str(hf_json_path(…), NULL). */
const char *hf_json_path_str(const struct hf_json *object, ...) __attribute__((sentinel));

/* Iterates: for (void *it = NULL; (it = hf_json_next(object, it, &key, &value));) … The key and
 * the value belong to the object. */
void *hf_json_next(const struct hf_json *object, void *it, const char **ret_key,
		   struct hf_json **ret_value);

/* These functions change a tree that the caller built and has not shared. They take over the
 * reference to the value. hf_json_set and hf_json_append ignore a NULL value. */
void hf_json_set(struct hf_json *object, const char *key, struct hf_json *value);
/* Does nothing if s is NULL. */
void hf_json_set_str(struct hf_json *object, const char *key, const char *s);
void hf_json_set_i64(struct hf_json *object, const char *key, int64_t i);
void hf_json_set_bool(struct hf_json *object, const char *key, bool b);
void hf_json_remove(struct hf_json *object, const char *key);
void hf_json_append(struct hf_json *array, struct hf_json *value);
void hf_json_insert(struct hf_json *array, size_t i, struct hf_json *value);
void hf_json_replace_item(struct hf_json *array, size_t i, struct hf_json *value);
void hf_json_remove_item(struct hf_json *array, size_t i);
/* Returns the object under key, which belongs to the parent. If it is absent or has another
 * type, a new object replaces it. */
/* As hf_json_ensure_object, for an array. */
struct hf_json *hf_json_ensure_object(struct hf_json *object, const char *key);
struct hf_json *hf_json_ensure_array(struct hf_json *object, const char *key);

#endif
