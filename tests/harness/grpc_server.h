/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_GRPC_SERVER_H
#define HF_TESTS_HARNESS_GRPC_SERVER_H

/*
 * A gRPC server for tests, on a unix socket and on the loop of the client under test. It knows
 * just enough HTTP/2 (RFC 9113) for calls with one answer, and sends the answers that the test
 * gives. It does not decompress the heads of requests: a test distinguishes calls by the lengths
 * of their heads and by their messages.
 */

#include "harness/real_loop.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HF_GRPC_SERVER_CONNECTIONS_MAX 64
#define HF_GRPC_SERVER_FRAME_MAX 16384

struct hf_grpc_server;

/* An answer of the server. Fields that are NULL or 0 are left out. */
struct hf_grpc_answer {
	const char *content_type; /* NULL: "application/grpc" */
	const void *body;         /* the body, gRPC's prefix of five bytes included */
	size_t body_len;
	const char *status, *message; /* grpc-status, grpc-message; behind the body … */
	bool trailers_only;           /* … or in the head */
	bool silent;                  /* nothing at all */
	bool hang_up;
};

/* message: the call's, without its prefix. */
typedef void (*hf_grpc_serve_fn)(void *arg, size_t head_len, const char *message, size_t len,
				 struct hf_grpc_answer *ret_answer);

struct hf_grpc_peer {
	struct hf_grpc_server *server;
	int fd; /* -1: closed */
	struct hf_io *io;
	struct hf_strbuf in, message;
	bool greeted;
	size_t head_len;
};

struct hf_grpc_server {
	struct hf_loop *loop;
	hf_grpc_serve_fn serve;
	void *arg;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd;
	struct hf_io *io;
	struct hf_grpc_peer peers[HF_GRPC_SERVER_CONNECTIONS_MAX];
	unsigned accepted, calls;
};

