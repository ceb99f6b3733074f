/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "json/json.h"
#include "json/number_internal.h"

#include <stdlib.h>
#include <string.h>

static struct hf_json *parse_text(const char *text)
{
	struct hf_json *value = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), NULL, &value, &err), &err);
	return value;
}

static void assert_written(const char *text, enum hf_json_style style, const char *want)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	HF_AUTO_JSON v = parse_text(text);

	hf_json_write(v, style, &sb);
	assert_string_equal(sb.data, want);
}

static void compact_keeps_the_order_of_keys(void **state)
{
	assert_written("{ \"b\" : [ 1 , 2.50, true, false, null ], \"a\" : { } }", HF_JSON_COMPACT,
		       "{\"b\":[1,2.5,true,false,null],\"a\":{}}");
	assert_written("[]", HF_JSON_COMPACT, "[]");
}

static void sorted_gives_equal_values_equal_bytes(void **state)
{
	assert_written("{\"b\":{\"z\":1,\"y\":2},\"a\":0,\"B\":3}", HF_JSON_SORTED,
		       "{\"B\":3,\"a\":0,\"b\":{\"y\":2,\"z\":1}}");
}

static void indented_is_what_kubectl_prints(void **state)
{
	assert_written("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"l\":[1,{\"a\":\"<&>\"}],\"e\":[],"
		       "\"o\":{}}",
		       HF_JSON_INDENTED,
		       "{\n"
		       "    \"apiVersion\": \"v1\",\n"
		       "    \"e\": [],\n"
		       "    \"kind\": \"Pod\",\n"
		       "    \"l\": [\n"
		       "        1,\n"
		       "        {\n"
		       "            \"a\": \"\\u003c\\u0026\\u003e\"\n"
		       "        }\n"
		       "    ],\n"
		       "    \"o\": {}\n"
		       "}");
	assert_written("\"\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\"", HF_JSON_INDENTED,
		       "\"\\u2028\\u2029\xe2\x80\xaa\"");
}

static void strings_are_escaped_only_where_they_must_be(void **state)
{
	assert_written("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f<&>\xe2\x80\xa8\"",
		       HF_JSON_COMPACT,
		       "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f<&>\xe2\x80\xa8\"");
}

static void reals_are_as_short_as_can_be_and_stay_reals(void **state)
{
	static const struct {
		double d;
		const char *text;
	} cases[] = {
		{0.0, "0.0"},
		{-0.0, "-0.0"},
		{0.1, "0.1"},
		{1.0, "1.0"},
		{-2.5, "-2.5"},
		{100.0, "100.0"},
		{123456.789, "123456.789"},
		{0.000001, "0.000001"},
		{0.0000012, "0.0000012"},
		{0.0000001, "1e-7"},
		{1.25e-9, "1.25e-9"},
		{1e20, "100000000000000000000.0"},
		{1e21, "1e+21"},
		{1.5e300, "1.5e+300"},
		{5e-324, "5e-324"},
		{1.7976931348623157e308, "1.7976931348623157e+308"},
		{0.30000000000000004, "0.30000000000000004"},
		{1.0 / 3, "0.3333333333333333"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		char text[HF_JSON_REAL_TEXT_MAX];
		hf_json_format_real(cases[i].d, text);
		assert_string_equal(text, cases[i].text);
		double back = strtod(text, NULL);
		assert_memory_equal(&back, &cases[i].d, sizeof(back));
		HF_AUTO_JSON v = parse_text(text);
		assert_int_equal(hf_json_type(v), HF_JSON_REAL);
	}
}

static void integers_are_written_to_their_ends(void **state)
{
	assert_written("[0,-1,7,10,-10,1234567890,9223372036854775807,-9223372036854775808]",
		       HF_JSON_COMPACT,
		       "[0,-1,7,10,-10,1234567890,9223372036854775807,-9223372036854775808]");
}

static void many_doubles_survive_the_way_through_text(void **state)
{
	uint64_t x = 88172645463325252u; /* xorshift64 */

	for (int i = 0; i < 20000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		double d, back;
		char text[HF_JSON_REAL_TEXT_MAX];
		memcpy(&d, &x, sizeof(d));
		if (!__builtin_isfinite(d))
			continue;
		hf_json_format_real(d, text);
		back = strtod(text, NULL);
		assert_memory_equal(&back, &d, sizeof(d));
	}
}

static void a_full_buffer_is_flagged_not_overrun(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(8);
	HF_AUTO_JSON v = parse_text("[\"a long string\"]");
	struct hf_error err;

	hf_json_write(v, HF_JSON_COMPACT, &sb);
	assert_code(hf_strbuf_ok(&sb, "the text", &err), HF_E_TOO_LARGE);
	hf_json_write(NULL, HF_JSON_COMPACT, &sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compact_keeps_the_order_of_keys),
		cmocka_unit_test(sorted_gives_equal_values_equal_bytes),
		cmocka_unit_test(indented_is_what_kubectl_prints),
		cmocka_unit_test(strings_are_escaped_only_where_they_must_be),
		cmocka_unit_test(reals_are_as_short_as_can_be_and_stay_reals),
		cmocka_unit_test(integers_are_written_to_their_ends),
		cmocka_unit_test(many_doubles_survive_the_way_through_text),
		cmocka_unit_test(a_full_buffer_is_flagged_not_overrun),
	};
	return cmocka_run_group_tests_name("json/write", tests, NULL, NULL);
}
