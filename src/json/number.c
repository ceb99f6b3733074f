/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Prints real numbers with the fewest digits that read back as the same number, in two layouts:
 * Go's encoding/json and Go's strconv.
 */
#include "json/number_internal.h"

#include "base/ascii.h"
#include "base/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 15 digits always survive the conversion to a normal double and back, so the search starts
 * there; trailing zeros are cut. 17 digits always identify a double. Subnormal numbers have
 * fewer significant digits. */
#define DIGITS_MIN 15
#define DIGITS_MAX 17
#define TWO_TO_63 9223372036854775808.0

/* Finds the significant digits of d without trailing zeros. Returns the power of ten of the
 * first digit. */
static int find_digits(double d, char ret_digits[DIGITS_MAX + 1])
{
	char text[32];
	size_t len = 0;

	for (int digits = d < 0x1p-1022 ? 1 : DIGITS_MIN; digits <= DIGITS_MAX; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits - 1, d);
		double back = strtod(text, NULL);
		if (back <= d && back >= d)
			break;
	}
	char *e = strchr(text, 'e');
	hf_assert(e);
	for (const char *p = text; p < e; p++)
		if (hf_ascii_is_digit(*p))
			ret_digits[len++] = *p;
	while (len > 1 && ret_digits[len - 1] == '0')
		len--;
	ret_digits[len] = '\0';
	return (int)strtol(e + 1, NULL, 10);
}

/* The zeros of a long number are cut from the start of a literal with enough zeros. */
void hf_json_format_real(double d, char ret_text[HF_JSON_REAL_TEXT_MAX])
{
	char digits[DIGITS_MAX + 1];
	const char *sign = __builtin_signbit(d) ? "-" : "";
	int exp = find_digits(__builtin_fabs(d), digits);
	int len = (int)strlen(digits);

	if (digits[0] == '0')
		snprintf(ret_text, HF_JSON_REAL_TEXT_MAX, "%s0.0", sign);
	else if (exp < -6 || exp >= 21)
		snprintf(ret_text, HF_JSON_REAL_TEXT_MAX, "%s%c%s%se%s%d", sign, digits[0],
			 len > 1 ? "." : "", digits + 1, exp < 0 ? "-" : "+", abs(exp));
	else if (exp < 0)
		snprintf(ret_text, HF_JSON_REAL_TEXT_MAX, "%s0.%.*s%s", sign, -exp - 1, "00000",
			 digits);
	else if (len > exp + 1)
		snprintf(ret_text, HF_JSON_REAL_TEXT_MAX, "%s%.*s.%s", sign, exp + 1, digits,
			 digits + exp + 1);
	else
		snprintf(ret_text, HF_JSON_REAL_TEXT_MAX, "%s%s%.*s.0", sign, digits, exp + 1 - len,
			 "00000000000000000000");
}

void hf_json_format_real_short(double d, char ret_text[HF_JSON_REAL_TEXT_MAX])
{
	char digits[DIGITS_MAX + 1];
	const char *sign = __builtin_signbit(d) ? "-" : "";
	int exp = find_digits(__builtin_fabs(d), digits);

	if (digits[0] == '0' || (exp >= -4 && exp < 6)) {
		hf_json_format_real(d, ret_text);
		char *point = strstr(ret_text, ".0");
		if (point && point[2] == '\0')
			*point = '\0';
		return;
	}
	snprintf(ret_text, HF_JSON_REAL_TEXT_MAX, "%s%c%s%se%s%02d", sign, digits[0],
		 digits[1] ? "." : "", digits + 1, exp < 0 ? "-" : "+", abs(exp));
}

bool hf_json_whole(double d, int64_t *ret_integer)
{
	if (!(d >= -TWO_TO_63 && d < TWO_TO_63))
		return false;
	double back = (double)(int64_t)d;
	if (back < d || back > d)
		return false;
	*ret_integer = (int64_t)d;
	return true;
}
