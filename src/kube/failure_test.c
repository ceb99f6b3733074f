/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of failure.c: dates, Retry-After, Status bodies and Warning headers. */
#include "harness/test.h"
#include "kube/kube_internal.h"

#include "base/mem.h"

#include <string.h>

#define NOW (784111777 * HF_SECOND) /* Sun, 06 Nov 1994 08:49:37 GMT */

static void only_imf_fixdates_are_read(void **state)
{
	static const char *const bad[] = {
		"",
		"Sun, 06 Nov 1994 08:49:37",
		"Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun, 06 Nov 1994 08:49:37 CET",
		"Sun, 06 ovD 1994 08:49:37 GMT",
		"Sun, 06 Nov 0094 08:49:37 GMT",
		"Sun, 06 Nov 9994 08:49:37 GMT",
		"Sun, 06 Nov 1994 08:49:3x GMT",
	};

	assert_true(hf_kube_date_parse("Sun, 06 Nov 1994 08:49:37 GMT") == NOW);
	assert_true(hf_kube_date_parse(NULL) == HF_TIME_NONE);
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		if (hf_kube_date_parse(bad[i]) != HF_TIME_NONE)
			fail_msg("'%s'", bad[i]);
}

static void retry_after_is_seconds_or_a_date(void **state)
{
	static const struct {
		const char *text;
		hf_time span;
	} cases[] = {
		{"1", HF_SECOND},
		{"120", 120 * HF_SECOND},
		{"86400", HF_DAY},
		{"86401", 0},
		{"-1", 0},
		{"0", 0},
		{"soon", 0},
		{"", 0},
		{"Sun, 06 Nov 1994 08:50:37 GMT", HF_MINUTE},
		{"Sun, 06 Nov 1994 08:49:37 GMT", 0},
		{"Sun, 06 Nov 1994 08:00:00 GMT", 0},
		{"Sun, 06 Nov 2094 08:00:00 GMT", HF_DAY},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		if (hf_kube_retry_after_parse(cases[i].text, NOW) != cases[i].span)
			fail_msg("'%s'", cases[i].text);
	assert_int_equal(hf_kube_retry_after_parse(NULL, NOW), 0);
	assert_int_equal(hf_kube_retry_after_parse("Sun, 06 Nov 2094 08:00:00 GMT", HF_TIME_NONE),
			 0);
}

static void a_status_says_when_to_come_back_in_whole_seconds(void **state)
{
	static const struct {
		const char *text;
		hf_time span;
	} cases[] = {
		{"{\"details\":{\"retryAfterSeconds\":5}}", 5 * HF_SECOND},
		{"{\"details\":{\"retryAfterSeconds\":86400}}", HF_DAY},
		{"{\"details\":{\"retryAfterSeconds\":86401}}", 0},
		{"{\"details\":{\"retryAfterSeconds\":-1}}", 0},
		{"{\"details\":{\"retryAfterSeconds\":\"5\"}}", 0},
		{"{\"details\":[]}", 0},
		{"{}", 0},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON status = NULL;
		struct hf_error err;
		assert_ok(hf_json_parse(cases[i].text, strlen(cases[i].text), NULL, &status, &err),
			  &err);
		if (hf_kube_status_retry_after(status) != cases[i].span)
			fail_msg("%s", cases[i].text);
	}
	assert_int_equal(hf_kube_status_retry_after(NULL), 0);
}

static void warnings_are_the_quoted_text_of_code_299(void **state)
{
	static const struct {
		const char *header, *text;
	} cases[] = {
		{"299 - \"unknown field \\\"spec.x\\\"\"", "unknown field \"spec.x\""},
		{"299 - \"a\\\\b\"", "a\\b"},
		{"299 - \"esc \x1b[1m\"", "esc  [1m"},
		{"299 - \"not closed", "not closed"},
		{"299 - none", NULL},
		{"199 - \"other\"", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = NULL;
		bool is = hf_kube_warning_parse(cases[i].header, &text);
		assert_true(is == (cases[i].text != NULL));
		if (is)
			assert_string_equal(text, cases[i].text);
	}
}

static void a_failure_has_the_message_of_its_status_or_the_http_status(void **state)
{
	static const struct {
		int status;
		const char *body;
		int code;
		const char *message;
		hf_time retry_after;
	} cases[] = {
		{404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"no such pod\"}",
		 HF_E_NOT_FOUND, "no such pod", 0},
		{409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"there\"}",
		 HF_E_EXISTS, "there", 0},
		{403,
		 "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"pods is forbidden\"}",
		 HF_E_FORBIDDEN, "pods is forbidden", 0},
		{429, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":3}}", HF_E_TOO_MANY,
		 "HTTP status 429", 3 * HF_SECOND},
		{503, "<html>", HF_E_UNAVAILABLE, "HTTP status 503", 0},
		{500, "{\"kind\":\"Pod\",\"message\":\"odd\"}", HF_E_INTERNAL, "HTTP status 500",
		 0},
		{504, "", HF_E_TIMEOUT, "HTTP status 504", 0},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		const struct hf_http_result result = {.status = cases[i].status};
		struct hf_kube_failure failure;
		hf_kube_failure_read(&result, cases[i].body, strlen(cases[i].body), NOW, &failure);
		assert_int_equal(failure.err.code, cases[i].code);
		if (strstr(failure.err.text, cases[i].message) == NULL)
			fail_msg("'%s'", failure.err.text);
		assert_true(failure.retry_after == cases[i].retry_after);
		(void)hf_doc_unref(failure.status);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_imf_fixdates_are_read),
		cmocka_unit_test(retry_after_is_seconds_or_a_date),
		cmocka_unit_test(a_status_says_when_to_come_back_in_whole_seconds),
		cmocka_unit_test(warnings_are_the_quoted_text_of_code_299),
		cmocka_unit_test(a_failure_has_the_message_of_its_status_or_the_http_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
