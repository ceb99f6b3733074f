/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * The nodes that carry pods of the job: the node of a pod, and whether its loss may explain what
 * the pod does.
 * Input: the nodes seen, indexed by name when first asked for.
 */

static int compare_nodes(const void *left, const void *right)
{
	const struct hf_node *a = left;
	const struct hf_node *b = right;

	return strcmp(a->seen->name, b->seen->name);
}

static int compare_key(const void *key, const void *item)
{
	const struct hf_node *node = item;

	return strcmp(key, node->seen->name);
}

static struct hf_node *find_node(const struct hf_brain *b, const char *name)
{
	return bsearch(name, b->cache->nodes, b->seen->nodes_len, sizeof(*b->cache->nodes),
		       compare_key);
}

/* Index the nodes by name when a node is first asked for: a step of a job at rest needs no
 * index. */
static void index_nodes(const struct hf_brain *b)
{
	const struct hf_observed *seen = b->seen;

	b->cache->nodes = HF_ARENA_ARRAY(b->arena, struct hf_node, seen->nodes_len + 1);
	for (size_t i = 0; i < seen->nodes_len; i++)
		b->cache->nodes[i] =
			(struct hf_node){.seen = &seen->nodes[i], .news_at = HF_TIME_NONE};
	qsort(b->cache->nodes, seen->nodes_len, sizeof(*b->cache->nodes), compare_nodes);
	for (size_t i = 0; i < seen->pods_len && b->nodes_lost > 0; i++) {
		const struct hf_pod *pod = &seen->pods[i];
		struct hf_node *node;

		if ((!pod->owned && !hf_pod_is_inherited(b->view, pod)) || !pod->node ||
		    pod->news_at == HF_TIME_NONE)
			continue;
		node = find_node(b, pod->node);
		if (node && (node->news_at == HF_TIME_NONE || node->news_at < pod->news_at))
			node->news_at = pod->news_at;
	}
}

const struct hf_node *hf_node_of(const struct hf_brain *b, const struct hf_pod *pod)
{
	if (!pod->node || b->seen->nodes_len == 0)
		return NULL;
	if (!b->cache->nodes)
		index_nodes(b);
	return find_node(b, pod->node);
}

const struct hf_node *hf_node_lost(const struct hf_brain *b, const struct hf_pod *pod)
{
	const struct hf_node *node = b->nodes_lost > 0 ? hf_node_of(b, pod) : NULL;

	if (!node || !hf_node_is_lost(node->seen))
		return NULL;
	/* A node with taint out-of-service and a kubelet that is still heard of evicts its pods.  A
	 * pod that is not being deleted tolerates the taint, so for such a pod the node is not
	 * lost. */
	return hf_node_is_heard_of(node->seen) && pod->deletion_time == HF_TIME_NONE ? NULL : node;
}

const struct hf_node *hf_node_blamed(const struct hf_brain *b, const struct hf_pod *pod)
{
	const struct hf_node *node = hf_node_lost(b, pod);

	return node && !hf_node_was_lost_before(node->seen, pod) ? node : NULL;
}

bool hf_node_explains(const struct hf_brain *b, const struct hf_pod *pod)
{
	const struct hf_node *node = hf_node_blamed(b, pod);

	if (!node)
		return false;
	return node->seen->ready != HF_NODE_UNKNOWN || node->seen->unknown_at == HF_TIME_NONE ||
	       pod->deleted_at == HF_TIME_NONE || node->seen->unknown_at <= pod->deleted_at;
}

int64_t hf_node_wait_seconds(const struct hf_brain *b)
{
	int64_t after = b->job.recovery.node_lost_after_seconds;

	return after > HF_RENEWAL_LATE_SECONDS ? after : HF_RENEWAL_LATE_SECONDS;
}

bool hf_record_is_node_loss(const struct hf_record *record)
{
	return hf_streq(record->reason, HF_REASON_NODE_LOST) && !record->exit_code.set;
}
