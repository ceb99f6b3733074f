/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/random.h"

static void equal_seeds_give_equal_numbers_and_others_do_not(void **state)
{
	struct hf_rng a, b, c;
	unsigned same = 0;

	hf_rng_init(&a, 7);
	hf_rng_init(&b, 7);
	hf_rng_init(&c, 8);
	for (int i = 0; i < 100; i++) {
		uint64_t value = hf_rng_next(&a);
		assert_true(value == hf_rng_next(&b));
		same += value == hf_rng_next(&c);
	}
	assert_int_equal(same, 0);
}

static void numbers_below_a_bound_reach_all_of_it_and_no_more(void **state)
{
	unsigned seen[7] = {0};
	struct hf_rng rng;

	hf_rng_init(&rng, 0);
	for (int i = 0; i < 7000; i++) {
		uint64_t value = hf_rng_below(&rng, 7);
		assert_true(value < 7);
		seen[value]++;
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 800, 1200);
	assert_true(hf_rng_below(&rng, 0) == 0);
	assert_true(hf_rng_below(&rng, 1) == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_seeds_give_equal_numbers_and_others_do_not),
		cmocka_unit_test(numbers_below_a_bound_reach_all_of_it_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
