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
 * The store is the only interface through which Holdfast reads and writes cluster objects. Two back
 * ends implement it: kube (an API server over HTTPS) and local (a store inside this process).
 * README.md is the contract; tests/contract checks a back end against it.
 *
 * Every operation is asynchronous, on the loop that the store was created with. A callback runs
 * exactly once for each request, and never inside the call that made the request. The store copies
 * the strings of a request, and takes a reference to its document, before the call returns. The
 * strings and documents of a reply are valid during the callback only; take a reference to keep a
 * document.
 */
struct hf_store;

/* A kind of object. The known kinds are in store/resource.h. Two kinds are the same if group and
 * plural are equal. */
struct hf_resource {
	const char *group;    /* API group; "": the core group */
	/* "v1"; "": the resource is in no group, and its path is "/NAME" (hf_server_version) */
	const char *version;
	const char *plural;   /* "pods" */
	const char *singular; /* "pod" */
	const char *kind;     /* "Pod" */
	bool namespaced;
};

enum hf_verb {
	HF_VERB_GET,
	HF_VERB_LIST,
	HF_VERB_CREATE,
	HF_VERB_UPDATE, /* PUT; for leases and for users' clients (the operator patches) */
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

#define HF_GRACE_DEFAULT (-1) /* use the object's own grace period */

struct hf_request {
	enum hf_verb verb;
	const struct hf_resource *resource; /* static, or valid until the reply */
	/* namespace; NULL: the kind is cluster-scoped, or LIST of all namespaces */
	const char *ns;
	/* name of the object; NULL for LIST, and for CREATE without a subresource */
	const char *name;
	/* subresource: "status" or "scale"; "binding" or "eviction" (CREATE of pods); "finalize"
	 * (namespaces); NULL: the object itself */
	const char *subresource;

	struct hf_doc *body; /* CREATE and UPDATE: the object; PATCH: the patch */
	enum hf_patch_type patch_type;

	/* LIST only */
	const char *label_selector; /* NULL: all objects */
	const char *field_selector; /* NULL: all objects */
	/* "0": the server may answer from its cache, whatever its age; NULL: the newest state */
	const char *resource_version;
	const char *continue_token; /* NULL: first page */
	int64_t limit;              /* 0: no paging */

	/* DELETE only */
	const char *precondition_uid;              /* NULL: none */
	const char *precondition_resource_version; /* NULL: none */
	int64_t grace_seconds; /* HF_GRACE_DEFAULT, or seconds; 0 forces the deletion */
	enum hf_propagation propagation;

	const char *field_manager;    /* NULL: "holdfast" */
	const char *field_validation; /* NULL, "Strict", "Warn" or "Ignore" */
	bool dry_run;                 /* dryRun=All */
	/* for APPLY: take over fields that other managers own, instead of a conflict */
	bool force;

	/* after this span the reply is HF_E_TIMEOUT; 0: the back end's default */
	hf_time timeout;
};

struct hf_reply {
	int code; /* 0 or HF_E_*; HF_E_TIMEOUT: the request may or may not have been done */
	const char *message; /* the error as a text; "": code is 0 */
	/* The object. After a DELETE: the object or a Status. After an error: the Status, if
	 * there is one. NULL for LIST and if absent */
	struct hf_doc *object;
	struct hf_doc *const *items; /* LIST: the objects */
	size_t n_items;
	const char *resource_version; /* LIST: the version of the list; else "" */
	const char *continue_token;   /* LIST: "" on the last page */
	/* LIST: number of items on the pages after this one; -1: unknown. */
	int64_t remaining;
	hf_time server_time; /* clock of the server (header Date); HF_TIME_NONE: not given */
	hf_time retry_after; /* span to wait before a retry; 0: not given */
	const char *const *warnings; /* the server's Warning headers, for users */
	size_t n_warnings;
};

typedef void (*hf_reply_fn)(void *arg, const struct hf_reply *reply);

/* A request in flight. After a cancel the callback does not run, but the request may still take
 * effect. The handle is invalid once the callback has begun or hf_call_cancel was called. */
struct hf_call;
struct hf_call *hf_store_request(struct hf_store *store, const struct hf_request *request,
				 hf_reply_fn done, void *arg);
void hf_call_cancel(struct hf_call *call); /* accepts NULL */

/* --- watches --- */
enum hf_event_type {
	HF_EVENT_ADDED,
	HF_EVENT_MODIFIED,
	HF_EVENT_DELETED,
	HF_EVENT_BOOKMARK, /* only resource_version is valid */
	/* The last event; code and message give the reason. HF_E_GONE: list again. Any other
	 * code: watch again from the last resource_version */
	HF_EVENT_ENDED,
};

struct hf_event {
	enum hf_event_type type;
	struct hf_doc *object;        /* NULL for ENDED */
	const char *resource_version; /* version of this event; "" for ENDED */
	/* BOOKMARK: true if the initial objects are complete (see initial_events). */
	bool initial_end;
	int code; /* ENDED only */
	const char *message;
	hf_time retry_after;
};

struct hf_watch_options {
	const struct hf_resource *resource;
	const char *ns;             /* NULL: all namespaces */
	const char *label_selector; /* NULL: all objects */
	const char *field_selector; /* NULL: all objects */
	/* The watch starts after this version. NULL or "0": it starts with an ADDED event for
	 * each existing object */
	const char *resource_version;
	bool bookmarks;
	/* Stream a list: first an ADDED event for each existing object, from a state at least as
	 * new as this call; then a BOOKMARK with initial_end, then changes. It needs bookmarks,
	 * no resource_version, and a store for which hf_store_can_stream_lists returns true. A server
	 * without this feature ends the watch with HF_E_INVALID, and hf_store_can_stream_lists returns
	 * false from then on. */
	bool initial_events;
	/* Span after which the server ends the watch with code 0; 0: the server's default */
	hf_time timeout;
};

typedef void (*hf_event_fn)(void *arg, const struct hf_event *event);

struct hf_watch;
struct hf_watch *hf_store_watch(struct hf_store *store, const struct hf_watch_options *options,
				hf_event_fn fn, void *arg);
/* No event arrives after this call. Every watch must be stopped, also after ENDED. The callback may
 * make this call. */
struct hf_watch *hf_watch_stop(struct hf_watch *watch); /* accepts NULL; returns NULL */

/* True if a watch may set initial_events. */
bool hf_store_can_stream_lists(const struct hf_store *store);

/* --- logs of a container --- */
struct hf_log_options {
	const char *ns, *pod;
	const char *container; /* name of the container; NULL: the pod's only container */
	bool follow, previous, timestamps;
	int64_t tail_lines;    /* -1: all lines */
	int64_t since_seconds; /* 0: the whole log */
	int64_t limit_bytes;   /* 0: no limit */
};
/* Called for each piece of the log as it arrives, and once at the end with len 0 and a code (0
 * or HF_E_*). */
typedef void (*hf_log_fn)(void *arg, const char *bytes, size_t len, int code, const char *message);
struct hf_log_stream;
struct hf_log_stream *hf_store_logs(struct hf_store *store, const struct hf_log_options *options,
				    hf_log_fn fn, void *arg);
/* Accepts NULL; returns NULL. */
struct hf_log_stream *hf_log_stream_stop(struct hf_log_stream *stream);

/* Ends every request and watch with HF_E_CANCELED and frees the store. The callbacks run inside
 * this call; no other function calls back directly. Accepts NULL; returns NULL. */
struct hf_store *hf_store_destroy(struct hf_store *store);

#endif
