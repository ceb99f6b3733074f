/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_CLIENT_H
#define HF_HTTP_CLIENT_H

#include "base/error.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>

/* An HTTP client on the real loop, for one server. Over TLS it uses HTTP/2 if the server supports
 * it: one connection for requests and one for streams. Otherwise it uses HTTP/1.1 and keeps
 * connections for reuse. If the URL contains an IP address and no proxy is set, the client works
 * without libcurl (see README.md, "Links").
 *
 * hf_http_client_send copies and queues a request; it never calls back. A transfer ends in exactly
 * one of these ways: on_done is called, hf_transfer_cancel, or hf_http_client_destroy. The latter
 * two do not call back. The handle is invalid when that call returns. Callbacks may call anything
 * in this header, including a cancel of their own transfer and the destruction of the client.
 *
 * At most in_flight_max requests are in flight; further ones wait in the order of sending, and the
 * waiting time counts towards their timeout. Streams (watches, logs) start at once and have a limit
 * of their own. A server usually grants 100 streams per connection, so keep in_flight_max +
 * streams_max below 100. */
struct hf_http_client;
struct hf_transfer;

/* Most requests that the server gets at a time. Measurements show that with more of them, requests
 * only wait in the server instead of in the client. */
#define HF_HTTP_IN_FLIGHT_MAX 32u
#define HF_HTTP_STREAMS_MAX 60u
/* Most requests that wait in the client; a further hf_http_client_send returns HF_E_TOO_MANY */
#define HF_HTTP_QUEUE_MAX 4096u
/* default time limit of a whole request, from the call of send to on_done */
#define HF_HTTP_TIMEOUT (30 * HF_SECOND)
#define HF_HTTP_CONNECT_TIMEOUT (10 * HF_SECOND)
#define HF_HTTP_SILENCE_MAX (10 * HF_SECOND)
/* Most bytes of a response body that is kept whole, for example a page of a list */
#define HF_HTTP_RESPONSE_BYTES_MAX (64u << 20)
#define HF_HTTP_RESPONSE_HEAD_BYTES_MAX (64u << 10)

struct hf_http_client_spec {
	/* "https://host:6443" or "http://127.0.0.1:8080/prefix"; no query; a final '/' is
	 * dropped. */
	const char *base_url;
	const char *unix_path; /* unix socket to connect to, regardless of the URL's host; NULL:
	                        * TCP */

	const char *ca_pem;   /* trusted CAs; NULL: those of the system */
	const char *cert_pem; /* client certificate and its key; NULL: none */
	const char *key_pem;
	const char *tls_server_name; /* name for SNI and for verification; NULL: the URL's host */
	bool insecure;               /* true: verify neither the server's certificate nor its
	                              * name */
	/* URL of the proxy; NULL: as http_proxy, https_proxy and no_proxy in the environment say;
	 * "": no proxy */
	const char *proxy_url;

	/* HTTP/2 without TLS and without negotiation (gRPC over a unix socket). Each request gets
	 * its own connection, because libcurl 7.88 fails the second request on a shared one. */
	bool http2_plain;

	/* Limits and timeouts; 0: the default of the HF_HTTP_ constant above. */
	unsigned in_flight_max;
	unsigned streams_max;
	unsigned queue_max;
	hf_time timeout;
	hf_time connect_timeout;
	/* If a request or stream times out and its connections brought no byte for this long, later
	 * requests use new connections; running transfers stay on the old ones. (A peer behind a
	 * load balancer may vanish without any sign.) */
	hf_time silence_max;
};

/* HF_E_INVALID: base_url is not a URL, or certificate and key are not both given. HF_E_UNSUPPORTED:
 * the loop is virtual. All texts are copied; certificates are parsed at connect time. */
int hf_http_client_create(struct hf_loop *loop, const struct hf_http_client_spec *spec,
			  struct hf_http_client **ret_client, struct hf_error *err) HF_MUST_CHECK;
/* Drops every transfer without a callback. Accepts NULL; returns NULL. */
struct hf_http_client *hf_http_client_destroy(struct hf_http_client *client);

/* Sets "Authorization: Bearer <token>" for requests started from now on; NULL or "": no header.
 * Blanks and control characters, such as a file's last newline, are removed. */
void hf_http_client_set_bearer(struct hf_http_client *client, const char *token);
/* Sets the client certificate and key for new connections; existing connections get no new
 * requests. Both NULL: no certificate. */
