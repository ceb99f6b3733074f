/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_RANDOM_H
#define HF_BASE_RANDOM_H

#include "base/compiler.h"

#include <stdint.h>

HF_BEGIN_DECLS

/* A small pseudo-random generator (SplitMix64), to spread load and for tests. Never use it for
 * secrets. The program seeds it from the kernel (hf_random_bytes), a simulator from its one
 * seed. */
struct hf_rng {
	uint64_t state;
};

void hf_rng_init(struct hf_rng *rng, uint64_t seed);
uint64_t hf_rng_next(struct hf_rng *rng);
/* Returns a uniform number in [0, bound); 0 if bound is 0. */
uint64_t hf_rng_below(struct hf_rng *rng, uint64_t bound);

HF_END_DECLS

#endif
