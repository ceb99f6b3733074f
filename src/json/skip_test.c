/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/random.h"
#include "harness/test.h"

#include "base/mem.h"
#include "json/skip.h"
#include "json/skip_internal.h"

#include <stdlib.h>
#include <string.h>

static struct hf_skip skip_over(const char *text)
{
	struct hf_skip s;

	hf_skip_init(&s, text, strlen(text));
	return s;
}

static void values_of_every_type_are_skipped_whole(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"\"\"",
		"0",
		"-12.5e+3",
		"true",
		"false",
		"null",
		" [ { \"a\" : [ ] } ] ",
		"\"a\\\"]b\"",
		"{\"a\\\\\":\"}\",\"b\":[\"[\",{\"c\":\"{{{{{{{{{{{{{{{{{{{{\"}]}",
		"[\"0123456789abcdef\",\"0123456789abcde\",\"0123456789abcd\\\"\"]",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		struct hf_skip s = skip_over(texts[i]);
		assert_true(hf_skip_value(&s));
		assert_true(hf_skip_at_end(&s));
	}
}

static void broken_values_are_refused(void **state)
{
	static const char *const texts[] = {
		"",       " ",
		"{",      "[",
		"[[]",    "\"",
		"\"\\\"", "\"abc\\",
		"tru",    "nul",
		"fals",   "x",
		"}",      "01",
		"-",      "1.",
		"1e",     "1e+",
		".5",     "+1",
		"[\"]",   "[\"0123456789abcdef\\\"]",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		struct hf_skip s = skip_over(texts[i]);
		if (hf_skip_value(&s))
			fail_msg("'%s' was accepted", texts[i]);
	}
}

static void the_type_is_told_by_the_first_byte(void **state)
{
	static const struct {
		const char *text;
		enum hf_json_type type;
	} cases[] = {
		{" \n\t\r{", HF_JSON_OBJECT}, {"[", HF_JSON_ARRAY},  {"\"", HF_JSON_STRING},
		{"-", HF_JSON_INT},           {"7", HF_JSON_INT},    {"t", HF_JSON_BOOL},
		{"f", HF_JSON_BOOL},          {"n", HF_JSON_NULL},   {"", HF_JSON_ABSENT},
		{"'", HF_JSON_ABSENT},        {"}", HF_JSON_ABSENT},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_skip s = skip_over(cases[i].text);
		assert_int_equal(hf_skip_peek(&s), cases[i].type);
	}
}

static void objects_and_arrays_are_walked(void **state)
{
	struct hf_skip s = skip_over("{\"a\":[1,2,{}],\"b\":\"x\"}");
	struct hf_skip_string key;
	bool first = true, inner = true;

	assert_true(hf_skip_enter(&s));
	assert_int_equal(hf_skip_next_key(&s, &first, &key), HF_SKIP_ENTRY);
	assert_true(hf_skip_equals(&key, "a", 1));
	assert_true(hf_skip_enter(&s));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hf_skip_next_item(&s, &inner), HF_SKIP_ENTRY);
		assert_true(hf_skip_value(&s));
	}
	assert_int_equal(hf_skip_next_item(&s, &inner), HF_SKIP_END);
	assert_int_equal(hf_skip_next_key(&s, &first, &key), HF_SKIP_ENTRY);
	assert_false(hf_skip_equals(&key, "a", 1));
	assert_true(hf_skip_value(&s));
	assert_int_equal(hf_skip_next_key(&s, &first, &key), HF_SKIP_END);
	assert_true(hf_skip_at_end(&s));
}

static void an_entry_out_of_place_is_noticed(void **state)
{
	static const char *const texts[] = {"{,}",     "{\"a\":1,}", "{\"a\":1 \"b\":2}",
					    "{\"a\"}", "{a:1}",      "{\"a\":}",
					    "{1:2}",   "{\"a\":1]"};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		struct hf_skip s = skip_over(texts[i]);
		struct hf_skip_string key;
		bool first = true, broken = false;
		assert_true(hf_skip_enter(&s));
		for (enum hf_skip_next next = HF_SKIP_ENTRY; !broken && next != HF_SKIP_END;) {
			next = hf_skip_next_key(&s, &first, &key);
			broken = next == HF_SKIP_BROKEN ||
				 (next == HF_SKIP_ENTRY && !hf_skip_value(&s));
		}
		if (!broken)
			fail_msg("'%s' was accepted", texts[i]);
	}
}

