/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/startups_internal.h"

/*
 * How many jobs are starting, how long starts take, and how long routine statuses wait because of
 * that.  All functions are pure: the caller gives the time.
 */
#define LEAST HF_SECOND
/* The longest wait of a job's first status: as long as a person looks at one job.  If many jobs
 * start together, each status also waits for the pods of the other jobs. */
#define FIRST_MAX (2 * HF_SECOND)
#define FIRST_PER_JOB (500 * HF_MS)
#define FIRST_MAX_MANY (60 * HF_SECOND)
/* The longest wait of later statuses of a starting job, which only change the number of running
 * ranks. */
#define LATER_MAX (5 * HF_SECOND)
#define LATER_PER_JOB (100 * HF_MS)
#define LATER_MAX_MANY (30 * HF_SECOND)
/* A routine change may wait for a quarter of the usual start: a job that starts in 8 s waits 2 s
 * more for its status.  The wait is limited by the number of starting jobs, so a lone job hardly
 * waits. */
#define GATHER_SHARE 4
#define GATHER_PER_JOB (50 * HF_MS)
#define GATHER_MAX (10 * HF_SECOND)
/* Limit of the counted time of a start, so that a single slow job does not decide for long. */
#define TOOK_MAX (2 * FIRST_MAX_MANY)

static void move_to(struct hf_startups *startups, hf_time now)
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
	move_to(startups, now);
	startups->begun[startups->newest % HF_STARTUPS_SECONDS]++;
	startups->count++;
}

static void note_span(struct hf_startups *startups, hf_time span)
{
	if (span > TOOK_MAX)
		span = TOOK_MAX;
	/* The figure follows a longer start at once, and a shorter one slowly. */
	startups->lately =
		span > startups->lately ? span : startups->lately - (startups->lately - span) / 4;
}

void hf_startups_end(struct hf_startups *startups, hf_time since, bool risen, hf_time now)
{
	hf_time second = since / HF_SECOND;

	move_to(startups, now);
	if (second > startups->newest - HF_STARTUPS_SECONDS) {
		startups->begun[second % HF_STARTUPS_SECONDS]--;
		startups->count--;
	}
	if (risen)
		note_span(startups, now - since);
}

static hf_time find_longest(const struct hf_startups *startups, bool first)
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

	move_to(startups, now);
	max = find_longest(startups, first);
	if (startups->lately == 0)
		return max;
	if (wait < LEAST)
		return LEAST;
	if (wait <= max)
		return wait;
	/* If starts take longer than the longest wait, waiting would not help: write the first
	 * status soon. */
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
