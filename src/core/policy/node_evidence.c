/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * Whether the node of a pod is dead: the evidence, and the guard that holds back giving up the pod.
 * Input: the facts about the node, and the claims of the pod.  Output: struct hf_evidence.
 *
 * A node that is silent is not always dead: its kubelet may have crashed while the containers run
 * on. So there are two kinds of evidence.
 *
 * - Proof: the Node object is gone and stays gone; or an administrator declares by the
 *   out-of-service taint that the machine is off; or the pod ends itself without contact, and its
 *   node's Lease has stood still for longer than that.
 * - A presumption: the control plane calls the node Unknown, its Lease stands still between two
 *   reads, and no pod on it changes.
 *
 * Every span ends on the operator's clock, which follows the API server's.  It begins when the
 * operator saw something, or at a time that the API server wrote (the creation of a pod).  No time
 * that the node wrote enters a computation.
 */

/* The control plane calls a node Unknown 40 to 50 s after the last renewal of its Lease, and checks
 * every 5 s.  So a node that became Unknown later than this after a failure was alive at the
 * failure. */
#define UNKNOWN_AFTER_SECONDS 60
/* The last reports of an agent or a kubelet may reach the operator this long after its node
 * died. */
#define NEWS_LATE_SECONDS 10
/* A deleted Node object counts as proof after this time.  A node that registers again does so
 * within seconds, and Kubernetes' pod garbage collector waits as long. */
#define GONE_SECONDS 40
/* A live read of a Node or of its Lease proves nothing once it is older than this.  While a job
 * asks for the read, the operator reads the object every two seconds. */
#define LOOK_FRESH_SECONDS 10

/* ---- evidence of death ---------------------------------------------------------------------- */

static struct hf_evidence make_guarded(enum hf_guard guard, hf_time until)
{
	return (struct hf_evidence){.guard = guard, .until = until};
}

static struct hf_evidence make_proven(void)
{
	return (struct hf_evidence){.proven = true, .until = HF_TIME_NEVER};
}

static struct hf_evidence weigh_gone(const struct hf_brain *b, const struct hf_node_seen *node)
{
	hf_time at = hf_time_add(node->since, hf_seconds(GONE_SECONDS));

	if (b->now < at)
		return make_guarded(HF_GUARD_SILENCE, at);
	/* The watch may be behind, so only a live read made after `at` proves that the node is
	 * gone. */
	if (node->confirmed_at == HF_TIME_NONE || node->confirmed_at < at)
		return make_guarded(HF_GUARD_READ, HF_TIME_NEVER);
	return make_proven();
}

/* The Lease was read at or after `at`, and within the last LOOK_FRESH_SECONDS.  Reads may fail for
 * minutes while another guard holds a pod, so an older read may be out of date. */
static bool is_read_since(const struct hf_brain *b, const struct hf_node_seen *node, hf_time at)
{
	return node->lease_read_at != HF_TIME_NONE && node->lease_read_at >= at &&
	       hf_elapsed(node->lease_read_at, b->now) <= hf_seconds(LOOK_FRESH_SECONDS);
}

/* The out-of-service taint declares that the machine is off.  But if the node's kubelet is still
 * heard of, the taint only evicts, and evicted pods end by themselves.  Then the Lease must stand
 * still as well. */
static struct hf_evidence weigh_out_of_service(const struct hf_brain *b,
					       const struct hf_node_seen *node,
					       const struct hf_pod *pod)
{
	hf_time at = hf_time_add(pod->creation_time, HF_SECOND);

	/* The operator's view may be old: the taint may be removed, the machine back, and this pod
	 * new on it. So a live read must have found the taint while the pod existed. */
	if (node->confirmed_at == HF_TIME_NONE || node->confirmed_at < at ||
	    hf_elapsed(node->confirmed_at, b->now) > hf_seconds(LOOK_FRESH_SECONDS))
		return make_guarded(HF_GUARD_READ, HF_TIME_NEVER);
	if (!hf_node_is_heard_of(node))
		return make_proven();
	if (node->lease_since == HF_TIME_NONE)
		return make_guarded(HF_GUARD_READ, HF_TIME_NEVER);
	at = hf_time_add(node->lease_since, hf_seconds(HF_RENEWAL_LATE_SECONDS));
	if (is_read_since(b, node, at))
		return make_proven();
	return b->now < at ? make_guarded(HF_GUARD_SILENCE, at)
			   : make_guarded(HF_GUARD_READ, HF_TIME_NEVER);
}

static bool is_storm(const struct hf_node_seen *node)
{
	return hf_nodes_are_in_storm(node->zone_nodes, node->zone_lost) ||
	       node->calm_since == HF_TIME_NONE;
}

/* Whether the pod's volumes hold it back.  A claim that has not been read yet may be exclusive to
 * one node. */
static enum hf_guard find_claims_guard(const struct hf_brain *b, const struct hf_pod *pod)
{
	enum hf_guard guard = HF_GUARD_NONE;

	for (size_t i = 0; i < pod->claims_len; i++) {
		const struct hf_claim_seen *claim = NULL;

		for (size_t c = 0; c < b->seen->claims_len && !claim; c++) {
			if (hf_streq(b->seen->claims[c].name, pod->claims[i]))
				claim = &b->seen->claims[c];
		}
		if (claim && claim->exclusive)
			return HF_GUARD_VOLUME;
		if (!claim)
			guard = HF_GUARD_READ;
	}
	return guard;
}

static hf_time find_later(hf_time a, hf_time b)
{
	return a == HF_TIME_NONE || (b != HF_TIME_NONE && b > a) ? b : a;
}

