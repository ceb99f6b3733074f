/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "ctl/backoff.h"

#include <stddef.h>

void hf_rng_init(struct hf_rng *rng, uint64_t seed)
{
	rng->state = seed;
}

uint64_t hf_rng_next(struct hf_rng *rng)
{
	/* SplitMix64 (Steele, Lea, Flood 2014): every seed is a good one, 0 included. */
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint64_t hf_rng_below(struct hf_rng *rng, uint64_t bound)
{
	/* The high half of a product: no division, and a bias below 2^-32 for the bounds in use. */
	return (uint64_t)(((unsigned __int128)hf_rng_next(rng) * bound) >> 64);
}

hf_time hf_backoff_next(struct hf_backoff *backoff, struct hf_rng *rng)
{
	hf_time delay = backoff->initial;

	hf_assert(backoff->initial > 0 && backoff->initial <= backoff->max);
	for (unsigned i = 0; i < backoff->failures && delay < backoff->max; i++)
		delay = delay > backoff->max / 2 ? backoff->max : delay * 2;
	if (backoff->failures < 64) /* past 2^63 more doublings change nothing */
		backoff->failures++;
	if (backoff->jitter_percent > 0) {
		hf_assert(rng != NULL);
		hf_time share = delay / 100 * (hf_time)backoff->jitter_percent;

		delay += (hf_time)hf_rng_below(rng, (uint64_t)share + 1);
	}
	return delay;
}

void hf_backoff_reset(struct hf_backoff *backoff)
{
	backoff->failures = 0;
}
