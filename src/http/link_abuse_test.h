/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_LINK_ABUSE_TEST_H
#define HF_HTTP_LINK_ABUSE_TEST_H

/* An HTTP/2 server over TLS that sends any frames a test wants, valid or not. It runs on the loop
 * of the client under test. It reacts to no frame except SETTINGS, which it acknowledges. */

#include "harness/real_loop.h"

#include "base/mem.h"
#include "http/link_tls_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define HF_RAW_BYTES_MAX ((size_t)16 << 20)
#define HF_RAW_HEAD 9 /* bytes of the header of an HTTP/2 frame */

enum {
	HF_RAW_DATA,
	HF_RAW_HEADERS,
	HF_RAW_PRIORITY,
	HF_RAW_RST,
	HF_RAW_SETTINGS,
	HF_RAW_PUSH,
	HF_RAW_PING,
	HF_RAW_GOAWAY,
	HF_RAW_WINDOW,
	HF_RAW_CONTINUATION
};
enum { HF_RAW_END_STREAM = 1, HF_RAW_ACK = 1, HF_RAW_END_HEADERS = 4 };

struct hf_raw_h2;

struct hf_raw_peer {
	struct hf_raw_h2 *server;
	struct hf_raw_peer *next;
	int fd; /* -1: the connection is closed */
	struct hf_io *io;
	gnutls_session_t tls;
	bool handshake_done, prefaced;
	struct hf_strbuf in, out;
	/* counts of what the client sent */
	unsigned heads, resets, acks;
	uint32_t goaway;   /* error code + 1 of the client's GOAWAY; 0: none came */
	size_t data_bytes; /* bytes of DATA frames, which carry request bodies */
};

struct hf_raw_h2 {
	struct hf_loop *loop;
	/* called after the TLS handshake; may be NULL */
	void (*on_open)(struct hf_raw_peer *peer);
	/* called for each request's HEADERS */
	void (*on_head)(struct hf_raw_peer *peer, uint32_t id);
	void *arg;
	const char *protocol; /* protocol offered by ALPN; NULL: "h2"; "": no ALPN */
	bool silent;          /* accepts connections and sends nothing */
	/* if set, a child process serves each connection */
	void (*child)(int fd, gnutls_certificate_credentials_t credentials);
	pid_t children[4];
	unsigned children_len;
	int fd;
	struct hf_io *io;
	uint16_t port;
	gnutls_certificate_credentials_t credentials;
	struct hf_raw_peer *peers; /* list of connections, newest first */
	unsigned accepted;
};

static inline void hf_raw_close(struct hf_raw_peer *peer)
{
	if (peer->fd < 0)
		return;
	peer->io = hf_io_destroy(peer->io);
	close(peer->fd);
	peer->fd = -1;
}

static inline void hf_raw_flush(struct hf_raw_peer *peer)
{
	if (peer->fd >= 0 && peer->handshake_done && !hf_test_flush(peer->tls, &peer->out))
		hf_raw_close(peer);
	if (peer->fd >= 0)
		hf_io_want(peer->io, HF_IO_READ | (peer->out.len > 0 ? (unsigned)HF_IO_WRITE : 0u));
}

static inline void hf_raw_say(struct hf_raw_peer *peer, const void *bytes, size_t len)
{
	hf_strbuf_add(&peer->out, bytes, len);
	assert_false(peer->out.full);
	hf_raw_flush(peer);
}

static inline void hf_raw_frame_head(char head[HF_RAW_HEAD], unsigned type, unsigned flags,
				     uint32_t id, size_t len)
{
	const unsigned bytes[HF_RAW_HEAD] = {(unsigned)len >> 16,
					     (unsigned)len >> 8,
					     (unsigned)len,
					     type,
					     flags,
					     id >> 24,
					     id >> 16,
					     id >> 8,
					     id};

	for (int i = 0; i < HF_RAW_HEAD; i++)
		head[i] = (char)(bytes[i] & 0xff);
}

