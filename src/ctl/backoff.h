/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_BACKOFF_H
#define HF_CTL_BACKOFF_H

#include "base/compiler.h"
#include "base/random.h"
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

/* Retry delays that grow, with jitter. */

/* After n failures in a row the delay is initial × 2^n, at most max, plus a random share of up
 * to jitter_percent of it. (client-go's reflector uses 800 ms, 30 s and 100 %.) */
struct hf_backoff {
	hf_time initial, max;
	unsigned jitter_percent; /* 0: none */
	unsigned failures;       /* number of failures in a row */
};

#define HF_BACKOFF_INIT(initial_, max_, jitter_percent_)                                           \
	{                                                                                          \
		.initial = (initial_), .max = (max_), .jitter_percent = (jitter_percent_),         \
		.failures = 0                                                                      \
	}

/* Returns the delay after this number of failures in a row, without jitter. */
hf_time hf_backoff_delay(hf_time initial, hf_time max, unsigned failures);
/* Returns the delay before the next try and counts one failure. rng may be NULL if there is no
 * jitter. */
hf_time hf_backoff_next(struct hf_backoff *backoff, struct hf_rng *rng);
/* Call this after a success: the next failure starts with the initial delay. */
void hf_backoff_reset(struct hf_backoff *backoff);

/* Whether the same request will fail again until a right, a kind or an object changes: people have to know of it. code: an
 * HF_E_* code. */
bool hf_is_lasting_failure(int code);

#endif
