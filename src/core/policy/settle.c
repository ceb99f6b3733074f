/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include <string.h>

/*
 * When a verdict may take effect.
 *
 * A termination can be seen before its cause: a node dies, and the peers of its rank exit with
 * "connection reset" long before the node counts as lost.  So a verdict that would end the job
 * waits for every node with a pod of the job.  Each node must have renewed its Lease after the
 * termination, and its agent must have reported, or the node must count as lost.  Kubelets renew
 * every 10 seconds.
 */

/* If a node may be lost, the verdict waits this much longer than afterSeconds, after which a node
 * counts as lost. */
#define SUSPECT_EXTRA_SECONDS 60

/* The node has become lost while the pod was on it, and counts as lost: the verdict no longer waits
 * for the node. */
static bool is_news(const struct hf_brain *b, const struct hf_node *node, const struct hf_pod *pod)
{
	return hf_node_is_lost(node->seen) && !hf_node_was_lost_before(node->seen, pod) &&
	       hf_node_counts_as_lost(b, node, pod);
}

static bool is_heard_since(const struct hf_node_seen *node, const struct hf_pod *pod, hf_time since)
{
	if (node->renewed_at == HF_TIME_NONE || node->renewed_at < since)
		return false;
	/* An agent reports soon after the end of a pod only if the pod held a device, so only then
	 * is its report awaited. */
	return !node->has_agent || !pod->watched ||
	       (node->reported_at != HF_TIME_NONE && node->reported_at >= since);
}

/* The verdict must still wait for the pod's node.  The Leases of nodes that were already heard of
 * are asked for as well.  The caller forgets a Lease that is not asked for, so two nodes that renew
 * at different times would never both count as heard of. */
static bool is_silent(const struct hf_brain *b, const struct hf_pod *pod,
		      const struct hf_node *node, hf_time since)
{
	if (node && is_news(b, node, pod))
		return false;
	hf_ask(b, HF_ASK_LEASE, pod->node);
	return !node || !is_heard_since(node->seen, pod, since);
}

static bool may_be_lost(const struct hf_brain *b, const struct hf_node *node,
			const struct hf_pod *pod)
{
	return hf_node_is_suspect(node->seen, b->now) ||
	       (hf_node_is_lost(node->seen) && !hf_node_was_lost_before(node->seen, pod));
}

hf_time hf_settle_latest(const struct hf_brain *b, hf_time since)
{
	int64_t seconds = b->job.recovery.node_lost_after_seconds + SUSPECT_EXTRA_SECONDS;

	if (seconds < b->job.recovery.settle_seconds)
		seconds = b->job.recovery.settle_seconds;
	return hf_time_add(since, hf_seconds(seconds));
}

struct hf_settling hf_settle_look(const struct hf_brain *b, hf_time since)
{
	const struct hf_observed *seen = b->seen;
	struct hf_settling settling = {0};
	bool lost = false;
	size_t asked = b->notes->asks_len;

	hf_assert(since != HF_TIME_NONE);
	for (size_t i = 0; i < seen->pods_len; i++) {
		const struct hf_pod *pod = &seen->pods[i];
		const struct hf_node *node;

		if (!pod->owned || !pod->node)
			continue;
		node = hf_node_of(b, pod);
		lost |= node && may_be_lost(b, node, pod);
		if (is_silent(b, pod, node, since) &&
		    (!settling.silent || strcmp(pod->node, settling.silent) < 0))
			settling.silent = pod->node;
	}
	settling.until = lost ? hf_settle_latest(b, since)
			      : hf_time_add(since, hf_seconds(b->job.recovery.settle_seconds));
	settling.done = !settling.silent || b->now >= settling.until;
	/* The wait is over, so this step's requests for reads are dropped. */
	if (settling.done)
		b->notes->asks_len = asked;
	return settling;
}
