/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_RING_H
#define HF_PAGE_RING_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * The last changes of the page, for streams that resume.
 *
 * A change is a text that many viewers get: it is made once, and the ring, the tables and the viewers share it
 * by reference. A newer change of the same object takes the text of the older one out of the ring, so a viewer
 * that lags gets only the newest state of an object.
 */

/* A shared text. It never changes. */
struct hf_page_text_ref {
	size_t refs;
	size_t len;
	char bytes[];
};
struct hf_page_text_ref *hf_page_text_make(const char *bytes, size_t len);
struct hf_page_text_ref *hf_page_text_ref(struct hf_page_text_ref *text);
struct hf_page_text_ref *hf_page_text_unref(
	struct hf_page_text_ref *text); /* NULL is fine; returns NULL */

/* What a change is about. */
enum hf_page_change {
	HF_PAGE_CHANGE_JOB,
	HF_PAGE_CHANGE_NODE,
	HF_PAGE_CHANGE_GONE_JOB,
	HF_PAGE_CHANGE_GONE_NODE
};

struct hf_page_delta {
	enum hf_page_change change;
	/* namespace and plural of the job; "": a node. They belong to the ring. */
	const char *ns, *plural;
	struct hf_page_text_ref
		*text; /* JSON; NULL: a newer change of the object replaces this change */
};

#define HF_PAGE_RING_MAX 4096

struct hf_page_ring;
/* epoch: a random number, so that a number of another process is recognized. */
struct hf_page_ring *hf_page_ring_create(uint64_t epoch);
struct hf_page_ring *hf_page_ring_destroy(
	struct hf_page_ring *ring); /* NULL is fine; returns NULL */

/* Adds a change and returns its number, from 1. before: number of the previous change of this object; 0: none.
 * Takes a reference to the text. */
uint64_t hf_page_ring_add(struct hf_page_ring *ring, const struct hf_page_delta *delta,
			  uint64_t before);
/* The number of the newest change; 0: none yet. */
uint64_t hf_page_ring_newest(const struct hf_page_ring *ring);
/* The change of that number. NULL: it is too old, or does not exist yet. */
const struct hf_page_delta *hf_page_ring_at(const struct hf_page_ring *ring, uint64_t number);
/* True if a viewer that knows `number` can go on, because the ring has all later changes. */
bool hf_page_ring_has_after(const struct hf_page_ring *ring, uint64_t number);

/* The text of a number for clients: "EPOCH-NUMBER", in hexadecimal digits. */
#define HF_PAGE_VERSION_MAX 40
void hf_page_ring_version(const struct hf_page_ring *ring, uint64_t number,
			  char ret_text[HF_PAGE_VERSION_MAX]);
/* False: the text is malformed, or from another process. */
bool hf_page_ring_parse(const struct hf_page_ring *ring, const char *text, uint64_t *ret_number);

HF_END_DECLS

#endif
