/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_BACKOFF_H
#define HF_CTL_BACKOFF_H

#include "base/compiler.h"
#include "base/time.h"

#include <stdint.h>

/*
 * Growing delays with jitter, and the small generator the jitter comes from.
 *
 * The generator (SplitMix64) is seeded by whoever owns randomness: the program
 * from the kernel, the simulator from its one seed.  It is for spreading load and
 * for tests, never for secrets.
 */
struct hf_rng {
	uint64_t state;
};

void hf_rng_init(struct hf_rng *rng, uint64_t seed);
uint64_t hf_rng_next(struct hf_rng *rng);
/* Uniform in [0, bound); 0 for a bound of 0. */
uint64_t hf_rng_below(struct hf_rng *rng, uint64_t bound);

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
