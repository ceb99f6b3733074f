/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_CLIENT_INTERNAL_H
#define HF_HTTP_CLIENT_INTERNAL_H

#include "base/strbuf.h"
#include "http/client.h"

#include <curl/curl.h>
#include <sys/socket.h>

/* Shared by client.c (the queue), pool.c (connections through curl), link.c (connections without
 * curl) and transfer.c (one request). client.c uses pool.c, pool.c and link.c use each other, and all
 * use transfer.c, which uses none of them.
 *
 * curl calls back from inside its own functions, and a callback must not call them. So the
 * callbacks only fill buffers and post the transfer's task. The task calls the user, who may do
 * anything, including destroying the client. */

/* Most bytes received for a stream and not yet delivered; beyond it curl is told to pause. On a
 * link the limit is the stream's HTTP/2 window, which opens again as bytes are delivered. */
#define HF_TRANSFER_INBOX_BYTES_MAX ((size_t)64 * 1024)
#define HF_TRANSFER_WINDOW_BYTES ((size_t)256 * 1024)

/* The state of a transfer. client.c only moves it forward: queued, running, done. A transfer that
 * ends in the queue skips running. */
enum hf_transfer_state { HF_TRANSFER_QUEUED, HF_TRANSFER_RUNNING, HF_TRANSFER_DONE };

/* The kind of connection that runs the transfer, or ran it last. */
enum hf_transfer_carrier { HF_CARRIER_NONE, HF_CARRIER_CURL, HF_CARRIER_LINK };

/* How far the exchange has come; hf_transfer_advance moves it by this table.
 *
 *              HEAD_SENT   HEAD_TAKEN   ALL_TAKEN
 *   UNSENT     SENT        HEAD         -
 *   SENT       SENT        HEAD         -
 *   HEAD       HEAD        HEAD         COMPLETE
 *   COMPLETE   COMPLETE    COMPLETE     COMPLETE
 *
 * A dash is a broken invariant. Only links report HEAD_SENT and ALL_TAKEN: curl does not say when it
 * sends, and its result ends the transfer. */
enum hf_transfer_phase {
	/* As far as this program knows, the request was not sent; with curl, see was_sent. */
	HF_EXCHANGE_UNSENT,
	HF_EXCHANGE_SENT,     /* the request's head was sent */
	HF_EXCHANGE_HEAD,     /* the head of the final response is complete */
	HF_EXCHANGE_COMPLETE, /* the response is complete; the request's body may not be sent yet */
	HF_EXCHANGE_PHASES
};
enum hf_transfer_event {
	HF_EXCHANGE_HEAD_SENT,
	HF_EXCHANGE_HEAD_TAKEN,
	HF_EXCHANGE_ALL_TAKEN,
	HF_EXCHANGE_EVENTS
};

/* Whether the bytes of a stream go to the user. A stream is paused by the user, full (its inbox
 * is), both, or open. transfer.c changes the state by this table.
 *
 *             PAUSE    RESUME   FILL   DRAIN
 *   OPEN      PAUSED   OPEN     FULL   OPEN
 *   FULL      BOTH     FULL     FULL   OPEN
 *   PAUSED    PAUSED   OPEN     BOTH   PAUSED
 *   BOTH      BOTH     FULL     BOTH   BOTH
 */
enum hf_transfer_flow {
	HF_FLOW_OPEN,
	HF_FLOW_FULL,   /* curl was told to pause: the inbox is full */
	HF_FLOW_PAUSED, /* the user has paused the stream */
	HF_FLOW_BOTH,
	HF_FLOWS
};
enum hf_transfer_flow_event {
	HF_FLOW_PAUSE,  /* the user pauses the stream */
	HF_FLOW_RESUME, /* the user resumes the stream */
	HF_FLOW_FILL,   /* curl is told to pause */
	HF_FLOW_DRAIN,  /* curl is told to go on */
	HF_FLOW_EVENTS
};

/* When a failed request may be sent again. */
enum hf_transfer_retry {
	HF_RETRY_LATER, /* a retry is allowed after a backoff */
	/* The server did not process the request, or the end of a connection interrupted it. */
	HF_RETRY_NOW,
	HF_RETRY_NEVER, /* the failure is permanent */
};

