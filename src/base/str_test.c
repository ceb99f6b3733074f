/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"

#include "harness/test.h"
#include "harness/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void streq_takes_null(void **state)
{
	assert_true(hf_streq("a", "a"));
	assert_false(hf_streq("a", "b"));
	assert_false(hf_streq("a", "ab"));
	assert_true(hf_streq(NULL, NULL));
	assert_false(hf_streq("", NULL));
	assert_false(hf_streq(NULL, ""));
}

static void prefixes_and_suffixes_are_found(void **state)
{
	assert_true(hf_str_has_prefix("holdfast", "hold"));
	assert_true(hf_str_has_prefix("holdfast", ""));
	assert_true(hf_str_has_prefix("hold", "hold"));
	assert_false(hf_str_has_prefix("hol", "hold"));
	assert_true(hf_str_has_suffix("holdfast", "fast"));
	assert_true(hf_str_has_suffix("holdfast", ""));
	assert_true(hf_str_has_suffix("fast", "fast"));
	assert_false(hf_str_has_suffix("ast", "fast"));
	assert_false(hf_str_has_suffix("holdfast", "hold"));
}

static void empty_is_null_or_nothing(void **state)
{
	assert_true(hf_str_is_empty(NULL));
	assert_true(hf_str_is_empty(""));
	assert_false(hf_str_is_empty(" "));
	assert_string_equal(hf_str_or("a", "b"), "a");
	assert_string_equal(hf_str_or("", "b"), "b");
	assert_string_equal(hf_str_or(NULL, "b"), "b");
	assert_null(hf_str_or(NULL, NULL));
}

static void case_is_ascii_only(void **state)
{
	char text[] = "MiXed-09[@`{ \xc3\x84";

	assert_true(hf_str_case_eq("Content-Type", "cONTENT-tYPE"));
	assert_false(hf_str_case_eq("abc", "abcd"));
	assert_false(hf_str_case_eq("abcd", "abc"));
	assert_true(hf_str_case_eq("", ""));
	assert_false(hf_str_case_eq("[", "{"));
	assert_false(hf_str_case_eq("@", "`"));
	/* U+00C4 has two bytes; neither changes. */
	assert_false(hf_str_case_eq("\xc3\x84", "\xc3\xa4"));
	hf_str_lower(text);
	assert_string_equal(text, "mixed-09[@`{ \xc3\x84");
}

static int64_t parse_number(const char *text)
{
	struct hf_error err;
	int64_t value = -77;

	assert_ok(hf_str_to_i64(text, INT64_MIN, INT64_MAX, &value, &err), &err);
	return value;
}

static void printing_cuts_fills_and_replaces_unprintable_bytes(void **state)
{
	char text[8] = "a\x01\xff"
		       "bcd";

	(void)state;
	hf_str_print(text, sizeof(text), text, 7);
	assert_memory_equal(text, "a??bcd?", 8);
	hf_str_print(text, 4, "\x1b[2J", 4);
	assert_memory_equal(text, "?[2\0cd?", 8);
	hf_str_print(text, sizeof(text), NULL, 0);
	assert_memory_equal(text, "\0\0\0\0\0\0\0", 8);
}

static void whole_numbers_are_read(void **state)
{
	assert_int_equal(parse_number("0"), 0);
	assert_int_equal(parse_number("42"), 42);
	assert_int_equal(parse_number("-42"), -42);
	assert_int_equal(parse_number("007"), 7);
	assert_int_equal(parse_number("-0"), 0);
	assert_true(parse_number("9223372036854775807") == INT64_MAX);
	assert_true(parse_number("-9223372036854775808") == INT64_MIN);
}

static void a_text_that_is_no_whole_number_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"-",
		"+",
		"+1",
		" 1",
		"1 ",
		"1\n",
		"--1",
		"1-",
		"0x1",
		"1.0",
		"1e3",
		"a",
		"1a",
		"9223372036854775808",
		"-9223372036854775809",
		"99999999999999999999999999",
		"\xd9\xa1",
		"1_000",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		int64_t value = -77;

		assert_code(hf_str_to_i64(texts[i], INT64_MIN, INT64_MAX, &value, NULL),
			    HF_E_INVALID);
		assert_int_equal(value, -77);
	}
}

static void the_range_is_checked_and_named(void **state)
{
	struct hf_error err;
	int64_t value = -77;

	assert_ok(hf_str_to_i64("1", 1, 9, &value, &err), &err);
	assert_ok(hf_str_to_i64("9", 1, 9, &value, &err), &err);
	assert_int_equal(value, 9);
	assert_code(hf_str_to_i64("0", 1, 9, &value, &err), HF_E_INVALID);
	assert_string_equal(err.text, "'0' is not a whole number from 1 to 9");
	assert_code(hf_str_to_i64("10", 1, 9, &value, &err), HF_E_INVALID);
	assert_code(hf_str_to_i64("-1", 0, 9, &value, &err), HF_E_INVALID);
	assert_int_equal(value, 9);
}

