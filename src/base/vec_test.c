/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/vec.h"

#include "harness/promise.h"
#include "harness/random.h"

#include <stdint.h>
#include <string.h>

static void pushed_items_keep_their_order(void **state)
{
	HF_VEC(int) v = HF_VEC_INIT(1000);

	for (int i = 0; i < 1000; i++)
		assert_true(HF_VEC_PUSH(&v, i));
	assert_int_equal(v.len, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(v.items[i], i);
	HF_VEC_RELEASE(&v);
}

static void a_push_past_the_maximum_changes_nothing(void **state)
{
	/* Below, at and above the first capacity, and where doubling would exceed the maximum. */
	static const size_t maxima[] = {0, 1, 7, 8, 9, 15, 16, 17, 100};

	for (size_t m = 0; m < HF_ARRAY_LEN(maxima); m++) {
		HF_VEC(size_t) v = HF_VEC_INIT(maxima[m]);

		for (size_t i = 0; i < maxima[m]; i++)
			assert_true(HF_VEC_PUSH(&v, i));
		for (int again = 0; again < 3; again++)
			assert_false(HF_VEC_PUSH(&v, 12345));
		assert_int_equal(v.len, maxima[m]);
		assert_true(v.cap <= maxima[m]);
		for (size_t i = 0; i < v.len; i++)
			assert_int_equal(v.items[i], i);
		HF_VEC_RELEASE(&v);
	}
}

static void items_may_be_structures(void **state)
{
	struct pair {
		char name[24];
		uint64_t number;
	};
	HF_VEC(struct pair) v = HF_VEC_INIT(50);

	for (uint64_t i = 0; i < 50; i++)
		assert_true(HF_VEC_PUSH(&v, ((struct pair){.name = "n", .number = i})));
	for (uint64_t i = 0; i < 50; i++) {
		assert_string_equal(v.items[i].name, "n");
		assert_int_equal(v.items[i].number, i);
	}
	HF_VEC_RELEASE(&v);
}

static void remove_closes_the_gap(void **state)
{
	HF_VEC(int) v = HF_VEC_INIT(10);

	for (int i = 0; i < 5; i++)
		assert_true(HF_VEC_PUSH(&v, i));
	HF_VEC_REMOVE(&v, 4); /* the last */
	HF_VEC_REMOVE(&v, 0); /* the first */
	HF_VEC_REMOVE(&v, 1); /* the middle */
	assert_int_equal(v.len, 2);
	assert_int_equal(v.items[0], 1);
	assert_int_equal(v.items[1], 3);
	HF_VEC_RELEASE(&v);
}

static void removing_a_missing_item_is_a_broken_promise(void **state)
{
	HF_VEC(int) v = HF_VEC_INIT(10);

	assert_true(HF_VEC_PUSH(&v, 1));
	expect_broken_promise(HF_VEC_REMOVE(&v, 1));
	HF_VEC_REMOVE(&v, 0);
	expect_broken_promise(HF_VEC_REMOVE(&v, 0));
	HF_VEC_RELEASE(&v);
}

static void a_released_vec_may_be_used_again(void **state)
{
	HF_VEC(int) v = HF_VEC_INIT(2);

	HF_VEC_RELEASE(&v);
	assert_true(HF_VEC_PUSH(&v, 1));
	HF_VEC_RELEASE(&v);
	assert_null(v.items);
	assert_int_equal(v.len, 0);
	assert_true(HF_VEC_PUSH(&v, 2));
	assert_int_equal(v.items[0], 2);
	HF_VEC_RELEASE(&v);
	HF_VEC_RELEASE(&v);
}

static void a_size_that_overflows_calls_the_hook(void **state)
{
	void *items = NULL;
	size_t cap = SIZE_MAX / 4;

	expect_broken_promise(hf_vec_grow(&items, cap, &cap, SIZE_MAX, 64));
	assert_null(items);
	assert_true(cap == SIZE_MAX / 4);
}

static void a_vec_behaves_as_a_plain_array_does(void **state)
{
	HF_VEC(uint64_t) v = HF_VEC_INIT(300);
	uint64_t model[300];
	size_t len = 0;
	uint64_t seed = 1;

	for (int step = 0; step < 20000; step++) {
		if (len && test_random_below(&seed, 100) < 45) {
			size_t i = test_random_below(&seed, len);

			HF_VEC_REMOVE(&v, i);
			memmove(model + i, model + i + 1, (len - i - 1) * sizeof(model[0]));
			len--;
		} else {
			uint64_t item = test_random(&seed);
			bool pushed = HF_VEC_PUSH(&v, item);

			assert_int_equal(pushed, len < 300);
			if (pushed)
				model[len++] = item;
		}
		assert_int_equal(v.len, len);
		if (len)
			assert_memory_equal(v.items, model, len * sizeof(model[0]));
	}
	HF_VEC_RELEASE(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushed_items_keep_their_order),
		cmocka_unit_test(a_push_past_the_maximum_changes_nothing),
		cmocka_unit_test(items_may_be_structures),
		cmocka_unit_test(remove_closes_the_gap),
		cmocka_unit_test(removing_a_missing_item_is_a_broken_promise),
		cmocka_unit_test(a_released_vec_may_be_used_again),
		cmocka_unit_test(a_size_that_overflows_calls_the_hook),
		cmocka_unit_test(a_vec_behaves_as_a_plain_array_does),
	};

	return cmocka_run_group_tests(tests, promise_setup, NULL);
}
