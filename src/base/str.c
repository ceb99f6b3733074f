/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Strings: comparison, numbers, UTF-8, the name rules of Kubernetes, and hash functions.
 *
 * Nothing here allocates, fails or depends on the locale, except that hf_str_to_i64 reports a text
 * that is not a number in its range.
 */
#include "base/str.h"

#include "base/ascii.h"

#include <string.h>

bool hf_streq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool hf_str_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool hf_str_has_suffix(const char *s, const char *suffix)
{
	size_t len = strlen(s);
	size_t tail = strlen(suffix);

	return tail <= len && memcmp(s + len - tail, suffix, tail) == 0;
}

bool hf_str_is_empty(const char *s)
{
	return !s || !*s;
}

const char *hf_str_or(const char *s, const char *fallback)
{
	return hf_str_is_empty(s) ? fallback : s;
}

bool hf_str_case_eq(const char *a, const char *b)
{
	while (*a && hf_ascii_to_lower(*a) == hf_ascii_to_lower(*b)) {
		a++;
		b++;
	}
	return hf_ascii_to_lower(*a) == hf_ascii_to_lower(*b);
}

void hf_str_lower(char *s)
{
	for (; *s; s++)
		*s = hf_ascii_to_lower(*s);
}

void hf_str_print(char *ret_text, size_t size, const char *bytes, size_t len)
{
	hf_assert(size > 0);
	if (len > size - 1)
		len = size - 1;
	for (size_t i = 0; i < len; i++)
		ret_text[i] = bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?';
	memset(ret_text + len, 0, size - len);
}

/* Reads an optional sign of those in `signs`, then digits up to the end of the text; false if
 * the number does not fit 64 bits. Not strtoll, which skips blanks, accepts "+" and reports an
 * overflow through errno. */
static bool read_i64(const char *text, const char *signs, int64_t *ret_value)
{
	bool negative = *text == '-';
	int64_t value = 0;

	if (*text && strchr(signs, *text))
		text++;
	if (!*text)
		return false;
	for (; *text; text++) {
		int digit = *text - '0';

		if (!hf_ascii_is_digit(*text))
			return false;
		/* Build the negative number: INT64_MIN has no positive counterpart. */
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, digit, &value))
			return false;
	}
	if (!negative && value == INT64_MIN)
		return false;
	*ret_value = negative ? value : -value;
	return true;
}

int hf_str_to_i64(const char *text, int64_t min, int64_t max, int64_t *ret_value,
		  struct hf_error *err)
{
	int64_t value;

	if (!read_i64(text, "-", &value) || value < min || value > max)
		return hf_error_set(err, HF_E_INVALID,
				    "'%.64s' is not a whole number from %lld to %lld", text,
				    (long long)min, (long long)max);
	*ret_value = value;
	return 0;
}

bool hf_str_is_integer(const char *text)
{
	int64_t value;

	return read_i64(text, "+-", &value);
}

/* The length of the UTF-8 sequence that starts with this byte; 0 if no sequence does. */
static size_t utf8_lead_len(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef)
		return 3;
	if (lead >= 0xf0 && lead <= 0xf4)
		return 4;
	return 0;
}

