/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "sim/nodes.h"

/* What must hold of ranks that fence themselves. */

#define LOOKED_WITHIN (3 * HF_SECOND)      /* a look every second, and the time to die */
#define COLLECTED_AFTER (40 * HF_SECOND)   /* of the pod garbage collector */
#define EXPLAINED_WITHIN (150 * HF_SECOND) /* the longest fence, and a record that lagged behind */

/* 42: a process that fences itself does not run for longer after the last Lease of its node that the
 * control plane has than it said. */
void sim_check_contact(struct sim *sim, const struct sim_pod_truth *pod)
{
	const struct sim_node *node = sim_node_get(sim, pod->node);
	hf_time alone = node == NULL ? 0 : sim_now(sim) - sim_node_renewed(node);

	if (pod->alive && alone > pod->fence * HF_SECOND + LOOKED_WITHIN)
		sim_fail(sim, "42 fence",
			 "%s ran on %s for %lld s without contact, and was to end after %lld",
			 pod->name, pod->node, (long long)(alone / HF_SECOND),
			 (long long)pod->fence);
}

/* The control plane itself collects the pods of a Node object that is gone for so long: no fence holds that up. */
static bool is_collected(struct sim *sim, const struct sim_node *node)
{
	return !node->exists && sim_now(sim) - node->gone_since >= COLLECTED_AFTER;
}

/* 42: none of them is deleted by force, whatever else the proof, while its process runs. */
void sim_check_stopped(struct sim *sim, const struct sim_pod_truth *pod,
		       const struct hf_request *request, struct hf_doc *object)
{
	if (pod->alive && !is_collected(sim, sim_node_get(sim, pod->node)) &&
	    hf_streq(request->precondition_resource_version, hf_doc_resource_version(object)))
		sim_fail(sim, "42 fence", "%s is forced, and its process runs on %s", pod->name,
			 pod->node);
}

/* 43: none of them ends itself on a node that is well, and whose agent is. */
void sim_check_fenced(struct sim *sim, const char *pod_uid)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	const struct sim_node *node = sim_node_get(sim, pod->node);

	/* The infrastructure's doing, whoever hears of it. */
	pod->disrupted = true;
	if (!sim_fence_may_act(node, EXPLAINED_WITHIN))
		sim_fail(sim, "43 fence without need",
			 "%s on %s ends itself, and all is well there", pod->name, pod->node);
}
