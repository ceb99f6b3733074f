/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_EXEC_H
#define HF_EXEC_EXEC_H

#include "base/error.h"
#include "base/flags.h"

#include <stdbool.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * `holdfast exec [FLAGS] -- CMD…`: what stands between a container's runtime and the training
 * process.  It starts CMD, forwards signals to it, reaps whatever is orphaned, and ends as CMD
 * ends.  Beside that it tells the node's agent that the rank lives and how far it is, and puts
 * CMD's last words into the termination message.  Whatever of this cannot be done is left out: no
 * agent, no file, no room in a socket ever keeps CMD from running.
 *
 * One thread, no allocation after the start, only the C library: it also stands alone as
 * `holdfast-exec`, to be copied into images that have nothing else.
 */

/* Where the agent listens, as it is mounted from the host. */
#define HF_EXEC_AGENT_SOCKET "/run/holdfast/agent.sock"
/* Seconds; the operator sets it in pods of jobs that ask for selfFence. */
#define HF_EXEC_FENCE_ENV "HOLDFAST_SELF_FENCE_SECONDS"
#define HF_EXEC_TERMINATION_LOG "/dev/termination-log"
/* The kubelet reads no more of it. */
#define HF_EXEC_MESSAGE_BYTES_MAX 4096

/* Of a program that could not be started, as shells have it. */
#define HF_EXEC_CODE_USAGE 2
#define HF_EXEC_CODE_INTERNAL 125
#define HF_EXEC_CODE_NOT_EXECUTABLE 126
#define HF_EXEC_CODE_NOT_FOUND 127

struct hf_exec_options {
	char *const *argv;           /* CMD, NULL-terminated; found as execvp does */
	const char *agent_socket;    /* "": no agent */
	const char *termination_log; /* "": none */
	bool termination_create;     /* the file is made where there is none */
	bool keep_code;              /* never one of 220 to 226 */
	uint32_t hang_after_s;       /* end it when a rank reported no step for so long; 0: never */
	uint32_t fence_s;            /* end it when the node had no contact for so long; 0: never */
};

/* From the words behind "exec" and from the environment.  0, or the exit code, having told why. */
int hf_exec_parse(int argc, char *const *argv, struct hf_exec_options *ret_options);
/* Returns the exit code. */
int hf_exec_run(const struct hf_exec_options *options);
/* Both; argv[0] is the program's name. */
int hf_exec_main(int argc, char **argv);

/* Ends with name NULL. */
extern const struct hf_flag hf_exec_flags[];

HF_END_DECLS

#endif
