/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/random.h"
#include "harness/test.h"

#include "base/mem.h"
#include "json/json_internal.h"

#include <stdlib.h>
#include <string.h>

/* Compares with jansson: jansson must accept every text that this parser accepts, and give the
 * same tree. */

static struct hf_json *parse_plain(const char *text, size_t len)
{
	hf_json_prepare();
	return hf_json_of(hf_json_parse_plain(text, len, HF_JSON_DEPTH_CEILING));
}

static struct hf_json *parse_reference(const char *text, size_t len)
{
	hf_json_prepare();
	return hf_json_of(json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL));
}

static void assert_same(struct hf_json *a, struct hf_json *b)
{
	HF_AUTO_STRBUF text_a = HF_STRBUF_INIT(1 << 20), text_b = HF_STRBUF_INIT(1 << 20);

	/* The keys must also have the same order. */
	hf_json_write(a, HF_JSON_COMPACT, &text_a);
	hf_json_write(b, HF_JSON_COMPACT, &text_b);
	assert_string_equal(text_a.data, text_b.data);
}

/* Returns true if the text was accepted. */
static bool is_accepted(const char *text, size_t len)
{
	HF_AUTO_JSON value = parse_plain(text, len);
	HF_AUTO_JSON other = NULL;

	if (value == NULL)
		return false;
	other = parse_reference(text, len);
	if (other == NULL)
		fail_msg("only the plain parser takes '%.*s'", (int)len, text);
	assert_same(value, other);
	return true;
}

static const char *const taken[] = {
	"{}",
	"[]",
	"\"\"",
	"0",
	"-7",
	"123456789012345678",
	"true",
	" \t\r\n false \n",
	"null",
	"[1,[2,[3,{\"a\":[]}]],\"x\"]",
	"{\"b\":1,\"a\":{\"b\":null},\"\":\"\"}",
	"{ \"a\" : [ 1 , 2 ] , \"b\" : \"\\\"\\\\\\/\\b\\f\\n\\r\\t\" }",
	"{\"esc\\naped\":\"a\\nb\",\"and\":{\"more\\t\":\"\\t\"}}",
	"\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
	"\"a\\n\xc3\xa4\x7f\"",
};

static void common_texts_are_taken_and_read_as_jansson_reads_them(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(taken); i++)
		if (!is_accepted(taken[i], strlen(taken[i])))
			fail_msg("%s", taken[i]);
}

static void unusual_or_invalid_text_is_left_to_jansson(void **state)
{
	static const char *const texts[] = {
		"",
		"  ",
		"1.5",
		"1e3",
		"-0",
		"1234567890123456789",
		"9223372036854775808",
		"[99999999999999999999999]",
		"01",
		"-",
		"+1",
		"1x",
		"tru",
		"truex",
		"nul",
		"\"\\u0041\"",
		"\"\\x\"",
		"\"\\",
		"\"a",
		"\"a\nb\"",
		"\"\xff\"",
		"\"\xed\xa0\x80\"",
		"\"\xc3\"",
		"[1,]",
		"[,1]",
		"[1 2]",
		"[1",
		"[1}",
		"{\"a\":1,}",
		"{\"a\" 1}",
		"{\"a\":}",
		"{a:1}",
		"{\"a\":1",
		"{\"a\":1,\"a\":2}",
		"{\"a\":1,\"\\u0061\":2}",
		"{\"\xc3\xa4\":1}",
		"{} {}",
		"]",
		"\xef\xbb\xbf{}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++)
		if (is_accepted(texts[i], strlen(texts[i])))
			fail_msg("took '%s'", texts[i]);
}

static void nesting_and_keys_have_their_limits(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(65536);

	for (int depth = HF_JSON_DEPTH_CEILING; depth <= HF_JSON_DEPTH_CEILING + 1; depth++) {
		hf_strbuf_clear(&sb);
		for (int i = 0; i < depth; i++)
			hf_strbuf_addch(&sb, '[');
		for (int i = 0; i < depth; i++)
			hf_strbuf_addch(&sb, ']');
		assert_int_equal(is_accepted(sb.data, sb.len), depth == HF_JSON_DEPTH_CEILING);
	}
	hf_strbuf_clear(&sb);
	hf_strbuf_addstr(&sb, "[[[]]]");
	assert_null(hf_json_parse_plain(sb.data, sb.len, 2));
	for (int len = 255; len <= 256; len++) {
		hf_strbuf_clear(&sb);
		hf_strbuf_addf(&sb, "{\"%0*d\":1}", len, 0);
		assert_int_equal(is_accepted(sb.data, sb.len), len == 255);
	}
}

static void the_text_ends_where_its_length_says(void **state)
{
	static const char text[] = "{\"a\":[1,true,\"x\\n\",-12]}";

	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		/* The copy is on the heap, so that AddressSanitizer detects a read beyond its
		 * end. */
		char *copy = hf_xmalloc(len + 1);
		memcpy(copy, text, len);
		copy = hf_xrealloc(copy, len > 0 ? len : 1);
		assert_false(is_accepted(copy, len));
		free(copy);
	}
}

/* Copies one of the texts and replaces a few bytes by bytes that JSON uses. */
static size_t mutate_text(uint64_t *random, char *text, size_t max)
{
	static const char bytes[] = "{}[]\",:\\ntrue0-1 \t.e\x01\x7f\xc3\xa4";
	const char *from = taken[test_random_below(random, HF_ARRAY_LEN(taken))];
	size_t len = strlen(from);

	hf_assert(len < max);
	memcpy(text, from, len);
	for (uint64_t n = 1 + test_random_below(random, 3); n > 0 && len > 0; n--) {
		size_t at = (size_t)test_random_below(random, len);
		if (test_random_below(random, 4) == 0)
			memmove(text + at, text + at + 1, --len - at);
		else
			text[at] = bytes[test_random_below(random, sizeof(bytes) - 1)];
	}
	return len;
}

static void jansson_reads_every_accepted_mutated_text_the_same(void **state)
{
	uint64_t random = 7;
	char text[256];
	int seen = 0;

	for (int i = 0; i < 100000; i++) {
		size_t len = mutate_text(&random, text, sizeof(text));
		if (memchr(text, '\0', len) == NULL && is_accepted(text, len))
			seen++;
	}
	assert_true(seen > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(common_texts_are_taken_and_read_as_jansson_reads_them),
		cmocka_unit_test(unusual_or_invalid_text_is_left_to_jansson),
		cmocka_unit_test(nesting_and_keys_have_their_limits),
		cmocka_unit_test(the_text_ends_where_its_length_says),
		cmocka_unit_test(jansson_reads_every_accepted_mutated_text_the_same),
	};
	return cmocka_run_group_tests_name("parse_plain", tests, NULL, NULL);
}
