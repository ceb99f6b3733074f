/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/strbuf.h"
#include "json/patch.h"
#include "json/skip.h"
#include "json/yaml.h"
#include "json/yaml_write.h"

#include <string.h>

/* Properties that hold for every document, tried on random ones. Fuzzing tries more documents;
 * these run in every test. */
#define ROUNDS 3000

static uint64_t seed;

static unsigned random_below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static const char *some_key(void)
{
	static const char *const keys[] = {
		"a",   "b", "c",  "name", "spec",     "status", "a/b",
		"x~y", "",  "10", "9",    "\xc3\xa4", "yes",    "-",
	};
	return keys[random_below(HF_ARRAY_LEN(keys))];
}

static struct hf_json *some_string(void)
{
	static const char *const pieces[] = {
		"a",    " ", "\n",           "\t", "\"", "\\",   "'", ": ", "#",    "-",
		"true", "5", "\xe2\x82\xac", "{",  "]",  "\x01", "/", "<",  "word", "1e3",
	};
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);

	for (unsigned n = random_below(5); n > 0; n--)
		hf_strbuf_addstr(&sb, pieces[random_below(HF_ARRAY_LEN(pieces))]);
	return hf_json_string(sb.data);
}

static struct hf_json *some_value(int depth)
{
	struct hf_json *value;

	switch (random_below(depth > 0 ? 10 : 6)) {
	case 0: return hf_json_null();
	case 1: return hf_json_bool(random_below(2) == 1);
	case 2: return hf_json_int((int64_t)random_below(10) - 5);
	case 3: return hf_json_real((double)random_below(1000) / 8 - 50);
	case 4:
	case 5: return some_string();
	case 6:
	case 7:
		value = hf_json_array();
		for (unsigned n = random_below(4); n > 0; n--)
			hf_json_append(value, some_value(depth - 1));
		return value;
	default: break;
	}
	value = hf_json_object();
	for (unsigned n = random_below(6); n > 0; n--)
		hf_json_set(value, some_key(), some_value(depth - 1));
	return value;
}

static struct hf_json *some_object(void)
{
	struct hf_json *object = hf_json_object();

	for (unsigned n = random_below(6); n > 0; n--)
		hf_json_set(object, some_key(), some_value(3));
	return object;
}

static void a_written_document_is_read_back(void **state)
{
	static const enum hf_json_style styles[] = {HF_JSON_COMPACT, HF_JSON_INDENTED,
						    HF_JSON_SORTED};

	for (int round = 0; round < ROUNDS; round++) {
		HF_AUTO_JSON value = some_value(4);
		HF_AUTO_JSON copy = hf_json_copy(value);
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
		HF_AUTO_JSON back = NULL;
		struct hf_error err;
		struct hf_skip skip;
		hf_json_write(value, styles[round % 3], &sb);
		assert_ok(hf_json_parse(sb.data, sb.len, NULL, &back, &err), &err);
		assert_true(hf_json_equal(value, back));
		assert_true(hf_json_equal(value, copy));
		hf_skip_init(&skip, sb.data, sb.len);
		assert_true(hf_skip_value(&skip) && hf_skip_at_end(&skip));
	}
}

static void equal_values_have_equal_sorted_bytes(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		HF_AUTO_JSON value = some_object();
		HF_AUTO_JSON turned = hf_json_object();
		HF_AUTO_STRBUF a = HF_STRBUF_INIT(1 << 20);
		HF_AUTO_STRBUF b = HF_STRBUF_INIT(1 << 20);
		const char *key, *keys[64];
		struct hf_json *inner;
		size_t n = 0;
		for (void *it = NULL; (it = hf_json_next(value, it, &key, &inner));)
			keys[n++] = key;
		while (n-- > 0)
			hf_json_set(turned, keys[n], hf_json_copy(hf_json_get(value, keys[n])));
		assert_true(hf_json_equal(value, turned));
		hf_json_write(value, HF_JSON_SORTED, &a);
		hf_json_write(turned, HF_JSON_SORTED, &b);
		assert_string_equal(a.data, b.data);
	}
}

