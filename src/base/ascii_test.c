/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/ascii.h"

#include <string.h>

static bool is_in(const char *set, char c)
{
	return c != '\0' && strchr(set, c) != NULL;
}

static void every_byte_is_in_its_classes_only(void **state)
{
	static const char digits[] = "0123456789";
	static const char lower[] = "abcdefghijklmnopqrstuvwxyz";
	static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		char c = (char)byte;
		bool letter = is_in(lower, c) || is_in(upper, c);

		assert_int_equal(hf_ascii_is_digit(c), is_in(digits, c));
		assert_int_equal(hf_ascii_is_lower(c), is_in(lower, c));
		assert_int_equal(hf_ascii_is_upper(c), is_in(upper, c));
		assert_int_equal(hf_ascii_is_letter(c), letter);
		assert_int_equal(hf_ascii_is_alnum(c), letter || is_in(digits, c));
		assert_int_equal(hf_ascii_is_space(c), is_in(" \t\n\r", c));
	}
}

static void letters_alone_change_their_case(void **state)
{
	static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char lower[] = "abcdefghijklmnopqrstuvwxyz";

	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		char c = (char)byte;
		char small = is_in(upper, c) ? lower[strchr(upper, c) - upper] : c;
		char capital = is_in(lower, c) ? upper[strchr(lower, c) - lower] : c;

		assert_int_equal(hf_ascii_to_lower(c), small);
		assert_int_equal(hf_ascii_to_upper(c), capital);
	}
}

static void hex_digits_of_either_case_have_values(void **state)
{
	static const char lower[] = "0123456789abcdef";
	static const char upper[] = "0123456789ABCDEF";

	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		char c = (char)byte;
		int want = -1;

		if (is_in(lower, c))
			want = (int)(strchr(lower, c) - lower);
		else if (is_in(upper, c))
			want = (int)(strchr(upper, c) - upper);
		assert_int_equal(hf_ascii_hex_value(c), want);
	}
}

static void two_hex_digits_are_a_byte(void **state)
{
	(void)state;
	assert_int_equal(hf_ascii_hex_byte("00"), 0);
	assert_int_equal(hf_ascii_hex_byte("fFx"), 255);
	assert_int_equal(hf_ascii_hex_byte("2a"), 42);
	assert_int_equal(hf_ascii_hex_byte("2"), -1);
	assert_int_equal(hf_ascii_hex_byte(""), -1);
	assert_int_equal(hf_ascii_hex_byte("g0"), -1);
	assert_int_equal(hf_ascii_hex_byte("0g"), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_is_in_its_classes_only),
		cmocka_unit_test(letters_alone_change_their_case),
		cmocka_unit_test(two_hex_digits_are_a_byte),
		cmocka_unit_test(hex_digits_of_either_case_have_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
