/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A store that forwards requests to another store, but sends a write only while this process may
 * act, with a deadline inside that time.
 *
 * Invariant: every request that is not answered yet is in the list `calls`, so that destroying the
 * guard can answer it.
 */
#include "ctl/write_guard.h"

#include "base/mem.h"
#include "store/backend.h"

#include <stdlib.h>

#define TIMEOUT (30 * HF_SECOND)

struct guard_call;

struct write_guard {
	struct hf_store base; /* first member: a guard is used as a store */
	struct hf_write_guard_options options;
	struct guard_call *calls;
	unsigned long long held_back;
};

struct guard_call {
	struct hf_call base; /* first member: a guard_call is used as a call */
	struct write_guard *guard;
	struct guard_call *prev, *next;
	/* The call in the store behind the guard; NULL: the request was not sent. */
	struct hf_call *behind;
	/* Answers a write that was not sent; NULL: the request was sent. */
	struct hf_task *not_sent;
	hf_reply_fn done;
	void *arg;
};

static const struct hf_store_ops guard_ops;

static bool is_write(const struct hf_request *request)
{
	return request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST;
}

static void free_call(struct guard_call *call)
{
	if (call->prev != NULL)
		call->prev->next = call->next;
	else
		call->guard->calls = call->next;
	if (call->next != NULL)
		call->next->prev = call->prev;
	hf_task_destroy(call->not_sent);
	free(call);
}

/* Frees the handle before the callback runs: the contract says that the handle is invalid then. */
static void finish_call(struct guard_call *call, const struct hf_reply *reply)
{
	hf_reply_fn done = call->done;
	void *arg = call->arg;

	free_call(call);
	done(arg, reply);
}

static void finish_with_error(struct guard_call *call, int code, const char *message)
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
	struct guard_call *call = arg;

	call->behind = NULL;
	finish_call(call, reply);
}

static struct guard_call *create_call(struct write_guard *guard)
{
	struct guard_call *call = hf_xcalloc(1, sizeof(*call));

	call->base.ops = &guard_ops;
	call->guard = guard;
	call->next = guard->calls;
	if (guard->calls != NULL)
		guard->calls->prev = call;
	guard->calls = call;
	return call;
}

static struct hf_call *guard_request(struct hf_store *store, const struct hf_request *request,
				     hf_reply_fn done, void *arg)
{
	struct write_guard *guard = (struct write_guard *)store;
	const struct hf_write_guard_options *options = &guard->options;
	struct guard_call *call = create_call(guard);
	struct hf_request sent = *request;
	hf_time left = HF_TIME_NEVER;

	call->done = done;
	call->arg = arg;
	if (options->left != NULL && is_write(request))
		left = options->left(options->arg);
	if (left <= 0) {
		guard->held_back++;
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

static void guard_cancel(struct hf_call *base)
{
	struct guard_call *call = (struct guard_call *)base;

	hf_call_cancel(call->behind);
	free_call(call);
}

static struct hf_watch *guard_watch(struct hf_store *store, const struct hf_watch_options *options,
				    hf_event_fn fn, void *arg)
{
	return hf_store_watch(((struct write_guard *)store)->options.store, options, fn, arg);
}

static bool guard_can_stream_lists(const struct hf_store *store)
{
	return hf_store_can_stream_lists(((const struct write_guard *)store)->options.store);
}

static struct hf_log_stream *guard_logs(struct hf_store *store,
					const struct hf_log_options *options, hf_log_fn fn,
					void *arg)
{
	return hf_store_logs(((struct write_guard *)store)->options.store, options, fn, arg);
}

static void guard_destroy(struct hf_store *store)
{
	struct write_guard *guard = (struct write_guard *)store;

	while (guard->calls != NULL) {
		struct guard_call *call = guard->calls;

		hf_call_cancel(call->behind);
		call->behind = NULL;
		finish_with_error(call, HF_E_CANCELED, "the store was closed");
	}
	free(guard);
}

/* Watches and logs have handles of the store behind the guard. So the guard needs no functions to
 * stop them. */
static const struct hf_store_ops guard_ops = {
	.name = "write guard",
	.request = guard_request,
	.cancel = guard_cancel,
	.watch = guard_watch,
	.can_stream_lists = guard_can_stream_lists,
	.logs = guard_logs,
	.destroy = guard_destroy,
};

struct hf_store *hf_write_guard_create(const struct hf_write_guard_options *options)
{
	struct write_guard *guard = hf_xcalloc(1, sizeof(*guard));

	guard->base.ops = &guard_ops;
	guard->options = *options;
	if (guard->options.timeout == 0)
		guard->options.timeout = TIMEOUT;
	return &guard->base;
}

unsigned long long hf_write_guard_held_back(const struct hf_store *store)
{
	hf_assert(store->ops == &guard_ops);
	return ((const struct write_guard *)store)->held_back;
}
