/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/arena.h"

#include "harness/promise.h"
#include "harness/random.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)

/* Counts the blocks that the arena allocates from the system. */
static size_t blocks_taken;

void *__wrap_hf_xmalloc(size_t size);
void *__real_hf_xmalloc(size_t size);

void *__wrap_hf_xmalloc(size_t size)
{
	blocks_taken++;
	return __real_hf_xmalloc(size);
}

static bool is_zero(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

static void allocations_are_aligned_and_zero_and_apart(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(MIB);
	unsigned char *all[200];

	for (size_t i = 0; i < 200; i++) {
		all[i] = hf_arena_alloc(arena, i);
		assert_int_equal((uintptr_t)all[i] % 16, 0);
		assert_true(is_zero(all[i], i));
		memset(all[i], (int)i, i);
	}
	for (size_t i = 0; i < 200; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_equal(all[i][j], i);
}

static void an_empty_allocation_has_an_address_of_its_own(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(MIB);

	assert_ptr_not_equal(hf_arena_alloc(arena, 0), hf_arena_alloc(arena, 0));
}

static void memory_is_zero_again_after_a_reset(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(MIB);

	for (int pass = 0; pass < 5; pass++) {
		for (int i = 0; i < 20; i++) {
			void *p = hf_arena_alloc(arena, 1000);

			assert_true(is_zero(p, 1000));
			memset(p, 0xff, 1000);
		}
		hf_arena_reset(arena);
	}
}

static void used_and_left_add_up(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1000);

	assert_int_equal(hf_arena_used(arena), 0);
	assert_int_equal(hf_arena_left(arena), 992); /* 992: a multiple of 16 */
	hf_arena_alloc(arena, 17);
	assert_int_equal(hf_arena_used(arena), 32);
	assert_int_equal(hf_arena_left(arena), 960);
	hf_arena_reset(arena);
	assert_int_equal(hf_arena_used(arena), 0);
	assert_int_equal(hf_arena_left(arena), 992);
}

static void one_allocation_may_use_all_that_is_left(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(100 * KIB + 7);

	hf_arena_alloc(arena, 12345);
	hf_arena_alloc(arena, hf_arena_left(arena));
	assert_int_equal(hf_arena_left(arena), 0);
	expect_broken_promise(hf_arena_alloc(arena, 1));
	expect_broken_promise(hf_arena_alloc(arena, 0));
}

static void an_allocation_beyond_the_maximum_calls_the_hook(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(KIB);

	expect_broken_promise(hf_arena_alloc(arena, KIB + 1));
	expect_broken_promise(hf_arena_alloc(arena, SIZE_MAX));
	expect_broken_promise(hf_arena_alloc(arena, SIZE_MAX - 8));
	/* The failed allocations used nothing. */
	assert_int_equal(hf_arena_used(arena), 0);
	hf_arena_alloc(arena, KIB);
}

static void an_array_whose_size_overflows_calls_the_hook(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(SIZE_MAX);

	expect_broken_promise(hf_arena_array(arena, SIZE_MAX / 2, 3));
	expect_broken_promise(hf_arena_array(arena, 3, SIZE_MAX / 2));
	assert_non_null(hf_arena_array(arena, 0, 8));
	assert_non_null(hf_arena_array(arena, 8, 0));
}

static void typed_helpers_give_their_types(void **state)
{
	struct point {
		int x, y;
	};
	HF_AUTO_ARENA arena = hf_arena_create(KIB);
	struct point *one = HF_ARENA_NEW(arena, struct point);
	struct point *many = HF_ARENA_ARRAY(arena, struct point, 10);

	assert_int_equal(one->x + one->y, 0);
	assert_true(is_zero(many, 10 * sizeof(*many)));
}

static void strings_are_copied(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(MIB);
	static const char no_nul[2] = {'h', 'i'};

	assert_string_equal(hf_arena_strdup(arena, "copy"), "copy");
	assert_string_equal(hf_arena_strdup(arena, ""), "");
	assert_string_equal(hf_arena_strndup(arena, "copy", 2), "co");
	assert_string_equal(hf_arena_strndup(arena, "copy", 20), "copy");
	assert_string_equal(hf_arena_strndup(arena, no_nul, 2), "hi");
	assert_string_equal(hf_arena_printf(arena, "%s-%d", "worker", 7), "worker-7");
	assert_int_equal(strlen(hf_arena_printf(arena, "%9000d", 1)), 9000);
}

static void an_allocation_larger_than_any_block_gets_its_own(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(16 * MIB);
	char *small = hf_arena_strdup(arena, "small");
	char *large = hf_arena_alloc(arena, 5 * MIB);

	memset(large, 'x', 5 * MIB);
	assert_string_equal(small, "small");
	hf_arena_reset(arena);
	assert_true(is_zero(hf_arena_alloc(arena, 5 * MIB), 5 * MIB));
}

static void passes_of_one_size_take_no_memory_once_warm(void **state)
{
	static const size_t sizes[] = {100, 4 * KIB, 50 * KIB, 900 * KIB};

	for (size_t s = 0; s < HF_ARRAY_LEN(sizes); s++) {
		HF_AUTO_ARENA arena = hf_arena_create(2 * MIB);

		for (int pass = 0; pass < 20; pass++) {
			size_t before = blocks_taken;

			for (size_t taken = 0; taken < sizes[s]; taken += 100)
				hf_arena_alloc(arena, 100);
			if (pass >= 2)
				assert_int_equal(blocks_taken, before);
			hf_arena_reset(arena);
		}
	}
}

static void one_huge_pass_is_not_kept(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(64 * MIB);
	size_t before;

	hf_arena_alloc(arena, 32 * MIB);
	hf_arena_reset(arena);
	/* The huge block was freed, so the next pass allocates a block. */
	before = blocks_taken;
	hf_arena_alloc(arena, 10);
	assert_int_equal(blocks_taken, before + 1);
}

static void destroy_takes_null_and_returns_null(void **state)
{
	HF_AUTO_ARENA none = NULL;

	assert_null(hf_arena_destroy(NULL));
	assert_null(hf_arena_destroy(hf_arena_create(1)));
	assert_null(none);
}

#if HF_UNDER_ASAN
#include <sanitizer/asan_interface.h>

static void a_pointer_kept_over_a_reset_is_found(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(MIB);
	char *kept = hf_arena_alloc(arena, 40);

	assert_false(__asan_address_is_poisoned(kept + 39));
	/* The padding up to the next multiple of 16 is poisoned too. */
	assert_true(__asan_address_is_poisoned(kept + 40));
	hf_arena_reset(arena);
	assert_true(__asan_address_is_poisoned(kept));
}
#endif

static void random_passes_do_not_overlap(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(4 * MIB);
	uint64_t seed = 3;

	for (int pass = 0; pass < 60; pass++) {
		struct {
			unsigned char *at;
			size_t size;
		} all[64];
		size_t n = 1 + test_random_below(&seed, 64);

		for (size_t i = 0; i < n; i++) {
			all[i].size = test_random_below(&seed, 1u << test_random_below(&seed, 16));
			all[i].at = hf_arena_alloc(arena, all[i].size);
			assert_true(is_zero(all[i].at, all[i].size));
			memset(all[i].at, (int)(i + 1), all[i].size);
		}
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < all[i].size; j++)
				if (all[i].at[j] != i + 1)
					fail_msg("allocation %zu was written over", i);
		hf_arena_reset(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations_are_aligned_and_zero_and_apart),
		cmocka_unit_test(an_empty_allocation_has_an_address_of_its_own),
		cmocka_unit_test(memory_is_zero_again_after_a_reset),
		cmocka_unit_test(used_and_left_add_up),
		cmocka_unit_test(one_allocation_may_use_all_that_is_left),
		cmocka_unit_test(an_allocation_beyond_the_maximum_calls_the_hook),
		cmocka_unit_test(an_array_whose_size_overflows_calls_the_hook),
		cmocka_unit_test(typed_helpers_give_their_types),
		cmocka_unit_test(strings_are_copied),
		cmocka_unit_test(an_allocation_larger_than_any_block_gets_its_own),
		cmocka_unit_test(passes_of_one_size_take_no_memory_once_warm),
		cmocka_unit_test(one_huge_pass_is_not_kept),
		cmocka_unit_test(destroy_takes_null_and_returns_null),
#if HF_UNDER_ASAN
		cmocka_unit_test(a_pointer_kept_over_a_reset_is_found),
#endif
		cmocka_unit_test(random_passes_do_not_overlap),
	};

	return cmocka_run_group_tests(tests, promise_setup, NULL);
}
