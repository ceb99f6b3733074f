/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Points in time and spans as text: RFC 3339, kubectl's ages, Go's durations.
 *
 * All dates are computed by arithmetic on days. The C library's gmtime and mktime read the
 * environment (TZ) or a zone database, which a pure module must not do.
 */
#include "base/time.h"

#include "base/ascii.h"
#include "base/str.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The whole years that fit into 64 bits of nanoseconds with any zone offset. */
#define YEAR_MIN 1678
#define YEAR_MAX 2261

#define SECONDS_PER_DAY 86400
#define DIGITS "0123456789"

/* Days since 1970-01-01 in the proleptic Gregorian calendar. The calendar is split into eras of
 * 400 years. Years begin on 1 March here, so that a leap day is the last day of its year. */
static int64_t days_from_civil(int64_t year, int month, int day)
{
	int64_t era;
	int64_t of_era, of_year, day_of_era;

	if (month <= 2)
		year--;
	era = (year >= 0 ? year : year - 399) / 400;
	of_era = year - era * 400;
	of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
	day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
	return era * 146097 + day_of_era - 719468;
}

static void civil_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int64_t era, day_of_era, of_era, of_year, m;

	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	day_of_era = days - era * 146097;
	of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	of_year = day_of_era - (365 * of_era + of_era / 4 - of_era / 100);
	m = (5 * of_year + 2) / 153;
	*ret_day = (int)(of_year - (153 * m + 2) / 5 + 1);
	*ret_month = (int)(m < 10 ? m + 3 : m - 9);
	*ret_year = (int)(of_era + era * 400 + (*ret_month <= 2));
}

/* Division that rounds down. C rounds toward zero, which gives the wrong day before 1970. */
static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Writes the last `count` digits of value and the character `then`. Returns the position after
 * it. */
static char *put_digits(char *at, int64_t value, int count, char then)
{
	for (int i = count - 1; i >= 0; i--) {
		at[i] = (char)('0' + value % 10);
		value /= 10;
	}
	at[count] = then;
	return at + count + 1;
}

/* places is the number of fraction digits: 0, 3 or 6. The digits are written by hand, because
 * printf takes ten times as long. */
static void format_time(hf_time t, int places, char ret_text[HF_TIME_TEXT_MAX])
{
	int64_t seconds = floor_div(t, HF_SECOND);
	/* Not t - seconds × 10^9: in the first second of the range, that subtraction would
	 * overflow. */
	int64_t nanos = (t % HF_SECOND + HF_SECOND) % HF_SECOND;
	int64_t days = floor_div(seconds, SECONDS_PER_DAY);
	int of_day = (int)(seconds - days * SECONDS_PER_DAY);
	int year, month, day;
	char *at = ret_text;

	if (t == HF_TIME_NONE) {
		ret_text[0] = '\0';
		return;
	}
	civil_from_days(days, &year, &month, &day);
	hf_assert(year >= YEAR_MIN - 1 && year <= YEAR_MAX + 1);
	at = put_digits(at, year, 4, '-');
	at = put_digits(at, month, 2, '-');
	at = put_digits(at, day, 2, 'T');
	at = put_digits(at, of_day / 3600, 2, ':');
	at = put_digits(at, of_day / 60 % 60, 2, ':');
	at = put_digits(at, of_day % 60, 2, places > 0 ? '.' : 'Z');
	if (places == 6)
		at = put_digits(at, nanos / HF_US, 6, 'Z');
	else if (places == 3)
		at = put_digits(at, nanos / HF_MS, 3, 'Z');
	*at = '\0';
}

void hf_time_format(hf_time t, char ret_text[HF_TIME_TEXT_MAX])
{
	format_time(t, 0, ret_text);
}

void hf_time_format_milli(hf_time t, char ret_text[HF_TIME_TEXT_MAX])
{
	format_time(t, 3, ret_text);
}

void hf_time_format_micro(hf_time t, char ret_text[HF_TIME_TEXT_MAX])
{
	format_time(t, 6, ret_text);
}

/* Reads exactly `count` digits with a value in [min, max], and then the character `then` unless
 * it is NUL. */