static void any_number_comes_back_as_it_was_written(void **state)
{
	uint64_t seed = 8;

	for (int i = 0; i < 20000; i++) {
		int64_t want = (int64_t)test_random(&seed) >> test_random_below(&seed, 64);
		char text[32];

		(void)snprintf(text, sizeof(text), "%" PRId64, want);
		assert_true(parse_number(text) == want);
		assert_true(hf_str_is_integer(text));
	}
}

static void is_integer_decides_as_go_does(void **state)
{
	static const char *const yes[] = {
		"0",
		"-0",
		"+0",
		"+1",
		"-1",
		"0001",
		"9223372036854775807",
		"+9223372036854775807",
		"-9223372036854775808",
	};
	static const char *const no[] = {
		"",
		"+",
		"-",
		"+-1",
		"1.0",
		"1_0",
		"0x1",
		" 1",
		"1 ",
		"nan",
		"9223372036854775808",
		"-9223372036854775809",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(yes); i++)
		assert_true(hf_str_is_integer(yes[i]));
	for (size_t i = 0; i < HF_ARRAY_LEN(no); i++)
		assert_false(hf_str_is_integer(no[i]));
}

static void every_code_point_is_valid_but_surrogates(void **state)
{
	for (uint32_t c = 0; c < 0x120000; c++) {
		char text[4];
		size_t len = hf_utf8_encode(c, text);
		bool want = c < 0xd800 || (c > 0xdfff && c <= 0x10ffff);

		if (hf_utf8_valid(text, len) != want)
			fail_msg("U+%04X: expected %s", (unsigned int)c,
				 want ? "valid" : "invalid");
		if (hf_utf8_sequence(text, len) != (want ? len : 0))
			fail_msg("U+%04X: wrong length", (unsigned int)c);
		/* A sequence without its last byte is never valid. */
		if (len > 1)
			assert_false(hf_utf8_valid(text, len - 1));
	}
}

static void a_text_is_cut_between_characters(void **state)
{
	(void)state;
	assert_int_equal(hf_utf8_cut("abc", 3), 3);
	assert_int_equal(hf_utf8_cut("abc", 2), 2);
	assert_int_equal(hf_utf8_cut("", 0), 0);
	/* A text with a character of 1 byte and a character of 3 bytes. */
	assert_int_equal(hf_utf8_cut("a\u20ac", 4), 4);
	assert_int_equal(hf_utf8_cut("a\u20ac", 3), 1);
	assert_int_equal(hf_utf8_cut("a\u20ac", 2), 1);
	assert_int_equal(hf_utf8_cut("a\u20ac", 1), 1);
	assert_int_equal(hf_utf8_cut("\u20ac", 2), 0);
}

static void malformed_utf8_is_found(void **state)
{
	static const char *const texts[] = {
		"\x80",
		"a\xbf",
		"\xc3",
		"\xc3(",
		"\xe2\x82",
		"\xe2(\xac",
		"\xf0\x9f\x98",
		"\xc0\xaf",
		"\xc1\xbf",
		"\xe0\x80\xaf",
		"\xe0\x9f\xbf",
		"\xf0\x8f\xbf\xbf",
		"\xf5\x80\x80\x80",
		"\xfe",
		"\xff",
		"\xf8\x88\x80\x80\x80",
		"ok\xed\xa0\x80",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++)
		assert_false(hf_utf8_valid(texts[i], strlen(texts[i])));
	/* Try each position of a bad byte, because the check reads eight bytes at a time. */
	for (size_t len = 1; len < 40; len++) {
		for (size_t i = 0; i < len; i++) {
			char text[40];
			memset(text, 'a', sizeof(text));
			text[i] = '\x80';
			assert_false(hf_utf8_valid(text, len));
			assert_true(hf_utf8_valid(text, i));
			if (i + 1 < len) {
				text[i] = '\xc3';
				text[i + 1] = '\xaf';
				assert_true(hf_utf8_valid(text, len));
			}
		}
	}
	assert_true(hf_utf8_valid("", 0));
	assert_true(hf_utf8_valid("a\0b", 3));
	assert_true(hf_utf8_valid("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80", 15));
	assert_int_equal(hf_utf8_sequence("", 0), 0);
	assert_int_equal(hf_utf8_sequence("\xe2\x82\xac!", 4), 3);
}