static void yaml_brings_every_value_through(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		HF_AUTO_JSON value = some_object();
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
		HF_AUTO_YAML yaml = NULL;
		struct hf_error err;
		hf_yaml_write(value, &sb);
		assert_ok(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), &err);
		assert_int_equal(hf_yaml_len(yaml), 1);
		if (!hf_json_equal(value, hf_yaml_doc(yaml, 0)))
			fail_msg("not the same: %s", sb.data);
	}
}

static void a_merge_diff_leads_from_one_to_the_other(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		HF_AUTO_JSON from = some_object();
		HF_AUTO_JSON to = some_object();
		HF_AUTO_JSON patch = hf_json_merge_diff(from, to);
		HF_AUTO_JSON result = hf_json_merge_patch(from, patch);
		HF_AUTO_JSON rest = hf_json_merge_diff(result, to);
		HF_AUTO_JSON none = hf_json_merge_diff(from, from);
		assert_int_equal(hf_json_len(rest), 0);
		assert_int_equal(hf_json_len(none), 0);
	}
}

static void merging_twice_changes_nothing_more(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		HF_AUTO_JSON target = some_object();
		HF_AUTO_JSON patch = some_object();
		HF_AUTO_JSON once = hf_json_merge_patch(target, patch);
		HF_AUTO_JSON twice = hf_json_merge_patch(once, patch);
		assert_true(hf_json_equal(once, twice));
	}
}

/* Makes {"op": op, "path": "/" + key}, with ~ and / in the key escaped. */
static struct hf_json *make_operation(const char *op, const char *key, struct hf_json *value)
{
	struct hf_json *json = hf_json_object();
	HF_AUTO_STRBUF path = HF_STRBUF_INIT(4096);

	hf_strbuf_addch(&path, '/');
	for (; *key; key++) {
		if (*key == '~' || *key == '/')
			hf_strbuf_addstr(&path, *key == '~' ? "~0" : "~1");
		else
			hf_strbuf_addch(&path, *key);
	}
	hf_json_set_str(json, "op", op);
	hf_json_set_str(json, "path", path.data);
	hf_json_set(json, "value", value);
	return json;
}

static void json_patches_can_be_undone(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		HF_AUTO_JSON target = some_object();
		HF_AUTO_JSON ops = hf_json_array();
		HF_AUTO_JSON undo = hf_json_array();
		HF_AUTO_JSON changed = NULL;
		HF_AUTO_JSON back = NULL;
		struct hf_error err;
		const char *key = some_key();
		struct hf_json *old = hf_json_get(target, key);
		struct hf_json *new = some_value(2);
		hf_json_append(ops, make_operation("add", key, new));
		hf_json_append(ops, make_operation("test", key, hf_json_ref(new)));
		if (old)
			hf_json_append(undo, make_operation("replace", key, hf_json_copy(old)));
		else
			hf_json_append(undo, make_operation("remove", key, NULL));
		assert_ok(hf_json_patch(target, ops, &changed, &err), &err);
		assert_true(hf_json_equal(hf_json_get(changed, key), new));
		assert_ok(hf_json_patch(changed, undo, &back, &err), &err);
		assert_true(hf_json_equal(back, target));
	}
}

static int draw_seed(void **state)
{
	seed = 20260102030405u;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_written_document_is_read_back, draw_seed),
		cmocka_unit_test_setup(equal_values_have_equal_sorted_bytes, draw_seed),
		cmocka_unit_test_setup(yaml_brings_every_value_through, draw_seed),
		cmocka_unit_test_setup(a_merge_diff_leads_from_one_to_the_other, draw_seed),
		cmocka_unit_test_setup(merging_twice_changes_nothing_more, draw_seed),
		cmocka_unit_test_setup(json_patches_can_be_undone, draw_seed),
	};
	return cmocka_run_group_tests_name("json/property", tests, NULL, NULL);
}
