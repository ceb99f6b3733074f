/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include <string.h>

/*
 * A termination can be seen before its cause: a node dies, and its peers exit with "connection
 * reset" long before the node counts as lost.  So a verdict that would end the job waits until
 * every node with a pod of the job has renewed its Lease after the termination, or become lost,
 * and its agent has reported.  Kubelets renew every 10 seconds.
 */

/* While a node is suspect: how much longer than it takes to call a node lost. */
#define SUSPECT_EXTRA_SECONDS 60

/* A node that comes to count as lost is news.  A node that was lost before the pod came is not. */
static bool is_news(const struct hf_brain *b, const struct hf_node *node, const struct hf_pod *pod)
{
	return hf_node_is_lost(node->seen) && !hf_node_was_lost_before(node->seen, pod) &&
	       hf_node_counts_as_lost(b, node, pod);
}

static bool is_heard_since(const struct hf_node_seen *node, const struct hf_pod *pod, hf_time since)
{
	if (node->renewed_at == HF_TIME_NONE || node->renewed_at < since)
		return false;
	/* An agent reports soon after the termination of a pod that held a device, and of no other
	 * pod. */
	return !node->has_agent || !pod->watched ||
	       (node->reported_at != HF_TIME_NONE && node->reported_at >= since);
}

/* The pod's node has not been heard of.  The Leases of nodes that were heard of are asked for as
 * well: a Lease that is not asked for is forgotten, and two nodes that renew at different times
 * would take turns. */
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
	/* Nothing is awaited, so nothing needs to be read. */
	if (settling.done)
		b->notes->asks_len = asked;
	return settling;
}
