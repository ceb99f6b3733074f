/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/quantity.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Kubernetes has no limit here; nothing a person or a program writes comes near. */
#define TEXT_MAX 256

/* Milli: three decimal places more than the number as written. */
#define MILLI_PLACES 3

/* Any exponent past these is "far too large" or "next to nothing", all the same. */
#define EXPONENT_MAX 100000

#define FORMAT_WRONG                                                                               \
	"quantities must match the regular expression "                                            \
	"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
#define SUFFIX_WRONG "unable to parse quantity's suffix"

/* A number as decimal digits: the value is 0.d0d1d2… × 10^point × 1024^kibis. */
struct decimal {
	unsigned char digits[TEXT_MAX];
	int len;
	int point;
	int kibis;
	bool negative;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The number in front of the suffix; returns what follows it, NULL where there is none. */
static const char *read_number(const char *text, struct decimal *d)
{
	bool seen_point = false;
	bool seen_digit = false;

	d->negative = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	for (; is_digit(*text) || (*text == '.' && !seen_point); text++) {
		if (*text == '.') {
			seen_point = true;
			continue;
		}
		seen_digit = true;
		d->digits[d->len++] = (unsigned char)(*text - '0');
		if (!seen_point)
			d->point++;
	}
	return seen_digit ? text : NULL;
}

/* The digits behind "e": a sign and a whole number. */
static bool read_exponent(const char *text, int *ret_exponent)
{
	bool negative = *text == '-';
	int exponent = 0;

	if (*text == '-' || *text == '+')
		text++;
	if (!is_digit(*text))
		return false;
	for (; is_digit(*text); text++)
		/* Further digits are read, since they must be digits, and not counted. */
		if (exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (*text - '0');
	*ret_exponent = negative ? -exponent : exponent;
	return *text == '\0';
}

static bool read_suffix(const char *text, struct decimal *d)
{
	static const struct {
		const char *suffix;
		int places;
		int kibis;
	} suffixes[] = {
		{"", 0, 0},   {"n", -9, 0}, {"u", -6, 0}, {"m", -3, 0}, {"k", 3, 0},  {"M", 6, 0},
		{"G", 9, 0},  {"T", 12, 0}, {"P", 15, 0}, {"E", 18, 0}, {"Ki", 0, 1}, {"Mi", 0, 2},
		{"Gi", 0, 3}, {"Ti", 0, 4}, {"Pi", 0, 5}, {"Ei", 0, 6},
	};
	int exponent;

	for (size_t i = 0; i < HF_ARRAY_LEN(suffixes); i++) {
		if (strcmp(text, suffixes[i].suffix) != 0)
			continue;
		d->point += suffixes[i].places;
		d->kibis = suffixes[i].kibis;
		return true;
	}
	if ((*text != 'e' && *text != 'E') || !read_exponent(text + 1, &exponent))
		return false;
	d->point += exponent;
	return true;
}

/* whole × factor + more, no larger than the cap. */
static uint64_t add_capped(uint64_t whole, uint64_t factor, uint64_t more)
{
	uint64_t product, sum;

	if (__builtin_mul_overflow(whole, factor, &product) ||
	    __builtin_add_overflow(product, more, &sum) || sum > INT64_MAX)
		return INT64_MAX;
	return sum;
}

/*
 * Exact long-hand arithmetic: the digits before the point make `whole`, those behind
 * it stay digits, so that nothing is lost before the one rounding at the end.
 */
static int64_t decimal_round_up(struct decimal *d)
{
	uint64_t whole = 0;
	int from = d->point < 0 ? 0 : d->point;
	bool rest = false;

	for (int i = 0; i < d->point && (i < d->len || whole); i++) {
		whole = add_capped(whole, 10, i < d->len ? d->digits[i] : 0);
		if (whole == INT64_MAX)
			break;
	}
	/* A factor of 1024 at a time, from the last digit to the first; what is carried
	 * past the point joins the whole. */
	for (int k = 0; k < d->kibis; k++) {
		unsigned int carry = 0;

		for (int i = d->len - 1; i >= from; i--) {
			unsigned int t = d->digits[i] * 1024u + carry;

			d->digits[i] = (unsigned char)(t % 10);
			carry = t / 10;
		}
		whole = add_capped(whole, 1024, carry);
	}
	for (int i = from; i < d->len; i++)
		rest = rest || d->digits[i] != 0;
	if (rest && whole < INT64_MAX)
		whole++;
	return d->negative ? -(int64_t)whole : (int64_t)whole;
}

int hf_quantity_parse_milli(const char *text, int64_t *ret_milli, struct hf_error *err)
{
	struct decimal d = {.len = 0};
	const char *suffix;

	if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
		return hf_error_set(err, HF_E_INVALID, "a quantity has at most %d bytes", TEXT_MAX);
	suffix = read_number(text, &d);
	if (!suffix)
		return hf_error_set(err, HF_E_INVALID, "%s", FORMAT_WRONG);
	if (!read_suffix(suffix, &d))
		return hf_error_set(err, HF_E_INVALID, "%s",
				    strspn(suffix, "eEinumkKMGTP+-0123456789") == strlen(suffix)
					    ? SUFFIX_WRONG
					    : FORMAT_WRONG);
	d.point += MILLI_PLACES;
	*ret_milli = decimal_round_up(&d);
	return 0;
}
