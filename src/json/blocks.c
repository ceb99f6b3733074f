/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Memory for JSON trees. Input: sizes; output: blocks from a free list of their size, or from
 * malloc.
 *
 * A tree consists of hundreds of small blocks in a few sizes, which are allocated and freed
 * together. malloc keeps only a few free blocks of a size in its fast cache; every further block
 * costs several times as much. So free blocks wait here in one list for each size, for the next
 * tree.
 *
 * The blocks are ordinary malloc blocks, and malloc_usable_size tells their size. So any block may
 * come from malloc and go into a list, or the other way round. There is no lock: only the thread of
 * the loop makes trees; workers (loop/worker.h) must not.
 */
#include "base/mem.h"
#include "json/json_internal.h"

#include <malloc.h>
#include <stdlib.h>

/* Bytes. Sizes are rounded so that a list holds exactly one size of malloc's blocks. */
#define UNIT ((size_t)16)
#define HEAD ((size_t)8) /* malloc's own header of a block */
/* Lists for blocks of up to 136 bytes: the hash table of a small object is the largest frequent
 * block. */
#define CLASSES 10
/* Free blocks kept of one size, enough for one or two trees of a job; all sizes together take up
 * to 350 KiB. */
#define WAITING_MAX 512

#if HF_UNDER_ASAN
/* Free every block at once, so that AddressSanitizer detects a use after free. */
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
} lists[CLASSES]; /* list i holds blocks of at least 16 × i - 8 bytes */

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
