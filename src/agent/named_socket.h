/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_NAMED_SOCKET_H
#define HF_AGENT_NAMED_SOCKET_H

#include "loop/loop.h"

#include <sys/types.h>

HF_BEGIN_DECLS

/*
 * A Unix socket at a path in a folder that other processes may write to; they may remove or replace the path.  If no
 * process listens at the path, the socket is created again.  If another process listens there, the path is left to
 * that process.
 */
struct hf_named_socket;

struct hf_named_socket_options {
	struct hf_loop *loop;
	/* path of the socket; its folder must exist, and an old socket is replaced */
	const char *path;
	/* SOCK_DGRAM: with the senders' credentials; SOCK_SEQPACKET and SOCK_STREAM: the socket listens */
	int type;
	/* how often to check whether the path is still the agent's socket; 0: 5 s */
	hf_time look_every;
	mode_t mode; /* of the socket */
	/* Called when datagrams can be read from fd, or connections can be accepted. */
	void (*ready)(void *arg, int fd);
	/* Nothing can arrive at the socket, and the reason; NULL: the socket works again. */
	void (*trouble)(void *arg, const char *why);
	void *arg;
};

/* HF_E_INVALID: the path is too long for a socket.  If the socket cannot be created, `trouble` is called before
 * this function returns, and each check tries again. */
int hf_named_socket_create(const struct hf_named_socket_options *options,
			   struct hf_named_socket **ret_socket, struct hf_error *err) HF_MUST_CHECK;
/* Closes the socket, and removes the path if it is still the agent's.  NULL is fine; returns NULL. */
struct hf_named_socket *hf_named_socket_destroy(struct hf_named_socket *socket);

HF_END_DECLS

#endif
