/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "json/yaml_internal.h"

#include <string.h>

static struct hf_yaml_scalar resolve_text(const char *text)
{
	struct hf_yaml_scalar scalar;

	hf_yaml_resolve(text, strlen(text), &scalar);
	return scalar;
}

static void words_are_exact(void **state)
{
	static const char *const trues[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
					    "True", "TRUE", "on",  "On",  "ON"};
	static const char *const falses[] = {"n",     "N",     "no",  "No",  "NO", "false",
					     "False", "FALSE", "off", "Off", "OFF"};
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
	static const char *const strings[] = {"yEs",   "oN",   "tRue", "nULL", "yes ", " no",
					      "~~",    "none", "t",    "f",    "o",    "null\n",
					      "truee", "nan",  "inf",  "<<"};

	for (size_t i = 0; i < HF_ARRAY_LEN(trues); i++) {
		assert_int_equal(resolve_text(trues[i]).type, HF_JSON_BOOL);
		assert_int_equal(resolve_text(trues[i]).integer, 1);
		assert_int_equal(resolve_text(falses[i]).type, HF_JSON_BOOL);
		assert_int_equal(resolve_text(falses[i]).integer, 0);
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(nulls); i++)
		assert_int_equal(resolve_text(nulls[i]).type, HF_JSON_NULL);
	for (size_t i = 0; i < HF_ARRAY_LEN(strings); i++)
		assert_int_equal(resolve_text(strings[i]).type, HF_JSON_STRING);
}

static void integers_have_gos_prefixes_and_underscores(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{"0", 0},
		{"00", 0},
		{"-0", 0},
		{"+1", 1},
		{"1__0_", 10},
		{"0_7", 7},
		{"0x_1f", 31},
		{"0XfF", 255},
		{"+0x10", 16},
		{"-0b11", -3},
		{"0B1", 1},
		{"-017", -15},
		{"0O17", 15},
		{"08", 8},
		{"019", 19},
		{"12.", 12},
		{"1e2", 100},
		{"-2.50e1", -25},
		{"+_1", 1},
		{"-0x8000000000000000", INT64_MIN},
		{"0x7fffffffffffffff", INT64_MAX},
		{"-9223372036854775808", INT64_MIN},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_yaml_scalar scalar = resolve_text(cases[i].text);
		if (scalar.type != HF_JSON_INT || scalar.integer != cases[i].value)
			fail_msg("%s: type %d, %lld", cases[i].text, (int)scalar.type,
				 (long long)scalar.integer);
	}
}

static void a_text_that_is_nearly_a_number_is_a_string(void **state)
{
	static const char *const texts[] = {
		"_1",
		"0x",
		"0b",
		"0o",
		"0xg",
		"0b2",
		"0o8",
		"1e",
		"1e+",
		".",
		"..5",
		"1..2",
		"1.2.3",
		"--1",
		"+-1",
		"1-",
		"0x1p3",
		".e3",
		"._5",
		"1e999",
		"-1e999",
		"0x1ffffffffffffffff",
		"-0x8000000000000001",
		"+0xffffffffffffffff",
		"1 2",
		"1,5",
		"12:30",
		"0x1.8",
		"-",
		"+",
		"+_",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++)
		if (resolve_text(texts[i]).type != HF_JSON_STRING)
			fail_msg("%s: type %d", texts[i], (int)resolve_text(texts[i]).type);
}

static void other_numbers_are_reals(void **state)
{
	static const struct {
		const char *text;
		double value;
	} cases[] = {
		{".5", 0.5},
		{"-.5", -0.5},
		{"+1.25", 1.25},
		{"1.5e-1", 0.15},
		{"0.1_0", 0.1},
		{"9223372036854775808", 9223372036854775808.0},
		{"-9223372036854775809", -9223372036854775809.0},
		{"+9223372036854775808", 9223372036854775808.0},
		{"0xffffffffffffffff", 18446744073709551615.0},
		{"1e300", 1e300},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_yaml_scalar scalar = resolve_text(cases[i].text);
		assert_int_equal(scalar.type, HF_JSON_REAL);
		assert_memory_equal(&scalar.real, &cases[i].value, sizeof(double));
	}
	assert_true(__builtin_isinf_sign(resolve_text(".inf").real) > 0);
	assert_true(__builtin_isinf_sign(resolve_text("-.Inf").real) < 0);
	assert_true(__builtin_isnan(resolve_text(".NaN").real));
}

static void length_and_nul_do_not_confuse_it(void **state)
{
	char digits[1001];
	struct hf_yaml_scalar scalar;

	memset(digits, '1', sizeof(digits) - 1);
	digits[sizeof(digits) - 1] = '\0';
	assert_int_equal(resolve_text(digits).type, HF_JSON_STRING);
	hf_yaml_resolve("1\0", 2, &scalar);
	assert_int_equal(scalar.type, HF_JSON_STRING);
	hf_yaml_resolve(".5\0", 3, &scalar);
	assert_int_equal(scalar.type, HF_JSON_STRING);
	hf_yaml_resolve("yes\0", 4, &scalar);
	assert_int_equal(scalar.type, HF_JSON_STRING);
	hf_yaml_resolve("123", 2, &scalar);
	assert_int_equal(scalar.integer, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_exact),
		cmocka_unit_test(integers_have_gos_prefixes_and_underscores),
		cmocka_unit_test(a_text_that_is_nearly_a_number_is_a_string),
		cmocka_unit_test(other_numbers_are_reals),
		cmocka_unit_test(length_and_nul_do_not_confuse_it),
	};
	return cmocka_run_group_tests_name("json/yaml_scalar", tests, NULL, NULL);
}
