/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_EXEC_INTERNAL_H
#define HF_EXEC_EXEC_INTERNAL_H

#include "exec/exec.h"
#include "exec/fence.h"
#include "exec/save.h"
#include "health/beat.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/un.h>

HF_BEGIN_DECLS

/* ---- start.c ----------------------------------------------------------------------------------- */

struct hf_exec_child {
	char *const *argv;
	/* these descriptors become CMD's stdout and stderr; -1: CMD inherits that of exec */
	int out_fd, err_fd;
	bool foreground; /* CMD gets a process group of its own, in the terminal's foreground */
	bool group;      /* CMD gets a process group of its own */
	const sigset_t *mask; /* the signal mask of CMD */
};
/* Starts CMD.  Returns 0, or the errno of the call that failed, execvp included. */
int hf_exec_child_start(const struct hf_exec_child *child, pid_t *ret_pid);
/* Starts a process that writes a byte into each pipe STEM<number>.pipe, and ends with 0 if one took it.  0 or an errno. */
int hf_exec_dumper_start(const char *stem, pid_t *ret_pid);

/* ---- link.c ------------------------------------------------------------------------------------ */

/*
 * Two datagram sockets: one sends to the agent, the other receives the reports of CMD and its descendants.  The
 * receiving socket has an abstract name, so it needs no folder.  All processes of the network namespace see an
 * abstract name; with hostNetwork these are all processes of the node.  So exec takes only reports of descendants,
 * and, unless exec is root, only those of exec's user or root.
 */
#define HF_EXEC_LINK_NAME_MAX 16
struct hf_exec_link {
	int agent_fd;
	struct sockaddr_un agent;
	int report_fd;                           /* -1: none */
	char report_name[HF_EXEC_LINK_NAME_MAX]; /* "@0a1b2" */
};
void hf_exec_link_open(struct hf_exec_link *link, const char *agent_socket);
/* Whether an exec of this host listens under the name, such as "@0a1b2"; NULL: false. */
bool hf_exec_link_is_there(const char *name);
/* Sends a report to the agent.  Does not block; a report that cannot be sent is lost. */
bool hf_exec_link_send(const struct hf_exec_link *link, const struct hf_beat *beat);
/* Takes the next report of a descendant, and its sender.  Each datagram takes one off *left, also a datagram of a
 * stranger.  False: no report is there, or *left is 0.  child: a child that was not reaped, so no other process has its
 * PID, and exec need not read /proc for its reports; 0: none. */
bool hf_exec_link_receive(const struct hf_exec_link *link, pid_t child, int *left,
			  struct hf_beat *ret_beat, struct hf_exec_sender *ret_sender);

/* ---- message.c --------------------------------------------------------------------------------- */

struct hf_tail;
struct hf_exec_ending {
	int code;        /* CMD's exit code, or 128 + its signal */
	int given;       /* the exit code with which `holdfast exec` itself ends */
	const char *why; /* why CMD ended, as one line of text; "": no reason is known */
	const struct hf_tail *tail;
};
/* Formats the termination message; adds no NUL.  Returns the length. */
size_t hf_exec_message_format(const struct hf_exec_ending *ending, char *text, size_t size);
/* Writes the termination message into the file, unless CMD has written a message there. */
void hf_exec_message_write(const char *path, bool create, const struct hf_exec_ending *ending);

/* ---- copy.c: the program for the container of a rank ------------------------------------------- */

/* Returns the exit code, after a message on stderr if the copy failed. */
int hf_exec_copy(const char *path);

HF_END_DECLS

#endif
