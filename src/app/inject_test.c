/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/inject.h"

#include "harness/test.h"

static void a_fault_names_a_rank_and_a_time(void **state)
{
	struct hf_injection injection;
	struct hf_error err;

	assert_ok(hf_injection_parse("kill worker-1 at 5s", &injection, &err), &err);
	assert_string_equal(injection.rank, "worker-1");
	assert_int_equal(injection.after, 5 * HF_SECOND);
	assert_ok(hf_injection_parse("  kill\tmaster-0  at 1m30s ", &injection, &err), &err);
	assert_string_equal(injection.rank, "master-0");
	assert_int_equal(injection.after, 90 * HF_SECOND);
}

static void what_is_no_fault_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"kill",
		"kill worker-1",
		"kill worker-1 at",
		"kill worker-1 at soon",
		"kill worker-1 at -5s",
		"kill worker-1 at 5s please",
		"kill ../x at 5s",
		"stop worker-1 at 5s",
		"kill worker-1 in 5s",
		"kill aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa at 5s",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct hf_injection injection = {.after = 7};
		struct hf_error err;
		assert_code(hf_injection_parse(bad[i], &injection, &err), HF_E_INVALID);
		assert_int_equal(injection.after, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_names_a_rank_and_a_time),
		cmocka_unit_test(what_is_no_fault_is_refused),
	};

	return cmocka_run_group_tests_name("inject", tests, NULL, NULL);
}
