/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "http/server_internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <sys/socket.h>

/*
 * Strangers: connections of which nobody has said yet that they may be here.  Whoever can
 * reach the port can open any number of them, so they have a limit of their own, below
 * that of all connections, and a time; what is over either is cut, the oldest first.  So
 * who has something to say gets in, however many sit there and say nothing.
 */

static void leave(struct hf_http_server *server, struct hf_http_peer *peer)
{
	if (!peer->stranger)
		return;
	peer->stranger = false;
	if (peer->prev)
		peer->prev->next = peer->next;
	else
		server->strangers = peer->next;
	if (peer->next)
		peer->next->prev = peer->prev;
	else
		server->strangers_last = peer->prev;
	peer->prev = peer->next = NULL;
	server->strangers_count--;
}

/* Libmicrohttpd reads the end of it and lets go of it by itself. */
static void cut_oldest(struct hf_http_server *server)
{
	struct hf_http_peer *peer = server->strangers;

	leave(server, peer);
	(void)shutdown(peer->fd, SHUT_RDWR);
}

void hf_http_peers_tick(void *arg)
{
	struct hf_http_server *server = arg;
	hf_time now = hf_loop_mono(server->loop);
	hf_time span = (hf_time)server->spec.stranger_timeout_s * HF_SECOND;

	while (server->strangers && server->strangers->since + span <= now)
		cut_oldest(server);
	if (server->strangers)
		hf_timer_arm(server->strangers_timer, server->strangers->since + span - now);
}

struct hf_http_peer *hf_http_peer_create(struct hf_http_server *server, int fd)
{
	struct hf_http_peer *peer = hf_xcalloc(1, sizeof(*peer));

	peer->fd = fd;
	peer->since = hf_loop_mono(server->loop);
	peer->greeting = true;
	server->greeting++;
	if (fd < 0)
		return peer;
	peer->stranger = true;
	peer->prev = server->strangers_last;
	if (peer->prev)
		peer->prev->next = peer;
	else
		server->strangers = peer;
	server->strangers_last = peer;
	if (++server->strangers_count > server->spec.strangers_max)
		cut_oldest(server);
	if (!hf_timer_armed(server->strangers_timer))
		hf_http_peers_tick(server);
	return peer;
}

void hf_http_peer_greeted(struct hf_http_server *server, struct hf_http_peer *peer)
{
	server->greeting -= peer->greeting;
	peer->greeting = false;
}

void hf_http_peer_destroy(struct hf_http_server *server, struct hf_http_peer *peer)
{
	hf_http_peer_greeted(server, peer);
	leave(server, peer);
	free(peer);
}

void hf_exchange_trust(const struct hf_exchange *ex)
{
	const union MHD_ConnectionInfo *info =
		ex->connection ? MHD_get_connection_info(ex->connection,
							 MHD_CONNECTION_INFO_SOCKET_CONTEXT)
			       : NULL;

	if (info && info->socket_context)
		leave(ex->server, info->socket_context);
}
