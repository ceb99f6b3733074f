/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_LINK_TEST_H
#define HF_HTTP_LINK_TEST_H

/* An HTTP/2 server over TLS on 127.0.0.1, on the loop of the client under test. It keeps all
 * requests. A test makes it respond, reset streams or send GOAWAY. */

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
	int fd; /* -1: the connection is closed */
	struct hf_io *io;
	gnutls_session_t tls;
	nghttp2_session *h2;
	bool handshake_done;
	size_t certificates; /* number of certificates that the client sent */
	struct hf_strbuf out;
};

struct hf_h2_exchange {
	struct hf_h2_peer *peer;
	struct hf_h2_exchange *next;
	int32_t id;
	char head[2048]; /* header fields of the request, "name: value\n"… */
	struct hf_strbuf body;
	struct hf_strbuf answer; /* bytes of the response still to be sent */
	size_t sent_bytes;
	bool last; /* the response ends after these bytes */
	bool whole, closed;
	uint32_t closed_code;
};

struct hf_h2_server {
	struct hf_loop *loop;
	/* Called when a request is complete. */
	void (*serve)(void *arg, struct hf_h2_exchange *ex);
	void *arg;
	int fd;
	struct hf_io *io;
	uint16_t port;
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t ticket_key;
	struct hf_h2_peer *peers;
	struct hf_h2_exchange *exchanges; /* all exchanges so far, newest first */
	unsigned accepted, requests;
};

void hf_h2_peer_close(struct hf_h2_peer *peer);
void hf_h2_peer_send(struct hf_h2_peer *peer);
void hf_h2_begin(struct hf_h2_exchange *ex, const char *status);
void hf_h2_say(struct hf_h2_exchange *ex, const char *bytes, size_t len, bool last);
void hf_h2_answer(struct hf_h2_exchange *ex, const char *status, const char *text);
void hf_h2_server_start(struct hf_h2_server *server, const char *cert_pem, const char *key_pem,
			const char *client_ca_pem);
/* Stops listening; existing connections go on. */
void hf_h2_server_close(struct hf_h2_server *server);
void hf_h2_server_stop(struct hf_h2_server *server);

#endif
