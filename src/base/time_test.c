/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/time.h"

#include "harness/test.h"
#include "harness/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *format_time(hf_time t)
{
	static char text[HF_TIME_TEXT_MAX];

	hf_time_format(t, text);
	return text;
}

static hf_time parse_time(const char *text)
{
	struct hf_error err;
	hf_time t = 77;

	if (hf_time_parse(text, &t, &err) != 0)
		fail_msg("%s", err.text);
	return t;
}

static void known_times_are_written_and_read(void **state)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} rows[] = {
		{0, "1970-01-01T00:00:00Z"},           {-1, "1969-12-31T23:59:59Z"},
		{951782400, "2000-02-29T00:00:00Z"},   {951868799, "2000-02-29T23:59:59Z"},
		{951868800, "2000-03-01T00:00:00Z"},   {1709164800, "2024-02-29T00:00:00Z"},
		{1735689599, "2024-12-31T23:59:59Z"},  {1735689600, "2025-01-01T00:00:00Z"},
		{4107542400, "2100-03-01T00:00:00Z"}, /* 2100 is not a leap year */
		{4107542399, "2100-02-28T23:59:59Z"},  {-2203891200, "1900-03-01T00:00:00Z"},
		{-2203891201, "1900-02-28T23:59:59Z"}, {2147483648, "2038-01-19T03:14:08Z"},
		{-9214560000, "1678-01-01T00:00:00Z"}, {9214646399, "2261-12-31T23:59:59Z"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		assert_string_equal(format_time(rows[i].seconds * HF_SECOND), rows[i].text);
		assert_true(parse_time(rows[i].text) == rows[i].seconds * HF_SECOND);
	}
}

static void the_ends_of_the_range_can_be_written(void **state)
{
	char text[HF_TIME_TEXT_MAX];

	assert_string_equal(format_time(HF_TIME_NEVER), "2262-04-11T23:47:16Z");
	assert_string_equal(format_time(HF_TIME_NONE + 1), "1677-09-21T00:12:43Z");
	hf_time_format_micro(HF_TIME_NEVER, text);
	assert_string_equal(text, "2262-04-11T23:47:16.854775Z");
}

static void not_set_is_written_as_nothing(void **state)
{
	char text[HF_TIME_TEXT_MAX] = "x";

	assert_string_equal(format_time(HF_TIME_NONE), "");
	hf_time_format_micro(HF_TIME_NONE, text);
	assert_string_equal(text, "");
	hf_time_format_milli(HF_TIME_NONE, text);
	assert_string_equal(text, "");
}

