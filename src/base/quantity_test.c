/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/quantity.h"

#include "harness/test.h"
#include "harness/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t parse_milli(const char *text)
{
	struct hf_error err;
	int64_t value = -12345;

	if (hf_quantity_parse_milli(text, &value, &err) != 0)
		fail_msg("'%s': %s", text, err.text);
	return value;
}

struct row {
	const char *text;
	int64_t parse_milli;
};

static void check_text(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (parse_milli(rows[i].text) != rows[i].parse_milli)
			fail_msg("'%s' is %" PRId64 ", expected %" PRId64, rows[i].text,
				 parse_milli(rows[i].text), rows[i].parse_milli);
}

static void plain_numbers_are_thousandths(void **state)
{
	static const struct row rows[] = {
		{"0", 0},        {"1", 1000},    {"12", 12000},   {"007", 7000}, {"+1", 1000},
		{"-1", -1000},   {"-0", 0},      {"0.5", 500},    {".5", 500},   {"5.", 5000},
		{"1.234", 1234}, {"-.25", -250}, {"00.100", 100}, {"0.0000", 0}, {"10.010", 10010},
	};

	check_text(rows, HF_ARRAY_LEN(rows));
}

static void decimal_suffixes_scale_by_thousands(void **state)
{
	static const struct row rows[] = {
		{"100m", 100},
		{"1500m", 1500},
		{"0.1m", 1},
		{"1000000n", 1},
		{"1000u", 1},
		{"2k", 2000000},
		{"1.5M", INT64_C(1500000000)},
		{"3G", INT64_C(3000000000000)},
		{"2T", INT64_C(2000000000000000)},
		{"9P", INT64_C(9000000000000000000)},
		{"0.009E", INT64_C(9000000000000000000)},
	};

	check_text(rows, HF_ARRAY_LEN(rows));
}

static void binary_suffixes_scale_by_1024(void **state)
{
	static const struct row rows[] = {
		{"1Ki", 1024000},
		{"2Mi", INT64_C(2097152000)},
		{"1.5Gi", INT64_C(1610612736000)},
		{"64Gi", INT64_C(68719476736000)},
		{"1Ti", INT64_C(1099511627776000)},
		{"8Pi", INT64_C(9007199254740992000)},
		{"0.5Ki", 512000},
		{"0.007Ei", INT64_C(8070450532247928832)},
		{"-1Mi", -1048576000},
	};

	check_text(rows, HF_ARRAY_LEN(rows));
}

static void exponents_scale_by_powers_of_ten(void **state)
{
	static const struct row rows[] = {
		{"1e3", 1000000},
		{"1E3", 1000000},
		{"1e+3", 1000000},
		{"5e-1", 500},
		{"12e0", 12000},
		{"1e-3", 1},
		{"1.5e2", 150000},
		{"100e-2", 1000},
		{"1e-0", 1000},
		{"1e0000003", 1000000},
		{"0e99999999999999999999", 0},
	};

	check_text(rows, HF_ARRAY_LEN(rows));
}

static void a_value_finer_than_a_thousandth_is_rounded_up(void **state)
{
	static const struct row rows[] = {
		{"1n", 1},
		{"1u", 1},
		{"999999n", 1},
		{"1000001n", 2},
		{"0.0001", 1},
		{"1.0001", 1001},
		{"1.0000000000000000000000000000001", 1001},
		{"1.9999999", 2000},
		{"0.0009Ki", 922},
		{"1e-30", 1},
		{"1e-99999999999", 1},
		{"0.00000000000000000000001Ei", 1},
		/* A negative value is rounded away from zero, so its amount does not become
		 * smaller. */
		{"-1n", -1},
		{"-1.0001", -1001},
	};

	check_text(rows, HF_ARRAY_LEN(rows));
}

