/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_SAVE_H
#define HF_EXEC_SAVE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

HF_BEGIN_DECLS

/*
 * Which processes below exec save when they are asked, and whether they have.  Input: their reports (health/beat.h:
 * can_save, saved) with the sender's socket.  Output: requests to these sockets.
 *
 * Invariants:
 * - A process is asked once, however often a save is wanted.
 * - A process that has ended is not waited for, nor one that never said that it saves.
 */
#define HF_SAVE_PROCESSES_MAX 128 /* as many as ranks */

/* The sender of a report: a descendant, and the name of its socket. */
struct hf_exec_sender {
	pid_t pid;
	struct sockaddr_un name;
	socklen_t len; /* of the name; a socket without one cannot be answered */
};

struct hf_save {
	struct hf_save_process {
		pid_t pid;
		uint64_t started; /* start time of that process: another may get its pid later */
		struct hf_exec_sender sender;
		bool asked, done;
	} items[HF_SAVE_PROCESSES_MAX];
	size_t len;
};

/* The process saves when it is asked.  proc: "/proc". */
void hf_save_can(struct hf_save *save, const char *proc, const struct hf_exec_sender *sender);
/* The process has saved. */
void hf_save_did(struct hf_save *save, const char *proc, pid_t pid);
/* Asks all that were not asked, through the socket fd.  Returns the number of processes that still have to save; a request
 * that cannot be sent now is sent by the next call. */
size_t hf_save_ask(struct hf_save *save, const char *proc, int fd);

HF_END_DECLS

#endif
