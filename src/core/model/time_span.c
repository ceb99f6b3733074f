/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

/*
 * Arithmetic that cannot run over: seconds come from specs and times from a status that anybody
 * may edit.  hf_time holds 292 years; what does not fit is "for ever".
 */

hf_time hf_seconds(int64_t seconds)
{
	hf_assert(seconds >= 0);
	return seconds > HF_SECONDS_MAX ? HF_TIME_NEVER : seconds * HF_SECOND;
}

hf_time hf_elapsed(hf_time from, hf_time to)
{
	uint64_t span;

	hf_assert(from != HF_TIME_NONE && to != HF_TIME_NONE);
	if (to <= from)
		return 0;
	/* Unsigned: two times can be further apart than a signed span reaches. */
	span = (uint64_t)to - (uint64_t)from;
	return span > (uint64_t)HF_TIME_NEVER ? HF_TIME_NEVER : (hf_time)span;
}