/* A copy of the trusted CAs with a reference count. curl reads the CAs of a transfer until the
 * transfer ends, also if the client has got other CAs meanwhile. */
struct hf_http_ca {
	unsigned refs;
	size_t len;
	char pem[];
};

/* The functions of client.c that a transfer calls when it ends, times out, or can be freed. They
 * are pointers, so that transfer.c knows neither the queue nor the links. */
struct hf_transfer_owner {
	void (*leave)(struct hf_transfer *transfer); /* the transfer has ended */
	/* A timer of the transfer has fired before the transfer ended. */
	void (*timed_out)(struct hf_transfer *transfer);
	/* The user has got the result, so the transfer must be freed. */
	void (*release)(struct hf_transfer *transfer);
};

struct hf_transfer {
	struct hf_http_client *client;
	const struct hf_transfer_owner *owner;
	struct hf_http_pool *pool;       /* the pool that runs the transfer; NULL unless running */
	hf_time started_at;              /* monotonic time of the start */
	struct hf_transfer *prev, *next; /* links in the list of all transfers of the client, in
	                                  * the order of sending */
	enum hf_transfer_state state;
	enum hf_transfer_carrier carrier;
	enum hf_transfer_phase phase;
	enum hf_transfer_flow flow;
	struct hf_http_request request; /* its pointers point into text, or are NULL */
	char *text;                     /* copies of method, target and content type */
	char **headers;                 /* NULL-terminated copies of the header lines */
	char *body;

	struct hf_link *link; /* set while running on a link */
	/* With a link: called when the user has taken bytes of a stream; with curl: NULL. */
	void (*consumed)(struct hf_transfer *transfer);
	struct hf_transfer *link_prev, *link_next; /* links in the list of that link */
	/* Id of the HTTP/2 stream; 0: nghttp2 has not got the request; -1: no stream to reset. */
	int32_t stream_id;
	bool reset;        /* on a link: the server reset the stream */
	const char *fault; /* on a link: why nghttp2 rejected the response; NULL: it did not */
	size_t body_sent;  /* on a link: bytes of the request body that were sent */
	/* On a link: received bytes of a stream by which the HTTP/2 window must still be opened. */
	size_t unconsumed;

	CURL *easy; /* curl's handle; exists from the start with curl until the transfer is freed */
	struct hf_http_ca *ca;
	struct curl_slist *lines;
	char error_text[CURL_ERROR_SIZE];

	int status;
	struct hf_strbuf head;  /* the response headers: "name\0value\0"… */
	struct hf_strbuf inbox; /* the body; for a stream, the bytes not delivered yet */
	size_t received;        /* number of bytes that a stream has received so far */

	struct hf_error err; /* why the transfer failed; code 0: the transfer has not failed */
	enum hf_transfer_retry retry;
	struct hf_task *deliver;
	struct hf_timer *deadline, *idle;
	bool *dead; /* set to true by free while on_deliver runs */
};

struct hf_socket {
	struct hf_http_pool *pool;
	struct hf_socket *prev, *next;
	int fd;
	struct hf_io *io;
	unsigned want;
};

/* A pool: the connections of a client through which its transfers run. New requests go to the
 * client's current pool. If the server of a pool falls silent, the pool is retired: its transfers
 * go on, and it is freed after the last of them. (With HTTP/2 all transfers of a pool share one
 * connection. A request sent after the connection died unnoticed would wait on it too.)
 *
 * Streams have a pool, and so a connection, of their own. For each event of a socket curl looks at
 * every transfer on it. On a shared connection each response would cost a look at every watch, and
 * each watch event a look at every request. */
struct hf_http_pool {
	struct hf_http_client *client;
	struct hf_http_pool *next; /* links in the list of retired pools */
	CURLM *multi;
	struct hf_timer *timer;
	struct hf_task *reap; /* frees a retired pool after its last transfer */
	struct hf_socket *sockets;
	struct hf_link *link;  /* the link for new transfers; NULL: none */
	struct hf_link *links; /* all links of the pool, including those that take no new
	                        * transfers */
	unsigned running;
	hf_time last_byte_at; /* monotonic time of the last byte from the server */
};

/* The address that links connect to. If family is AF_UNSPEC, links cannot be used and curl runs all
 * transfers. */
