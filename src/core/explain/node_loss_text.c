/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "base/str.h"

/*
 * The texts about pods on lost nodes: which pods wait, for what, and until when.  Input: the pods
 * that wait, sorted by the guard that holds them back (struct hf_guarded).  Output: lines of
 * explanation, the condition holdfast.dev/NodeUnreachable and its event.
 */

static const char *const reasons[HF_GUARDS] = {
	[HF_GUARD_NONE] = "GivingUp",
	[HF_GUARD_DEADLINE] = "GivingUp",
	[HF_GUARD_SILENCE] = "AwaitingEvidence",
	[HF_GUARD_READ] = "AwaitingEvidence",
	[HF_GUARD_CALM] = "AfterStorm",
	[HF_GUARD_TAINT] = "AwaitingEvidence",
	[HF_GUARD_TOLERATION] = "UserToleration",
	[HF_GUARD_VOLUME] = "ExclusiveVolume",
	[HF_GUARD_MODE] = "ForceDeleteMode",
	[HF_GUARD_STORM] = "StormGuard",
};

_Static_assert(HF_GUARDS == 10, "give a new guard its reason, and its text in describe_guard");

struct sign {
	hf_time at;       /* the last sign of life from this source; NONE: no sign */
	const char *came; /* text for the condition, which must not contain a time */
	const char *last; /* text for `holdfast why`; `why` appends the time */
};
enum { SIGN_AGENT, SIGN_PROCESS, SIGN_LEASE, SIGN_POD, SIGNS };

static void find_signs(const struct hf_guarded *guarded, struct sign signs[SIGNS])
{
	const struct hf_node_seen *node = guarded->node;
	const struct sign all[SIGNS] = {
		[SIGN_AGENT] = {node->reported_at, "its agent was heard",
				"its agent was last heard"},
		[SIGN_PROCESS] = {node->beat_at, "a training process there was heard",
				  "a training process there was last heard"},
		[SIGN_LEASE] = {node->renewed_at, "its kubelet renewed its Lease",
				"its kubelet last renewed its Lease"},
		[SIGN_POD] = {guarded->news_at, "its kubelet changed the status of a pod",
			      "its kubelet last changed the status of a pod"},
	};

	for (size_t i = 0; i < SIGNS; i++) {
		signs[i] = all[i];
		if (signs[i].at != HF_TIME_NONE && signs[i].at <= node->since)
			signs[i].at = HF_TIME_NONE;
	}
}

/* Add what was last heard of the node.  Such signs of life matter only if silence is the evidence,
 * not if the node's death is or will be proven. */
static const char *describe_signs(const struct hf_brain *b, const struct hf_guarded *guarded,
				  bool with_times)
{
	const char *text = "";
	struct sign signs[SIGNS];

	if (guarded->node->ready != HF_NODE_UNKNOWN || guarded->node->out_of_service ||
	    hf_node_is_fenced(guarded->node, guarded->pod))
		return text;
	find_signs(guarded, signs);
	for (size_t i = 0; i < SIGNS; i++) {
		if (signs[i].at == HF_TIME_NONE)
			continue;
		if (with_times)
			text = hf_arena_printf(b->arena, "%s; %s at %s", text, signs[i].last,
					       hf_time_text(b->arena, signs[i].at));
		else
			text = hf_arena_printf(b->arena, "%s%s%s", text, *text ? ", and " : "",
					       signs[i].came);
	}
	return text;
}

/* A sign of life shortly before the node became Unknown makes the wait longer (weigh_silence in
 * policy/node_evidence.c). */
static bool is_wait_of_older_sign(const struct hf_brain *b, const struct hf_guarded *guarded)
{
	hf_time last = hf_node_last_sign(guarded->node, guarded->news_at);
	hf_time end = hf_time_add(guarded->node->since,
				  hf_seconds(b->job.recovery.node_lost_after_seconds));

	return hf_time_add(last, hf_seconds(hf_node_wait_seconds(b))) > end;
}

static bool is_kubelet_mute(const struct hf_guarded *guarded)
{
	struct sign signs[SIGNS];

	find_signs(guarded, signs);
	return signs[SIGN_LEASE].at == HF_TIME_NONE && signs[SIGN_POD].at == HF_TIME_NONE;
}

