/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/plan.h"

#include "core/model/extra_object.h"

/*
 * The names of actions and of topics, as messages and `holdfast why` show them.
 */

static const char *const action_names[] = {
	[HF_ACTION_CREATE_POD] = "create pod",
	[HF_ACTION_DELETE_POD] = "delete pod",
	[HF_ACTION_CREATE_SERVICE] = "create service",
	[HF_ACTION_DELETE_SERVICE] = "delete service",
	[HF_ACTION_DELETE_JOB] = "delete job",
	[HF_ACTION_FAIL_POD] = "fail pod",
	[HF_ACTION_STOP_POD] = "stop pod",
	[HF_ACTION_CREATE_EXTRA] = "create",
	[HF_ACTION_UPDATE_EXTRA] = "update",
	[HF_ACTION_DELETE_EXTRA] = "delete",
};
static const char *const topic_names[] = {
	[HF_TOPIC_EVIDENCE] = "evidence", [HF_TOPIC_CLASS] = "class",   [HF_TOPIC_RULE] = "rule",
	[HF_TOPIC_DECISION] = "decision", [HF_TOPIC_BUDGET] = "budget", [HF_TOPIC_DONE] = "done",
	[HF_TOPIC_BLOCKED] = "blocked",   [HF_TOPIC_NEXT] = "next",
};

const char *hf_action_name(enum hf_action_kind kind)
{
	hf_assert((size_t)kind < HF_ARRAY_LEN(action_names));
	return action_names[kind];
}

const char *hf_topic_name(enum hf_topic topic)
{
	hf_assert((size_t)topic < HF_ARRAY_LEN(topic_names));
	return topic_names[topic];
}

size_t hf_plan_actions(const struct hf_plan *plan)
{
	size_t n = 0;

	hf_assert(plan->stages_len <= HF_STAGES_MAX);
	for (size_t i = 0; i < plan->stages_len; i++)
		n += plan->stages[i].actions_len;
	return n;
}
