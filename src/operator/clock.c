/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

/*
 * A Date header is the second the reply was made in, cut off, and arrives a little later:
 * each reply bounds the server's time from below.  The highest bound so far is the best
 * estimate, until one comes that lies below it by more than cutting and travel explain:
 * then the server's clock was set back.
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

	/* Decisions measure spans: time that runs backwards would make a deadline pass twice. */
	if (now < clock->last)
		return clock->last;
	/* The guess by our own clock binds nothing: it may be hours ahead of the server's. */
	if (clock->known)
		clock->last = now;
	return now;
}
