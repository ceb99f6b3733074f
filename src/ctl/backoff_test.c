/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "ctl/backoff.h"

static void test_delays_double_up_to_the_maximum(void **state)
{
	struct hf_backoff b = HF_BACKOFF_INIT(5 * HF_MS, 35 * HF_MS, 0);

	assert_int_equal(hf_backoff_next(&b, NULL), 5 * HF_MS);
	assert_int_equal(hf_backoff_next(&b, NULL), 10 * HF_MS);
	assert_int_equal(hf_backoff_next(&b, NULL), 20 * HF_MS);
	assert_int_equal(hf_backoff_next(&b, NULL), 35 * HF_MS);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hf_backoff_next(&b, NULL), 35 * HF_MS);
}

static void test_a_maximum_near_the_end_of_time_does_not_overflow(void **state)
{
	struct hf_backoff b = HF_BACKOFF_INIT(1, HF_TIME_NEVER, 0);
	hf_time last = 0;

	for (int i = 0; i < 200; i++) {
		hf_time next = hf_backoff_next(&b, NULL);

		assert_true(next >= last);
		last = next;
	}
	assert_true(last == HF_TIME_NEVER);
}

static void test_reset_starts_over(void **state)
{
	struct hf_backoff b = HF_BACKOFF_INIT(HF_SECOND, HF_MINUTE, 0);

	hf_backoff_next(&b, NULL);
	hf_backoff_next(&b, NULL);
	hf_backoff_reset(&b);
	assert_int_equal(hf_backoff_next(&b, NULL), HF_SECOND);
}

static void test_jitter_adds_up_to_its_share_and_varies(void **state)
{
	struct hf_rng rng;
	hf_time low = HF_TIME_NEVER, high = 0;

	hf_rng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		struct hf_backoff b = HF_BACKOFF_INIT(100, 100, 50);
		hf_time delay = hf_backoff_next(&b, &rng);

		assert_in_range(delay, 100, 150);
		low = delay < low ? delay : low;
		high = delay > high ? delay : high;
	}
	assert_int_equal(low, 100);
	assert_int_equal(high, 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delays_double_up_to_the_maximum),
		cmocka_unit_test(test_a_maximum_near_the_end_of_time_does_not_overflow),
		cmocka_unit_test(test_reset_starts_over),
		cmocka_unit_test(test_jitter_adds_up_to_its_share_and_varies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
