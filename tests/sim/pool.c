/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/pool.h"

#include "base/mem.h"
#include "json/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define UNIT ((size_t)16)
#define CLASSES 18          /* blocks of up to 272 bytes: the table of an object with 16 keys */
#define PAGE ((size_t)8192) /* a power of two: a block's address tells its page */
#define ROOM ((size_t)512 << 20) /* bytes of address space; further blocks come from malloc */

struct block {
	struct block *next;
};

struct page {
	/* neighbours in the list of pages with free blocks, or of empty pages */
	struct page *next, *before;
	struct block *first; /* the list of freed blocks */
	uint32_t used;       /* bytes that were handed out at least once, with this header */
	uint32_t live;       /* blocks in use */
	uint32_t class;
	/* the page is in the list of pages with free blocks, and is not the current one */
	bool listed;
};
#define HEAD ((uint32_t)64)
_Static_assert(sizeof(struct page) <= HEAD, "blocks begin behind the header");

static struct {
	char *room;
	size_t taken; /* bytes that were taken from the room */
	struct page *empty;
	/* the page from which the next block of this size comes; NULL: none yet */
	struct page *now[CLASSES];
	struct page *some[CLASSES];
} pool;

static void unlist(struct page *page)
{
	if (page->before != NULL)
		page->before->next = page->next;
	else
		pool.some[page->class] = page->next;
	if (page->next != NULL)
		page->next->before = page->before;
	page->listed = false;
}

static void list(struct page *page)
{
	page->before = NULL;
	page->next = pool.some[page->class];
	if (page->next != NULL)
		page->next->before = page;
	pool.some[page->class] = page;
	page->listed = true;
}

/* NULL: there is no room. */
static struct page *page_new(uint32_t class)
{
	struct page *page = pool.empty;

	if (page != NULL) {
		pool.empty = page->next;
	} else if (pool.taken < ROOM) {
		page = (struct page *)(void *)(pool.room + pool.taken);
		pool.taken += PAGE;
	} else {
		return NULL;
	}
	*page = (struct page){.used = HEAD, .class = class};
	return page;
}

/* NULL: the page is full. */
static void *take(struct page *page, size_t bytes)
{
	struct block *block = page->first;

	if (block != NULL) {
		page->first = block->next;
	} else if (page->used + bytes <= PAGE) {
		block = (struct block *)(void *)((char *)page + page->used);
		page->used += (uint32_t)bytes;
	} else {
		return NULL;
	}
	page->live++;
	return block;
}

static void *pool_alloc(size_t size)
{
	size_t class = size == 0 ? 1 : (size + UNIT - 1) / UNIT;
	struct page *page = class < CLASSES ? pool.now[class] : NULL;
	void *block = page != NULL ? take(page, class * UNIT) : NULL;

	if (block != NULL)
		return block;
	if (class >= CLASSES)
		return hf_xmalloc(size);
	page = pool.some[class];
	if (page != NULL)
		unlist(page);
	else
		page = page_new((uint32_t) class);
	if (page == NULL)
		return hf_xmalloc(size);
	/* The full page is in no list: pool_free lists it when one of its blocks is freed. */
	pool.now[class] = page;
	return take(page, class * UNIT);
}

static void pool_free(void *at)
{
	struct block *block = at;
	size_t offset = (uintptr_t)at - (uintptr_t)pool.room;
	struct page *page;

	if (at == NULL || offset >= ROOM) {
		free(at);
		return;
	}
	page = (struct page *)(void *)(pool.room + offset / PAGE * PAGE);
	block->next = page->first;
	page->first = block;
	if (--page->live > 0) {
		if (!page->listed && page != pool.now[page->class])
			list(page);
		return;
	}
	/* From its beginning again, in order. */
	page->first = NULL;
	page->used = HEAD;
	if (page == pool.now[page->class])
		return;
	if (page->listed)
		unlist(page);
	page->next = pool.empty;
	pool.empty = page;
}

void sim_pool_use(void)
{
	void *room;

	if (HF_UNDER_ASAN)
		return;
	room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (room == MAP_FAILED)
		return;
	pool.room = room;
	hf_json_memory(pool_alloc, pool_free);
}
