/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Resolves plain YAML scalars: null, booleans, integers, reals or strings, by the rules of
 * go.yaml.in/yaml/v2. Also recognizes dates and numbers to base 60.
 */
#include "json/number_internal.h"
#include "json/yaml_internal.h"

#include "base/ascii.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Bytes. A longer text is not a number that fits 64 bits or a double. */
#define NUMBER_BYTES_MAX 400

/* clang-format off */
/* Scalars with a meaning: plain words for booleans, null and special numbers. */
static const struct word {
	const char *text;
	enum hf_json_type type;
	double real;
	bool is_true;
} words[] = {
	{ "y", HF_JSON_BOOL, 0, true },      { "Y", HF_JSON_BOOL, 0, true },
	{ "yes", HF_JSON_BOOL, 0, true },    { "Yes", HF_JSON_BOOL, 0, true },
	{ "YES", HF_JSON_BOOL, 0, true },    { "true", HF_JSON_BOOL, 0, true },
	{ "True", HF_JSON_BOOL, 0, true },   { "TRUE", HF_JSON_BOOL, 0, true },
	{ "on", HF_JSON_BOOL, 0, true },     { "On", HF_JSON_BOOL, 0, true },
	{ "ON", HF_JSON_BOOL, 0, true },     { "n", HF_JSON_BOOL, 0, false },
	{ "N", HF_JSON_BOOL, 0, false },     { "no", HF_JSON_BOOL, 0, false },
	{ "No", HF_JSON_BOOL, 0, false },    { "NO", HF_JSON_BOOL, 0, false },
	{ "false", HF_JSON_BOOL, 0, false }, { "False", HF_JSON_BOOL, 0, false },
	{ "FALSE", HF_JSON_BOOL, 0, false }, { "off", HF_JSON_BOOL, 0, false },
	{ "Off", HF_JSON_BOOL, 0, false },   { "OFF", HF_JSON_BOOL, 0, false },
	{ "", HF_JSON_NULL, 0, false },      { "~", HF_JSON_NULL, 0, false },
	{ "null", HF_JSON_NULL, 0, false },  { "Null", HF_JSON_NULL, 0, false },
	{ "NULL", HF_JSON_NULL, 0, false },  { ".nan", HF_JSON_REAL, __builtin_nan(""), false },
	{ ".NaN", HF_JSON_REAL, __builtin_nan(""), false },
	{ ".NAN", HF_JSON_REAL, __builtin_nan(""), false },
	{ ".inf", HF_JSON_REAL, __builtin_inf(), false },
	{ ".Inf", HF_JSON_REAL, __builtin_inf(), false },
	{ ".INF", HF_JSON_REAL, __builtin_inf(), false },
	{ "+.inf", HF_JSON_REAL, __builtin_inf(), false },
	{ "+.Inf", HF_JSON_REAL, __builtin_inf(), false },
	{ "+.INF", HF_JSON_REAL, __builtin_inf(), false },
	{ "-.inf", HF_JSON_REAL, -__builtin_inf(), false },
	{ "-.Inf", HF_JSON_REAL, -__builtin_inf(), false },
	{ "-.INF", HF_JSON_REAL, -__builtin_inf(), false },
};
/* clang-format on */
#define WORD_BYTES_MAX 5

/* Nearly every string is longer than the longest word, so the length decides first. */
static bool resolve_word(const char *text, size_t len, struct hf_yaml_scalar *ret_scalar)
{
	if (len > WORD_BYTES_MAX)
		return false;
	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++) {
		if (strlen(words[i].text) != len || memcmp(words[i].text, text, len) != 0)
			continue;
		ret_scalar->type = words[i].type;
		ret_scalar->real = words[i].real;
		ret_scalar->integer = words[i].is_true;
		return true;
	}
	return false;
}

/* Reads Go's prefix of a number (0x, 0o, 0b, or 0 for octal) and moves *p behind it. Returns the
 * base. */
static int number_base(const char **p)
{
	if ((*p)[0] != '0' || (*p)[1] == '\0')
		return 10;
	switch ((*p)[1] | 0x20) {
	case 'x': *p += 2; return 16;
	case 'o': *p += 2; return 8;
	case 'b': *p += 2; return 2;
	}
	*p += 1;
	return 8;
}

