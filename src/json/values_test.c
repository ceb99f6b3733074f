/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "json/json.h"

#include <string.h>

static struct hf_json *parse_text(const char *text)
{
	struct hf_json *value = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), NULL, &value, &err), &err);
	return value;
}

static void a_null_is_an_absent_value_everywhere(void **state)
{
	const char *key = "untouched";
	struct hf_json *value = NULL;

	assert_int_equal(hf_json_type(NULL), HF_JSON_ABSENT);
	assert_null(hf_json_get(NULL, "a"));
	assert_null(hf_json_item(NULL, 0));
	assert_null(hf_json_path(NULL, "a", "b", NULL));
	assert_null(hf_json_path_str(NULL, "a", NULL));
	assert_null(hf_json_copy(NULL));
	assert_null(hf_json_ref(NULL));
	assert_null(hf_json_unref(NULL));
	assert_null(hf_json_next(NULL, NULL, &key, &value));
	assert_string_equal(key, "untouched");
	assert_int_equal(hf_json_len(NULL), 0);
	assert_string_equal(hf_json_str(NULL, "fallback"), "fallback");
	assert_int_equal(hf_json_i64(NULL, 7), 7);
	assert_true(hf_json_true(NULL, true));
	assert_true(hf_json_num(NULL, 0.5) > 0.4);
	assert_true(hf_json_equal(NULL, NULL));
	assert_false(hf_json_equal(NULL, hf_json_null()));
}

static void scalars_of_another_type_give_the_fallback(void **state)
{
	HF_AUTO_JSON v = parse_text("{\"s\":\"x\",\"i\":3,\"r\":2.5,\"b\":true,\"n\":null}");

	assert_string_equal(hf_json_str(hf_json_get(v, "s"), NULL), "x");
	assert_null(hf_json_str(hf_json_get(v, "i"), NULL));
	assert_int_equal(hf_json_i64(hf_json_get(v, "i"), -1), 3);
	assert_int_equal(hf_json_i64(hf_json_get(v, "r"), -1), -1);
	assert_int_equal(hf_json_i64(hf_json_get(v, "s"), -1), -1);
	assert_true(hf_json_num(hf_json_get(v, "i"), 0) > 2.9);
	assert_true(hf_json_num(hf_json_get(v, "r"), 0) > 2.4);
	assert_true(hf_json_num(hf_json_get(v, "s"), 9) > 8.9);
	assert_true(hf_json_true(hf_json_get(v, "b"), false));
	assert_false(hf_json_true(hf_json_get(v, "s"), false));
	assert_false(hf_json_true(hf_json_get(v, "n"), false));
}

static void every_type_has_a_number_and_a_name(void **state)
{
	static const struct {
		const char *text, *name;
		enum hf_json_type type;
	} cases[] = {
		{"null", "null", HF_JSON_NULL},     {"false", "boolean", HF_JSON_BOOL},
		{"1", "integer", HF_JSON_INT},      {"1.0", "number", HF_JSON_REAL},
		{"\"\"", "string", HF_JSON_STRING}, {"[]", "array", HF_JSON_ARRAY},
		{"{}", "object", HF_JSON_OBJECT},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON v = parse_text(cases[i].text);
		assert_int_equal(hf_json_type(v), cases[i].type);
		assert_string_equal(hf_json_type_name(cases[i].type), cases[i].name);
	}
	assert_string_equal(hf_json_type_name(HF_JSON_ABSENT), "nothing");
}

static void keys_are_visited_in_the_order_they_were_put(void **state)
{
	HF_AUTO_JSON v = hf_json_object();
	const char *key;
	struct hf_json *value;
	HF_AUTO_STRBUF seen = HF_STRBUF_INIT(64);

	hf_json_set_i64(v, "zeta", 1);
	hf_json_set_bool(v, "alpha", true);
	hf_json_set_str(v, "mid", "m");
	hf_json_set_str(v, "absent", NULL);
	hf_json_set(v, "nothing", NULL);
	hf_json_set_i64(v, "zeta", 2); /* zeta keeps its place in the order */
	for (void *it = NULL; (it = hf_json_next(v, it, &key, &value));)
		hf_strbuf_addf(&seen, "%s ", key);
	assert_string_equal(seen.data, "zeta alpha mid ");
	assert_int_equal(hf_json_i64(hf_json_get(v, "zeta"), 0), 2);

	hf_json_remove(v, "alpha");
	hf_json_remove(v, "never there");
	assert_int_equal(hf_json_len(v), 2);
}

static void arrays_are_changed_by_position(void **state)
{
	HF_AUTO_JSON v = hf_json_array();
	HF_AUTO_JSON want = parse_text("[0,11,3]");

	hf_json_append(v, hf_json_int(1));
	hf_json_append(v, hf_json_int(2));
	hf_json_append(v, NULL);
	hf_json_append(v, hf_json_int(3));
	hf_json_insert(v, 0, hf_json_int(0));
	hf_json_replace_item(v, 1, hf_json_int(11));
	hf_json_remove_item(v, 2);
	assert_true(hf_json_equal(v, want));
	assert_null(hf_json_item(v, 3));
}

static void a_path_walks_down_keys(void **state)
{
	HF_AUTO_JSON v = parse_text("{\"a\":{\"b\":{\"c\":\"deep\"}},\"l\":[1]}");

	assert_string_equal(hf_json_path_str(v, "a", "b", "c", NULL), "deep");
	assert_null(hf_json_path_str(v, "a", "b", NULL));
	assert_null(hf_json_path(v, "a", "x", "c", NULL));
	assert_null(hf_json_path(v, "l", "0", NULL));
	assert_ptr_equal(hf_json_path(v, NULL), v);
}

