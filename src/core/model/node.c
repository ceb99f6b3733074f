/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"

/*
 * What the facts about one node mean, without regard to a job: whether the node is lost or suspect,
 * in a storm, or fenced.  Input: struct hf_node_seen, and a pod on the node.  Whether the node is
 * dead is decided in policy/node_evidence.c.
 */

/* A zone is in a storm if more than two of its nodes and at least this share are lost: the control
 * plane's own numbers. */
#define STORM_LOST_MORE_THAN 2
#define STORM_PERCENT 55

static const char *const names[] = {
	[HF_NODE_READY] = "Ready",
	[HF_NODE_NOT_READY] = "NotReady",
	[HF_NODE_UNKNOWN] = "Unknown",
	[HF_NODE_GONE] = "Gone",
};

const char *hf_node_ready_name(enum hf_node_ready ready)
{
	hf_assert((size_t)ready < HF_ARRAY_LEN(names));
	return names[ready];
}

void hf_node_seen_init(struct hf_node_seen *node, const char *name, enum hf_node_ready ready,
		       hf_time since)
{
	hf_assert(name);
	*node = (struct hf_node_seen){.name = name,
				      .ready = ready,
				      .since = since,
				      .unknown_at = HF_TIME_NONE,
				      .evicted_at = HF_TIME_NONE,
				      .confirmed_at = HF_TIME_NONE,
				      .lease_read_at = HF_TIME_NONE,
				      .lease_since = HF_TIME_NONE,
				      .renewed_at = HF_TIME_NONE,
				      .renew_time = HF_TIME_NONE,
				      .reported_at = HF_TIME_NONE,
				      .beat_at = HF_TIME_NONE,
				      .calm_since = HF_TIME_NONE};
}

bool hf_node_is_lost(const struct hf_node_seen *node)
{
	return node->out_of_service || node->ready == HF_NODE_UNKNOWN ||
	       node->ready == HF_NODE_GONE;
}

bool hf_node_is_suspect(const struct hf_node_seen *node, hf_time now)
{
	if (node->ready == HF_NODE_NOT_READY)
		return true;
	return node->lease_since != HF_TIME_NONE &&
	       hf_elapsed(node->lease_since, now) >= hf_seconds(HF_RENEWAL_LATE_SECONDS);
}

hf_time hf_node_last_sign(const struct hf_node_seen *node, hf_time news_at)
{
	const hf_time signs[] = {node->renewed_at, node->reported_at, node->beat_at, news_at};
	hf_time last = HF_TIME_NONE;

	for (size_t i = 0; i < HF_ARRAY_LEN(signs); i++) {
		if (signs[i] > last)
			last = signs[i];
	}
	return last;
}

/* The controller-manager calls a node Unknown if its Lease was not renewed for 50 s (40 s before Kubernetes 1.32);
 * clusters with longer spans than this are not known.  An older renewTime is of a wrong clock, or of a Lease that was
 * not used. */
#define GRACE_MAX (5 * HF_MINUTE)

hf_time hf_node_silent_since(const struct hf_node_seen *node)
{
	hf_time renewal = node->renew_time, unknown = node->unknown_at;

	if (renewal == HF_TIME_NONE || unknown == HF_TIME_NONE || renewal > unknown ||
	    hf_elapsed(renewal, unknown) > GRACE_MAX)
		return unknown;
	return renewal;
}

bool hf_nodes_are_in_storm(int32_t nodes, int32_t lost)
{
	return lost > STORM_LOST_MORE_THAN && (int64_t)lost * 100 >= (int64_t)nodes * STORM_PERCENT;
}

/* If the node's Lease is missing, the fence does not decide, because a missing Lease proves
 * nothing. */
bool hf_node_is_fenced(const struct hf_node_seen *node, const struct hf_pod *pod)
{
	return pod->fence_seconds > 0 && node->ready == HF_NODE_UNKNOWN && !node->out_of_service &&
	       (node->lease_since != HF_TIME_NONE || node->lease_read_at == HF_TIME_NONE);
}

bool hf_node_was_lost_before(const struct hf_node_seen *node, const struct hf_pod *pod)
{
	hf_time there = pod->bound_at != HF_TIME_NONE ? pod->bound_at : pod->creation_time;

	/* Both times are whole seconds, so two events in the same second have no order. */
	return node->ready == HF_NODE_UNKNOWN && node->unknown_at != HF_TIME_NONE &&
	       there != HF_TIME_NONE && node->unknown_at < there;
}

bool hf_node_is_heard_of(const struct hf_node_seen *node)
{
	return node->ready == HF_NODE_READY || node->ready == HF_NODE_NOT_READY;
}