static bool read_unsigned(const char *p, int base, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (*p == '\0')
		return false;
	for (; *p; p++) {
		int digit = hf_ascii_hex_value(*p);
		if (digit < 0 || digit >= base ||
		    __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*ret_value = value;
	return true;
}

/* Reads an integer with an optional sign, as strconv.ParseInt(…, 0, 64) and ParseUint do. A
 * number that fits only an unsigned 64-bit integer becomes a real, as in apimachinery. */
static bool resolve_integer(const char *p, struct hf_yaml_scalar *ret_scalar)
{
	bool has_sign = *p == '-' || *p == '+', negative = *p == '-';
	uint64_t value;

	p += has_sign;
	int base = number_base(&p);
	if (!read_unsigned(p, base, &value))
		return false;
	ret_scalar->type = HF_JSON_INT;
	if (negative && value <= (uint64_t)INT64_MAX + 1) {
		ret_scalar->integer = (int64_t)(0 - value);
	} else if (!negative && value <= INT64_MAX) {
		ret_scalar->integer = (int64_t)value;
	} else {
		ret_scalar->type = has_sign ? HF_JSON_STRING : HF_JSON_REAL;
		ret_scalar->real = (double)value;
	}
	return !has_sign || ret_scalar->type == HF_JSON_INT;
}

static const char *skip_digits(const char *p)
{
	while (hf_ascii_is_digit(*p))
		p++;
	return p;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_real(const char *p)
{
	const char *digits;

	p += *p == '-' || *p == '+';
	digits = p;
	p = skip_digits(p);
	bool whole = p > digits;
	if (*p == '.') {
		digits = p + 1;
		p = skip_digits(digits);
		if (!whole && p == digits)
			return false;
	} else if (!whole) {
		return false;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		p += *p == '-' || *p == '+';
		digits = p;
		p = skip_digits(p);
		if (p == digits)
			return false;
	}
	return *p == '\0';
}

/* Reads a real number. Upstream converts YAML to JSON text first, where 1e3 and 3.0 become 1000
 * and 3. So a real with a whole value becomes an integer if its text fits. */
static bool resolve_real(const char *text, struct hf_yaml_scalar *ret_scalar)
{
	char written[HF_JSON_REAL_TEXT_MAX];

	if (!is_real(text))
		return false;
	double d = strtod(text, NULL);
	if (!__builtin_isfinite(d))
		return false;
	hf_json_format_real(d, written);
	char *point = strchr(written, '.');
	if (point && strcmp(point, ".0") == 0) {
		*point = '\0';
		if (resolve_integer(written, ret_scalar) && ret_scalar->type == HF_JSON_INT)
			return true;
	}
	ret_scalar->type = HF_JSON_REAL;
	ret_scalar->real = d;
	return true;
}

void hf_yaml_resolve(const char *text, size_t len, struct hf_yaml_scalar *ret_scalar)
{
	char plain[NUMBER_BYTES_MAX + 1];
	size_t n = 0;

	*ret_scalar = (struct hf_yaml_scalar){.type = HF_JSON_STRING};
	if (resolve_word(text, len, ret_scalar) || len > NUMBER_BYTES_MAX)
		return;
	if (*text == '.') {
		/* No underscores are removed here; the copy only adds a NUL. */
		memcpy(plain, text, len);
		plain[len] = '\0';
		(void)(memchr(text, '\0', len) || resolve_real(plain, ret_scalar));
		return;
	}
	if (!hf_ascii_is_digit(*text) && *text != '-' && *text != '+')
		return;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\0')
			return;
		if (text[i] != '_')
			plain[n++] = text[i];
	}
	plain[n] = '\0';
	(void)(resolve_integer(plain, ret_scalar) || resolve_real(plain, ret_scalar));
}

/* Reads one or two digits with a value in [min, max]. */
static bool read_date_part(const char **p, int min, int max)
{
	int value = 0, digits = 0;

	while (digits < 2 && hf_ascii_is_digit(**p)) {
		value = value * 10 + *(*p)++ - '0';
		digits++;
	}
	return digits > 0 && value >= min && value <= max;
}

static bool read_date_char(const char **p, char c)
{
	return *(*p)++ == c;
}

/* The days of a month, because Go refuses 30 February. */
static int days_in_month(int year, int month)
{
	static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

static bool is_zone(const char *p)
{
	if (*p == 'Z')
		return p[1] == '\0';
	if (*p != '+' && *p != '-')
		return false;
	return hf_ascii_is_digit(p[1]) && hf_ascii_is_digit(p[2]) && p[3] == ':' &&
	       hf_ascii_is_digit(p[4]) && hf_ascii_is_digit(p[5]) && p[6] == '\0' &&
	       (p[1] - '0') * 10 + p[2] - '0' <= 24 && (p[4] - '0') * 10 + p[5] - '0' <= 60;
}

/* Reads year, month and day, and moves *p behind them. */
static bool read_date(const char **p)
{
	const char *text = *p;

	for (int i = 0; i < 4; i++)
		if (!hf_ascii_is_digit(*(*p)++))
			return false;
	int year = (int)strtol(text, NULL, 10);
	if (!read_date_char(p, '-'))
		return false;
	int month = (int)strtol(*p, NULL, 10);
	return read_date_part(p, 1, 12) && read_date_char(p, '-') &&
	       read_date_part(p, 1, days_in_month(year, month));
}

bool hf_yaml_is_timestamp(const char *p)
{
	if (!read_date(&p))
		return false;
	if (*p == '\0')
		return true;
	char between = *p++;
	if (between != 'T' && between != 't' && between != ' ')
		return false;
	if (!read_date_part(&p, 0, 23) || !read_date_char(&p, ':') || !read_date_part(&p, 0, 59) ||
	    !read_date_char(&p, ':') || !read_date_part(&p, 0, 59))
		return false;
	if ((*p == '.' || *p == ',') && hf_ascii_is_digit(p[1]))
		p = skip_digits(p + 1);
	return between == ' ' ? *p == '\0' : is_zone(p);
}

/* [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)? */
bool hf_yaml_is_base60(const char *p)
{
	int parts = 0;

	p += *p == '-' || *p == '+';
	if (!hf_ascii_is_digit(*p))
		return false;
	while (hf_ascii_is_digit(*p) || *p == '_')
		p++;
	while (*p == ':') {
		p++;
		if (!read_date_part(&p, 0, 59))
			return false;
		parts++;
	}
	if (parts == 0)
		return false;
	if (*p == '.')
		for (p++; hf_ascii_is_digit(*p) || *p == '_'; p++)
			;
	return *p == '\0';
}
