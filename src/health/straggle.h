/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_STRAGGLE_H
#define HF_HEALTH_STRAGGLE_H

#include "base/arena.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Which rank holds the others up.  In synchronous training all steps take equally long, for all
 * wait for the slowest; what differs is the work that a rank does before it waits.  So each rank's
 * own work is compared, by medians, with that of its peers.
 */

/* Steps in a window, and steps that are left out at the start (compilation, caches). */
#define HF_HEALTH_WINDOW_STEPS 10
#define HF_HEALTH_SKIP_STEPS 5
/* So many reports in a row, of ever later steps before the one that is known, are of a process that went
 * back to its checkpoint.  Ranks that hang and say their last step again are a step apart at most. */
#define HF_HEALTH_BACK_STEPS 3
/* Steps that a window is compared with to see whether the job as a whole slowed down. */
#define HF_HEALTH_BASE_STEPS 50
/* Of one job. */
#define HF_HEALTH_RANKS_MAX 20000

enum hf_health_phase {
	HF_HEALTH_TRAINING,
	HF_HEALTH_OTHER_PHASE, /* checkpoint, evaluation, compilation: measured by nothing here */
};

/* What a rank says after a step. */
struct hf_health_report {
	uint64_t attempt; /* another one begins anew */
	uint64_t step;
	uint64_t own_us, wait_us; /* before the barrier, and in it */
	enum hf_health_phase phase;
	hf_time at;
};

/* What is kept of a rank between reports: process lifetime, zero at the start. */
struct hf_health_rank_memory {
	uint64_t attempt, step;
	bool any;
	uint32_t skipped;
	enum hf_health_phase phase;
	hf_time reported_at, advanced_at;
	uint64_t longest_us;
	uint64_t own_us[HF_HEALTH_WINDOW_STEPS];
	uint64_t total_us;            /* of the window's steps, waiting included */
	uint64_t base_us, base_steps; /* of the steps before it */
	uint32_t steps;
	/* The last full window. */
	uint64_t window;
	uint64_t median_own_us, mean_us, base_mean_us;
	uint64_t previous_own_us; /* the median of the previous window; 0: none */
	/* Reports in a row that are older than what is known, and the last of them. */
	uint32_t behind;
	uint64_t behind_attempt, behind_step;
};

/* A report that is older than what is known, or repeats it, changes nothing but the sign of life, unless
 * HF_HEALTH_BACK_STEPS of them advance.  True: with this one the rank begins anew. */
bool hf_health_rank_report(struct hf_health_rank_memory *rank,
			   const struct hf_health_report *report);

/* One rank of a job, to be judged. */
struct hf_health_rank_view {
	const char *name;
	const char *group; /* role and parallel position: only these are compared */
	const struct hf_health_rank_memory *memory;
	/* Kept by the caller from the last judgement. */
	uint64_t judged_window;
	uint32_t slow_windows;
};

struct hf_health_rank_verdict {
	const char *name;
	uint64_t judged_window;
	uint32_t slow_windows;   /* in a row */
	uint32_t score_permille; /* own work over the peers' median; 0: not known */
	bool straggler;          /* two windows in a row */
	bool strong;             /* more than twice the median */
	bool lost;               /* no report for 30 s */
};

struct hf_health_job_verdict {
	const struct hf_health_rank_verdict *ranks; /* in the order of the input */
	size_t ranks_len;
	size_t stragglers, lost;
	bool slow; /* the whole job, with nobody to blame */
	bool hung; /* no rank advances */
	hf_time hung_since;
	hf_time wake_at;
};

/* Verdicts are for telling; to evict a rank needs evidence of another kind beside it. */
void hf_health_job_judge(const struct hf_health_rank_view *ranks, size_t len, hf_time now,
			 struct hf_arena *arena, struct hf_health_job_verdict *ret_verdict);

HF_END_DECLS

#endif
