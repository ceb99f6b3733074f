/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_SCRIPTED_SERVER_H
#define HF_TESTS_HARNESS_SCRIPTED_SERVER_H

/* An HTTP/1.1 server for tests of a client: it sends exactly the bytes of the test, and closes
 * where the test wants it, on the loop of the client. */

#include "harness/listen.h"
#include "harness/real_loop.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HF_SCRIPTED_BYTES_MAX ((size_t)96 << 20)

struct hf_scripted;

struct hf_scripted_peer {
	struct hf_scripted *server;
	struct hf_scripted_peer *next;
	int fd;
	struct hf_io *io;
	struct hf_strbuf in, out;
	bool close_when_sent;
};

/* Called for each request. head: the text from the request line to the blank line. */
typedef void (*hf_scripted_fn)(void *arg, struct hf_scripted_peer *peer, const char *head,
			       const char *body);

struct hf_scripted {
	struct hf_loop *loop;
	hf_scripted_fn serve;
	void *arg;
	int fd;
	struct hf_io *io;
	uint16_t port;
	struct hf_scripted_peer *peers;
	unsigned accepted, requests;
};

static inline void hf_scripted_want(struct hf_scripted_peer *peer)
{
	hf_io_want(peer->io, HF_IO_READ | (peer->out.len > 0 ? (unsigned)HF_IO_WRITE : 0u));
}

/* reset: by RST, else in order. */
static inline void hf_scripted_close(struct hf_scripted_peer *peer, bool reset)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};
	struct hf_scripted_peer **at = &peer->server->peers;

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	hf_io_destroy(peer->io);
	if (reset)
		assert_int_equal(setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(peer->fd);
	hf_strbuf_release(&peer->in);
	hf_strbuf_release(&peer->out);
	free(peer);
}

static inline void hf_scripted_say(struct hf_scripted_peer *peer, const char *bytes, size_t len)
{
	hf_strbuf_add(&peer->out, bytes, len);
	assert_false(peer->out.full);
	hf_scripted_want(peer);
}

/* Sends a response. status_and_headers: for instance "200 OK", or "429 Busy\r\nRetry-After: 1". */
static inline void hf_scripted_answer(struct hf_scripted_peer *peer, const char *status_and_headers,
				      const char *body)
{
	char *head = hf_xasprintf("HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status_and_headers,
				  strlen(body));

	hf_scripted_say(peer, head, strlen(head));
	hf_scripted_say(peer, body, strlen(body));
	free(head);
}

/* Passes one complete request to the test. False: no request is complete, or the peer has been
 * closed. */
static inline bool hf_scripted_take(struct hf_scripted_peer *peer)
{
	struct hf_scripted *server = peer->server;
	const char *end = strstr(peer->in.data, "\r\n\r\n");
	const char *length = strcasestr(peer->in.data, "\r\ncontent-length:");
	size_t head_len, body_len = 0;

	if (!end)
		return false;
	head_len = (size_t)(end - peer->in.data) + 4;
	if (length && length < end)
		body_len = (size_t)strtoul(length + 17, NULL, 10);
	if (peer->in.len < head_len + body_len)
		return false;
	char *head = hf_xstrndup(peer->in.data, head_len);
	char *body = hf_xstrndup(peer->in.data + head_len, body_len);
	hf_strbuf_consume(&peer->in, head_len + body_len);
	server->requests++;
	server->serve(server->arg, peer, head, body);
	free(head);
	free(body);
	/* The test may have closed this peer: return true only if the peer is still in the
	 * list. */
	for (struct hf_scripted_peer *p = server->peers; p; p = p->next)
		if (p == peer)
			return true;
	return false;
}

static inline void hf_scripted_on_io(void *arg, unsigned events)
{
	struct hf_scripted_peer *peer = (struct hf_scripted_peer *)arg;
	struct hf_scripted *server = peer->server;
	char bytes[65536];
	ssize_t n;

	if ((events & HF_IO_WRITE) && peer->out.len > 0) {
		n = send(peer->fd, peer->out.data, peer->out.len, MSG_NOSIGNAL);
		if (n > 0)
			hf_strbuf_consume(&peer->out, (size_t)n);
		if (peer->out.len == 0 && peer->close_when_sent) {
			hf_scripted_close(peer, false);
			return;
		}
	}
	if (events & (HF_IO_READ | HF_IO_HANGUP)) {
		n = recv(peer->fd, bytes, sizeof(bytes), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			hf_scripted_close(peer, false);
			return;
		}
		if (n > 0)
			hf_strbuf_add(&peer->in, bytes, (size_t)n);
		while (hf_scripted_take(peer))
			;
		for (struct hf_scripted_peer *p = server->peers; p; p = p->next)
			if (p == peer)
				hf_scripted_want(peer);
		return;
	}
	hf_scripted_want(peer);
}

static inline void hf_scripted_on_accept(void *arg, HF_UNUSED unsigned events)
{
	struct hf_scripted *server = (struct hf_scripted *)arg;
	struct hf_error err = {0};
	int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	struct hf_scripted_peer *peer =
		(struct hf_scripted_peer *)hf_xcalloc(1, sizeof(struct hf_scripted_peer));
	peer->server = server;
	peer->fd = fd;
	hf_strbuf_init(&peer->in, HF_SCRIPTED_BYTES_MAX);
	hf_strbuf_init(&peer->out, HF_SCRIPTED_BYTES_MAX);
	peer->next = server->peers;
	server->peers = peer;
	server->accepted++;
	assert_ok(hf_io_create(server->loop, fd, hf_scripted_on_io, peer, &peer->io, &err), &err);
	hf_scripted_want(peer);
}

static inline void hf_scripted_open(struct hf_scripted *server, struct hf_loop *loop,
				    hf_scripted_fn serve, void *arg)
{
	struct hf_error err = {0};

	memset(server, 0, sizeof(*server));
	server->loop = loop;
	server->serve = serve;
	server->arg = arg;
	server->fd = hf_test_listen(&server->port);
	assert_ok(hf_io_create(loop, server->fd, hf_scripted_on_accept, server, &server->io, &err),
		  &err);
	hf_io_want(server->io, HF_IO_READ);
}

/* Stops listening and closes all connections. The port stays in server->port. */
static inline void hf_scripted_shut(struct hf_scripted *server)
{
	while (server->peers)
		hf_scripted_close(server->peers, false);
	server->io = hf_io_destroy(server->io);
	if (server->fd >= 0)
		close(server->fd);
	server->fd = -1;
}

#endif
