/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the lines of a watch: events, errors, unknown types and malformed lines. */
#include "harness/test.h"
#include "kube/kube_internal.h"

#include "base/mem.h"

#include <string.h>

static int read_line(const char *text, enum hf_kube_line *ret_line, struct hf_event *ret_event,
		     struct hf_kube_failure *ret_failure, struct hf_error *err)
{
	/* Copy the line exactly onto the heap, so that the sanitizer finds a read past its end. */
	size_t len = strlen(text);
	HF_AUTOFREE char *line = hf_xmalloc(len > 0 ? len : 1);

	memcpy(line, text, len);
	return hf_kube_line_read(line, len, ret_line, ret_event, ret_failure, err);
}

static void each_type_is_read_with_its_object_and_version(void **state)
{
	static const struct {
		const char *text;
		enum hf_event_type type;
	} cases[] = {
		{"ADDED", HF_EVENT_ADDED},
		{"MODIFIED", HF_EVENT_MODIFIED},
		{"DELETED", HF_EVENT_DELETED},
		{"BOOKMARK", HF_EVENT_BOOKMARK},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *line = hf_xasprintf(
			"{\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}},"
			"\"type\":\"%s\"}",
			cases[i].text);
		enum hf_kube_line kind;
		struct hf_event event;
		struct hf_kube_failure failure;
		struct hf_error err;
		assert_ok(read_line(line, &kind, &event, &failure, &err), &err);
		assert_int_equal(kind, HF_KUBE_LINE_EVENT);
		assert_int_equal(event.type, cases[i].type);
		assert_string_equal(event.resource_version, "7");
		assert_string_equal(hf_doc_name(event.object), "a");
		(void)hf_doc_unref(event.object);
	}
}

static void an_error_is_a_failure_with_the_code_of_its_status(void **state)
{
	static const struct {
		const char *status;
		int code;
		const char *message;
		hf_time retry_after;
	} cases[] = {
		{"{\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}", HF_E_GONE,
		 "too old", 0},
		{"{\"code\":500}", HF_E_INTERNAL, "the watch failed", 0},
		{"{\"code\":200,\"message\":\"odd\"}", HF_E_INTERNAL, "odd", 0},
		{"{}", HF_E_INTERNAL, "the watch failed", 0},
		{"{\"code\":429,\"details\":{\"retryAfterSeconds\":2}}", HF_E_TOO_MANY, "watch",
		 2 * HF_SECOND},
		{"{\"code\":429,\"details\":{\"retryAfterSeconds\":-2}}", HF_E_TOO_MANY, "watch",
		 0},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *line =
			hf_xasprintf("{\"type\":\"ERROR\",\"object\":%s}", cases[i].status);
		enum hf_kube_line kind;
		struct hf_event event;
		struct hf_kube_failure failure;
		struct hf_error err;
		assert_ok(read_line(line, &kind, &event, &failure, &err), &err);
		assert_int_equal(kind, HF_KUBE_LINE_ERROR);
		assert_int_equal(failure.err.code, cases[i].code);
		assert_non_null(strstr(failure.err.text, cases[i].message));
		assert_true(failure.retry_after == cases[i].retry_after);
	}
}

static void an_unknown_event_type_is_skipped(void **state)
{
	enum hf_kube_line kind;
	struct hf_event event;
	struct hf_kube_failure failure;
	struct hf_error err;

	assert_ok(read_line("{\"type\":\"RENAMED\",\"object\":{}}", &kind, &event, &failure, &err),
		  &err);
	assert_int_equal(kind, HF_KUBE_LINE_UNKNOWN);
}

static void a_malformed_line_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"nonsense",
		"[]",
		"{}",
		"{\"type\":\"ADDED\"}",
		"{\"type\":7,\"object\":{}}",
		"{\"type\":\"ADDED\",\"object\":[]}",
		"{\"type\":\"ADDED\",\"object\":{}}",
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}",
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}",
		"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}",
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\","
		"\"resourceVersion\":\"1\"}}",
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\","
		"\"resourceVersion\":\"1\"}}} {}",
		"{\"type\":\"ERROR\",\"object\":{\"code\":}}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		enum hf_kube_line kind;
		struct hf_event event;
		struct hf_kube_failure failure;
		struct hf_error err;
		if (read_line(bad[i], &kind, &event, &failure, &err) != HF_E_BAD_REQUEST)
			fail_msg("'%s'", bad[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_is_read_with_its_object_and_version),
		cmocka_unit_test(an_error_is_a_failure_with_the_code_of_its_status),
		cmocka_unit_test(an_unknown_event_type_is_skipped),
		cmocka_unit_test(a_malformed_line_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
