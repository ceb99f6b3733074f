/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_RANDOM_H
#define HF_BASE_RANDOM_H

#include "base/compiler.h"

#include <stdint.h>

HF_BEGIN_DECLS

/*
 * A small generator of numbers (SplitMix64) for spreading load and for tests,
 * never for secrets.  It is seeded by whoever owns randomness: the program from
 * the kernel (hf_random_bytes), a simulator from its one seed.
 */
struct hf_rng {
	uint64_t state;
};

void hf_rng_init(struct hf_rng *rng, uint64_t seed);
uint64_t hf_rng_next(struct hf_rng *rng);
/* Uniform in [0, bound); 0 for a bound of 0. */
uint64_t hf_rng_below(struct hf_rng *rng, uint64_t bound);

HF_END_DECLS

#endif
