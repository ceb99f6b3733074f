/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/arena.h"

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HF_UNDER_ASAN
#include <sanitizer/asan_interface.h>
/* What no pass owns may not be touched: a pointer kept over a reset is found. */
#define poison(ptr, size) ASAN_POISON_MEMORY_REGION((ptr), (size))
#define unpoison(ptr, size) ASAN_UNPOISON_MEMORY_REGION((ptr), (size))
#else
#define poison(ptr, size) ((void)(ptr), (void)(size))
#define unpoison(ptr, size) ((void)(ptr), (void)(size))
#endif

/*
 * A list of blocks, the newest in front; only that one is allocated from.  What is
 * left of an older block is not looked at again: finding a gap would cost more than
 * the gap.  Each block is half as large as all before it, so that a pass of any size takes few
 * of them and wastes at most a third.
 */
#define ALIGN ((size_t)16)
#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_MAX ((size_t)1 << 20)
/* Texts up to this length are printed once; longer ones twice, to be measured first. */
#define PRINTED_USUAL ((size_t)256)

struct block {
	struct block *older;
	size_t size; /* of bytes */
	size_t used;
	_Alignas(16) char bytes[];
};

struct hf_arena {
	struct block *newest; /* NULL before the first allocation */
	size_t bytes_max;
	size_t used;        /* of all blocks, with what alignment adds */
	size_t block_first; /* size of the first block */
};

struct hf_arena *hf_arena_create(size_t bytes_max)
{
	struct hf_arena *arena = hf_xcalloc(1, sizeof(*arena));

	arena->bytes_max = bytes_max;
	arena->block_first = BLOCK_FIRST;
	return arena;
}

static void block_add(struct hf_arena *arena, size_t size)
{
	struct block *block = hf_xmalloc(sizeof(*block) + size);

	block->older = arena->newest;
	block->size = size;
	block->used = 0;
	poison(block->bytes, size);
	arena->newest = block;
}

/* Free the newest block. */
static void block_drop(struct hf_arena *arena)
{
	struct block *block = arena->newest;

	arena->newest = block->older;
	unpoison(block->bytes, block->size);
	free(block);
}

struct hf_arena *hf_arena_destroy(struct hf_arena *arena)
{
	if (!arena)
		return NULL;
	while (arena->newest)
		block_drop(arena);
	free(arena);
	return NULL;
}

void hf_arena_reset(struct hf_arena *arena)
{
	size_t keep = arena->used < BLOCK_MAX ? arena->used : BLOCK_MAX;

	if (arena->newest && arena->newest->older) {
		/* One block did not do.  The next pass starts with one as large as this
		 * pass was, so that passes of one size come to need one block. */
		while (arena->newest)
			block_drop(arena);
		arena->block_first = keep > BLOCK_FIRST ? keep : BLOCK_FIRST;
		block_add(arena, arena->block_first);
	} else if (arena->newest && arena->newest->size > BLOCK_MAX) {
		block_drop(arena);
	} else if (arena->newest) {
		arena->newest->used = 0;
		poison(arena->newest->bytes, arena->newest->size);
	}
	arena->used = 0;
}

size_t hf_arena_used(const struct hf_arena *arena)
{
	return arena->used;
}

size_t hf_arena_left(const struct hf_arena *arena)
{
	/* Down to a whole unit, so that an allocation of what is left succeeds. */
	return (arena->bytes_max - arena->used) & ~(ALIGN - 1);
}

static size_t next_block_size(const struct hf_arena *arena)
{
	size_t size = arena->newest ? arena->used / 2 : arena->block_first;

	if (size < BLOCK_FIRST)
		return BLOCK_FIRST;
	return size < BLOCK_MAX ? size : BLOCK_MAX;
}

void *hf_arena_alloc(struct hf_arena *arena, size_t size)
{
	size_t take;
	struct block *block;
	char *ptr;

	/* An empty object has an address of its own too. */
	take = size ? size : 1;
	if (take > hf_arena_left(arena))
		hf_out_of_memory(size);
	take = (take + ALIGN - 1) & ~(ALIGN - 1);
	block = arena->newest;
	if (!block || take > block->size - block->used) {
		size_t next = next_block_size(arena);

		block_add(arena, take > next ? take : next);
		block = arena->newest;
	}
	ptr = block->bytes + block->used;
	block->used += take;
	arena->used += take;
	unpoison(ptr, size);
	/* Not calloc for the block: after a reset it holds what the last pass left. */
	memset(ptr, 0, size);
	return ptr;
}

void *hf_arena_array(struct hf_arena *arena, size_t count, size_t size)
{
	/* SIZE_MAX is past every maximum. */
	return hf_arena_alloc(arena, size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
}

char *hf_arena_strdup(struct hf_arena *arena, const char *s)
{
	return hf_arena_strndup(arena, s, strlen(s));
}

char *hf_arena_strndup(struct hf_arena *arena, const char *s, size_t len)
{
	size_t n = strnlen(s, len);
	char *copy = hf_arena_alloc(arena, n + 1);

	memcpy(copy, s, n);
	return copy;
}

char *hf_arena_printf(struct hf_arena *arena, const char *fmt, ...)
{
	char text[PRINTED_USUAL];
	va_list ap;
	int n;
	char *s;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hf_assert(n >= 0);
	s = hf_arena_alloc(arena, (size_t)n + 1);
	if ((size_t)n < sizeof(text))
		return memcpy(s, text, (size_t)n + 1);
	va_start(ap, fmt);
	(void)vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

void hf_arena_cleanup(struct hf_arena **arena)
{
	*arena = hf_arena_destroy(*arena);
}
