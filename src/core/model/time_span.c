/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"

/*
 * Arithmetic with times that cannot overflow.  Seconds come from specs, and times from a status
 * that any client may edit.  hf_time holds 292 years; a longer span is HF_TIME_NEVER.
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
	/* Subtract unsigned numbers: two times can be further apart than a signed span reaches. */
	span = (uint64_t)to - (uint64_t)from;
	return span > (uint64_t)HF_TIME_NEVER ? HF_TIME_NEVER : (hf_time)span;
}

const char *hf_time_text(struct hf_arena *arena, hf_time t)
{
	char text[HF_TIME_TEXT_MAX];

	if (t == HF_TIME_NONE)
		return "";
	hf_time_format(t, text);
	return hf_arena_strdup(arena, text);
}

const char *hf_span_text(struct hf_arena *arena, hf_time span)
{
	char text[HF_TIME_TEXT_MAX];

	hf_assert(span >= 0);
	hf_span_format(span, text);
	return hf_arena_strdup(arena, text);
}
