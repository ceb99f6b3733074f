/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_NAMED_SOCKET_H
#define HF_AGENT_NAMED_SOCKET_H

#include "loop/loop.h"

#include <sys/types.h>

HF_BEGIN_DECLS

/*
 * A Unix socket at a path that others may write to.  Other writers of the folder may remove or replace the path.  If no
 * process listens there, the socket is created anew.  If another process listens there, the path is left to that process.
 */
struct hf_named_socket;

struct hf_named_socket_options {
	struct hf_loop *loop;
	const char *path; /* the folder must exist; an old socket is replaced */
	int type; /* SOCK_DGRAM, with the senders' credentials; SOCK_SEQPACKET: it listens */
	hf_time look_every; /* whether the path is still our socket's; 0: 5 s */
	mode_t mode;        /* of the socket */
	/* Datagrams, or connections, are there. */
	void (*ready)(void *arg, int fd);
	/* Nothing can arrive, and the reason; NULL: the socket works again. */
	void (*trouble)(void *arg, const char *why);
	void *arg;
};

/* HF_E_INVALID: the path is too long for a socket.  If the socket cannot be created, `trouble` is
 * called before this returns, and each look tries again. */
int hf_named_socket_create(const struct hf_named_socket_options *options,
			   struct hf_named_socket **ret_socket, struct hf_error *err) HF_MUST_CHECK;
/* The socket's name goes too, while it is ours.  NULL is fine; returns NULL. */
struct hf_named_socket *hf_named_socket_destroy(struct hf_named_socket *socket);

HF_END_DECLS

#endif
