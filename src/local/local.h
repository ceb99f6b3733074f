/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_LOCAL_H
#define HF_LOCAL_LOCAL_H

#include "base/error.h"
#include "loop/loop.h"
#include "store/resource.h"
#include "store/store.h"

/*
 * The embedded plane's store: Kubernetes semantics inside the process.
 *
 * One struct hf_local holds the objects; any number of clients (struct hf_store,
 * store/store.h) and in-process controllers work on it.  With a data folder it is
 * durable: requests of one loop turn make one SQLite transaction, and no reply, no
 * watch event and no observer hears of a change before it is committed.  Without
 * one it is memory only: what the simulator and tests use.
 *
 * Nothing here is random or reads a clock on its own: time is the loop's, and
 * randomness comes from options.random.  The same calls in the same order on a
 * virtual loop give the same bytes.
 */
struct hf_local;

/* Limits, and why: a single machine; the text of an object is bounded as etcd bounds a
 * request; all objects are kept as trees in memory, about ten times their text. */
#define HF_LOCAL_OBJECT_BYTES_MAX ((size_t)1536 << 10)
#define HF_LOCAL_OBJECTS_MAX 200000            /* per kind */
#define HF_LOCAL_BYTES_MAX ((size_t)512 << 20) /* of text, all objects */
#define HF_LOCAL_WATCH_HISTORY 4096            /* events per kind a watch can resume from */
#define HF_LOCAL_WATCHES_MAX 10000
#define HF_LOCAL_QUEUE_MAX 20000   /* requests waiting for their turn; more get HF_E_TOO_MANY */
#define HF_LOCAL_EVENT_TTL HF_HOUR /* as kube-apiserver's --event-ttl */
#define HF_LOCAL_BOOKMARK_EVERY HF_MINUTE /* as kube-apiserver's watch cache */

struct hf_local_options {
	const char *data_dir; /* NULL: memory only.  Made if absent (0700) and locked */
	/* Fill bytes; NULL: the kernel's randomness. */
	void (*random)(void *arg, void *bytes, size_t len);
	void *random_arg;
	/* Writes have begun to fail (err says why), or work again (NULL).  Called inside a commit:
	 * may say so and nothing else.  May be NULL. */
	void (*health)(void *arg, const struct hf_error *err);
	void *health_arg;
	/* 0: the defaults above. */
	size_t object_bytes_max, objects_max, bytes_max, watch_history;
	hf_time event_ttl, bookmark_every;
};

/* HF_E_CONFLICT: another process has this data folder open (the text names its pid).
 * HF_E_IO, HF_E_NO_SPACE: not there, not writable, full.  Nothing is left behind by a failure
 * but the folder itself.  Namespaces default, kube-system and kube-public exist afterwards. */
int hf_local_create(struct hf_loop *loop, const struct hf_local_options *options,
		    struct hf_local **ret_local, struct hf_error *err) HF_MUST_CHECK;
/* Commits what is pending.  Clients, observers and controllers must be gone before; not from a
 * callback of this plane. */
struct hf_local *hf_local_destroy(struct hf_local *local); /* NULL is fine; returns NULL */

struct hf_loop *hf_local_loop(const struct hf_local *local);
/* The store as store/store.h has it, without faults; lives and dies with local. */
struct hf_store *hf_local_store(struct hf_local *local);
/* 0, or why the last commit failed (disk full…): writes are refused, reads go on, and each
 * write tries anew. */
int hf_local_health(const struct hf_local *local, struct hf_error *err);
/* Number of objects of a kind, and bytes of text of all (for metrics and tests). */
size_t hf_local_count(const struct hf_local *local, const struct hf_resource *resource);
size_t hf_local_bytes(const struct hf_local *local);

/*
 * --- clients of their own, with faults ---
 *
 * For the simulator: every request and every watch event of such a client asks the
 * hook first.  Destroy with hf_store_destroy: requests still waiting are then not
 * performed, which is how a client "dies before sending"; one that dies between
 * its write and the reply is destroyed while delay_after runs.
 */
struct hf_fault {
	hf_time delay_before; /* span before the request reaches the store */
	int refuse;           /* HF_E_*: not performed, this is the reply */
	const char *message;  /* of refuse; static */
	hf_time retry_after;  /* of refuse; span */
	hf_time delay_after;  /* span between the commit and the reply */
	bool lose_reply;      /* performed, but the reply is HF_E_TIMEOUT when that is due */
	uint64_t stale;       /* LIST and GET with resourceVersion "0": answer as it was this
				 many events of the kind ago, as far as history reaches */
	bool unaware;         /* with stale: whatever version was asked for, as a server does
				 that is behind and does not know */
};
struct hf_event_fault {
	hf_time delay;  /* span; events behind it wait too: order is kept */
	bool drop;      /* never delivered */
	bool duplicate; /* delivered twice */
	int end;        /* HF_E_*: instead of the event the watch ends with this code */
};
struct hf_local_faults {
	/* The result is zeroed before; either may be NULL. */
	void (*request)(void *arg, const struct hf_request *request, struct hf_fault *ret_fault);
	void (*event)(void *arg, const struct hf_watch_options *options,
		      const struct hf_event *event, struct hf_event_fault *ret_fault);
	void *arg;
};
struct hf_store *hf_local_client_create(struct hf_local *local,
					const struct hf_local_faults *faults); /* may be NULL */
