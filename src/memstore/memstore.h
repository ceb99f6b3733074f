/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_MEMSTORE_MEMSTORE_H
#define HF_MEMSTORE_MEMSTORE_H

#include "base/error.h"
#include "loop/loop.h"
#include "store/resource.h"
#include "store/store.h"

/*
 * The embedded plane's store: Kubernetes semantics inside the process.
 *
 * One struct hf_memstore holds the objects. Any number of clients (struct hf_store, store/store.h) and
 * in-process controllers work on it. With a data folder the store is durable: the requests of one
 * loop turn make one SQLite transaction. No reply, watch event or observer reports a change before
 * it is committed. Without a data folder the objects are in memory only, as in the simulator and in
 * tests.
 *
 * Time comes from the loop, randomness from options.random. On a virtual loop the same calls in the
 * same order give the same bytes.
 */
struct hf_memstore;

/* Limits for a single machine. An object is limited as etcd limits a request. Objects are kept in
 * memory as trees, which take about ten times the memory of their text. */
#define HF_MEMSTORE_OBJECT_BYTES_MAX ((size_t)1536 << 10)
#define HF_MEMSTORE_OBJECTS_MAX 200000 /* most objects of one kind */
/* limit of the JSON text of all objects together, in bytes */
#define HF_MEMSTORE_BYTES_MAX ((size_t)512 << 20)
/* number of changes of each kind from which a watch can resume */
#define HF_MEMSTORE_WATCH_HISTORY 4096
#define HF_MEMSTORE_WATCHES_MAX 10000
#define HF_MEMSTORE_QUEUE_MAX 20000          /* waiting requests; further ones get HF_E_TOO_MANY */
#define HF_MEMSTORE_EVENT_TTL HF_HOUR        /* as kube-apiserver's --event-ttl */
#define HF_MEMSTORE_BOOKMARK_EVERY HF_MINUTE /* as kube-apiserver's watch cache */

struct hf_memstore_options {
	/* The data folder, created with mode 0700 if it is absent, and locked; NULL: memory
	 * only. */
	const char *data_dir;
	/* Fills a buffer with random bytes; NULL: getrandom is used. */
	void (*random)(void *arg, void *bytes, size_t len);
	void *random_arg;
	/* Called when writes begin to fail or fail with another error (err has the reason), and
	 * when they work again (err is NULL). Runs inside a commit: it may log, but must not call
	 * the store. May be NULL. */
	void (*health)(void *arg, const struct hf_error *err);
	void *health_arg;
	/* 0 selects the limit above. */
	size_t object_bytes_max, objects_max, bytes_max, watch_history;
	hf_time event_ttl, bookmark_every;
};

/* Opens or creates a store. Creates the namespaces default, kube-system and kube-public.
 * HF_E_CONFLICT: another process uses the data folder; the text has its pid. HF_E_IO,
 * HF_E_NO_SPACE: the folder cannot be created, written, or is full. After a failure only the folder
 * itself remains. */
int hf_memstore_create(struct hf_loop *loop, const struct hf_memstore_options *options,
		       struct hf_memstore **ret_memstore, struct hf_error *err) HF_MUST_CHECK;
/* Commits pending changes and frees the store. Destroy all clients and controllers and remove all
 * observers first. Must not be called from a callback of this store. */
struct hf_memstore *hf_memstore_destroy(
	struct hf_memstore *memstore); /* NULL is fine; returns NULL */

struct hf_loop *hf_memstore_loop(const struct hf_memstore *memstore);
/* Returns a client without faults. hf_memstore_destroy destroys it. */
struct hf_store *hf_memstore_store(struct hf_memstore *memstore);
/* Returns 0, or the error of the last commit, for example a full disk. While commits fail, reads
 * still work, and each write tries again. */
int hf_memstore_health(const struct hf_memstore *memstore, struct hf_error *err);
/* Return the number of objects of a kind, and the size of all objects as JSON text, in bytes. */
size_t hf_memstore_count(const struct hf_memstore *memstore, const struct hf_resource *resource);
size_t hf_memstore_bytes(const struct hf_memstore *memstore);

/*
 * --- clients with faults ---
 *
 * For the simulator: the hooks are called for every request and every watch event of such a client.
 * hf_store_destroy drops the requests that have not been performed, like a crash before sending. To
 * crash a client between its write and the reply, destroy it while delay_after runs.
 */