static const char *choose_reason(const struct hf_brain *b, enum hf_guard guard,
				 const struct hf_guarded *guarded)
{
	if ((guard == HF_GUARD_SILENCE || guard == HF_GUARD_READ) &&
	    *describe_signs(b, guarded, false) != '\0')
		return "SignsOfLife";
	return reasons[guard];
}

static const char *describe_silence(const struct hf_brain *b, const struct hf_guarded *guarded)
{
	const struct hf_node_seen *node = guarded->node;
	const char *signs = describe_signs(b, guarded, false);

	if (node->ready == HF_NODE_GONE)
		return "the pod is given up when the node stays away for 40 s";
	if (node->out_of_service)
		return node->ready == HF_NODE_UNKNOWN
			       ? "the pod is given up when a live look finds that taint"
			       : "the pod is given up when the node's Lease stands still";
	if (hf_node_is_fenced(node, guarded->pod))
		return hf_arena_printf(
			b->arena,
			"the pod ends itself (nodeLost.selfFence), and is given up when the node's "
			"Lease has stood still for %d s",
			guarded->pod->fence_seconds + HF_FENCE_MARGIN_SECONDS);
	if (*signs != '\0')
		return hf_arena_printf(
			b->arena,
			"the node has been Unknown since %s%s, but %s after that; the pod is given "
			"up %lld s after the last sign of life (nodeLost.afterSeconds)",
			hf_time_text(b->arena, node->unknown_at != HF_TIME_NONE ? node->unknown_at
										: node->since),
			is_kubelet_mute(guarded) ? ", for its kubelet is silent" : "", signs,
			(long long)hf_node_wait_seconds(b));
	if (is_wait_of_older_sign(b, guarded))
		return hf_arena_printf(
			b->arena,
			"the pod is given up %lld s after the last sign of life, which came "
			"shortly before the node was Unknown",
			(long long)hf_node_wait_seconds(b));
	return hf_arena_printf(b->arena,
			       "the pod is given up after %lld s without a sign of life "
			       "(nodeLost.afterSeconds)",
			       (long long)b->job.recovery.node_lost_after_seconds);
}

static const char *describe_calm(const struct hf_brain *b, const struct hf_node_seen *node)
{
	return hf_arena_printf(
		b->arena,
		"the storm of %s%s ended at %s, or the operator began to watch then; the pod is "
		"given up when the node is silent for %lld s after that (nodeLost.afterSeconds)",
		node->zone ? "zone " : "the cluster", hf_str_or(node->zone, ""),
		hf_time_text(b->arena, node->calm_since), (long long)hf_node_wait_seconds(b));
}

/* What the guard waits for.  The text must not contain a time that moves, because each change of a
 * condition is a write. */
static const char *describe_guard(const struct hf_brain *b, enum hf_guard guard,
				  const struct hf_guarded *guarded)
{
	const struct hf_recovery *recovery = &b->job.recovery;
	const struct hf_node_seen *node = guarded->node;

	switch (guard) {
	case HF_GUARD_NONE: return "the pod is given up";
	case HF_GUARD_DEADLINE:
		return hf_arena_printf(b->arena,
				       "the pod is deleted by force %lld s after its grace",
				       (long long)recovery->force_delete_after_seconds);
	case HF_GUARD_SILENCE:
	case HF_GUARD_READ:
	case HF_GUARD_TAINT: return describe_silence(b, guarded);
	case HF_GUARD_CALM: return describe_calm(b, node);
	case HF_GUARD_TOLERATION:
		return guarded->until == HF_TIME_NEVER
			       ? "the pod's own toleration lets it stay for ever: delete the pod, "
				 "and Holdfast gives it up"
			       : "the pod's own toleration lets it stay for longer";
	case HF_GUARD_VOLUME:
		return "the pod has a volume that only one node may have, so the node's death must "
		       "be proven";
	case HF_GUARD_MODE:
		return recovery->force == HF_FORCE_NEVER
			       ? "nodeLost.forceDelete is Never: a person must delete the pod by force"
			       : "nodeLost.forceDelete is Proven: the node's death must be proven";
	case HF_GUARD_STORM:
		return hf_arena_printf(
			b->arena,
			"%d of %d schedulable nodes%s%s are lost at once: from 55 %% on, Holdfast "
			"gives up no pod",
			node->zone_lost, node->zone_nodes, node->zone ? " of zone " : "",
			hf_str_or(node->zone, ""));
	case HF_GUARDS: break;
	}
	hf_assert(!"a guard without a text");
	return "";
}

