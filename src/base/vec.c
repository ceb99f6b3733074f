/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The functions behind the macros of vec.h: growing, removing and freeing an array of any element
 * size.
 *
 * The macros know the element type; these functions get only its size. So one copy of the code
 * serves every type, and a push needs no call of memcpy.
 */
#include "base/vec.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CAP_FIRST 8

bool hf_vec_grow(void **items, size_t len, size_t *cap, size_t len_max, size_t size)
{
	size_t want;

	hf_assert(len <= *cap);
	if (len >= len_max)
		return false;
	if (len < *cap)
		return true;
	want = *cap ? *cap : CAP_FIRST / 2;
	/* Double the capacity, but never beyond the maximum. */
	want = want > len_max / 2 ? len_max : want * 2;
	if (want > SIZE_MAX / size)
		hf_out_of_memory(SIZE_MAX);
	*items = hf_xrealloc(*items, want * size);
	*cap = want;
	return true;
}

void hf_vec_remove(void *items, size_t *len, size_t i, size_t size)
{
	char *at = (char *)items + i * size;

	hf_assert(i < *len);
	memmove(at, at + size, (*len - i - 1) * size);
	*len -= 1;
}

void hf_vec_free(void **items)
{
	free(*items);
	*items = NULL;
}
