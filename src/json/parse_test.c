/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

static int parse_text(const char *text, struct hf_json **ret_value, struct hf_error *err)
{
	return hf_json_parse(text, strlen(text), NULL, ret_value, err);
}

static void values_of_every_type_are_read(void **state)
{
	static const char *const texts[] = {
		"null",
		" true ",
		"-9223372036854775808",
		"9223372036854775807",
		"1e3",
		"-0.5",
		"\"\\u00e4\\ud83d\\ude00\\n\"",
		"[]",
		"{}",
		"[[],{\"a\":[{}]}]",
		"\"\xc3\xa4\"",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		struct hf_error err;
		HF_AUTO_JSON v = NULL;
		assert_ok(parse_text(texts[i], &v, &err), &err);
		assert_non_null(v);
	}
}

static void invalid_json_is_refused_with_its_position(void **state)
{
	static const struct {
		const char *text, *in_error;
	} cases[] = {
		{"", "line 1"},
		{"{\"a\":1,\n \"b\":}", "line 2, column 6"},
		{"{\"a\":1,\n \"a\":2}", "line 2"},
		{"{\"a\":1,\"a\":2}", "duplicate"},
		{"[1,]", "line 1"},
		{"[1 2]", "line 1"},
		{"{} {}", "end of file"},
		{"'a'", "line 1"},
		{"nul", "line 1"},
		{"01", "line 1"},
		{"+1", "line 1"},
		{"NaN", "line 1"},
		{"9223372036854775808", "too big"},
		{"-9223372036854775809", "too big negative"},
		{"1e400", "overflow"},
		{"\"\xff\"", "line 1"},
		{"\"\xed\xa0\x80\"", "line 1"}, /* a surrogate encoded in UTF-8 */
		{"\"\\ud800\"", "Unicode"},
		{"\"\\u0000\"", "\\u0000"},
		{"{\"\\u0000\":1}", ""},
		{"\"a\nb\"", "line 1"},
		{"\"unterminated", "line 1"},
		{"{\"a\":1", "line 1"},
		{"]", "line 1"},
		{"// c\n1", "line 1"},
		{"\xef\xbb\xbf{}", "line 1"}, /* a byte order mark */
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_error err;
		struct hf_json *v = NULL;
		assert_code(parse_text(cases[i].text, &v, &err), HF_E_BAD_REQUEST);
		assert_null(v);
		if (!strstr(err.text, cases[i].in_error))
			fail_msg("%s: %s", cases[i].text, err.text);
	}
}

static void a_nul_byte_in_the_text_is_refused(void **state)
{
	struct hf_json *v = NULL;
	struct hf_error err;

	assert_code(hf_json_parse("\"a\0b\"", 5, NULL, &v, &err), HF_E_BAD_REQUEST);
	assert_code(hf_json_parse("1\0", 2, NULL, &v, &err), HF_E_BAD_REQUEST);
	assert_null(v);
}

static void a_null_text_counts_as_empty(void **state)
{
	struct hf_json *v = NULL;
	struct hf_error err;

	assert_code(hf_json_parse(NULL, 0, NULL, &v, &err), HF_E_BAD_REQUEST);
	assert_null(v);
}

static char *make_nested(int depth)
{
	char *text = hf_xmalloc((size_t)depth * 2 + 1);

	memset(text, '[', (size_t)depth);
	memset(text + depth, ']', (size_t)depth);
	text[depth * 2] = '\0';
	return text;
}

static void depth_is_bounded(void **state)
{
	HF_AUTOFREE char *fits = make_nested(HF_JSON_DEPTH_MAX);
	HF_AUTOFREE char *deep = make_nested(HF_JSON_DEPTH_MAX + 1);
	HF_AUTOFREE char *absurd = make_nested(1000000);
	const struct hf_json_limits shallow = {.depth_max = 2};
	struct hf_error err;
	HF_AUTO_JSON v = NULL;

	assert_ok(parse_text(fits, &v, &err), &err);
	v = hf_json_unref(v);
	assert_code(parse_text(deep, &v, &err), HF_E_TOO_LARGE);
	assert_string_equal(err.text, "line 1, column 65: nested too deeply");
	assert_code(parse_text(absurd, &v, &err), HF_E_TOO_LARGE);
	assert_code(hf_json_parse("[\n[[1]]]", 8, &shallow, &v, &err), HF_E_TOO_LARGE);
	assert_string_equal(err.text, "line 2, column 2: nested too deeply");
	assert_ok(parse_text("[\"[[[[[[\\\"[[\",\"]]\"]", &v, &err), &err);
}

static void size_is_bounded(void **state)
{
	const struct hf_json_limits small = {.bytes_max = 4};
	HF_AUTOFREE char *big = hf_xmalloc(HF_JSON_BYTES_MAX + 1);
	struct hf_error err;
	HF_AUTO_JSON v = NULL;

	assert_ok(hf_json_parse("1234", 4, &small, &v, &err), &err);
	v = hf_json_unref(v);
	assert_code(hf_json_parse("12345", 5, &small, &v, &err), HF_E_TOO_LARGE);
	memset(big, ' ', HF_JSON_BYTES_MAX + 1);
	assert_code(hf_json_parse(big, HF_JSON_BYTES_MAX + 1, NULL, &v, &err), HF_E_TOO_LARGE);
}

static void keys_of_one_object_are_bounded(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
	struct hf_error err;
	HF_AUTO_JSON v = NULL;

	hf_strbuf_addch(&sb, '{');
	for (int i = 0; i < HF_JSON_KEYS_MAX; i++)
		hf_strbuf_addf(&sb, "%s\"%d\":{\"a\":1,\"b\":2}", i ? "," : "", i);
	hf_strbuf_addch(&sb, '}');
	assert_ok(hf_json_parse(sb.data, sb.len, NULL, &v, &err), &err);
	assert_int_equal(hf_json_len(v), HF_JSON_KEYS_MAX);
	v = hf_json_unref(v);

	hf_strbuf_truncate(&sb, sb.len - 1);
	hf_strbuf_addstr(&sb, ",\"more\":1}");
	assert_code(hf_json_parse(sb.data, sb.len, NULL, &v, &err), HF_E_TOO_LARGE);
	assert_non_null(strstr(err.text, "too many keys"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_every_type_are_read),
		cmocka_unit_test(invalid_json_is_refused_with_its_position),
		cmocka_unit_test(a_nul_byte_in_the_text_is_refused),
		cmocka_unit_test(a_null_text_counts_as_empty),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(size_is_bounded),
		cmocka_unit_test(keys_of_one_object_are_bounded),
	};
	return cmocka_run_group_tests_name("json/parse", tests, NULL, NULL);
}
