/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/error.h"

#include "harness/promise.h"

#include "base/str.h"

#include <errno.h>
#include <string.h>

static void set_fills_code_and_text_and_returns_the_code(void **state)
{
	struct hf_error err;

	assert_int_equal(hf_error_set(&err, HF_E_NOT_FOUND, "job '%s' not found", "ddp"),
			 HF_E_NOT_FOUND);
	assert_int_equal(err.code, HF_E_NOT_FOUND);
	assert_string_equal(err.text, "job 'ddp' not found");
}

static void every_function_takes_no_error(void **state)
{
	assert_int_equal(hf_error_set(NULL, HF_E_INVALID, "x"), HF_E_INVALID);
	assert_int_equal(hf_error_errno(NULL, EACCES, "x"), HF_E_IO);
	assert_int_equal(hf_error_errno(NULL, ENOSPC, "x"), HF_E_NO_SPACE);
	assert_int_equal(hf_error_wrap(NULL, "x"), HF_E_INTERNAL);
	hf_error_clear(NULL);
}

static void success_is_no_error_to_set(void **state)
{
	struct hf_error err;

	expect_broken_promise((void)hf_error_set(&err, HF_OK, "x"));
}

static void a_text_too_long_ends_in_dots(void **state)
{
	char want[HF_ERROR_TEXT_MAX];
	struct hf_error err;

	memset(want, ' ', sizeof(want));
	memcpy(want + sizeof(want) - 4, "...", 4);
	hf_error_set(&err, HF_E_INVALID, "%*s", HF_ERROR_TEXT_MAX, "x");
	assert_string_equal(err.text, want);
	hf_error_set(&err, HF_E_INVALID, "%5000s", "x");
	assert_string_equal(err.text, want);
}

static void the_longest_text_that_fits_is_whole(void **state)
{
	struct hf_error err;

	hf_error_set(&err, HF_E_INVALID, "%*s", HF_ERROR_TEXT_MAX - 1, "x");
	assert_int_equal(strlen(err.text), HF_ERROR_TEXT_MAX - 1);
	assert_int_equal(err.text[HF_ERROR_TEXT_MAX - 2], 'x');
}

static void a_cut_never_splits_a_character(void **state)
{
	char text[2 * HF_ERROR_TEXT_MAX];
	struct hf_error err;

	/* Try each position of a four-byte character at the cut. */
	for (size_t lead = 0; lead < 4; lead++) {
		size_t at = lead;

		memset(text, 'a', lead);
		for (; at + 4 < sizeof(text); at += 4)
			memcpy(text + at, "\xf0\x9f\x98\x80", 4);
		text[at] = '\0';
		hf_error_set(&err, HF_E_INVALID, "%s", text);
		assert_true(hf_utf8_valid(err.text, strlen(err.text)));
		assert_true(hf_str_has_suffix(err.text, "\x80..."));
		assert_true(strlen(err.text) >= HF_ERROR_TEXT_MAX - 1 - 3);
	}
}

static void the_old_text_may_be_an_argument_of_the_new(void **state)
{
	struct hf_error err;

	hf_error_set(&err, HF_E_IO, "disk on fire");
	hf_error_set(&err, HF_E_UNAVAILABLE, "come back later (%s)", err.text);
	assert_string_equal(err.text, "come back later (disk on fire)");
	hf_error_wrap(&err, "again: %s", err.text);
	assert_string_equal(err.text, "again: come back later (disk on fire): "
				      "come back later (disk on fire)");
}

static void errno_puts_the_reason_behind(void **state)
{
	struct hf_error err;

	assert_int_equal(hf_error_errno(&err, EACCES, "cannot open '%s'", "f"), HF_E_IO);
	assert_int_equal(err.code, HF_E_IO);
	assert_string_equal(err.text, "cannot open 'f': Permission denied");
}

static void a_full_disk_has_a_code_of_its_own(void **state)
{
	struct hf_error err;

	assert_int_equal(hf_error_errno(&err, ENOSPC, "w"), HF_E_NO_SPACE);
	assert_int_equal(err.code, HF_E_NO_SPACE);
	assert_int_equal(hf_error_errno(&err, EDQUOT, "w"), HF_E_NO_SPACE);
	assert_int_equal(hf_error_errno(&err, EIO, "w"), HF_E_IO);
}

static void wrap_puts_text_in_front_and_keeps_the_code(void **state)
{
	struct hf_error err;

	hf_error_set(&err, HF_E_INVALID, "line 4, column 2: found a tab");
	assert_int_equal(hf_error_wrap(&err, "cannot read '%s'", "job.yaml"), HF_E_INVALID);
	assert_int_equal(err.code, HF_E_INVALID);
	assert_string_equal(err.text, "cannot read 'job.yaml': line 4, column 2: found a tab");
}

static void wrapping_over_and_over_cuts_at_the_end(void **state)
{
	struct hf_error err;

	hf_error_set(&err, HF_E_IO, "cause");
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hf_error_wrap(&err, "layer %d", i), HF_E_IO);
	assert_true(hf_str_has_prefix(err.text, "layer 999: layer 998: "));
	assert_int_equal(strlen(err.text), HF_ERROR_TEXT_MAX - 1);
	assert_true(hf_str_has_suffix(err.text, "..."));
}

static void wrapping_an_error_without_a_code_is_never_success(void **state)
{
	struct hf_error err = {.code = HF_OK};

	assert_int_equal(hf_error_wrap(&err, "x"), HF_E_INTERNAL);
	assert_int_equal(err.code, HF_E_INTERNAL);
}

