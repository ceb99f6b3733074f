/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/scan_internal.h"

#include "harness/test.h"

#include <string.h>

static struct hf_scan of(const char *text)
{
	return hf_scan_of(text, strlen(text));
}

static void what_does_not_match_does_not_move(void **state)
{
	struct hf_scan s = of("abc");
	uint64_t number;
	uint32_t word;

	(void)state;
	assert_false(hf_scan_text(&s, "abcd"));
	assert_false(hf_scan_char(&s, 'b'));
	assert_false(hf_scan_decimal(&s, 3, &number));
	assert_false(hf_scan_hex32(&s, &word));
	assert_false(hf_scan_until(&s, "x", NULL));
	assert_int_equal(hf_scan_left(&s), 3);
}

static void numbers_have_a_longest(void **state)
{
	struct hf_scan s = of("1234"), hex = of("0x123456789"), good = of("0xffffffff)");
	uint64_t number = 7;
	uint32_t word = 7;

	(void)state;
	assert_false(hf_scan_decimal(&s, 3, &number));
	assert_true(hf_scan_decimal(&s, 4, &number));
	assert_int_equal(number, 1234);
	assert_false(hf_scan_hex32(&hex, &word));
	assert_int_equal(word, 7);
	assert_true(hf_scan_hex32(&good, &word));
	assert_int_equal(word, UINT32_MAX);
}

static void nul_is_a_byte_and_no_end(void **state)
{
	struct hf_scan s = hf_scan_of("a\0b", 3), word;
	char text[8];

	(void)state;
	assert_true(hf_scan_has(&s, "b"));
	assert_true(hf_scan_word(&s, "_", &word));
	assert_int_equal(hf_scan_left(&word), 1);
	s = hf_scan_of("a\0b\n\xff", 5);
	hf_scan_print(&s, text, sizeof(text));
	assert_string_equal(text, "a?b??");
}

static void printing_cuts_and_fills(void **state)
{
	struct hf_scan s = of("abcdef");
	char text[4];

	(void)state;
	hf_scan_print(&s, text, sizeof(text));
	assert_string_equal(text, "abc");
	s = hf_scan_of(NULL, 0);
	hf_scan_print(&s, text, sizeof(text));
	assert_memory_equal(text, "\0\0\0\0", 4);
}

static void the_empty_text_has_nothing(void **state)
{
	struct hf_scan s = hf_scan_of("", 0), word;

	(void)state;
	assert_false(hf_scan_until(&s, "a", &word));
	assert_false(hf_scan_word(&s, "a", &word));
	hf_scan_blanks(&s);
	assert_int_equal(hf_scan_left(&s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_match_does_not_move),
		cmocka_unit_test(numbers_have_a_longest),
		cmocka_unit_test(nul_is_a_byte_and_no_end),
		cmocka_unit_test(printing_cuts_and_fills),
		cmocka_unit_test(the_empty_text_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
