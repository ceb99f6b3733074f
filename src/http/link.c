/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The lifetime of a link (see link_internal.h) and its socket: connecting, handshake, reading,
 * writing and closing. Invariant: fail_link never runs inside nghttp2, because it ends all
 * transfers of the link. */
#include "http/link_internal.h"

#include "base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Most bytes read in one turn of the loop, before other timers and fds get theirs. */
#define TURN_BYTES_MAX ((size_t)1 << 20)
#define PLAIN_BYTES ((size_t)16384) /* bytes of the largest TLS record */
/* After a failed TLS handshake links are tried again after this time, because certificates are
 * replaced. A server without HTTP/2 is never tried again. */
#define TLS_OFF_TIME HF_MINUTE

/* --- the transfers of a link --- */

static void list_add(struct hf_link *link, struct hf_transfer *transfer)
{
	transfer->link_prev = link->last;
	transfer->link_next = NULL;
	if (link->last)
		link->last->link_next = transfer;
	else
		link->first = transfer;
	link->last = transfer;
	link->transfers++;
	if (!link->unsent)
		link->unsent = transfer;
}

static void list_remove(struct hf_link *link, struct hf_transfer *transfer)
{
	if (link->unsent == transfer)
		link->unsent = transfer->link_next;
	if (transfer->link_prev)
		transfer->link_prev->link_next = transfer->link_next;
	else
		link->first = transfer->link_next;
	if (transfer->link_next)
		transfer->link_next->link_prev = transfer->link_prev;
	else
		link->last = transfer->link_prev;
	transfer->link_prev = transfer->link_next = NULL;
	transfer->link = NULL;
	link->transfers--;
}

static bool is_sent(const struct hf_transfer *transfer)
{
	return transfer->phase >= HF_EXCHANGE_SENT;
}

static bool is_current(const struct hf_link *link)
{
	return link->pool->link == link;
}

static void leave_pool(struct hf_link *link)
{
	if (is_current(link))
		link->pool->link = NULL;
}

static void reap_if_done(struct hf_link *link)
{
	if (!is_current(link) && !link->first)
		hf_task_post(link->reap);
}

/* Opens a stream's window again for the bytes that were delivered. */
static void reopen_window(struct hf_transfer *transfer)
{
	struct hf_link *link = transfer->link;

	if (!link || !link->session || transfer->unconsumed == 0)
		return;
	(void)nghttp2_session_consume_stream(link->session, transfer->stream_id,
					     transfer->unconsumed);
	transfer->unconsumed = 0;
	hf_task_post(link->flush);
}

void hf_link_add(struct hf_link *link, struct hf_transfer *transfer)
{
	transfer->link = link;
	transfer->carrier = HF_CARRIER_LINK;
	transfer->consumed = reopen_window;
	list_add(link, transfer);
	if (link->state == HF_LINK_OPEN)
		hf_task_post(link->flush);
}

void hf_link_remove(struct hf_transfer *transfer)
{
	struct hf_link *link = transfer->link;
	bool over = transfer->phase == HF_EXCHANGE_COMPLETE &&
		    transfer->body_sent == transfer->request.body_len;

	/* nghttp2 keeps a submitted request that the server does not allow yet, even after a reset.
	 * The link therefore takes no new transfers; a new link may be allowed to send. */
	if (link->state == HF_LINK_OPEN && transfer->stream_id > 0 &&
	    transfer->phase == HF_EXCHANGE_UNSENT)
		leave_pool(link);
	list_remove(link, transfer);
	if (transfer->stream_id > 0 && link->session) {
		(void)nghttp2_session_set_stream_user_data(link->session, transfer->stream_id,
							   NULL);
		if (!over)
			(void)nghttp2_submit_rst_stream(link->session, NGHTTP2_FLAG_NONE,
							transfer->stream_id, NGHTTP2_CANCEL);
		hf_task_post(link->flush);
	}
	reap_if_done(link);
}

