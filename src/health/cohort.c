/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/cohort.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const char *const step_names[] = {"give", "soak", "back", "halted", "done"};

const char *hf_health_rollout_step_name(enum hf_health_rollout_step step)
{
	return (unsigned)step < HF_ARRAY_LEN(step_names) ? step_names[step] : "?";
}

const char *hf_health_cohorts_problem(const struct hf_health_cohorts *cohorts)
{
	if (cohorts->len == 0 || cohorts->len > HF_HEALTH_COHORTS_MAX)
		return "between 1 and 16 cohorts";
	if (cohorts->soak < 0 || cohorts->failures_max < 0)
		return "a number below zero";
	for (size_t i = 0; i < cohorts->len; i++) {
		if (cohorts->percents[i] <= (i > 0 ? cohorts->percents[i - 1] : 0))
			return "cohorts that do not grow";
	}
	return cohorts->percents[cohorts->len - 1] == 100 ? NULL : "the last cohort is not all";
}

size_t hf_health_cohort_of(const struct hf_health_cohorts *cohorts, const char *node)
{
	uint64_t hash = hf_hash_str(node);
	/* FNV's low bits differ least between names like n1 and n2. */
	int32_t place = (int32_t)((hash ^ hash >> 32) % 100);
	size_t i = 0;

	while (i + 1 < cohorts->len && place >= cohorts->percents[i])
		i++;
	return i;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Those that have it, or those of the cohort that have not. */
static void name(const struct hf_health_rollout *rollout, bool having, struct hf_arena *arena,
		 struct hf_health_rollout_plan *plan)
{
	const char **names = HF_ARENA_ARRAY(arena, const char *, rollout->len + 1);
	size_t len = 0;

	for (size_t i = 0; i < rollout->len; i++) {
		const struct hf_health_rollout_node *n = &rollout->nodes[i];

		if (n->has == having &&
		    (having || hf_health_cohort_of(rollout->cohorts, n->name) <= plan->cohort))
			names[len++] = n->name;
	}
	if (len > 0)
		qsort(names, len, sizeof(*names), by_text);
	plan->nodes = names;
	plan->nodes_len = len;
}

/* How far it is: whether a cohort has it as a whole, and since when. */
static bool is_complete(const struct hf_health_rollout *rollout, size_t cohort, hf_time *ret_since)
{
	*ret_since = HF_TIME_NONE;
	for (size_t i = 0; i < rollout->len; i++) {
		const struct hf_health_rollout_node *n = &rollout->nodes[i];

		if (hf_health_cohort_of(rollout->cohorts, n->name) > cohort)
			continue;
		if (!n->has)
			return false;
		if (n->since > *ret_since)
			*ret_since = n->since;
	}
	return true;
}

static void advance(const struct hf_health_rollout *rollout, struct hf_arena *arena,
		    struct hf_health_rollout_plan *plan)
{
	const struct hf_health_cohorts *cohorts = rollout->cohorts;
	hf_time since, end;

	for (; plan->cohort < cohorts->len; plan->cohort++) {
		if (!is_complete(rollout, plan->cohort, &since)) {
			plan->step = HF_HEALTH_ROLL_GIVE;
			name(rollout, false, arena, plan);
			return;
		}
		/* An empty cohort needs no watching: nobody has it who did not before. */
		end = since == HF_TIME_NONE ? rollout->now : hf_time_add(since, cohorts->soak);
		if (rollout->now < end) {
			plan->step = HF_HEALTH_ROLL_SOAK;
			plan->wake_at = end;
			return;
		}
	}
	plan->cohort = cohorts->len - 1;
	plan->step = HF_HEALTH_ROLL_DONE;
}

void hf_health_rollout_decide(const struct hf_health_rollout *rollout, struct hf_arena *arena,
			      struct hf_health_rollout_plan *ret_plan)
{
	struct hf_health_rollout_plan plan = {.wake_at = HF_TIME_NEVER};

	hf_assert(!hf_health_cohorts_problem(rollout->cohorts));
	hf_assert(rollout->len <= HF_HEALTH_ROLLOUT_MAX);
	for (size_t i = 0; i < rollout->len; i++)
		plan.failures += rollout->nodes[i].has && rollout->nodes[i].failed;
	if (rollout->halted || plan.failures > rollout->cohorts->failures_max) {
		name(rollout, true, arena, &plan);
		plan.step = plan.nodes_len > 0 ? HF_HEALTH_ROLL_BACK : HF_HEALTH_ROLL_HALTED;
	} else {
		advance(rollout, arena, &plan);
	}
	*ret_plan = plan;
}
