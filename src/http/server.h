/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_SERVER_H
#define HF_HTTP_SERVER_H

#include "base/error.h"
#include "base/strbuf.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A small HTTP/1.1 server on the real loop: metrics, health and the API face.
 *
 * Each request becomes an exchange, handed to the handler once its headers and
 * its whole body are here.  The handler answers at once or keeps the handle and
 * answers later; with one body, or with a stream that it writes to over time.
 *
 * Life of an exchange: the handle is the handler's from the call on until
 *
 *     hf_exchange_answer, hf_exchange_answer_take, hf_exchange_finish or
 *     hf_exchange_abort is called, or
 *     the closed callback is called (the client left, was idle too long, or the
 *     server is being destroyed),
 *
 * whichever is first; exactly one of these happens, and the handle is dead when
 * it returns.  Strings that the request accessors give live as long as the handle.
 *
 * So whoever keeps a handle past the handler's return sets a closed callback.
 *
 * All callbacks run from the loop, never from inside a call into this header
 * (but hf_http_server_destroy, which calls the closed callbacks), and may call
 * anything here, hf_http_server_destroy included.
 *
 * What the server refuses by itself: 400 for what is not HTTP or has a broken
 * escape in its target, 413, 414 and 431 past the limits below, 503 where all
 * request bodies together pass their limit.  (What cannot even be parsed, and
 * 431, get the page of libmicrohttpd; the rest reads as `refusal` says.)
 *
 * A client that has shut down its sending side counts as gone.
 */
struct hf_http_server;
struct hf_exchange;

#define HF_HTTP_BODY_BYTES_MAX (3u << 20)    /* as the API server's limit on a request */
#define HF_HTTP_BODIES_BYTES_MAX (64u << 20) /* request bodies held at a time */
#define HF_HTTP_HEAD_BYTES_MAX (16u << 10)   /* request line and headers: tokens are ~2 kB */
#define HF_HTTP_TARGET_BYTES_MAX (8u << 10)  /* path and query: a label selector's worst */
#define HF_HTTP_QUERY_PARAMS_MAX 128         /* pairs in a query; 400 past it */
#define HF_HTTP_CONNECTIONS_MAX 1024         /* further ones wait in the listen queue */
#define HF_HTTP_IDLE_TIMEOUT_S 90            /* no byte either way, but for a quiet stream */
#define HF_HTTP_STRANGER_TIMEOUT_S 30        /* until a connection must have become trusted */
#define HF_HTTP_STREAM_BYTES_MAX (1u << 20)  /* written to a stream, not yet sent */

typedef void (*hf_exchange_fn)(void *arg, struct hf_exchange *exchange);

struct hf_http_server_spec {
	const char *address;   /* "127.0.0.1", "::1", "0.0.0.0"; NULL with unix_path */
	uint16_t port;         /* 0: an ephemeral one, see hf_http_server_port */
	const char *unix_path; /* a socket file to make (mode 0600) in place of address and port */

	/* TLS if both are given: PEM texts, copied. */
	const char *cert_pem;
	const char *key_pem;

	hf_exchange_fn handler;
	/* May be NULL.  Called when the headers are here and the body is not: 0 to go on, or an
	 * HF_E_* with its text, which becomes the answer (a 401 to a stranger's 3 MiB).  Runs
	 * inside the server: may ask for the request, call hf_exchange_trust, and nothing else
	 * here.  Where it is NULL whoever sends a request is trusted. */
	int (*admit)(void *arg, const struct hf_exchange *ex, struct hf_error *err);
	/* May be NULL: how refusals (the server's own and admit's) read, else text/plain.  Runs
	 * inside the server, as admit does. */
	void (*refusal)(void *arg, int code, const char *text, struct hf_strbuf *ret_body);
	const char *refusal_content_type; /* a literal */
	void *arg;                        /* of all three */

	/* Limits; 0 takes the value above. */
	size_t body_bytes_max;
	size_t head_bytes_max;
	size_t stream_bytes_max;
	unsigned connections_max;
	unsigned idle_timeout_s;
	/* Connections that are not trusted (hf_exchange_trust): so many (0: a quarter of all) and so
	 * long; beyond it the oldest are cut. */
	unsigned strangers_max;
	unsigned stranger_timeout_s;
};

