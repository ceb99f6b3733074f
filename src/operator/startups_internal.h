/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_STARTUPS_INTERNAL_H
#define HF_OPERATOR_STARTUPS_INTERNAL_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * How jobs fare on their way up, from the first rank that is missing until all run: how many are on
 * it, and how long it took lately.  From that follows how long a status that only tells of progress
 * waits for more of it, so that mostly one tells all.  All times are monotonic.
 */

/* Jobs that are longer on their way than so many seconds are not counted: they wait for machines,
 * and others need not wait for them. */
#define HF_STARTUPS_SECONDS 64

/* All zero at first. */
struct hf_startups {
	hf_time lately; /* how long jobs took until all of their ranks ran; 0: none did yet */
	size_t count;   /* jobs on their way */
	size_t begun[HF_STARTUPS_SECONDS]; /* of these, by the second modulo that */
	hf_time newest;                    /* the last second of begun */
};

void hf_startups_begin(struct hf_startups *startups, hf_time now);
/* A job that began at since is not on its way any more; risen: since all of its ranks run. */
void hf_startups_end(struct hf_startups *startups, hf_time since, bool risen, hf_time now);
/* How long a status waits; first: the job has none yet. */
hf_time hf_startups_status_wait(struct hf_startups *startups, bool first, hf_time now);
/* How long changes of a job on its way up that decide nothing alone are left to gather: a small
 * part of the way. */
hf_time hf_startups_gather_time(const struct hf_startups *startups);

#endif