static void a_value_that_does_not_fit_is_capped(void **state)
{
	static const struct row rows[] = {
		{"9223372036854775.807", INT64_MAX},
		{"9223372036854775.806", INT64_MAX - 1},
		{"9223372036854775.8061", INT64_MAX},
		{"9223372036854775.808", INT64_MAX},
		{"9223372036854775.8071", INT64_MAX},
		{"9223372036854775807", INT64_MAX},
		{"99999999999999999999999999999999", INT64_MAX},
		{"10P", INT64_MAX},
		{"1E", INT64_MAX},
		{"1Ei", INT64_MAX},
		{"9Pi", INT64_MAX},
		{"1e100", INT64_MAX},
		{"1e99999999999999999999", INT64_MAX},
		{"0.00001e9999", INT64_MAX},
		{"-1Ei", -INT64_MAX},
		{"-9223372036854775.808", -INT64_MAX},
	};

	check_text(rows, HF_ARRAY_LEN(rows));
}

#define FORMAT_WRONG                                                                               \
	"quantities must match the regular expression "                                            \
	"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
#define SUFFIX_WRONG "unable to parse quantity's suffix"

static void a_text_that_is_no_quantity_is_refused_with_upstreams_text(void **state)
{
	static const struct {
		const char *text;
		const char *problem;
	} rows[] = {
		{"", FORMAT_WRONG},
		{" 1", FORMAT_WRONG},
		{"1 ", FORMAT_WRONG},
		{"1\n", FORMAT_WRONG},
		{"x", FORMAT_WRONG},
		{"--1", FORMAT_WRONG},
		{"+-1", FORMAT_WRONG},
		{"1.2.3", FORMAT_WRONG},
		{"1.1.M", FORMAT_WRONG},
		{"1,5", FORMAT_WRONG},
		{"0x10", FORMAT_WRONG},
		{"10%", FORMAT_WRONG},
		{"1_000", FORMAT_WRONG},
		{"0.1am", FORMAT_WRONG},
		{"\xd9\xa1", FORMAT_WRONG},
		{"1i", SUFFIX_WRONG},
		{"1K", SUFFIX_WRONG},
		{"1mi", SUFFIX_WRONG},
		{"1ki", SUFFIX_WRONG},
		{"1MiB", FORMAT_WRONG},
		{"1mM", SUFFIX_WRONG},
		{"1e", SUFFIX_WRONG},
		{"1e+", SUFFIX_WRONG},
		{"1e-", SUFFIX_WRONG},
		{"1ee3", SUFFIX_WRONG},
		{"1Ki3", SUFFIX_WRONG},
		{"1k-3", SUFFIX_WRONG},
		{"1e3Ki", SUFFIX_WRONG},
		/* Without a digit: refused, unlike upstream (see quantity.h). */
		{"+", FORMAT_WRONG},
		{"-", FORMAT_WRONG},
		{".", FORMAT_WRONG},
		{"Ki", FORMAT_WRONG},
		{"m", FORMAT_WRONG},
		{"e3", FORMAT_WRONG},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		struct hf_error err = {.text = ""};
		int64_t value = 77;

		if (hf_quantity_parse_milli(rows[i].text, &value, &err) != HF_E_INVALID)
			fail_msg("'%s' was taken as %" PRId64, rows[i].text, value);
		assert_int_equal(value, 77);
		assert_int_equal(err.code, HF_E_INVALID);
		assert_string_equal(err.text, rows[i].problem);
		assert_code(hf_quantity_parse_milli(rows[i].text, &value, NULL), HF_E_INVALID);
	}
}

static void a_text_is_bounded(void **state)
{
	char text[300];
	int64_t value;

	memset(text, '0', sizeof(text));
	text[255] = '1';
	text[256] = '\0';
	assert_int_equal(parse_milli(text), 1000);
	text[256] = '1';
	text[257] = '\0';
	assert_code(hf_quantity_parse_milli(text, &value, NULL), HF_E_INVALID);
	/* The longest valid number of fraction digits. Only the last digit is not zero, and it
	 * counts. */
	memset(text, '0', 254);
	text[1] = '.';
	text[253] = '1';
	(void)snprintf(text + 254, 3, "Ki");
	assert_int_equal(parse_milli(text), 1);
}