/* HF_E_IO where the address cannot be listened on; HF_E_INVALID for a bad certificate.
 * A virtual loop gives HF_E_UNSUPPORTED. */
int hf_http_server_create(struct hf_loop *loop, const struct hf_http_server_spec *spec,
			  struct hf_http_server **ret_server, struct hf_error *err) HF_MUST_CHECK;
/* Whether the address could be listened on now; nothing listens afterwards. */
int hf_http_listen_check(const char *address, uint16_t port, struct hf_error *err) HF_MUST_CHECK;
/* Calls the closed callback of every live exchange; NULL is fine; returns NULL. */
struct hf_http_server *hf_http_server_destroy(struct hf_http_server *server);
uint16_t hf_http_server_port(const struct hf_http_server *server); /* 0 on a unix socket */
/* Take no new connections, which are refused; those that are here stay.  For a graceful end. */
void hf_http_server_quiesce(struct hf_http_server *server);
unsigned hf_http_server_connections(const struct hf_http_server *server);
size_t hf_http_server_exchanges(const struct hf_http_server *server); /* live handles */

/* --- the request --- */
const char *hf_exchange_method(const struct hf_exchange *ex); /* "GET", as sent */
/* Percent-decoded, begins with '/'; holds no NUL. */
const char *hf_exchange_path(const struct hf_exchange *ex);
/* Path and query as sent, for logs. */
const char *hf_exchange_target(const struct hf_exchange *ex);
/* Query parameters, percent-decoded ("+" is a blank), in the order sent. */
size_t hf_exchange_query_count(const struct hf_exchange *ex);
void hf_exchange_query_at(const struct hf_exchange *ex, size_t i, const char **ret_name,
			  const char **ret_value);
/* The first of that name; NULL: none.  "a" and "a=" both give "". */
const char *hf_exchange_query(const struct hf_exchange *ex, const char *name);
/* The first header of that name, whatever its case; NULL: none. */
const char *hf_exchange_header(const struct hf_exchange *ex, const char *name);
/* Followed by a NUL that is not counted; empty, never NULL, where there is none. */
const char *hf_exchange_body(const struct hf_exchange *ex, size_t *ret_len);

/* Whoever sent this may be here: its connection is none of the strangers' any more. */
void hf_exchange_trust(const struct hf_exchange *ex);

/* --- the answer --- */

/* For the handler: what is called, from the loop, if the exchange ends before the handler
 * ended it.  May be set again; NULL: none. */
void hf_exchange_on_closed(struct hf_exchange *ex, hf_exchange_fn fn, void *arg);

/* A header of the answer; before answering.  Name and value are this program's own or
 * were checked: a control character in either is an assert. */
void hf_exchange_add_header(struct hf_exchange *ex, const char *name, const char *value);

/* Ends the exchange.  The body is copied, or (take) moved out of the buffer, which is then
 * empty.  content_type may be NULL.  Keep-alive, Content-Length and HEAD are seen to. */
void hf_exchange_answer(struct hf_exchange *ex, int status, const char *content_type,
			const void *body, size_t len);
void hf_exchange_answer_take(struct hf_exchange *ex, int status, const char *content_type,
			     struct hf_strbuf *body);

/*
 * A stream: begin once, write any number of times, finish.  What is written goes out
 * at once, as chunks; nothing is sent twice or reordered.
 *
 * write takes all of it, or (false) nothing where the buffer would pass its limit; then
 * on_drained, if set, is called once the buffer has fallen to half of it.  room says how
 * much write would take now.  A single write larger than the limit never fits.
 */
void hf_exchange_begin(struct hf_exchange *ex, int status, const char *content_type);
bool hf_exchange_write(struct hf_exchange *ex, const void *bytes, size_t len) HF_MUST_CHECK;
size_t hf_exchange_room(const struct hf_exchange *ex);
void hf_exchange_on_drained(struct hf_exchange *ex, hf_exchange_fn fn, void *arg);
void hf_exchange_finish(struct hf_exchange *ex); /* ends it; what was written is still sent */
/* Ends it by cutting the connection: the client sees a broken answer, not a short one. */
void hf_exchange_abort(struct hf_exchange *ex);

#endif
