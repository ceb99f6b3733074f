/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

/*
 * Pods on nodes that are lost.  One that nobody deletes is given up: counted, and then deleted as
 * any other that has ended.  One that is terminating, whoever deletes it and whatever the job is
 * doing, is waited for until its node is known to be dead; then its phase is set to Failed, so
 * that others see what became of it, and in the next step, when all still holds, its object is
 * removed by force.  Both requests name its resourceVersion: a kubelet that comes back and writes
 * one word wins.  A job that was deleted decides nothing any more: for what it has left, the next job
 * of its name and kind does, which waits for these names.
 */

/* Admission gives every pod this toleration; what is longer was written by a person. */
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

	/* Who is proven dead runs nothing that a grace or a toleration could be for. */
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
