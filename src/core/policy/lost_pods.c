/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * Acts on the pods of lost nodes that are to be given up.
 *
 * A terminating pod first gets the phase Failed, so that other clients see what became of it.  In a
 * later step, if all evidence still holds, the operator deletes the pod object by force.  Both
 * requests name the pod's resourceVersion: if the kubelet comes back and writes, the request is
 * refused.
 *
 * When a job is deleted while such pods exist, the next job of the same name and kind acts on them,
 * because it waits for their names.
 */

/* A step that waits for a read runs again after this time; the read should be done by then. */
#define READ_AGAIN_SECONDS 2

/* The rank has succeeded, so the job waits neither for the pod nor for its node. */
static bool is_of_succeeded_rank(const struct hf_brain *b, const struct hf_pod *pod)
{
	int32_t index;
	int role;

	return b->roles_len > 0 && hf_rank_find(b, pod->name, &role, &index) &&
	       index < b->roles[role].slots_len && b->roles[role].slots[index].pod == pod &&
	       b->roles[role].slots[index].succeeded;
}

/* The pod is on a lost node and may have to be given up.  In a finished job only terminating pods
 * are: cleanPodPolicy left the others running. */
static bool is_of_interest(const struct hf_brain *b, const struct hf_pod *pod, bool finished)
{
	if (!pod->node || b->nodes_lost == 0)
		return false;
	if (!pod->owned)
		return hf_pod_is_inherited(b->view, pod);
	return hf_pod_is_terminating(pod) ||
	       (!hf_pod_is_terminal(pod) && !finished && !is_of_succeeded_rank(b, pod));
}

static int compare_pods(const void *left, const void *right)
{
	const struct hf_pod *const *a = left;
	const struct hf_pod *const *b = right;
	int order = strcmp((*a)->name, (*b)->name);

	return order != 0 ? order : strcmp((*a)->uid, (*b)->uid);
}

static const struct hf_pod **collect_pods(const struct hf_brain *b, bool finished, size_t *ret_len)
{
	const struct hf_observed *seen = b->seen;
	const struct hf_pod **pods = NULL;
	size_t len = 0, cap = 0;

	for (size_t i = 0; i < seen->pods_len; i++) {
		const struct hf_pod *pod = &seen->pods[i];

		if (!is_of_interest(b, pod, finished) || !hf_node_lost(b, pod))
			continue;
		pods = hf_grow(b->arena, pods, len, &cap, sizeof(const struct hf_pod *));
		pods[len++] = pod;
	}
	if (len > 0)
		qsort(pods, len, sizeof(const struct hf_pod *), compare_pods);
	*ret_len = len;
	return pods;
}

/* Ask the operator to read the objects that hf_node_evidence needs (policy/node_evidence.c): the
 * Node, its Lease, the claims.  Both functions check proof first and in the same order, so nothing
 * is read that a proof makes needless.  For a presumption, the Lease and all claims are read at
 * once: the reads take time, and each guard of a presumption may end first. */
static void ask_for_reads(const struct hf_brain *b, const struct hf_node_seen *node,
			  const struct hf_pod *pod)
{
	if (b->job.recovery.force == HF_FORCE_NEVER)
		return;
	if (node->out_of_service) {
		hf_ask(b, HF_ASK_NODE, node->name);
		if (hf_node_is_heard_of(node))
			hf_ask(b, HF_ASK_LEASE, node->name);
		return;
	}
	if (node->ready == HF_NODE_GONE) {
		hf_ask(b, HF_ASK_NODE, node->name);
		return;
	}
	/* A missing Lease is asked for as well, because it may appear. */
	if (pod->fence_seconds > 0)
		hf_ask(b, HF_ASK_LEASE, node->name);
	if (hf_node_is_fenced(node, pod))
		return;
	if (b->job.recovery.force == HF_FORCE_PROVEN)
		return;
	hf_ask(b, HF_ASK_LEASE, node->name);
	for (size_t i = 0; i < pod->claims_len; i++)
		hf_ask(b, HF_ASK_CLAIM, pod->claims[i]);
}