static void numbers_keep_their_64_bits(void **state)
{
	static const struct {
		const char *text;
		enum hf_json_type type;
		int64_t integer;
		double real;
	} good[] = {
		{"0", HF_JSON_INT, 0, 0},
		{"-0", HF_JSON_INT, 0, 0},
		{"9223372036854775807", HF_JSON_INT, INT64_MAX, 0},
		{"-9223372036854775808", HF_JSON_INT, INT64_MIN, 0},
		{"1.5", HF_JSON_REAL, 0, 1.5},
		{"-1E2", HF_JSON_REAL, 0, -100},
		{"0.00000000000000000000000000000000000000000000000000000000000000000000000001e74",
		 HF_JSON_REAL, 0, 1},
	};
	static const char *const bad[] = {
		"9223372036854775808", "-9223372036854775809", "1e400", "00", "-", "1.e5",
		"99999999999999999999"};
	struct hf_skip_number n;

	for (size_t i = 0; i < HF_ARRAY_LEN(good); i++) {
		struct hf_skip s = skip_over(good[i].text);
		assert_true(hf_skip_number(&s, &n));
		assert_int_equal(n.type, good[i].type);
		assert_true(n.integer == good[i].integer);
		assert_memory_equal(&n.real, &good[i].real, sizeof(n.real));
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct hf_skip s = skip_over(bad[i]);
		assert_false(hf_skip_number(&s, &n));
	}
}

static void words_are_read_to_the_letter(void **state)
{
	struct hf_skip s = skip_over(" true false null");
	bool b = false;

	assert_true(hf_skip_bool(&s, &b));
	assert_true(b);
	assert_true(hf_skip_bool(&s, &b));
	assert_false(b);
	assert_false(hf_skip_bool(&s, &b));
	assert_true(hf_skip_null(&s));
	assert_false(hf_skip_null(&s));
}

static void escapes_become_text(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} cases[] = {
		{"\"\"", ""},
		{"\"plain\"", "plain"},
		{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
		{"\"\\u0041\\u00e4\\u20AC\\ud83d\\uDE00\"",
		 "A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\"\xc3\xa4\\n\"", "\xc3\xa4\n"},
		{"\"\\u0000\"", NULL},
		{"\"\\ud800\"", NULL},
		{"\"\\ud800\\u0041\"", NULL},
		{"\"\\ud800x\"", NULL},
		{"\"\\udc00\"", NULL},
		{"\"\\u12g4\"", NULL},
		{"\"\\u123\"", NULL},
		{"\"\\a\"", NULL},
		{"\"\t\"", NULL},
		{"\"\xc3\"", NULL},
		{"\"\\n\xff\"", NULL},
		{"\"\xed\xa0\x80\"", NULL},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(4096);
		struct hf_skip s = skip_over(cases[i].text);
		struct hf_skip_string string;
		size_t len = 99;
		assert_true(hf_skip_string(&s, &string));
		char *text = hf_skip_text(&string, arena, &len);
		if (!cases[i].want) {
			assert_null(text);
			continue;
		}
		assert_non_null(text);
		assert_string_equal(text, cases[i].want);
		assert_int_equal(len, strlen(text));
		assert_true(hf_skip_equals(&string, text, len));
		assert_false(hf_skip_equals(&string, "other thing", 11));
		assert_false(len > 0 && hf_skip_equals(&string, text, len - 1));
	}
}