struct hf_link_target {
	struct sockaddr_storage address;
	socklen_t len;
	bool tls;
	char *authority; /* value of the :authority field of requests */
	char *name;      /* name of the server for SNI and verification */
	char *scheme;
	char *path; /* prefix of each request's target; may be "" */
};

struct hf_http_client {
	struct hf_loop *loop;
	struct hf_link_target target;
	/* Until this monotonic time transfers run on curl. NEVER: the server has no HTTP/2. */
	hf_time link_off_until;
	unsigned generation; /* counts changes of certificates and CAs */
	/* The caller's settings with default limits filled in; this struct owns the texts. */
	struct hf_http_client_spec spec;
	char *prefix;                  /* URL prefix of each request's target */
	char *host_line;               /* "Host: …"; set with tls_server_name */
	struct curl_slist *connect_to; /* curl's list that maps the name to the real host; set
	                                  * with tls_server_name */
	char *bearer_line;
	struct hf_http_ca *ca;         /* NULL: the system's CAs */
	struct hf_http_pool *pool;     /* pool for requests */
	struct hf_http_pool *streamed; /* the pool for streams; NULL: no stream was started yet */
	struct hf_http_pool *retired;
	struct hf_transfer *first, *last; /* the list of all transfers */
	struct hf_transfer *next_queued;  /* the oldest transfer in the queue */
	unsigned in_flight, streams, queued;
};

/* transfer.c */
struct hf_transfer *hf_transfer_create(struct hf_http_client *client,
				       const struct hf_transfer_owner *owner,
				       const struct hf_http_request *request);
void hf_transfer_free(struct hf_transfer *transfer);
void hf_transfer_begin(struct hf_transfer *transfer);
void hf_transfer_prepare(struct hf_transfer *transfer); /* creates the curl handle of a transfer */
void hf_transfer_take_curl_result(struct hf_transfer *transfer, CURLcode result);
/* Links call these functions to deliver a field of the head or trailers, the end of the head, a
 * piece of the body, and the end. Each call may end the transfer. */
void hf_transfer_take_field(struct hf_transfer *transfer, const char *name, const char *value);
void hf_transfer_take_head(struct hf_transfer *transfer);
void hf_transfer_take_body(struct hf_transfer *transfer, const void *bytes, size_t len);
void hf_transfer_take_end(struct hf_transfer *transfer);
/* Ends a transfer whose exchange broke off. seen: the server may have begun to process the
 * request. */
void hf_transfer_break_off(struct hf_transfer *transfer, bool seen, bool retry_now,
			   const char *what);
/* Moves the transfer's phase by the table at enum hf_transfer_phase. */
void hf_transfer_advance(struct hf_transfer *transfer, enum hf_transfer_event event);
/* True if the transfer's deadline has passed, even if its timer has not run yet. Such a request
 * must not be sent. */
bool hf_transfer_is_due(const struct hf_transfer *transfer);

/* Accepts NULL; returns NULL. */
struct hf_http_ca *hf_http_ca_unref(struct hf_http_ca *ca);

/* pool.c */
struct hf_http_pool *hf_http_pool_create(struct hf_http_client *client);
/* Every transfer must have left the pool. Accepts NULL; returns NULL. */
struct hf_http_pool *hf_http_pool_destroy(struct hf_http_pool *pool);
void hf_http_pool_add(struct hf_http_pool *pool, struct hf_transfer *transfer);
/* Starts a transfer that the pool counts already: on a link if possible, else with curl. */
void hf_http_pool_place(struct hf_http_pool *pool, struct hf_transfer *transfer);
void hf_http_pool_add_curl(struct hf_http_pool *pool, struct hf_transfer *transfer);
void hf_http_pool_remove(struct hf_transfer *transfer);

/* link_target.c: whether a client may use links, and to which address. */
struct hf_link_url {
	const char *scheme, *host, *port, *path;
	size_t path_len;
};
void hf_link_target_init(struct hf_link_target *target, const struct hf_http_client_spec *spec,
			 const struct hf_link_url *url);
void hf_link_target_release(struct hf_link_target *target);

/* Sets the TCP keepalive options that all client connections use. */
void hf_http_set_keepalive(int fd);

#endif
