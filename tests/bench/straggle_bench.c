/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/straggle.h"

#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * How surely and how soon a slow rank is found: simulated jobs in which each step of each rank takes
 * one second of its own work, with noise, and in every second job one rank is slower.
 *
 *     straggle_bench [JOBS]
 *
 * The noise: each rank's step is multiplied by a normal factor of the deviation that is given; each rank
 * has a constant speed of its own (deviation 2 %, as of good nodes that differ); and one step in a
 * hundred takes three times as long (a checkpoint, the network).  A verdict that names a rank which
 * is not slow is wrong; a slow rank that is not named within 200 steps is missed.
 */

#define RANKS 64
#define STEPS 200
#define OWN_US 1000000.0
#define OUTLIER_PERCENT 1
#define OUTLIER_FACTOR 3
#define SPEED_DEVIATION 0.02

static uint64_t seed = 42;

static double uniform(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(seed >> 33) + 0.5) / 2147483648.0;
}

/* The sum of twelve: near enough to normal, and the same on every machine. */
static double normal(double deviation)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += uniform();
	return 1 + deviation * (sum - 6);
}

struct result {
	int named_right, named_wrong, slow_jobs;
	int steps_to_verdict[STEPS + 1];
};

struct job {
	struct hf_health_rank_memory memory[RANKS];
	struct hf_health_rank_view views[RANKS];
	char names[RANKS][16];
	double speed[RANKS];
};

static void report(struct job *job, int step, double noise, int slow, double factor)
{
	for (int r = 0; r < RANKS; r++) {
		double own = OWN_US * job->speed[r] * normal(noise) * (r == slow ? factor : 1);
		struct hf_health_report said = {.step = (uint64_t)step, .at = step * HF_SECOND};

		if (uniform() * 100 < OUTLIER_PERCENT)
			own *= OUTLIER_FACTOR;
		said.own_us = (uint64_t)own;
		hf_health_rank_report(&job->memory[r], &said);
	}
}

static void run(struct result *result, double noise, int slow, double factor,
		struct hf_arena *arena)
{
	struct job *job = hf_xcalloc(1, sizeof(*job));
	bool named[RANKS] = {false};

	for (int r = 0; r < RANKS; r++) {
		job->speed[r] = normal(SPEED_DEVIATION);
		snprintf(job->names[r], sizeof(job->names[r]), "%d", r);
		job->views[r] = (struct hf_health_rank_view){
			.name = job->names[r], .group = "", .memory = &job->memory[r]};
	}
	result->slow_jobs += slow >= 0;
	for (int step = 1; step <= STEPS; step++) {
		struct hf_health_job_verdict verdict;

		report(job, step, noise, slow, factor);
		hf_arena_reset(arena);
		hf_health_job_judge(job->views, RANKS, step * HF_SECOND, arena, &verdict);
		for (int r = 0; r < RANKS; r++) {
			job->views[r].judged_window = verdict.ranks[r].judged_window;
			job->views[r].slow_windows = verdict.ranks[r].slow_windows;
			if (!verdict.ranks[r].straggler || named[r])
				continue;
			named[r] = true;
			if (r == slow)
				result->steps_to_verdict[step]++;
			result->named_right += r == slow;
			result->named_wrong += r != slow;
		}
	}
	free(job);
}

/* After how many steps, of the jobs in which it was found, the given share had been. */
static int steps_at(const struct result *result, double share)
{
	int found = 0;

	for (int step = 0; step <= STEPS; step++) {
		found += result->steps_to_verdict[step];
		if (found > 0 && found >= share * result->named_right)
			return step;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const double noises[] = {0.03, 0.10}, factors[] = {1.1, 1.2, 1.3, 2.0};
	int64_t jobs = 300;
	struct hf_error err;
	struct hf_arena *arena = hf_arena_create((size_t)16 << 20);

	if (argc > 1 && hf_str_to_i64(argv[1], 2, 100000, &jobs, &err) != 0) {
		fprintf(stderr, "straggle_bench: %s\n", err.text);
		return 2;
	}
	for (size_t n = 0; n < HF_ARRAY_LEN(noises); n++) {
		for (size_t f = 0; f < HF_ARRAY_LEN(factors); f++) {
			struct result result = {0};
			int named;

			for (int64_t i = 0; i < jobs; i++)
				run(&result, noises[n], i % 2 == 0 ? (int)(i / 2 % RANKS) : -1,
				    factors[f], arena);
			named = result.named_right + result.named_wrong;
			printf("straggle noise-%.0f-slower-%.0f precision=%.3f recall=%.3f jobs=%lld "
			       "median=%d p99=%d\n",
			       noises[n] * 100, (factors[f] - 1) * 100,
			       named > 0 ? (double)result.named_right / named : 1.0,
			       (double)result.named_right / result.slow_jobs, (long long)jobs,
			       steps_at(&result, 0.5), steps_at(&result, 0.99));
		}
	}
	hf_arena_destroy(arena);
	return 0;
}
