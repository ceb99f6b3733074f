/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_CLIENT_INTERNAL_H
#define HF_HTTP_CLIENT_INTERNAL_H

#include "base/strbuf.h"
#include "http/client.h"

#include <curl/curl.h>
#include <sys/socket.h>

/*
 * What client.c (the queue), pool.c (where transfers run), link.c (HTTP/2 of our own) and
 * transfer.c (one request) share.
 *
 * curl calls back from inside its own functions, which must not be called from
 * there.  So its callbacks only fill buffers and post the transfer's task; users
 * are called from that task and may do anything, destroying the client included.
 */

/* Received for a stream and not yet handed over: beyond it curl is told to hold back.  On a link
 * this is the stream's window, which opens again as bytes are handed over. */
#define HF_TRANSFER_INBOX_BYTES_MAX ((size_t)64 * 1024)
#define HF_TRANSFER_WINDOW_BYTES ((size_t)256 * 1024)

enum hf_transfer_state { HF_TRANSFER_QUEUED, HF_TRANSFER_RUNNING, HF_TRANSFER_DONE };

/* What is trusted: a request keeps to what was so when it started; curl looks into it until then. */
struct hf_http_ca {
	unsigned refs;
	size_t len;
	char pem[];
};

struct hf_transfer {
	struct hf_http_client *client;
	struct hf_http_pool *pool;       /* while running */
	hf_time started_at;              /* monotonic */
	struct hf_transfer *prev, *next; /* of all of the client's, in order of sending */
	enum hf_transfer_state state;
	struct hf_http_request request; /* pointers into text, or NULL */
	char *text;                     /* method, target, content type */
	char **headers;                 /* NULL-terminated copies */
	char *body;

	struct hf_link *link;                      /* running on a connection of our own */
	struct hf_transfer *link_prev, *link_next; /* on that one */
	int32_t stream_id;                         /* 0: not given to nghttp2 */
	bool linked;                               /* a link was, or is, where it runs */
	bool sent, ended;  /* on a link: its head is on its way; the answer is whole */
	bool reset;        /* on a link: by the server */
	const char *fault; /* on a link: what of the answer nghttp2 did not take; or NULL */
	size_t body_sent;  /* on a link, as is this: */
	size_t unconsumed; /* of a stream: taken, and its window not opened again for it */

	CURL *easy; /* while running with curl, and until freed */
	struct hf_http_ca *ca;
	struct curl_slist *lines;
	char error_text[CURL_ERROR_SIZE];

	int status;
	bool head_done, head_told;
	struct hf_strbuf head;  /* "name\0value\0"… */
	struct hf_strbuf inbox; /* the body, or of a stream what is not handed over yet */
	size_t received;        /* of a stream, in all */
	bool paused;            /* by the user */
	bool held;              /* curl was told to hold back */

	struct hf_error err; /* why it failed; code 0: it did not */
	bool retry_now, permanent;
	struct hf_task *deliver;
	struct hf_timer *deadline, *idle;
	bool *dead; /* set by free while a delivery runs */
};

struct hf_socket {
	struct hf_http_pool *pool;
	struct hf_socket *prev, *next;
	int fd;
	struct hf_io *io;
	unsigned want;
};

/*
 * The connections of a client.  There is one pool that new requests go to; one whose server has
 * fallen silent is retired: what runs in it goes on, and when that is over it goes too.  (On
 * HTTP/2 everything of a pool shares one connection, so what is sent after a connection died unseen
 * would wait on it as well.)
 *
 * Streams have a pool, and so a connection, of their own: for each event of a socket curl looks at
 * every transfer on it, and a dozen watches would be looked at for each answer, as all that is
 * under way would for each word of a watch.
 */
struct hf_http_pool {
	struct hf_http_client *client;
	struct hf_http_pool *next; /* retired ones */
	CURLM *multi;
	struct hf_timer *timer;
	struct hf_task *reap; /* posted when a retired pool has become empty */
	struct hf_socket *sockets;
	struct hf_link *link;  /* where transfers go; NULL: none is connected */
	struct hf_link *links; /* all of them: some may be on their way out */
	unsigned running;
	hf_time heard_at; /* monotonic: when a byte came last */
};

