/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

/*
 * Estimates the API server's time from the Date headers of its replies.
 *
 * A Date header is the second in which the reply was made, cut to whole seconds, and arrives a
 * little later.  So each reply gives a lower bound of the server's time.  The highest bound so far
 * is the estimate.  If a bound lies more than SLACK below the estimate, cutting and travel time
 * cannot explain it: the server's clock was set back, and the bound becomes the estimate.
 */
#define SLACK (3 * HF_SECOND)

bool hf_server_clock_hear(struct hf_server_clock *clock, hf_time server_time, hf_time mono,
			  hf_time wall)
{
	hf_time offset, before = clock->known ? clock->offset : wall - mono;

	if (server_time == HF_TIME_NONE)
		return false;
	offset = server_time - mono;
	if (!clock->known || offset > clock->offset || offset < clock->offset - SLACK)
		clock->offset = offset;
	clock->known = true;
	return clock->offset > before + SLACK || clock->offset < before - SLACK;
}

hf_time hf_server_clock_now(struct hf_server_clock *clock, hf_time mono, hf_time wall)
{
	hf_time now = clock->known ? mono + clock->offset : wall;

	/* The result never runs backwards: decisions measure spans, and a deadline must not pass
	 * twice. */
	if (now < clock->last)
		return clock->last;
	/* Before the first reply the result is this machine's clock, which may be hours ahead of
	 * the server's.  So it sets no lower limit for later results. */
	if (clock->known)
		clock->last = now;
	return now;
}
