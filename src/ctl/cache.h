/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_CACHE_H
#define HF_CTL_CACHE_H

#include "base/time.h"
#include "json/doc.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A local copy of all objects of one resource that a watch keeps current. Kubernetes calls it an
 * informer.
 *
 *     list (consistent)  ──▶  watch from there  ──▶  ENDED  ──▶ watch again
 *          ▲                                           │        from the last version seen
 *          └──────────────── HF_E_GONE ◀───────────────┘
 *
 * If the store supports it (hf_store_can_stream_lists), a list is a stream of watch events, which needs no
 * extra memory on either side. Else a list is read in pages.
 *
 * A failed request is retried without end, after delays that grow from 0.8 s to 30 s with jitter. A
 * Retry-After of the server is respected. A watch may hang; if neither an event nor a bookmark
 * arrives for idle_max, the cache opens a new watch.
 *
 * Stale data. Two versions of an object are compared by resourceVersion, as unsigned decimal
 * numbers. Every API server writes versions in this form.
 *
 * - A version that is not newer than the cached version is dropped. Examples: a watch event that
 *   arrives after a reply, or an event that is repeated.
 * - A reply is dropped if the watch is past its version: the watch has delivered that state, and
 *   the object may be deleted since. There is one exception. If the cache holds an older version of
 *   that very object, the watch lost an event, and the reply is used.
 * - A DELETED event removes only the object with its UID; the version does not matter.
 * - After hf_cache_put_gone a UID stays deleted, until the watch reports DELETED or a list that
 *   started later is complete.
 * - A complete list removes the objects that it does not contain, except objects newer than the
 *   list.
 * - A version that is not a number (no known server sends one) counts as newer in a watch event. A
 *   reply without a version is dropped. Such a reply exists: of two concurrent DELETEs, the API
 *   server answers the later one with 200 and the marked object, without a resourceVersion.
 *
 * So a reply can move the cache ahead of the watch, and the watch never moves it back. A controller
 * therefore needs no "expectations" of its own writes.
 *
 * Lifetime: process. An entry and everything it points to are valid until the next change of the
 * cache. Use them within one callback, or copy.
 */
struct hf_cache;

/* One cached object. */
struct hf_cache_entry {
	const char *ns; /* "" for cluster-scoped kinds */
	const char *name;
	const char *uid;
	const char *resource_version;
	struct hf_doc *doc; /* NULL unless keep_docs */
	/* result of the decode function of the cache's owner */
	void *view;
};

enum hf_cache_change {
	HF_CACHE_ADDED,   /* `before` is NULL */
	HF_CACHE_UPDATED, /* `before` and `now` have the same UID */
	HF_CACHE_DELETED, /* `now` is NULL */
	/* The first list is complete; `before` and `now` are NULL; reported once. */
	HF_CACHE_SYNCED,
};

/* A change of one object. If a name comes back with another UID, the callback gets DELETED and
 * then ADDED. */
typedef void (*hf_cache_fn)(void *arg, enum hf_cache_change change,
			    const struct hf_cache_entry *before, const struct hf_cache_entry *now);

/* Called when a request failed and will be retried. The code HF_E_TOO_LARGE means that the cache is
 * full. */
typedef void (*hf_cache_problem_fn)(void *arg, int code, const char *message);

#define HF_CACHE_INDEXES_MAX 2
/* Most objects. The largest planned fleet has 40,000 pods; the rest is reserve. */
#define HF_CACHE_ENTRIES_MAX ((size_t)200000)
/* UIDs of hf_cache_put_gone that wait for the watch. Beyond this number the oldest is forgotten.
 * A late event can then bring back a deleted object; the next request for it fails with its
 * precondition. */
#define HF_CACHE_GONE_MAX ((size_t)16384)

