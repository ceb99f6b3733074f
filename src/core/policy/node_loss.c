/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * The rule that decides when the pod of a lost node is given up.  A pod that is given up counts as
 * terminated, and its rank gets a replacement.  Input: the node's evidence (node_evidence.c) and
 * the pod's own toleration and deadline.  The deadline counts from the deletionTimestamp, which the
 * API server wrote.  Output: struct hf_evidence, in which guard NONE means that the pod is given
 * up.
 */

/* Admission adds a toleration of 300 s to every pod.  A longer toleration was written by the
 * user. */
#define INJECTED_TOLERATION_SECONDS 300

static struct hf_evidence wait_until(struct hf_evidence evidence, enum hf_guard guard, hf_time at)
{
	evidence.guard = guard;
	evidence.until = at;
	return evidence;
}

struct hf_evidence hf_node_loss_evidence(const struct hf_brain *b, const struct hf_node *node,
					 const struct hf_pod *pod)
{
	struct hf_evidence evidence = hf_node_evidence(b, node, pod);
	const struct hf_opt_int *toleration = &pod->tolerates_unreachable;
	hf_time at;

	/* On a machine that is proven dead no process runs, so neither the grace nor the toleration
	 * matters. */
	if (evidence.guard != HF_GUARD_NONE || evidence.proven)
		return evidence;
	if (hf_pod_is_terminating(pod)) {
		at = hf_time_add(pod->deletion_time,
				 hf_seconds(b->job.recovery.force_delete_after_seconds));
		return b->now < at ? wait_until(evidence, HF_GUARD_DEADLINE, at) : evidence;
	}
	if (!toleration->set || toleration->value <= INJECTED_TOLERATION_SECONDS)
		return evidence;
	at = hf_time_add(node->seen->since, hf_seconds(toleration->value));
	return b->now < at ? wait_until(evidence, HF_GUARD_TOLERATION, at) : evidence;
}

bool hf_node_loss_gives_up(const struct hf_brain *b, const struct hf_pod *pod)
{
	const struct hf_node *node = hf_node_lost(b, pod);

	if (!node || hf_pod_is_terminating(pod) || hf_pod_is_terminal(pod))
		return false;
	return hf_node_loss_evidence(b, node, pod).guard == HF_GUARD_NONE;
}