static void an_error_says_line_and_column(void **state)
{
	struct hf_skip s = skip_over("{\n  \"a\": x}");
	struct hf_skip_string key;
	struct hf_error err;
	bool first = true;

	assert_true(hf_skip_enter(&s));
	assert_int_equal(hf_skip_next_key(&s, &first, &key), HF_SKIP_ENTRY);
	assert_false(hf_skip_value(&s));
	assert_code(hf_skip_error(&s, "not valid JSON", &err), HF_E_BAD_REQUEST);
	assert_string_equal(err.text, "line 2, column 8: not valid JSON");
}

/* Random text of the relevant bytes, in a block of its exact size, so that AddressSanitizer
 * detects a read beyond the end. */
static void the_fast_scans_equal_the_portable_ones(void **state)
{
	static const char bytes[] = "{}[]\"\"\"\\a  :,{}[]bcdefghijklmnopqrstuvwxyz";
	/* Random text from these bytes has many blocks in a row without a backslash, like most
	 * objects. */
	static const char plain[] = "{{}[]\"\"a  :,bcdefghijklmnopqrstuvwxyz";
	uint64_t x = 88172645463325252u;

	for (int round = 0; round < 100000; round++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		size_t len = 1 + x % 300;
		const char *from = round % 4 ? bytes : plain;
		size_t alphabet = round % 2       ? 14
				  : from == plain ? sizeof(plain) - 1
						  : sizeof(bytes) - 1;
		HF_AUTOFREE char *text = hf_xmalloc(len);
		uint64_t y = x;
		for (size_t i = 0; i < len; i++) {
			y = y * 6364136223846793005u + 1442695040888963407u;
			text[i] = from[(y >> 33) % alphabet];
		}
		bool fast = false, slow = false;
		text[0] = '"';
		assert_ptr_equal(hf_skip_string_end(text, text + len, &fast),
				 hf_skip_string_end_portable(text, text + len, &slow));
		assert_int_equal(fast, slow);
		text[0] = '{';
		assert_ptr_equal(hf_skip_container_end(text, text + len),
				 hf_skip_container_end_portable(text, text + len));
	}
}

/* Runs of backslashes of every length, at every position of a block, only where JSON allows
 * them. */
static void escapes_are_skipped_as_the_portable_scan_does(void **state)
{
	static const char *const pieces[] = {
		"{", "[", "}", "]", "\"a\"", "\"\"", ",", " ",
	};
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
	uint64_t random = 11;

	for (int round = 0; round < 50000; round++) {
		hf_strbuf_clear(&sb);
		hf_strbuf_addstr(&sb, "{{{{{{");
		while (sb.len < 250) {
			size_t piece = (size_t)test_random_below(&random, 2 * HF_ARRAY_LEN(pieces));

			if (piece < HF_ARRAY_LEN(pieces)) {
				hf_strbuf_addstr(&sb, pieces[piece]);
				continue;
			}
			hf_strbuf_addch(&sb, '"');
			for (uint64_t n = test_random_below(&random, 70); n > 0; n--)
				hf_strbuf_addstr(&sb, n % 3 ? "\\\\" : "\\\"}");
			hf_strbuf_addch(&sb, '"');
		}
		size_t cut = (size_t)test_random_below(&random, 64);
		char *text = hf_xmalloc(sb.len - cut);

		memcpy(text, sb.data, sb.len - cut);
		assert_ptr_equal(hf_skip_container_end(text, text + sb.len - cut),
				 hf_skip_container_end_portable(text, text + sb.len - cut));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_every_type_are_skipped_whole),
		cmocka_unit_test(broken_values_are_refused),
		cmocka_unit_test(the_type_is_told_by_the_first_byte),
		cmocka_unit_test(objects_and_arrays_are_walked),
		cmocka_unit_test(an_entry_out_of_place_is_noticed),
		cmocka_unit_test(numbers_keep_their_64_bits),
		cmocka_unit_test(words_are_read_to_the_letter),
		cmocka_unit_test(escapes_become_text),
		cmocka_unit_test(an_error_says_line_and_column),
		cmocka_unit_test(the_fast_scans_equal_the_portable_ones),
		cmocka_unit_test(escapes_are_skipped_as_the_portable_scan_does),
	};
	return cmocka_run_group_tests_name("json/skip", tests, NULL, NULL);
}
