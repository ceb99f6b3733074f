/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * JSON values: construction, access and comparison, as a thin layer over jansson.
 *
 * jansson reports misuse (setting a key of an array, an index out of range) by return codes that
 * callers forget to check. These functions assert instead.
 */
#include "json/json.h"

#include "base/mem.h"
#include "base/str.h"
#include "json/json_internal.h"
#include "json/number_internal.h"

#include <stdlib.h>
#include <string.h>

/* Any number except 0, which makes jansson read a random seed from the system. */
#define DEFAULT_SEED 0x686f6c64u

static bool prepared;

/* jansson has two global settings. Every function that can make the first value calls this
 * function. A static constructor would run before main could set a seed. */
void hf_json_prepare(void)
{
	if (!prepared)
		hf_json_memory(hf_json_block_alloc, hf_json_block_free);
}

void hf_json_memory(void *(*alloc)(size_t size), void (*release)(void *block))
{
	hf_assert(!prepared);
	json_object_seed(DEFAULT_SEED);
	json_set_alloc_funcs(alloc, release);
	prepared = true;
}

void hf_json_seed(uint32_t seed)
{
	json_object_seed(seed != 0 ? seed : DEFAULT_SEED);
	hf_json_prepare();
}

struct hf_json *hf_json_ref(struct hf_json *value)
{
	return hf_json_of(json_incref(hf_json_raw(value)));
}

struct hf_json *hf_json_share(const struct hf_json *value)
{
	/* Counting a reference is the only change that a shared value allows. */
	union {
		const struct hf_json *shared;
		struct hf_json *counted;
	} u = {.shared = value};

	return hf_json_ref(u.counted);
}

struct hf_json *hf_json_unref(struct hf_json *value)
{
	json_decref(hf_json_raw(value));
	return NULL;
}

void hf_json_cleanup(struct hf_json **value)
{
	*value = hf_json_unref(*value);
}

struct hf_json *hf_json_object(void)
{
	hf_json_prepare();
	return hf_json_of(json_object());
}

struct hf_json *hf_json_array(void)
{
	hf_json_prepare();
	return hf_json_of(json_array());
}

char *hf_json_clean_text(const char *bytes, size_t len)
{
	char *out = hf_xmalloc(len * 3 + 1);
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		size_t n = bytes[i] == '\0' ? 0 : hf_utf8_sequence(bytes + i, len - i);
		if (n == 0) {
			memcpy(out + used, "\xef\xbf\xbd", 3);
			used += 3;
			i++;
			continue;
		}
		memcpy(out + used, bytes + i, n);
		used += n;
		i += n;
	}
	out[used] = '\0';
	return out;
}

struct hf_json *hf_json_string(const char *s)
{
	hf_assert(s);
	return hf_json_stringn(s, strlen(s));
}

struct hf_json *hf_json_stringn(const char *s, size_t len)
{
	hf_json_prepare();
	if (hf_utf8_valid(s, len) && !memchr(s, '\0', len))
		return hf_json_of(json_stringn_nocheck(s, len));
	HF_AUTOFREE char *clean = hf_json_clean_text(s, len);
	return hf_json_of(json_string_nocheck(clean));
}

struct hf_json *hf_json_int(int64_t i)
{
	hf_json_prepare();
	return hf_json_of(json_integer(i));
}

struct hf_json *hf_json_real(double d)
{
	hf_json_prepare();
	/* JSON has no NaN and no infinity; for those jansson returns NULL. */
	json_t *real = json_real(d);
	hf_assert(real);
	return hf_json_of(real);
}

struct hf_json *hf_json_bool(bool b)
{
	return hf_json_of(json_boolean(b));
}

struct hf_json *hf_json_null(void)
{
	return hf_json_of(json_null());
}

/* jansson refuses only programming errors: another type, an index out of range, a value put into
 * itself. */
static void require_success(int rc)
{
	hf_assert(rc == 0);
}

/* No function changes a scalar, so copies share scalars. */
struct hf_json *hf_json_copy(const struct hf_json *value)
{
	json_t *raw = hf_json_raw(value);

	if (json_is_object(raw)) {
		struct hf_json *copy = hf_json_object();
		const char *key;
		struct hf_json *item;
		/* The key was checked when it was put into the original. */
		for (void *it = NULL; (it = hf_json_next(value, it, &key, &item));)
			require_success(json_object_set_new_nocheck(
				hf_json_raw(copy), key, hf_json_raw(hf_json_copy(item))));
		return copy;
	}
	if (json_is_array(raw)) {
		struct hf_json *copy = hf_json_array();
		for (size_t i = 0; i < json_array_size(raw); i++)
			hf_json_append(copy, hf_json_copy(hf_json_item(value, i)));
		return copy;
	}
	return hf_json_of(json_incref(raw));
}