static bool read_digits(const char **text, int count, int min, int max, char then, int *ret_value)
{
	int value = 0;

	for (int i = 0; i < count; i++, (*text)++) {
		if (!hf_ascii_is_digit(**text))
			return false;
		value = value * 10 + (**text - '0');
	}
	if (value < min || value > max)
		return false;
	if (then && *(*text)++ != then)
		return false;
	*ret_value = value;
	return true;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* Reads ".25" as nanoseconds. The fraction may be missing, but a "." without digits is an error. */
static bool read_fraction(const char **text, int64_t *ret_nanos)
{
	int64_t unit = HF_SECOND / 10;
	int64_t nanos = 0;

	*ret_nanos = 0;
	if (**text != '.')
		return true;
	(*text)++;
	if (!hf_ascii_is_digit(**text))
		return false;
	for (; hf_ascii_is_digit(**text); (*text)++) {
		nanos += (**text - '0') * unit;
		unit /= 10;
	}
	*ret_nanos = nanos;
	return true;
}

/* Reads "Z" or "+hh:mm" up to the end of the text. */
static bool read_zone(const char *text, int *ret_seconds)
{
	char sign = *text++;
	int hours, minutes;

	*ret_seconds = 0;
	if (sign == 'Z')
		return *text == '\0';
	if ((sign != '+' && sign != '-') || !read_digits(&text, 2, 0, 23, ':', &hours) ||
	    !read_digits(&text, 2, 0, 59, '\0', &minutes) || *text)
		return false;
	*ret_seconds = (hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
	return true;
}

int hf_time_parse(const char *text, hf_time *ret_time, struct hf_error *err)
{
	const char *p = text;
	int year, month, day, hour, minute, second, zone;
	int64_t nanos, seconds;

	if (!read_digits(&p, 4, YEAR_MIN, YEAR_MAX, '-', &year) ||
	    !read_digits(&p, 2, 1, 12, '-', &month) || !read_digits(&p, 2, 1, 31, 'T', &day) ||
	    day > days_in_month(year, month) || !read_digits(&p, 2, 0, 23, ':', &hour) ||
	    !read_digits(&p, 2, 0, 59, ':', &minute) || !read_digits(&p, 2, 0, 59, '\0', &second) ||
	    !read_fraction(&p, &nanos) || !read_zone(p, &zone))
		return hf_error_set(err, HF_E_INVALID,
				    "'%.64s' is not a time as in '2006-01-02T15:04:05Z' "
				    "of the years %d to %d",
				    text, YEAR_MIN, YEAR_MAX);
	seconds = days_from_civil(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 +
		  second - zone;
	*ret_time = seconds * HF_SECOND + nanos;
	return 0;
}

/* Writes "<a><unit>", and appends "<b><unit>" unless b is 0. */
static void print_units(char ret_text[HF_TIME_TEXT_MAX], int64_t a, char a_unit, int64_t b,
			char b_unit)
{
	int n = snprintf(ret_text, HF_TIME_TEXT_MAX, "%lld%c", (long long)a, a_unit);

	if (b)
		n += snprintf(ret_text + n, HF_TIME_TEXT_MAX - (size_t)n, "%lld%c", (long long)b,
			      b_unit);
	hf_assert(n < HF_TIME_TEXT_MAX);
}

/* The steps are kubectl's, so that both programs print the same age. */
void hf_span_format(hf_time span, char ret_text[HF_TIME_TEXT_MAX])
{
	int64_t seconds = span / HF_SECOND;
	int64_t minutes = span / HF_MINUTE;
	int64_t hours = span / HF_HOUR;
	int64_t days = span / HF_DAY;

	if (span == HF_TIME_NONE)
		(void)snprintf(ret_text, HF_TIME_TEXT_MAX, "<unknown>");
	else if (seconds < -1)
		(void)snprintf(ret_text, HF_TIME_TEXT_MAX, "<invalid>");
	else if (seconds < 120)
		/* Clocks may differ by a second: -1 s is "0s", not "<invalid>". */
		print_units(ret_text, seconds < 0 ? 0 : seconds, 's', 0, 0);
	else if (minutes < 10)
		print_units(ret_text, minutes, 'm', seconds % 60, 's');
	else if (minutes < 180)
		print_units(ret_text, minutes, 'm', 0, 0);
	else if (hours < 8)
		print_units(ret_text, hours, 'h', minutes % 60, 'm');
	else if (hours < 48)
		print_units(ret_text, hours, 'h', 0, 0);
	else if (days < 8)
		print_units(ret_text, days, 'd', hours % 24, 'h');
	else if (days < 2 * 365)
		print_units(ret_text, days, 'd', 0, 0);
	else if (days < 8 * 365)
		print_units(ret_text, days / 365, 'y', days % 365, 'd');
	else
		print_units(ret_text, days / 365, 'y', 0, 0);
}

/* Reads the unit at the start of text. Returns its length, or 0 if there is none. */
static size_t read_unit(const char *text, hf_time *ret_unit)
{
	/* "ms" stands before "m", because the first match wins. */
	static const struct {
		const char *name;
		hf_time unit;
	} units[] = {
		{"ns", 1},
		{"us", HF_US},
		{"\xc2\xb5s", HF_US}, /* U+00B5, the micro sign */
		{"\xce\xbcs", HF_US} /* U+03BC, the Greek letter mu */,
		{"ms", HF_MS},
		{"s", HF_SECOND},
		{"m", HF_MINUTE},
		{"h", HF_HOUR},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(units); i++) {
		if (!hf_str_has_prefix(text, units[i].name))
			continue;
		*ret_unit = units[i].unit;
		return strlen(units[i].name);
	}
	return 0;
}

/* Returns the digits after a decimal point as nanoseconds of the unit, rounded down. The loop
 * runs from the last digit to the first and rounds each division down, which rounds the total
 * down correctly. */
static hf_time scale_fraction(const char *digits, size_t len, hf_time unit)
{
	hf_time part = 0;

	while (len--)
		part = ((digits[len] - '0') * unit + part) / 10;
	return part;
}

/* Reads one part, for example "1.5h". False if it has no digit or no unit, or if it does not
 * fit. */
static bool read_span_part(const char **text, hf_time *ret_part)
{
	const char *whole_at = *text;
	size_t whole_len = strspn(whole_at, DIGITS);
	const char *fraction_at = whole_at + whole_len + (whole_at[whole_len] == '.');
	size_t fraction_len = whole_at[whole_len] == '.' ? strspn(fraction_at, DIGITS) : 0;
	hf_time whole = 0, unit;
	size_t unit_len = read_unit(fraction_at + fraction_len, &unit);

	if (!unit_len || whole_len + fraction_len == 0)
		return false;
	for (size_t i = 0; i < whole_len; i++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, whole_at[i] - '0', &whole))
			return false;
	*text = fraction_at + fraction_len + unit_len;
	return !__builtin_mul_overflow(whole, unit, &whole) &&
	       !__builtin_add_overflow(whole, scale_fraction(fraction_at, fraction_len, unit),
				       ret_part);
}

/* Reads a bare number (seconds, which Go refuses) or a duration of Go. */
static bool read_span(const char *text, hf_time *ret_span)
{
	hf_time span = 0, part;
	int64_t seconds;

	if (*text && !text[strspn(text, DIGITS)])
		return hf_str_to_i64(text, 0, HF_TIME_NEVER / HF_SECOND, &seconds, NULL) == 0 &&
		       !__builtin_mul_overflow(seconds, HF_SECOND, ret_span);
	do {
		if (!read_span_part(&text, &part) || __builtin_add_overflow(span, part, &span))
			return false;
	} while (*text);
	/* The largest number is HF_TIME_NEVER, so it is refused as a duration. */
	if (span == HF_TIME_NEVER)
		return false;
	*ret_span = span;
	return true;
}

int hf_span_parse(const char *text, hf_time *ret_span, struct hf_error *err)
{
	if (!read_span(text, ret_span))
		return hf_error_set(err, HF_E_INVALID,
				    "'%.64s' is not a duration as in '90s', '1m30s' or '500ms'",
				    text);
	return 0;
}

hf_time hf_time_add(hf_time a, hf_time b)
{
	hf_time sum;

	if (a == HF_TIME_NONE || b == HF_TIME_NONE)
		return HF_TIME_NONE;
	if (a == HF_TIME_NEVER || b == HF_TIME_NEVER)
		return HF_TIME_NEVER;
	if (!__builtin_add_overflow(a, b, &sum))
		return sum == HF_TIME_NONE ? HF_TIME_NONE + 1 : sum;
	/* A negative overflow stops just above HF_TIME_NONE. */
	return a > 0 ? HF_TIME_NEVER : HF_TIME_NONE + 1;
}

hf_time hf_time_floor_second(hf_time t)
{
	hf_time floor;

	if (t == HF_TIME_NONE || t == HF_TIME_NEVER)
		return t;
	/* The first second of the range is incomplete: round up there. */
	if (__builtin_mul_overflow(floor_div(t, HF_SECOND), HF_SECOND, &floor))
		return t / HF_SECOND * HF_SECOND;
	return floor;
}
