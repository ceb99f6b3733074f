/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_SWARM_H
#define HF_TESTS_SIM_SWARM_H

#include "sim/sim.h"

/* Runs many seeds in several processes, and reports one that fails. */
#define SIM_JOBS_AT_ONCE_MAX 256
#define SIM_SEEDS 100 /* number of seeds without --seeds and --seconds */

struct sim_args {
	int64_t start;
	int64_t seeds;   /* -1: the option is absent */
	int64_t seconds; /* 0: no limit */
	int jobs;        /* processes */
	const char *corpus;
	const char *unchecked; /* invariants whose names begin so may break */
	bool narrow_schema, verbose, coverage;
	bool twice; /* each seed runs twice and must do the same both times */
	bool brief; /* no story of a failure */
	bool go_on; /* go on after a failure; each failure prints a line */
	bool one;   /* the seed `start` alone */
	bool help;
	bool crash_points;
	const char *scenario; /* of the crash points: only this scenario */
	unsigned each;        /* of the crash points: every n-th one */
	bool has_only;
	struct sim_ids only;
};

/* Returns 0, or 1 if a seed failed and was reported. */
int sim_swarm(const struct sim_args *args);
int sim_swarm_one(const struct sim_args *args);

/* --- shrink.c --- */
/* Runs a seed in a process of its own, so that a crash of the run does not end this process. */
void sim_try(const struct sim_options *options, struct sim_outcome *ret_outcome);
/* Finds a small set of troubles with which the same invariant still breaks. *ret_kept is sorted. */
void sim_shrink(const struct sim_options *options, const struct sim_outcome *failure,
		struct sim_ids *ret_kept);

#endif