/* --- the end of a link --- */

static void close_socket(struct hf_link *link)
{
	link->state = HF_LINK_CLOSED;
	link->io = hf_io_destroy(link->io);
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	hf_timer_disarm(link->connect_timer);
	hf_timer_disarm(link->more_timer);
}

void hf_link_retire(struct hf_link *link)
{
	leave_pool(link);
	reap_if_done(link);
}

/* Ends the link and all its transfers with link->err. Must not be called from inside nghttp2. */
static void fail_link(struct hf_link *link)
{
	const char *why = link->goaway_err.code != 0 ? link->goaway_err.text : link->err.text;

	leave_pool(link);
	close_socket(link);
	while (link->first) {
		struct hf_transfer *transfer = link->first;

		transfer->stream_id = -1; /* the socket is closed, so there is no stream to reset */
		hf_transfer_break_off(transfer, is_sent(transfer),
				      link->going_away && is_sent(transfer), why);
	}
	hf_task_post(link->reap);
}

/* Moves all transfers to curl; none of them was sent yet. */
static void hand_over_to_curl(struct hf_link *link, hf_time off_until)
{
	link->pool->client->link_off_until = off_until;
	leave_pool(link);
	close_socket(link);
	while (link->first) {
		struct hf_transfer *transfer = link->first;

		list_remove(link, transfer);
		transfer->carrier = HF_CARRIER_NONE;
		hf_http_pool_add_curl(link->pool, transfer);
	}
	hf_task_post(link->reap);
}

static void on_connect_timeout(void *arg)
{
	struct hf_link *link = arg;

	if (link->err.code == 0)
		hf_error_set(&link->err, HF_E_UNAVAILABLE,
			     link->state == HF_LINK_HANDSHAKE ? "no TLS handshake with %s in time"
							      : "not connected to %s in time",
			     link->pool->client->target.authority);
	fail_link(link);
}

static void on_reap(void *arg)
{
	hf_link_destroy(arg);
}

struct hf_link *hf_link_destroy(struct hf_link *link)
{
	struct hf_link **at;

	if (!link)
		return NULL;
	hf_assert(!link->first);
	leave_pool(link);
	close_socket(link);
	for (at = &link->pool->links; *at != link; at = &(*at)->next)
		;
	*at = link->next;
	hf_link_h2_stop(link);
	hf_link_tls_destroy(link->tls);
	hf_timer_destroy(link->connect_timer);
	hf_timer_destroy(link->more_timer);
	hf_task_destroy(link->flush);
	hf_task_destroy(link->reap);
	hf_strbuf_release(&link->frames);
	hf_strbuf_release(&link->out);
	free(link);
	return NULL;
}

/* --- sending --- */

static int write_out(struct hf_link *link)
{
	size_t at = 0;

	while (at < link->out.len) {
		ssize_t n = send(link->fd, link->out.data + at, link->out.len - at, MSG_NOSIGNAL);

		if (n >= 0) {
			at += (size_t)n;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			break;
		} else if (errno != EINTR) {
			return hf_error_set(&link->err, HF_E_UNAVAILABLE, "cannot send: %s",
					    strerror(errno));
		}
	}
	hf_strbuf_consume(&link->out, at);
	hf_io_want(link->io, HF_IO_READ | (link->out.len > 0 ? (unsigned)HF_IO_WRITE : 0u));
	return 0;
}

/* Ends the use of this connection for new requests. Unsent transfers move to another connection;
 * the others may finish on this one. */
static void move_unsent(struct hf_link *link)
{
	struct hf_http_pool *pool = link->pool;
	struct hf_transfer *next;

	leave_pool(link);
	for (struct hf_transfer *transfer = link->first; transfer; transfer = next) {
		next = transfer->link_next;
		if (is_sent(transfer))
			continue;
		if (transfer->stream_id > 0)
			hf_link_h2_take_back(link, transfer);
		list_remove(link, transfer);
		hf_http_pool_place(pool, transfer);
	}
	reap_if_done(link);
}

