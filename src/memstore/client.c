/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/memstore_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Requests of clients: from hf_store_request to the callback, with the faults that a test asks for.
 *
 * A call goes through the states below. It is in its client's list in all of them, so the
 * destruction of the client finds every call.
 *
 *     held ──▶ queued ──▶ applied ──▶ late ──▶ (callback, freed)
 *
 *     held     waits for delay_before
 *     queued   waits for its turn
 *     applied  its turn runs; the commit has not happened yet
 *     late     committed; waits for delay_after, for the timeout of a lost reply, or until its
 *              client is no longer paused
 */
enum call_state { CALL_HELD, CALL_QUEUED, CALL_APPLIED, CALL_LATE };

struct memstore_call {
	struct hf_call base;
	struct memstore_client *client;
	enum call_state state;
	struct hf_request *request;
	hf_reply_fn done;
	void *arg;
	struct hf_fault fault;
	struct hf_result result;
	/* delays the request or its reply, for a fault; NULL: no fault needs a delay */
	struct hf_timer *timer;
	struct memstore_call *prev, *next; /* neighbours in the client's list */
	/* The next call in the queue, or in the list of the running turn. */
	struct memstore_call *queue_next;
	/* True: the call was canceled while queued or applied, so the turn frees it. */
	bool canceled;
	/* True: the call has changed objects, so it fails if the commit fails. */
	bool wrote;
};

/* --- the client's list --- */

static void call_link(struct memstore_call *call)
{
	struct memstore_client *client = call->client;

	call->next = client->calls;
	if (call->next)
		call->next->prev = call;
	client->calls = call;
}

static void call_unlink(struct memstore_call *call)
{
	if (!call->client)
		return;
	*(call->prev ? &call->prev->next : &call->client->calls) = call->next;
	if (call->next)
		call->next->prev = call->prev;
	call->client = NULL;
}

static void call_free(struct memstore_call *call)
{
	call_unlink(call);
	hf_timer_destroy(call->timer);
	hf_request_free(call->request);
	hf_result_release(&call->result);
	free(call);
}

/* --- replies --- */

static void send_reply(struct memstore_call *call)
{
	struct hf_result *result = &call->result;
	struct hf_loop *loop = call->client->memstore->loop;
	char version[24] = "";

	if (call->request->verb == HF_VERB_LIST && result->code == 0)
		snprintf(version, sizeof(version), "%" PRIu64, result->version);
	const struct hf_reply r = {
		.code = result->code,
		.message = result->code ? result->err.text : "",
		.object = result->object,
		.items = result->items,
		.n_items = result->n_items,
		.resource_version = version,
		.continue_token = hf_str_or(result->continue_token, ""),
		.remaining = result->remaining,
		.server_time = hf_time_floor_second(hf_loop_wall(loop)),
		.retry_after = result->code ? call->fault.retry_after : 0,
		.warnings = (const char *const *)result->warnings,
		.n_warnings = result->n_warnings,
	};
	/* Set the state APPLIED: if the callback cancels this call, call_drop then only marks
	 * it. */
	call->state = CALL_APPLIED;
	call_unlink(call);
	call->done(call->arg, &r);
	call_free(call);
}

static void set_failure(struct memstore_call *call, int code, const char *message)
{
	struct hf_status_args args = {.code = code,
				      .message = message,
				      .resource = call->request->resource,
				      .name = call->request->name};

	hf_result_release(&call->result);
	call->result.code = code;
	hf_error_set(&call->result.err, code, "%s", message);
	call->result.object = hf_doc_from_json(hf_status_failure(&args));
}

static void on_late(void *arg)
{
	struct memstore_call *call = arg;

	if (call->client->paused)
		return;
	if (call->fault.lose_reply) {
		hf_result_release(&call->result);
		call->result.code = hf_error_set(&call->result.err, HF_E_TIMEOUT,
						 "the reply did not come in time");
	}
	send_reply(call);
}