struct hf_fault {
	hf_time delay_before; /* delay before the request reaches the store */
	int refuse; /* an HF_E_* code: the request is not performed, and the reply has this code */
	const char *message; /* message of the reply if `refuse` is set; static */
	hf_time retry_after; /* Retry-After of the reply if `refuse` is set */
	hf_time delay_after; /* delay between the commit and the reply */
	/* true: the request is performed, but the client gets HF_E_TIMEOUT when the request's
	 * timeout is over */
	bool lose_reply;
	/* LIST and GET with resourceVersion "0" read an old state: the state before the last
	 * `stale` changes of the kind, as far as the history reaches back. */
	uint64_t stale;
	/* true: `stale` applies to LIST and GET with any resourceVersion, as on a server that does
	 * not know that it is behind */
	bool unaware;
};
struct hf_event_fault {
	/* Delay before the event is delivered. Later events wait too, so that the order stays. */
	hf_time delay;
	bool drop;      /* the event is never delivered */
	bool duplicate; /* the event is delivered twice */
	int end;        /* an HF_E_* code: the watch ends with this code in place of the event */
};
struct hf_memstore_faults {
	/* Called before each request, and before each event of a watch; each may be NULL.
	 * *ret_fault is zeroed before. */
	void (*request)(void *arg, const struct hf_request *request, struct hf_fault *ret_fault);
	void (*event)(void *arg, const struct hf_watch_options *options,
		      const struct hf_event *event, struct hf_event_fault *ret_fault);
	void *arg;
};
struct hf_store *hf_memstore_client_create(
	struct hf_memstore *memstore, const struct hf_memstore_faults *faults); /* may be NULL */
/* Ends every watch of the client with code; the ENDED events are delivered from the loop. */
void hf_memstore_client_break_watches(struct hf_store *client, int code, const char *message);
/* Acts like a stopped process: requests already sent are performed, but replies and events wait. A
 * watch that waits until history has overwritten its position ends with HF_E_GONE. */
void hf_memstore_client_pause(struct hf_store *client, bool paused);

/*
 * --- in-process controllers: synchronous calls ---
 *
 * hf_memstore_apply performs a request at once, in memory. The commit at the end of the turn makes it
 * durable and visible to observers and watches. If the commit fails, the change is undone and
 * observers get reset.
 */
struct hf_result {
	int code; /* 0 or HF_E_* */
	/* the object of the reply, as in struct hf_reply; the result owns a reference */
	struct hf_doc *object;
	struct hf_doc **items;
	size_t n_items;
	uint64_t version;     /* resourceVersion of a LIST */
	char *continue_token; /* NULL: last page */
	int64_t remaining;
	char **warnings;
	size_t n_warnings;
	struct hf_error err; /* the message of the Status, cut to the size of err.text */
};
/* *ret_result is set in any case; release it with hf_result_release. */
void hf_memstore_apply(struct hf_memstore *memstore, const struct hf_request *request,
		       struct hf_result *ret_result);
void hf_result_release(struct hf_result *result);
#define HF_AUTO_RESULT HF_CLEANUP(hf_result_release) struct hf_result

/* Returns the present object, borrowed until the next change; NULL: the store does not have it. */
struct hf_doc *hf_memstore_peek(struct hf_memstore *memstore, const struct hf_resource *resource,
				const char *ns, const char *name);
/* Calls fn for each object of a kind, in order of namespace and name. fn must not write. ns NULL:
 * all namespaces. */
typedef void (*hf_memstore_each_fn)(void *arg, struct hf_doc *doc);
void hf_memstore_each(struct hf_memstore *memstore, const struct hf_resource *resource,
		      const char *ns, hf_memstore_each_fn fn, void *arg);
/* Adds an object exactly as a store wrote it before: with its status, UID and resourceVersion. For a
 * store in memory that has not run a turn yet; no rule is applied, and no watch or observer sees it. */
int hf_memstore_restore(struct hf_memstore *memstore, struct hf_doc *doc, struct hf_error *err)
	HF_MUST_CHECK;
