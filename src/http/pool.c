/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* A pool of connections. Runs transfers on links if possible, else with a curl multi handle; the
 * loop watches curl's sockets and timer. See struct hf_http_pool for the lifetime. */
#include "http/link_internal.h"

#include "base/mem.h"

#include <stdlib.h>

/* --- curl's sockets and timer on the loop --- */

/* Passes results to finished transfers, which post a task for the user. */
static void take_messages(struct hf_http_pool *pool)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(pool->multi, &left))) {
		char *transfer = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		/* A copy, because curl frees the message in the next call that uses its handle. */
		CURLcode result = message->data.result;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
		hf_transfer_take_curl_result((struct hf_transfer *)(void *)transfer, result);
	}
}

static void run_curl(struct hf_http_pool *pool, curl_socket_t fd, int events)
{
	int running;

	(void)curl_multi_socket_action(pool->multi, fd, events, &running);
	take_messages(pool);
}

static void on_socket(void *arg, unsigned events)
{
	struct hf_socket *sock = arg;
	int curl_events = 0;

	if (events & HF_IO_READ)
		curl_events |= CURL_CSELECT_IN;
	if (events & HF_IO_WRITE)
		curl_events |= CURL_CSELECT_OUT;
	if (events & HF_IO_HANGUP) {
		curl_events |= CURL_CSELECT_ERR;
		/* The error has ended the watch, so watch the fd again. */
		hf_io_want(sock->io, sock->want);
	}
	run_curl(sock->pool, sock->fd, curl_events); /* this call may free the socket */
}

static void on_timer(void *arg)
{
	run_curl(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct hf_http_pool *pool = arg;

	if (timeout_ms < 0)
		hf_timer_disarm(pool->timer);
	else
		hf_timer_arm(pool->timer, (hf_time)timeout_ms * HF_MS);
	return 0;
}

static void socket_free(struct hf_socket *sock)
{
	if (sock->prev)
		sock->prev->next = sock->next;
	else
		sock->pool->sockets = sock->next;
	if (sock->next)
		sock->next->prev = sock->prev;
	hf_io_destroy(sock->io);
	free(sock);
}

static struct hf_socket *socket_create(struct hf_http_pool *pool, int fd)
{
	struct hf_socket *sock = hf_xcalloc(1, sizeof(*sock));

	/* Watching the fd fails only if the kernel has no memory; then curl would fail every
	 * transfer too. */
	int rc = hf_io_create(pool->client->loop, fd, on_socket, sock, &sock->io, NULL);
	hf_assert(rc == 0);
	sock->pool = pool;
	sock->fd = fd;
	sock->next = pool->sockets;
	if (pool->sockets)
		pool->sockets->prev = sock;
	pool->sockets = sock;
	return sock;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *sock_arg)
{
	struct hf_http_pool *pool = arg;
	struct hf_socket *sock = sock_arg;

	if (what == CURL_POLL_REMOVE) {
		if (sock)
			socket_free(sock);
		return 0;
	}
	if (!sock) {
		sock = socket_create(pool, fd);
		curl_multi_assign(pool->multi, fd, sock);
	}
	sock->want =
		(what & CURL_POLL_IN ? HF_IO_READ : 0u) | (what & CURL_POLL_OUT ? HF_IO_WRITE : 0u);
	hf_io_want(sock->io, sock->want);
	return 0;
}

/* --- transfers --- */

void hf_http_pool_add_curl(struct hf_http_pool *pool, struct hf_transfer *transfer)
{
	hf_transfer_prepare(transfer);
	CURLMcode rc = curl_multi_add_handle(pool->multi, transfer->easy);

	hf_assert(rc == CURLM_OK);
}

static bool may_link(const struct hf_http_client *client, const struct hf_transfer *transfer)
{
	return client->target.address.ss_family != AF_UNSPEC && !transfer->request.gzip &&
	       client->link_off_until <= hf_loop_mono(client->loop);
}

void hf_http_pool_place(struct hf_http_pool *pool, struct hf_transfer *transfer)
{
	struct hf_http_client *client = pool->client;

	if (!may_link(client, transfer)) {
		hf_http_pool_add_curl(pool, transfer);
		return;
	}
	/* If all streams of the current link are in use, a new stream gets a new link, because the
	 * others may never end. A request waits instead. */
	if (pool->link && (pool->link->generation != client->generation ||
			   (transfer->request.stream && hf_link_h2_is_full(pool->link))))
		hf_link_retire(pool->link);
	if (!pool->link)
		pool->link = hf_link_create(pool);
	hf_link_add(pool->link, transfer);
	if (client->spec.http2_plain) /* http2_plain: a connection serves a single request */
		hf_link_retire(pool->link);
}

void hf_http_pool_add(struct hf_http_pool *pool, struct hf_transfer *transfer)
{
	transfer->pool = pool;
	pool->running++;
	hf_http_pool_place(pool, transfer);
}

void hf_http_pool_remove(struct hf_transfer *transfer)
{
	struct hf_http_pool *pool = transfer->pool;

	hf_assert(pool->running > 0);
	if (transfer->link) {
		hf_link_remove(transfer);
	} else {
		CURLMcode rc = curl_multi_remove_handle(pool->multi, transfer->easy);
		hf_assert(rc == CURLM_OK);
	}
	transfer->pool = NULL;
	/* A task frees the pool, because this function may run inside take_messages of the same
	 * pool. */
	if (--pool->running == 0 && pool != pool->client->pool && pool != pool->client->streamed)
		hf_task_post(pool->reap);
}

/* --- creation --- */

static void set_multi(struct hf_http_pool *pool)
{
	CURLM *multi = pool->multi;
	const struct hf_http_client_spec *spec = &pool->client->spec;
	long connections = (long)spec->in_flight_max + (long)spec->streams_max;

	/* Most connections to the server: HTTP/2 needs one in all, HTTP/1.1 one for each
	 * transfer. */
	curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, connections);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, connections);
	curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, pool);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	curl_multi_setopt(multi, CURLMOPT_TIMERDATA, pool);
}

static void on_reap(void *arg)
{
	hf_http_pool_destroy(arg);
}

struct hf_http_pool *hf_http_pool_create(struct hf_http_client *client)
{
	struct hf_http_pool *pool = hf_xcalloc(1, sizeof(*pool));

	pool->client = client;
	pool->last_byte_at = hf_loop_mono(client->loop);
	pool->timer = hf_timer_create(client->loop, on_timer, pool);
	pool->reap = hf_task_create(client->loop, on_reap, pool);
	pool->multi = curl_multi_init();
	hf_assert(pool->multi);
	set_multi(pool);
	return pool;
}

struct hf_http_pool *hf_http_pool_destroy(struct hf_http_pool *pool)
{
	if (!pool)
		return NULL;
	hf_assert(pool->running == 0);
	for (struct hf_http_pool **at = &pool->client->retired; *at; at = &(*at)->next) {
		if (*at == pool) {
			*at = pool->next;
			break;
		}
	}
	while (pool->links)
		hf_link_destroy(pool->links);
	/* Free the sockets before curl closes their fds. */
	while (pool->sockets)
		socket_free(pool->sockets);
	curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	curl_multi_cleanup(pool->multi);
	hf_timer_destroy(pool->timer);
	hf_task_destroy(pool->reap);
	free(pool);
	return NULL;
}
