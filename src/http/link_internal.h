/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_LINK_INTERNAL_H
#define HF_HTTP_LINK_INTERNAL_H

#include "http/client_internal.h"

#include <nghttp2/nghttp2.h>

/* A link is one HTTP/2 connection without curl. (For each event of a socket curl looks at every
 * transfer that shares it.) A turn of the loop reads once, delivers what came, and writes the
 * requests of that turn at once.
 *
 * link.c: lifetime and socket. link_tls.c: TLS between socket and frames. link_h2.c: the frames.
 * link_target.c: the address.
 *
 * A link belongs to its pool. The pool's current link gets the new transfers, until it fails, its
 * server sends GOAWAY, the certificates change, or a stream finds no room. A task frees the link
 * after its last transfer. If the server does not support HTTP/2, or the TLS handshake fails, curl
 * takes over: so curl alone judges certificates, and its error texts are better. */

enum hf_link_state { HF_LINK_CONNECTING, HF_LINK_HANDSHAKE, HF_LINK_OPEN, HF_LINK_CLOSED };

/* Most bytes of frames that wait for the kernel; beyond it no more frames are produced. */
#define HF_LINK_OUT_BYTES_MAX ((size_t)256 * 1024)
#define HF_LINK_READ_BYTES ((size_t)32 * 1024)

struct hf_link_tls;

struct hf_link {
	struct hf_http_pool *pool;
	struct hf_link *next; /* next link in the list of the pool */
	unsigned generation;  /* the client's certificate generation at creation */
	enum hf_link_state state;
	int fd;
	struct hf_io *io;
	struct hf_link_tls *tls; /* NULL: a connection without TLS */
	nghttp2_session *session;
	struct hf_timer *connect_timer; /* limits the time until the link is open */
	struct hf_timer
		*more_timer; /* due at once if the kernel may hold more bytes; runs after all
	                            * other due timers */
	struct hf_task *flush, *reap;
	struct hf_transfer *first, *last; /* all transfers of the link; those not submitted to
	                                   * nghttp2 are at the end */
	struct hf_transfer *unsent;       /* the first transfer that was not submitted to nghttp2 */
	unsigned transfers;
	struct hf_strbuf frames;    /* HTTP/2 frames that are not encrypted yet */
	struct hf_strbuf out;       /* encrypted bytes that the kernel has not taken yet */
	bool going_away;            /* the server sent GOAWAY */
	struct hf_error goaway_err; /* the reason that a GOAWAY of either side gave */
	struct hf_error err;        /* the error that ended the link */
};

/* link.c. Creates a link and starts connecting; errors are reported from the loop. */
struct hf_link *hf_link_create(struct hf_http_pool *pool);
struct hf_link *hf_link_destroy(struct hf_link *link); /* without transfers; accepts NULL, returns
                                                        * NULL */
void hf_link_add(struct hf_link *link, struct hf_transfer *transfer);
void hf_link_remove(struct hf_transfer *transfer);
/* After this call the link takes no new transfers. It is freed after its last transfer. */
void hf_link_retire(struct hf_link *link);

/* link_h2.c */
void hf_link_h2_start(struct hf_link *link);
void hf_link_h2_stop(struct hf_link *link);
/* Submits the transfer to nghttp2. Never ends the transfer. Returns false, with transfer->err set,
 * if it cannot be sent. */
bool hf_link_h2_submit(struct hf_link *link, struct hf_transfer *transfer);
/* Withdraws a submitted transfer before nghttp2 has sent the request head. */
void hf_link_h2_take_back(struct hf_link *link, struct hf_transfer *transfer);
/* True if a further stream would have to wait until another one ends. */
bool hf_link_h2_is_full(const struct hf_link *link);
/* Gives received bytes to nghttp2. Negative: the link cannot go on. */
int hf_link_h2_receive(struct hf_link *link, const void *bytes, size_t len);
/* Appends the frames that nghttp2 wants to send to link->frames. Negative: the link cannot go
 * on. */
int hf_link_h2_make_frames(struct hf_link *link);

/* link_tls.c. Returns NULL if the CAs or the client certificate cannot be read. */
struct hf_link_tls *hf_link_tls_create(const struct hf_http_client *client);
struct hf_link_tls *hf_link_tls_destroy(struct hf_link_tls *tls); /* accepts NULL; returns NULL */
enum hf_link_tls_end {
	HF_LINK_TLS_MORE,  /* the handshake waits for bytes from the server */
	HF_LINK_TLS_OPEN,  /* the handshake is done, and HTTP/2 was agreed */
	HF_LINK_TLS_OTHER, /* the handshake is done, but the server does not support HTTP/2 */
	HF_LINK_TLS_FAILED,
};
/* Continues the handshake; appends the bytes to send to out. */
enum hf_link_tls_end hf_link_tls_handshake(struct hf_link_tls *tls, int fd, struct hf_strbuf *out);
/* Encrypts frames and appends the bytes to out. Returns false if the connection cannot go on. */
bool hf_link_tls_write(struct hf_link_tls *tls, struct hf_strbuf *frames, struct hf_strbuf *out);
/* Reads up to size decrypted bytes. Returns 0 if no more bytes are there now. A negative result
 * means that the connection ended; err is then HF_E_UNAVAILABLE. */
ssize_t hf_link_tls_read(struct hf_link_tls *tls, void *bytes, size_t size, struct hf_error *err);

#endif
