/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_EXEC_INTERNAL_H
#define HF_EXEC_EXEC_INTERNAL_H

#include "exec/exec.h"
#include "health/beat.h"
#include "health/contact.h"

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
 * one has an abstract name, so that it needs no folder; only processes of our own user are heard.
 */
#define HF_LINK_NAME_MAX 16
struct hf_link {
	int agent_fd;
	struct sockaddr_un agent;
	int report_fd;                      /* -1: there is none */
	char report_name[HF_LINK_NAME_MAX]; /* "@0a1b2" */
};
void hf_link_open(struct hf_link *link, const char *agent_socket);
/* Never waits; what cannot be sent is lost. */
bool hf_link_send(const struct hf_link *link, const struct hf_beat *beat);
/* The next report of the program; false: none is here. */
bool hf_link_receive(const struct hf_link *link, struct hf_beat *ret_beat);

/* ---- fence.c ------------------------------------------------------------------------------------ */

/* What the agent says of this node's contact with the control plane: health/contact.h. */
struct hf_fence {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(HF_CONTACT_FILE)];
	char boot_id[HF_CONTACT_BOOT_MAX]; /* "": it cannot be told */
	uint32_t limit_s;
	char why[256]; /* there is no contact, in words */
};

/* limit_s above 0.  proc: "/proc". */
void hf_fence_open(struct hf_fence *fence, const char *agent_socket, uint32_t limit_s,
		   const char *proc);
/* There was contact within limit_s before now, which is CLOCK_BOOTTIME's; else why says what is.
 * Whatever cannot be read or believed is no contact.  Never waits. */
bool hf_fence_holds(struct hf_fence *fence, int64_t now_ms);

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