/* Writes random numbers of up to 64 bits in every form. Each form must parse to the same value. */
static void all_ways_to_write_a_number_agree(void **state)
{
	uint64_t seed = 5;

	for (int i = 0; i < 20000; i++) {
		int64_t want = (int64_t)(test_random(&seed) >> (2 + test_random_below(&seed, 62)));
		char text[80];

		(void)snprintf(text, sizeof(text), "%" PRId64 "m", want);
		assert_int_equal(parse_milli(text), want);
		(void)snprintf(text, sizeof(text), "%" PRId64 ".%03d", want / 1000,
			       (int)(want % 1000));
		assert_int_equal(parse_milli(text), want);
		(void)snprintf(text, sizeof(text), "-%" PRId64 "e-3", want);
		assert_int_equal(parse_milli(text), -want);
		(void)snprintf(text, sizeof(text), "%" PRId64 "000000n", want);
		assert_int_equal(parse_milli(text), want);
		(void)snprintf(text, sizeof(text), "0.%019" PRId64 "e16", want);
		assert_int_equal(parse_milli(text), want);
		/* A value slightly above a whole number of thousandths is rounded up. */
		(void)snprintf(text, sizeof(text), "%" PRId64 ".00000001m", want);
		assert_int_equal(parse_milli(text), want + 1);
	}
}

static void binary_numbers_agree_with_shifts(void **state)
{
	static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
	uint64_t seed = 6;

	for (int i = 0; i < 20000; i++) {
		unsigned int power = (unsigned int)test_random_below(&seed, 6);
		int64_t number = (int64_t)test_random_below(&seed, 8);
		char text[80];

		(void)snprintf(text, sizeof(text), "%" PRId64 "%s", number, suffixes[power]);
		assert_int_equal(parse_milli(text), (number << (10 * power)) * 1000);
		(void)snprintf(text, sizeof(text), "%" PRId64 ".125%s", number, suffixes[power]);
		assert_int_equal(parse_milli(text),
				 (number << (10 * power)) * 1000 + ((int64_t)125 << (10 * power)));
	}
}

static void no_text_does_harm(void **state)
{
	static const char letters[] = "0123456789.+-eEinumkKMGTP \xff";
	uint64_t seed = 7;

	for (int i = 0; i < 100000; i++) {
		char text[24];
		size_t len = test_random_below(&seed, sizeof(text));
		int64_t value = 77;

		for (size_t at = 0; at < len; at++)
			text[at] = letters[test_random_below(&seed, sizeof(letters) - 1)];
		text[len] = '\0';
		if (hf_quantity_parse_milli(text, &value, NULL) != 0)
			assert_int_equal(value, 77);
		else
			assert_true(value >= -INT64_MAX);
	}
}

static const char *print_canonical(const char *text, char *buf)
{
	struct hf_quantity quantity;
	struct hf_error err;

	if (hf_quantity_parse(text, &quantity, &err) != 0)
		fail_msg("'%s': %s", text, err.text);
	return hf_quantity_format(&quantity, buf);
}

static void an_exact_quantity_is_printed_as_an_api_server_does(void **state)
{
	static const struct {
		const char *text, *written;
	} rows[] = {
		{"0", "0"},
		{"0Gi", "0"},
		{"1", "1"},
		{"1000m", "1"},
		{"1500m", "1500m"},
		{"0.5", "500m"},
		{".25", "250m"},
		{"1000", "1k"},
		{"1200000", "1200k"},
		{"1001", "1001"},
		{"1024Mi", "1Gi"},
		{"0.5Gi", "512Mi"},
		{"1023", "1023"},
		{"1Ki", "1Ki"},
		{"1.5Ki", "1536"},
		{"0.1Ki", "102400m"},
		{"100Ki", "100Ki"},
		{"1e3", "1e3"},
		{"1500e0", "1500e0"},
		{"12e-1", "1200e-3"},
		{"1n", "1n"},
		{"0.1n", "1n"},
		{"1.0000000001", "1000000001n"},
		{"9223372036854775807", "9223372036854775807"},
		{"9223372036854775808", "9223372036854775807"},
		{"8Ei", "9223372036854775807"},
		{"3E", "3E"},
	};
	char buf[HF_QUANTITY_TEXT_MAX];

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++)
		assert_string_equal(print_canonical(rows[i].text, buf), rows[i].written);
}