enum hf_json_type hf_json_type(const struct hf_json *value)
{
	if (!value)
		return HF_JSON_ABSENT;
	switch (json_typeof(hf_json_raw(value))) {
	case JSON_OBJECT: return HF_JSON_OBJECT;
	case JSON_ARRAY: return HF_JSON_ARRAY;
	case JSON_STRING: return HF_JSON_STRING;
	case JSON_INTEGER: return HF_JSON_INT;
	case JSON_REAL: return HF_JSON_REAL;
	case JSON_TRUE:
	case JSON_FALSE: return HF_JSON_BOOL;
	case JSON_NULL: return HF_JSON_NULL;
	}
	hf_assert(!"jansson has no such type");
	return HF_JSON_NULL;
}

const char *hf_json_type_name(enum hf_json_type type)
{
	static const char *const names[] = {
		[HF_JSON_ABSENT] = "nothing", [HF_JSON_NULL] = "null",
		[HF_JSON_BOOL] = "boolean",   [HF_JSON_INT] = "integer",
		[HF_JSON_REAL] = "number",    [HF_JSON_STRING] = "string",
		[HF_JSON_ARRAY] = "array",    [HF_JSON_OBJECT] = "object",
	};
	hf_assert((size_t)type < HF_ARRAY_LEN(names));
	return names[type];
}

/* Numbers are equal if their values are (RFC 6902 §4.6). An integer that no double can represent
 * equals no real. */
static bool numbers_equal(const json_t *a, const json_t *b)
{
	if (json_is_integer(a) && json_is_integer(b))
		return json_integer_value(a) == json_integer_value(b);
	if (json_is_real(a) && json_is_real(b))
		return json_real_value(a) <= json_real_value(b) &&
		       json_real_value(a) >= json_real_value(b);
	int64_t i = json_is_real(a) ? json_integer_value(b) : json_integer_value(a);
	int64_t whole;
	return hf_json_whole(json_is_real(a) ? json_real_value(a) : json_real_value(b), &whole) &&
	       whole == i;
}

static bool arrays_equal(const struct hf_json *a, const struct hf_json *b)
{
	size_t len = hf_json_len(a);

	if (len != hf_json_len(b))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!hf_json_equal(hf_json_item(a, i), hf_json_item(b, i)))
			return false;
	return true;
}

static bool objects_equal(const struct hf_json *a, const struct hf_json *b)
{
	const char *key;
	struct hf_json *value;
	void *at = NULL;

	if (hf_json_len(a) != hf_json_len(b))
		return false;
	for (void *it = NULL; (it = hf_json_next(a, it, &key, &value));)
		if (!hf_json_equal(value, hf_json_get_along(b, &at, key)))
			return false;
	return true;
}

bool hf_json_equal(const struct hf_json *a, const struct hf_json *b)
{
	const json_t *raw_a = hf_json_raw(a), *raw_b = hf_json_raw(b);

	if (a == b)
		return true;
	if (!a || !b)
		return false;
	if (json_is_number(raw_a) && json_is_number(raw_b))
		return numbers_equal(raw_a, raw_b);
	if (json_typeof(raw_a) != json_typeof(raw_b))
		return false;
	if (json_is_object(raw_a))
		return objects_equal(a, b);
	if (json_is_array(raw_a))
		return arrays_equal(a, b);
	/* true, false and null exist only once each, so the comparison of pointers above has found
	 * equal ones. Only strings are left. */
	return json_is_string(raw_a) &&
	       strcmp(json_string_value(raw_a), json_string_value(raw_b)) == 0;
}

const char *hf_json_str(const struct hf_json *value, const char *fallback)
{
	return json_is_string(hf_json_raw(value)) ? json_string_value(hf_json_raw(value))
						  : fallback;
}

int64_t hf_json_i64(const struct hf_json *value, int64_t fallback)
{
	return json_is_integer(hf_json_raw(value)) ? json_integer_value(hf_json_raw(value))
						   : fallback;
}

double hf_json_num(const struct hf_json *value, double fallback)
{
	return json_is_number(hf_json_raw(value)) ? json_number_value(hf_json_raw(value))
						  : fallback;
}

bool hf_json_true(const struct hf_json *value, bool fallback)
{
	const json_t *raw = hf_json_raw(value);
	return json_is_boolean(raw) ? json_is_true(raw) : fallback;
}

struct hf_json *hf_json_get(const struct hf_json *object, const char *key)
{
	return hf_json_of(json_object_get(hf_json_raw(object), key));
}

