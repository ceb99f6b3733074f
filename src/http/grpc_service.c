/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Unary gRPC calls from clients: HTTP/2 frames by nghttp2, one message in and one out. */
#include "http/grpc_service.h"

#include "base/mem.h"
#include "base/str.h"
#include "http/grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES ((size_t)32 << 10)
/* Frames that wait for the kernel; beyond it nothing more is read. */
#define OUT_BYTES_MAX ((size_t)256 << 10)
/* Most connections that are taken before the loop has its turn. */
#define ACCEPTED_AT_ONCE 16
#define STATUS_TEXT_MAX 8
#define ERROR_TEXT_MAX 512

struct call {
	struct call *next; /* of the connection */
	struct peer *peer;
	int32_t id;
	char method[HF_GRPC_SERVICE_METHOD_MAX];
	bool refused; /* no gRPC: another content type, or a limit */
	size_t head_bytes;
	struct hf_strbuf body, answer;
	size_t sent; /* of the answer */
	char status[STATUS_TEXT_MAX], error[ERROR_TEXT_MAX];
};

struct peer {
	struct hf_grpc_service *service;
	int fd;
	pid_t pid;
	struct hf_io *io;
	struct hf_task *close;
	nghttp2_session *session;
	struct hf_strbuf out;
	struct call *calls;
	hf_time used_at;
};

struct hf_grpc_service {
	struct hf_loop *loop;
	hf_grpc_answer_fn serve;
	void *arg;
	struct peer *peers[HF_GRPC_SERVICE_CONNECTIONS_MAX];
	size_t len;
};

/* ---- calls ---------------------------------------------------------------------------------------- */

static void free_call(struct call *call)
{
	struct call **at = &call->peer->calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	hf_strbuf_release(&call->body);
	hf_strbuf_release(&call->answer);
	free(call);
}

static nghttp2_nv make_field(const char *name, const char *value)
{
	return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
			    .value = (uint8_t *)(uintptr_t)value,
			    .namelen = strlen(name),
			    .valuelen = strlen(value)};
}

/* The status follows the message. */
static void submit_trailer(nghttp2_session *session, const struct call *call)
{
	const nghttp2_nv fields[] = {make_field("grpc-status", call->status),
				     make_field("grpc-message", call->error)};

	(void)nghttp2_submit_trailer(session, call->id, fields, call->error[0] != '\0' ? 2 : 1);
}

static ssize_t on_answer_wanted(nghttp2_session *session, HF_UNUSED int32_t id, uint8_t *buffer,
				size_t size, uint32_t *flags, nghttp2_data_source *source,
				HF_UNUSED void *arg)
{
	struct call *call = source->ptr;
	size_t left = call->answer.len - call->sent, len = left < size ? left : size;

	memcpy(buffer, call->answer.data + call->sent, len);
	call->sent += len;
	if (len == left) {
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		submit_trailer(session, call);
	}
	return (ssize_t)len;
}

/* grpc-message: printable ASCII without '%'. */
static void set_status(struct call *call, int status, const char *error)
{
	size_t len = 0;

	(void)snprintf(call->status, sizeof(call->status), "%d", status);
	for (const char *at = error; *at != '\0' && len + 1 < sizeof(call->error); at++)
		call->error[len++] = *at >= ' ' && *at <= '~' && *at != '%' ? *at : '?';
	call->error[len] = '\0';
}

static void add_prefix(struct hf_strbuf *sb, size_t len)
{
	const unsigned char prefix[HF_GRPC_PREFIX_BYTES] = {
		0, (unsigned char)(len >> 24), (unsigned char)(len >> 16),
		(unsigned char)(len >> 8), (unsigned char)len};

	hf_strbuf_add(sb, prefix, sizeof(prefix));
}

static int serve_call(struct call *call, struct hf_strbuf *ret_message, struct hf_error *err)
{
	const struct hf_grpc_service *service = call->peer->service;
	struct hf_grpc_asked asked = {.method = call->method, .pid = call->peer->pid};

	if (call->refused || call->body.full) {
		(void)hf_error_set(err, HF_E_BAD_REQUEST, "the request is not gRPC, or too large");
		return HF_GRPC_INVALID_ARGUMENT;
	}
	if (hf_grpc_unframe(call->body.data, call->body.len, &asked.message, &asked.message_len,
			    err) != 0)
		return HF_GRPC_INVALID_ARGUMENT;
	return service->serve(service->arg, &asked, ret_message, err);
}

