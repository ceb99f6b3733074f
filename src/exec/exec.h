/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_EXEC_H
#define HF_EXEC_EXEC_H

#include "base/error.h"
#include "base/flags.h"
#include "pattern/log_rule.h"

#include <stdbool.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * `holdfast exec [FLAGS] -- CMD…` runs between a container's runtime and the training process.  It starts CMD,
 * forwards signals to CMD, reaps orphans, and ends as CMD ends.  It reports to the node's agent that the rank lives
 * and which step the rank has done, and writes the last lines of CMD's stderr into the termination message.  If the
 * agent orders it, exec stops CMD and starts CMD again in the same container (exec/orders.h).  If the agent, a file
 * or a socket fails, CMD runs on without what needs it.
 * One thread.  After the start exec allocates memory only for the variables of a restart.  The program
 * `holdfast-exec` is the same code, linked statically, so that it runs in any image.
 */

/* The agent's socket, in a folder of the host that the pod mounts. */
#define HF_EXEC_AGENT_SOCKET "/run/holdfast/agent.sock"
/* The fence's limit in seconds; the operator sets the variable in the pods of jobs with selfFence. */
#define HF_EXEC_FENCE_ENV "HOLDFAST_SELF_FENCE_SECONDS"
/* "1": exec starts CMD for the first time after the agent's go; the operator sets the variable in pods that join a
 * restart. */
#define HF_EXEC_HOLD_ENV "HOLDFAST_HOLD"
/* How many seconds a SIGTERM from outside waits for the ranks to save. */
#define HF_EXEC_SAVE_ENV "HOLDFAST_SAVE_SECONDS"
#define HF_EXEC_TERMINATION_LOG "/dev/termination-log"
/* The kubelet reads at most this many bytes of a termination message. */
#define HF_EXEC_MESSAGE_BYTES_MAX 4096

/* The exit codes of shells for a program that could not be started. */
#define HF_EXEC_CODE_USAGE 2
#define HF_EXEC_CODE_INTERNAL 125
#define HF_EXEC_CODE_NOT_EXECUTABLE 126
#define HF_EXEC_CODE_NOT_FOUND 127
/* An order stopped or held the rank for a restart in place, and the agent's go did not come in time. */
#define HF_EXEC_CODE_BARRIER 227

/* Rules for CMD's output, one a line (pattern/log_rule.h); the operator sets it. */
#define HF_EXEC_RULES_ENV "HOLDFAST_LOG_RULES"

struct hf_exec_options {
	char *const *argv;           /* CMD, NULL-terminated; found as execvp does */
	const char *agent_socket;    /* "": no agent */
	const char *termination_log; /* "": none */
	bool termination_create;     /* exec creates the file termination_log if it is missing */
	bool keep_code;              /* exec ends with the code of CMD instead of 220 to 225 */
	/* exec ends CMD if a rank reports no step for this many seconds; 0: never */
	uint32_t hang_after_s;
	/* SIGTERM from outside waits this many seconds for a save; 0: not at all */
	uint32_t save_s;
	int save_signal; /* the signal that asks programs without should_save() to save; 0: none */
	bool hold;       /* exec starts CMD for the first time after the agent's go */
	/* exec ends CMD if the node had no contact for this many seconds; 0: never */
	uint32_t fence_s;
	struct hf_log_rules *rules; /* for the lines of CMD; NULL: none */
	const char *copy_to; /* exec copies its program there and runs no CMD; NULL: runs CMD */
};

/* Reads the words behind "exec" and the environment.  Returns 0, or the exit code after a message on stderr. */
int hf_exec_parse(int argc, char *const *argv, struct hf_exec_options *ret_options);
/* Returns the exit code. */
int hf_exec_run(const struct hf_exec_options *options);
/* Parses the command line and runs CMD; argv[0] is the program's name. */
int hf_exec_main(int argc, char **argv);

/* Ends with name NULL. */
extern const struct hf_flag hf_exec_flags[];

HF_END_DECLS

#endif
