/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/format.h"

#include "harness/test.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SIZES 60

/* In rooms of every size, from none at all: the same bytes, and nothing behind them. */
#define same(...)                                                                                  \
	do {                                                                                       \
		for (size_t size = 0; size <= SIZES; size++) {                                     \
			char ours[SIZES + 1], theirs[SIZES + 1];                                   \
			memset(ours, '#', sizeof(ours));                                           \
			memset(theirs, '#', sizeof(theirs));                                       \
			int n = snprintf(theirs, size, __VA_ARGS__);                               \
			assert_int_equal(hf_format(ours, size, __VA_ARGS__), n);                   \
			if (size == 0)                                                             \
				assert_int_equal(ours[0], '#');                                    \
			else                                                                       \
				assert_string_equal(ours, theirs);                                 \
			assert_int_equal(ours[size], '#');                                         \
		}                                                                                  \
	} while (0)

static void texts_are_as_snprintf_makes_them(void **state)
{
	const char *none = *state;

	same("plain");
	same("%s", "");
	same("%s/%s", "default", "train");
	same("%s%s%s: %c%c 100 %%", "a", "", "bc", 'x', 'y');
	same("[%.*s] [%.*s] [%.*s]", 3, "abcdef", 0, "abc", -1, "abc");
	same("%.*s", 5, "ab\0cd");
	same("%s and more", none);
}

static void numbers_are_as_snprintf_makes_them(void **state)
{
	same("%d %d %d %d", 0, 7, INT_MAX, INT_MIN);
	same("%u %u", 0u, UINT_MAX);
	same("%zu %zu", (size_t)0, SIZE_MAX);
	same("%lld %lld", LLONG_MAX, LLONG_MIN);
	same("%llu %d", ULLONG_MAX, -1);
}

static void what_is_rare_is_left_to_snprintf(void **state)
{
	same("%s %05d %s", "a", 42, "b");
	same("%-8s|%8s|%.3s", "ab", "cd", "efghi");
	same("%x %#x %ld %lu", 255, 255, LONG_MIN, ULONG_MAX);
	same("%g %.2f", 0.5, 1.0 / 3);
	same("%s %*d", "a", 6, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_as_snprintf_makes_them),
		cmocka_unit_test(numbers_are_as_snprintf_makes_them),
		cmocka_unit_test(what_is_rare_is_left_to_snprintf),
	};
	return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
