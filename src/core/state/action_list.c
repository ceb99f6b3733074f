/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "core/model/names.h"

/*
 * The actions of a step: lists that become the stages of the plan.  Each function adds one action
 * or one stage.
 */

void hf_action_add(struct hf_brain *b, struct hf_actions *list, const struct hf_action *action)
{
	hf_assert(action->name);
	list->items = hf_grow(b->arena, list->items, list->len, &list->cap, sizeof(*list->items));
	list->items[list->len++] = *action;
}

void hf_stage_add(struct hf_brain *b, const struct hf_actions *actions)
{
	struct hf_stage *stage = &b->plan->stages[b->plan->stages_len];

	hf_assert(b->plan->stages_len < HF_STAGES_MAX);
	if (actions->len == 0)
		return;
	stage->actions = actions->items;
	stage->actions_len = actions->len;
	b->plan->stages_len++;
}

void hf_pod_delete(struct hf_brain *b, const struct hf_pod *pod, struct hf_opt_int grace)
{
	struct hf_action action = {.kind = HF_ACTION_DELETE_POD,
				   .name = pod->name,
				   .uid = pod->uid,
				   .grace_seconds = grace};

	hf_assert(pod->owned && pod->uid);
	/* A second delete request for a pod that is being deleted would change nothing. */
	if (pod->deletion_time == HF_TIME_NONE)
		hf_action_add(b, &b->deletes, &action);
}

void hf_pod_stop(struct hf_brain *b, const struct hf_pod *pod, const char *why)
{
	const struct hf_opt_int *deadline = &pod->active_deadline_seconds;
	struct hf_action action = {
		.kind = HF_ACTION_STOP_POD, .name = pod->name, .uid = pod->uid, .message = why};

	hf_assert(pod->owned && pod->uid);
	if (pod->deletion_time == HF_TIME_NONE && !(deadline->set && deadline->value <= 1))
		hf_action_add(b, &b->deletes, &action);
}

void hf_service_delete(struct hf_brain *b, const struct hf_service_seen *service)
{
	struct hf_action action = {
		.kind = HF_ACTION_DELETE_SERVICE, .name = service->name, .uid = service->uid};

	hf_assert(service->owned && service->uid);
	if (!service->terminating)
		hf_action_add(b, &b->deletes, &action);
}

const struct hf_key_value *hf_replica_labels(const struct hf_brain *b, int role, int32_t index,
					     int *ret_len)
{
	struct hf_key_value *labels =
		HF_ARENA_ARRAY(b->arena, struct hf_key_value, HF_REPLICA_LABELS);

	hf_assert(role >= 0 && role < b->roles_len && index >= 0);
	labels[0] =
		(struct hf_key_value){HF_LABEL_OPERATOR_NAME, b->job.framework->controller_name};
	labels[1] = (struct hf_key_value){HF_LABEL_JOB_NAME, b->view->name};
	labels[2] = (struct hf_key_value){HF_LABEL_REPLICA_TYPE, b->roles[role].lower};
	labels[3] = (struct hf_key_value){HF_LABEL_REPLICA_INDEX,
					  hf_arena_printf(b->arena, "%d", index)};
	*ret_len = b->roles[role].single ? HF_REPLICA_LABELS - 1 : HF_REPLICA_LABELS;
	return labels;
}
