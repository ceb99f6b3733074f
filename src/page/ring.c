/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* A ring of HF_PAGE_RING_MAX changes; the slot of a change is its number modulo the size. */
#include "page/ring.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hf_page_ring {
	uint64_t epoch, newest;
	struct hf_page_delta slots[HF_PAGE_RING_MAX];
};

struct hf_page_text_ref *hf_page_text_make(const char *bytes, size_t len)
{
	struct hf_page_text_ref *text = hf_xmalloc(sizeof(*text) + len + 1);

	text->refs = 1;
	text->len = len;
	memcpy(text->bytes, bytes, len);
	text->bytes[len] = '\0';
	return text;
}

struct hf_page_text_ref *hf_page_text_ref(struct hf_page_text_ref *text)
{
	text->refs++;
	return text;
}

struct hf_page_text_ref *hf_page_text_unref(struct hf_page_text_ref *text)
{
	if (text != NULL && --text->refs == 0)
		free(text);
	return NULL;
}

struct hf_page_ring *hf_page_ring_create(uint64_t epoch)
{
	struct hf_page_ring *ring = hf_xcalloc(1, sizeof(*ring));

	ring->epoch = epoch;
	return ring;
}

static void clear_slot(struct hf_page_delta *slot)
{
	slot->text = hf_page_text_unref(slot->text);
	free((char *)(uintptr_t)slot->ns);
	free((char *)(uintptr_t)slot->plural);
	slot->ns = slot->plural = NULL;
}

struct hf_page_ring *hf_page_ring_destroy(struct hf_page_ring *ring)
{
	if (ring == NULL)
		return NULL;
	for (size_t i = 0; i < HF_PAGE_RING_MAX; i++)
		clear_slot(&ring->slots[i]);
	free(ring);
	return NULL;
}

static struct hf_page_delta *slot_of(struct hf_page_ring *ring, uint64_t number)
{
	return &ring->slots[number % HF_PAGE_RING_MAX];
}

static bool is_kept(const struct hf_page_ring *ring, uint64_t number)
{
	return number > 0 && number <= ring->newest && ring->newest - number < HF_PAGE_RING_MAX;
}

uint64_t hf_page_ring_add(struct hf_page_ring *ring, const struct hf_page_delta *delta,
			  uint64_t before)
{
	struct hf_page_delta *slot;

	if (is_kept(ring, before))
		clear_slot(slot_of(ring, before));
	slot = slot_of(ring, ++ring->newest);
	clear_slot(slot);
	*slot = (struct hf_page_delta){.change = delta->change,
				       .ns = hf_xstrdup(hf_str_or(delta->ns, "")),
				       .plural = hf_xstrdup(hf_str_or(delta->plural, "")),
				       .text = hf_page_text_ref(delta->text)};
	return ring->newest;
}

uint64_t hf_page_ring_newest(const struct hf_page_ring *ring)
{
	return ring->newest;
}

const struct hf_page_delta *hf_page_ring_at(const struct hf_page_ring *ring, uint64_t number)
{
	return is_kept(ring, number) ? &ring->slots[number % HF_PAGE_RING_MAX] : NULL;
}

bool hf_page_ring_has_after(const struct hf_page_ring *ring, uint64_t number)
{
	return number <= ring->newest && ring->newest - number <= HF_PAGE_RING_MAX;
}

void hf_page_ring_version(const struct hf_page_ring *ring, uint64_t number,
			  char ret_text[HF_PAGE_VERSION_MAX])
{
	snprintf(ret_text, HF_PAGE_VERSION_MAX, "%016" PRIx64 "-%" PRIx64, ring->epoch, number);
}

bool hf_page_ring_parse(const struct hf_page_ring *ring, const char *text, uint64_t *ret_number)
{
	char canonical[HF_PAGE_VERSION_MAX];
	const char *dash = strchr(text, '-');
	uint64_t number;

	if (dash == NULL)
		return false;
	number = strtoull(dash + 1, NULL, 16);
	/* The text counts only if this process would write it so. */
	hf_page_ring_version(ring, number, canonical);
	if (!hf_streq(text, canonical))
		return false;
	*ret_number = number;
	return true;
}