/* Ends every watch of that client now with this code; ENDED arrives from the loop. */
void hf_local_client_break_watches(struct hf_store *client, int code, const char *message);
/* As while a process is stopped: requests that were sent are done, replies and events wait for it.
 * A watch that waits longer than history reaches ends with HF_E_GONE. */
void hf_local_client_pause(struct hf_store *client, bool paused);

/*
 * --- in-process controllers: synchronous ---
 *
 * hf_local_apply performs a request at once, in memory.  It is durable, and seen by
 * observers and watches, after the commit at the end of this turn; where that
 * fails, the change is undone and observers are told to start over (reset).
 */
struct hf_result {
	int code;              /* 0 or HF_E_* */
	struct hf_doc *object; /* as hf_reply.object, a reference of the result's */
	struct hf_doc **items;
	size_t n_items;
	uint64_t version;     /* resourceVersion of a LIST */
	char *continue_token; /* NULL: last page */
	int64_t remaining;
	char **warnings;
	size_t n_warnings;
	struct hf_error err; /* message; cut where the Status has it whole */
};
void hf_local_apply(struct hf_local *local, const struct hf_request *request,
		    struct hf_result *ret_result);
void hf_result_release(struct hf_result *result);
#define HF_AUTO_RESULT HF_CLEANUP(hf_result_release) struct hf_result

/* The object as it is now, borrowed until the next change; NULL: not there. */
struct hf_doc *hf_local_peek(struct hf_local *local, const struct hf_resource *resource,
			     const char *ns, const char *name);
/* Walk a kind in order of namespace and name; do not write from inside. */
typedef void (*hf_local_each_fn)(void *arg, struct hf_doc *doc);
void hf_local_each(struct hf_local *local, const struct hf_resource *resource, const char *ns,
		   hf_local_each_fn fn, void *arg);
/* Commit now instead of at the end of the turn. */
int hf_local_flush(struct hf_local *local, struct hf_error *err) HF_MUST_CHECK;

/* Observers run after each commit, in the order added, before replies and watches.  They may
 * call hf_local_apply: that makes the next turn. */
struct hf_local_change {
	const struct hf_resource *resource;
	struct hf_doc *before; /* NULL: created */
	struct hf_doc *after;  /* NULL: gone */
	uint64_t version;
};
struct hf_local_observer {
	void (*changed)(void *arg, const struct hf_local_change *change);
	void (*reset)(void *arg); /* what was applied since the last commit was undone */
	void *arg;
};
/* The struct stays the caller's, and valid until removed. */
void hf_local_observe(struct hf_local *local, const struct hf_local_observer *observer);
void hf_local_unobserve(struct hf_local *local, const struct hf_local_observer *observer);

/*
 * --- rules per kind ---
 *
 * The engine knows metadata, subresources, deletion and, for pods, phases and which
 * fields may change.  Defaults and validation beyond that come from here.
 */
struct hf_admission {
	enum hf_verb verb; /* CREATE; UPDATE for PUT and PATCH; DELETE */
	const struct hf_resource *resource;
	const char *subresource;      /* NULL, "status" or "scale" */
	const char *ns, *name;        /* name may be "" before generateName is resolved */
	const struct hf_json *before; /* NULL for CREATE */
	struct hf_json *object;       /* private to this request: change it freely.  NULL for
					    DELETE */
	const char *field_validation; /* never NULL: "Strict", "Warn" or "Ignore" */
	bool dry_run;
	void *internal;
};
/* One entry of the Status' causes; call as often as there are problems, then return
 * HF_E_INVALID (the message is made from the causes).  reason: "FieldValueInvalid",
 * "FieldValueRequired", "FieldValueNotSupported", "FieldValueForbidden"… */
void hf_admission_cause(struct hf_admission *admission, const char *reason, const char *field,
			const char *message);
/* A line of the Warning header. */
void hf_admission_warn(struct hf_admission *admission, const char *text);

struct hf_local_rules {
	/* Runs after the engine's own checks of metadata and before the object is stored.
	 * 0, or HF_E_INVALID, HF_E_FORBIDDEN, HF_E_BAD_REQUEST. */
	int (*admit)(void *arg, struct hf_admission *admission, struct hf_error *err);
	void *arg;
	bool on_status; /* run it for the subresource "status" too */
	bool on_delete; /* run it for DELETE too */
};
/* Replaces the rules of a kind; rules is copied. */
void hf_local_set_rules(struct hf_local *local, const struct hf_resource *resource,
			const struct hf_local_rules *rules);

/* --- logs come from the kubelet --- */
struct hf_local_logs {
	/* As hf_store_ops.logs, with the pod looked up (borrowed).  The stream begins with
	 * struct hf_log_stream, whose ops' logs_stop is called to end it. */
	struct hf_log_stream *(*start)(void *arg, struct hf_doc *pod,
				       const struct hf_log_options *options, hf_log_fn fn,
				       void *fn_arg);
	void *arg;
};
/* NULL: none any more; logs are then refused with HF_E_UNAVAILABLE. */
void hf_local_set_logs(struct hf_local *local, const struct hf_local_logs *logs);

#endif
