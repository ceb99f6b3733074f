/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/random.h"
#include "harness/test.h"

#include "json/json_internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 2000 /* more than the free lists can hold */

static bool is_filled_with(const unsigned char *block, size_t size, unsigned char mark)
{
	for (size_t i = 0; i < size; i++)
		if (block[i] != mark)
			return false;
	return true;
}

static void blocks_are_large_enough_and_do_not_overlap(void **state)
{
	static unsigned char *blocks[BLOCKS];
	static size_t sizes[BLOCKS];
	uint64_t random = 5;

	for (int round = 0; round < 20 * BLOCKS; round++) {
		size_t i = (size_t)test_random_below(&random, BLOCKS);

		if (blocks[i] != NULL)
			assert_true(is_filled_with(blocks[i], sizes[i], (unsigned char)i));
		hf_json_block_free(blocks[i]);
		/* Allocate only half of the time, so that the free lists fill and empty. */
		blocks[i] = NULL;
		if (test_random_below(&random, 2) == 0)
			continue;
		sizes[i] = (size_t)test_random_below(&random, 200);
		blocks[i] = hf_json_block_alloc(sizes[i]);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
		memset(blocks[i], (int)(unsigned char)i, sizes[i]);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		hf_json_block_free(blocks[i]);
		blocks[i] = NULL;
	}
}

static void a_free_block_is_the_next_of_its_size(void **state)
{
	void *block = hf_json_block_alloc(24), *other;

	if (HF_UNDER_ASAN) {
		hf_json_block_free(block);
		skip();
	}
	hf_json_block_free(block);
	other = hf_json_block_alloc(40);
	assert_ptr_not_equal(other, block);
	assert_ptr_equal(hf_json_block_alloc(24), block);
	hf_json_block_free(other);
	/* Every block is an ordinary malloc block. */
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_large_enough_and_do_not_overlap),
		cmocka_unit_test(a_free_block_is_the_next_of_its_size),
	};
	return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