struct hf_json *hf_json_get_along(const struct hf_json *object, void **at, const char *key)
{
	json_t *raw = hf_json_raw(object);
	void *next = *at ? json_object_iter_next(raw, *at) : json_object_iter(raw);

	if (!next || strcmp(json_object_iter_key(next), key) != 0)
		next = json_object_iter_at(raw, key);
	if (!next)
		return NULL;
	*at = next;
	return hf_json_of(json_object_iter_value(next));
}

struct hf_json *hf_json_item(const struct hf_json *array, size_t i)
{
	return hf_json_of(json_array_get(hf_json_raw(array), i));
}

size_t hf_json_len(const struct hf_json *container)
{
	const json_t *raw = hf_json_raw(container);
	return json_is_object(raw) ? json_object_size(raw) : json_array_size(raw);
}

/* Follows the keys. A lookup in an absent value or a non-object gives NULL, so no checks are
 * needed. */
static struct hf_json *follow_keys(const struct hf_json *value, va_list ap)
{
	struct hf_json *at = hf_json_of(hf_json_raw(value));

	for (const char *key; (key = va_arg(ap, const char *));)
		at = hf_json_get(at, key);
	return at;
}

struct hf_json *hf_json_path(const struct hf_json *object, ...)
{
	va_list ap;

	va_start(ap, object);
	struct hf_json *value = follow_keys(object, ap);
	va_end(ap);
	return value;
}

const char *hf_json_path_str(const struct hf_json *object, ...)
{
	va_list ap;

	va_start(ap, object);
	const char *s = hf_json_str(follow_keys(object, ap), NULL);
	va_end(ap);
	return s;
}

void *hf_json_next(const struct hf_json *object, void *it, const char **ret_key,
		   struct hf_json **ret_value)
{
	json_t *raw = hf_json_raw(object);

	it = it ? json_object_iter_next(raw, it) : json_object_iter(raw);
	if (it) {
		*ret_key = json_object_iter_key(it);
		*ret_value = hf_json_of(json_object_iter_value(it));
	}
	return it;
}

void hf_json_set(struct hf_json *object, const char *key, struct hf_json *value)
{
	if (!value)
		return;
	if (hf_utf8_valid(key, strlen(key))) {
		require_success(
			json_object_set_new_nocheck(hf_json_raw(object), key, hf_json_raw(value)));
		return;
	}
	HF_AUTOFREE char *clean = hf_json_clean_text(key, strlen(key));
	require_success(
		json_object_set_new_nocheck(hf_json_raw(object), clean, hf_json_raw(value)));
}

void hf_json_set_str(struct hf_json *object, const char *key, const char *s)
{
	if (s)
		hf_json_set(object, key, hf_json_string(s));
}

void hf_json_set_i64(struct hf_json *object, const char *key, int64_t i)
{
	hf_json_set(object, key, hf_json_int(i));
}

void hf_json_set_bool(struct hf_json *object, const char *key, bool b)
{
	hf_json_set(object, key, hf_json_bool(b));
}

void hf_json_remove(struct hf_json *object, const char *key)
{
	hf_assert(json_is_object(hf_json_raw(object)));
	/* json_object_del returns -1 for a key that does not exist, which is no error here. */
	(void)json_object_del(hf_json_raw(object), key);
}

void hf_json_append(struct hf_json *array, struct hf_json *value)
{
	if (value)
		require_success(json_array_append_new(hf_json_raw(array), hf_json_raw(value)));
}

void hf_json_insert(struct hf_json *array, size_t i, struct hf_json *value)
{
	require_success(json_array_insert_new(hf_json_raw(array), i, hf_json_raw(value)));
}

void hf_json_replace_item(struct hf_json *array, size_t i, struct hf_json *value)
{
	require_success(json_array_set_new(hf_json_raw(array), i, hf_json_raw(value)));
}

void hf_json_remove_item(struct hf_json *array, size_t i)
{
	require_success(json_array_remove(hf_json_raw(array), i));
}

struct hf_json *hf_json_ensure_object(struct hf_json *object, const char *key)
{
	struct hf_json *value = hf_json_get(object, key);

	if (hf_json_type(value) == HF_JSON_OBJECT)
		return value;
	value = hf_json_object();
	hf_json_set(object, key, value);
	return value;
}

struct hf_json *hf_json_ensure_array(struct hf_json *object, const char *key)
{
	struct hf_json *value = hf_json_get(object, key);

	if (hf_json_type(value) == HF_JSON_ARRAY)
		return value;
	value = hf_json_array();
	hf_json_set(object, key, value);
	return value;
}
