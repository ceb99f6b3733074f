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
 * Which processes below exec save when exec asks them, and whether they have saved.
 * Input: their reports (health/beat.h: can_save, saved) with the sender's socket.  Output: requests to these sockets.
 * Invariants:
 * - exec asks a process once, however often a save is wanted.
 * - exec does not wait for a process that has ended, nor for a process that never reported can_save.
 */
#define HF_SAVE_PROCESSES_MAX 128 /* as many as ranks */

/* The sender of a report: a descendant of exec, and the name of its socket. */
struct hf_exec_sender {
	pid_t pid;
	struct sockaddr_un name;
	socklen_t len; /* the length of the name; a sender without a name cannot be answered */
};

struct hf_save {
	struct hf_save_process {
		pid_t pid;
		/* start time of the process, because another process may get its pid later */
		uint64_t started;
		struct hf_exec_sender sender;
		bool asked, done;
	} items[HF_SAVE_PROCESSES_MAX];
	size_t len;
};

/* Notes that the sender saves when it is asked.  proc: "/proc". */
void hf_save_can(struct hf_save *save, const char *proc, const struct hf_exec_sender *sender);
/* The process has saved. */
void hf_save_did(struct hf_save *save, const char *proc, pid_t pid);
/* Asks all processes that were not asked yet, through the socket fd.  Returns the number of processes that still
 * have to save. The next call repeats a request that cannot be sent now. */
/* A rank has saved since it was asked. */
bool hf_save_has_any(const struct hf_save *save);
size_t hf_save_ask(struct hf_save *save, const char *proc, int fd);

HF_END_DECLS

#endif
