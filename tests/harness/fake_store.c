/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/fake_store.h"

#include "base/mem.h"
#include "store/request.h"

#include <stdlib.h>

static struct hf_call *fake_request(struct hf_store *base, const struct hf_request *request,
				    hf_reply_fn done, void *arg)
{
	struct fake_store *store = (struct fake_store *)base;
	struct fake_call *call = &store->calls[store->n_calls];

	hf_assert(store->n_calls++ < FAKE_CALLS_MAX);
	call->base.ops = base->ops;
	call->request = hf_request_copy(request);
	call->done = done;
	call->arg = arg;
	call->live = true;
	return &call->base;
}

static void fake_cancel(struct hf_call *base)
{
	struct fake_call *call = (struct fake_call *)base;

	hf_assert(call->live);
	call->live = false;
	call->canceled = true;
}

static struct hf_watch *fake_watch(struct hf_store *base, const struct hf_watch_options *options,
				   hf_event_fn fn, void *arg)
{
	struct fake_store *store = (struct fake_store *)base;
	struct fake_watch *watch = &store->watches[store->n_watches];

	hf_assert(store->n_watches++ < FAKE_WATCHES_MAX);
	watch->base.ops = base->ops;
	if (options->resource_version != NULL)
		watch->resource_version = hf_xstrdup(options->resource_version);
	if (options->field_selector != NULL)
		watch->field_selector = hf_xstrdup(options->field_selector);
	watch->resource = options->resource;
	watch->timeout = options->timeout;
	watch->initial_events = options->initial_events;
	watch->fn = fn;
	watch->arg = arg;
	watch->live = true;
	return &watch->base;
}

static void fake_watch_stop(struct hf_watch *base)
{
	struct fake_watch *watch = (struct fake_watch *)base;

	hf_assert(watch->live);
	watch->live = false;
}

static void fake_destroy(struct hf_store *base)
{
	struct fake_store *store = (struct fake_store *)base;

	for (size_t i = 0; i < store->n_calls; i++)
		hf_request_free(store->calls[i].request);
	for (size_t i = 0; i < store->n_watches; i++) {
		free(store->watches[i].resource_version);
		free(store->watches[i].field_selector);
	}
	free(store);
}

static bool fake_can_stream_lists(const struct hf_store *base)
{
	return ((const struct fake_store *)base)->streams;
}

static const struct hf_store_ops fake_ops = {
	.can_stream_lists = fake_can_stream_lists,
	.name = "fake",
	.request = fake_request,
	.cancel = fake_cancel,
	.watch = fake_watch,
	.watch_stop = fake_watch_stop,
	.destroy = fake_destroy,
};

struct fake_store *fake_store_create(void)
{
	struct fake_store *store = hf_xcalloc(1, sizeof(*store));

	store->base.ops = &fake_ops;
	return store;
}

void fake_store_destroy(struct fake_store *store)
{
	hf_store_destroy(&store->base);
}

struct fake_call *fake_next(struct fake_store *store)
{
	return store->looked < store->n_calls ? &store->calls[store->looked++] : NULL;
}

void fake_answer(struct fake_call *call, const struct hf_reply *reply)
{
	hf_assert(call->live);
	call->live = false;
	call->done(call->arg, reply);
}

void fake_refuse(struct fake_call *call, int code)
{
	struct hf_reply reply = {.code = code,
				 .message = "refused by the test",
				 .resource_version = "",
				 .continue_token = "",
				 .server_time = HF_TIME_NONE};

	fake_answer(call, &reply);
}

void fake_answer_object(struct fake_call *call, struct hf_doc *object)
{
	struct hf_reply reply = {.message = "",
				 .object = object,
				 .resource_version = "",
				 .continue_token = "",
				 .server_time = HF_TIME_NONE};

	fake_answer(call, &reply);
	hf_doc_unref(object);
}

void fake_answer_list(struct fake_call *call, const char *version, const char *token,
		      struct hf_doc **items, size_t n_items)
{
	struct hf_reply reply = {.message = "",
				 .items = items,
				 .n_items = n_items,
				 .resource_version = version,
				 .continue_token = token,
				 .remaining = -1,
				 .server_time = HF_TIME_NONE};

	fake_answer(call, &reply);
	for (size_t i = 0; i < n_items; i++)
		hf_doc_unref(items[i]);
}

struct fake_watch *fake_watch_live(struct fake_store *store)
{
	for (size_t i = store->n_watches; i-- > 0;)
		if (store->watches[i].live)
			return &store->watches[i];
	return NULL;
}

void fake_event(struct fake_watch *watch, enum hf_event_type type, struct hf_doc *object)
{
	struct hf_event event = {.type = type,
				 .object = object,
				 .message = "",
				 .resource_version = hf_doc_resource_version(object)};

	watch->fn(watch->arg, &event);
	hf_doc_unref(object);
}

void fake_initial_end(struct fake_watch *watch, const char *version)
{
	struct hf_event event = {.type = HF_EVENT_BOOKMARK,
				 .message = "",
				 .resource_version = version,
				 .initial_end = true};

	watch->fn(watch->arg, &event);
}

void fake_bookmark(struct fake_watch *watch, const char *version)
{
	struct hf_event event = {
		.type = HF_EVENT_BOOKMARK, .message = "", .resource_version = version};

	watch->fn(watch->arg, &event);
}

void fake_end(struct fake_watch *watch, int code, hf_time retry_after)
{
	struct hf_event event = {.type = HF_EVENT_ENDED,
				 .code = code,
				 .message = "ended by the test",
				 .resource_version = "",
				 .retry_after = retry_after};

	watch->fn(watch->arg, &event);
}

struct hf_doc *fake_object(const char *name, const char *uid, const char *version,
			   const char *value)
{
	struct hf_json *root = hf_json_object(), *meta = hf_json_ensure_object(root, "metadata");

	hf_json_set_str(meta, "name", name);
	hf_json_set_str(meta, "namespace", "default");
	hf_json_set_str(meta, "uid", uid);
	hf_json_set_str(meta, "resourceVersion", version);
	hf_json_set_str(root, "value", value);
	return hf_doc_from_json(root);
}
