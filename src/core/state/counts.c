/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/*
 * The counts of replicaStatuses.
 *
 * As upstream: active is Running and not terminating; succeeded and failed go by the pod's phase;
 * Pending counts nowhere.  Two differences: a rank that succeeded stays succeeded when its pod is
 * gone; and a rank is failed if its own container has failed for good, even if another container
 * keeps the pod.
 *
 * While the job is suspended, active is every pod that is not terminal, until the pod is gone:
 * Kueue releases the quota when active is 0.
 */

/* A held rank is not active: its pod runs, but its process does not. A pod of an older attempt
 * counts only if it failed, so a rank that is being replaced is neither active nor failed. */
static void count_active(struct hf_brain *b, int role)
{
	const struct hf_role_slots *ranks = &b->roles[role];
	struct hf_counts *counts = &b->counts[role];

	for (int32_t i = 0; i < ranks->replicas; i++) {
		const struct hf_slot *slot = &ranks->slots[i];
		const struct hf_pod *pod = slot->pod;

		hf_assert(!slot->current || pod);
		if (slot->succeeded)
			counts->succeeded++;
		else if (slot->phase == HF_SLOT_BROKEN)
			counts->failed++;
		else if (slot->current && pod->phase == HF_POD_RUNNING &&
			 pod->deletion_time == HF_TIME_NONE && !slot->held)
			counts->active++;
		else if (pod && pod->phase == HF_POD_FAILED &&
			 (pod->stamped ? pod->generation == b->ledger.generation
				       : slot->current || b->ledger.phase != HF_PHASE_TEARING))
			counts->failed++;
		if (i == 0)
			counts->first_succeeded = slot->succeeded;
	}
}

/* The operator has set the pod's phase to Failed and is about to delete the object. Until then the
 * pod counts as active. */
static bool is_given_up(const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->conditions_len; i++) {
		if (hf_streq(pod->conditions[i].type, HF_POD_COND_NODE_LOST))
			return pod->deletion_time != HF_TIME_NONE;
	}
	return false;
}

static void count_suspended(struct hf_brain *b, int role)
{
	for (int32_t i = 0; i < b->roles[role].slots_len; i++) {
		const struct hf_pod *pod = b->roles[role].slots[i].pod;

		if (pod && (!hf_pod_is_terminal(pod) || is_given_up(pod)))
			b->counts[role].active++;
	}
}

void hf_counts_take(struct hf_brain *b)
{
	bool suspended = b->job.suspend && !hf_cond_finished(b);

	memset(b->counts, 0, sizeof(b->counts));
	for (int r = 0; r < b->roles_len; r++) {
		if (suspended)
			count_suspended(b, r);
		else
			count_active(b, r);
		hf_assert(b->counts[r].succeeded <= b->roles[r].replicas);
	}
}

void hf_counts_write(struct hf_brain *b)
{
	const struct hf_framework *framework = b->job.framework;

	for (int r = 0; r < b->roles_len; r++) {
		struct hf_replica_status *status = &b->plan->status.replicas[r];

		if (!status->present && !b->roles[r].present)
			continue;
		status->present = true;
		status->active = b->counts[r].active;
		status->succeeded = b->counts[r].succeeded;
		status->failed = b->counts[r].failed;
		/* The selector of a job never changes. Its keys are sorted by bytes, as in a
		 * formatted label selector. */
		if (framework->has_scale && !status->selector)
			status->selector = hf_arena_printf(
				b->arena,
				HF_LABEL_JOB_NAME "=%s," HF_LABEL_OPERATOR_NAME
						  "=%s," HF_LABEL_REPLICA_TYPE "=%s",
				b->view->name, framework->controller_name, b->roles[r].lower);
	}
}
