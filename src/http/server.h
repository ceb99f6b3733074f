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

/* A small HTTP/1.1 server on the real loop, for metrics, health and the API of the embedded plane.
 *
 * Each request becomes an exchange. The handler gets it when headers and body are complete. It
 * responds at once or keeps the handle and responds later, with one body or with a stream that it
 * writes to over time.
 *
 * Lifetime of an exchange: the handler owns the handle until exactly one of these happens:
 *
 *     hf_exchange_respond, hf_exchange_respond_take, hf_exchange_finish or
 *     hf_exchange_abort is called, or
 *     the closed callback is called (the client left, was idle too long, or the
 *     server is being destroyed).
 *
 * The handle is invalid when that call returns. Strings from the request accessors live as long as
 * the handle. A handler that keeps a handle after it returns must set a closed callback.
 *
 * Callbacks run from the loop, never from inside a call into this header; the exception is
 * hf_http_server_destroy, which calls the closed callbacks. Callbacks may call anything here,
 * including hf_http_server_destroy.
 *
 * The server itself refuses requests: 400 for malformed HTTP or a broken escape in the target; 413,
 * 414 and 431 beyond the limits below; 503 if all request bodies together exceed their limit.
 * (libmicrohttpd writes the page for unparsable requests and 431; `refusal` writes the others.)
 *
 * A client that has shut down its sending side counts as gone. */
struct hf_http_server;
struct hf_exchange;

#define HF_HTTP_BODY_BYTES_MAX (3u << 20) /* an API server accepts bodies of the same size */
/* Bytes of all request bodies that the server holds at one time. */
#define HF_HTTP_BODIES_BYTES_MAX (64u << 20)
/* Bytes of a request line and headers; a token takes about 2 kB. */
#define HF_HTTP_HEAD_BYTES_MAX (16u << 10)
/* Bytes of path and query; enough for the longest label selectors. */
#define HF_HTTP_TARGET_BYTES_MAX (8u << 10)
#define HF_HTTP_QUERY_PARAMS_MAX 128 /* pairs in a query; a request with more gets 400 */
#define HF_HTTP_CONNECTIONS_MAX 1024 /* further connections wait in the listen queue */
/* Seconds without a byte in either direction after which a connection is closed. A stream that has
 * nothing to send is not closed. */
#define HF_HTTP_IDLE_TIMEOUT_S 90
/* seconds in which a new connection must become trusted, or else it is closed */
#define HF_HTTP_UNTRUSTED_TIMEOUT_S 30
#define HF_HTTP_STREAM_BYTES_MAX (1u << 20) /* bytes written to a stream and not yet sent */

typedef void (*hf_exchange_fn)(void *arg, struct hf_exchange *exchange);

struct hf_http_server_spec {
	const char *address; /* "127.0.0.1", "::1", "0.0.0.0"; NULL with unix_path */
	/* port to listen on; 0: the kernel chooses a free one (hf_http_server_port) */
	uint16_t port;
	/* path of a Unix socket that the server creates (mode 0600) and listens on; NULL: it
	 * listens on address and port */
	const char *unix_path;

	/* PEM texts, copied; TLS if both are given. */
	const char *cert_pem;
	const char *key_pem;

	hf_exchange_fn handler;
	/* Decides about a request when its headers have come and its body has not. 0 accepts the
	 * request. An HF_E_* refuses it, and the error's text becomes the response (for example 401
	 * before a body of 3 MiB). The function runs inside libmicrohttpd: it may read the request
	 * and call hf_exchange_trust, nothing else here. NULL: every client that sends a request is
	 * trusted. */
	int (*admit)(void *arg, const struct hf_exchange *ex, struct hf_error *err);
	/* Writes the body of a refusal, whether the server or `admit` refuses. NULL: the body is
	 * the error's text, as text/plain. The function runs inside libmicrohttpd, like admit. */
	void (*refusal)(void *arg, int code, const char *text, struct hf_strbuf *ret_body);
	const char *refusal_content_type; /* Content-Type of refusals; a string literal */
	void *arg;                        /* argument of handler, admit and refusal */

	/* Limits; 0 means the default above. */
	size_t body_bytes_max;
	size_t head_bytes_max;
	size_t stream_bytes_max;
	unsigned connections_max;
	unsigned idle_timeout_s;
	/* Limits for untrusted connections (see hf_exchange_trust): their number (0: a quarter of
	 * all connections), and the time until they must be trusted. Beyond a limit the server cuts
	 * the oldest ones. */
	unsigned untrusted_max;
	unsigned untrusted_timeout_s;
	/* A connection is trusted for the length of a request alone. Between requests it is untrusted again. */
	bool trust_ends_with_request;
};

