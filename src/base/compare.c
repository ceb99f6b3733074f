/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Comparators by name. A pointer to a struct is also a pointer to its first member, so one function
 * serves every type of struct that begins with a name.
 */
#include "base/compare.h"

#include <stdlib.h>
#include <string.h>

int hf_compare_by_name(const void *left, const void *right)
{
	const char *const *a = left;
	const char *const *b = right;

	return strcmp(*a, *b);
}

int hf_compare_pointers_by_name(const void *left, const void *right)
{
	const void *const *a = left;
	const void *const *b = right;

	return hf_compare_by_name(*a, *b);
}

static int compare_numbers(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

int64_t hf_median(int64_t *numbers, size_t len)
{
	if (len == 0)
		return 0;
	qsort(numbers, len, sizeof(*numbers), compare_numbers);
	return numbers[(len - 1) / 2];
}