/*
 * Three waits, of which the last to end counts:
 *
 * - The node has been Unknown for afterSeconds without a sign of life.  Signs are its Lease, its
 *   agent, a training process that the agent hears, and a pod of the job.  A sign begins the wait
 *   anew; then the wait lasts at least 15 s, because a kubelet may be silent until its next renewal.
 * - As long ago, the last storm of the node's zone ended (a storm: many of its nodes are lost at the
 *   same time), because networks heal node by node.
 * - The Lease stood still from a read at the beginning of afterSeconds to a read at its end.
 */
static struct hf_evidence weigh_silence(const struct hf_brain *b, const struct hf_node *node)
{
	const struct hf_node_seen *seen = node->seen;
	hf_time after = hf_seconds(b->job.recovery.node_lost_after_seconds);
	hf_time anew = hf_seconds(hf_node_wait_seconds(b));
	hf_time heard = hf_node_last_sign(node->seen, node->news_at);
	hf_time silent = hf_time_add(seen->since, after);
	hf_time calm = hf_time_add(seen->calm_since, anew);
	hf_time at;

	if (heard != HF_TIME_NONE)
		silent = find_later(silent, hf_time_add(heard, anew));
	if (seen->lease_since != HF_TIME_NONE)
		silent = find_later(silent, hf_time_add(seen->lease_since, after));
	at = find_later(silent, calm);
	if (b->now < at)
		return make_guarded(calm > silent ? HF_GUARD_CALM : HF_GUARD_SILENCE, at);
	return is_read_since(b, seen, at) ? make_guarded(HF_GUARD_NONE, HF_TIME_NEVER)
					  : make_guarded(HF_GUARD_READ, HF_TIME_NEVER);
}

/* The pod ends itself when its node's Lease has not moved for fence_seconds.  The pod's last
 * contact is not later than the operator's first read of the unchanged Lease.  So the pod has ended
 * if two reads show the same Lease, fence_seconds plus the margin apart.
 *
 * A pod that came to the node or began later had a later contact: the node was back then, and the
 * next read will show its Lease. */
static struct hf_evidence weigh_fence(const struct hf_brain *b, const struct hf_node_seen *node,
				      const struct hf_pod *pod)
{
	struct hf_evidence evidence = make_guarded(HF_GUARD_READ, HF_TIME_NEVER);
	hf_time there = pod->bound_at != HF_TIME_NONE ? pod->bound_at : pod->creation_time;
	hf_time at;

	if (node->lease_since != HF_TIME_NONE) {
		at = find_later(find_later(node->lease_since, pod->news_at), there);
		at = hf_time_add(at, hf_seconds(pod->fence_seconds + HF_FENCE_MARGIN_SECONDS));
		if (node->lease_read_at != HF_TIME_NONE && node->lease_read_at >= at)
			evidence = make_proven();
		else if (b->now < at)
			evidence = make_guarded(HF_GUARD_SILENCE, at);
	}
	evidence.fenced = true;
	return evidence;
}

/* The guards of hf_node_evidence without those that the job chooses (mode, volumes): whether the
 * node is a cause does not depend on what the job allows. */
bool hf_node_counts_as_lost(const struct hf_brain *b, const struct hf_node *node,
			    const struct hf_pod *pod)
{
	const struct hf_node_seen *seen = node->seen;

	hf_assert(hf_node_is_lost(seen));
	if (seen->out_of_service || seen->ready == HF_NODE_GONE)
		return true;
	if (hf_node_is_fenced(seen, pod) && weigh_fence(b, seen, pod).proven)
		return true;
	return seen->unreachable && !is_storm(seen) &&
	       weigh_silence(b, node).guard == HF_GUARD_NONE;
}

bool hf_node_was_silent(const struct hf_node *node, hf_time at)
{
	const struct hf_node_seen *seen = node->seen;
	hf_time lost = seen->unknown_at != HF_TIME_NONE ? seen->unknown_at : seen->since;
	hf_time heard = hf_node_last_sign(node->seen, node->news_at);

	hf_assert(hf_node_is_lost(seen) && at != HF_TIME_NONE);
	return lost <= hf_time_add(at, hf_seconds(UNKNOWN_AFTER_SECONDS)) &&
	       (heard == HF_TIME_NONE || heard <= hf_time_add(at, hf_seconds(NEWS_LATE_SECONDS)));
}

/* See enum hf_guard for what a new guard needs. */
struct hf_evidence hf_node_evidence(const struct hf_brain *b, const struct hf_node *node,
				    const struct hf_pod *pod)
{
	const struct hf_node_seen *seen = node->seen;
	struct hf_evidence silence;
	enum hf_guard claims;

	hf_assert(hf_node_is_lost(seen));
	if (b->job.recovery.force == HF_FORCE_NEVER)
		return make_guarded(HF_GUARD_MODE, HF_TIME_NEVER);
	if (seen->out_of_service)
		return weigh_out_of_service(b, seen, pod);
	if (seen->ready == HF_NODE_GONE)
		return weigh_gone(b, seen);
	if (hf_node_is_fenced(seen, pod))
		return weigh_fence(b, seen, pod);
	if (b->job.recovery.force == HF_FORCE_PROVEN)
		return make_guarded(HF_GUARD_MODE, HF_TIME_NEVER);
	claims = find_claims_guard(b, pod);
	if (claims == HF_GUARD_VOLUME)
		return make_guarded(claims, HF_TIME_NEVER);
	if (!seen->unreachable)
		return make_guarded(HF_GUARD_TAINT, HF_TIME_NEVER);
	if (is_storm(seen))
		return make_guarded(HF_GUARD_STORM, HF_TIME_NEVER);
	silence = weigh_silence(b, node);
	if (silence.guard == HF_GUARD_NONE && claims != HF_GUARD_NONE)
		return make_guarded(claims, HF_TIME_NEVER);
	return silence;
}
