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
 * SIGKILL to every process below this one that still runs, whatever groups and sessions they made and
 * whoever may wait for them.  Waits for none.  How many it found: 0 says that all have ended, also where
 * somebody else keeps one of them from being reaped.  HF_REST_UNKNOWN: they cannot be told.  proc: "/proc".
 */
#define HF_REST_UNKNOWN SIZE_MAX
size_t hf_rest_kill(const char *proc);
/* The process is below this one: its child, a child of such a one, and so on.  One that was reaped is not. */
bool hf_rest_is_below(const char *proc, pid_t pid);
/* When it began, in ticks since the machine did; 0: it runs no more, or is not known. */
uint64_t hf_rest_started(const char *proc, pid_t pid);

HF_END_DECLS

#endif
