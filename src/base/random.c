/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A small pseudo-random generator, SplitMix64. Input: a seed; output: the same numbers for the
 * same seed.
 */
#include "base/random.h"

void hf_rng_init(struct hf_rng *rng, uint64_t seed)
{
	rng->state = seed;
}

uint64_t hf_rng_next(struct hf_rng *rng)
{
	/* SplitMix64 (Steele, Lea, Flood 2014) accepts every seed, 0 included. */
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint64_t hf_rng_below(struct hf_rng *rng, uint64_t bound)
{
	/* Use the high half of the product: no division, and a bias below 2^-32 for the bounds
	 * in use. */
	return (uint64_t)(((unsigned __int128)hf_rng_next(rng) * bound) >> 64);
}
