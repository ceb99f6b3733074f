/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/compiler.h"
#include "json/number_internal.h"

#include <stdlib.h>
#include <string.h>

static void short_form_is_that_of_go(void **state)
{
	/* Printed by strconv.FormatFloat(d, 'g', -1, 64). */
	static const struct {
		double d;
		const char *text;
	} cases[] = {
		{0.0, "0"},           {-0.0, "-0"},         {1.0, "1"},
		{-1.5, "-1.5"},       {0.1, "0.1"},         {0.0001, "0.0001"},
		{0.00012, "0.00012"}, {0.00001, "1e-05"},   {1.25e-7, "1.25e-07"},
		{100.0, "100"},       {99999.0, "99999"},   {100000.5, "100000.5"},
		{999999.0, "999999"}, {1000000.0, "1e+06"}, {1234567.5, "1.2345675e+06"},
		{1e20, "1e+20"},      {1e21, "1e+21"},      {1.5e300, "1.5e+300"},
		{5e-324, "5e-324"},   {10.05, "10.05"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		char text[HF_JSON_REAL_TEXT_MAX];
		hf_json_format_real_short(cases[i].d, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void both_forms_give_the_same_double_back(void **state)
{
	uint64_t x = 1;

	for (int i = 0; i < 20000; i++) {
		char text[HF_JSON_REAL_TEXT_MAX];
		double d, back;
		x = x * 6364136223846793005u + 1442695040888963407u;
		memcpy(&d, &x, sizeof(d));
		if (!__builtin_isfinite(d))
			continue;
		hf_json_format_real(d, text);
		back = strtod(text, NULL);
		assert_memory_equal(&d, &back, sizeof(d));
		hf_json_format_real_short(d, text);
		back = strtod(text, NULL);
		assert_memory_equal(&d, &back, sizeof(d));
	}
}

static void the_longest_texts_fit(void **state)
{
	static const double longest[] = {-1.2345678901234567e-300, -0.0000012345678901234567,
					 -123456789012345678901.0, -1.7976931348623157e308};

	for (size_t i = 0; i < HF_ARRAY_LEN(longest); i++) {
		char text[HF_JSON_REAL_TEXT_MAX];
		hf_json_format_real(longest[i], text);
		assert_true(strlen(text) < sizeof(text) - 1);
	}
}

static void whole_numbers_are_recognized(void **state)
{
	static const struct {
		double d;
		bool whole;
		int64_t integer;
	} cases[] = {
		{0.0, true, 0},
		{-0.0, true, 0},
		{5.0, true, 5},
		{-5.0, true, -5},
		{5.5, false, 0},
		{1e-300, false, 0},
		{9007199254740993.0, true, 9007199254740992},
		{9223372036854774784.0, true, 9223372036854774784},
		{9223372036854775808.0, false, 0},
		{-9223372036854775808.0, true, INT64_MIN},
		{-9223372036854777856.0, false, 0},
		{1e300, false, 0},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		int64_t integer = 0;
		assert_int_equal(hf_json_whole(cases[i].d, &integer), cases[i].whole);
		assert_true(integer == cases[i].integer);
	}
	int64_t untouched = 7;
	assert_false(hf_json_whole(__builtin_nan(""), &untouched));
	assert_false(hf_json_whole(__builtin_inf(), &untouched));
	assert_int_equal(untouched, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_form_is_that_of_go),
		cmocka_unit_test(both_forms_give_the_same_double_back),
		cmocka_unit_test(the_longest_texts_fit),
		cmocka_unit_test(whole_numbers_are_recognized),
	};
	return cmocka_run_group_tests_name("json/number", tests, NULL, NULL);
}