/* HF_E_IO: the address cannot be listened on. HF_E_INVALID: bad certificate. HF_E_UNSUPPORTED: the
 * loop is virtual. */
int hf_http_server_create(struct hf_loop *loop, const struct hf_http_server_spec *spec,
			  struct hf_http_server **ret_server, struct hf_error *err) HF_MUST_CHECK;
/* As hf_http_server_create, with an address "" for all addresses: those of IPv6 and IPv4, or of IPv4 alone where
 * the kernel has no IPv6. "localhost" is 127.0.0.1. */
int hf_http_server_create_at(struct hf_loop *loop, const struct hf_http_server_spec *spec,
			     struct hf_http_server **ret_server, struct hf_error *err)
	HF_MUST_CHECK;
/* Tests whether the address could be listened on now; the port is free again afterwards. */
int hf_http_listen_check(const char *address, uint16_t port, struct hf_error *err) HF_MUST_CHECK;
/* Calls the closed callback of every live exchange. Accepts NULL; returns NULL. */
struct hf_http_server *hf_http_server_destroy(struct hf_http_server *server);
/* TCP port; 0 on a unix socket */
uint16_t hf_http_server_port(const struct hf_http_server *server);
/* Refuses new connections; existing ones stay. For a graceful shutdown. */
void hf_http_server_quiesce(struct hf_http_server *server);
unsigned hf_http_server_connections(const struct hf_http_server *server);

/* --- the request --- */
const char *hf_exchange_method(const struct hf_exchange *ex); /* method as sent, "GET" */
/* The percent-decoded path. It begins with '/' and contains no NUL. */
const char *hf_exchange_path(const struct hf_exchange *ex);
/* Path and query as sent, for logs. */
const char *hf_exchange_target(const struct hf_exchange *ex);
/* The first query parameter of this name, percent-decoded ("+" means a blank); NULL: none. A
 * parameter without a value gives "". */
const char *hf_exchange_query(const struct hf_exchange *ex, const char *name);
/* The first header of this name, in any case of letters; NULL: none. */
const char *hf_exchange_header(const struct hf_exchange *ex, const char *name);
/* The request's body, followed by a NUL that ret_len does not count. "" if there is no body; never
 * NULL. */
const char *hf_exchange_body(const struct hf_exchange *ex, size_t *ret_len);

/* Marks the exchange's connection as trusted; the limits for untrusted connections no longer apply
 * to it. */
void hf_exchange_trust(const struct hf_exchange *ex);

/* --- the response --- */

/* Sets the callback that the loop calls if the exchange ends before the handler ended it. A later
 * call replaces the callback; NULL: no callback. */
void hf_exchange_on_closed(struct hf_exchange *ex, hf_exchange_fn fn, void *arg);

/* Adds a response header; call it before responding. An assert fails on a control character in name
 * or value, so values from outside must be checked first. */
void hf_exchange_add_header(struct hf_exchange *ex, const char *name, const char *value);

/* Ends the exchange with one body. _respond copies the body; _respond_take moves it out of the
 * buffer, which is then empty. content_type may be NULL. Keep-alive, Content-Length and HEAD are
 * handled. */
void hf_exchange_respond(struct hf_exchange *ex, int status, const char *content_type,
			 const void *body, size_t len);
void hf_exchange_respond_take(struct hf_exchange *ex, int status, const char *content_type,
			      struct hf_strbuf *body);

/* A stream: begin once, write any number of times, then finish. Each write is sent at once as a
 * chunk, in order.
 *
 * write accepts all bytes or, if the buffer would exceed its limit, none (returns false). In that
 * case on_drained, if set, is called once the buffer has fallen to half of the limit. room returns
 * how many bytes write would accept now. A single write larger than the limit never succeeds. */
void hf_exchange_begin(struct hf_exchange *ex, int status, const char *content_type);
bool hf_exchange_write(struct hf_exchange *ex, const void *bytes, size_t len) HF_MUST_CHECK;
size_t hf_exchange_room(const struct hf_exchange *ex);
void hf_exchange_on_drained(struct hf_exchange *ex, hf_exchange_fn fn, void *arg);
void hf_exchange_finish(struct hf_exchange *ex); /* ends the exchange; written bytes are still
                                                  * sent */
/* Ends the exchange by cutting the connection, so that the client sees a broken response and not a
 * short one. */
void hf_exchange_abort(struct hf_exchange *ex);

#endif
