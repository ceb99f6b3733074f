/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/base64.h"

#include "harness/random.h"
#include "harness/test.h"

#include <string.h>

/* The examples of RFC 4648, section 10, and bytes that are not text. */
static const struct {
	const char *bytes, *text;
} rows[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
	{"\xfb\xff\xbf", "+/+/"},
};

static void bytes_are_written_with_padding(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(64);
		hf_base64_encode(rows[i].bytes, strlen(rows[i].bytes), &sb);
		assert_string_equal(sb.data, rows[i].text);
	}
}

static void encoded_texts_are_decoded(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(64);
		struct hf_error err;
		assert_ok(hf_base64_decode(rows[i].text, &sb, &err), &err);
		assert_string_equal(sb.data, rows[i].bytes);
	}
}

static void bytes_of_any_kind_and_length_come_back(void **state)
{
	uint64_t random = 7;

	for (size_t len = 0; len < 300; len++) {
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(1024), back = HF_STRBUF_INIT(1024);
		unsigned char bytes[300];
		struct hf_error err;
		for (size_t i = 0; i < len; i++)
			bytes[i] = (unsigned char)test_random(&random);
		hf_base64_encode(bytes, len, &text);
		assert_int_equal(text.len, (len + 2) / 3 * 4);
		assert_ok(hf_base64_decode(text.data, &back, &err), &err);
		assert_int_equal(back.len, len);
		assert_memory_equal(back.data, bytes, len);
	}
}

static void line_breaks_are_passed_over(void **state)
{
	static const char *const texts[] = {"Zm9vYg==\n", "Zm9v\r\nYg==", "\nZm9vYg=\n=\n"};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(64);
		struct hf_error err;
		assert_ok(hf_base64_decode(texts[i], &sb, &err), &err);
		assert_string_equal(sb.data, "foob");
	}
}

static void a_text_that_is_not_base64_is_refused(void **state)
{
	static const char *const texts[] = {
		"Q", "QQ",   "QQ=",  "Q===",  "QQ===", "QQ=Q",       "Q Q=",     "QUJD=",
		"=", "====", "Q-_=", "QUJDQ", "!",     "\xc3\xa4==", "QQ==QQ==", "QUJD\t"};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(64);
		struct hf_error err;
		assert_code(hf_base64_decode(texts[i], &sb, &err), HF_E_INVALID);
		assert_string_equal(err.text, "not base64");
	}
}

static void a_full_buffer_is_reported(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4);
	struct hf_error err;

	assert_ok(hf_base64_decode("Zm9vYmFy", &sb, &err), &err);
	assert_code(hf_strbuf_ok(&sb, "value", &err), HF_E_TOO_LARGE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_written_with_padding),
		cmocka_unit_test(encoded_texts_are_decoded),
		cmocka_unit_test(bytes_of_any_kind_and_length_come_back),
		cmocka_unit_test(line_breaks_are_passed_over),
		cmocka_unit_test(a_text_that_is_not_base64_is_refused),
		cmocka_unit_test(a_full_buffer_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
