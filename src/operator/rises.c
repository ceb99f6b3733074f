/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/rises_internal.h"

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

static void advance(struct hf_rises *rises, hf_time now)
{
	hf_time second = now / HF_SECOND;

	if (second - rises->newest > HF_RISES_SECONDS)
		rises->newest = second - HF_RISES_SECONDS;
	while (rises->newest < second) {
		size_t *oldest = &rises->begun[++rises->newest % HF_RISES_SECONDS];

		rises->count -= *oldest;
		*oldest = 0;
	}
}

void hf_rises_begin(struct hf_rises *rises, hf_time now)
{
	advance(rises, now);
	rises->begun[rises->newest % HF_RISES_SECONDS]++;
	rises->count++;
}

static void took(struct hf_rises *rises, hf_time span)
{
	if (span > TOOK_MAX)
		span = TOOK_MAX;
	/* At once where load grows, slowly back. */
	rises->lately = span > rises->lately ? span : rises->lately - (rises->lately - span) / 4;
}

void hf_rises_end(struct hf_rises *rises, hf_time since, bool risen, hf_time now)
{
	hf_time second = since / HF_SECOND;

	advance(rises, now);
	if (second > rises->newest - HF_RISES_SECONDS) {
		rises->begun[second % HF_RISES_SECONDS]--;
		rises->count--;
	}
	if (risen)
		took(rises, now - since);
}

static hf_time longest(const struct hf_rises *rises, bool first)
{
	hf_time others = rises->count > 0 ? (hf_time)rises->count - 1 : 0;
	hf_time max =
		first ? FIRST_MAX + others * FIRST_PER_JOB : LATER_MAX + others * LATER_PER_JOB;
	hf_time max_many = first ? FIRST_MAX_MANY : LATER_MAX_MANY;

	return max < max_many ? max : max_many;
}

hf_time hf_rises_patience(struct hf_rises *rises, bool first, hf_time now)
{
	hf_time wait = rises->lately * 3 / 2, max;

	advance(rises, now);
	max = longest(rises, first);
	if (rises->lately == 0)
		return max;
	if (wait < LEAST)
		return LEAST;
	if (wait <= max)
		return wait;
	/* Where even the longest wait would not tell all, the first word comes soon. */
	return first && rises->lately > max ? LEAST : max;
}

hf_time hf_rises_gather(const struct hf_rises *rises)
{
	hf_time share = rises->lately / GATHER_SHARE;
	hf_time max = (hf_time)rises->count * GATHER_PER_JOB;

	if (max > GATHER_MAX)
		max = GATHER_MAX;
	return share < max ? share : max;
}
