/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Kubernetes quantities ("100m", "2Gi", "1e3"): parse, add and print, with exact decimal
 * arithmetic.
 *
 * Invariant: each value is rounded once, at the end, and always up. Values that are too large are
 * capped, never wrapped.
 */
#include "base/quantity.h"

#include "base/ascii.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Most bytes of a quantity's text. Kubernetes has no such limit; real quantities are far
 * shorter. */
#define TEXT_MAX 256

/* A value in thousandths has three more decimal places than the written number. */
#define MILLI_PLACES 3

/* Larger exponents change nothing: the result is capped, or rounds to the smallest unit. */
#define EXPONENT_MAX 100000

#define FORMAT_WRONG                                                                               \
	"quantities must match the regular expression "                                            \
	"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
#define SUFFIX_WRONG "unable to parse quantity's suffix"

/* A number as decimal digits. Its value is 0.d0d1d2… × 10^point × 1024^kibis. */
struct decimal {
	unsigned char digits[TEXT_MAX];
	int len;
	int point;
	int kibis;
	bool negative;
	bool exponent; /* the suffix is an exponent ("e3") */
};

/* Reads the sign and the number. Returns the suffix, or NULL if the text does not start with a
 * number. */
static const char *read_number(const char *text, struct decimal *d)
{
	bool seen_point = false;
	bool seen_digit = false;

	d->negative = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	for (; hf_ascii_is_digit(*text) || (*text == '.' && !seen_point); text++) {
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

/* Reads the exponent after "e" or "E": an optional sign and digits up to the end of the text. */
static bool read_exponent(const char *text, int *ret_exponent)
{
	bool negative = *text == '-';
	int exponent = 0;

	if (*text == '-' || *text == '+')
		text++;
	if (!hf_ascii_is_digit(*text))
		return false;
	for (; hf_ascii_is_digit(*text); text++)
		/* Check further digits, but do not add them: the exponent is too large already. */
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
	d->exponent = true;
	return true;
}

/* Returns whole × factor + more, or INT64_MAX if that is larger. */
static uint64_t add_capped(uint64_t whole, uint64_t factor, uint64_t more)
{
	uint64_t product, sum;

	if (__builtin_mul_overflow(whole, factor, &product) ||
	    __builtin_add_overflow(product, more, &sum) || sum > INT64_MAX)
		return INT64_MAX;
	return sum;
}

/* Returns the whole part, exactly: the digits before the point make the number, and the digits
 * after the point stay in d. So the fraction is complete when the caller rounds. */
static uint64_t take_whole_part(struct decimal *d)
{
	uint64_t whole = 0;
	int from = d->point < 0 ? 0 : d->point;

	for (int i = 0; i < d->point && (i < d->len || whole); i++) {
		whole = add_capped(whole, 10, i < d->len ? d->digits[i] : 0);
		if (whole == INT64_MAX)
			break;
	}
	/* Multiply the fraction by 1024, digit by digit from the last to the first. A carry
	 * beyond the point is added to the whole part. */
	for (int k = 0; k < d->kibis; k++) {
		unsigned int carry = 0;

		for (int i = d->len - 1; i >= from; i--) {
			unsigned int t = d->digits[i] * 1024u + carry;

			d->digits[i] = (unsigned char)(t % 10);
			carry = t / 10;
		}
		whole = add_capped(whole, 1024, carry);
	}
	return whole;
}

static int64_t round_decimal_up(struct decimal *d)
{
	uint64_t whole = take_whole_part(d);
	bool rest = false;

	for (int i = d->point < 0 ? 0 : d->point; i < d->len; i++)
		rest = rest || d->digits[i] != 0;
	if (rest && whole < INT64_MAX)
		whole++;
	return d->negative ? -(int64_t)whole : (int64_t)whole;
}

static int read_decimal(const char *text, struct decimal *d, struct hf_error *err)
{
	const char *suffix;

	if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
		return hf_error_set(err, HF_E_INVALID, "a quantity has at most %d bytes", TEXT_MAX);
	suffix = read_number(text, d);
	if (!suffix)
		return hf_error_set(err, HF_E_INVALID, "%s", FORMAT_WRONG);
	if (!read_suffix(suffix, d))
		return hf_error_set(err, HF_E_INVALID, "%s",
				    strspn(suffix, "eEinumkKMGTP+-0123456789") == strlen(suffix)
					    ? SUFFIX_WRONG
					    : FORMAT_WRONG);
	return 0;
}

int hf_quantity_parse_milli(const char *text, int64_t *ret_milli, struct hf_error *err)
{
	struct decimal d = {.len = 0};
	int rc = read_decimal(text, &d, err);

	if (rc != 0)
		return rc;
	d.point += MILLI_PLACES;
	*ret_milli = round_decimal_up(&d);
	return 0;
}

/* ---- exact quantities ----------------------------------------------------------------------- */

#define NANO 1000000000

static void normalize_quantity(struct hf_quantity *quantity, uint64_t whole, int64_t nano)
{
	whole = add_capped(whole, 1, (uint64_t)(nano / NANO));
	quantity->whole = (int64_t)whole;
	quantity->nano = whole == INT64_MAX ? 0 : (int32_t)(nano % NANO);
}

int hf_quantity_parse(const char *text, struct hf_quantity *ret_quantity, struct hf_error *err)
{
	struct decimal d = {.len = 0};
	int rc = read_decimal(text, &d, err);
	uint64_t whole;
	int64_t nano = 0;
	int i;

	if (rc != 0)
		return rc;
	if (d.negative)
		return hf_error_set(err, HF_E_INVALID, "must be greater than or equal to 0");
	/* The suffix decides how the quantity is printed, also if the suffix is "m"
	 * (thousandths). */
	whole = take_whole_part(&d);
	/* Digit i is worth 10^(point-1-i). Keep nine places after the point. */
	for (i = d.point; i < d.point + 9; i++)
		nano = nano * 10 + (i >= 0 && i < d.len ? d.digits[i] : 0);
	for (i = i < 0 ? 0 : i; i < d.len; i++) {
		if (d.digits[i] != 0) {
			nano++;
			break;
		}
	}
	ret_quantity->form = d.kibis > 0  ? HF_QUANTITY_BINARY
			     : d.exponent ? HF_QUANTITY_EXPONENT
					  : HF_QUANTITY_DECIMAL;
	normalize_quantity(ret_quantity, whole, nano);
	return 0;
}

void hf_quantity_add(struct hf_quantity *quantity, const struct hf_quantity *other, int32_t n)
{
	uint64_t product = add_capped((uint64_t)other->whole, (uint64_t)n, 0);

	hf_assert(n >= 0);
	if (quantity->whole == 0 && quantity->nano == 0)
		quantity->form = other->form;
	normalize_quantity(quantity, add_capped((uint64_t)quantity->whole, 1, product),
			   quantity->nano + (int64_t)other->nano * n);
}

static const char *format_binary(uint64_t whole, char *buf)
{
	static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	size_t k = 0;

	for (; whole != 0 && whole % 1024 == 0 && k + 1 < HF_ARRAY_LEN(suffixes); k++)
		whole /= 1024;
	snprintf(buf, HF_QUANTITY_TEXT_MAX, "%llu%s", (unsigned long long)whole, suffixes[k]);
	return buf;
}

/* Prints the digits without trailing groups of "000", with the suffix for the matching power of
 * ten. */
static const char *format_decimal(const struct hf_quantity *quantity, char *buf)
{
	static const char *const suffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
	char digits[HF_QUANTITY_TEXT_MAX];
	int len = snprintf(digits, sizeof(digits), "%lld%09d", (long long)quantity->whole,
			   (int)quantity->nano);
	int power = -9, from = (int)strspn(digits, "0");

	hf_assert(len > 0 && len < (int)sizeof(digits));
	while (len - 3 > from && strcmp(digits + len - 3, "000") == 0 && power < 18) {
		len -= 3;
		digits[len] = '\0';
		power += 3;
	}
	if (quantity->form != HF_QUANTITY_EXPONENT)
		snprintf(buf, HF_QUANTITY_TEXT_MAX, "%s%s", digits + from, suffixes[power / 3 + 3]);
	else
		snprintf(buf, HF_QUANTITY_TEXT_MAX, "%se%d", digits + from, power);
	return buf;
}

const char *hf_quantity_format(const struct hf_quantity *quantity, char buf[HF_QUANTITY_TEXT_MAX])
{
	uint64_t whole = (uint64_t)quantity->whole;

	hf_assert(quantity->whole >= 0 && quantity->nano >= 0 && quantity->nano < NANO);
	if (whole == 0 && quantity->nano == 0) {
		snprintf(buf, HF_QUANTITY_TEXT_MAX, "0");
		return buf;
	}
	/* Binary quantities are printed as whole numbers. */
	if (quantity->form == HF_QUANTITY_BINARY && whole >= 1024)
		return format_binary(whole + (quantity->nano > 0), buf);
	return format_decimal(quantity, buf);
}
