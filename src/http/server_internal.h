/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_SERVER_INTERNAL_H
#define HF_HTTP_SERVER_INTERNAL_H

#include "base/vec.h"
#include "http/server.h"
#include "http/target.h"

#include <microhttpd.h>

/* Shared by server.c (libmicrohttpd and the loop) and exchange.c (the functions for handlers).
 *
 * libmicrohttpd calls back from inside MHD_run, which is not re-entrant. So its callbacks never
 * call a handler. They note in the exchange what happened, queue the exchange and suspend the
 * connection. One task calls the handlers from the queue. A handler's response resumes the
 * connection, and another task runs MHD_run. */

#define HF_HTTP_RESPONSE_HEADERS_MAX 32 /* most headers of a response; Holdfast sets only a few */

struct hf_exchange {
	struct hf_http_server *server;
	struct hf_exchange *prev, *next;   /* links in the server's list of all exchanges */
	struct hf_exchange *queued_behind; /* next in the queue of deliveries */
	bool queued;

	/* libmicrohttpd's handle of the connection; NULL after libmicrohttpd has freed the
	 * request */
	struct MHD_Connection *connection;
	bool suspended;
	bool answering; /* server->answering counts this exchange */
	/* Reports that the client has left; libmicrohttpd does not watch a suspended connection. */
	struct hf_io *hangup;

	/* the request */
	struct hf_target target;
	char *method;
	/* The request's headers; one block of memory holds the array and its texts. */
	struct hf_target_pair *headers;
	size_t headers_count;
	struct hf_strbuf body;
	size_t discarded; /* bytes of a refused body */
	struct hf_error refused;

	/* the handler's part */
	bool handed; /* the exchange was given to the handler */
	bool ended;  /* the handle is invalid for the handler */
	/* True: the client has left or the handler has aborted, so nothing more is sent. */
	bool cut;
	hf_exchange_fn on_closed, on_drained;
	void *closed_arg, *drained_arg;

	/* the response */
	HF_VEC(struct hf_target_pair) response_headers; /* the texts are owned by this struct */
	struct MHD_Response *response; /* created, not yet given to libmicrohttpd */
	int status;
	bool begun;
	struct hf_strbuf out; /* bytes of a stream; the first out_head of them are sent */
	size_t out_head;
	bool starved; /* true: a write did not fit, so on_drained must be called later */
	bool drained; /* true: the stream has room again, so on_drained must be called now */
};

/* A connection; libmicrohttpd keeps this struct as the socket's context. */
struct hf_http_peer {
	struct hf_http_peer *prev, *next; /* links in the list of untrusted connections, oldest
	                                   * first */
	int fd;
	hf_time since;             /* monotonic time when the client connected */
	bool before_first_request; /* before the first request: a TLS handshake may be running */
	bool is_untrusted;
};

struct hf_http_server {
	struct hf_loop *loop;
	/* The caller's settings with default limits filled in. Texts that the settings point to are
	 * not kept. */
	struct hf_http_server_spec spec;
	struct MHD_Daemon *daemon;
	uint16_t port;
	char *unix_path;
	bool quiet;
	struct hf_io *io;
	struct hf_timer *timer;
	struct hf_task *run, *deliver;
	struct hf_exchange *all;
	struct hf_exchange *queue, **queue_tail;
	size_t live;                 /* number of handles that handlers hold */
	size_t before_first_request; /* number of connections before their first request */
	size_t answering;            /* number of responses that libmicrohttpd is sending */
	unsigned runs_without_event; /* runs of MHD_run since its epoll fd reported an event */
	size_t bodies_bytes;         /* bytes of all request bodies held */
	bool *dead;                  /* set to true by destroy while on_deliver runs */
	struct hf_http_peer *untrusted, *untrusted_last;
	unsigned untrusted_count;
	struct hf_timer *untrusted_timer;
};

void hf_exchange_queue(struct hf_exchange *ex);
void hf_exchange_resume(struct hf_exchange *ex);
void hf_exchange_free(struct hf_exchange *ex);
/* untrusted.c: the list of untrusted connections. fd is -1 if it is unknown.
 * hf_http_peers_cut_expired cuts the expired connections. */
struct hf_http_peer *hf_http_peer_create(struct hf_http_server *server, int fd);
void hf_http_peer_note_request(struct hf_http_server *server, struct hf_http_peer *peer);
void hf_http_peer_end_trust(struct hf_http_server *server, struct hf_http_peer *peer);
void hf_http_peer_destroy(struct hf_http_server *server, struct hf_http_peer *peer);
void hf_http_peers_cut_expired(void *server_arg);
/* listen.c: creates a listening socket; returns its fd and, for TCP, its port. */
int hf_http_listen(const struct hf_http_server_spec *spec, int *ret_fd, uint16_t *ret_port,
		   struct hf_error *err) HF_MUST_CHECK;

#endif
