/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_SERVER_INTERNAL_H
#define HF_HTTP_SERVER_INTERNAL_H

#include "base/vec.h"
#include "http/server.h"
#include "http/target.h"

#include <microhttpd.h>

/*
 * What server.c (libmicrohttpd and the loop) and exchange.c (what handlers call)
 * share.
 *
 * libmicrohttpd calls back from inside MHD_run, which is not re-entrant.  So its
 * callbacks never call a handler: they note what happened in the exchange, put it
 * in the queue, and suspend the connection; a task delivers from the queue; what
 * handlers do resumes the connection, and another task runs MHD_run.
 */

#define HF_HTTP_RESPONSE_HEADERS_MAX 32 /* this program's own: a handful */

struct hf_exchange {
	struct hf_http_server *server;
	struct hf_exchange *prev, *next;   /* of all of the server's */
	struct hf_exchange *queued_behind; /* next in the queue of deliveries */
	bool queued;

	/* libmicrohttpd's side; NULL once it has let go of the request */
	struct MHD_Connection *connection;
	bool suspended;
	bool answering;       /* counted in the server's */
	struct hf_io *hangup; /* a suspended connection does not notice that its client left */

	/* the request */
	struct hf_target target;
	char *method;
	struct hf_target_pair *headers; /* one block with the texts */
	size_t headers_count;
	struct hf_strbuf body;
	size_t discarded; /* bytes of a body that is refused */
	struct hf_error refused;

	/* the handler's side */
	bool handed; /* to the handler */
	bool ended;  /* the handle is dead */
	bool cut;    /* the client left, or the handler aborted: no more is sent */
	hf_exchange_fn on_closed, on_drained;
	void *closed_arg, *drained_arg;

	/* the answer */
	HF_VEC(struct hf_target_pair) answer_headers; /* texts are this struct's */
	struct MHD_Response *response;                /* made, not yet given to libmicrohttpd */
	int status;
	bool begun;
	struct hf_strbuf out; /* of a stream; sent up to out_head */
	size_t out_head;
	bool starved; /* a write did not fit: on_drained is due */
	bool drained; /* … and now is */
};

/* What is known of a connection; libmicrohttpd keeps it as the socket's context. */
struct hf_http_peer {
	struct hf_http_peer *prev, *next; /* of the strangers, oldest first */
	int fd;
	hf_time since; /* monotonic */
	bool greeting; /* before its first request: a handshake may be on */
	bool stranger;
};

struct hf_http_server {
	struct hf_loop *loop;
	struct hf_http_server_spec spec; /* limits filled in; texts are not kept */
	struct MHD_Daemon *daemon;
	uint16_t port;
	char *unix_path;
	bool quiet;
	struct hf_io *io;
	struct hf_timer *timer;
	struct hf_task *run, *deliver;
	struct hf_exchange *all;
	struct hf_exchange *queue, **queue_tail;
	size_t live;          /* handles that handlers hold */
	size_t greeting;      /* connections before their first request */
	size_t answering;     /* answers that libmicrohttpd has and is not done with */
	unsigned runs_untold; /* of MHD_run since its epoll fd said something */
	size_t bodies_bytes;  /* of all request bodies held */
	bool *dead;           /* set by destroy while a delivery runs */
	struct hf_http_peer *strangers, *strangers_last;
	unsigned strangers_count;
	struct hf_timer *strangers_timer;
};

void hf_http_server_wake(struct hf_http_server *server);
void hf_exchange_queue(struct hf_exchange *ex);
void hf_exchange_resume(struct hf_exchange *ex);
void hf_exchange_free(struct hf_exchange *ex);
/* The content reader of streams, called by libmicrohttpd. */
ssize_t hf_exchange_read(void *cls, uint64_t pos, char *buf, size_t max);
/* peer.c; fd -1: not known.  tick cuts strangers whose time is over. */
struct hf_http_peer *hf_http_peer_create(struct hf_http_server *server, int fd);
void hf_http_peer_greeted(struct hf_http_server *server, struct hf_http_peer *peer);
void hf_http_peer_destroy(struct hf_http_server *server, struct hf_http_peer *peer);
void hf_http_peers_tick(void *server_arg);
/* Listening sockets (listen.c): an fd, and the port where it is TCP. */
int hf_http_listen(const struct hf_http_server_spec *spec, int *ret_fd, uint16_t *ret_port,
		   struct hf_error *err) HF_MUST_CHECK;

#endif