static void a_negative_text_is_no_exact_quantity(void **state)
{
	struct hf_quantity quantity;
	struct hf_error err;

	assert_int_equal(hf_quantity_parse("-1", &quantity, &err), HF_E_INVALID);
	assert_int_equal(hf_quantity_parse("one", &quantity, &err), HF_E_INVALID);
}

static void a_sum_is_exact_and_takes_the_form_of_its_first_summand(void **state)
{
	static const struct {
		const char *a, *b;
		int32_t n;
		const char *sum;
	} rows[] = {
		{"0", "2Gi", 3, "6Gi"},
		{"100m", "2", 2, "4100m"},
		{"1Gi", "1", 1, "1073741825"},
		{"1", "1Ki", 1, "1025"},
		{"500m", "500m", 3, "2"},
		{"1", "1", 0, "1"},
		{"0", "1n", 20000, "20u"},
		{"5E", "5E", 4, "9223372036854775807"},
		{"0", "999999999n", 20000, "19999999980u"},
	};
	char buf[HF_QUANTITY_TEXT_MAX];

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		struct hf_quantity a, b;
		struct hf_error err;

		assert_int_equal(hf_quantity_parse(rows[i].a, &a, &err), 0);
		assert_int_equal(hf_quantity_parse(rows[i].b, &b, &err), 0);
		hf_quantity_add(&a, &b, rows[i].n);
		assert_string_equal(hf_quantity_format(&a, buf), rows[i].sum);
	}
}

/* A printed quantity reads as the same value, and its text fits into the buffer. */
static void a_printed_quantity_reads_the_same(void **state)
{
	static const char letters[] = "0123456789.eEnumkKMGTPi";
	uint64_t seed = 11;

	for (int i = 0; i < 100000; i++) {
		char text[24], once[HF_QUANTITY_TEXT_MAX], twice[HF_QUANTITY_TEXT_MAX];
		size_t len = test_random_below(&seed, sizeof(text));
		struct hf_quantity quantity, again;

		for (size_t at = 0; at < len; at++)
			text[at] = letters[test_random_below(&seed, sizeof(letters) - 1)];
		text[len] = '\0';
		if (hf_quantity_parse(text, &quantity, NULL) != 0)
			continue;
		hf_quantity_format(&quantity, once);
		assert_int_equal(hf_quantity_parse(once, &again, NULL), 0);
		assert_string_equal(hf_quantity_format(&again, twice), once);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_numbers_are_thousandths),
		cmocka_unit_test(decimal_suffixes_scale_by_thousands),
		cmocka_unit_test(binary_suffixes_scale_by_1024),
		cmocka_unit_test(exponents_scale_by_powers_of_ten),
		cmocka_unit_test(a_value_finer_than_a_thousandth_is_rounded_up),
		cmocka_unit_test(a_value_that_does_not_fit_is_capped),
		cmocka_unit_test(a_text_that_is_no_quantity_is_refused_with_upstreams_text),
		cmocka_unit_test(a_text_is_bounded),
		cmocka_unit_test(all_ways_to_write_a_number_agree),
		cmocka_unit_test(binary_numbers_agree_with_shifts),
		cmocka_unit_test(no_text_does_harm),
		cmocka_unit_test(an_exact_quantity_is_printed_as_an_api_server_does),
		cmocka_unit_test(a_negative_text_is_no_exact_quantity),
		cmocka_unit_test(a_sum_is_exact_and_takes_the_form_of_its_first_summand),
		cmocka_unit_test(a_printed_quantity_reads_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
