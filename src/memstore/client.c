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

struct local_call {
	struct hf_call base;
	struct local_client *client;
	enum call_state state;
	struct hf_request *request;
	hf_reply_fn done;
	void *arg;
	struct hf_fault fault;
	struct hf_result result;
	struct hf_timer *timer;         /* NULL: no fault needs one */
	struct local_call *prev, *next; /* of the client's list */
	struct local_call *queue_next;  /* next call in the queue, or in the batch of a turn */
	bool canceled;                  /* canceled while queued or applied: the turn frees it */
	bool wrote;                     /* has changed objects; fails if the commit fails */
};

/* --- the client's list --- */

static void call_link(struct local_call *call)
{
	struct local_client *client = call->client;

	call->next = client->calls;
	if (call->next)
		call->next->prev = call;
	client->calls = call;
}

static void call_unlink(struct local_call *call)
{
	if (!call->client)
		return;
	*(call->prev ? &call->prev->next : &call->client->calls) = call->next;
	if (call->next)
		call->next->prev = call->prev;
	call->client = NULL;
}

static void call_free(struct local_call *call)
{
	call_unlink(call);
	hf_timer_destroy(call->timer);
	hf_request_free(call->request);
	hf_result_release(&call->result);
	free(call);
}

/* --- replies --- */

static void send_reply(struct local_call *call)
{
	struct hf_result *result = &call->result;
	struct hf_loop *loop = call->client->local->loop;
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
	/* The callback may cancel this call: state APPLIED keeps call_drop from freeing it here. */
	call->state = CALL_APPLIED;
	call_unlink(call);
	call->done(call->arg, &r);
	call_free(call);
}

static void set_failure(struct local_call *call, int code, const char *message)
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
	struct local_call *call = arg;

	if (call->client->paused)
		return;
	if (call->fault.lose_reply) {
		hf_result_release(&call->result);
		call->result.code = hf_error_set(&call->result.err, HF_E_TIMEOUT,
						 "the reply did not come in time");
	}
	send_reply(call);
}

static void start_timer(struct local_call *call, hf_task_fn fn, hf_time after)
{
	call->timer = hf_timer_destroy(call->timer);
	call->timer = hf_timer_create(call->client->local->loop, fn, call);
	hf_timer_arm(call->timer, after);
}

/* Answers after the commit: at once, after delay_after, or when the timeout of a lost reply
 * passes. */
static void finish_call(struct local_call *call)
{
	hf_time after = call->fault.delay_after;

	if (call->fault.lose_reply)
		after = call->request->timeout ? call->request->timeout : HF_LOCAL_TIMEOUT;
	if (after > 0 || call->client->paused) {
		call->state = CALL_LATE;
		start_timer(call, on_late, after);
		return;
	}
	send_reply(call);
}

void hf_local_client_pause(struct hf_store *store, bool paused)
{
	struct local_client *client = (struct local_client *)store;

	client->paused = paused;
	for (struct local_call *call = client->calls; !paused && call; call = call->next)
		if (call->state == CALL_LATE && !hf_timer_armed(call->timer))
			hf_timer_arm(call->timer, 0);
	if (!paused)
		hf_local_watches_wake(client);
}

/* --- a turn --- */

