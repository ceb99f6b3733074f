/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_CLIENT_H
#define HF_HTTP_CLIENT_H

#include "base/error.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * An HTTP client on the real loop, for one server: HTTP/2 over TLS where the
 * server has it (one connection for requests, one for streams), else HTTP/1.1 (connections
 * kept and reused).  Where the URL has the server's address and there is no proxy, without libcurl.
 *
 * A request is copied and queued; nothing is called back from inside send.  Its
 * transfer ends in exactly one of: on_done, hf_transfer_cancel, or
 * hf_http_client_destroy (neither of which calls back).  The handle is dead when
 * that returns, on_done included.  Callbacks may call anything here, canceling
 * their own transfer and destroying the client included.
 *
 * Requests wait in order of sending while in_flight_max of them are under way; the
 * time spent waiting counts.  Streams (watches, logs) start at once and are
 * bounded apart: servers grant about 100 streams per connection, so
 * in_flight_max + streams_max should stay below that.
 */
struct hf_http_client;
struct hf_transfer;

#define HF_HTTP_IN_FLIGHT_MAX 32u /* beyond it only the waiting grows: measured */
#define HF_HTTP_STREAMS_MAX 60u
#define HF_HTTP_QUEUE_MAX 4096u          /* requests waiting; HF_E_TOO_MANY past it */
#define HF_HTTP_TIMEOUT (30 * HF_SECOND) /* of a whole request */
#define HF_HTTP_CONNECT_TIMEOUT (10 * HF_SECOND)
#define HF_HTTP_SILENCE_MAX (10 * HF_SECOND)
#define HF_HTTP_RESPONSE_BYTES_MAX (64u << 20) /* of a body kept whole: a page of a list */
#define HF_HTTP_RESPONSE_HEAD_BYTES_MAX (64u << 10)

struct hf_http_client_spec {
	/* "https://host:6443", "http://127.0.0.1:8080/prefix"; no query; a final '/' is dropped. */
	const char *base_url;
	const char *unix_path; /* connect here, whatever the URL's host; NULL: TCP */

	const char *ca_pem;   /* trusted instead of the system's; NULL: the system's */
	const char *cert_pem; /* the client's own, with its key; NULL: none */
	const char *key_pem;
	const char *tls_server_name; /* name to ask for and to verify; NULL: the URL's host */
	bool insecure;               /* verify nothing */
	const char *proxy_url; /* NULL: http(s)_proxy, no_proxy of the environment; "": none */

	/* HTTP/2 without TLS and without asking (gRPC over a unix socket): each request on
	 * a connection of its own, since libcurl 7.88 breaks the second one on a shared one. */
	bool http2_plain;

	unsigned in_flight_max; /* 0 takes the value above, here and below */
	unsigned streams_max;
	unsigned queue_max;
	hf_time timeout;
	hf_time connect_timeout;
	/* When a request or stream runs into its time-out and no byte came from the server for
	 * this long, its connections are left to what runs on them: later requests make new
	 * ones.  (A peer behind a load balancer may be gone without anybody saying so.) */
	hf_time silence_max;
};

/* HF_E_INVALID for a URL that is none or a lone certificate or key; HF_E_UNSUPPORTED on a
 * virtual loop.  Texts are copied; certificates are read when connecting. */
int hf_http_client_create(struct hf_loop *loop, const struct hf_http_client_spec *spec,
			  struct hf_http_client **ret_client, struct hf_error *err) HF_MUST_CHECK;
/* Drops every transfer without a callback; NULL is fine; returns NULL. */
struct hf_http_client *hf_http_client_destroy(struct hf_http_client *client);

/* "Authorization: Bearer <token>" of requests started from now on; NULL or "": none.  Blanks
 * and control characters (a file's last newline) are dropped. */
void hf_http_client_set_bearer(struct hf_http_client *client, const char *token);
/* Client certificate and key from now on (connections made with others are not used any
 * more); both NULL: none. */
void hf_http_client_set_cert(struct hf_http_client *client, const char *cert_pem,
			     const char *key_pem);