/* Where a connection of our own goes.  family AF_UNSPEC: nowhere, curl does it. */
struct hf_link_target {
	struct sockaddr_storage address;
	socklen_t len;
	bool tls;
	char *authority; /* of requests */
	char *name;      /* to ask for and to verify */
	char *scheme;
	char *path; /* before each target; "" */
};

struct hf_http_client {
	struct hf_loop *loop;
	struct hf_link_target target;
	hf_time link_off_until;          /* monotonic: this server did not take our HTTP/2 */
	unsigned generation;             /* of certificates and CA */
	struct hf_http_client_spec spec; /* limits filled in; texts are this struct's */
	char *prefix;                    /* what targets are put behind */
	char *host_line;                 /* "Host: …", with tls_server_name */
	struct curl_slist *connect_to;   /* with tls_server_name */
	char *bearer_line;
	struct hf_http_ca *ca;         /* NULL: the system's */
	struct hf_http_pool *pool;     /* where requests start */
	struct hf_http_pool *streamed; /* where streams do; NULL: none was asked for yet */
	struct hf_http_pool *retired;
	struct hf_transfer *first, *last; /* all transfers */
	struct hf_transfer *next_queued;  /* the oldest that waits */
	unsigned in_flight, streams, queued;
};

/* transfer.c */
struct hf_transfer *hf_transfer_create(struct hf_http_client *client,
				       const struct hf_http_request *request);
void hf_transfer_free(struct hf_transfer *transfer);
void hf_transfer_begin(struct hf_transfer *transfer);
void hf_transfer_prepare(struct hf_transfer *transfer); /* for curl */
void hf_transfer_finished(struct hf_transfer *transfer, CURLcode result);
/* What a link brings: a field of a head or of trailers, a head's end, a piece of body, the end.
 * Each may end the transfer. */
void hf_transfer_take_field(struct hf_transfer *transfer, const char *name, const char *value);
void hf_transfer_take_head(struct hf_transfer *transfer);
void hf_transfer_take_body(struct hf_transfer *transfer, const void *bytes, size_t len);
void hf_transfer_take_end(struct hf_transfer *transfer);
/* It broke off.  seen: the server may have begun with it. */
void hf_transfer_broke(struct hf_transfer *transfer, bool seen, bool retry_now, const char *what);
/* Its time is over, though its timer has not run yet: it must not be sent any more. */
bool hf_transfer_is_due(const struct hf_transfer *transfer);
void hf_transfer_fail(struct hf_transfer *transfer, int code, const char *what);

/* client.c */
struct hf_http_ca *hf_http_ca_unref(struct hf_http_ca *ca); /* NULL is fine; returns NULL */
void hf_http_client_start(struct hf_transfer *transfer);
/* Take it from curl or from the queue; starts others in its place. */
void hf_http_client_leave(struct hf_transfer *transfer);
/* A transfer that is still running got no answer in its time: retire its pool if no byte came
 * to it for silence_max. */
void hf_http_client_suspect(struct hf_transfer *transfer);

/* pool.c */
struct hf_http_pool *hf_http_pool_create(struct hf_http_client *client);
/* Its transfers must have left. */
struct hf_http_pool *hf_http_pool_destroy(struct hf_http_pool *pool); /* NULL is fine */
void hf_http_pool_add(struct hf_http_pool *pool, struct hf_transfer *transfer);
/* By a link where that can be, else by curl; a transfer that the pool counts already. */
void hf_http_pool_place(struct hf_http_pool *pool, struct hf_transfer *transfer);
void hf_http_pool_add_curl(struct hf_http_pool *pool, struct hf_transfer *transfer);
void hf_http_pool_remove(struct hf_transfer *transfer);

/* link_target.c: whether and where a client may have links. */
struct hf_link_url {
	const char *scheme, *host, *port, *path;
	size_t path_len;
};
void hf_link_target_init(struct hf_link_target *target, const struct hf_http_client_spec *spec,
			 const struct hf_link_url *url);
void hf_link_target_release(struct hf_link_target *target);

/* What all connections of this program want of the kernel. */
void hf_http_set_keepalive(int fd);

#endif
