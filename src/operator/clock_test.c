/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "operator/operator_internal.h"

#define T0 (1700000000 * HF_SECOND)

static void test_until_a_server_is_heard_our_own_clock_counts(void **state)
{
	struct hf_server_clock clock = {0};

	assert_int_equal(hf_server_clock_now(&clock, 5, T0), T0);
	hf_server_clock_hear(&clock, HF_TIME_NONE, 6, 0);
	assert_int_equal(hf_server_clock_now(&clock, 6, T0 + 1), T0 + 1);
}

static void test_the_servers_date_counts_and_goes_on_with_our_monotonic_clock(void **state)
{
	struct hf_server_clock clock = {0};

	/* This machine's clock is an hour ahead, which must not matter. */
	assert_int_equal(hf_server_clock_now(&clock, 0, T0 + HF_HOUR), T0 + HF_HOUR);
	hf_server_clock_hear(&clock, T0, 10 * HF_SECOND, 0);
	assert_int_equal(hf_server_clock_now(&clock, 10 * HF_SECOND, 0), T0);
	assert_int_equal(hf_server_clock_now(&clock, 25 * HF_SECOND, 0), T0 + 15 * HF_SECOND);
}

static void test_the_highest_bound_is_the_best_estimate(void **state)
{
	struct hf_server_clock clock = {0};

	/* The server's time is T0 + 0.9 s at monotonic time 0; Date headers are cut to the
	 * second. */
	hf_server_clock_hear(&clock, T0, 0, 0);
	assert_int_equal(hf_server_clock_now(&clock, 0, 0), T0);
	hf_server_clock_hear(&clock, T0 + HF_SECOND, 200 * HF_MS, 0);
	assert_int_equal(hf_server_clock_now(&clock, 200 * HF_MS, 0), T0 + HF_SECOND);
	hf_server_clock_hear(&clock, T0 + HF_SECOND, 900 * HF_MS, 0);
	assert_int_equal(hf_server_clock_now(&clock, 900 * HF_MS, 0), T0 + HF_SECOND + 700 * HF_MS);
}

static void test_time_stands_still_while_the_server_went_back_and_then_goes_on(void **state)
{
	struct hf_server_clock clock = {0};

	hf_server_clock_hear(&clock, T0 + 10 * HF_MINUTE, 0, 0);
	assert_int_equal(hf_server_clock_now(&clock, 0, 0), T0 + 10 * HF_MINUTE);
	hf_server_clock_hear(&clock, T0, HF_SECOND, 0);
	assert_int_equal(hf_server_clock_now(&clock, HF_SECOND, 0), T0 + 10 * HF_MINUTE);
	assert_int_equal(hf_server_clock_now(&clock, 5 * HF_MINUTE, 0), T0 + 10 * HF_MINUTE);
	assert_int_equal(hf_server_clock_now(&clock, 11 * HF_MINUTE + HF_SECOND, 0),
			 T0 + 11 * HF_MINUTE);
}

static void test_a_step_forward_is_followed_at_once(void **state)
{
	struct hf_server_clock clock = {0};

	hf_server_clock_hear(&clock, T0, 0, 0);
	hf_server_clock_hear(&clock, T0 + HF_HOUR, HF_SECOND, 0);
	assert_int_equal(hf_server_clock_now(&clock, HF_SECOND, 0), T0 + HF_HOUR);
}

static void test_a_jump_is_told_so_that_what_was_planned_is_planned_again(void **state)
{
	struct hf_server_clock clock = {0};

	/* This machine's clock agrees with the server's within a second, so the estimate does not
	 * jump. */
	assert_false(hf_server_clock_hear(&clock, T0, HF_SECOND, T0 + HF_SECOND));
	/* It was ten minutes off. */
	clock = (struct hf_server_clock){0};
	assert_true(hf_server_clock_hear(&clock, T0, HF_SECOND, T0 - 10 * HF_MINUTE));
	assert_false(hf_server_clock_hear(&clock, T0 + HF_SECOND, 2 * HF_SECOND, 0));
	assert_true(hf_server_clock_hear(&clock, T0 + HF_MINUTE, 3 * HF_SECOND, 0));
	assert_true(hf_server_clock_hear(&clock, T0, 4 * HF_SECOND, 0));
	assert_false(hf_server_clock_hear(&clock, HF_TIME_NONE, 5 * HF_SECOND, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_until_a_server_is_heard_our_own_clock_counts),
		cmocka_unit_test(test_the_servers_date_counts_and_goes_on_with_our_monotonic_clock),
		cmocka_unit_test(test_the_highest_bound_is_the_best_estimate),
		cmocka_unit_test(
			test_time_stands_still_while_the_server_went_back_and_then_goes_on),
		cmocka_unit_test(test_a_jump_is_told_so_that_what_was_planned_is_planned_again),
		cmocka_unit_test(test_a_step_forward_is_followed_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
