/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/front_store.h"

#include "base/mem.h"
#include "base/str.h"
#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>

#define CALLS_MAX 256

struct front_store {
	struct hf_store base; /* first */
	struct front_options options;
	struct hf_store *inner;
	struct front_call *calls[CALLS_MAX];
};

static const struct hf_store_ops ops;

/* ---- answers ------------------------------------------------------------------------------------- */

void front_answer(struct front_call *call, int code, struct hf_doc *object)
{
	const struct hf_reply reply = {.code = code,
				       .message = code == 0 ? "" : "as the test wants it",
				       .object = object,
				       .resource_version = "",
				       .continue_token = "",
				       .server_time = HF_TIME_NONE};

	call->done(call->arg, &reply);
}

void front_answer_list(struct front_call *call, struct hf_doc **items, size_t len,
		       const char *version)
{
	const struct hf_reply reply = {.message = "",
				       .items = items,
				       .n_items = len,
				       .resource_version = version,
				       .continue_token = "",
				       .remaining = -1,
				       .server_time = HF_TIME_NONE};

	call->done(call->arg, &reply);
}

/* ---- requests ------------------------------------------------------------------------------------ */

static void forget_call(struct front_call *call)
{
	for (size_t i = 0; i < CALLS_MAX; i++)
		if (call->store->calls[i] == call)
			call->store->calls[i] = NULL;
}

static void free_call(struct front_call *call)
{
	hf_timer_destroy(call->timer);
	hf_doc_unref(call->body);
	free(call);
}

static void on_due(void *arg)
{
	struct front_call *call = arg;

	forget_call(call);
	call->store->options.answer(call->store->options.arg, call);
	free_call(call);
}

static struct front_call *create_call(const struct hf_request *r)
{
	struct front_call *call = hf_xcalloc(1, sizeof(*call));

	call->base.ops = &ops;
	call->verb = r->verb;
	call->body = r->body == NULL ? NULL : hf_doc_ref(r->body);
	snprintf(call->plural, sizeof(call->plural), "%s", r->resource->plural);
	snprintf(call->version, sizeof(call->version), "%s", r->resource->version);
	snprintf(call->name, sizeof(call->name), "%s", hf_str_or(r->name, ""));
	snprintf(call->uid, sizeof(call->uid), "%s", hf_str_or(r->precondition_uid, ""));
	snprintf(call->field_selector, sizeof(call->field_selector), "%s",
		 hf_str_or(r->field_selector, ""));
	return call;
}

static struct hf_call *request(struct hf_store *base, const struct hf_request *r, hf_reply_fn done,
			       void *arg)
{
	struct front_store *store = (struct front_store *)base;
	struct front_call *call;
	size_t at = 0;

	if (!hf_streq(r->resource->group, store->options.group))
		return hf_store_request(store->inner, r, done, arg);
	while (at < CALLS_MAX && store->calls[at] != NULL)
		at++;
	hf_assert(at < CALLS_MAX);
	call = store->calls[at] = create_call(r);
	call->store = store;
	call->done = done;
	call->arg = arg;
	call->timer = hf_timer_create(store->options.loop, on_due, call);
	hf_timer_arm(call->timer, store->options.delay == NULL ? HF_MS : *store->options.delay);
	return &call->base;
}

static void cancel(struct hf_call *base)
{
	struct front_call *call = (struct front_call *)base;

	forget_call(call);
	free_call(call);
}

/* ---- the store ----------------------------------------------------------------------------------- */

static struct hf_watch *watch(struct hf_store *base, const struct hf_watch_options *options,
			      hf_event_fn fn, void *arg)
{
	struct front_store *store = (struct front_store *)base;

	if (store->options.watch == NULL ||
	    !hf_streq(options->resource->group, store->options.group))
		return hf_store_watch(store->inner, options, fn, arg);
	return store->options.watch(store->options.arg, fn, arg);
}

static void destroy(struct hf_store *base)
{
	struct front_store *store = (struct front_store *)base;

	for (size_t i = 0; i < CALLS_MAX; i++)
		if (store->calls[i] != NULL)
			free_call(store->calls[i]);
	hf_store_destroy(store->inner);
	free(store);
}

static const struct hf_store_ops ops = {
	.name = "front", .request = request, .cancel = cancel, .watch = watch, .destroy = destroy};

struct hf_store *front_store_create(const struct front_options *options, struct hf_store *inner)
{
	struct front_store *store = hf_xcalloc(1, sizeof(*store));

	store->base.ops = &ops;
	store->options = *options;
	store->inner = inner;
	return &store->base;
}

void front_mark_deleted(struct hf_doc **object)
{
	struct hf_json *json = hf_doc_copy_json(*object);

	hf_json_set_str(hf_json_ensure_object(json, "metadata"), "deletionTimestamp",
			"2023-11-14T22:13:20Z");
	hf_doc_unref(*object);
	*object = hf_doc_from_json(json);
}