static void clear_makes_it_success(void **state)
{
	struct hf_error err;

	hf_error_set(&err, HF_E_IO, "x");
	hf_error_clear(&err);
	assert_int_equal(err.code, HF_OK);
	assert_string_equal(err.text, "");
}

static const int all_codes[] = {
#define X(name, value, http, reason) HF_E_##name,
	HF_CODES(X)
#undef X
};

static void codes_have_a_name_a_status_and_a_reason(void **state)
{
	assert_string_equal(hf_code_name(HF_E_NO_SPACE), "NO_SPACE");
	assert_string_equal(hf_code_name(HF_OK), "OK");
	assert_int_equal(hf_code_http(HF_OK), 200);
	assert_string_equal(hf_code_reason(HF_OK), "");
	for (size_t i = 0; i < HF_ARRAY_LEN(all_codes); i++) {
		assert_true(all_codes[i] < 0);
		assert_in_range(hf_code_http(all_codes[i]), 400, 599);
		assert_true(*hf_code_reason(all_codes[i]));
		assert_string_not_equal(hf_code_name(all_codes[i]), "UNKNOWN");
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(all_codes[i], all_codes[j]);
	}
}

static void a_number_that_is_no_code_is_an_internal_error(void **state)
{
	assert_string_equal(hf_code_name(-1000), "UNKNOWN");
	assert_string_equal(hf_code_name(1), "UNKNOWN");
	assert_int_equal(hf_code_http(-1000), 500);
	assert_string_equal(hf_code_reason(-1000), "InternalError");
}

static void a_code_comes_back_from_its_status_and_reason(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(all_codes); i++) {
		int code = all_codes[i];
		int back = hf_code_from_http(hf_code_http(code), hf_code_reason(code));

		/* Several codes share the reason InternalError, so they all come back as
		 * INTERNAL. */
		if (hf_streq(hf_code_reason(code), "InternalError"))
			code = HF_E_INTERNAL;
		assert_int_equal(back, code);
	}
}

static void a_status_alone_has_a_code(void **state)
{
	static const struct {
		int http;
		int code;
	} rows[] = {
		{200, HF_OK},
		{201, HF_OK},
		{204, HF_OK},
		{301, HF_E_INTERNAL},
		{400, HF_E_BAD_REQUEST},
		{401, HF_E_UNAUTHORIZED},
		{403, HF_E_FORBIDDEN},
		{404, HF_E_NOT_FOUND},
		{405, HF_E_METHOD},
		{406, HF_E_NOT_ACCEPTABLE},
		{408, HF_E_TIMEOUT},
		{409, HF_E_CONFLICT},
		{410, HF_E_GONE},
		{413, HF_E_TOO_LARGE},
		{415, HF_E_MEDIA_TYPE},
		{418, HF_E_BAD_REQUEST},
		{422, HF_E_INVALID},
		{429, HF_E_TOO_MANY},
		{500, HF_E_INTERNAL},
		{501, HF_E_UNSUPPORTED},
		{502, HF_E_UNAVAILABLE},
		{503, HF_E_UNAVAILABLE},
		{504, HF_E_TIMEOUT},
		{507, HF_E_NO_SPACE},
		{599, HF_E_INTERNAL},
		{0, HF_E_INTERNAL},
		{-5, HF_E_INTERNAL},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		assert_int_equal(hf_code_from_http(rows[i].http, NULL), rows[i].code);
		assert_int_equal(hf_code_from_http(rows[i].http, ""), rows[i].code);
		assert_int_equal(hf_code_from_http(rows[i].http, "MadeUp"), rows[i].code);
	}
}

static void a_known_reason_outranks_the_status(void **state)
{
	assert_int_equal(hf_code_from_http(409, "AlreadyExists"), HF_E_EXISTS);
	assert_int_equal(hf_code_from_http(410, "Gone"), HF_E_GONE);
	assert_int_equal(hf_code_from_http(500, "ServerTimeout"), HF_E_TIMEOUT);
	assert_int_equal(hf_code_from_http(400, "Forbidden"), HF_E_FORBIDDEN);
	assert_int_equal(hf_code_from_http(200, "Forbidden"), HF_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_code_and_text_and_returns_the_code),
		cmocka_unit_test(every_function_takes_no_error),
		cmocka_unit_test(success_is_no_error_to_set),
		cmocka_unit_test(a_text_too_long_ends_in_dots),
		cmocka_unit_test(the_longest_text_that_fits_is_whole),
		cmocka_unit_test(a_cut_never_splits_a_character),
		cmocka_unit_test(the_old_text_may_be_an_argument_of_the_new),
		cmocka_unit_test(errno_puts_the_reason_behind),
		cmocka_unit_test(a_full_disk_has_a_code_of_its_own),
		cmocka_unit_test(wrap_puts_text_in_front_and_keeps_the_code),
		cmocka_unit_test(wrapping_over_and_over_cuts_at_the_end),
		cmocka_unit_test(wrapping_an_error_without_a_code_is_never_success),
		cmocka_unit_test(clear_makes_it_success),
		cmocka_unit_test(codes_have_a_name_a_status_and_a_reason),
		cmocka_unit_test(a_number_that_is_no_code_is_an_internal_error),
		cmocka_unit_test(a_code_comes_back_from_its_status_and_reason),
		cmocka_unit_test(a_status_alone_has_a_code),
		cmocka_unit_test(a_known_reason_outranks_the_status),
	};

	return cmocka_run_group_tests(tests, promise_setup, NULL);
}
