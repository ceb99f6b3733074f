/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"

#include <string.h>

/*
 * A list in an arena that doubles its capacity when it is full.  The old copy stays in the arena
 * until the pass ends.
 */

void *hf_grow(struct hf_arena *arena, void *items, size_t len, size_t *cap, size_t size)
{
	void *grown;

	hf_assert(len <= *cap && size > 0);
	if (len < *cap)
		return items;
	*cap = *cap ? 2 * *cap : 8;
	grown = hf_arena_array(arena, *cap, size);
	if (len > 0)
		memcpy(grown, items, len * size);
	return grown;
}
