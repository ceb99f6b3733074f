/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/memstore_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Log streams. The bytes come from the kubelet (hf_memstore_set_logs). This file wraps the kubelet's
 * stream, so that the rules of store/store.h hold for any kubelet:
 *
 *   - a stream ends exactly once;
 *   - the destruction of the client ends its streams with HF_E_CANCELED;
 *   - without a kubelet or a pod, the reader gets an error from the loop.
 */
struct memstore_log {
	struct hf_log_stream base;
	struct memstore_client *client;
	/* The stream of the kubelet; NULL: the kubelet refused the request, or the stream has
	 * ended. */
	struct hf_log_stream *inner;
	hf_log_fn fn;
	void *arg;
	struct hf_task *refusal; /* delivers err from the loop */
	struct hf_error err;
	bool busy, stopped, ended;
	struct memstore_log *prev, *next;
};

static void stream_unlink(struct memstore_log *s)
{
	if (!s->client)
		return;
	*(s->prev ? &s->prev->next : &s->client->logs) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->client = NULL;
	s->inner = hf_log_stream_stop(s->inner);
	s->refusal = hf_task_destroy(s->refusal);
}

/* Calls the reader's function. Frees s if the reader stops the stream inside that call. */
static void call_back(struct memstore_log *s, const char *bytes, size_t len,
		      const struct hf_error *end)
{
	bool outer = s->busy;

	if (end)
		s->ended = true;
	s->busy = true;
	s->fn(s->arg, bytes, len, end ? end->code : 0, end ? end->text : "");
	s->busy = outer;
	if (s->stopped && !outer)
		free(s);
}

static void on_bytes(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct memstore_log *s = arg;
	struct hf_error end = {.code = code};

	if (s->ended)
		return;
	if (len > 0) {
		call_back(s, bytes, len, NULL);
		return;
	}
	snprintf(end.text, sizeof(end.text), "%s", message ? message : "");
	call_back(s, "", 0, &end);
}

static void on_refusal(void *arg)
{
	struct memstore_log *s = arg;
	const struct hf_error err = s->err;

	call_back(s, "", 0, &err);
}

static int start_inner(struct memstore_log *s, const struct hf_log_options *options,
		       struct hf_error *err)
{
	struct hf_memstore *memstore = s->client->memstore;
	HF_AUTO_DOC pod =
		hf_doc_ref(hf_memstore_peek(memstore, &hf_pods, options->ns, options->pod));

	if (!pod)
		return hf_error_set(err, HF_E_NOT_FOUND, "pods \"%s\" not found", options->pod);
	if (!memstore->logs.start)
		return hf_error_set(err, HF_E_UNAVAILABLE,
				    "no kubelet is running here, so there are no logs");
	s->inner = memstore->logs.start(memstore->logs.arg, pod, options, on_bytes, s);
	return 0;
}

struct hf_log_stream *hf_memstore_log_start(struct hf_store *store,
					    const struct hf_log_options *options, hf_log_fn fn,
					    void *arg)
{
	struct memstore_client *client = (struct memstore_client *)store;
	struct memstore_log *s = hf_xcalloc(1, sizeof(*s));

	s->base.ops = store->ops;
	s->client = client;
	s->fn = fn;
	s->arg = arg;
	s->next = client->logs;
	if (s->next)
		s->next->prev = s;
	client->logs = s;
	if (start_inner(s, options, &s->err)) {
		s->refusal = hf_task_create(client->memstore->loop, on_refusal, s);
		hf_task_post(s->refusal);
	}
	return &s->base;
}

void hf_memstore_log_stop(struct hf_log_stream *base)
{
	struct memstore_log *s = (struct memstore_log *)base;

	hf_assert(!s->stopped);
	stream_unlink(s);
	s->stopped = true;
	if (!s->busy)
		free(s);
}

/* Ends the client's streams. It does not free them, because the readers own them until they call
 * hf_log_stream_stop. */
void hf_memstore_logs_cancel(struct memstore_client *client)
{
	const struct hf_error canceled = {.code = HF_E_CANCELED, .text = "the store was closed"};

	while (client->logs) {
		struct memstore_log *s = client->logs;
		stream_unlink(s);
		if (!s->ended)
			call_back(s, "", 0, &canceled);
	}
}