void hf_http_client_set_cert(struct hf_http_client *client, const char *cert_pem,
			     const char *key_pem);
/* Sets the trusted CAs for new connections; existing connections get no new requests. NULL: the
 * system's CAs. */
void hf_http_client_set_ca(struct hf_http_client *client, const char *ca_pem);

/* The outcome of a transfer. The texts are valid until the callback returns. */
struct hf_http_result {
	/* 0: a response came, with any status. Otherwise no response came, or a stream broke off:
	 *
	 *   HF_E_UNAVAILABLE  not connected: the server has not seen the request. For a stream
	 *                     after its head: the connection was lost.
	 *   HF_E_TIMEOUT      sent, but no complete response came: whether the server carried
	 *                     out the request is unknown. For a stream: no byte came for
	 *                     idle_timeout.
	 *   HF_E_TOO_LARGE    the body or the head exceeded its limit
	 *   HF_E_BAD_REQUEST  the request's URL is malformed */
	int code;
	const struct hf_error *err;
	/* True if a retry on a new connection may follow at once: HTTP/2 ended the stream, or the
	 * server sent GOAWAY (curl codes 16 and 92). `code` tells whether the server may have done
	 * a write. False after a GOAWAY that curl 8 has answered with retries of its own. */
	bool retry_now;
	/* True if a retry would fail in the same way: the server's certificate is not trusted, or
	 * the client's own certificate cannot be used. */
	bool permanent;
	int status;       /* HTTP status; 0: no head came */
	const char *body; /* followed by a NUL; "" for streams */
	size_t body_len;
	const struct hf_transfer *transfer; /* the transfer, for hf_transfer_header */
};

struct hf_http_request {
	const char *method; /* HTTP method: "GET", "POST", … */
	const char *target; /* appended to base_url; "/api/v1/pods?limit=500", already
	                     * percent-encoded */
	/* "Name: value" lines, NULL-terminated, at most 64; may be NULL. Control characters become
	 * blanks. User-Agent is holdfast/VERSION. */
	const char *const *headers;
	const void *body;
	size_t body_len;
	/* Content-Type of the body; NULL: application/json. */
	const char *content_type;
	bool gzip; /* accept a gzip response, which arrives decoded; useful for lists, ignored by
	            * servers for watches */

	hf_time timeout;      /* from send to on_done; 0: the client's timeout (for streams:
	                       * none) */
	hf_time idle_timeout; /* streams: HF_E_TIMEOUT after this long without a byte; 0: none */
	/* limit of the response's body; 0: HF_HTTP_RESPONSE_BYTES_MAX, and no limit for streams */
	size_t response_bytes_max;

	/* false: only on_done is called, with the whole body. true: on_head once, when the head has
	 * come; on_data for each piece of the body; on_done at the end. */
	bool stream;
	void (*on_head)(void *arg, struct hf_transfer *transfer, int status); /* may be NULL */
	void (*on_data)(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len);
	void (*on_done)(void *arg, const struct hf_http_result *result);
	void *arg;
};

/* HF_E_TOO_MANY: the queue or the number of streams is at its limit. ret_transfer may be NULL. */
int hf_http_client_send(struct hf_http_client *client, const struct hf_http_request *request,
			struct hf_transfer **ret_transfer, struct hf_error *err) HF_MUST_CHECK;

/* No callback of the transfer runs after this call. The server may have seen the request. */
void hf_transfer_cancel(struct hf_transfer *transfer);
/* For streams: no on_data is called until the transfer is resumed. The server stops sending once
 * all buffers on the way are full. A paused stream has no idle timeout. */
void hf_transfer_pause(struct hf_transfer *transfer);
void hf_transfer_resume(struct hf_transfer *transfer);
/* The first response header of this name, in any case of letters. Trailers follow the headers once
 * the body is complete. NULL: none. */
const char *hf_transfer_header(const struct hf_transfer *transfer, const char *name);
/* The i-th header of this name, from 0, for headers that may occur several times. */
const char *hf_transfer_header_at(const struct hf_transfer *transfer, const char *name, size_t i);

/* Appends text to sb and percent-encodes every byte except A-Z a-z 0-9 - . _ ~ */
struct hf_strbuf;
void hf_url_escape(struct hf_strbuf *sb, const char *text);

#endif
