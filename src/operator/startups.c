/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/startups_internal.h"

/* A status waits half as long again as jobs took lately, at least this: pods of a job come within a
 * second of each other. */
#define LEAST HF_SECOND
/* The first status of a job is not kept back for longer than people look at one job; of many that
 * begin together each waits for the others' pods as well, and nobody looks at all of them. */
#define FIRST_MAX (2 * HF_SECOND)
#define FIRST_PER_JOB (500 * HF_MS)
#define FIRST_MAX_MANY (60 * HF_SECOND)
/* Whoever has a status is told less of: only of how many ranks run. */
#define LATER_MAX (5 * HF_SECOND)
#define LATER_PER_JOB (100 * HF_MS)
#define LATER_MAX_MANY (30 * HF_SECOND)
/* Who waits eight seconds for the last rank is not harmed by two more; a job that is alone on its way
 * waits for nobody. */
#define GATHER_SHARE 4
#define GATHER_PER_JOB (50 * HF_MS)
#define GATHER_MAX (10 * HF_SECOND)
/* One job that took an hour says nothing of the next: a few that are quick make up for it. */
#define TOOK_MAX (2 * FIRST_MAX_MANY)

static void advance(struct hf_startups *startups, hf_time now)
{
	hf_time second = now / HF_SECOND;

	if (second - startups->newest > HF_STARTUPS_SECONDS)
		startups->newest = second - HF_STARTUPS_SECONDS;
	while (startups->newest < second) {
		size_t *oldest = &startups->begun[++startups->newest % HF_STARTUPS_SECONDS];

		startups->count -= *oldest;
		*oldest = 0;
	}
}

void hf_startups_begin(struct hf_startups *startups, hf_time now)
{
	advance(startups, now);
	startups->begun[startups->newest % HF_STARTUPS_SECONDS]++;
	startups->count++;
}

static void took(struct hf_startups *startups, hf_time span)
{
	if (span > TOOK_MAX)
		span = TOOK_MAX;
	/* At once where load grows, slowly back. */
	startups->lately =
		span > startups->lately ? span : startups->lately - (startups->lately - span) / 4;
}

void hf_startups_end(struct hf_startups *startups, hf_time since, bool risen, hf_time now)
{
	hf_time second = since / HF_SECOND;

	advance(startups, now);
	if (second > startups->newest - HF_STARTUPS_SECONDS) {
		startups->begun[second % HF_STARTUPS_SECONDS]--;
		startups->count--;
	}
	if (risen)
		took(startups, now - since);
}

static hf_time longest(const struct hf_startups *startups, bool first)
{
	hf_time others = startups->count > 0 ? (hf_time)startups->count - 1 : 0;
	hf_time max =
		first ? FIRST_MAX + others * FIRST_PER_JOB : LATER_MAX + others * LATER_PER_JOB;
	hf_time max_many = first ? FIRST_MAX_MANY : LATER_MAX_MANY;

	return max < max_many ? max : max_many;
}

hf_time hf_startups_status_wait(struct hf_startups *startups, bool first, hf_time now)
{
	hf_time wait = startups->lately * 3 / 2, max;

	advance(startups, now);
	max = longest(startups, first);
	if (startups->lately == 0)
		return max;
	if (wait < LEAST)
		return LEAST;
	if (wait <= max)
		return wait;
	/* Where even the longest wait would not tell all, the first word comes soon. */
	return first && startups->lately > max ? LEAST : max;
}

hf_time hf_startups_gather_time(const struct hf_startups *startups)
{
	hf_time share = startups->lately / GATHER_SHARE;
	hf_time max = (hf_time)startups->count * GATHER_PER_JOB;

	if (max > GATHER_MAX)
		max = GATHER_MAX;
	return share < max ? share : max;
}