size_t hf_utf8_sequence(const char *bytes, size_t len)
{
	const unsigned char *p = (const unsigned char *)bytes;
	size_t n = len ? utf8_lead_len(p[0]) : 0;

	if (!n || n > len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* The second byte reveals overlong forms, surrogates, and numbers above U+10FFFF. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

size_t hf_utf8_count(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

size_t hf_utf8_cut(const char *text, size_t bytes_max)
{
	size_t len = strnlen(text, bytes_max + 1);

	if (len <= bytes_max)
		return len;
	len = bytes_max;
	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	return len;
}

size_t hf_utf8_encode(uint32_t c, char ret_bytes[4])
{
	if (c < 0x80) {
		ret_bytes[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret_bytes[0] = (char)(0xc0 | c >> 6);
		ret_bytes[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		ret_bytes[0] = (char)(0xe0 | c >> 12);
		ret_bytes[1] = (char)(0x80 | (c >> 6 & 0x3f));
		ret_bytes[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	ret_bytes[0] = (char)(0xf0 | c >> 18);
	ret_bytes[1] = (char)(0x80 | (c >> 12 & 0x3f));
	ret_bytes[2] = (char)(0x80 | (c >> 6 & 0x3f));
	ret_bytes[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* The number of ASCII bytes at the start. Nearly every text is ASCII, so eight bytes are checked
 * at a time. */
static size_t count_ascii_bytes(const char *bytes, size_t len)
{
	size_t n = 0;

	for (uint64_t word; len - n >= sizeof(word); n += sizeof(word)) {
		memcpy(&word, bytes + n, sizeof(word));
		if (word & 0x8080808080808080u)
			break;
	}
	while (n < len && (unsigned char)bytes[n] < 0x80)
		n++;
	return n;
}

bool hf_utf8_valid(const char *bytes, size_t len)
{
	while (len) {
		size_t n = count_ascii_bytes(bytes, len);

		if (!n)
			n = hf_utf8_sequence(bytes, len);

		if (!n)
			return false;
		bytes += n;
		len -= n;
	}
	return true;
}

/* Names. The messages are those of apimachinery 0.36, byte for byte, because clients and tests
 * compare them. apimachinery measures names in "characters" but label keys and values in
 * "bytes"; both are bytes. */
#define LABEL_MAX 63
#define SUBDOMAIN_MAX 253

#define LABEL_FMT "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define LABEL_WRONG                                                                                \
	"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "   \
	"and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "   \
	"regex used for validation is '" LABEL_FMT "')"
#define SUBDOMAIN_WRONG                                                                            \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
	"or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
	"regex used for validation is '" LABEL_FMT "(\\." LABEL_FMT ")*')"
#define DNS1035_WRONG                                                                              \
	"a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "  \
	"an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "    \
	"'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define KEY_FMT "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define KEY_WRONG                                                                                  \
	"must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "   \
	"an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "  \
	"validation is '" KEY_FMT "')"
#define VALUE_WRONG                                                                                \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "   \
	"or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "      \
	"'my_value',  or '12345', regex used for validation is '(" KEY_FMT ")?')"

static bool is_lower_alnum(char c)
{
	return hf_ascii_is_lower(c) || hf_ascii_is_digit(c);
}

/* True for one DNS label: a-z, 0-9 and "-", without "-" at the ends. */
static bool is_label(const char *s, size_t len)
{
	if (!len || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_lower_alnum(s[i]) && s[i] != '-')
			return false;
	return true;
}

/* Labels joined by dots. As upstream, this checks no length: the caller limits the whole name to
 * 253, and DNS's limit of 63 for each label does not apply. */
static bool is_subdomain(const char *s, size_t len)
{
	size_t start = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && s[i] != '.')
			continue;
		if (!is_label(s + start, i - start))
			return false;
		start = i + 1;
	}
	return true;
}

/* True for a valid name part of a label key, and for a valid label value that is not empty. */
static bool is_label_name(const char *s, size_t len)
{
	if (!len || !hf_ascii_is_alnum(s[0]) || !hf_ascii_is_alnum(s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!hf_ascii_is_alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
			return false;
	return true;
}

/* These matchers are written by hand, because the C library's regular expressions compile at run
 * time, allocate and depend on the locale. They accept exactly what the patterns above accept;
 * str_test.c and a comparison with upstream show it. */
const char *hf_dns1123_label_problem(const char *text)
{
	size_t len = strlen(text);

	if (len > LABEL_MAX)
		return "must be no more than 63 characters";
	if (is_label(text, len))
		return NULL;
	return is_subdomain(text, len) ? "must not contain dots" : LABEL_WRONG;
}

const char *hf_dns1123_subdomain_problem(const char *text)
{
	size_t len = strlen(text);

	if (len > SUBDOMAIN_MAX)
		return "must be no more than 253 characters";
	return is_subdomain(text, len) ? NULL : SUBDOMAIN_WRONG;
}

const char *hf_dns1035_label_problem(const char *text)
{
	size_t len = strlen(text);

	if (len > LABEL_MAX)
		return "must be no more than 63 characters";
	return is_label(text, len) && hf_ascii_is_lower(text[0]) ? NULL : DNS1035_WRONG;
}

const char *hf_qualified_name_problem(const char *text)
{
	const char *slash = strchr(text, '/');
	const char *name = slash ? slash + 1 : text;
	size_t prefix_len = slash ? (size_t)(slash - text) : 0;
	size_t len = strlen(name);

	/* The checks run in upstream's order. Upstream reports all problems; this function returns
	 * only the first. */
	if (strchr(name, '/'))
		return "a valid label key " KEY_WRONG
		       " with an optional DNS subdomain prefix and '/' "
		       "(e.g. 'example.com/MyName')";
	if (slash && !prefix_len)
		return "prefix part must be non-empty";
	if (prefix_len > SUBDOMAIN_MAX)
		return "prefix part must be no more than 253 bytes";
	if (slash && !is_subdomain(text, prefix_len))
		return "prefix part " SUBDOMAIN_WRONG;
	if (!len)
		return "name part must be non-empty";
	if (len > LABEL_MAX)
		return "name part must be no more than 63 bytes";
	return is_label_name(name, len) ? NULL : "name part " KEY_WRONG;
}

const char *hf_label_value_problem(const char *text)
{
	size_t len = strlen(text);

	if (len > LABEL_MAX)
		return "must be no more than 63 bytes";
	return !len || is_label_name(text, len) ? NULL : VALUE_WRONG;
}

uint64_t hf_hash_bytes(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return hash;
}

uint64_t hf_hash_str(const char *s)
{
	return hf_hash_bytes(s, strlen(s));
}

static uint64_t rotate_left(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void mix_sip_state(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate_left(v[1], 13) ^ v[0];
	v[0] = rotate_left(v[0], 32);
	v[2] += v[3];
	v[3] = rotate_left(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate_left(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate_left(v[1], 17) ^ v[2];
	v[2] = rotate_left(v[2], 32);
}

/* Reads up to eight bytes as a little-endian number, on any machine. */
static uint64_t load_little_endian(const unsigned char *p, size_t len)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)p[i] << (8 * i);
	return word;
}

uint64_t hf_siphash(uint64_t key, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	/* The algorithm's key has 128 bits. Derive the second half from the first. */
	uint64_t other = key * 0x9e3779b97f4a7c15u;
	uint64_t v[4] = {
		key ^ 0x736f6d6570736575u,
		other ^ 0x646f72616e646f6du,
		key ^ 0x6c7967656e657261u,
		other ^ 0x7465646279746573u,
	};
	uint64_t last = (uint64_t)len << 56;

	/* SipHash-1-3: one round for each word and three at the end. The usual SipHash-2-4 is
	 * slower. The lighter form is enough here, because the hash never leaves the process. */
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word = load_little_endian(p, 8);

		v[3] ^= word;
		mix_sip_state(v);
		v[0] ^= word;
	}
	last |= load_little_endian(p, len);
	v[3] ^= last;
	mix_sip_state(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix_sip_state(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
