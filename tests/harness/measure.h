/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_MEASURE_H
#define HF_TESTS_HARNESS_MEASURE_H

#include "base/compiler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Functions for the programs that measure. */

/* The time of a clock in seconds. */
static inline double clock_of(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static inline double now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

/* The processor time of the program in seconds. */
static inline double cpu_seconds(void)
{
	return clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

HF_NORETURN static inline void die(const char *what, int code, const char *text)
{
	fprintf(stderr, "%s: %s: %d %.400s\n", program_invocation_short_name, what, code, text);
	exit(1);
}

#endif
