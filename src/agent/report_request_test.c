/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/report_request.h"
#include "harness/test.h"

#include <string.h>

#define NOW (20000 * HF_DAY)
#define TEXT "n1-1 2024-10-04T00:00:00.000000Z 10"

static struct hf_report_request make_request(const char *text)
{
	struct hf_report_request request = {0};
	struct hf_error err;

	assert_ok(hf_report_request_read(&request, text, NOW, &err), &err);
	return request;
}

static void a_request_is_answered_after_a_look(void **state)
{
	struct hf_report_request r = make_request(TEXT);
	hf_time at = NOW + 10 * HF_SECOND;

	(void)state;
	assert_int_equal(hf_report_request_next(&r, NOW, NOW, NOW), HF_REPORT_REQUEST_WAITS);
	assert_int_equal(hf_report_request_next(&r, at, at, at), HF_REPORT_REQUEST_WAITS);
	assert_int_equal(hf_report_request_next(&r, at + 1, NOW, NOW), HF_REPORT_REQUEST_LOOK);
	/* The driver was asked before the time to look. */
	assert_int_equal(hf_report_request_next(&r, at + 2, at + 1, at), HF_REPORT_REQUEST_LOOK);
	assert_int_equal(hf_report_request_next(&r, at + 3, at, at + 1), HF_REPORT_REQUEST_LOOK);
	assert_int_equal(hf_report_request_next(&r, at + 4, at + 1, at + 1),
			 HF_REPORT_REQUEST_REPORT);
	assert_int_equal(hf_report_request_next(&r, at + 5, at + 1, at + 1),
			 HF_REPORT_REQUEST_NONE);
}

static void a_text_is_one_request(void **state)
{
	struct hf_report_request r = make_request(TEXT);
	struct hf_error err;

	(void)state;
	r.waiting = false;
	assert_ok(hf_report_request_read(&r, TEXT, NOW + HF_MINUTE, &err), &err);
	assert_false(r.waiting);
	assert_ok(hf_report_request_read(&r, "n1-2 x 0", NOW, &err), &err);
	assert_true(r.waiting);
	assert_true(r.look_at == NOW);
	/* The annotation was removed. */
	assert_ok(hf_report_request_read(&r, NULL, NOW, &err), &err);
	assert_false(r.waiting);
}

static void a_probe_that_never_looked_is_not_waited_for(void **state)
{
	struct hf_report_request r = make_request(TEXT);
	hf_time at = NOW + 11 * HF_SECOND;

	(void)state;
	assert_int_equal(hf_report_request_next(&r, at, HF_TIME_NONE, HF_TIME_NONE),
			 HF_REPORT_REQUEST_REPORT);
}

static void a_driver_that_never_answers_ends_the_request(void **state)
{
	struct hf_report_request r = make_request(TEXT);
	hf_time at = NOW + 10 * HF_SECOND + HF_REPORT_REQUEST_TRIES;

	(void)state;
	assert_int_equal(hf_report_request_next(&r, at, at, NOW), HF_REPORT_REQUEST_LOOK);
	assert_int_equal(hf_report_request_next(&r, at + 1, at, NOW), HF_REPORT_REQUEST_NONE);
	assert_false(r.waiting);
}

static void other_texts_are_refused(void **state)
{
	static const char *const texts[] = {"",       "10",    "a ",    "a -1",
					    "a 3601", "a 1.5", "a 1e3", "a 99999999999999999999"};
	struct hf_report_request r = {0};
	struct hf_error err;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		assert_int_equal(hf_report_request_read(&r, texts[i], NOW, &err), HF_E_INVALID);
		assert_false(r.waiting);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_answered_after_a_look),
		cmocka_unit_test(a_text_is_one_request),
		cmocka_unit_test(a_probe_that_never_looked_is_not_waited_for),
		cmocka_unit_test(a_driver_that_never_answers_ends_the_request),
		cmocka_unit_test(other_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
