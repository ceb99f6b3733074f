/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_BACKOFF_H
#define HF_CTL_BACKOFF_H

#include "base/compiler.h"
#include "base/random.h"
#include "base/time.h"

#include <stdint.h>

/* Growing delays with jitter. */

/*
 * The n-th delay in a row is initial · 2^n, at most max, plus a random share of
 * itself up to jitter_percent.  (client-go's reflector: 800 ms, 30 s, 100 %.)
 */
struct hf_backoff {
	hf_time initial, max;
	unsigned jitter_percent; /* 0: none */
	unsigned failures;       /* in a row */
};

#define HF_BACKOFF_INIT(initial_, max_, jitter_percent_)                                           \
	{                                                                                          \
		.initial = (initial_), .max = (max_), .jitter_percent = (jitter_percent_),         \
		.failures = 0                                                                      \
	}

/* The delay before the next try; counts one failure.  rng may be NULL where there is no jitter. */
hf_time hf_backoff_next(struct hf_backoff *backoff, struct hf_rng *rng);
/* It worked: the next failure starts over. */
void hf_backoff_reset(struct hf_backoff *backoff);

#endif