static void run_call(struct call *call)
{
	HF_AUTO_STRBUF message = HF_STRBUF_INIT(HF_GRPC_SERVICE_MESSAGE_BYTES_MAX);
	struct hf_error err = {0};
	int status = serve_call(call, &message, &err);

	if (status == HF_GRPC_OK && message.full) {
		(void)hf_error_set(&err, HF_E_TOO_LARGE, "the response is too large");
		status = HF_GRPC_INTERNAL;
	}
	set_status(call, status, status == HF_GRPC_OK ? "" : err.text);
	if (status != HF_GRPC_OK)
		return;
	add_prefix(&call->answer, message.len);
	hf_strbuf_add(&call->answer, message.data, message.len);
}

static void answer_call(nghttp2_session *session, struct call *call)
{
	const nghttp2_data_provider body = {.source.ptr = call, .read_callback = on_answer_wanted};
	nghttp2_nv fields[4] = {make_field(":status", "200"),
				make_field("content-type", "application/grpc")};
	size_t len = 2;

	run_call(call);
	/* Without a message the status stands in the head, and there is no body. */
	if (call->answer.len == 0) {
		fields[len++] = make_field("grpc-status", call->status);
		if (call->error[0] != '\0')
			fields[len++] = make_field("grpc-message", call->error);
	}
	(void)nghttp2_submit_response(session, call->id, fields, len,
				      call->answer.len > 0 ? &body : NULL);
}

/* ---- callbacks of nghttp2: they must not receive, send or free the session ------------------------- */

static struct call *call_of(nghttp2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct peer *peer = arg;
	struct call *call;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	call = hf_xcalloc(1, sizeof(*call));
	call->peer = peer;
	call->id = frame->hd.stream_id;
	call->refused = true; /* until its content type has come */
	hf_strbuf_init(&call->body, HF_GRPC_SERVICE_MESSAGE_BYTES_MAX + HF_GRPC_PREFIX_BYTES);
	hf_strbuf_init(&call->answer, HF_GRPC_SERVICE_MESSAGE_BYTES_MAX + HF_GRPC_PREFIX_BYTES);
	call->next = peer->calls;
	peer->calls = call;
	return nghttp2_session_set_stream_user_data(session, call->id, call);
}

/* nghttp2 has checked the fields; names and values end with a NUL. */
static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		    size_t name_len, const uint8_t *value, size_t value_len,
		    HF_UNUSED uint8_t flags, HF_UNUSED void *arg)
{
	struct call *call = call_of(session, frame->hd.stream_id);

	if (call == NULL)
		return 0;
	call->head_bytes += name_len + value_len;
	if (call->head_bytes > HF_GRPC_SERVICE_HEAD_BYTES_MAX)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (hf_streq((const char *)name, ":path"))
		(void)snprintf(call->method, sizeof(call->method), "%s", (const char *)value);
	else if (hf_streq((const char *)name, "content-type"))
		call->refused = !hf_str_has_prefix((const char *)value, "application/grpc");
	return 0;
}

