/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_RANDOM_H
#define HF_TESTS_HARNESS_RANDOM_H

#include <stdint.h>

/* Returns the next number of the generator SplitMix64. The same seed gives the same numbers on
 * every machine. */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Returns a number from 0 to below - 1; `below` must not be 0. */
static inline uint64_t test_random_below(uint64_t *state, uint64_t below)
{
	return test_random(state) % below;
}

#endif