/* Submits the unsent transfers to nghttp2. After a suspension of this process, tasks may run before
 * overdue timers. So a transfer past its deadline is left out; its timer ends it. */
static void submit_unsent(struct hf_link *link)
{
	/* Requests are not allowed after a GOAWAY, or after 2^30 streams have used up the stream
	 * ids. */
	if (link->unsent && !nghttp2_session_check_request_allowed(link->session))
		move_unsent(link);
	while (link->unsent) {
		struct hf_transfer *transfer = link->unsent;

		link->unsent = transfer->link_next;
		if (hf_transfer_is_due(transfer))
			continue;
		if (!hf_link_h2_submit(link, transfer)) {
			transfer->stream_id = -1;
			hf_transfer_break_off(transfer, false, false, "cannot be sent");
		}
	}
}

static int send_all(struct hf_link *link)
{
	int rc = hf_link_h2_make_frames(link);

	if (rc == 0 && link->tls && link->frames.len > 0 &&
	    !hf_link_tls_write(link->tls, &link->frames, &link->out))
		return hf_error_set(&link->err, HF_E_UNAVAILABLE, "TLS failed while encrypting");
	if (rc == 0 && !link->tls) {
		hf_strbuf_add(&link->out, link->frames.data, link->frames.len);
		hf_strbuf_clear(&link->frames);
	}
	return rc == 0 ? write_out(link) : rc;
}

static void on_flush(void *arg)
{
	struct hf_link *link = arg;

	if (link->state != HF_LINK_OPEN)
		return;
	submit_unsent(link);
	if (send_all(link) < 0)
		fail_link(link);
	else if (!nghttp2_session_want_read(link->session) &&
		 !nghttp2_session_want_write(link->session)) {
		hf_error_set(&link->err, HF_E_UNAVAILABLE, "the HTTP/2 connection has ended");
		fail_link(link);
	}
}

/* --- connecting --- */

static void open_link(struct hf_link *link)
{
	link->state = HF_LINK_OPEN;
	hf_timer_disarm(link->connect_timer);
	hf_link_h2_start(link);
	hf_task_post(link->flush);
}

static void continue_handshake(struct hf_link *link)
{
	/* If link->tls is NULL, the certificates could not be read; curl reports why. */
	enum hf_link_tls_end end = link->tls
					   ? hf_link_tls_handshake(link->tls, link->fd, &link->out)
					   : HF_LINK_TLS_FAILED;
	hf_time now = hf_loop_mono(link->pool->client->loop);

	if (end == HF_LINK_TLS_OTHER)
		hand_over_to_curl(link, HF_TIME_NEVER);
	else if (end == HF_LINK_TLS_FAILED || write_out(link) < 0)
		hand_over_to_curl(link, now + TLS_OFF_TIME);
	else if (end == HF_LINK_TLS_OPEN)
		open_link(link);
}

static void on_connected(struct hf_link *link)
{
	int code = 0;
	socklen_t len = sizeof(code);

	if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0 || code != 0) {
		hf_error_set(&link->err, HF_E_UNAVAILABLE, "cannot connect to %s: %s",
			     link->pool->client->target.authority, strerror(code));
		fail_link(link);
		return;
	}
	hf_io_want(link->io, HF_IO_READ);
	if (!link->pool->client->target.tls) {
		open_link(link);
		return;
	}
	link->state = HF_LINK_HANDSHAKE;
	continue_handshake(link);
}

/* --- receiving --- */

