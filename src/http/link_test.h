/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_LINK_TEST_H
#define HF_HTTP_LINK_TEST_H

/*
 * An HTTP/2 server over TLS on 127.0.0.1, on the loop that the client under test runs on too: it
 * keeps what it is asked, and answers, resets and goes away when a test says so.
 */

#include "harness/real_loop.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <gnutls/gnutls.h>
#include <nghttp2/nghttp2.h>

#define HF_H2_SERVER_BODY_MAX ((size_t)8 << 20)

struct hf_h2_server;

struct hf_h2_peer {
	struct hf_h2_server *server;
	struct hf_h2_peer *next;
	int fd; /* -1: closed */
	struct hf_io *io;
	gnutls_session_t tls;
	nghttp2_session *h2;
	bool shaken;
	size_t certificates; /* that the client showed */
	struct hf_strbuf out;
};

struct hf_h2_exchange {
	struct hf_h2_peer *peer;
	struct hf_h2_exchange *next;
	int32_t id;
	char head[2048]; /* "name: value\n"… */
	struct hf_strbuf body;
	struct hf_strbuf answer; /* what is still to be sent of it */
	size_t told;
	bool last; /* nothing comes behind the answer */
	bool whole, closed;
	uint32_t closed_code;
};

struct hf_h2_server {
	struct hf_loop *loop;
	/* The request is whole. */
	void (*serve)(void *arg, struct hf_h2_exchange *ex);
	void *arg;
	int fd;
	struct hf_io *io;
	uint16_t port;
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t ticket_key;
	struct hf_h2_peer *peers;
	struct hf_h2_exchange *exchanges; /* the newest first; all there were */
	unsigned accepted, requests;
};

void hf_h2_peer_close(struct hf_h2_peer *peer);
void hf_h2_peer_send(struct hf_h2_peer *peer);
void hf_h2_begin(struct hf_h2_exchange *ex, const char *status);
void hf_h2_say(struct hf_h2_exchange *ex, const char *bytes, size_t len, bool last);
void hf_h2_answer(struct hf_h2_exchange *ex, const char *status, const char *text);
void hf_h2_server_start(struct hf_h2_server *server, const char *cert_pem, const char *key_pem,
			const char *client_ca_pem);
/* No new connections; those there are go on. */
void hf_h2_server_close(struct hf_h2_server *server);
void hf_h2_server_stop(struct hf_h2_server *server);

#endif
