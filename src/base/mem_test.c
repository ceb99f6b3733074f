/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"

#include "harness/promise.h"

#include <stdint.h>
#include <string.h>

/* Without this option AddressSanitizer ends the program where malloc returns NULL. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* volatile, because the compiler would warn about the sizes that these tests use. */
static volatile size_t huge = SIZE_MAX / 2;

static void xmalloc_gives_writable_memory(void **state)
{
	HF_AUTOFREE char *p = hf_xmalloc(100);

	memset(p, 'x', 100);
	assert_int_equal(p[99], 'x');
}

static void sizes_of_zero_give_a_pointer_of_their_own(void **state)
{
	HF_AUTOFREE void *a = hf_xmalloc(0);
	HF_AUTOFREE void *b = hf_xcalloc(0, 8);
	HF_AUTOFREE void *c = hf_xcalloc(8, 0);
	HF_AUTOFREE void *d = hf_xrealloc(NULL, 0);

	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_non_null(d);
	assert_ptr_not_equal(a, b);
}

static void xcalloc_gives_zeroes(void **state)
{
	HF_AUTOFREE unsigned char *p = hf_xcalloc(33, 3);

	for (size_t i = 0; i < 99; i++)
		assert_int_equal(p[i], 0);
}

static void xrealloc_keeps_the_content(void **state)
{
	char *p = hf_xmalloc(4);
	HF_AUTOFREE char *grown = NULL;

	memcpy(p, "abc", 4);
	grown = hf_xrealloc(p, 100000);
	assert_string_equal(grown, "abc");
}

static void out_of_memory_calls_the_hook(void **state)
{
	expect_broken_promise(hf_xmalloc(huge));
	expect_broken_promise(hf_xcalloc(1, huge));
	expect_broken_promise(hf_xrealloc(NULL, huge));
	expect_broken_promise(hf_out_of_memory(1));
}

static void a_failed_xrealloc_leaves_the_old_block_alone(void **state)
{
	HF_AUTOFREE char *p = hf_xstrdup("still here");

	expect_broken_promise(hf_xrealloc(p, huge));
	assert_string_equal(p, "still here");
}

static void a_product_that_overflows_calls_the_hook(void **state)
{
	expect_broken_promise(hf_xcalloc(huge, 3));
	expect_broken_promise(hf_xcalloc(3, huge));
	expect_broken_promise(hf_xcalloc(huge, huge));
}

static size_t told_size;

static void print_size(size_t size)
{
	told_size = size;
	mock_assert(0, "memory", __FILE__, __LINE__);
}

static void the_hook_gets_the_size(void **state)
{
	hf_set_oom_hook(print_size);
	expect_broken_promise(hf_xmalloc(huge));
	assert_true(told_size == huge);
	hf_set_oom_hook(promise_out_of_memory);
}

static void xstrdup_copies(void **state)
{
	char text[] = "text";
	HF_AUTOFREE char *copy = hf_xstrdup(text);
	HF_AUTOFREE char *empty = hf_xstrdup("");

	text[0] = 'n';
	assert_string_equal(copy, "text");
	assert_string_equal(empty, "");
}

static void xstrndup_stops_at_the_length_and_at_the_nul(void **state)
{
	static const char no_nul[4] = {'a', 'b', 'c', 'd'};
	HF_AUTOFREE char *cut = hf_xstrndup("abcdef", 3);
	HF_AUTOFREE char *whole = hf_xstrndup("abc", 100);
	HF_AUTOFREE char *none = hf_xstrndup("abc", 0);
	HF_AUTOFREE char *bytes = hf_xstrndup(no_nul, sizeof(no_nul));

	assert_string_equal(cut, "abc");
	assert_string_equal(whole, "abc");
	assert_string_equal(none, "");
	assert_string_equal(bytes, "abcd");
}

static void xasprintf_gives_texts_of_any_length(void **state)
{
	HF_AUTOFREE char *small = hf_xasprintf("%s-%d", "worker", 3);
	HF_AUTOFREE char *empty = hf_xasprintf("%s", "");
	HF_AUTOFREE char *large = hf_xasprintf("%10000d", 7);

	assert_string_equal(small, "worker-3");
	assert_string_equal(empty, "");
	assert_int_equal(strlen(large), 10000);
	assert_int_equal(large[9999], '7');
}

static void steal_leaves_nothing_to_clean_up(void **state)
{
	char *kept;

	{
		HF_AUTOFREE char *owner = hf_xstrdup("moved");

		kept = hf_steal(&owner);
		assert_null(owner);
	}
	assert_string_equal(kept, "moved");
	hf_autofree_cleanup(&kept);
}

static void autofree_takes_null(void **state)
{
	HF_AUTOFREE char *nothing = NULL;

	assert_null(nothing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xmalloc_gives_writable_memory),
		cmocka_unit_test(sizes_of_zero_give_a_pointer_of_their_own),
		cmocka_unit_test(xcalloc_gives_zeroes),
		cmocka_unit_test(xrealloc_keeps_the_content),
		cmocka_unit_test(out_of_memory_calls_the_hook),
		cmocka_unit_test(a_failed_xrealloc_leaves_the_old_block_alone),
		cmocka_unit_test(a_product_that_overflows_calls_the_hook),
		cmocka_unit_test(the_hook_gets_the_size),
		cmocka_unit_test(xstrdup_copies),
		cmocka_unit_test(xstrndup_stops_at_the_length_and_at_the_nul),
		cmocka_unit_test(xasprintf_gives_texts_of_any_length),
		cmocka_unit_test(steal_leaves_nothing_to_clean_up),
		cmocka_unit_test(autofree_takes_null),
	};

	return cmocka_run_group_tests(tests, promise_setup, NULL);
}