static inline void hf_raw_frame(struct hf_raw_peer *peer, unsigned type, unsigned flags,
				uint32_t id, const void *payload, size_t len)
{
	char head[HF_RAW_HEAD];

	hf_raw_frame_head(head, type, flags, id, len);
	hf_strbuf_add(&peer->out, head, sizeof(head));
	hf_raw_say(peer, payload, len);
}

/* Appends a literal header field to the block; name and value up to 16 KiB each. */
static inline void hf_raw_field(struct hf_strbuf *block, const char *name, const char *value)
{
	const char *const texts[] = {name, value};

	hf_strbuf_addch(block, '\0');
	for (int i = 0; i < 2; i++) {
		size_t len = strlen(texts[i]);

		if (len < 127) {
			hf_strbuf_addch(block, (char)len);
		} else {
			hf_strbuf_addch(block, 127);
			for (len -= 127; len >= 128; len >>= 7)
				hf_strbuf_addch(block, (char)(len | 128));
			hf_strbuf_addch(block, (char)len);
		}
		hf_strbuf_add(block, texts[i], strlen(texts[i]));
	}
}

/* Sends HEADERS with "name", "value", …, NULL. */
static inline void hf_raw_headers(struct hf_raw_peer *peer, uint32_t id, unsigned flags,
				  const char *const *fields)
{
	HF_AUTO_STRBUF block = HF_STRBUF_INIT(65536);

	for (; *fields; fields += 2)
		hf_raw_field(&block, fields[0], fields[1]);
	hf_raw_frame(peer, HF_RAW_HEADERS, flags, id, block.data, block.len);
}

static inline void hf_raw_answer(struct hf_raw_peer *peer, uint32_t id)
{
	/* HPACK for ":status: 200" */
	hf_raw_frame(peer, HF_RAW_HEADERS, HF_RAW_END_HEADERS, id, "\x88", 1);
	hf_raw_frame(peer, HF_RAW_DATA, HF_RAW_END_STREAM, id, "fine", 4);
}

/* --- frames from the client --- */

static inline void hf_raw_take_frame(struct hf_raw_peer *peer, const unsigned char *frame,
				     size_t len)
{
	uint32_t id = (uint32_t)(frame[5] & 0x7f) << 24 | (uint32_t)frame[6] << 16 |
		      (uint32_t)frame[7] << 8 | frame[8];

	switch (frame[3]) {
	case HF_RAW_DATA: peer->data_bytes += len; break;
	case HF_RAW_RST: peer->resets++; break;
	case HF_RAW_GOAWAY: peer->goaway = frame[HF_RAW_HEAD + 7] + 1u; break;
	case HF_RAW_SETTINGS:
		if (frame[4] & HF_RAW_ACK)
			peer->acks++;
		else
			hf_raw_frame(peer, HF_RAW_SETTINGS, HF_RAW_ACK, 0, "", 0);
		break;
	case HF_RAW_HEADERS:
		peer->heads++;
		peer->server->on_head(peer, id);
		break;
	default: break;
	}
}

static inline void hf_raw_take(struct hf_raw_peer *peer)
{
	const size_t preface = 24;

	if (!peer->prefaced && peer->in.len >= preface) {
		peer->prefaced = true;
		hf_strbuf_consume(&peer->in, preface);
	}
	while (peer->prefaced && peer->in.len >= HF_RAW_HEAD) {
		const unsigned char *at = (const unsigned char *)peer->in.data;
		size_t len = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];

		if (peer->in.len < HF_RAW_HEAD + len)
			break;
		hf_raw_take_frame(peer, at, len);
		hf_strbuf_consume(&peer->in, HF_RAW_HEAD + len);
	}
	hf_loop_stop(peer->server->loop);
}