static void ensure_makes_a_missing_container_and_keeps_an_existing_one(void **state)
{
	HF_AUTO_JSON v = parse_text("{\"o\":{\"k\":1},\"wrong\":5,\"l\":[1]}");

	assert_int_equal(hf_json_len(hf_json_ensure_object(v, "o")), 1);
	assert_int_equal(hf_json_len(hf_json_ensure_array(v, "l")), 1);
	hf_json_set_i64(hf_json_ensure_object(v, "new"), "x", 1);
	hf_json_append(hf_json_ensure_array(v, "wrong"), hf_json_int(9));
	HF_AUTO_JSON want =
		parse_text("{\"o\":{\"k\":1},\"wrong\":[9],\"l\":[1],\"new\":{\"x\":1}}");
	assert_true(hf_json_equal(v, want));
}

static void a_copy_shares_nothing_that_can_change(void **state)
{
	HF_AUTO_JSON v = parse_text("{\"a\":{\"b\":[1,{\"c\":\"s\"}]}}");
	HF_AUTO_JSON copy = hf_json_copy(v);

	assert_true(hf_json_equal(v, copy));
	hf_json_set_i64(hf_json_item(hf_json_path(copy, "a", "b", NULL), 1), "c", 5);
	hf_json_append(hf_json_path(copy, "a", "b", NULL), hf_json_null());
	assert_false(hf_json_equal(v, copy));
	assert_string_equal(
		hf_json_path_str(hf_json_item(hf_json_path(v, "a", "b", NULL), 1), "c", NULL), "s");
}

static void equality_ignores_key_order_and_compares_numbers_by_value(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} cases[] = {
		{"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
		{"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
		{"{\"a\":1}", "{\"b\":1}", false},
		{"[1,2]", "[2,1]", false},
		{"[1,2]", "[1,2,3]", false},
		{"1", "1.0", true},
		{"1.5", "1", false},
		{"1.5", "1.5", true},
		{"9223372036854775807", "9223372036854775807.0", false},
		{"9007199254740993", "9007199254740992.0", false},
		{"1e300", "5", false},
		{"\"1\"", "1", false},
		{"null", "false", false},
		{"true", "false", false},
		{"true", "true", true},
		{"null", "null", true},
		{"[]", "{}", false},
		{"\"a\"", "\"b\"", false},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON a = parse_text(cases[i].a);
		HF_AUTO_JSON b = parse_text(cases[i].b);
		if (hf_json_equal(a, b) != cases[i].equal || hf_json_equal(b, a) != cases[i].equal)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
	}
}

static void text_that_is_no_utf8_is_replaced_not_kept(void **state)
{
	HF_AUTO_JSON bad = hf_json_string("a\xff\xc3z");
	HF_AUTO_JSON good = hf_json_string("a\xc3\xa4\xf0\x9f\x98\x80");
	HF_AUTO_JSON nul = hf_json_stringn("a\0b", 3);
	HF_AUTO_JSON v = hf_json_object();

	assert_string_equal(hf_json_str(bad, ""), "a\xef\xbf\xbd\xef\xbf\xbdz");
	assert_string_equal(hf_json_str(good, ""), "a\xc3\xa4\xf0\x9f\x98\x80");
	assert_string_equal(hf_json_str(nul, ""), "a\xef\xbf\xbd"
						  "b");
	hf_json_set_i64(v, "k\xff", 1);
	assert_int_equal(hf_json_i64(hf_json_get(v, "k\xef\xbf\xbd"), 0), 1);
}

static void keys_are_found_along_whatever_their_order_is(void **state)
{
	static const char *const orders[] = {"abcd", "dcba", "axbxcxd", "xdx", "aabbd", ""};
	HF_AUTO_JSON v = parse_text("{\"a\":1,\"b\":2,\"c\":3,\"d\":4}");

	for (size_t i = 0; i < HF_ARRAY_LEN(orders); i++) {
		void *at = NULL;
		for (const char *c = orders[i]; *c; c++) {
			const char key[] = {*c, '\0'};
			assert_ptr_equal(hf_json_get_along(v, &at, key), hf_json_get(v, key));
		}
	}
	void *at = NULL;
	assert_null(hf_json_get_along(NULL, &at, "a"));
	assert_null(hf_json_get_along(hf_json_get(v, "a"), &at, "a"));
}

static void references_keep_a_value_alive(void **state)
{
	struct hf_json *v = parse_text("{\"a\":[1]}");
	struct hf_json *inner = hf_json_ref(hf_json_get(v, "a"));

	assert_null(hf_json_unref(v));
	assert_int_equal(hf_json_len(inner), 1);
	hf_json_unref(inner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_null_is_an_absent_value_everywhere),
		cmocka_unit_test(scalars_of_another_type_give_the_fallback),
		cmocka_unit_test(every_type_has_a_number_and_a_name),
		cmocka_unit_test(keys_are_visited_in_the_order_they_were_put),
		cmocka_unit_test(arrays_are_changed_by_position),
		cmocka_unit_test(a_path_walks_down_keys),
		cmocka_unit_test(ensure_makes_a_missing_container_and_keeps_an_existing_one),
		cmocka_unit_test(a_copy_shares_nothing_that_can_change),
		cmocka_unit_test(equality_ignores_key_order_and_compares_numbers_by_value),
		cmocka_unit_test(text_that_is_no_utf8_is_replaced_not_kept),
		cmocka_unit_test(keys_are_found_along_whatever_their_order_is),
		cmocka_unit_test(references_keep_a_value_alive),
	};

	hf_json_seed(12345);
	return cmocka_run_group_tests_name("json/values", tests, NULL, NULL);
}