#define LABEL_WRONG                                                                                \
	"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "   \
	"and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "   \
	"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN_WRONG                                                                            \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
	"or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
	"regex used for validation is "                                                            \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define DNS1035_WRONG                                                                              \
	"a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "  \
	"an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "    \
	"'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define KEY_WRONG                                                                                  \
	"must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "   \
	"an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "  \
	"validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define VALUE_WRONG                                                                                \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "   \
	"or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "      \
	"'my_value',  or '12345', regex used for validation is "                                   \
	"'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

#define A10 "aaaaaaaaaa"
#define A63 A10 A10 A10 A10 A10 A10 "aaa"
#define A253 A63 "." A63 "." A63 "." A10 A10 A10 A10 A10 A10 "a"

struct name {
	const char *text;
	const char *problem; /* NULL: the name is valid */
};

static void check_names(const char *(*problem_of)(const char *), const struct name *names,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *problem = problem_of(names[i].text);

		if (!hf_streq(problem, names[i].problem))
			fail_msg("'%s': %s, expected %s", names[i].text, hf_str_or(problem, "fine"),
				 hf_str_or(names[i].problem, "fine"));
	}
}

/* The expected messages were printed by apimachinery 0.36.3. */
static void dns1123_labels(void **state)
{
	static const struct name names[] = {
		{"a", NULL},
		{"0", NULL},
		{"my-name", NULL},
		{"a--b", NULL},
		{"123-abc", NULL},
		{A63, NULL},
		{A63 "a", "must be no more than 63 characters"},
		{A63 "A_", "must be no more than 63 characters"},
		{"a.b", "must not contain dots"},
		{"a-b.c-d", "must not contain dots"},
		{"a.-b", LABEL_WRONG},
		{"a.", LABEL_WRONG},
		{"", LABEL_WRONG},
		{"-", LABEL_WRONG},
		{"-a", LABEL_WRONG},
		{"a-", LABEL_WRONG},
		{"A", LABEL_WRONG},
		{"a_b", LABEL_WRONG},
		{"a b", LABEL_WRONG},
		{"a\n", LABEL_WRONG},
		{"\xc3\xa4", LABEL_WRONG},
	};

	check_names(hf_dns1123_label_problem, names, HF_ARRAY_LEN(names));
}

static void dns1123_subdomains(void **state)
{
	static const struct name names[] = {
		{"a", NULL},
		{"example.com", NULL},
		{"0.1.2.3", NULL},
		{"a-b.c--d", NULL},
		{A63 A63, NULL}, /* the length of a single label is not limited here */
		{A253, NULL},
		{A253 "a", "must be no more than 253 characters"},
		{"", SUBDOMAIN_WRONG},
		{".", SUBDOMAIN_WRONG},
		{".a", SUBDOMAIN_WRONG},
		{"a.", SUBDOMAIN_WRONG},
		{"a..b", SUBDOMAIN_WRONG},
		{"a.-b", SUBDOMAIN_WRONG},
		{"a-.b", SUBDOMAIN_WRONG},
		{"a.B", SUBDOMAIN_WRONG},
		{"a/b", SUBDOMAIN_WRONG},
		{"a_b", SUBDOMAIN_WRONG},
	};

	check_names(hf_dns1123_subdomain_problem, names, HF_ARRAY_LEN(names));
}

static void dns1035_labels(void **state)
{
	static const struct name names[] = {
		{"a", NULL},           {"abc-123", NULL},
		{A63, NULL},           {A63 "a", "must be no more than 63 characters"},
		{"1a", DNS1035_WRONG}, {"0", DNS1035_WRONG},
		{"", DNS1035_WRONG},   {"-a", DNS1035_WRONG},
		{"a-", DNS1035_WRONG}, {"a.b", DNS1035_WRONG},
		{"A", DNS1035_WRONG},
	};

	check_names(hf_dns1035_label_problem, names, HF_ARRAY_LEN(names));
}