static ssize_t read_plain(struct hf_link *link, void *bytes, size_t size)
{
	ssize_t n;

	do {
		n = recv(link->fd, bytes, size, 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return n;
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	return hf_error_set(&link->err, HF_E_UNAVAILABLE, "%s",
			    n == 0 ? "the server closed the connection" : strerror(errno));
}

static void on_readable(struct hf_link *link)
{
	char bytes[PLAIN_BYTES];
	size_t total = 0;
	ssize_t n = 0;

	do {
		n = link->tls ? hf_link_tls_read(link->tls, bytes, sizeof(bytes), &link->err)
			      : read_plain(link, bytes, sizeof(bytes));
		if (n > 0) {
			link->pool->last_byte_at = hf_loop_mono(link->pool->client->loop);
			total += (size_t)n;
			n = hf_link_h2_receive(link, bytes, (size_t)n) < 0 ? -1 : n;
		}
	} while (n > 0 && total < TURN_BYTES_MAX);
	if (n < 0) {
		fail_link(link);
		return;
	}
	if (n > 0)
		hf_timer_arm(link->more_timer, 0);
	if (link->going_away)
		move_unsent(link);
	/* The flush runs after the tasks that deliver responses. So requests that their callbacks
	 * send go into the same write. */
	hf_task_post(link->flush);
}

static void on_more(void *arg)
{
	struct hf_link *link = arg;

	if (link->state == HF_LINK_OPEN)
		on_readable(link);
}

static void on_io(void *arg, unsigned events)
{
	struct hf_link *link = arg;

	/* An error has ended the watch of the fd. The next read reports the error. */
	if (events & HF_IO_HANGUP)
		hf_io_want(link->io, HF_IO_READ);
	if (link->state == HF_LINK_CONNECTING)
		on_connected(link);
	else if (link->state == HF_LINK_HANDSHAKE)
		continue_handshake(link);
	else if (link->state == HF_LINK_OPEN && events & (HF_IO_READ | HF_IO_HANGUP))
		on_readable(link);
	if (link->state == HF_LINK_OPEN && events & HF_IO_WRITE)
		hf_task_post(link->flush);
}

/* --- creation --- */

static bool connect_link(struct hf_link *link)
{
	const struct hf_link_target *target = &link->pool->client->target;
	struct hf_loop *loop = link->pool->client->loop;
	int on = 1;

	link->fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (link->fd < 0 || hf_io_create(loop, link->fd, on_io, link, &link->io, NULL) < 0)
		return false;
	hf_http_set_keepalive(link->fd);
	(void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(link->fd, (const struct sockaddr *)&target->address, target->len) != 0 &&
	    errno != EINPROGRESS)
		return false;
	hf_io_want(link->io, HF_IO_WRITE);
	return true;
}

struct hf_link *hf_link_create(struct hf_http_pool *pool)
{
	struct hf_http_client *client = pool->client;
	struct hf_link *link = hf_xcalloc(1, sizeof(*link));

	link->pool = pool;
	link->next = pool->links;
	pool->links = link;
	link->generation = client->generation;
	link->fd = -1;
	/* The last frame may exceed the limit, so allow twice as many bytes. */
	hf_strbuf_init(&link->frames, 2 * HF_LINK_OUT_BYTES_MAX);
	hf_strbuf_init(&link->out, 4 * HF_LINK_OUT_BYTES_MAX);
	link->connect_timer = hf_timer_create(client->loop, on_connect_timeout, link);
	link->flush = hf_task_create(client->loop, on_flush, link);
	link->more_timer = hf_timer_create(client->loop, on_more, link);
	link->reap = hf_task_create(client->loop, on_reap, link);
	hf_timer_arm(link->connect_timer, client->spec.connect_timeout);
	/* The link verifies with the CAs of this moment, even if they change before it is
	 * connected. */
	if (client->target.tls)
		link->tls = hf_link_tls_create(client);
	if (!connect_link(link)) {
		/* The failure is reported from the loop, like every other outcome. */
		hf_error_set(&link->err, HF_E_UNAVAILABLE, "cannot connect to %s: %s",
			     client->target.authority, strerror(errno));
		hf_timer_arm(link->connect_timer, 0);
	}
	return link;
}