/* "ddp-worker-1 and 3 more" */
static const char *name_pods(const struct hf_brain *b, const struct hf_guarded *guarded)
{
	return guarded->count > 1 ? hf_arena_printf(b->arena, "%s and %d more", guarded->pod->name,
						    guarded->count - 1)
				  : guarded->pod->name;
}

static const char *name_standing(const struct hf_node_seen *node)
{
	return node->out_of_service ? "out of service" : hf_node_ready_name(node->ready);
}

/* The end of the line: whether the pod waits for a taint by the control plane, for a read by
 * Holdfast, or for a time. */
static const char *describe_wait(const struct hf_brain *b, enum hf_guard guard,
				 const struct hf_guarded *guarded)
{
	if (guard == HF_GUARD_TAINT)
		return "; the control plane has not tainted the node yet";
	if (guard == HF_GUARD_READ &&
	    (guarded->node->ready == HF_NODE_GONE ||
	     (guarded->node->out_of_service && guarded->node->ready == HF_NODE_UNKNOWN)))
		return "; a live look is awaited";
	if (guard == HF_GUARD_READ)
		return guarded->pod->claims_len > 0 &&
				       !hf_node_is_fenced(guarded->node, guarded->pod)
			       ? "; a read of its Lease and of the pod's claims is awaited"
			       : "; a read of its Lease is awaited";
	if (guarded->until == HF_TIME_NEVER)
		return "";
	return hf_arena_printf(b->arena, "%s; not before %s",
			       guard == HF_GUARD_SILENCE ? describe_signs(b, guarded, true) : "",
			       hf_time_text(b->arena, guarded->until));
}

static void tell_guard(const struct hf_brain *b, enum hf_guard guard,
		       const struct hf_guarded *guarded)
{
	const char *text = hf_arena_printf(
		b->arena, "%s on node %s, which is %s: %s%s", name_pods(b, guarded),
		guarded->node->name, name_standing(guarded->node),
		describe_guard(b, guard, guarded), describe_wait(b, guard, guarded));

	hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s", text);
	hf_block(b, text);
}

/* Write the condition for the highest guard, which takes most to end. */
static void show_node_loss(struct hf_brain *b, size_t pods, enum hf_guard guard,
			   const struct hf_guarded *guarded)
{
	const char *message = hf_arena_printf(
		b->arena, "%zu pod(s) on nodes that are lost, %s on %s (%s) first: %s", pods,
		guarded->pod->name, guarded->node->name, name_standing(guarded->node),
		describe_guard(b, guard, guarded));

	if (!hf_cond_is_true(b, HF_COND_NODE_UNREACHABLE))
		hf_event(b, true, "NodeUnreachable", message);
	hf_cond_set(b, HF_COND_NODE_UNREACHABLE, true, choose_reason(b, guard, guarded), message);
}

/* Add a line for each guard.  Returns how many pods wait, and in ret_worst the highest guard. */
static size_t tell_guards(const struct hf_brain *b, const struct hf_guarded guarded[HF_GUARDS],
			  enum hf_guard *ret_worst)
{
	size_t pods = 0;

	for (int guard = HF_GUARD_NONE; guard < HF_GUARDS; guard++) {
		if (guarded[guard].count == 0)
			continue;
		pods += (size_t)guarded[guard].count;
		*ret_worst = (enum hf_guard)guard;
		tell_guard(b, (enum hf_guard)guard, &guarded[guard]);
	}
	return pods;
}

void hf_node_loss_tell_lines(const struct hf_brain *b, const struct hf_guarded guarded[HF_GUARDS])
{
	enum hf_guard worst;

	tell_guards(b, guarded, &worst);
}

void hf_node_loss_tell(struct hf_brain *b, const struct hf_guarded guarded[HF_GUARDS])
{
	enum hf_guard worst = HF_GUARD_NONE;
	size_t pods = tell_guards(b, guarded, &worst);

	if (pods > 0)
		show_node_loss(b, pods, worst, &guarded[worst]);
	else
		hf_cond_lower(b, HF_COND_NODE_UNREACHABLE, "NodesReachable",
			      "No pod of the job waits to be given up on a lost node.");
}