static void qualified_names(void **state)
{
	static const struct name names[] = {
		{"a", NULL},
		{"MyName", NULL},
		{"my.na_me-1", NULL},
		{"example.com/MyName", NULL},
		{A63, NULL},
		{A253 "/" A63, NULL},
		{A63 "a", "name part must be no more than 63 bytes"},
		{A253 "a/b", "prefix part must be no more than 253 bytes"},
		{"", "name part must be non-empty"},
		{"/", "prefix part must be non-empty"},
		{"/a", "prefix part must be non-empty"},
		{"a/", "name part must be non-empty"},
		{"a.b/", "name part must be non-empty"},
		{"Example.com/a", "prefix part " SUBDOMAIN_WRONG},
		{"a_b/", "prefix part " SUBDOMAIN_WRONG},
		{"-a", "name part " KEY_WRONG},
		{"a-", "name part " KEY_WRONG},
		{"a.", "name part " KEY_WRONG},
		{"_a", "name part " KEY_WRONG},
		{"a b", "name part " KEY_WRONG},
		{"example.com/-a", "name part " KEY_WRONG},
		{"a/b/c", "a valid label key " KEY_WRONG " with an optional DNS subdomain prefix "
			  "and '/' (e.g. 'example.com/MyName')"},
		{"//", "a valid label key " KEY_WRONG " with an optional DNS subdomain prefix "
		       "and '/' (e.g. 'example.com/MyName')"},
	};

	check_names(hf_qualified_name_problem, names, HF_ARRAY_LEN(names));
}

static void label_values(void **state)
{
	static const struct name names[] = {
		{"", NULL},
		{"a", NULL},
		{"MyValue", NULL},
		{"my_va.lue-1", NULL},
		{"12345", NULL},
		{A63, NULL},
		{A63 "a", "must be no more than 63 bytes"},
		{"-", VALUE_WRONG},
		{"a-", VALUE_WRONG},
		{".a", VALUE_WRONG},
		{"a b", VALUE_WRONG},
		{"a/b", VALUE_WRONG},
		{"\xc3\xa4", VALUE_WRONG},
	};

	check_names(hf_label_value_problem, names, HF_ARRAY_LEN(names));
}

static void fnv_hashes_as_published(void **state)
{
	assert_true(hf_hash_str("") == 0xcbf29ce484222325u);
	assert_true(hf_hash_str("a") == 0xaf63dc4c8601ec8cu);
	assert_true(hf_hash_str("foobar") == 0x85944171f73967e8u);
	assert_true(hf_hash_bytes("foobar", 6) == hf_hash_str("foobar"));
}

/* Values of two other implementations with key 0: Rust's for "", CPython's for the others. */
static void siphash_agrees_with_others(void **state)
{
	char counted[64];

	for (int i = 0; i < 64; i++)
		counted[i] = (char)i;
	assert_true(hf_siphash(0, "", 0) == 0xd1fba762150c532cu);
	assert_true(hf_siphash(0, "a", 1) == 0x407448d2b89b1813u);
	assert_true(hf_siphash(0, "hello", 5) == 0xe2e77b41cb4e1f9eu);
	assert_true(hf_siphash(0, "12345678", 8) == 0x3489982430560a87u);
	assert_true(hf_siphash(0, "0123456789abcdef0123456789abcde", 31) == 0x25665a7c52079439u);
	assert_true(hf_siphash(0, counted, 64) == 0x75e05fd5bbc870c6u);
}

static void siphash_depends_on_key_and_on_every_bit(void **state)
{
	char text[24] = "twenty-four bytes long.";
	uint64_t seed = 9;

	for (size_t len = 1; len <= sizeof(text); len++) {
		uint64_t key = test_random(&seed);
		uint64_t hash = hf_siphash(key, text, len);

		assert_true(hash != hf_siphash(key + 1, text, len));
		assert_true(hash != hf_siphash(key, text, len - 1));
		for (size_t bit = 0; bit < len * 8; bit++) {
			text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
			assert_true(hash != hf_siphash(key, text, len));
			text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streq_takes_null),
		cmocka_unit_test(prefixes_and_suffixes_are_found),
		cmocka_unit_test(empty_is_null_or_nothing),
		cmocka_unit_test(case_is_ascii_only),
		cmocka_unit_test(printing_cuts_fills_and_replaces_unprintable_bytes),
		cmocka_unit_test(whole_numbers_are_read),
		cmocka_unit_test(a_text_that_is_no_whole_number_is_refused),
		cmocka_unit_test(the_range_is_checked_and_named),
		cmocka_unit_test(any_number_comes_back_as_it_was_written),
		cmocka_unit_test(is_integer_decides_as_go_does),
		cmocka_unit_test(every_code_point_is_valid_but_surrogates),
		cmocka_unit_test(a_text_is_cut_between_characters),
		cmocka_unit_test(malformed_utf8_is_found),
		cmocka_unit_test(dns1123_labels),
		cmocka_unit_test(dns1123_subdomains),
		cmocka_unit_test(dns1035_labels),
		cmocka_unit_test(qualified_names),
		cmocka_unit_test(label_values),
		cmocka_unit_test(fnv_hashes_as_published),
		cmocka_unit_test(siphash_agrees_with_others),
		cmocka_unit_test(siphash_depends_on_key_and_on_every_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