static void fractions_are_cut_toward_the_past(void **state)
{
	char text[HF_TIME_TEXT_MAX];

	assert_string_equal(format_time(1999999999), "1970-01-01T00:00:01Z");
	assert_string_equal(format_time(-1), "1969-12-31T23:59:59Z");
	hf_time_format_milli(1999999999, text);
	assert_string_equal(text, "1970-01-01T00:00:01.999Z");
	hf_time_format_micro(1999999999, text);
	assert_string_equal(text, "1970-01-01T00:00:01.999999Z");
	hf_time_format_micro(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
	hf_time_format_micro(5 * HF_US, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000005Z");
}

static void fractions_are_read_to_the_nanosecond(void **state)
{
	assert_int_equal(parse_time("1970-01-01T00:00:00.5Z"), 500 * HF_MS);
	assert_int_equal(parse_time("1970-01-01T00:00:00.000000Z"), 0);
	assert_int_equal(parse_time("1970-01-01T00:00:00.000001Z"), HF_US);
	assert_int_equal(parse_time("1970-01-01T00:00:00.123456789Z"), 123456789);
	assert_int_equal(parse_time("1970-01-01T00:00:00.1234567899999Z"), 123456789);
	assert_int_equal(parse_time("1969-12-31T23:59:59.999999999Z"), -1);
}

static void any_offset_is_taken_off(void **state)
{
	assert_int_equal(parse_time("1970-01-01T02:00:00+02:00"), 0);
	assert_int_equal(parse_time("1969-12-31T19:00:00-05:00"), 0);
	assert_int_equal(parse_time("1970-01-01T05:30:00.25+05:30"), 250 * HF_MS);
	assert_int_equal(parse_time("1970-01-01T00:00:00-00:00"), 0);
	assert_int_equal(parse_time("1970-01-01T23:59:00+23:59"), 0);
	/* The first and the last year are accepted with any offset. */
	parse_time("1678-01-01T00:00:00+23:59");
	parse_time("2261-12-31T23:59:59.999999999-23:59");
}

static void a_text_that_is_no_time_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"now",
		"2024",
		"2024-01-01",
		"2024-01-01T00:00:00",
		"2024-01-01 00:00:00Z",
		"2024-01-01t00:00:00Z",
		"2024-01-01T00:00:00z",
		"2024-1-01T00:00:00Z",
		"2024-00-01T00:00:00Z",
		"2024-13-01T00:00:00Z",
		"2024-01-00T00:00:00Z",
		"2024-01-32T00:00:00Z",
		"2024-04-31T00:00:00Z",
		"2023-02-29T00:00:00Z",
		"2100-02-29T00:00:00Z",
		"2024-02-30T00:00:00Z",
		"2024-01-01T24:00:00Z",
		"2024-01-01T00:60:00Z",
		"2024-01-01T00:00:60Z",
		"2024-01-01T00:00Z",
		"2024-01-01T00:00:00.Z",
		"2024-01-01T00:00:00,5Z",
		"2024-01-01T00:00:00.5",
		"2024-01-01T00:00:00+0200",
		"2024-01-01T00:00:00+02",
		"2024-01-01T00:00:00+24:00",
		"2024-01-01T00:00:00+02:60",
		"2024-01-01T00:00:00ZZ",
		"2024-01-01T00:00:00Z ",
		" 2024-01-01T00:00:00Z",
		"+2024-01-01T00:00:00Z",
		"-024-01-01T00:00:00Z",
		"2024-01-01T00:00:00+02:00Z",
		"1677-12-31T23:59:59Z",
		"2262-01-01T00:00:00Z",
		"0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59Z",
		"20240101T000000Z",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		struct hf_error err;
		hf_time t = 77;

		if (hf_time_parse(texts[i], &t, &err) != HF_E_INVALID)
			fail_msg("'%s' was taken", texts[i]);
		assert_int_equal(t, 77);
		assert_non_null(strstr(err.text, "is not a time"));
	}
}

static void every_day_comes_back(void **state)
{
	int month_was = 12, day_was = 31;

	for (hf_time day = -106000; day < 106000; day++) {
		const char *text = format_time(day * HF_DAY + 43200 * HF_SECOND);
		int year, month, of_month;

		assert_int_equal(sscanf(text, "%d-%d-%dT", &year, &month, &of_month), 3);
		assert_true(strstr(text, "T12:00:00Z") == text + 10);
		/* Each date is one day after the previous date, or the first of a month. */
		if (day > -106000)
			assert_true((month == month_was && of_month == day_was + 1) ||
				    (of_month == 1 && month == month_was % 12 + 1));
		month_was = month;
		day_was = of_month;
		if (year >= 1678 && year <= 2261)
			assert_true(parse_time(text) == day * HF_DAY + 43200 * HF_SECOND);
	}
}

static void any_time_comes_back_from_its_text(void **state)
{
	uint64_t seed = 10;

	for (int i = 0; i < 50000; i++) {
		hf_time t = (hf_time)test_random(&seed) / 100 * 97;
		char text[HF_TIME_TEXT_MAX];

		assert_true(parse_time(format_time(t)) == hf_time_floor_second(t));
		hf_time_format_micro(t, text);
		assert_int_equal(strlen(text), 27);
		assert_true(t - parse_time(text) >= 0 && t - parse_time(text) < HF_US);
		hf_time_format_milli(t, text);
		assert_true(t - parse_time(text) >= 0 && t - parse_time(text) < HF_MS);
	}
}

static void no_text_does_harm_to_parsing(void **state)
{
	static const char letters[] = "0123456789-:.TZ+zhmsu \xc2\xb5";
	uint64_t seed = 11;

	for (int i = 0; i < 100000; i++) {
		char text[40] = "2024-06-15T12:30:45.125+02:00";
		size_t changes = 1 + test_random_below(&seed, 4);
		hf_time t = 77;

		for (size_t c = 0; c < changes; c++)
			text[test_random_below(&seed, 31)] =
				letters[test_random_below(&seed, sizeof(letters))];
		if (hf_time_parse(text, &t, NULL) != 0)
			assert_int_equal(t, 77);
		t = 77;
		if (hf_span_parse(text + test_random_below(&seed, 31), &t, NULL) != 0)
			assert_int_equal(t, 77);
		else
			assert_true(t >= 0);
	}
}

