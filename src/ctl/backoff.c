/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Computes growing retry delays with jitter. Input: the settings and the number of failures in a
 * row; output: the next delay.
 */
#include "ctl/backoff.h"

#include "base/error.h"

#include <stddef.h>

hf_time hf_backoff_delay(hf_time initial, hf_time max, unsigned failures)
{
	hf_time delay = initial;

	hf_assert(initial > 0 && initial <= max);
	for (unsigned i = 0; i < failures && delay < max; i++)
		delay = delay > max / 2 ? max : delay * 2;
	return delay;
}

hf_time hf_backoff_next(struct hf_backoff *backoff, struct hf_rng *rng)
{
	hf_time delay = hf_backoff_delay(backoff->initial, backoff->max, backoff->failures);

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

bool hf_is_lasting_failure(int code)
{
	return code == HF_E_FORBIDDEN || code == HF_E_NOT_FOUND || code == HF_E_INVALID ||
	       code == HF_E_BAD_REQUEST || code == HF_E_TOO_LARGE || code == HF_E_METHOD ||
	       code == HF_E_UNSUPPORTED;
}
