/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/startups_internal.h"

/*
 * How many jobs start, how long starts take, and how long routine statuses wait because of that.
 * All functions are pure: the caller gives the time.
 */
#define LEAST HF_SECOND
/* Longest wait of a job's first status: as long as a person looks at one job. If many jobs start
 * together, each also waits for the pods of the others. */
#define FIRST_MAX (2 * HF_SECOND)
#define FIRST_PER_JOB (500 * HF_MS)
#define FIRST_MAX_MANY (60 * HF_SECOND)
/* Later statuses only change the number of running ranks. */
#define LATER_MAX (5 * HF_SECOND)
#define LATER_PER_JOB (100 * HF_MS)
#define LATER_MAX_MANY (30 * HF_SECOND)
/* A job that waits 8 s for its last rank may wait 2 s more for its status. A lone job waits for no
 * other. */
#define GATHER_SHARE 4
#define GATHER_PER_JOB (50 * HF_MS)
#define GATHER_MAX (10 * HF_SECOND)
/* Longest start that counts. A few quick jobs outweigh one job that took an hour. */
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
	/* Follows rising times at once and falling ones slowly. */
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
	/* If the start takes longer than the longest wait, write the first status soon. */
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