/* The expected texts were printed by apimachinery's HumanDuration, which kubectl uses. */
static void spans_are_written_as_kubectl_does(void **state)
{
	static const struct {
		hf_time span;
		const char *text;
	} rows[] = {
		{0, "0s"},
		{HF_SECOND - 1, "0s"},
		{12 * HF_SECOND, "12s"},
		{119 * HF_SECOND, "119s"},
		{120 * HF_SECOND, "2m"},
		{198 * HF_SECOND, "3m18s"},
		{10 * HF_MINUTE - 1, "9m59s"},
		{10 * HF_MINUTE, "10m"},
		{10 * HF_MINUTE + 30 * HF_SECOND, "10m"},
		{179 * HF_MINUTE, "179m"},
		{3 * HF_HOUR, "3h"},
		{3 * HF_HOUR + 7 * HF_MINUTE, "3h7m"},
		{8 * HF_HOUR - 1, "7h59m"},
		{8 * HF_HOUR + 30 * HF_MINUTE, "8h"},
		{47 * HF_HOUR, "47h"},
		{48 * HF_HOUR, "2d"},
		{52 * HF_HOUR, "2d4h"},
		{8 * HF_DAY - 1, "7d23h"},
		{8 * HF_DAY + 5 * HF_HOUR, "8d"},
		{729 * HF_DAY, "729d"},
		{730 * HF_DAY, "2y"},
		{731 * HF_DAY, "2y1d"},
		{8 * 365 * HF_DAY - 1, "7y364d"},
		{8 * 365 * HF_DAY, "8y"},
		{HF_TIME_NEVER, "292y"},
		{-1, "0s"},
		{-1999 * HF_MS, "0s"},
		{-2 * HF_SECOND, "<invalid>"},
		{HF_TIME_NONE + 1, "<invalid>"},
		{HF_TIME_NONE, "<unknown>"},
	};
	char text[HF_TIME_TEXT_MAX];

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		hf_span_format(rows[i].span, text);
		assert_string_equal(text, rows[i].text);
	}
}

static void spans_are_read(void **state)
{
	static const struct {
		const char *text;
		hf_time span;
	} rows[] = {
		{"0", 0},
		{"90", 90 * HF_SECOND},
		{"90s", 90 * HF_SECOND},
		{"1m30s", 90 * HF_SECOND},
		{"500ms", 500 * HF_MS},
		{"2h", 2 * HF_HOUR},
		{"1.5h", 90 * HF_MINUTE},
		{".5s", 500 * HF_MS},
		{"1.s", HF_SECOND},
		{"1h0m0.5s", HF_HOUR + 500 * HF_MS},
		{"3us", 3 * HF_US},
		{"3\xc2\xb5s", 3 * HF_US},
		{"3\xce\xbcs", 3 * HF_US},
		{"7ns", 7},
		{"1.9ns", 1},
		{"0.000000000001h", 3},
		{"0.0000000002777777777777777777h", 999},
		{"0.99999999999999999999999999h", HF_HOUR - 1},
		{"1s1s1s", 3 * HF_SECOND},
		{"9223372036", 9223372036 * HF_SECOND},
		{"2562047h47m16.854775806s", HF_TIME_NEVER - 1},
		{"9223372036854775806ns", HF_TIME_NEVER - 1},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		struct hf_error err;
		hf_time span = 77;

		if (hf_span_parse(rows[i].text, &span, &err) != 0)
			fail_msg("%s", err.text);
		if (span != rows[i].span)
			fail_msg("'%s' is %" PRId64, rows[i].text, span);
	}
}

