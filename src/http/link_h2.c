/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The HTTP/2 session of a link, with nghttp2: submits requests, and turns received frames into
 * calls of hf_transfer_take_*. Reasons of GOAWAY, reset and malformed responses go into error
 * texts. */
#include "http/link_internal.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Window of the whole connection; each stream has its own window too. */
#define CONNECTION_WINDOW_BYTES (16 << 20)
#define FIELDS_MAX 80 /* 64 headers of the caller, and the fields added in this file */
#define NAME_BYTES_MAX 4096
#define REASON_BYTES_MAX 128 /* most bytes of a GOAWAY's debug text in an error */
/* Streams that may be open before the server's SETTINGS have come; RFC 9113 recommends that servers
 * allow at least this many. */
#define STREAMS_MAX 100

/* --- callbacks of nghttp2: they may submit and consume, but must not receive, send or free --- */

static struct hf_transfer *transfer_of(nghttp2_session *session, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(session, stream_id);
}

static ssize_t on_body_wanted(nghttp2_session *session, int32_t stream_id, uint8_t *buffer,
			      size_t size, uint32_t *flags, HF_UNUSED nghttp2_data_source *source,
			      HF_UNUSED void *arg)
{
	struct hf_transfer *transfer = transfer_of(session, stream_id);

	/* After a suspension of this process a window update may be read before an overdue timer
	 * runs. The body of a transfer past its deadline must not be sent. */
	if (!transfer || hf_transfer_is_due(transfer))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	size_t left = transfer->request.body_len - transfer->body_sent;
	size_t len = left < size ? left : size;
	memcpy(buffer, transfer->body + transfer->body_sent, len);
	transfer->body_sent += len;
	if (len == left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

/* "PROTOCOL_ERROR"; "code N" for a code that HTTP/2 does not define */
static char *error_name(uint32_t code)
{
	return code <= NGHTTP2_HTTP_1_1_REQUIRED ? hf_xstrdup(nghttp2_http2_strerror(code))
						 : hf_xasprintf("code %u", code);
}

static void note_goaway(struct hf_link *link, const char *what, const nghttp2_goaway *goaway)
{
	char reason[REASON_BYTES_MAX];

	if (goaway->error_code == NGHTTP2_NO_ERROR || link->goaway_err.code != 0)
		return;
	HF_AUTOFREE char *name = error_name(goaway->error_code);
	hf_str_print(reason, sizeof(reason), (const char *)goaway->opaque_data,
		     goaway->opaque_data_len);
	hf_error_set(&link->goaway_err, HF_E_UNAVAILABLE, "%s: %s%s%s%s", what, name,
		     reason[0] ? " (" : "", reason, reason[0] ? ")" : "");
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct hf_transfer *transfer = frame->hd.type == NGHTTP2_HEADERS
					       ? transfer_of(session, frame->hd.stream_id)
					       : NULL;

	if (transfer)
		hf_transfer_advance(transfer, HF_EXCHANGE_HEAD_SENT);
	if (frame->hd.type == NGHTTP2_GOAWAY)
		note_goaway(arg, "the server broke the rules of HTTP/2", &frame->goaway);
	return 0;
}

static int on_bad_frame(nghttp2_session *session, const nghttp2_frame *frame, int code,
			HF_UNUSED void *arg)
{
	struct hf_transfer *transfer = transfer_of(session, frame->hd.stream_id);

	if (transfer)
		transfer->fault = nghttp2_strerror(code);
	return 0;
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		    size_t name_len, const uint8_t *value, HF_UNUSED size_t value_len,
		    HF_UNUSED uint8_t flags, HF_UNUSED void *arg)
{
	struct hf_transfer *transfer = transfer_of(session, frame->hd.stream_id);

	if (transfer && name_len > 0)
		hf_transfer_take_field(transfer, (const char *)name, (const char *)value);
	return 0;
}

static int on_bytes(nghttp2_session *session, HF_UNUSED uint8_t flags, int32_t stream_id,
		    const uint8_t *bytes, size_t len, HF_UNUSED void *arg)
{
	struct hf_transfer *transfer = transfer_of(session, stream_id);

	/* All streams share the connection's window, so a slow stream must not close it. */
	(void)nghttp2_session_consume_connection(session, len);
	if (!transfer)
		return 0;
	if (transfer->request.stream)
		transfer->unconsumed += len;
	else
		(void)nghttp2_session_consume_stream(session, stream_id, len);
	hf_transfer_take_body(transfer, bytes, len);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct hf_link *link = arg;
	struct hf_transfer *transfer;

	if (frame->hd.type == NGHTTP2_GOAWAY) {
		link->going_away = true;
		note_goaway(link, "the server sent GOAWAY", &frame->goaway);
	}
	transfer = transfer_of(session, frame->hd.stream_id);
	if (transfer && frame->hd.type == NGHTTP2_RST_STREAM)
		transfer->reset = true;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	if (transfer && frame->hd.type == NGHTTP2_HEADERS)
		hf_transfer_take_head(transfer);
	/* Look the transfer up again, because hf_transfer_take_head may have ended it. */
	transfer = transfer_of(session, frame->hd.stream_id);
	if (transfer && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		hf_transfer_take_end(transfer);
	return 0;
}

/* The reason why a stream ended before its response was complete. */
static char *describe_close(const struct hf_link *link, const struct hf_transfer *transfer,
			    uint32_t code)
{
	HF_AUTOFREE char *name = error_name(code);
	bool counted = hf_transfer_header(transfer, "content-length") &&
		       transfer->phase >= HF_EXCHANGE_HEAD;

	if (transfer->phase == HF_EXCHANGE_UNSENT)
		return hf_xasprintf("cannot be sent: %s", name);
	if (link->goaway_err.code != 0)
		return hf_xstrdup(link->goaway_err.text);
	if (link->going_away)
		return hf_xasprintf("the server sent GOAWAY and ended the stream: %s", name);
	if (transfer->reset)
		return hf_xasprintf("the server ended the stream: %s", name);
	if (!transfer->fault && counted && code == NGHTTP2_PROTOCOL_ERROR)
		return hf_xstrdup("the response body and its content-length differ");
	return hf_xasprintf("the response breaks the rules of HTTP/2: %s",
			    hf_str_or(transfer->fault, name));
}

static int on_stream_closed(nghttp2_session *session, int32_t stream_id, uint32_t code, void *arg)
{
	struct hf_transfer *transfer = transfer_of(session, stream_id);
	struct hf_link *link = arg;
	bool seen, retry_now;

	if (!transfer)
		return 0;
	/* The server has not processed the request: REFUSED_STREAM, or a GOAWAY with a lower last
	 * stream id. */
	seen = transfer->phase >= HF_EXCHANGE_SENT && code != NGHTTP2_REFUSED_STREAM;
	retry_now = !seen || transfer->reset || link->going_away;
	if (code == NGHTTP2_HTTP_1_1_REQUIRED)
		transfer->client->link_off_until = HF_TIME_NEVER;
	HF_AUTOFREE char *what = describe_close(link, transfer, code);
	transfer->stream_id = -1;
	hf_transfer_break_off(transfer, seen, retry_now, what);
	return 0;
}

/* --- a request as header fields --- */

struct fields {
	nghttp2_nv nv[FIELDS_MAX];
	size_t len;
	struct hf_strbuf names; /* lower case; the buffer never moves, because nv points into it */
};

static void add_field(struct fields *fields, const char *name, size_t name_len, const char *value)
{
	hf_assert(fields->len < FIELDS_MAX);
	fields->nv[fields->len++] = (nghttp2_nv){
		.name = (uint8_t *)(uintptr_t)name,
		.namelen = name_len,
		.value = (uint8_t *)(uintptr_t)value,
		.valuelen = strlen(value),
	};
}

static void add_text_field(struct fields *fields, const char *name, const char *value)
{
	add_field(fields, name, strlen(name), value);
}

/* Adds a header line, "Name: value". */
static void add_line(struct fields *fields, const char *line)
{
	const char *colon = strchr(line, ':'), *value = colon ? colon + 1 : NULL;
	char *name;

	if (!colon || colon == line || fields->names.len + (size_t)(colon - line) > NAME_BYTES_MAX)
		return;
	name = fields->names.data + fields->names.len;
	hf_strbuf_add(&fields->names, line, (size_t)(colon - line));
	for (char *c = name; c < name + (colon - line); c++)
		*c = hf_ascii_to_lower(*c);
	while (*value == ' ' || *value == '\t')
		value++;
	add_field(fields, name, (size_t)(colon - line), value);
}

/* A blank or control character would change the meaning of the request. */
static bool is_sane_target(const char *target)
{
	for (const unsigned char *c = (const unsigned char *)target; *c; c++) {
		if (*c <= ' ' || *c == 0x7f)
			return false;
	}
	return true;
}

static bool has_body(const struct hf_http_request *request)
{
	return request->body_len > 0 || hf_streq(request->method, "POST") ||
	       hf_streq(request->method, "PUT") || hf_streq(request->method, "PATCH");
}

bool hf_link_h2_submit(struct hf_link *link, struct hf_transfer *transfer)
{
	const struct hf_http_client *client = transfer->client;
	const struct hf_http_request *request = &transfer->request;
	const nghttp2_data_provider body = {.read_callback = on_body_wanted};
	struct fields fields = {.names = HF_STRBUF_INIT(NAME_BYTES_MAX)};
	char length[24];

	if (!is_sane_target(request->target)) {
		hf_error_set(&transfer->err, HF_E_BAD_REQUEST,
			     "the request's target has blanks or control characters");
		return false;
	}
	HF_AUTOFREE char *path = hf_xasprintf("%s%s", client->target.path, request->target);
	(void)hf_strbuf_reserve(&fields.names, NAME_BYTES_MAX);
	add_text_field(&fields, ":method", request->method);
	add_text_field(&fields, ":scheme", client->target.scheme);
	add_text_field(&fields, ":authority", client->target.authority);
	add_text_field(&fields, ":path", path);
	add_text_field(&fields, "user-agent", "holdfast/" HF_VERSION);
	if (client->bearer_line)
		add_line(&fields, client->bearer_line);
	if (request->body_len > 0)
		add_text_field(&fields, "content-type", request->content_type);
	if (has_body(request)) {
		snprintf(length, sizeof(length), "%zu", request->body_len);
		add_text_field(&fields, "content-length", length);
	}
	for (char **line = transfer->headers; *line; line++)
		add_line(&fields, *line);
	int32_t id = nghttp2_submit_request(link->session, NULL, fields.nv, fields.len,
					    request->body_len > 0 ? &body : NULL, transfer);
	hf_strbuf_release(&fields.names);
	if (id < 0) {
		hf_error_set(&transfer->err, HF_E_UNAVAILABLE, "%s", nghttp2_strerror(id));
		return false;
	}
	transfer->stream_id = id;
	return true;
}

void hf_link_h2_take_back(struct hf_link *link, struct hf_transfer *transfer)
{
	(void)nghttp2_session_set_stream_user_data(link->session, transfer->stream_id, NULL);
	(void)nghttp2_submit_rst_stream(link->session, NGHTTP2_FLAG_NONE, transfer->stream_id,
					NGHTTP2_CANCEL);
	transfer->stream_id = 0;
}

bool hf_link_h2_is_full(const struct hf_link *link)
{
	uint32_t most = UINT32_MAX;

	if (link->state == HF_LINK_OPEN)
		most = nghttp2_session_get_remote_settings(link->session,
							   NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	/* A server that allows 0 streams does so only for a moment, and would allow none on a new
	 * connection either. */
	return most > 0 && link->transfers >= most;
}

/* --- the session --- */

static nghttp2_session_callbacks *make_callbacks(void)
{
	nghttp2_session_callbacks *callbacks;
	int rc = nghttp2_session_callbacks_new(&callbacks);

	hf_assert(rc == 0);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_bytes);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_bad_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
	return callbacks;
}

void hf_link_h2_start(struct hf_link *link)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HF_TRANSFER_WINDOW_BYTES},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HF_HTTP_RESPONSE_HEAD_BYTES_MAX},
	};
	nghttp2_session_callbacks *callbacks = make_callbacks();
	nghttp2_option *options;
	int rc = nghttp2_option_new(&options);

	hf_assert(rc == 0);
	/* Windows open in on_bytes and, for streams, in reopen_window of link.c. */
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_peer_max_concurrent_streams(options, STREAMS_MAX);
	rc = nghttp2_session_client_new2(&link->session, callbacks, link, options);
	nghttp2_option_del(options);
	nghttp2_session_callbacks_del(callbacks);
	hf_assert(rc == 0); /* fails only without memory */
	rc = nghttp2_submit_settings(link->session, NGHTTP2_FLAG_NONE, settings,
				     sizeof(settings) / sizeof(settings[0]));
	hf_assert(rc == 0);
	rc = nghttp2_session_set_local_window_size(link->session, NGHTTP2_FLAG_NONE, 0,
						   CONNECTION_WINDOW_BYTES);
	hf_assert(rc == 0);
}

void hf_link_h2_stop(struct hf_link *link)
{
	nghttp2_session_del(link->session);
	link->session = NULL;
}

int hf_link_h2_receive(struct hf_link *link, const void *bytes, size_t len)
{
	ssize_t rc = nghttp2_session_mem_recv(link->session, bytes, len);

	if (rc < 0)
		return hf_error_set(&link->err, HF_E_UNAVAILABLE, "%s", nghttp2_strerror((int)rc));
	return 0;
}

int hf_link_h2_make_frames(struct hf_link *link)
{
	while (link->out.len + link->frames.len < HF_LINK_OUT_BYTES_MAX) {
		const uint8_t *bytes;
		ssize_t len = nghttp2_session_mem_send(link->session, &bytes);

		if (len < 0)
			return hf_error_set(&link->err, HF_E_UNAVAILABLE, "%s",
					    nghttp2_strerror((int)len));
		if (len == 0)
			break;
		hf_strbuf_add(&link->frames, bytes, (size_t)len);
	}
	hf_assert(!link->frames.full);
	return 0;
}
