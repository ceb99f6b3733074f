/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_LOCAL_INTERNAL_H
#define HF_LOCAL_LOCAL_INTERNAL_H

#include "local/engine_internal.h"
#include "loop/loop.h"
#include "store/backend.h"

/*
 * A turn: take the requests that wait, apply them in order, commit once, tell
 * observers, answer, feed the watches.  All that happens in one posted task
 * (local.c); requests are local/client.c's, watches local/watch.c's, and the disk is
 * behind local/sqlite.c.
 */
struct hf_sqlite;
struct local_call;
struct local_watch;
struct local_stream;

#define HF_LOCAL_TURN_MAX 512             /* requests of one turn: bounds a transaction */
#define HF_LOCAL_EVENTS_PER_TURN 256      /* of one watch, so that none starves the loop */
#define HF_LOCAL_TIMEOUT (30 * HF_SECOND) /* a request whose reply is lost, when it names none */

/* The store as one client sees it. */
struct local_client {
	struct hf_store base;
	struct hf_local *local;
	struct hf_local_faults faults;
	struct local_call *calls; /* all that are under way */
	struct local_watch *watches;
	struct local_stream *streams;
	bool paused; /* neither replies nor events reach it */
};

struct hf_local {
	struct hf_loop *loop;
	struct hf_engine *engine;
	struct hf_sqlite *sqlite; /* NULL: memory only */
	struct hf_task *turn;
	struct hf_timer *expiry;
	struct hf_timer *bookmark;
	hf_time bookmark_every;
	struct local_client *own; /* of hf_local_store */
	struct local_call *queue_first, *queue_last;
	size_t queued;
	size_t n_watches, n_bookmark_watches;
	size_t clients; /* other than own */
	HF_VEC(const struct hf_local_observer *) observers;
	struct hf_local_logs logs;
	struct hf_error health; /* code 0: the last commit was good */
	void (*on_health)(void *arg, const struct hf_error *err); /* may be NULL */
	void *health_arg;
	bool ending;
};

/* local.c */
void hf_local_wake(struct hf_local *local);
/* Commit pending changes or undo them; observers have run. */
int hf_local_commit(struct hf_local *local, struct hf_error *err);

/* client.c */
extern const struct hf_store_ops hf_local_ops;
struct local_client *hf_local_client_new(struct hf_local *local, const struct hf_local_faults *f);
void hf_local_calls_turn(struct hf_local *local);
void hf_local_client_free(struct local_client *client);

/* watch.c */
struct hf_watch *hf_local_watch_start(struct hf_store *store,
				      const struct hf_watch_options *options, hf_event_fn fn,
				      void *arg);
void hf_local_watch_stop(struct hf_watch *watch);
void hf_local_watches_pump(struct hf_local *local);
void hf_local_watches_bookmark(void *local);
void hf_local_watches_wake(struct local_client *client);
void hf_local_watches_cancel(struct local_client *client); /* ENDED with HF_E_CANCELED, now */

/* stream.c: logs */
struct hf_log_stream *hf_local_stream_start(struct hf_store *store,
					    const struct hf_log_options *options, hf_log_fn fn,
					    void *arg);
void hf_local_stream_stop(struct hf_log_stream *stream);
void hf_local_streams_cancel(struct local_client *client);

/* sqlite.c: opens, locks and reads everything into engine. */
int hf_sqlite_open(const char *data_dir, struct hf_engine *engine, struct hf_sqlite **ret_sqlite,
		   struct hf_error *err) HF_MUST_CHECK;
/* The engine's pending changes and its version, in one transaction: all or nothing. */
int hf_sqlite_commit(struct hf_sqlite *sqlite, struct hf_engine *engine, struct hf_error *err)
	HF_MUST_CHECK;
struct hf_sqlite *hf_sqlite_close(struct hf_sqlite *sqlite); /* NULL is fine */
/* Close, and remove what open made where there was nothing.  NULL is fine. */
void hf_sqlite_abandon(struct hf_sqlite *sqlite);

#endif