static inline void hf_raw_on_io(void *arg, HF_UNUSED unsigned events)
{
	struct hf_raw_peer *peer = (struct hf_raw_peer *)arg;
	char bytes[16384];
	ssize_t n = 0;

	if (!peer->handshake_done) {
		int rc = gnutls_handshake(peer->tls);

		if (rc < 0 && gnutls_error_is_fatal(rc))
			hf_raw_close(peer);
		if (rc < 0)
			return;
		peer->handshake_done = true;
		if (peer->server->on_open)
			peer->server->on_open(peer);
	}
	while (peer->fd >= 0 && (n = gnutls_record_recv(peer->tls, bytes, sizeof(bytes))) > 0) {
		hf_strbuf_add(&peer->in, bytes, (size_t)n);
		hf_raw_take(peer);
	}
	if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
		hf_raw_flush(peer);
	else
		hf_raw_close(peer);
	hf_loop_stop(peer->server->loop);
}

/* --- connections --- */

static inline void hf_raw_fork(struct hf_raw_h2 *server, int fd)
{
	pid_t pid = fork();

	assert_true(pid >= 0 && server->children_len < HF_ARRAY_LEN(server->children));
	if (pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		server->child(fd, server->credentials);
		_exit(0);
	}
	close(fd);
	server->children[server->children_len++] = pid;
}

static inline void hf_raw_on_accept(void *arg, HF_UNUSED unsigned events)
{
	struct hf_raw_h2 *server = (struct hf_raw_h2 *)arg;
	struct hf_raw_peer *peer;
	struct hf_error err = {0};
	int flags = server->child ? SOCK_CLOEXEC : SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = accept4(server->fd, NULL, NULL, flags);

	if (fd < 0)
		return;
	server->accepted++;
	if (server->child) {
		hf_raw_fork(server, fd);
		return;
	}
	peer = (struct hf_raw_peer *)hf_xcalloc(1, sizeof(*peer));
	peer->server = server;
	peer->next = server->peers;
	server->peers = peer;
	peer->fd = fd;
	hf_strbuf_init(&peer->in, HF_RAW_BYTES_MAX);
	hf_strbuf_init(&peer->out, HF_RAW_BYTES_MAX);
	peer->tls = hf_test_session(server->credentials, fd,
				    server->protocol ? server->protocol : "h2", GNUTLS_NONBLOCK);
	assert_ok(hf_io_create(server->loop, fd, hf_raw_on_io, peer, &peer->io, &err), &err);
	if (!server->silent)
		hf_io_want(peer->io, HF_IO_READ);
}

/* --- start and stop --- */

/* Sets the certificate of new connections; existing ones keep theirs. */
static inline void hf_raw_set_pair(struct hf_raw_h2 *server, const char *cert_pem,
				   const char *key_pem)
{
	if (server->credentials)
		gnutls_certificate_free_credentials(server->credentials);
	server->credentials = hf_test_credentials(cert_pem, key_pem);
}

static inline void hf_raw_start(struct hf_raw_h2 *server, const char *cert_pem, const char *key_pem)
{
	struct hf_error err = {0};

	hf_raw_set_pair(server, cert_pem, key_pem);
	server->fd = hf_test_listen(&server->port);
	assert_ok(
		hf_io_create(server->loop, server->fd, hf_raw_on_accept, server, &server->io, &err),
		&err);
	hf_io_want(server->io, HF_IO_READ);
}

static inline void hf_raw_stop(struct hf_raw_h2 *server)
{
	server->io = hf_io_destroy(server->io);
	close(server->fd);
	while (server->peers) {
		struct hf_raw_peer *peer = server->peers;

		server->peers = peer->next;
		hf_raw_close(peer);
		gnutls_deinit(peer->tls);
		hf_strbuf_release(&peer->in);
		hf_strbuf_release(&peer->out);
		free(peer);
	}
	for (unsigned i = 0; i < server->children_len; i++) {
		(void)kill(server->children[i], SIGKILL);
		(void)waitpid(server->children[i], NULL, 0);
	}
	gnutls_certificate_free_credentials(server->credentials);
}

#endif
