/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_COMMAND_H
#define HF_LOOP_COMMAND_H

#include "base/error.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>

/* Runs a program to its end: writes its stdin, collects its stdout and stderr. Used for credential
 * plugins, nvidia-smi and the like. The program runs in a process group of its own. When the
 * timeout expires, the whole group gets SIGKILL. */
struct hf_command;

#define HF_COMMAND_OUTPUT_BYTES_MAX (1u << 20)
#define HF_COMMAND_ERRORS_BYTES_MAX (16u << 10) /* the first 16 KiB of stderr are kept */

struct hf_command_spec {
	const char *const *argv; /* as in hf_process_spec, with search_path */
	/* environment of the command, "NAME=value"; NULL: that of this process */
	const char *const *env;
	/* working directory of the command; NULL: the caller's working directory */
	const char *cwd;
	const char *input; /* bytes for stdin, copied; NULL: no input */
	size_t input_len;
	size_t output_bytes_max; /* most bytes of stdout; 0: HF_COMMAND_OUTPUT_BYTES_MAX */
	hf_time timeout;         /* most time until the program has ended; 0: no limit */
};

struct hf_command_result {
	/* 0: the program exited, with any exit code. HF_E_TIMEOUT: the timeout expired.
	 * HF_E_TOO_LARGE: stdout exceeded output_bytes_max. HF_E_INTERNAL: a signal ended the
	 * program. In each case no process of the group is left. */
	int code;
	const struct hf_error *err;
	int exit_code;
	const char *output; /* stdout, followed by a NUL */
	size_t output_len;
	const char *errors; /* the beginning of stderr, followed by a NUL */
};
typedef void (*hf_command_fn)(void *arg, const struct hf_command_result *result);

/* Calls fn once, from the loop. The handle is no longer valid when fn returns. */
int hf_command_start(struct hf_loop *loop, const struct hf_command_spec *spec, hf_command_fn fn,
		     void *arg, struct hf_command **ret_command, struct hf_error *err)
	HF_MUST_CHECK;
/* Kills the process group; fn is not called. Accepts NULL; returns NULL. */
struct hf_command *hf_command_destroy(struct hf_command *command);

#endif