static void start_timer(struct memstore_call *call, hf_task_fn fn, hf_time after)
{
	call->timer = hf_timer_destroy(call->timer);
	call->timer = hf_timer_create(call->client->memstore->loop, fn, call);
	hf_timer_arm(call->timer, after);
}

/* Delivers the reply after the commit: at once, after delay_after, or (lost reply) when the
 * request's timeout passes. */
static void finish_call(struct memstore_call *call)
{
	hf_time after = call->fault.delay_after;

	if (call->fault.lose_reply)
		after = call->request->timeout ? call->request->timeout : HF_MEMSTORE_TIMEOUT;
	if (after > 0 || call->client->paused) {
		call->state = CALL_LATE;
		start_timer(call, on_late, after);
		return;
	}
	send_reply(call);
}

void hf_memstore_client_pause(struct hf_store *store, bool paused)
{
	struct memstore_client *client = (struct memstore_client *)store;

	client->paused = paused;
	for (struct memstore_call *call = client->calls; !paused && call; call = call->next)
		if (call->state == CALL_LATE && !hf_timer_armed(call->timer))
			hf_timer_arm(call->timer, 0);
	if (!paused)
		hf_memstore_watches_wake(client);
}

/* --- a turn --- */

static void apply_call(struct memstore_call *call)
{
	struct hf_engine *engine = call->client->memstore->engine;
	size_t before = engine->pending.len;

	if (call->fault.refuse)
		set_failure(call, call->fault.refuse,
			    hf_str_or(call->fault.message, "refused by the test"));
	else if (call->fault.stale &&
		 (call->fault.unaware || hf_streq(call->request->resource_version, "0")))
		hf_engine_read_past(engine, call->request, call->fault.stale, &call->result);
	else
		hf_engine_apply(engine, call->request, &call->result);
	call->wrote = engine->pending.len > before;
}

/* Answers a call after a failed commit. A write gets the error of the commit. A read is repeated,
 * because it may have read changes that are now undone. */
static void fail_turn(struct memstore_call *call, const struct hf_error *err)
{
	if (call->fault.refuse)
		return;
	if (call->wrote ||
	    (call->request->verb != HF_VERB_GET && call->request->verb != HF_VERB_LIST)) {
		set_failure(call, err->code, err->text);
		return;
	}
	hf_result_release(&call->result);
	apply_call(call);
}

static struct memstore_call *take_batch(struct hf_memstore *memstore)
{
	struct memstore_call *first = memstore->queue_first, *last = first;
	size_t n = 1;

	if (!first)
		return NULL;
	while (last->queue_next && n < HF_MEMSTORE_TURN_MAX) {
		last = last->queue_next;
		n++;
	}
	memstore->queue_first = last->queue_next;
	if (!memstore->queue_first)
		memstore->queue_last = NULL;
	memstore->queued -= n;
	last->queue_next = NULL;
	return first;
}

void hf_memstore_calls_turn(struct hf_memstore *memstore)
{
	struct memstore_call *batch = take_batch(memstore);
	struct hf_error err = {0};

	for (struct memstore_call *call = batch; call; call = call->queue_next) {
		call->state = CALL_APPLIED;
		if (!call->canceled)
			apply_call(call);
	}
	int rc = hf_memstore_commit(memstore, &err);
	for (struct memstore_call *call = batch, *next; call; call = next) {
		next = call->queue_next;
		call->queue_next = NULL;
		/* The callback of a call before this one may have canceled this call. */
		if (call->canceled) {
			call_free(call);
			continue;
		}
		if (rc)
			fail_turn(call, &err);
		finish_call(call);
	}
}

static void enqueue_call(struct memstore_call *call)
{
	struct hf_memstore *memstore = call->client->memstore;

	call->state = CALL_QUEUED;
	if (memstore->queued >= HF_MEMSTORE_QUEUE_MAX && !call->fault.refuse) {
		call->fault.refuse = HF_E_TOO_MANY;
		call->fault.message = "too many requests are waiting";
		call->fault.retry_after = HF_SECOND;
	}
	*(memstore->queue_last ? &memstore->queue_last->queue_next : &memstore->queue_first) = call;
	memstore->queue_last = call;
	memstore->queued++;
	hf_memstore_wake(memstore);
}

