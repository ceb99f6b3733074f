/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/brain_internal.h"

/* What the facts about a node come to. */

/* Kubelets renew their Lease every 10 seconds; a tick of slack for one that is busy. */
#define RENEWAL_LATE_SECONDS 15

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
	       hf_elapsed(node->lease_since, now) >= hf_seconds(RENEWAL_LATE_SECONDS);
}
