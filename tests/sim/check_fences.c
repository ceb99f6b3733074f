/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "sim/nodes.h"

/* Invariants of ranks that fence themselves: they end themselves when their node has lost the
 * control plane. */

/* a rank looks every second, and its process needs time to end */
#define LOOKED_WITHIN (3 * HF_SECOND)
/* after this time the pod garbage collector deletes the pods of a missing Node */
#define COLLECTED_AFTER (40 * HF_SECOND)
/* the longest fence, and a record of contact that was written late */
#define EXPLAINED_WITHIN (150 * HF_SECOND)

/* 42: a process with a fence runs no longer than its fence allows after the last renewal of its
 * node's Lease in the store. */
void sim_check_contact(struct sim *sim, const struct sim_pod_truth *pod)
{
	const struct sim_node *node = sim_node_get(sim, pod->node);
	hf_time alone = node == NULL ? 0 : sim_now(sim) - sim_node_renewed(node);

	if (pod->alive && alone > pod->fence * HF_SECOND + LOOKED_WITHIN)
		sim_fail(sim, "42 fence",
			 "pod %s ran on %s for %lld s without contact; its fence allows %lld s",
			 pod->name, pod->node, (long long)(alone / HF_SECOND),
			 (long long)pod->fence);
}

/* True if the Node object is gone for so long that the pod garbage collector deletes its pods. A
 * fence cannot prevent this. */
static bool is_collected(struct sim *sim, const struct sim_node *node)
{
	return !node->exists && sim_now(sim) - node->gone_since >= COLLECTED_AFTER;
}

/* 42: the operator deletes no pod with a fence by force while its process runs, whatever else
 * proves that the node is dead. */
void sim_check_stopped(struct sim *sim, const struct sim_pod_truth *pod,
		       const struct hf_request *request, struct hf_doc *object)
{
	if (pod->alive && !is_collected(sim, sim_node_get(sim, pod->node)) &&
	    hf_streq(request->precondition_resource_version, hf_doc_resource_version(object)))
		sim_fail(sim, "42 fence", "pod %s is deleted by force, but its process runs on %s",
			 pod->name, pod->node);
}

/* 43: a fence does not end a rank while node and agent are well. */
void sim_check_fenced(struct sim *sim, const char *pod_uid)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	const struct sim_node *node = sim_node_get(sim, pod->node);

	/* An end by a fence counts as infrastructure, even if no report of it arrives. */
	pod->disrupted = true;
	if (!sim_fence_may_act(node, EXPLAINED_WITHIN))
		sim_fail(sim, "43 fence without need",
			 "pod %s on %s ends itself, but node and agent are well", pod->name,
			 pod->node);
}
