/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A store that forwards requests to another store, but sends a write only while this process may
 * act, with a deadline inside that time.
 *
 * Invariant: every request that is not answered yet is in the list `calls`, so that destroying the
 * front can answer it.
 */
#include "ctl/write_guard.h"

#include "base/mem.h"
#include "store/backend.h"

#include <stdlib.h>

#define TIMEOUT (30 * HF_SECOND)

struct front_call;

struct front {
	struct hf_store base; /* first member: a front is used as a store */
	struct hf_front_options options;
	struct front_call *calls;
	unsigned long long held_back;
};

struct front_call {
	struct hf_call base; /* first member: a front_call is used as a call */
	struct front *front;
	struct front_call *prev, *next;
	struct hf_call *behind; /* the call of the store behind; NULL: not sent */
	/* Answers a write that was not sent; NULL: the request was sent. */
	struct hf_task *not_sent;
	hf_reply_fn done;
	void *arg;
};

static const struct hf_store_ops front_ops;

static bool is_write(const struct hf_request *request)
{
	return request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST;
}

static void free_call(struct front_call *call)
{
	if (call->prev != NULL)
		call->prev->next = call->next;
	else
		call->front->calls = call->next;
	if (call->next != NULL)
		call->next->prev = call->prev;
	hf_task_destroy(call->not_sent);
	free(call);
}

/* Frees the handle before the callback runs: the contract says that the handle is invalid then. */
static void finish_call(struct front_call *call, const struct hf_reply *reply)
{
	hf_reply_fn done = call->done;
	void *arg = call->arg;

	free_call(call);
	done(arg, reply);
}

static void finish_with_error(struct front_call *call, int code, const char *message)
{
	const struct hf_reply reply = {
		.code = code,
		.message = message,
		.resource_version = "",
		.continue_token = "",
		.remaining = -1,
		.server_time = HF_TIME_NONE,
	};

	finish_call(call, &reply);
}

static void on_not_sent(void *arg)
{
	finish_with_error(arg, HF_E_UNAVAILABLE, "not sent: this process may no longer write");
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct front_call *call = arg;

	call->behind = NULL;
	finish_call(call, reply);
}

static struct front_call *create_call(struct front *front)
{
	struct front_call *call = hf_xcalloc(1, sizeof(*call));

	call->base.ops = &front_ops;
	call->front = front;
	call->next = front->calls;
	if (front->calls != NULL)
		front->calls->prev = call;
	front->calls = call;
	return call;
}

static struct hf_call *front_request(struct hf_store *store, const struct hf_request *request,
				     hf_reply_fn done, void *arg)
{
	struct front *front = (struct front *)store;
	const struct hf_front_options *options = &front->options;
	struct front_call *call = create_call(front);
	struct hf_request sent = *request;
	hf_time left = HF_TIME_NEVER;

	call->done = done;
	call->arg = arg;
	if (options->left != NULL && is_write(request))
		left = options->left(options->arg);
	if (left <= 0) {
		front->held_back++;
		call->not_sent = hf_task_create(options->loop, on_not_sent, call);
		hf_task_post(call->not_sent);
		return &call->base;
	}
	if (is_write(request) && sent.timeout == 0)
		sent.timeout = options->timeout;
	if (left < sent.timeout)
		sent.timeout = left;
	call->behind = hf_store_request(options->store, &sent, on_reply, call);
	return &call->base;
}

static void front_cancel(struct hf_call *base)
{
	struct front_call *call = (struct front_call *)base;

	hf_call_cancel(call->behind);
	free_call(call);
}

static struct hf_watch *front_watch(struct hf_store *store, const struct hf_watch_options *options,
				    hf_event_fn fn, void *arg)
{
	return hf_store_watch(((struct front *)store)->options.store, options, fn, arg);
}

static bool front_streams(const struct hf_store *store)
{
	return hf_store_streams(((const struct front *)store)->options.store);
}

static struct hf_log_stream *front_logs(struct hf_store *store,
					const struct hf_log_options *options, hf_log_fn fn,
					void *arg)
{
	return hf_store_logs(((struct front *)store)->options.store, options, fn, arg);
}

static void front_destroy(struct hf_store *store)
{
	struct front *front = (struct front *)store;

	while (front->calls != NULL) {
		struct front_call *call = front->calls;

		hf_call_cancel(call->behind);
		call->behind = NULL;
		finish_with_error(call, HF_E_CANCELED, "the store was closed");
	}
	free(front);
}

/* Watches and logs use the handles of the store behind, so the front needs no functions to stop
 * them. */
static const struct hf_store_ops front_ops = {
	.name = "front",
	.request = front_request,
	.cancel = front_cancel,
	.watch = front_watch,
	.streams = front_streams,
	.logs = front_logs,
	.destroy = front_destroy,
};

struct hf_store *hf_front_create(const struct hf_front_options *options)
{
	struct front *front = hf_xcalloc(1, sizeof(*front));

	front->base.ops = &front_ops;
	front->options = *options;
	if (front->options.timeout == 0)
		front->options.timeout = TIMEOUT;
	return &front->base;
}

unsigned long long hf_front_held_back(const struct hf_store *store)
{
	hf_assert(store->ops == &front_ops);
	return ((const struct front *)store)->held_back;
}
