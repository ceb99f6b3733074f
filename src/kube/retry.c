/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Decides which failed requests are retried here; the others are the caller's:
 * |
 * |  reads    broken connections, 500, 502, 503, 504, 429 with Retry-After
 * |  writes   failed connections (the server has not seen the request); 429 with Retry-After
 * |           (the server refused before it did anything). If the outcome of a write is
 * |           unknown, the caller has to look.
 * |
 * Delay before try n+1: a random share of 100 ms · 2^(n-1), at most 5 s, plus Retry-After. */
#include "kube/kube_internal.h"

#define DELAY_MIN (100 * HF_MS)
#define DELAY_MAX (5 * HF_SECOND)
#define TRIES_UNASKED_MAX 4u /* limit of the tries if the server sends no Retry-After */

static hf_time draw_delay(unsigned tries, struct hf_rng *rng)
{
	hf_time span = DELAY_MIN;

	for (unsigned i = 1; i < tries && span < DELAY_MAX; i++)
		span *= 2;
	if (span > DELAY_MAX)
		span = DELAY_MAX;
	return (hf_time)hf_rng_below(rng, (uint64_t)span + 1);
}

static bool may_repeat_answer(const struct hf_kube_try *made)
{
	switch (made->status) {
	/* A 429 without Retry-After does not mean that the server is busy. It means that a
	 * disruption budget forbids the eviction, so a retry would get the same answer. */
	case 429: return made->retry_after > 0;
	case 500:
	case 502:
	case 503:
	case 504: return made->reads;
	default: return false;
	}
}

static bool may_repeat_failure(const struct hf_kube_try *made)
{
	if (made->permanent)
		return false;
	if (made->code == HF_E_UNAVAILABLE)
		return true;
	return made->code == HF_E_TIMEOUT && made->reads;
}

hf_time hf_kube_retry_delay(const struct hf_kube_try *made, struct hf_rng *rng)
{
	unsigned tries_max = made->retry_after > 0 ? HF_KUBE_TRIES_MAX : TRIES_UNASKED_MAX;
	bool may = made->code == 0 ? may_repeat_answer(made) : may_repeat_failure(made);

	hf_assert(made->tries > 0);
	if (!may || made->tries >= tries_max)
		return HF_TIME_NEVER;
	/* Send again at once, on another connection: GOAWAY does not mean that the server is in
	 * trouble. */
	if (made->retry_now && made->tries == 1)
		return 0;
	return made->retry_after + draw_delay(made->tries, rng);
}
