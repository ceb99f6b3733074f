/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_COHORT_H
#define HF_HEALTH_COHORT_H

#include "base/arena.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Something new (a driver, a plugin, a table of rules) comes to a fleet in cohorts, each larger
 * than the one before, and goes back where it does harm.  Who is in which is decided by the names
 * of the nodes, so it does not change while a roll-out goes on, whatever nodes come and go.
 */

#define HF_HEALTH_COHORTS_MAX 16
#define HF_HEALTH_ROLLOUT_MAX 20000

struct hf_health_cohorts {
	int32_t percents[HF_HEALTH_COHORTS_MAX]; /* of the nodes, growing; the last one is 100 */
	size_t len;
	hf_time soak;         /* that a cohort is watched for, from when its last node has it */
	int32_t failures_max; /* of all nodes that have it: more stop it and take it back */
};

struct hf_health_rollout_node {
	const char *name;
	bool has;      /* it has the new one */
	hf_time since; /* when it got it; NONE where it has not */
	bool failed;   /* stopped, or its agent was lost, after it got it */
};

enum hf_health_rollout_step {
	HF_HEALTH_ROLL_GIVE, /* to the nodes that are named */
	HF_HEALTH_ROLL_SOAK,
	HF_HEALTH_ROLL_BACK,   /* take it from the nodes that are named */
	HF_HEALTH_ROLL_HALTED, /* it was taken back from all: a person decides */
	HF_HEALTH_ROLL_DONE,
};

struct hf_health_rollout {
	const struct hf_health_cohorts *cohorts;
	/* Kept by the caller: set once it was BACK or HALTED, until a person clears it. */
	bool halted;
	const struct hf_health_rollout_node *nodes;
	size_t len; /* at most HF_HEALTH_ROLLOUT_MAX */
	hf_time now;
};

struct hf_health_rollout_plan {
	enum hf_health_rollout_step step;
	size_t cohort; /* that it is about */
	int32_t failures;
	const char *const *nodes; /* by name */
	size_t nodes_len;
	hf_time wake_at;
};

const char *hf_health_rollout_step_name(enum hf_health_rollout_step step);
/* NULL, or what cannot be meant: a static text. */
const char *hf_health_cohorts_problem(const struct hf_health_cohorts *cohorts);
/* The first cohort that a node of this name is in. */
size_t hf_health_cohort_of(const struct hf_health_cohorts *cohorts, const char *node);

void hf_health_rollout_decide(const struct hf_health_rollout *rollout, struct hf_arena *arena,
			      struct hf_health_rollout_plan *ret_plan);

HF_END_DECLS

#endif
