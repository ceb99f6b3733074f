/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_STARTUPS_INTERNAL_H
#define HF_OPERATOR_STARTUPS_INTERNAL_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>

/* How many jobs are starting (from the first missing rank until all ranks run), and how long starts
 * took lately.  From this follows how long a status about mere progress waits, so that mostly one
 * status shows the whole start.  All times are monotonic. */

/* A job that starts for longer than this many seconds is no longer counted: it waits for machines,
 * and the statuses of other jobs need not wait for it. */
#define HF_STARTUPS_SECONDS 64

/* Measures how long jobs take to start. All members are zero at first. */
struct hf_startups {
	hf_time lately; /* how long it took lately until all ranks ran; 0: unknown */
	size_t count;   /* jobs that are starting */
	size_t begun[HF_STARTUPS_SECONDS]; /* starts in each second, modulo HF_STARTUPS_SECONDS */
	hf_time newest;                    /* the newest second that `begun` counts */
};

void hf_startups_begin(struct hf_startups *startups, hf_time now);
/* Note that the start of a job that began at `since` is over.  risen: it is over because all ranks
 * run. */
void hf_startups_end(struct hf_startups *startups, hf_time since, bool risen, hf_time now);
/* How long a routine status waits.  first: the job has no status yet. */
hf_time hf_startups_status_wait(struct hf_startups *startups, bool first, hf_time now);
/* How long routine changes of a starting job wait for further ones: a small part of the usual
 * start. */
hf_time hf_startups_gather_time(const struct hf_startups *startups);

#endif