static void a_text_that_is_no_span_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"s",
		".",
		".s",
		"-1",
		"-1s",
		"+1s",
		"1 s",
		"1s ",
		"1d",
		"1w",
		"1S",
		"1H",
		"1.5",
		"1s5",
		"5m1",
		"1e3s",
		"1ss",
		"1.2.3s",
		"0x1s",
		"ms",
		"1\xc2",
		"1\xc2\xb5",
		"9223372037",
		"99999999999999999999",
		"2562048h",
		"99999999999999999999h",
		"9223372036854775807ns",
		"9223372036854775808ns",
		"2562047h47m16.854775808s",
		"2562047h2562047h",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		struct hf_error err;
		hf_time span = 77;

		if (hf_span_parse(texts[i], &span, &err) != HF_E_INVALID)
			fail_msg("'%s' was taken as %" PRId64, texts[i], span);
		assert_int_equal(span, 77);
		assert_non_null(strstr(err.text, "is not a duration"));
	}
}

static void sums_stop_at_the_ends(void **state)
{
	assert_int_equal(hf_time_add(1, 2), 3);
	assert_int_equal(hf_time_add(1, -2), -1);
	assert_true(hf_time_add(HF_TIME_NEVER - 1, 1) == HF_TIME_NEVER);
	assert_true(hf_time_add(HF_TIME_NEVER - 1, 2) == HF_TIME_NEVER);
	assert_true(hf_time_add(HF_TIME_NEVER - 1, HF_TIME_NEVER - 1) == HF_TIME_NEVER);
	/* A sum is never HF_TIME_NONE. */
	assert_true(hf_time_add(HF_TIME_NONE + 1, -1) == HF_TIME_NONE + 1);
	assert_true(hf_time_add(HF_TIME_NONE + 1, -100) == HF_TIME_NONE + 1);
}

static void never_and_not_set_stay_in_sums(void **state)
{
	assert_true(hf_time_add(HF_TIME_NEVER, -HF_DAY) == HF_TIME_NEVER);
	assert_true(hf_time_add(HF_DAY, HF_TIME_NEVER) == HF_TIME_NEVER);
	assert_true(hf_time_add(HF_TIME_NONE, HF_DAY) == HF_TIME_NONE);
	assert_true(hf_time_add(HF_DAY, HF_TIME_NONE) == HF_TIME_NONE);
	assert_true(hf_time_add(HF_TIME_NONE, HF_TIME_NEVER) == HF_TIME_NONE);
	assert_true(hf_time_add(HF_TIME_NEVER, HF_TIME_NONE) == HF_TIME_NONE);
}

static void seconds_are_floored(void **state)
{
	assert_int_equal(hf_time_floor_second(0), 0);
	assert_int_equal(hf_time_floor_second(HF_SECOND), HF_SECOND);
	assert_int_equal(hf_time_floor_second(HF_SECOND + 1), HF_SECOND);
	assert_int_equal(hf_time_floor_second(2 * HF_SECOND - 1), HF_SECOND);
	assert_true(hf_time_floor_second(-1) == -HF_SECOND);
	assert_true(hf_time_floor_second(-HF_SECOND) == -HF_SECOND);
	assert_true(hf_time_floor_second(-HF_SECOND - 1) == -2 * HF_SECOND);
	assert_true(hf_time_floor_second(HF_TIME_NONE) == HF_TIME_NONE);
	assert_true(hf_time_floor_second(HF_TIME_NEVER) == HF_TIME_NEVER);
	assert_true(hf_time_floor_second(HF_TIME_NONE + 1) == -9223372036 * HF_SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_times_are_written_and_read),
		cmocka_unit_test(the_ends_of_the_range_can_be_written),
		cmocka_unit_test(not_set_is_written_as_nothing),
		cmocka_unit_test(fractions_are_cut_toward_the_past),
		cmocka_unit_test(fractions_are_read_to_the_nanosecond),
		cmocka_unit_test(any_offset_is_taken_off),
		cmocka_unit_test(a_text_that_is_no_time_is_refused),
		cmocka_unit_test(every_day_comes_back),
		cmocka_unit_test(any_time_comes_back_from_its_text),
		cmocka_unit_test(no_text_does_harm_to_parsing),
		cmocka_unit_test(spans_are_written_as_kubectl_does),
		cmocka_unit_test(spans_are_read),
		cmocka_unit_test(a_text_that_is_no_span_is_refused),
		cmocka_unit_test(sums_stop_at_the_ends),
		cmocka_unit_test(never_and_not_set_stay_in_sums),
		cmocka_unit_test(seconds_are_floored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