static inline void hf_grpc_server_frame(struct hf_grpc_peer *peer, unsigned type, unsigned flags,
					unsigned stream, const struct hf_strbuf *payload)
{
	size_t len = payload ? payload->len : 0;
	unsigned char head[9] = {
		(unsigned char)(len >> 16),    (unsigned char)(len >> 8),    (unsigned char)len,
		(unsigned char)type,           (unsigned char)flags,         0,
		(unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream,
	};

	/* The client may have closed the connection: then ignore the error. */
	if (send(peer->fd, head, sizeof(head), MSG_NOSIGNAL) < 0)
		return;
	if (len > 0)
		(void)!send(peer->fd, payload->data, len, MSG_NOSIGNAL);
}

/* Adds a header field in HPACK's form "literal without indexing, new name". The value may have up
 * to 126 bytes. */
static inline void hf_grpc_server_field(struct hf_strbuf *sb, const char *name, const char *value)
{
	if (!value)
		return;
	assert_true(strlen(value) < 127);
	hf_strbuf_addch(sb, 0);
	hf_strbuf_addch(sb, (char)strlen(name));
	hf_strbuf_addstr(sb, name);
	hf_strbuf_addch(sb, (char)strlen(value));
	hf_strbuf_addstr(sb, value);
}

static inline void hf_grpc_server_answer(struct hf_grpc_peer *peer, unsigned stream,
					 const struct hf_grpc_answer *answer)
{
	HF_AUTO_STRBUF head = HF_STRBUF_INIT(1024);
	HF_AUTO_STRBUF tail = HF_STRBUF_INIT(1024);
	bool ends = answer->trailers_only;

	hf_strbuf_addch(&head, (char)0x88); /* ":status: 200" of the static table */
	hf_grpc_server_field(&head, "content-type",
			     answer->content_type ? answer->content_type : "application/grpc");
	hf_grpc_server_field(ends ? &head : &tail, "grpc-status", answer->status);
	hf_grpc_server_field(ends ? &head : &tail, "grpc-message", answer->message);
	hf_grpc_server_frame(peer, 1, ends ? 5 : 4, stream, &head);
	for (size_t at = 0; !ends && at < answer->body_len; at += HF_GRPC_SERVER_FRAME_MAX) {
		HF_AUTO_STRBUF data = HF_STRBUF_INIT(HF_GRPC_SERVER_FRAME_MAX);
		size_t left = answer->body_len - at;

		hf_strbuf_add(&data, (const char *)answer->body + at,
			      left < HF_GRPC_SERVER_FRAME_MAX ? left : HF_GRPC_SERVER_FRAME_MAX);
		hf_grpc_server_frame(peer, 0, 0, stream, &data);
	}
	/* End the stream: with the trailers, or with an empty frame if there are no trailers. */
	if (!ends && tail.len > 0)
		hf_grpc_server_frame(peer, 1, 5, stream, &tail);
	else if (!ends)
		hf_grpc_server_frame(peer, 0, 1, stream, NULL);
}

static inline void hf_grpc_server_on_frame(struct hf_grpc_peer *peer, const unsigned char *frame,
					   size_t len)
{
	unsigned stream = (unsigned)frame[6] << 16 | (unsigned)frame[7] << 8 | frame[8];
	struct hf_grpc_server *server = peer->server;
	struct hf_grpc_answer answer = {0};

	if (frame[3] == 4 && !(frame[4] & 1)) {
		hf_grpc_server_frame(peer, 4, 0, 0, NULL);
		hf_grpc_server_frame(peer, 4, 1, 0, NULL);
	} else if (frame[3] == 1) {
		peer->head_len = len;
	} else if (frame[3] == 0) {
		hf_strbuf_add(&peer->message, frame + 9, len);
	}
	if ((frame[3] != 0 && frame[3] != 1) || !(frame[4] & 1))
		return;
	assert_true(peer->message.len >= 5);
	server->calls++;
	server->serve(server->arg, peer->head_len, peer->message.data + 5, peer->message.len - 5,
		      &answer);
	if (answer.hang_up)
		(void)shutdown(peer->fd, SHUT_RDWR);
	else if (!answer.silent)
		hf_grpc_server_answer(peer, stream, &answer);
}

static inline void hf_grpc_server_close(struct hf_grpc_peer *peer)
{
	if (peer->fd < 0)
		return;
	hf_io_destroy(peer->io);
	close(peer->fd);
	hf_strbuf_release(&peer->in);
	hf_strbuf_release(&peer->message);
	peer->fd = -1;
}

static inline void hf_grpc_server_on_io(void *arg, HF_UNUSED unsigned events)
{
	struct hf_grpc_peer *peer = arg;
	char bytes[4096];
	ssize_t n = recv(peer->fd, bytes, sizeof(bytes), 0);

	if (n <= 0) {
		hf_grpc_server_close(peer);
		return;
	}
	hf_strbuf_add(&peer->in, bytes, (size_t)n);
	if (!peer->greeted && peer->in.len >= 24) {
		assert_memory_equal(peer->in.data, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
		hf_strbuf_consume(&peer->in, 24);
		peer->greeted = true;
	}
	while (peer->greeted && peer->in.len >= 9) {
		const unsigned char *frame = (const unsigned char *)peer->in.data;
		size_t len = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];

		if (peer->in.len < 9 + len)
			return;
		hf_grpc_server_on_frame(peer, frame, len);
		hf_strbuf_consume(&peer->in, 9 + len);
	}
}

static inline void hf_grpc_server_on_accept(void *arg, HF_UNUSED unsigned events)
{
	struct hf_grpc_server *server = arg;
	struct hf_grpc_peer *peer;
	struct hf_error err = {0};

	assert_true(server->accepted < HF_GRPC_SERVER_CONNECTIONS_MAX);
	peer = &server->peers[server->accepted];
	memset(peer, 0, sizeof(*peer));
	peer->fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
	if (peer->fd < 0)
		return;
	server->accepted++;
	peer->server = server;
	hf_strbuf_init(&peer->in, 1 << 20);
	hf_strbuf_init(&peer->message, 1 << 20);
	assert_ok(hf_io_create(server->loop, peer->fd, hf_grpc_server_on_io, peer, &peer->io, &err),
		  &err);
	hf_io_want(peer->io, HF_IO_READ);
}

/* Starts the server on a path that does not exist. The caller sets serve and arg before. */
static inline void hf_grpc_server_start(struct hf_grpc_server *server, struct hf_loop *loop,
					const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct hf_error err = {0};

	server->loop = loop;
	snprintf(server->path, sizeof(server->path), "%s", path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(server->fd >= 0);
	assert_int_equal(bind(server->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->fd, 16), 0);
	assert_ok(
		hf_io_create(loop, server->fd, hf_grpc_server_on_accept, server, &server->io, &err),
		&err);
	hf_io_want(server->io, HF_IO_READ);
}

static inline void hf_grpc_server_stop(struct hf_grpc_server *server)
{
	if (!server->io)
		return;
	server->io = hf_io_destroy(server->io);
	close(server->fd);
	unlink(server->path);
	for (unsigned i = 0; i < server->accepted; i++)
		hf_grpc_server_close(&server->peers[i]);
	server->accepted = 0;
}

#endif
