/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_SWARM_H
#define HF_TESTS_SIM_SWARM_H

#include "sim/sim.h"

/* Many seeds, in several processes; and what is done with one that fails. */
#define SIM_JOBS_AT_ONCE_MAX 256
#define SIM_SEEDS 100 /* where neither a number nor a time is given */

struct sim_args {
	int64_t start;
	int64_t seeds;   /* -1: not said */
	int64_t seconds; /* 0: no limit */
	int jobs;        /* processes */
	const char *corpus;
	const char *unchecked; /* what may be broken, by the beginning of its name */
	bool narrow_schema, verbose, coverage;
	bool twice; /* each seed is run again, and has to do the same */
	bool brief; /* no story of a failure */
	bool go_on; /* after a failure, of which a line is told */
	bool one;   /* the seed `start` alone */
	bool help;
	bool crash_points;
	const char *scenario; /* of these, the one */
	unsigned each;        /* of these, every so manieth point */
	bool has_only;
	struct sim_ids only;
};

/* 0, or 1: one failed and was told of. */
int sim_swarm(const struct sim_args *args);
int sim_swarm_one(const struct sim_args *args);

/* --- shrink.c --- */
/* One run in a process of its own, which may die of it. */
void sim_try(const struct sim_options *options, struct sim_outcome *ret_outcome);
/* The fewest troubles that still give this failure: ret_kept, sorted. */
void sim_shrink(const struct sim_options *options, const struct sim_outcome *failure,
		struct sim_ids *ret_kept);

#endif