static void apply_call(struct local_call *call)
{
	struct hf_engine *engine = call->client->local->engine;
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

/* After a failed commit: writes get its error. Reads run again, because they may have read changes
 * that are undone now. */
static void fail_turn(struct local_call *call, const struct hf_error *err)
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

static struct local_call *take_batch(struct hf_local *local)
{
	struct local_call *first = local->queue_first, *last = first;
	size_t n = 1;

	if (!first)
		return NULL;
	while (last->queue_next && n < HF_LOCAL_TURN_MAX) {
		last = last->queue_next;
		n++;
	}
	local->queue_first = last->queue_next;
	if (!local->queue_first)
		local->queue_last = NULL;
	local->queued -= n;
	last->queue_next = NULL;
	return first;
}

void hf_local_calls_turn(struct hf_local *local)
{
	struct local_call *batch = take_batch(local);
	struct hf_error err = {0};

	for (struct local_call *call = batch; call; call = call->queue_next) {
		call->state = CALL_APPLIED;
		if (!call->canceled)
			apply_call(call);
	}
	int rc = hf_local_commit(local, &err);
	for (struct local_call *call = batch, *next; call; call = next) {
		next = call->queue_next;
		call->queue_next = NULL;
		/* The callback of an earlier call in this batch may have canceled this call. */
		if (call->canceled) {
			call_free(call);
			continue;
		}
		if (rc)
			fail_turn(call, &err);
		finish_call(call);
	}
}

static void enqueue_call(struct local_call *call)
{
	struct hf_local *local = call->client->local;

	call->state = CALL_QUEUED;
	if (local->queued >= HF_LOCAL_QUEUE_MAX && !call->fault.refuse) {
		call->fault.refuse = HF_E_TOO_MANY;
		call->fault.message = "too many requests are waiting";
		call->fault.retry_after = HF_SECOND;
	}
	*(local->queue_last ? &local->queue_last->queue_next : &local->queue_first) = call;
	local->queue_last = call;
	local->queued++;
	hf_local_wake(local);
}

static void on_held(void *arg)
{
	enqueue_call(arg);
}

/* --- the interface --- */

static struct hf_call *client_request(struct hf_store *store, const struct hf_request *request,
				      hf_reply_fn done, void *arg)
{
	struct local_client *client = (struct local_client *)store;
	struct local_call *call = hf_xcalloc(1, sizeof(*call));

	call->base.ops = &hf_local_ops;
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

/* Frees a call. A queued or applied call is only marked: the turn still walks over it, and frees
 * it. */
static void call_drop(struct local_call *call)
{
	call_unlink(call);
	if (call->state == CALL_QUEUED || call->state == CALL_APPLIED)
		call->canceled = true;
	else
		call_free(call);
}

static void client_cancel(struct hf_call *base)
{
	call_drop((struct local_call *)base);
}

static void client_destroy(struct hf_store *store)
{
	struct local_client *client = (struct local_client *)store;

	/* The client of hf_local_store is destroyed by hf_local_destroy only. */
	hf_assert(client != client->local->own);
	client->local->clients--;
	hf_local_client_free(client);
}

const struct hf_store_ops hf_local_ops = {
	.name = "local",
	.request = client_request,
	.cancel = client_cancel,
	.watch = hf_local_watch_start,
	.watch_stop = hf_local_watch_stop,
	.logs = hf_local_stream_start,
	.logs_stop = hf_local_stream_stop,
	.destroy = client_destroy,
};

struct local_client *hf_local_client_new(struct hf_local *local, const struct hf_local_faults *f)
{
	struct local_client *client = hf_xcalloc(1, sizeof(*client));

	client->base.ops = &hf_local_ops;
	client->local = local;
	if (f)
		client->faults = *f;
	return client;
}

struct hf_store *hf_local_client_create(struct hf_local *local,
					const struct hf_local_faults *faults)
{
	local->clients++;
	return &hf_local_client_new(local, faults)->base;
}

static void cancel_calls(struct local_client *client)
{
	const struct hf_reply canceled = {.code = HF_E_CANCELED,
					  .message = "the store was closed",
					  .resource_version = "",
					  .continue_token = "",
					  .remaining = -1,
					  .server_time = HF_TIME_NONE};

	while (client->calls) {
		struct local_call *call = client->calls;
		hf_reply_fn done = call->done;
		void *arg = call->arg;
		call_drop(call);
		done(arg, &canceled);
	}
}

/* Frees canceled calls in the queue: the turn that would free them does not run any more. */
static void free_queue(struct hf_local *local)
{
	struct local_call *call = local->queue_first;

	local->queue_first = local->queue_last = NULL;
	local->queued = 0;
	while (call) {
		struct local_call *next = call->queue_next;
		hf_assert(call->canceled);
		call_free(call);
		call = next;
	}
}

void hf_local_client_free(struct local_client *client)
{
	cancel_calls(client);
	hf_local_watches_cancel(client);
	hf_local_streams_cancel(client);
	if (client->local->ending)
		free_queue(client->local);
	free(client);
}
