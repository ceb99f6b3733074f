/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_ACTIONS_INTERNAL_H
#define HF_CORE_ACTIONS_INTERNAL_H

#include "core/policy/policy_internal.h"

HF_BEGIN_DECLS

/*
 * The actions that bring the objects of a job to what the ledger says.  Input: the working state
 * after all policies.  Output: the lists of actions, and notes on what an action waits for.
 */

/* Delete superfluous pods and create missing pods. */
void hf_pods_plan(struct hf_brain *b);
void hf_services_plan(struct hf_brain *b);
/* Make, change and delete extra objects; after the counts are known, before pods are planned. */
void hf_extras_plan(struct hf_brain *b);
/* Delete the extra objects that a job which is not active must not have. */
void hf_extras_drop(struct hf_brain *b, enum hf_life life);
/* Delete, stop or keep each pod of a finished job, and tell which ones still run. */
void hf_cleanup_step(struct hf_brain *b);

/* ---- pod_group.c --------------------------------------------------------------------------------- */

enum hf_extra_kind hf_pod_group_kind(const struct hf_settings *settings);
/* Add the group of the job, if there is a gang scheduler. */
void hf_pod_group_extra(const struct hf_job *job, const struct hf_ranks_seen *seen,
			struct hf_extras *extras);
/* The pods of the job must wait: Volcano has not admitted the group. */
bool hf_pod_group_awaited(const struct hf_brain *b);
/* What a pod says of its group. */
void hf_pod_group_edits(const struct hf_brain *b, int role, struct hf_edits *edits);
/* Warn if a template has a scheduler of its own. */
void hf_pod_group_warn(const struct hf_brain *b);

HF_END_DECLS

#endif
