/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_ACTIONS_INTERNAL_H
#define HF_CORE_ACTIONS_INTERNAL_H

#include "core/policy/policy_internal.h"

HF_BEGIN_DECLS

/*
 * The objects that a job should have.  Input: the working state after all policies have run.
 * Output: the lists of actions that create, change and delete objects, and notes on what an action
 * waits for.
 */

/* Plans the deletes of superfluous pods and the creates of missing pods. */
void hf_pods_plan(struct hf_brain *b);
void hf_services_plan(struct hf_brain *b);
/* Create, change and delete extra objects.  Runs after the replicas are counted and before pods are
 * planned. */
void hf_extras_plan(struct hf_brain *b);
/* Delete the extra objects that a suspended or finished job must not have. */
void hf_extras_drop(struct hf_brain *b, enum hf_life life);
/* Delete, stop or keep each pod of a finished job, and report which pods still run. */
void hf_cleanup_step(struct hf_brain *b);

/* ---- inject.c ------------------------------------------------------------------------------------ */

/* Put `holdfast exec` before the command, if recovery.exec is Inject, and give it recovery.logRules.  HF_E_INVALID: that
 * cannot be. */
int hf_inject_exec(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		   struct hf_error *err) HF_MUST_CHECK;

/* ---- pod_group.c --------------------------------------------------------------------------------- */

enum hf_extra_kind hf_pod_group_kind(const struct hf_settings *settings);
/* Add the job's pod group, if the settings name a gang scheduler. */
void hf_pod_group_extra(const struct hf_job *job, const struct hf_ranks_seen *seen,
			struct hf_extras *extras);
/* True: the job must not create pods yet, because Volcano has not admitted its group. */
bool hf_pod_group_awaited(const struct hf_brain *b);
/* Add to a pod's edits the label or annotation that names its group, and the scheduler. */
void hf_pod_group_edits(const struct hf_brain *b, int role, struct hf_edits *edits);
/* Warn if a template names a scheduler other than the gang scheduler. */
void hf_pod_group_warn(const struct hf_brain *b);

HF_END_DECLS

#endif
