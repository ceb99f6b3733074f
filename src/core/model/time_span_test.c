/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"

#include "harness/test.h"

static void seconds_beyond_what_fits_are_for_ever(void **state)
{
	(void)state;
	assert_true(hf_seconds(0) == 0);
	assert_true(hf_seconds(30) == 30 * HF_SECOND);
	assert_true(hf_seconds(HF_SECONDS_MAX) == HF_SECONDS_MAX * HF_SECOND);
	assert_true(hf_seconds(HF_SECONDS_MAX + 1) == HF_TIME_NEVER);
	assert_true(hf_seconds(INT64_MAX) == HF_TIME_NEVER);
}

static void spans_never_run_over_and_never_go_back(void **state)
{
	(void)state;
	assert_true(hf_elapsed(5, 12) == 7);
	assert_true(hf_elapsed(12, 5) == 0);
	assert_true(hf_elapsed(-5, 5) == 10);
	assert_true(hf_elapsed(INT64_MIN + 1, INT64_MAX) == HF_TIME_NEVER);
	assert_true(hf_elapsed(INT64_MIN + 1, 0) == INT64_MAX);
}

static void spans_and_times_are_for_people(void **state)
{
	struct hf_arena *arena = hf_arena_create(4096);

	(void)state;
	assert_string_equal(hf_time_text(arena, (hf_time)1767225600 * HF_SECOND),
			    "2026-01-01T00:00:00Z");
	assert_string_equal(hf_time_text(arena, HF_TIME_NONE), "");
	assert_string_equal(hf_span_text(arena, 90 * HF_SECOND), "90s");
	hf_arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seconds_beyond_what_fits_are_for_ever),
		cmocka_unit_test(spans_never_run_over_and_never_go_back),
		cmocka_unit_test(spans_and_times_are_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
