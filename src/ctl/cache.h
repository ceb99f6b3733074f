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
 * A local copy of all objects of one resource, kept up to date: what Kubernetes
 * calls an informer.
 *
 *   list (consistent)           ──▶ watch from there ──▶ ENDED ──▶ watch again
 *        ▲                                  │ from the last version seen
 *        └──────────── HF_E_GONE ◀──────────┘
 *
 * A list is a stream of events where the store can do that (the server then needs no
 * memory for it, nor does this), else pages.
 *
 * Errors are retried for ever with growing, jittered delays (0.8 s to 30 s); a
 * Retry-After of the server is kept.  A watch on which neither an event nor a
 * bookmark came for idle_max may hang and is opened anew.
 *
 * What is stale.  Two versions of an object are told apart by resourceVersion, read
 * as an unsigned decimal, which is how every API server writes them and what makes
 * "newer" decidable:
 *   - what is not newer than the version held is dropped (a late watch event after a
 *     reply was put in, a repeated event);
 *   - a reply is dropped when the watch is past its version: whatever it says was seen
 *     already, and the object may be gone since; unless an older version of that very object
 *     is held, of whose change the watch has lost the event;
 *   - a DELETED event removes only the object of its own UID, whatever its version;
 *   - after hf_cache_put_gone a UID never comes back, until the watch says DELETED
 *     or a list that began later is complete;
 *   - a list removes what it does not name, unless that is newer than the list;
 *   - a version that is no number (none is known to send such) is taken as newer by the watch,
 *     and a reply without one is dropped: of two DELETEs at once the API server answers the
 *     later with 200 and the object as it was, marked, without a resourceVersion.
 *
 * So a reply may run ahead of the watch, and the watch never takes the cache back.
 * That is why no expectations are kept.
 *
 * Lifetime: process.  Entries and what hangs on them live until the next change of
 * the cache: use them within one callback or copy what must last.
 */
struct hf_cache;

/* One object.  `view` is what the owner's decode made of it. */
struct hf_cache_entry {
	const char *ns; /* "" for cluster-scoped kinds */
	const char *name;
	const char *uid;
	const char *resource_version;
	struct hf_doc *doc; /* NULL unless keep_docs */
	void *view;
};

enum hf_cache_change {
	HF_CACHE_ADDED,   /* before is NULL */
	HF_CACHE_UPDATED, /* same UID */
	HF_CACHE_DELETED, /* now is NULL */
	HF_CACHE_SYNCED,  /* both NULL: the first list is complete; comes once */
};

/* An object of one name that comes back with another UID is a DELETED, then an ADDED. */
typedef void (*hf_cache_fn)(void *arg, enum hf_cache_change change,
			    const struct hf_cache_entry *before, const struct hf_cache_entry *now);

/* Something went wrong and is being retried (or, HF_E_TOO_LARGE, the cache is full). */
typedef void (*hf_cache_problem_fn)(void *arg, int code, const char *message);

#define HF_CACHE_INDEXES_MAX 2
/* 40,000 pods is the largest fleet planned for; the rest is head room. */
#define HF_CACHE_ENTRIES_MAX ((size_t)200000)
/* Replies that ran ahead of the watch; past it the oldest is forgotten, which costs at most a
 * request that is refused by its precondition. */
#define HF_CACHE_GONE_MAX ((size_t)16384)

struct hf_cache_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const struct hf_resource *resource; /* static */
	const char *ns;                     /* NULL: all namespaces; copied */
	const char *label_selector;         /* NULL: all; copied */
	const char *field_selector;         /* NULL: all; copied */
	uint64_t seed;                      /* of the jitter and of the tables, see base/map.h */
	size_t entries_max;                 /* 0: HF_CACHE_ENTRIES_MAX */
	int64_t page_limit;                 /* 0: 500 */
	hf_time idle_max;                   /* 0: 3 min (API servers send a bookmark each minute) */
	bool keep_docs;

	/* What is kept of a document, a new reference (with keep_docs; NULL function: all of it). */
	struct hf_doc *(*trim)(void *arg, struct hf_doc *doc);
	/* Make a view of a document; NULL: the owner has no use for this object, it is
	 * treated as not there.  NULL function: views are NULL. */
	void *(*decode)(void *arg, struct hf_doc *doc);
	void (*view_free)(void *view);
	/* The key under which an entry is found in index i, NULL for none.  Must depend on
	 * the entry alone. */
	const char *(*index_key[HF_CACHE_INDEXES_MAX])(const struct hf_cache_entry *entry);

	hf_cache_fn changed;         /* may be NULL; must not change this cache */
	hf_cache_problem_fn problem; /* may be NULL */
	hf_reply_fn heard;           /* of every list's reply, good or not; may be NULL */
	void *arg;
};

struct hf_cache_stats {
	uint64_t events;  /* of watches, bookmarks too */
	uint64_t stale;   /* events and list items dropped as not newer */
	uint64_t relists; /* lists begun, the first included */
	uint64_t errors;  /* lists and watches that failed */
	uint64_t hung;    /* watches given up as silent */
};

/* Starts with hf_cache_start, from the loop. */
struct hf_cache *hf_cache_create(const struct hf_cache_options *options);
void hf_cache_start(struct hf_cache *cache);
/* No callback runs after; NULL is fine; returns NULL. */
struct hf_cache *hf_cache_destroy(struct hf_cache *cache);

bool hf_cache_synced(const struct hf_cache *cache);
size_t hf_cache_len(const struct hf_cache *cache);
const struct hf_cache_stats *hf_cache_stats(const struct hf_cache *cache);

/* NULL: not there.  ns is "" or NULL for cluster-scoped kinds. */
const struct hf_cache_entry *hf_cache_get(const struct hf_cache *cache, const char *ns,
					  const char *name);
/* In the order in which the objects were first seen; *it starts at 0. */
const struct hf_cache_entry *hf_cache_next(const struct hf_cache *cache, size_t *it);
/* Walk one key of one index, in the order of the last change of each entry:
 *     for (e = hf_cache_first(c, 0, uid); e; e = hf_cache_after(c, 0, e)) … */
const struct hf_cache_entry *hf_cache_first(const struct hf_cache *cache, size_t index,
					    const char *key);
const struct hf_cache_entry *hf_cache_after(const struct hf_cache *cache, size_t index,
					    const struct hf_cache_entry *entry);

/* What a reply brought: taken in at once if newer than what is held, with `changed` called from
 * here.  false: it was stale (or its UID is known to be gone). */
bool hf_cache_put_reply(struct hf_cache *cache, struct hf_doc *doc);
/* What a live read brought: as a reply, but of two texts under one version this one is right.  An API
 * server whose schema of a kind has changed goes on for a second and more with the watches that it
 * serves by the old one, so that they miss what a read under the same version shows.  Nothing is
 * called where docs are kept and the text is the one that is held. */
bool hf_cache_put_live(struct hf_cache *cache, struct hf_doc *doc);
/* A reply said that the object of this UID exists no more: removed if that is the one held. */
void hf_cache_put_gone(struct hf_cache *cache, const char *ns, const char *name, const char *uid);

#endif