static int on_bytes(nghttp2_session *session, HF_UNUSED uint8_t flags, int32_t id,
		    const uint8_t *bytes, size_t len, HF_UNUSED void *arg)
{
	struct call *call = call_of(session, id);

	if (call != NULL)
		hf_strbuf_add(&call->body, bytes, len);
	return call != NULL && call->body.full ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, HF_UNUSED void *arg)
{
	struct call *call = call_of(session, frame->hd.stream_id);

	if (call != NULL && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
		answer_call(session, call);
	return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t id, HF_UNUSED uint32_t code,
			    HF_UNUSED void *arg)
{
	struct call *call = call_of(session, id);

	if (call != NULL)
		free_call(call);
	return 0;
}

/* ---- connections ----------------------------------------------------------------------------------- */

static void drop_peer(struct peer *peer)
{
	struct hf_grpc_service *service = peer->service;

	for (size_t i = 0; i < service->len; i++)
		if (service->peers[i] == peer)
			service->peers[i] = service->peers[--service->len];
	nghttp2_session_del(peer->session);
	while (peer->calls != NULL)
		free_call(peer->calls);
	hf_io_destroy(peer->io);
	hf_task_destroy(peer->close);
	(void)close(peer->fd);
	hf_strbuf_release(&peer->out);
	free(peer);
}

static void on_close(void *arg)
{
	drop_peer(arg);
}

/* False: the connection is over. */
static bool write_out(struct peer *peer)
{
	while (peer->out.len > 0) {
		ssize_t n =
			send(peer->fd, peer->out.data, peer->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		hf_strbuf_consume(&peer->out, (size_t)n);
	}
	return true;
}

static bool send_frames(struct peer *peer)
{
	const uint8_t *bytes;
	ssize_t n = 0;

	while (peer->out.len < OUT_BYTES_MAX &&
	       (n = nghttp2_session_mem_send(peer->session, &bytes)) > 0)
		hf_strbuf_add(&peer->out, bytes, (size_t)n);
	if (n < 0 || peer->out.full || !write_out(peer))
		return false;
	/* A peer that does not read is not read either. */
	hf_io_want(peer->io, peer->out.len > 0 ? (unsigned)HF_IO_WRITE : (unsigned)HF_IO_READ);
	return peer->out.len > 0 || nghttp2_session_want_read(peer->session) != 0 ||
	       nghttp2_session_want_write(peer->session) != 0;
}

static bool read_frames(struct peer *peer)
{
	uint8_t bytes[READ_BYTES];
	ssize_t n = recv(peer->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	return n > 0 && nghttp2_session_mem_recv(peer->session, bytes, (size_t)n) == n;
}

static void on_io(void *arg, unsigned events)
{
	struct peer *peer = arg;
	bool goes_on = true;

	peer->used_at = hf_loop_mono(peer->service->loop);
	if ((events & HF_IO_READ) != 0)
		goes_on = read_frames(peer);
	/* Behind a broken frame the reason is sent. */
	if (!send_frames(peer) || !goes_on || (events & HF_IO_HANGUP) != 0)
		hf_task_post(peer->close);
}

static int create_session(struct peer *peer)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HF_GRPC_SERVICE_CALLS_MAX},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HF_GRPC_SERVICE_HEAD_BYTES_MAX},
	};
	nghttp2_session_callbacks *callbacks;
	int rc;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		hf_out_of_memory(0);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_bytes);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
	rc = nghttp2_session_server_new(&peer->session, callbacks, peer);
	nghttp2_session_callbacks_del(callbacks);
	if (rc != 0)
		hf_out_of_memory(0);
	return nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, settings,
				       HF_ARRAY_LEN(settings));
}

static void drop_quietest(struct hf_grpc_service *service)
{
	struct peer *quietest = service->peers[0];

	for (size_t i = 1; i < service->len; i++)
		if (service->peers[i]->used_at < quietest->used_at)
			quietest = service->peers[i];
	drop_peer(quietest);
}

static void take_connection(struct hf_grpc_service *service, int fd)
{
	struct peer *peer = hf_xcalloc(1, sizeof(*peer));
	struct ucred ucred = {.pid = 0};
	socklen_t len = sizeof(ucred);
	struct hf_error err;

	if (service->len == HF_GRPC_SERVICE_CONNECTIONS_MAX)
		drop_quietest(service);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &len) == 0)
		peer->pid = ucred.pid;
	peer->service = service;
	peer->fd = fd;
	peer->used_at = hf_loop_mono(service->loop);
	peer->close = hf_task_create(service->loop, on_close, peer);
	hf_strbuf_init(&peer->out, 2 * OUT_BYTES_MAX);
	service->peers[service->len++] = peer;
	if (create_session(peer) != 0 ||
	    hf_io_create(service->loop, fd, on_io, peer, &peer->io, &err) != 0) {
		drop_peer(peer);
		return;
	}
	if (!send_frames(peer))
		hf_task_post(peer->close);
}

void hf_grpc_service_accept(struct hf_grpc_service *service, int listener)
{
	for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		take_connection(service, fd);
	}
}

/* ---- life ------------------------------------------------------------------------------------------ */

struct hf_grpc_service *hf_grpc_service_create(struct hf_loop *loop, hf_grpc_answer_fn serve,
					       void *arg)
{
	struct hf_grpc_service *service = hf_xcalloc(1, sizeof(*service));

	service->loop = loop;
	service->serve = serve;
	service->arg = arg;
	return service;
}

struct hf_grpc_service *hf_grpc_service_destroy(struct hf_grpc_service *service)
{
	if (service == NULL)
		return NULL;
	while (service->len > 0)
		drop_peer(service->peers[service->len - 1]);
	free(service);
	return NULL;
}
