/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_STRAGGLE_H
#define HF_HEALTH_STRAGGLE_H

#include "base/arena.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Finds the rank that delays a job.  In synchronous training all steps take equally long, because all ranks wait for
 * the slowest.  Only the work that a rank does before it waits differs.  So each rank's own work is compared, by
 * medians, with that of its peers.
 */

/* Steps in a window, and steps that are left out at the start of a rank (compilation, caches). */
#define HF_HEALTH_WINDOW_STEPS 10
#define HF_HEALTH_SKIP_STEPS 5
/* After this many reports in a row of ever later steps that lie before the known step, the process has gone back
 * to its checkpoint.  Ranks that hang and repeat their last steps are at most one step apart. */
#define HF_HEALTH_BACK_STEPS 3
/* Number of steps with which a window is compared, to find whether the job as a whole slowed down. */
#define HF_HEALTH_BASE_STEPS 50
/* Limit of the judged ranks of a job. */
#define HF_HEALTH_RANKS_MAX 20000

enum hf_health_phase {
	HF_HEALTH_TRAINING,
	HF_HEALTH_OTHER_PHASE, /* checkpoint, evaluation, compilation: its time is not measured */
};

/* The report of a rank after a step. */
struct hf_health_report {
	/* attempt of the rank's process; a report with another attempt starts a new measurement */
	uint64_t attempt;
	uint64_t step;
	/* time of the step in the rank's own work, and time in which it waited for the other
	 * ranks */
	uint64_t own_us, wait_us;
	enum hf_health_phase phase;
	hf_time at;
};

/* What is kept of a rank between its reports, for the life of the process that judges; zero at the start. */
struct hf_health_rank_memory {
	uint64_t attempt, step;
	bool any;
	uint32_t skipped;
	enum hf_health_phase phase;
	hf_time reported_at, advanced_at;
	uint64_t longest_us;
	uint64_t own_us[HF_HEALTH_WINDOW_STEPS];
	/* sum of the times of the window's steps, waiting included */
	uint64_t total_us;
	uint64_t base_us, base_steps; /* sum and number of the steps before the window */
	uint32_t steps;
	/* The last full window. */
	uint64_t window;
	uint64_t median_own_us, mean_us, base_mean_us;
	uint64_t previous_own_us; /* median of own work in the window before; 0: none */
	/* How many reports in a row were older than the known step, and the last of them. */
	uint32_t behind;
	uint64_t behind_attempt, behind_step;
};

/* Takes a report.  A report that repeats the known step, or is older, counts only as a sign of life, unless
 * HF_HEALTH_BACK_STEPS such reports advance.  True: the rank begins again with this report. */
bool hf_health_rank_report(struct hf_health_rank_memory *rank,
			   const struct hf_health_report *report);

/* One rank of a job, as input of a judgement. */
struct hf_health_rank_view {
	const char *name;
	const char *group; /* role and parallel position: only ranks of one group are compared */
	const struct hf_health_rank_memory *memory;
	/* Results of the last judgement, which the caller keeps. */
	uint64_t judged_window;
	uint32_t slow_windows;
};

struct hf_health_rank_verdict {
	const char *name;
	uint64_t judged_window;
	uint32_t slow_windows;   /* in how many windows in a row the rank was slow */
	uint32_t score_permille; /* own work divided by the peers' median; 0: not known */
	bool straggler;          /* the rank was slow in two windows in a row */
	/* the rank's own work took more than twice the median of its peers */
	bool strong;
	bool lost; /* the rank has sent no report for 30 s */
};

struct hf_health_job_verdict {
	const struct hf_health_rank_verdict *ranks; /* in the order of the input */
	size_t ranks_len;
	size_t stragglers, lost;
	bool slow; /* the whole job is slow, and no single rank is the cause */
	bool hung; /* no rank advances */
	hf_time hung_since;
	hf_time wake_at;
};

/* Judges a job.  The verdicts are information; to evict a rank other evidence is needed too. */
void hf_health_job_judge(const struct hf_health_rank_view *ranks, size_t len, hf_time now,
			 struct hf_arena *arena, struct hf_health_job_verdict *ret_verdict);

HF_END_DECLS

#endif
