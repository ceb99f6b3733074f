/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * An arena: memory for one pass, allocated piece by piece and freed all at once.
 *
 * The arena is a list of blocks, the newest first. Allocations come from the newest block only; the
 * unused rest of an older block is not searched, because a search would cost more than the rest is
 * worth. Each new block is half as large as all blocks before it. So a pass of any size needs few
 * blocks and wastes at most a third of the memory.
 *
 * Invariant: used never exceeds bytes_max; an allocation that would exceed it calls the
 * out-of-memory hook.
 */
#include "base/arena.h"

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HF_UNDER_ASAN
#include <sanitizer/asan_interface.h>
/* Memory that no pass owns is poisoned: AddressSanitizer reports a pointer that outlives a
 * reset. */
#define poison(ptr, size) ASAN_POISON_MEMORY_REGION((ptr), (size))
#define unpoison(ptr, size) ASAN_UNPOISON_MEMORY_REGION((ptr), (size))
#else
#define poison(ptr, size) ((void)(ptr), (void)(size))
#define unpoison(ptr, size) ((void)(ptr), (void)(size))
#endif

/* Alignment of every allocation, and sizes of the first and the largest regular block, in bytes. */
#define ALIGN ((size_t)16)
#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_MAX ((size_t)1 << 20)
/* hf_arena_printf prints a text up to this length once. It prints a longer text twice: first to
 * measure it, then into the arena. */
#define PRINTED_USUAL ((size_t)256)

struct block {
	struct block *older;
	size_t size; /* length of bytes[] */
	size_t used;
	_Alignas(16) char bytes[];
};

struct hf_arena {
	/* the block from which memory is taken now; NULL before the first allocation */
	struct block *newest;
	size_t bytes_max;
	size_t used;        /* bytes allocated from all blocks, padding included */
	size_t block_first; /* size of the next pass's first block */
};

struct hf_arena *hf_arena_create(size_t bytes_max)
{
	struct hf_arena *arena = hf_xcalloc(1, sizeof(*arena));

	arena->bytes_max = bytes_max;
	arena->block_first = BLOCK_FIRST;
	return arena;
}

static void add_block(struct hf_arena *arena, size_t size)
{
	struct block *block = hf_xmalloc(sizeof(*block) + size);

	block->older = arena->newest;
	block->size = size;
	block->used = 0;
	poison(block->bytes, size);
	arena->newest = block;
}

/* Frees the newest block. */
static void drop_block(struct hf_arena *arena)
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
		drop_block(arena);
	free(arena);
	return NULL;
}

void hf_arena_reset(struct hf_arena *arena)
{
	size_t keep = arena->used < BLOCK_MAX ? arena->used : BLOCK_MAX;

	if (arena->newest && arena->newest->older) {
		/* The pass needed more than one block. Start the next pass with one block as
		 * large as this pass, so that later passes of this size need a single block. */
		while (arena->newest)
			drop_block(arena);
		arena->block_first = keep > BLOCK_FIRST ? keep : BLOCK_FIRST;
		add_block(arena, arena->block_first);
	} else if (arena->newest && arena->newest->size > BLOCK_MAX) {
		drop_block(arena);
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
	/* Round down to a multiple of ALIGN, so that an allocation of this size succeeds. */
	return (arena->bytes_max - arena->used) & ~(ALIGN - 1);
}

static size_t size_next_block(const struct hf_arena *arena)
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

	/* An allocation of 0 bytes also gets its own address. */
	take = size ? size : 1;
	if (take > hf_arena_left(arena))
		hf_out_of_memory(size);
	take = (take + ALIGN - 1) & ~(ALIGN - 1);
	block = arena->newest;
	if (!block || take > block->size - block->used) {
		size_t next = size_next_block(arena);

		add_block(arena, take > next ? take : next);
		block = arena->newest;
	}
	ptr = block->bytes + block->used;
	block->used += take;
	arena->used += take;
	unpoison(ptr, size);
	/* The block itself is not cleared: after a reset it still holds the previous pass's
	 * bytes. */
	memset(ptr, 0, size);
	return ptr;
}

void *hf_arena_array(struct hf_arena *arena, size_t count, size_t size)
{
	/* SIZE_MAX exceeds every maximum, so an overflow ends in the out-of-memory hook. */
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
