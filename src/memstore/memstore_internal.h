/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_MEMSTORE_MEMSTORE_INTERNAL_H
#define HF_MEMSTORE_MEMSTORE_INTERNAL_H

#include "loop/loop.h"
#include "memstore/engine_internal.h"
#include "store/backend.h"

/*
 * Shared by the files that put the engine on a loop. A turn takes the waiting requests, applies
 * them in order, commits once, tells observers, answers, and feeds the watches, all in one posted
 * task. memstore.c runs the turn, client.c has the requests, commit.c commits, watch.c feeds the
 * watches, logs.c has the logs, sqlite.c the disk.
 */
struct hf_sqlite;
struct memstore_call;
struct memstore_watch;
struct memstore_log;

#define HF_MEMSTORE_TURN_MAX 512 /* requests per turn; limits a transaction */
/* Limit of the events that a watch delivers in one turn, so that no watch blocks the loop. */
#define HF_MEMSTORE_EVENTS_PER_TURN 256
/* timeout of a request if the fault hook loses its reply and the request sets no timeout */
#define HF_MEMSTORE_TIMEOUT (30 * HF_SECOND)

/* One client's view of the store. */
struct memstore_client {
	struct hf_store base;
	struct hf_memstore *memstore;
	struct hf_memstore_faults faults;
	struct memstore_call *calls; /* the calls of all clients that have no reply yet */
	struct memstore_watch *watches;
	struct memstore_log *logs;
	bool paused; /* see hf_memstore_client_pause */
};

struct hf_memstore {
	struct hf_loop *loop;
	struct hf_engine *engine;
	struct hf_sqlite *sqlite; /* NULL: memory only */
	struct hf_task *turn;
	struct hf_timer *expiry;
	struct hf_timer *bookmark;
	hf_time bookmark_every;
	struct memstore_client *own; /* the client that hf_memstore_store returns */
	struct memstore_call *queue_first, *queue_last;
	size_t queued;
	size_t n_watches, n_bookmark_watches;
	size_t clients; /* number of clients, not counting `own` */
	HF_VEC(const struct hf_memstore_observer *) observers;
	struct hf_memstore_logs logs;
	struct hf_error health; /* error of the last commit; code 0: the commit succeeded */
	void (*on_health)(void *arg, const struct hf_error *err); /* may be NULL */
	void *health_arg;
	bool ending;
};

/* commit.c */
/* Posts a turn. */
void hf_memstore_wake(struct hf_memstore *memstore);
/* Commits pending changes and tells observers; after a failure undoes them and calls reset. */
int hf_memstore_commit(struct hf_memstore *memstore, struct hf_error *err);

/* client.c */
struct memstore_client *hf_memstore_client_new(struct hf_memstore *memstore,
					       const struct hf_memstore_faults *f);
/* Runs the requests of a turn: applies the waiting requests, commits, and answers them. */
void hf_memstore_calls_turn(struct hf_memstore *memstore);
/* Cancels all calls, watches and logs of the client, with HF_E_CANCELED, and frees it. */
void hf_memstore_client_free(struct memstore_client *client);

/* watch.c */
struct hf_watch *hf_memstore_watch_start(struct hf_store *store,
					 const struct hf_watch_options *options, hf_event_fn fn,
					 void *arg);
void hf_memstore_watch_stop(struct hf_watch *watch);
/* Delivers events to the watches of all kinds that have something to deliver. */
void hf_memstore_watches_pump(struct hf_memstore *memstore);
void hf_memstore_watches_bookmark(void *memstore);
/* Makes the next turn look at every watch of the client, for instance after a pause. */
void hf_memstore_watches_wake(struct memstore_client *client);
/* Delivers an ENDED event with HF_E_CANCELED. */
void hf_memstore_watches_cancel(struct memstore_client *client);

/* logs.c: logs */
struct hf_log_stream *hf_memstore_log_start(struct hf_store *store,
					    const struct hf_log_options *options, hf_log_fn fn,
					    void *arg);
void hf_memstore_log_stop(struct hf_log_stream *stream);
void hf_memstore_logs_cancel(struct memstore_client *client);

/* sqlite.c: opens and locks the data folder, and loads all objects into the engine. */
int hf_sqlite_open(const char *data_dir, struct hf_engine *engine, struct hf_sqlite **ret_sqlite,
		   struct hf_error *err) HF_MUST_CHECK;
/* Writes the engine's pending changes and its version in one transaction. */
int hf_sqlite_commit(struct hf_sqlite *sqlite, struct hf_engine *engine, struct hf_error *err)
	HF_MUST_CHECK;
struct hf_sqlite *hf_sqlite_close(struct hf_sqlite *sqlite); /* NULL is fine */
/* Closes the database, and removes the files that hf_sqlite_open created. Accepts NULL. */
void hf_sqlite_abandon(struct hf_sqlite *sqlite);

#endif
