/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_LINK_INTERNAL_H
#define HF_HTTP_LINK_INTERNAL_H

#include "http/client_internal.h"

#include <nghttp2/nghttp2.h>

/*
 * A link is one connection of HTTP/2 without curl, which for each event of a socket looks at
 * every transfer that shares it.  Here a turn of the loop reads once, hands on what came, and
 * writes once what all requests of that turn have to say.
 *
 * link.c has its life and the socket, link_tls.c what is between socket and frames,
 * link_h2.c the frames, link_target.c where it goes.
 *
 * It belongs to its pool.  A new one is the pool's current one, where transfers go, until it
 * ends, its server goes away or the certificates change; it is freed from a task, when the last
 * transfer has left.  A server that turns out not to speak HTTP/2, or that cannot be agreed
 * with about TLS, is left to curl, which has the last word on certificates and the better texts.
 */

enum hf_link_state { HF_LINK_CONNECTING, HF_LINK_HANDSHAKE, HF_LINK_OPEN, HF_LINK_CLOSED };

/* Written by us and not taken by the kernel: beyond it no more frames are made. */
#define HF_LINK_OUT_BYTES_MAX ((size_t)256 * 1024)
#define HF_LINK_READ_BYTES ((size_t)32 * 1024)

struct hf_link_tls;

struct hf_link {
	struct hf_http_pool *pool;
	struct hf_link *next; /* of the pool's */
	unsigned generation;  /* of the client's certificates, when it was made */
	enum hf_link_state state;
	int fd;
	struct hf_io *io;
	struct hf_link_tls *tls; /* NULL: none */
	nghttp2_session *session;
	struct hf_timer *patience; /* until it is open */
	struct hf_timer *more;     /* the kernel may have more; after all others that are due */
	struct hf_task *flush, *reap;
	struct hf_transfer *first, *last; /* all on it; those not yet given to nghttp2 last */
	struct hf_transfer *unsent;       /* the first of these */
	unsigned transfers;
	struct hf_strbuf frames; /* made, not yet encrypted */
	struct hf_strbuf out;    /* for the kernel */
	bool going_away;         /* the server said GOAWAY */
	struct hf_error goodbye; /* what a GOAWAY of either side gave as its reason */
	struct hf_error err;     /* why it cannot go on */
};

/* link.c.  Connects; what goes wrong is told from the loop. */
struct hf_link *hf_link_create(struct hf_http_pool *pool);
struct hf_link *hf_link_destroy(struct hf_link *link); /* NULL is fine; without transfers */
void hf_link_add(struct hf_link *link, struct hf_transfer *transfer);
void hf_link_remove(struct hf_transfer *transfer);
/* It is its pool's current one no more: what runs on it goes on, then it is freed. */
void hf_link_retire(struct hf_link *link);
/* The bytes of a stream that were taken are handed over: its window may open again. */
void hf_link_consumed(struct hf_transfer *transfer);

/* link_h2.c */
void hf_link_h2_start(struct hf_link *link);
void hf_link_h2_stop(struct hf_link *link);
/* Give it to nghttp2.  Never ends the transfer: false, with its err, where it cannot be sent. */
bool hf_link_h2_submit(struct hf_link *link, struct hf_transfer *transfer);
/* A transfer whose head nghttp2 has not sent: it is forgotten. */
void hf_link_h2_take_back(struct hf_link *link, struct hf_transfer *transfer);
/* Another stream would wait until one of those there are is over. */
bool hf_link_h2_is_full(const struct hf_link *link);
/* What was read.  Negative: the link cannot go on. */
int hf_link_h2_take(struct hf_link *link, const void *bytes, size_t len);
/* Frames that are to be sent, behind `frames`.  Negative: the link cannot go on. */
int hf_link_h2_make(struct hf_link *link);

/* link_tls.c.  NULL: what the client trusts or shows cannot be read. */
struct hf_link_tls *hf_link_tls_create(const struct hf_http_client *client);
struct hf_link_tls *hf_link_tls_destroy(struct hf_link_tls *tls); /* NULL is fine */
enum hf_link_tls_end {
	HF_LINK_TLS_MORE,  /* it waits for the server */
	HF_LINK_TLS_OPEN,  /* and HTTP/2 it is */
	HF_LINK_TLS_OTHER, /* the server does not speak HTTP/2 */
	HF_LINK_TLS_FAILED,
};
/* What it has to say is put into out. */
enum hf_link_tls_end hf_link_tls_handshake(struct hf_link_tls *tls, int fd, struct hf_strbuf *out);
/* Encrypted: from frames to out; false: it cannot go on. */
bool hf_link_tls_write(struct hf_link_tls *tls, struct hf_strbuf *frames, struct hf_strbuf *out);
/* Up to size bytes of what the server said; 0: nothing more is there; negative: the end, with
 * err (HF_E_UNAVAILABLE; "closed" where it is an orderly one). */
ssize_t hf_link_tls_read(struct hf_link_tls *tls, void *bytes, size_t size, struct hf_error *err);

#endif
