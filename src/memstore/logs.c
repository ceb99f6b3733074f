/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/memstore_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Log streams. The bytes come from the kubelet (hf_local_set_logs). This file wraps the kubelet's
 * stream, so that the rules of store/store.h hold for any kubelet:
 *
 *   - a stream ends exactly once;
 *   - the destruction of the client ends its streams with HF_E_CANCELED;
 *   - without a kubelet or a pod, the reader gets an error from the loop.
 */
struct local_stream {
	struct hf_log_stream base;
	struct local_client *client;
	struct hf_log_stream *inner; /* the kubelet's stream; NULL: refused, or ended */
	hf_log_fn fn;
	void *arg;
	struct hf_task *refusal; /* delivers err from the loop */
	struct hf_error err;
	bool busy, stopped, ended;
	struct local_stream *prev, *next;
};

static void stream_unlink(struct local_stream *s)
{
	if (!s->client)
		return;
	*(s->prev ? &s->prev->next : &s->client->streams) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->client = NULL;
	s->inner = hf_log_stream_stop(s->inner);
	s->refusal = hf_task_destroy(s->refusal);
}

/* Calls the reader. Frees s if the reader stopped the stream from inside the callback. */
static void call_back(struct local_stream *s, const char *bytes, size_t len,
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
	struct local_stream *s = arg;
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
	struct local_stream *s = arg;
	const struct hf_error err = s->err;

	call_back(s, "", 0, &err);
}

static int start_inner(struct local_stream *s, const struct hf_log_options *options,
		       struct hf_error *err)
{
	struct hf_local *local = s->client->local;
	HF_AUTO_DOC pod = hf_doc_ref(hf_local_peek(local, &hf_pods, options->ns, options->pod));

	if (!pod)
		return hf_error_set(err, HF_E_NOT_FOUND, "pods \"%s\" not found", options->pod);
	if (!local->logs.start)
		return hf_error_set(err, HF_E_UNAVAILABLE,
				    "no kubelet is running here, so there are no logs");
	s->inner = local->logs.start(local->logs.arg, pod, options, on_bytes, s);
	return 0;
}

struct hf_log_stream *hf_local_stream_start(struct hf_store *store,
					    const struct hf_log_options *options, hf_log_fn fn,
					    void *arg)
{
	struct local_client *client = (struct local_client *)store;
	struct local_stream *s = hf_xcalloc(1, sizeof(*s));

	s->base.ops = &hf_local_ops;
	s->client = client;
	s->fn = fn;
	s->arg = arg;
	s->next = client->streams;
	if (s->next)
		s->next->prev = s;
	client->streams = s;
	if (start_inner(s, options, &s->err)) {
		s->refusal = hf_task_create(client->local->loop, on_refusal, s);
		hf_task_post(s->refusal);
	}
	return &s->base;
}

void hf_local_stream_stop(struct hf_log_stream *base)
{
	struct local_stream *s = (struct local_stream *)base;

	hf_assert(!s->stopped);
	stream_unlink(s);
	s->stopped = true;
	if (!s->busy)
		free(s);
}

/* The reader still owns the handles: they live until hf_log_stream_stop. */
void hf_local_streams_cancel(struct local_client *client)
{
	const struct hf_error canceled = {.code = HF_E_CANCELED, .text = "the store was closed"};

	while (client->streams) {
		struct local_stream *s = client->streams;
		stream_unlink(s);
		if (!s->ended)
			call_back(s, "", 0, &canceled);
	}
}