struct hf_cache_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const struct hf_resource *resource; /* must stay valid */
	const char *ns;                     /* NULL: all namespaces; copied */
	const char *label_selector;         /* NULL: all objects; copied */
	const char *field_selector;         /* NULL: all objects; copied */
	uint64_t seed;                      /* for the jitter and the hash tables, see base/map.h */
	size_t entries_max;                 /* 0: HF_CACHE_ENTRIES_MAX */
	int64_t page_limit;                 /* 0: 500 */
	/* Longest time without an event or a bookmark; 0: 3 min. API servers send a bookmark every
	 * minute. */
	hf_time idle_max;
	bool keep_docs;

	/* With keep_docs: returns the part of a document to keep, as a new reference. If the
	 * function is NULL, the whole document is kept. */
	struct hf_doc *(*trim)(void *arg, struct hf_doc *doc);
	/* Makes the view of a document. If it returns NULL, the object is treated as absent. If
	 * the function is NULL, all views are NULL. */
	void *(*decode)(void *arg, struct hf_doc *doc);
	void (*view_free)(void *view);
	/* Returns the entry's key in index i, or NULL to leave the entry out of the index. The
	 * key must depend on the entry only. */
	const char *(*index_key[HF_CACHE_INDEXES_MAX])(const struct hf_cache_entry *entry);

	hf_cache_fn changed;         /* may be NULL; must not change this cache */
	hf_cache_problem_fn problem; /* may be NULL */
	/* Called with every reply to a list request, also a failed one; may be NULL. */
	hf_reply_fn heard;
	void *arg;
};

struct hf_cache_stats {
	uint64_t events; /* watch events, bookmarks included */
	/* Number of events and list items that were dropped because they were not newer. */
	uint64_t stale;
	uint64_t relists; /* lists started, the first included */
	uint64_t errors;  /* lists and watches that failed */
	uint64_t hung;    /* silent watches that were replaced */
};

/* The cache does nothing until hf_cache_start. It then works from the loop. */
struct hf_cache *hf_cache_create(const struct hf_cache_options *options);
void hf_cache_start(struct hf_cache *cache);
/* No callback runs after this call. Accepts NULL; returns NULL. */
struct hf_cache *hf_cache_destroy(struct hf_cache *cache);

bool hf_cache_synced(const struct hf_cache *cache);
size_t hf_cache_len(const struct hf_cache *cache);
const struct hf_cache_stats *hf_cache_stats(const struct hf_cache *cache);

/* Returns NULL if the object is not in the cache. For cluster-scoped kinds ns is "" or NULL. */
const struct hf_cache_entry *hf_cache_get(const struct hf_cache *cache, const char *ns,
					  const char *name);
/* Iterates in the order in which objects were first seen; *it starts at 0. */
const struct hf_cache_entry *hf_cache_next(const struct hf_cache *cache, size_t *it);
/*
 * Iterates over the entries with one key of one index, in the order of each entry's last change:
 *
 *     for (e = hf_cache_first(c, 0, uid); e; e = hf_cache_after(c, 0, e)) …
 */
const struct hf_cache_entry *hf_cache_first(const struct hf_cache *cache, size_t index,
					    const char *key);
const struct hf_cache_entry *hf_cache_after(const struct hf_cache *cache, size_t index,
					    const struct hf_cache_entry *entry);

/* Puts the object of a reply into the cache if it is newer than the cached version. `changed` is
 * called inside this call. Returns false if the object is stale or its UID is known to be
 * deleted. */
bool hf_cache_put_reply(struct hf_cache *cache, struct hf_doc *doc);
/* Puts the result of a live read into the cache: as hf_cache_put_reply, but if the cache holds
 * the same version with another text, the live text replaces it. The reason: for a second or
 * more after a kind's schema changes, an API server serves its watches by the old schema. So a
 * watch can miss fields that a read of the same version shows. Nothing is called if documents
 * are kept and the text is the same. */
bool hf_cache_put_live(struct hf_cache *cache, struct hf_doc *doc);
/* Call this for a reply that reports an object as deleted. Removes the object if the cache holds
 * this UID. */
void hf_cache_put_gone(struct hf_cache *cache, const char *ns, const char *name, const char *uid);

#endif