/* What is trusted from now on, likewise; NULL: what the system trusts. */
void hf_http_client_set_ca(struct hf_http_client *client, const char *ca_pem);

/* How an answer came out.  Texts live until the callback returns. */
struct hf_http_result {
	/*
	 * 0: there is an answer, whatever its status.  Else there is none, or (streams)
	 * the answer broke off:
	 *
	 *   HF_E_UNAVAILABLE  not connected: the server has not seen the request; of a
	 *                     stream whose head has come: the connection was lost
	 *   HF_E_TIMEOUT      sent, and no whole answer: whether it was done is not known;
	 *                     of a stream: nothing came for idle_timeout
	 *   HF_E_TOO_LARGE    body or head passed its limit
	 *   HF_E_BAD_REQUEST  the request is malformed (its URL)
	 */
	int code;
	const struct hf_error *err;
	/* HTTP/2 broke the stream or the server said GOAWAY (of curl, codes 16 and 92): try
	 * again at once on a new connection; a write may still have been done (code says).
	 * curl 8 has tried a few times by itself after a GOAWAY: then this is false. */
	bool retry_now;
	/* The server's certificate is not trusted, or the client's own cannot be used: another
	 * try ends the same way. */
	bool permanent;
	int status;       /* 0: no head came */
	const char *body; /* NUL behind it; "" for streams */
	size_t body_len;
	const struct hf_transfer *transfer; /* for hf_transfer_header */
};

struct hf_http_request {
	const char *method; /* "GET", "POST", … */
	const char *target; /* "/api/v1/pods?limit=500", behind base_url, already encoded */
	/* "Name: value" lines, NULL-terminated, at most 64, or NULL.  Control characters become
	 * blanks.  User-Agent is holdfast/VERSION. */
	const char *const *headers;
	const void *body;
	size_t body_len;
	/* Content-Type of the body; NULL with a body: application/json. */
	const char *content_type;
	bool gzip; /* offer it; the body arrives decoded (pays on lists, watches ignore it) */

	hf_time timeout;      /* from send to done; 0: the client's (streams: none) */
	hf_time idle_timeout; /* streams: HF_E_TIMEOUT if no byte comes in this long; 0: none */
	size_t response_bytes_max; /* 0: the value above (streams: none) */

	/* Whole answers: only on_done.  Streams: on_head once, if a head comes; on_data
	 * for every piece of body; on_done at the end, as for whole answers. */
	bool stream;
	void (*on_head)(void *arg, struct hf_transfer *transfer, int status); /* may be NULL */
	void (*on_data)(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len);
	void (*on_done)(void *arg, const struct hf_http_result *result);
	void *arg;
};

/* HF_E_TOO_MANY where the queue or the streams are full.  ret_transfer may be NULL. */
int hf_http_client_send(struct hf_http_client *client, const struct hf_http_request *request,
			struct hf_transfer **ret_transfer, struct hf_error *err) HF_MUST_CHECK;
size_t hf_http_client_in_flight(const struct hf_http_client *client); /* streams not counted */
size_t hf_http_client_queued(const struct hf_http_client *client);

/* No callback of it runs any more; the server may have seen the request. */
void hf_transfer_cancel(struct hf_transfer *transfer);
/* Streams: hold back on_data (and so, in the end, the server) until resumed.  What is
 * paused does not time out for being idle. */
void hf_transfer_pause(struct hf_transfer *transfer);
void hf_transfer_resume(struct hf_transfer *transfer);
/* The first response header of that name, whatever its case; trailers are behind the
 * headers once the body is whole.  NULL: none. */
const char *hf_transfer_header(const struct hf_transfer *transfer, const char *name);
/* The i-th of that name, from 0, for those that may come several times. */
const char *hf_transfer_header_at(const struct hf_transfer *transfer, const char *name, size_t i);

/* Append text to sb with everything but A-Z a-z 0-9 - . _ ~ percent-encoded. */
struct hf_strbuf;
void hf_url_escape(struct hf_strbuf *sb, const char *text);

#endif
