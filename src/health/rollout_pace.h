/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_ROLLOUT_PACE_H
#define HF_HEALTH_ROLLOUT_PACE_H

#include "base/arena.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Whether training is slower on changed nodes: a canary against its history on the same node, and ranks of jobs that
 * train on changed and unchanged nodes at the same time.
 * Input: times. Output: a comparison. Pure.
 */

/* How long a canary took; 0: unknown. */
struct hf_rollout_pace {
	int64_t step_us; /* own work of the slowest rank in a step, without the wait for other ranks */
	int64_t run_ms; /* the whole job, to a second */
};

/* Whether the canary took more than `percent` longer than before: in each step, or else as a whole. Only times that
 * both have are compared. */
bool hf_rollout_is_slower(const struct hf_rollout_pace *before, const struct hf_rollout_pace *after,
			  int32_t percent);
/* Prints the times that hf_rollout_is_slower compares: "130.0 ms in each step, 100.0 ms before". */
#define HF_ROLLOUT_PACE_TEXT_MAX 128
const char *hf_rollout_pace_text(const struct hf_rollout_pace *before,
				 const struct hf_rollout_pace *after,
				 char ret_text[HF_ROLLOUT_PACE_TEXT_MAX]);
/* The shorter of the known times. */
struct hf_rollout_pace hf_rollout_best_pace(const struct hf_rollout_pace *a,
					    const struct hf_rollout_pace *b);

/* ---- ranks of jobs ------------------------------------------------------------------------------ */

/* The least number of nodes of each side, and the least ratio, for ranks to be evidence against the change. One slow
 * node may have been slow before. */
#define HF_ROLLOUT_STEP_NODES 3
#define HF_ROLLOUT_STEP_PERMILLE 1200

/* A rank that reports its steps. Ranks are compared inside of a set: those of one job that do the same work on
 * the same kind of node. */
struct hf_rollout_rank {
	const char *set, *node; /* never NULL */
	bool changed;           /* the node has the change */
	int64_t own_us;         /* own work in a step; above 0 */
};

struct hf_rollout_steps {
	int64_t changed_nodes, unchanged_nodes; /* nodes with ranks that are compared */
	/* The median over the changed nodes of their ranks' own work, in thousandths of the median of the ranks of the
	 * same sets on unchanged nodes; 0: no rank is compared */
	int64_t permille;
};

/* Changes the order of the ranks. */
struct hf_rollout_steps hf_rollout_compare_steps(struct hf_rollout_rank *ranks, size_t len,
						 struct hf_arena *arena);
bool hf_rollout_steps_are_slower(const struct hf_rollout_steps *steps);

HF_END_DECLS

#endif
