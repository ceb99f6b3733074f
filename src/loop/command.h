/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_COMMAND_H
#define HF_LOOP_COMMAND_H

#include "base/error.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Run a program to its end, feeding its stdin and collecting what it prints:
 * credential plugins, nvidia-smi and their kind.  It runs in a process group of
 * its own, and the whole group gets SIGKILL when the time is over.
 */
struct hf_command;

#define HF_COMMAND_OUTPUT_BYTES_MAX (1u << 20)
#define HF_COMMAND_ERRORS_BYTES_MAX (16u << 10) /* the beginning of stderr is kept */

struct hf_command_spec {
	const char *const *argv; /* as in hf_process_spec, with search_path */
	const char *const *env;  /* NULL: this process's own */
	const char *cwd;         /* NULL: this process's own */
	const char *input;       /* copied; NULL: none */
	size_t input_len;
	size_t output_bytes_max; /* 0: the value above */
	hf_time timeout;         /* 0: none */
};

struct hf_command_result {
	/* 0: it ran and exited, with whatever code.  HF_E_TIMEOUT; HF_E_TOO_LARGE (output);
	 * HF_E_INTERNAL: a signal ended it.  In each case nothing of it runs any more. */
	int code;
	const struct hf_error *err;
	int exit_code;
	const char *output; /* NUL behind it */
	size_t output_len;
	const char *errors; /* stderr */
};
typedef void (*hf_command_fn)(void *arg, const struct hf_command_result *result);

/* The handle is dead when fn returns. */
int hf_command_start(struct hf_loop *loop, const struct hf_command_spec *spec, hf_command_fn fn,
		     void *arg, struct hf_command **ret_command, struct hf_error *err)
	HF_MUST_CHECK;
/* Kills it; fn is not called.  NULL is fine; returns NULL. */
struct hf_command *hf_command_destroy(struct hf_command *command);

#endif
