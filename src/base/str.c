/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"

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

/* Not <ctype.h>: its answers depend on the locale, and a negative char is undefined. */
static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool hf_str_case_eq(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return lower(*a) == lower(*b);
}

void hf_str_lower(char *s)
{
	for (; *s; s++)
		*s = lower(*s);
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

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A sign where `signs` has it, digits, nothing else, 64 bits.  Not strtoll: that skips
 * blanks, takes a plus, and tells overflow through errno. */
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

		if (!is_digit(*text))
			return false;
		/* Built on the negative side, which is one larger. */
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

/* Length of the UTF-8 sequence a byte starts; 0: none. */
static size_t utf8_len(unsigned char lead)
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
	size_t n = len ? utf8_len(p[0]) : 0;

	if (!n || n > len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and what is past U+10FFFF show in the second byte. */
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

/* How many bytes at the start are ASCII: nearly always all of them. */
static size_t ascii_len(const char *bytes, size_t len)
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
		size_t n = ascii_len(bytes, len);

		if (!n)
			n = hf_utf8_sequence(bytes, len);

		if (!n)
			return false;
		bytes += n;
		len -= n;
	}
	return true;
}

/*
 * Names.  The texts are those of apimachinery 0.36, byte for byte: clients and
 * tests of others compare them.  Its two packages differ in one word: names are
 * measured in "characters", label keys and values in "bytes" (both are bytes).
 */
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

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_lower_alnum(char c)
{
	return is_lower(c) || is_digit(c);
}

static bool is_alnum(char c)
{
	return is_lower(lower(c)) || is_digit(c);
}

/* One label: a-z 0-9 and -, no - at its ends. */
static bool label_fits(const char *s, size_t len)
{
	if (!len || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_lower_alnum(s[i]) && s[i] != '-')
			return false;
	return true;
}

/* Labels with dots between them, of any length: upstream bounds the whole at 253 and,
 * unlike DNS, not each label. */
static bool subdomain_fits(const char *s, size_t len)
{
	size_t start = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && s[i] != '.')
			continue;
		if (!label_fits(s + start, i - start))
			return false;
		start = i + 1;
	}
	return true;
}

/* The name part of a label key, or a label value that is not empty. */
static bool key_fits(const char *s, size_t len)
{
	if (!len || !is_alnum(s[0]) || !is_alnum(s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
			return false;
	return true;
}

/*
 * Hand-written matchers instead of regular expressions: the C library's compile at
 * run time, allocate, and depend on the locale.  They must accept what the patterns
 * above accept, which str_test.c and a comparison with upstream have shown.
 */
const char *hf_dns1123_label_problem(const char *text)
{
	size_t len = strlen(text);

	if (len > LABEL_MAX)
		return "must be no more than 63 characters";
	if (label_fits(text, len))
		return NULL;
	return subdomain_fits(text, len) ? "must not contain dots" : LABEL_WRONG;
}

const char *hf_dns1123_subdomain_problem(const char *text)
{
	size_t len = strlen(text);

	if (len > SUBDOMAIN_MAX)
		return "must be no more than 253 characters";
	return subdomain_fits(text, len) ? NULL : SUBDOMAIN_WRONG;
}

const char *hf_dns1035_label_problem(const char *text)
{
	size_t len = strlen(text);

	if (len > LABEL_MAX)
		return "must be no more than 63 characters";
	return label_fits(text, len) && is_lower(text[0]) ? NULL : DNS1035_WRONG;
}

const char *hf_qualified_name_problem(const char *text)
{
	const char *slash = strchr(text, '/');
	const char *name = slash ? slash + 1 : text;
	size_t prefix_len = slash ? (size_t)(slash - text) : 0;
	size_t len = strlen(name);

	/* The order of the checks is upstream's: the first problem of its list is told. */
	if (strchr(name, '/'))
		return "a valid label key " KEY_WRONG
		       " with an optional DNS subdomain prefix and '/' "
		       "(e.g. 'example.com/MyName')";
	if (slash && !prefix_len)
		return "prefix part must be non-empty";
	if (prefix_len > SUBDOMAIN_MAX)
		return "prefix part must be no more than 253 bytes";
	if (slash && !subdomain_fits(text, prefix_len))
		return "prefix part " SUBDOMAIN_WRONG;
	if (!len)
		return "name part must be non-empty";
	if (len > LABEL_MAX)
		return "name part must be no more than 63 bytes";
	return key_fits(name, len) ? NULL : "name part " KEY_WRONG;
}

const char *hf_label_value_problem(const char *text)
{
	size_t len = strlen(text);

	if (len > LABEL_MAX)
		return "must be no more than 63 bytes";
	return !len || key_fits(text, len) ? NULL : VALUE_WRONG;
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

static uint64_t rotl(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

/* Up to eight bytes, the first the lowest, whatever the machine's order. */
static uint64_t load_le(const unsigned char *p, size_t len)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)p[i] << (8 * i);
	return word;
}

uint64_t hf_siphash(uint64_t key, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	/* The algorithm's key has 128 bits; the second half is spread from the first. */
	uint64_t other = key * 0x9e3779b97f4a7c15u;
	uint64_t v[4] = {
		key ^ 0x736f6d6570736575u,
		other ^ 0x646f72616e646f6du,
		key ^ 0x6c7967656e657261u,
		other ^ 0x7465646279746573u,
	};
	uint64_t last = (uint64_t)len << 56;

	/* One round for each word and three at the end: the lighter of the usual two forms,
	 * enough where the hash is never shown to whoever chooses the keys. */
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word = load_le(p, 8);

		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	last |= load_le(p, len);
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
