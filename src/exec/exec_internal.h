/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_EXEC_INTERNAL_H
#define HF_EXEC_EXEC_INTERNAL_H

#include "exec/exec.h"
#include "exec/fence.h"
#include "health/beat.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/un.h>

HF_BEGIN_DECLS

/* ---- start.c ----------------------------------------------------------------------------------- */

struct hf_exec_child {
	char *const *argv;
	int err_fd;           /* becomes its stderr; -1: it keeps ours */
	bool foreground;      /* a group of its own, and the terminal's foreground */
	bool group;           /* a group of its own */
	const sigset_t *mask; /* that it starts with */
};
/* 0, or the errno of what failed; execvp's own included. */
int hf_exec_child_start(const struct hf_exec_child *child, pid_t *ret_pid);

/* ---- link.c ------------------------------------------------------------------------------------ */

/*
 * Two datagram sockets: one to the agent, and one of our own to which the program reports.  That
 * one has an abstract name, so that it needs no folder.  The whole network namespace sees such a name, of
 * the node where a pod uses its network: only processes below us, of our own user, are heard.
 */
#define HF_EXEC_LINK_NAME_MAX 16
struct hf_exec_link {
	int agent_fd;
	struct sockaddr_un agent;
	int report_fd;                           /* -1: there is none */
	char report_name[HF_EXEC_LINK_NAME_MAX]; /* "@0a1b2" */
};
void hf_exec_link_open(struct hf_exec_link *link, const char *agent_socket);
/* Never waits; what cannot be sent is lost. */
bool hf_exec_link_send(const struct hf_exec_link *link, const struct hf_beat *beat);
/* The next report of the program, and who sent it; false: none is here, or *left went down to 0, by one for each that
 * came, whoever sent it. */
bool hf_exec_link_receive(const struct hf_exec_link *link, int *left, struct hf_beat *ret_beat,
			  pid_t *ret_pid);

/* ---- message.c --------------------------------------------------------------------------------- */

struct hf_tail;
struct hf_exec_ending {
	int code;        /* as CMD ended, 128 + signal */
	int given;       /* as we end */
	const char *why; /* a line about it; "" */
	const struct hf_tail *tail;
};
/* Into the file, unless the program has written there itself. */
void hf_exec_message_write(const char *path, bool create, const struct hf_exec_ending *ending);

HF_END_DECLS

#endif