static void on_held(void *arg)
{
	enqueue_call(arg);
}

/* --- the interface --- */

static struct hf_call *client_request(struct hf_store *store, const struct hf_request *request,
				      hf_reply_fn done, void *arg)
{
	struct memstore_client *client = (struct memstore_client *)store;
	struct memstore_call *call = hf_xcalloc(1, sizeof(*call));

	call->base.ops = store->ops;
	call->client = client;
	call->request = hf_request_copy(request);
	call->done = done;
	call->arg = arg;
	call_link(call);
	if (client->faults.request)
		client->faults.request(client->faults.arg, request, &call->fault);
	if (call->fault.delay_before > 0) {
		call->state = CALL_HELD;
		start_timer(call, on_held, call->fault.delay_before);
	} else {
		enqueue_call(call);
	}
	return &call->base;
}

/* Frees a call. A queued or applied call is only marked as canceled: the turn still reads its
 * list, and frees the call later. */
static void call_drop(struct memstore_call *call)
{
	call_unlink(call);
	if (call->state == CALL_QUEUED || call->state == CALL_APPLIED)
		call->canceled = true;
	else
		call_free(call);
}

static void client_cancel(struct hf_call *base)
{
	call_drop((struct memstore_call *)base);
}

static void client_destroy(struct hf_store *store)
{
	struct memstore_client *client = (struct memstore_client *)store;

	/* Only hf_memstore_destroy may destroy the client of hf_memstore_store. */
	hf_assert(client != client->memstore->own);
	client->memstore->clients--;
	hf_memstore_client_free(client);
}

static const struct hf_store_ops client_ops = {
	.name = "local",
	.request = client_request,
	.cancel = client_cancel,
	.watch = hf_memstore_watch_start,
	.watch_stop = hf_memstore_watch_stop,
	.logs = hf_memstore_log_start,
	.logs_stop = hf_memstore_log_stop,
	.destroy = client_destroy,
};

struct memstore_client *hf_memstore_client_new(struct hf_memstore *memstore,
					       const struct hf_memstore_faults *f)
{
	struct memstore_client *client = hf_xcalloc(1, sizeof(*client));

	client->base.ops = &client_ops;
	client->memstore = memstore;
	if (f)
		client->faults = *f;
	return client;
}

struct hf_store *hf_memstore_client_create(struct hf_memstore *memstore,
					   const struct hf_memstore_faults *faults)
{
	memstore->clients++;
	return &hf_memstore_client_new(memstore, faults)->base;
}

static void cancel_calls(struct memstore_client *client)
{
	const struct hf_reply canceled = {.code = HF_E_CANCELED,
					  .message = "the store was closed",
					  .resource_version = "",
					  .continue_token = "",
					  .remaining = -1,
					  .server_time = HF_TIME_NONE};

	while (client->calls) {
		struct memstore_call *call = client->calls;
		hf_reply_fn done = call->done;
		void *arg = call->arg;
		call_drop(call);
		done(arg, &canceled);
	}
}

/* Frees canceled calls that are still queued: no further turn will run and free them. */
static void free_queue(struct hf_memstore *memstore)
{
	struct memstore_call *call = memstore->queue_first;

	memstore->queue_first = memstore->queue_last = NULL;
	memstore->queued = 0;
	while (call) {
		struct memstore_call *next = call->queue_next;
		hf_assert(call->canceled);
		call_free(call);
		call = next;
	}
}

void hf_memstore_client_free(struct memstore_client *client)
{
	cancel_calls(client);
	hf_memstore_watches_cancel(client);
	hf_memstore_logs_cancel(client);
	if (client->memstore->ending)
		free_queue(client->memstore);
	free(client);
}
