/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The functions of server.h that a handler calls on an exchange: reading the request, and
 * responding with one body or with a stream. */
#include "http/server_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Most bytes that libmicrohttpd reads from a stream at a time; one chunk on the wire. It must fit
 * into the connection's memory pool beside the request's head. */
#define STREAM_BLOCK_BYTES ((size_t)4096)

/* A stream with nothing to send keeps a buffer of up to this size; a larger buffer is freed. */
#define STREAM_KEEP_BYTES ((size_t)64 * 1024)

void hf_exchange_free(struct hf_exchange *ex)
{
	hf_assert(!ex->connection && !ex->queued && !ex->hangup);
	if (ex->response)
		MHD_destroy_response(ex->response);
	for (size_t i = 0; i < ex->response_headers.len; i++) {
		free((char *)(uintptr_t)ex->response_headers.items[i].name);
		free((char *)(uintptr_t)ex->response_headers.items[i].value);
	}
	HF_VEC_RELEASE(&ex->response_headers);
	hf_target_release(&ex->target);
	hf_strbuf_release(&ex->body);
	hf_strbuf_release(&ex->out);
	free(ex->headers);
	free(ex->method);
	free(ex);
}

/* --- the request --- */

const char *hf_exchange_method(const struct hf_exchange *ex)
{
	return ex->method;
}

const char *hf_exchange_path(const struct hf_exchange *ex)
{
	return ex->target.path;
}

const char *hf_exchange_target(const struct hf_exchange *ex)
{
	return ex->target.raw;
}

const char *hf_exchange_query(const struct hf_exchange *ex, const char *name)
{
	for (size_t i = 0; i < ex->target.query_count; i++) {
		if (strcmp(ex->target.query[i].name, name) == 0)
			return ex->target.query[i].value;
	}
	return NULL;
}

const char *hf_exchange_header(const struct hf_exchange *ex, const char *name)
{
	for (size_t i = 0; i < ex->headers_count; i++) {
		if (hf_str_case_eq(ex->headers[i].name, name))
			return ex->headers[i].value;
	}
	return NULL;
}

const char *hf_exchange_body(const struct hf_exchange *ex, size_t *ret_len)
{
	*ret_len = ex->body.len;
	return ex->body.data;
}

/* --- the response --- */

void hf_exchange_on_closed(struct hf_exchange *ex, hf_exchange_fn fn, void *arg)
{
	hf_assert(!ex->ended);
	ex->on_closed = fn;
	ex->closed_arg = arg;
}

static bool is_header_text(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 127)
			return false;
	}
	return true;
}

void hf_exchange_add_header(struct hf_exchange *ex, const char *name, const char *value)
{
	hf_assert(!ex->begun && !ex->ended);
	hf_assert(*name && is_header_text(name) && is_header_text(value));
	struct hf_target_pair pair = {.name = hf_xstrdup(name), .value = hf_xstrdup(value)};
	bool fits = HF_VEC_PUSH(&ex->response_headers, pair);
	hf_assert(fits);
}

/* Sets the response of an exchange. libmicrohttpd fails to create a response only without memory or
 * for a malformed value; both are impossible here. */
static void set_response(struct hf_exchange *ex, int status, const char *content_type,
			 struct MHD_Response *response)
{
	enum MHD_Result rc = MHD_YES;

	hf_assert(response && !ex->begun && !ex->ended && status >= 200 && status <= 599);
	if (content_type)
		rc = MHD_add_response_header(response, "Content-Type", content_type);
	for (size_t i = 0; i < ex->response_headers.len && rc == MHD_YES; i++)
		rc = MHD_add_response_header(response, ex->response_headers.items[i].name,
					     ex->response_headers.items[i].value);
	hf_assert(rc == MHD_YES);
	ex->response = response;
	ex->status = status;
	ex->begun = true;
	/* If the connection is already cut, resuming only frees it: no byte of the response is
	 * sent. */
	hf_exchange_resume(ex);
}

static void end_exchange(struct hf_exchange *ex)
{
	hf_assert(!ex->ended && ex->handed);
	ex->ended = true;
	ex->on_closed = ex->on_drained = NULL;
	hf_assert(ex->server->live > 0);
	ex->server->live--;
	hf_exchange_resume(ex);
}

void hf_exchange_respond(struct hf_exchange *ex, int status, const char *content_type,
			 const void *body, size_t len)
{
	/* libmicrohttpd only reads the bytes, although its parameter is void *. */
	void *bytes = len > 0 ? (void *)(uintptr_t)body : (void *)(uintptr_t) "";

	set_response(ex, status, content_type,
		     MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_COPY));
	end_exchange(ex);
}

void hf_exchange_respond_take(struct hf_exchange *ex, int status, const char *content_type,
			      struct hf_strbuf *body)
{
	size_t len = body->len;

	set_response(ex, status, content_type,
		     MHD_create_response_from_buffer(len, hf_strbuf_detach(body),
						     MHD_RESPMEM_MUST_FREE));
	end_exchange(ex);
}

static size_t pending_bytes(const struct hf_exchange *ex)
{
	return ex->out.len - ex->out_head;
}

/* Content reader of streams, called by libmicrohttpd. */
static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct hf_exchange *ex = cls;
	size_t len = pending_bytes(ex) < max ? pending_bytes(ex) : max;

	if (ex->cut)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (len == 0) {
		if (ex->ended)
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (ex->out.cap > STREAM_KEEP_BYTES)
			hf_strbuf_release(&ex->out);
		/* A content reader that suspends the connection must return 0. */
		ex->suspended = true;
		MHD_suspend_connection(ex->connection);
		return 0;
	}
	memcpy(buf, ex->out.data + ex->out_head, len);
	ex->out_head += len;
	if (pending_bytes(ex) == 0) {
		hf_strbuf_clear(&ex->out);
		ex->out_head = 0;
	}
	if (ex->starved && pending_bytes(ex) <= ex->out.bytes_max / 2) {
		ex->starved = false;
		ex->drained = true;
		hf_exchange_queue(ex);
	}
	return (ssize_t)len;
}

void hf_exchange_begin(struct hf_exchange *ex, int status, const char *content_type)
{
	set_response(ex, status, content_type,
		     MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES,
						       read_stream, ex, NULL));
}

size_t hf_exchange_room(const struct hf_exchange *ex)
{
	return ex->out.bytes_max - pending_bytes(ex);
}

bool hf_exchange_write(struct hf_exchange *ex, const void *bytes, size_t len)
{
	hf_assert(ex->begun && !ex->ended);
	if (len > hf_exchange_room(ex)) {
		ex->starved = true;
		return false;
	}
	if (ex->out.len + len > ex->out.bytes_max) {
		hf_strbuf_consume(&ex->out, ex->out_head);
		ex->out_head = 0;
	}
	hf_strbuf_add(&ex->out, bytes, len);
	hf_assert(!ex->out.full);
	if (len > 0)
		hf_exchange_resume(ex);
	return true;
}

void hf_exchange_on_drained(struct hf_exchange *ex, hf_exchange_fn fn, void *arg)
{
	hf_assert(!ex->ended);
	ex->on_drained = fn;
	ex->drained_arg = arg;
}

void hf_exchange_finish(struct hf_exchange *ex)
{
	hf_assert(ex->begun);
	end_exchange(ex);
}

void hf_exchange_abort(struct hf_exchange *ex)
{
	ex->cut = true;
	end_exchange(ex);
}