/* Stores an object as another store wrote it: with its status and UID, but with the next resourceVersion of this store.
 * Replaces an object of the same name. Watches see the change. HF_E_UNSUPPORTED, HF_E_TOO_LARGE. */
int hf_memstore_mirror(struct hf_memstore *memstore, struct hf_doc *doc, struct hf_error *err)
	HF_MUST_CHECK;
/* Removes an object at once, without finalizers or grace. No effect if the store does not have it. */
void hf_memstore_drop(struct hf_memstore *memstore, const struct hf_resource *resource,
		      const char *ns, const char *name);
/* Commits pending changes now, and not only at the end of the turn. */
int hf_memstore_flush(struct hf_memstore *memstore, struct hf_error *err) HF_MUST_CHECK;

/* Observers run after each commit, in the order in which they were added, before replies and watch
 * events. They may call hf_memstore_apply; its changes belong to the next turn. */
struct hf_memstore_change {
	const struct hf_resource *resource;
	struct hf_doc *before; /* NULL: created */
	struct hf_doc *after;  /* NULL: deleted */
	uint64_t version;
};
struct hf_memstore_observer {
	void (*changed)(void *arg, const struct hf_memstore_change *change);
	/* Called when changes were undone after a failed commit: the observer has to read all
	 * objects again. */
	void (*reset)(void *arg);
	void *arg;
};
/* The caller owns the struct and keeps it valid until hf_memstore_unobserve. */
void hf_memstore_observe(struct hf_memstore *memstore, const struct hf_memstore_observer *observer);
void hf_memstore_unobserve(struct hf_memstore *memstore,
			   const struct hf_memstore_observer *observer);

/*
 * --- rules per kind ---
 *
 * The store itself checks metadata, subresources, deletion and, for pods, phases and the fields
 * that may change. Rules add defaults and validation of the kinds' own fields.
 */
struct hf_admission {
	/* HF_VERB_CREATE, HF_VERB_UPDATE (for PUT, PATCH and apply) or HF_VERB_DELETE */
	enum hf_verb verb;
	const struct hf_resource *resource;
	const char *subresource; /* NULL, "status" or "scale" */
	/* name is "" until the store has made one from generateName. */
	const char *ns, *name;
	const struct hf_json *before; /* NULL for CREATE */
	struct hf_json *object;       /* the object, which the rule may change; NULL for DELETE */
	const char *field_validation; /* never NULL: "Strict", "Warn" or "Ignore" */
	bool dry_run;
	void *internal;
};
/* Adds one cause to the Status; call it once per problem, then return HF_E_INVALID. The Status'
 * message is made from the causes. reason: "FieldValueInvalid", "FieldValueRequired",
 * "FieldValueNotSupported", "FieldValueForbidden" and the like. */
void hf_admission_cause(struct hf_admission *admission, const char *reason, const char *field,
			const char *message);
/* Adds a Warning header to the response. */
void hf_admission_warn(struct hf_admission *admission, const char *text);

struct hf_memstore_rules {
	/* Runs after the checks of name, uid and version, and before those of metadata and size.
	 * Returns 0, or HF_E_INVALID, HF_E_FORBIDDEN or HF_E_BAD_REQUEST. */
	int (*admit)(void *arg, struct hf_admission *admission, struct hf_error *err);
	void *arg;
	bool on_status; /* true: the rules also run for writes of the subresource "status" */
	bool on_delete; /* the rules also run for DELETE */
};
/* Replaces the rules of a kind. rules is copied. */
void hf_memstore_set_rules(struct hf_memstore *memstore, const struct hf_resource *resource,
			   const struct hf_memstore_rules *rules);

/* --- logs: the bytes come from the kubelet --- */
struct hf_memstore_logs {
	/* Starts a log stream, as hf_store_ops.logs does. pod: the pod, already found (borrowed).
	 * The returned stream begins with struct hf_log_stream; its ops->logs_stop ends it. */
	struct hf_log_stream *(*start)(void *arg, struct hf_doc *pod,
				       const struct hf_log_options *options, hf_log_fn fn,
				       void *fn_arg);
	void *arg;
};
/* Sets the source of logs. NULL removes it: requests for logs are then refused with
 * HF_E_UNAVAILABLE. */
void hf_memstore_set_logs(struct hf_memstore *memstore, const struct hf_memstore_logs *logs);

#endif
