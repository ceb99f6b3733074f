/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The public functions of the store: each checks its arguments and calls the back end.
 *
 * A wrong argument from this program ends the process (hf_assert). A wrong name or selector may
 * come from a user, so the back end refuses it with a reply (see store/request.h).
 */
#include "store/store.h"

#include "store/backend.h"

struct hf_call *hf_store_request(struct hf_store *store, const struct hf_request *request,
				 hf_reply_fn done, void *arg)
{
	hf_assert(store && request && request->resource && done);
	return store->ops->request(store, request, done, arg);
}

void hf_call_cancel(struct hf_call *call)
{
	if (call)
		call->ops->cancel(call);
}

struct hf_watch *hf_store_watch(struct hf_store *store, const struct hf_watch_options *options,
				hf_event_fn fn, void *arg)
{
	hf_assert(store && options && options->resource && fn);
	hf_assert(!options->initial_events || (options->bookmarks && !options->resource_version &&
					       hf_store_can_stream_lists(store)));
	return store->ops->watch(store, options, fn, arg);
}

struct hf_watch *hf_watch_stop(struct hf_watch *watch)
{
	if (watch)
		watch->ops->watch_stop(watch);
	return NULL;
}

bool hf_store_can_stream_lists(const struct hf_store *store)
{
	return store->ops->can_stream_lists && store->ops->can_stream_lists(store);
}

struct hf_log_stream *hf_store_logs(struct hf_store *store, const struct hf_log_options *options,
				    hf_log_fn fn, void *arg)
{
	hf_assert(store && options && options->ns && options->pod && fn);
	return store->ops->logs(store, options, fn, arg);
}

struct hf_log_stream *hf_log_stream_stop(struct hf_log_stream *stream)
{
	if (stream)
		stream->ops->logs_stop(stream);
	return NULL;
}

struct hf_store *hf_store_destroy(struct hf_store *store)
{
	if (store)
		store->ops->destroy(store);
	return NULL;
}
