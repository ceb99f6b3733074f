/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_REST_H
#define HF_EXEC_REST_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

HF_BEGIN_DECLS

/*
 * Sends SIGKILL to every descendant that still runs, in any process group and session; does not wait for their ends.
 * Returns the number of descendants found.  0: all have ended; a zombie that a tracer holds counts as ended.
 * HF_REST_UNKNOWN: proc ("/proc") does not list the descendants.
 */
#define HF_REST_UNKNOWN SIZE_MAX
size_t hf_rest_kill(const char *proc);
/* Sends signum (0: none) to every descendant that runs, except one.  Returns how many they are, or HF_REST_UNKNOWN. */
size_t hf_rest_signal(const char *proc, pid_t except, int signum);
/* Whether the process is a descendant of this process that has not been reaped. */
bool hf_rest_is_below(const char *proc, pid_t pid);
/* The start time of the process in ticks since the boot; 0: the process does not run, or its start time cannot be
 * read. */
uint64_t hf_rest_started(const char *proc, pid_t pid);

HF_END_DECLS

#endif
