/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"
#include "json/json_internal.h"

#include <malloc.h>
#include <stdlib.h>

/*
 * Memory of trees.  A tree is hundreds of blocks of a few sizes that come and go together: more than
 * malloc's own cache of a size holds, and whatever passes that one costs several times as much.  So
 * free blocks wait here, by size, for the next tree.  They are malloc's blocks all the same, and it
 * tells how large one is: a block may come from either and go to either.  Trees are of the one thread
 * that has the loop; what runs on a worker (loop/worker.h) makes none.
 */
#define UNIT ((size_t)16)
#define HEAD ((size_t)8) /* what malloc needs of each block for itself, so that sizes meet */
#define CLASSES 10 /* up to 136 bytes: the table of a small object, the largest there are many of */
#define WAITING_MAX 512 /* of a size: a tree or two of a job; 350 KiB of all sizes together */

#if HF_UNDER_ASAN
/* Blocks that were freed are for the sanitizer to guard. */
void *hf_json_block_alloc(size_t size)
{
	return hf_xmalloc(size);
}

void hf_json_block_free(void *block)
{
	free(block);
}
#else
struct waiting {
	struct waiting *next;
};

static struct {
	struct waiting *first;
	size_t len;
} lists[CLASSES]; /* those at i have 16 * i - 8 bytes at least */

void *hf_json_block_alloc(size_t size)
{
	size_t class = (size + HEAD + UNIT - 1) / UNIT;
	struct waiting *block = class < CLASSES ? lists[class].first : NULL;

	if (block == NULL)
		return hf_xmalloc(size);
	lists[class].first = block->next;
	lists[class].len--;
	return block;
}

void hf_json_block_free(void *block)
{
	size_t class = block == NULL ? CLASSES : (malloc_usable_size(block) + HEAD) / UNIT;
	struct waiting *waiting = block;

	if (class >= CLASSES || lists[class].len == WAITING_MAX) {
		free(block);
		return;
	}
	waiting->next = lists[class].first;
	lists[class].first = waiting;
	lists[class].len++;
}
#endif
