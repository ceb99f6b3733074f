/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Untrusted connections: those for which hf_exchange_trust was not called yet. Any host that
 * reaches the port can open many of them. So they have a limit below that of all connections, and a
 * time limit; beyond either, the oldest are cut. New clients can therefore always connect, however
 * many idle connections there are. */
#include "http/server_internal.h"

#include "base/mem.h"

#include <stdlib.h>
#include <sys/socket.h>

static void remove_untrusted(struct hf_http_server *server, struct hf_http_peer *peer)
{
	if (!peer->is_untrusted)
		return;
	peer->is_untrusted = false;
	if (peer->prev)
		peer->prev->next = peer->next;
	else
		server->untrusted = peer->next;
	if (peer->next)
		peer->next->prev = peer->prev;
	else
		server->untrusted_last = peer->prev;
	peer->prev = peer->next = NULL;
	server->untrusted_count--;
}

/* Shuts down the oldest untrusted connection. libmicrohttpd then reads its end and frees it. */
static void cut_oldest_untrusted(struct hf_http_server *server)
{
	struct hf_http_peer *peer = server->untrusted;

	remove_untrusted(server, peer);
	(void)shutdown(peer->fd, SHUT_RDWR);
}

void hf_http_peers_cut_expired(void *arg)
{
	struct hf_http_server *server = arg;
	hf_time now = hf_loop_mono(server->loop);
	hf_time span = (hf_time)server->spec.untrusted_timeout_s * HF_SECOND;

	while (server->untrusted && server->untrusted->since + span <= now)
		cut_oldest_untrusted(server);
	if (server->untrusted)
		hf_timer_arm(server->untrusted_timer, server->untrusted->since + span - now);
}

static void add_untrusted(struct hf_http_server *server, struct hf_http_peer *peer)
{
	peer->is_untrusted = true;
	peer->since = hf_loop_mono(server->loop);
	peer->prev = server->untrusted_last;
	if (peer->prev)
		peer->prev->next = peer;
	else
		server->untrusted = peer;
	server->untrusted_last = peer;
	if (++server->untrusted_count > server->spec.untrusted_max)
		cut_oldest_untrusted(server);
	if (!hf_timer_armed(server->untrusted_timer))
		hf_http_peers_cut_expired(server);
}

struct hf_http_peer *hf_http_peer_create(struct hf_http_server *server, int fd)
{
	struct hf_http_peer *peer = hf_xcalloc(1, sizeof(*peer));

	peer->fd = fd;
	peer->before_first_request = true;
	server->before_first_request++;
	if (fd >= 0)
		add_untrusted(server, peer);
	return peer;
}

void hf_http_peer_end_trust(struct hf_http_server *server, struct hf_http_peer *peer)
{
	if (peer->fd >= 0 && !peer->is_untrusted)
		add_untrusted(server, peer);
}

void hf_http_peer_note_request(struct hf_http_server *server, struct hf_http_peer *peer)
{
	server->before_first_request -= peer->before_first_request;
	peer->before_first_request = false;
}

void hf_http_peer_destroy(struct hf_http_server *server, struct hf_http_peer *peer)
{
	hf_http_peer_note_request(server, peer);
	remove_untrusted(server, peer);
	free(peer);
}

void hf_exchange_trust(const struct hf_exchange *ex)
{
	const union MHD_ConnectionInfo *info =
		ex->connection ? MHD_get_connection_info(ex->connection,
							 MHD_CONNECTION_INFO_SOCKET_CONTEXT)
			       : NULL;

	if (info && info->socket_context)
		remove_untrusted(ex->server, info->socket_context);
}
