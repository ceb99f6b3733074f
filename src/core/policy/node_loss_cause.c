/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * Whether the loss of a node is the cause of what other ranks did.  Input: the time of the other
 * ranks' terminations, the nodes and pods seen.  Output: a termination of the rank on the lost
 * node.
 */

/* The pod's attempt had started before that incident opened. */
static bool is_covered(const struct hf_pod *pod, int64_t incident)
{
	return (pod->stamped ? pod->incident : 0) < incident;
}

/*
 * The pod ended by itself: its kubelet reported the termination, so the kubelet was alive at that
 * time.
 *
 * Exception: the pod that opened the incident by its termination.  If its node is not heard of
 * again, that termination was the first sign of the loss.
 */
static bool is_end_of_its_own(const struct hf_brain *b, int role, const struct hf_pod *pod,
			      int64_t incident)
{
	const struct hf_record *last = &b->ledger.records[0];

	return hf_pod_is_reported(pod, hf_own_container(b, role, pod)) &&
	       !(b->ledger.records_len > 0 && last->incident == incident &&
		 hf_streq(last->pod, pod->name));
}

static bool find_lost(const struct hf_brain *b, int64_t incident, hf_time at, bool counts,
		      struct hf_termination *ret_end)
{
	for (int r = 0; b->nodes_lost > 0 && r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];
			const struct hf_pod *pod = slot->pod;
			const struct hf_node *node;

			if (!pod || slot->succeeded || pod->phase == HF_POD_SUCCEEDED ||
			    is_end_of_its_own(b, r, pod, incident) || !is_covered(pod, incident))
				continue;
			node = hf_node_blamed(b, pod);
			if (!node || !hf_node_was_silent(node, at) ||
			    (counts && !hf_node_counts_as_lost(b, node, pod)))
				continue;
			*ret_end = (struct hf_termination){.kind = HF_TERMINATION_LOST,
							   .role = r,
							   .index = i,
							   .pod = pod,
							   .finished_at = HF_TIME_NONE,
							   .rule = -1};
			hf_classify(b, ret_end);
			return true;
		}
	}
	return false;
}

bool hf_node_loss_suspect(const struct hf_brain *b, int64_t incident, hf_time at,
			  struct hf_termination *ret_end)
{
	return find_lost(b, incident, at, false, ret_end);
}

bool hf_node_loss_cause(const struct hf_brain *b, int64_t incident, hf_time at,
			struct hf_termination *ret_end)
{
	return find_lost(b, incident, at, true, ret_end);
}

bool hf_node_loss_precedes(const struct hf_brain *b, const struct hf_termination *termination,
			   hf_time at)
{
	const struct hf_node *node;

	if (!termination->pod || (termination->kind != HF_TERMINATION_LOST && !termination->lost) ||
	    at == HF_TIME_NONE)
		return true;
	node = hf_node_lost(b, termination->pod);
	return !node || hf_node_was_silent(node, at);
}