/* What is known of the node's death, in one sentence for the pod's condition. */
static const char *describe_death(const struct hf_brain *b, const struct hf_node_seen *node,
				  const struct hf_pod *pod, const struct hf_evidence *evidence)
{
	if (evidence->fenced)
		return hf_arena_printf(
			b->arena,
			"the Lease of node %s stood still for %d s or more, and the pod "
			"ends itself after %d s",
			node->name, pod->fence_seconds + HF_FENCE_MARGIN_SECONDS,
			pod->fence_seconds);
	if (node->out_of_service)
		return hf_arena_printf(b->arena, "node %s is out of service, by its taint",
				       node->name);
	if (evidence->proven)
		return hf_arena_printf(b->arena, "node %s does not exist any more, since %s",
				       node->name, hf_time_text(b->arena, node->since));
	return hf_arena_printf(b->arena,
			       "nothing was heard of node %s for %lld s or more; it is Unknown "
			       "since %s",
			       node->name, (long long)b->job.recovery.node_lost_after_seconds,
			       hf_time_text(b->arena, node->since));
}

/* A pod that is not terminal gets the phase Failed.  A later step, which sees that phase, deletes
 * the object by force. */
static void give_up_pod(struct hf_brain *b, const struct hf_node_seen *node,
			const struct hf_pod *pod, const struct hf_evidence *evidence)
{
	struct hf_action action = {.kind = HF_ACTION_FAIL_POD,
				   .name = pod->name,
				   .uid = pod->uid,
				   .resource_version = pod->resource_version};

	hf_assert(hf_pod_is_terminating(pod) && !pod->forced);
	/* Without uid and resourceVersion the request cannot be refused when the pod has
	 * changed. */
	if (hf_str_is_empty(pod->uid) || hf_str_is_empty(pod->resource_version))
		return;
	if (!hf_pod_is_terminal(pod)) {
		action.message = describe_death(b, node, pod, evidence);
	} else {
		action.kind = HF_ACTION_DELETE_POD;
		action.grace_seconds = HF_SOME_INT(0);
		b->plan->metrics[evidence->proven ? HF_METRIC_FORCED_PROVEN
						  : HF_METRIC_FORCED_PRESUMED]++;
	}
	hf_action_add(b, &b->deletes, &action);
}

static void count_guarded(struct hf_guarded *guarded, const struct hf_node *node,
			  const struct hf_pod *pod, hf_time until)
{
	if (guarded->count++ == 0) {
		guarded->pod = pod;
		guarded->node = node->seen;
		guarded->news_at = node->news_at;
		guarded->until = until;
	} else if (until < guarded->until) {
		guarded->until = until;
	}
}

static void visit_pods(struct hf_brain *b, bool finished, struct hf_guarded guarded[HF_GUARDS])
{
	size_t len;
	const struct hf_pod **pods = collect_pods(b, finished, &len);

	for (size_t i = 0; i < len; i++) {
		const struct hf_node *node = hf_node_lost(b, pods[i]);
		struct hf_evidence evidence = hf_node_loss_evidence(b, node, pods[i]);

		/* The pod was deleted by force in an earlier step, and only finalizers keep it
		 * (explain/overdue_pods.c). */
		if (pods[i]->forced)
			continue;
		ask_for_reads(b, node->seen, pods[i]);
		if (evidence.guard == HF_GUARD_READ)
			evidence.until = hf_time_add(b->now, hf_seconds(READ_AGAIN_SECONDS));
		if (evidence.guard != HF_GUARD_NONE && evidence.until != HF_TIME_NEVER)
			hf_wake(b, evidence.until);
		if (evidence.guard == HF_GUARD_NONE && hf_pod_is_terminating(pods[i]))
			give_up_pod(b, node->seen, pods[i], &evidence);
		count_guarded(&guarded[evidence.guard], node, pods[i], evidence.until);
	}
}

void hf_lost_pods_force(struct hf_brain *b)
{
	struct hf_guarded guarded[HF_GUARDS] = {0};

	visit_pods(b, true, guarded);
	hf_node_loss_tell_lines(b, guarded);
}

void hf_lost_pods_step(struct hf_brain *b)
{
	struct hf_guarded guarded[HF_GUARDS] = {0};

	if (hf_cond_tell_blind(b, HF_COND_NODE_UNREACHABLE))
		return;
	visit_pods(b, hf_cond_finished(b), guarded);
	hf_node_loss_tell(b, guarded);
}
