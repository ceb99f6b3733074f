/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_STORE_STORE_H
#define HF_STORE_STORE_H

#include "base/error.h"
#include "base/time.h"
#include "json/doc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The store: the one door through which Holdfast reads and writes the world.
 * Two back ends implement it: kube (an API server over HTTPS) and local (a store
 * inside the process).  README.md has the contract; tests/contract holds a back
 * end to it.
 *
 * Everything is asynchronous on the loop the store was made with: a callback is
 * never called from inside the call that asked for it, and exactly once per
 * request.  Strings and documents of a request are copied or referenced before
 * the call returns; those of a reply are borrowed for the callback (ref what you
 * keep).
 */
struct hf_store;

/* A kind of object.  Known ones are in store/resource.h; two are the same when group and
 * plural are equal. */
struct hf_resource {
	const char *group;    /* "" for the core group */
	const char *version;  /* "v1" */
	const char *plural;   /* "pods" */
	const char *singular; /* "pod" */
	const char *kind;     /* "Pod" */
	bool namespaced;
};

enum hf_verb {
	HF_VERB_GET,
	HF_VERB_LIST,
	HF_VERB_CREATE,
	HF_VERB_UPDATE, /* PUT: for leases and for people's clients; the operator patches */
	HF_VERB_PATCH,
	HF_VERB_DELETE,
};

enum hf_patch_type {
	HF_PATCH_MERGE,     /* RFC 7386 */
	HF_PATCH_JSON,      /* RFC 6902 */
	HF_PATCH_STRATEGIC, /* built-in kinds only */
	HF_PATCH_APPLY,     /* server-side apply */
};

enum hf_propagation {
	HF_PROPAGATE_DEFAULT,
	HF_PROPAGATE_BACKGROUND,
	HF_PROPAGATE_FOREGROUND,
	HF_PROPAGATE_ORPHAN,
};

#define HF_GRACE_DEFAULT (-1) /* the object's own grace period */

struct hf_request {
	enum hf_verb verb;
	const struct hf_resource *resource; /* static, or outlives the reply */
	const char *ns;                     /* NULL: cluster-scoped, or LIST of all namespaces */
	const char *name;                   /* NULL for LIST and CREATE (but of a subresource) */
	const char *subresource;            /* NULL, "status", "scale"; "binding", "eviction"
					       (CREATE, pods); "finalize" (namespaces) */

	struct hf_doc *body; /* CREATE, UPDATE: the object; PATCH: the patch */
	enum hf_patch_type patch_type;

	/* LIST */
	const char *label_selector;   /* NULL: all */
	const char *field_selector;   /* NULL: all */
	const char *resource_version; /* NULL: consistent read; "0": any age */
	const char *continue_token;   /* NULL: first page */
	int64_t limit;                /* 0: no paging */

	/* DELETE */
	const char *precondition_uid;              /* NULL: none */
	const char *precondition_resource_version; /* NULL: none */
	int64_t grace_seconds;                     /* HF_GRACE_DEFAULT, or 0 = force */
	enum hf_propagation propagation;

	const char *field_manager;    /* NULL: "holdfast" */
	const char *field_validation; /* NULL, "Strict", "Warn" or "Ignore" */
	bool dry_run;                 /* dryRun=All */
	bool force;                   /* APPLY only */

	hf_time timeout; /* span; 0: the back end's default.  Past it: HF_E_TIMEOUT */
};

struct hf_reply {
	int code;              /* 0 or HF_E_*; HF_E_TIMEOUT: it may or may not have been done */
	const char *message;   /* "" when code is 0 */
	struct hf_doc *object; /* the object; after a DELETE the object or a Status; for errors the
				  Status where there is one; NULL for LIST and when absent */
	struct hf_doc *const *items; /* LIST */
	size_t n_items;
	const char *resource_version; /* LIST: of the list; else "" */
	const char *continue_token;   /* LIST: "" on the last page */
	int64_t remaining;            /* LIST: items behind this page, -1: not known */
	hf_time server_time;          /* the server's clock (Date), HF_TIME_NONE: not told */
	hf_time retry_after;          /* span, 0: not told */
	const char *const *warnings;  /* the server's Warning headers, for people */
	size_t n_warnings;
};

typedef void (*hf_reply_fn)(void *arg, const struct hf_reply *reply);

/* A request under way.  Canceling it: the callback does not run; the request may still take
 * effect.  The handle is dead once the callback has run or cancel was called. */
struct hf_call;
struct hf_call *hf_store_request(struct hf_store *store, const struct hf_request *request,
				 hf_reply_fn done, void *arg);
void hf_call_cancel(struct hf_call *call); /* NULL is fine */

/* --- watches --- */
enum hf_event_type {
	HF_EVENT_ADDED,
	HF_EVENT_MODIFIED,
	HF_EVENT_DELETED,
	HF_EVENT_BOOKMARK, /* only resource_version counts */
	HF_EVENT_ENDED,    /* the last one: code and message say why; HF_E_GONE: list again,
			      all else: watch again from the last resource_version */
};

struct hf_event {
	enum hf_event_type type;
	struct hf_doc *object;        /* NULL for ENDED */
	const char *resource_version; /* of this event; "" for ENDED */
	bool initial_end;             /* BOOKMARK: all that was there has been told, see below */
	int code;                     /* ENDED only */
	const char *message;
	hf_time retry_after;
};

struct hf_watch_options {
	const struct hf_resource *resource;
	const char *ns;               /* NULL: all namespaces */
	const char *label_selector;   /* NULL: all */
	const char *field_selector;   /* NULL: all */
	const char *resource_version; /* start after this one; NULL or "0": begin with an ADDED
					 event for each object there is */
	bool bookmarks;
	/* A list as a stream: an ADDED for each object there is, seen no earlier than now, then a
	 * BOOKMARK with initial_end, then what changes.  With bookmarks and without a
	 * resource_version, and only where hf_store_streams says so; a server that turns out not
	 * to know it ends the watch with HF_E_INVALID, and the store says so from then on. */
	bool initial_events;
	hf_time timeout; /* span after which the server ends it with code 0; 0: its default */
};

typedef void (*hf_event_fn)(void *arg, const struct hf_event *event);

struct hf_watch;
struct hf_watch *hf_store_watch(struct hf_store *store, const struct hf_watch_options *options,
				hf_event_fn fn, void *arg);
/* No event runs after stop.  Needed after ENDED too; may be called from the callback. */
struct hf_watch *hf_watch_stop(struct hf_watch *watch); /* NULL is fine; returns NULL */

/* May a watch ask for initial_events? */
bool hf_store_streams(const struct hf_store *store);

/* --- logs of a pod's container --- */
struct hf_log_options {
	const char *ns, *pod;
	const char *container; /* NULL: the only one */
	bool follow, previous, timestamps;
	int64_t tail_lines;    /* -1: all */
	int64_t since_seconds; /* 0: all */
	int64_t limit_bytes;   /* 0: all */
};
/* Bytes as they come (len 0 and code for the end: 0 or HF_E_*). */
typedef void (*hf_log_fn)(void *arg, const char *bytes, size_t len, int code, const char *message);
struct hf_log_stream;
struct hf_log_stream *hf_store_logs(struct hf_store *store, const struct hf_log_options *options,
				    hf_log_fn fn, void *arg);
struct hf_log_stream *hf_log_stream_stop(struct hf_log_stream *stream); /* NULL is fine */

/* Ends all that is under way with HF_E_CANCELED (from this call, the one exception) and frees
 * the store.  NULL is fine; returns NULL. */
struct hf_store *hf_store_destroy(struct hf_store *store);

#endif
