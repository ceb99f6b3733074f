/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

/* Logs of a container, sent as plain text while the kubelet delivers them. Bytes that a slow client
 * has not taken wait in memory, at most HF_APISERVER_LOG_BYTES_MAX; beyond that the connection is
 * aborted. */

/* Delay after which the head of the response is sent, even if the container has written
 * nothing. */
#define HEAD_AFTER HF_SECOND
/* Bytes that have been sent are removed from the buffer in steps of this size. */
#define CONSUME_BYTES ((size_t)1 << 20)

struct apiserver_log {
	struct apiserver_stream stream; /* the first member, for casts */
	struct hf_log_stream *source;   /* NULL: ended */
	struct hf_timer *head;
	struct hf_strbuf waiting; /* bytes that wait for the client */
	size_t written;           /* bytes of waiting already sent */
	bool begun, at_end;
};

static void log_free(struct apiserver_log *log)
{
	hf_apiserver_stream_unlink(&log->stream);
	log->source = hf_log_stream_stop(log->source);
	hf_timer_destroy(log->head);
	hf_strbuf_release(&log->waiting);
	free(log);
}

static void on_closed(void *arg, struct hf_exchange *ex)
{
	log_free(arg);
}

static void begin_response(struct apiserver_log *log)
{
	if (log->begun)
		return;
	log->begun = true;
	hf_exchange_add_header(log->stream.ex, "Cache-Control", "no-cache, private");
	hf_exchange_begin(log->stream.ex, 200, "text/plain");
}

static void finish_log(struct apiserver_stream *stream)
{
	struct apiserver_log *log = (struct apiserver_log *)stream;
	struct hf_exchange *ex = stream->ex;

	begin_response(log);
	hf_exchange_on_closed(ex, NULL, NULL);
	hf_exchange_on_drained(ex, NULL, NULL);
	log_free(log);
	hf_exchange_finish(ex);
}

static void abort_log(struct apiserver_log *log)
{
	struct hf_exchange *ex = log->stream.ex;

	hf_exchange_on_closed(ex, NULL, NULL);
	log_free(log);
	hf_exchange_abort(ex);
}

static void on_drained(void *arg, struct hf_exchange *ex);

/* Sends as many of the waiting bytes as the stream has room for. */
static void write_waiting(struct apiserver_log *log)
{
	size_t left = log->waiting.len - log->written;
	size_t room = hf_exchange_room(log->stream.ex);

	/* Try to write all waiting bytes: the exchange calls on_drained only after a write that it
	 * refused. */
	if (hf_exchange_write(log->stream.ex, log->waiting.data + log->written, left))
		log->written += left;
	else if (hf_exchange_write(log->stream.ex, log->waiting.data + log->written, room))
		log->written += room;
	if (log->written >= CONSUME_BYTES) {
		hf_strbuf_consume(&log->waiting, log->written);
		log->written = 0;
	}
	if (log->written < log->waiting.len) {
		hf_exchange_on_drained(log->stream.ex, on_drained, log);
		return;
	}
	hf_strbuf_clear(&log->waiting);
	log->written = 0;
	if (log->at_end)
		finish_log(&log->stream);
}

static void on_drained(void *arg, struct hf_exchange *ex)
{
	write_waiting(arg);
}

static void on_end(struct apiserver_log *log, int code, const char *message)
{
	struct hf_exchange *ex = log->stream.ex;

	if (code != 0 && !log->begun) {
		hf_exchange_on_closed(ex, NULL, NULL);
		log_free(log);
		hf_apiserver_fail(ex, code, "%s", message);
		return;
	}
	begin_response(log);
	log->at_end = true;
	write_waiting(log);
}

static void on_bytes(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct apiserver_log *log = arg;

	if (len == 0) {
		on_end(log, code, message);
		return;
	}
	begin_response(log);
	hf_strbuf_add(&log->waiting, bytes, len);
	/* If bytes must be dropped, abort the response, so that the client sees that bytes are
	 * missing. A gap in the log would look like a complete log. */
	if (log->waiting.full)
		abort_log(log);
	else
		write_waiting(log);
}

static void on_head(void *arg)
{
	begin_response(arg);
}

static bool read_options(struct hf_exchange *ex, const struct apiserver_route *route, hf_time now,
			 struct hf_log_options *ret_options)
{
	struct hf_log_options options = {
		.ns = route->ns,
		.pod = route->name,
		.container = hf_exchange_query(ex, "container"),
		.follow = hf_apiserver_query_true(ex, "follow"),
		.previous = hf_apiserver_query_true(ex, "previous"),
		.timestamps = hf_apiserver_query_true(ex, "timestamps"),
	};
	const char *since = hf_exchange_query(ex, "sinceTime");

	if (hf_str_is_empty(options.container))
		options.container = NULL;
	if (!hf_apiserver_query_i64(ex, "tailLines", -1, &options.tail_lines) ||
	    !hf_apiserver_query_i64(ex, "sinceSeconds", 0, &options.since_seconds) ||
	    !hf_apiserver_query_i64(ex, "limitBytes", 0, &options.limit_bytes))
		return false;
	if (!hf_str_is_empty(since)) {
		hf_time t;
		if (hf_time_parse(since, &t, NULL) != 0) {
			hf_apiserver_fail(ex, HF_E_BAD_REQUEST,
					  "sinceTime must be a time (RFC 3339)");
			return false;
		}
		/* Round the span up, so that no line is missing. The response may then have lines
		 * from up to a second before sinceTime. */
		options.since_seconds = t < now ? (now - t + HF_SECOND - 1) / HF_SECOND : 1;
	}
	*ret_options = options;
	return true;
}

void hf_apiserver_log(struct hf_apiserver *server, struct hf_exchange *ex,
		      const struct apiserver_route *route)
{
	struct hf_log_options options;
	struct apiserver_log *log;

	if (!hf_streq(hf_exchange_method(ex), "GET")) {
		hf_apiserver_fail(
			ex, HF_E_METHOD,
			"the server does not allow this method on the requested resource");
		return;
	}
	if (server->quiet) {
		hf_apiserver_fail(ex, HF_E_UNAVAILABLE, "the server is shutting down");
		return;
	}
	if (!read_options(ex, route, hf_loop_wall(server->loop), &options))
		return;
	log = hf_xcalloc(1, sizeof(*log));
	hf_strbuf_init(&log->waiting, HF_APISERVER_LOG_BYTES_MAX);
	log->stream = (struct apiserver_stream){.ex = ex, .end = finish_log};
	hf_apiserver_stream_link(server, &log->stream);
	hf_exchange_on_closed(ex, on_closed, log);
	log->head = hf_timer_create(server->loop, on_head, log);
	hf_timer_arm(log->head, HEAD_AFTER);
	log->source = hf_store_logs(server->client, &options, on_bytes, log);
}
