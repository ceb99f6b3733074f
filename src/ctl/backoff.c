/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Computes growing retry delays with jitter. Input: the settings and the number of failures in a
 * row; output: the next delay.
 */
#include "ctl/backoff.h"

#include <stddef.h>

hf_time hf_backoff_next(struct hf_backoff *backoff, struct hf_rng *rng)
{
	hf_time delay = backoff->initial;

	hf_assert(backoff->initial > 0 && backoff->initial <= backoff->max);
	for (unsigned i = 0; i < backoff->failures && delay < backoff->max; i++)
		delay = delay > backoff->max / 2 ? backoff->max : delay * 2;
	/* The delay has its maximum long before this number of failures. */
	if (backoff->failures < 64)
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
