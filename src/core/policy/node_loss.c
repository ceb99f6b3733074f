/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

/*
 * Pods on nodes that are lost.  One that nobody deletes is given up: counted, and then deleted as
 * any other that has ended.  One that is terminating, whoever deletes it and whatever the job is
 * doing, is waited for until its node is known to be dead; then its phase is set to Failed, so
 * that others see what became of it, and in the next step, when all still holds, its object is
 * removed by force.  Both requests name its resourceVersion: a kubelet that comes back and writes
 * one word wins.  A job that was deleted decides nothing any more: for what it has left, the next job
 * of its name and kind does, which waits for these names.
 */

/* A read that was asked for should have been done by then. */
#define READ_AGAIN_SECONDS 2
/* Admission gives every pod this toleration; what is longer was written by a person. */
#define INJECTED_TOLERATION_SECONDS 300

bool hf_pod_is_inherited(const struct hf_job_view *job, const struct hf_pod *pod)
{
	hf_assert(job->framework);
	/* One that was made later belongs to a job that this view is older than. */
	return !pod->owned && hf_streq(pod->maker, job->framework->kind) &&
	       pod->deletion_time != HF_TIME_NONE && pod->creation_time != HF_TIME_NONE &&
	       job->creation_time != HF_TIME_NONE && pod->creation_time <= job->creation_time;
}

static bool is_terminal(const struct hf_pod *pod)
{
	return pod->phase == HF_POD_SUCCEEDED || pod->phase == HF_POD_FAILED;
}

static bool is_terminating(const struct hf_pod *pod)
{
	return pod->deletion_time != HF_TIME_NONE;
}

/* ---- when it is given up ------------------------------------------------------------------------- */

static struct hf_evidence wait_until(struct hf_evidence evidence, enum hf_guard guard, hf_time at)
{
	evidence.guard = guard;
	evidence.until = at;
	return evidence;
}

struct hf_evidence hf_lost_evidence(struct hf_brain *b, const struct hf_node *node,
				    const struct hf_pod *pod)
{
	struct hf_evidence evidence = hf_node_evidence(b, node, pod);
	const struct hf_opt_int *toleration = &pod->tolerates_unreachable;
	hf_time at;

	/* Who is proven dead runs nothing that a grace or a toleration could be for. */
	if (evidence.guard != HF_GUARD_NONE || evidence.proven)
		return evidence;
	if (is_terminating(pod)) {
		at = hf_time_add(pod->deletion_time,
				 hf_seconds(b->job.recovery.force_delete_after_seconds));
		return b->now < at ? wait_until(evidence, HF_GUARD_DEADLINE, at) : evidence;
	}
	if (!toleration->set || toleration->value <= INJECTED_TOLERATION_SECONDS)
		return evidence;
	at = hf_time_add(node->seen->since, hf_seconds(toleration->value));
	return b->now < at ? wait_until(evidence, HF_GUARD_TOLERATION, at) : evidence;
}

bool hf_lost_is_given_up(struct hf_brain *b, const struct hf_pod *pod)
{
	const struct hf_node *node = hf_node_lost(b, pod);

	if (!node || is_terminating(pod) || is_terminal(pod))
		return false;
	return hf_lost_evidence(b, node, pod).guard == HF_GUARD_NONE;
}

/* ---- as the cause of what others did ---------------------------------------------------------------- */

/* Its attempt had started before the incident opened. */
static bool is_covered(const struct hf_pod *pod, int64_t incident)
{
	return (pod->stamped ? pod->incident : 0) < incident;
}

/* Controllers that fail a pod of a lost node, Holdfast among them, leave its containers as they were and
 * give no reason.  An init container may have ended with 0 before.  Beside a container that runs on, the
 * termination of the kind's own container is the report. */
bool hf_pod_is_reported(const struct hf_pod *pod, const struct hf_container_seen *own)
{
	if (own && hf_container_is_over(own) && own->exit_code != 0)
		return true;
	if (pod->phase != HF_POD_FAILED)
		return false;
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (pod->containers[i].phase == HF_CONTAINER_TERMINATED &&
		    (pod->containers[i].exit_code != 0 || pod->containers[i].signal != 0))
			return true;
	}
	return !hf_str_is_empty(pod->reason);
}

static bool find_lost(struct hf_brain *b, int64_t incident, hf_time at, bool counts,
		      struct hf_end *ret_end)
{
	for (int r = 0; b->nodes_lost > 0 && r < b->crews_len; r++) {
		for (int32_t i = 0; i < b->crews[r].replicas; i++) {
			const struct hf_slot *slot = &b->crews[r].slots[i];
			const struct hf_pod *pod = slot->pod;
			const struct hf_node *node;

			if (!pod || slot->succeeded || pod->phase == HF_POD_SUCCEEDED ||
			    hf_pod_is_reported(pod, hf_own_container(b, r, pod)) ||
			    !is_covered(pod, incident))
				continue;
			node = hf_node_blamed(b, pod);
			if (!node || !hf_node_was_silent(node, at) ||
			    (counts && !hf_node_counts_as_lost(b, node, pod)))
				continue;
			*ret_end = (struct hf_end){.kind = HF_END_LOST,
						   .role = r,
						   .index = i,
						   .pod = pod,
						   .finished_at = HF_TIME_NONE,
						   .rule = -1};
			hf_classify(b, ret_end);
			return true;
		}
	}
	return false;
}

bool hf_lost_suspect(struct hf_brain *b, int64_t incident, hf_time at, struct hf_end *ret_end)
{
	return find_lost(b, incident, at, false, ret_end);
}

bool hf_lost_cause(struct hf_brain *b, int64_t incident, hf_time at, struct hf_end *ret_end)
{
	return find_lost(b, incident, at, true, ret_end);
}

bool hf_lost_precedes(struct hf_brain *b, const struct hf_end *end, hf_time at)
{
	const struct hf_node *node;

	if (!end->pod || (end->kind != HF_END_LOST && !end->lost) || at == HF_TIME_NONE)
		return true;
	node = hf_node_lost(b, end->pod);
	return !node || hf_node_was_silent(node, at);
}

void hf_lost_adopt(struct hf_brain *b)
{
	const struct hf_ledger *ledger = &b->ledger;
	const struct hf_incident *incident = &ledger->incident;
	struct hf_end cause;

	if (!hf_incident_is_open(b) || incident->opened_at == HF_TIME_NONE ||
	    ledger->records_len == 0 || hf_verdict_pending(b) ||
	    !hf_class_is_application(incident->cause) ||
	    !hf_lost_suspect(b, incident->id, incident->opened_at, &cause))
		return;
	if (!hf_lost_cause(b, incident->id, incident->opened_at, &cause)) {
		hf_ask(b, HF_ASK_LEASE, cause.pod->node);
		hf_say(b, b->now, HF_TOPIC_NEXT,
		       "incident %lld is put down to node %s if that counts as lost, after %lld s "
		       "without a sign of life (nodeLost.afterSeconds)",
		       (long long)incident->id, cause.pod->node,
		       (long long)b->job.recovery.node_lost_after_seconds);
		return;
	}
	if (!hf_incident_adopt(b, &cause)) {
		enum hf_budget budget = hf_class_budget(cause.cls);

		hf_verdict_set(b, hf_budget_verdict(budget), hf_budget_message(b, budget));
	}
}

/* ---- all of them -------------------------------------------------------------------------------------- */

/* The pods that wait for one guard. */
struct waiting {
	int32_t count;
	const struct hf_pod *pod; /* the first of them */
	const struct hf_node_seen *node;
	hf_time news_at; /* of that node; see struct hf_node */
	hf_time until;   /* the first guard that ends */
};

/* Its rank has succeeded: the job waits neither for the pod nor for its node. */
static bool is_of_succeeded_rank(const struct hf_brain *b, const struct hf_pod *pod)
{
	int32_t index;
	int role;

	return b->crews_len > 0 && hf_world_find(b, pod->name, &role, &index) &&
	       index < b->crews[role].slots_len && b->crews[role].slots[index].pod == pod &&
	       b->crews[role].slots[index].succeeded;
}

/* Of a finished job nothing is given up: what runs was left to run by its clean-up policy. */
static bool is_of_interest(const struct hf_brain *b, const struct hf_pod *pod, bool finished)
{
	if (!pod->node || b->nodes_lost == 0)
		return false;
	if (!pod->owned)
		return hf_pod_is_inherited(b->view, pod);
	return is_terminating(pod) ||
	       (!is_terminal(pod) && !finished && !is_of_succeeded_rank(b, pod));
}

static int by_name(const void *left, const void *right)
{
	const struct hf_pod *const *a = left;
	const struct hf_pod *const *b = right;
	int order = strcmp((*a)->name, (*b)->name);

	return order != 0 ? order : strcmp((*a)->uid, (*b)->uid);
}

static const struct hf_pod **collect(struct hf_brain *b, bool finished, size_t *ret_len)
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
		qsort(pods, len, sizeof(const struct hf_pod *), by_name);
	*ret_len = len;
	return pods;
}

static void ask_about(struct hf_brain *b, const struct hf_node_seen *node, const struct hf_pod *pod)
{
	if (b->job.recovery.force == HF_FORCE_NEVER)
		return;
	if (node->ready == HF_NODE_GONE) {
		hf_ask(b, HF_ASK_NODE, node->name);
		return;
	}
	if (node->out_of_service) {
		hf_ask(b, HF_ASK_NODE, node->name);
		if (node->ready != HF_NODE_UNKNOWN)
			hf_ask(b, HF_ASK_LEASE, node->name);
		return;
	}
	/* Also while it is missing: it may come. */
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

/* A sentence of what is known, for the pod's condition. */
static const char *obituary(struct hf_brain *b, const struct hf_node_seen *node,
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

/* First the phase, then, in another step, the object. */
static void give_up(struct hf_brain *b, const struct hf_node_seen *node, const struct hf_pod *pod,
		    const struct hf_evidence *evidence)
{
	struct hf_action action = {.kind = HF_ACTION_FAIL_POD,
				   .name = pod->name,
				   .uid = pod->uid,
				   .resource_version = pod->resource_version};

	hf_assert(is_terminating(pod) && !pod->forced);
	/* What has no version cannot be guarded. */
	if (hf_str_is_empty(pod->uid) || hf_str_is_empty(pod->resource_version))
		return;
	if (!is_terminal(pod)) {
		action.message = obituary(b, node, pod, evidence);
	} else {
		action.kind = HF_ACTION_DELETE_POD;
		action.grace_seconds = HF_SOME_INT(0);
		b->plan->metrics[evidence->proven ? HF_METRIC_FORCED_PROVEN
						  : HF_METRIC_FORCED_PRESUMED]++;
	}
	hf_action_add(b, &b->deletes, &action);
}

static void note(struct waiting *waiting, const struct hf_node *node, const struct hf_pod *pod,
		 hf_time until)
{
	if (waiting->count++ == 0) {
		waiting->pod = pod;
		waiting->node = node->seen;
		waiting->news_at = node->news_at;
		waiting->until = until;
	} else if (until < waiting->until) {
		waiting->until = until;
	}
}

static void walk(struct hf_brain *b, bool finished, struct waiting waiting[HF_GUARDS])
{
	size_t len;
	const struct hf_pod **pods = collect(b, finished, &len);

	for (size_t i = 0; i < len; i++) {
		const struct hf_node *node = hf_node_lost(b, pods[i]);
		struct hf_evidence evidence = hf_lost_evidence(b, node, pods[i]);

		/* What is forced already is its finalizers' (stuck.c). */
		if (pods[i]->forced)
			continue;
		ask_about(b, node->seen, pods[i]);
		if (evidence.guard == HF_GUARD_READ)
			evidence.until = hf_time_add(b->now, hf_seconds(READ_AGAIN_SECONDS));
		if (evidence.guard != HF_GUARD_NONE && evidence.until != HF_TIME_NEVER)
			hf_wake(b, evidence.until);
		if (evidence.guard == HF_GUARD_NONE && is_terminating(pods[i]))
			give_up(b, node->seen, pods[i], &evidence);
		note(&waiting[evidence.guard], node, pods[i], evidence.until);
	}
}

/* ---- words ------------------------------------------------------------------------------------------------ */

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

/* ---- signs of life, since the control plane calls the node Unknown ------------------------------- */

struct sign {
	hf_time at;       /* the last one; NONE: none came */
	const char *came; /* in a condition: no time in it moves */
	const char *last; /* in `why`, before the time */
};
enum { SIGN_AGENT, SIGN_PROCESS, SIGN_LEASE, SIGN_POD, SIGNS };

static void find_signs(const struct waiting *waiting, struct sign signs[SIGNS])
{
	const struct hf_node_seen *node = waiting->node;
	const struct sign all[SIGNS] = {
		[SIGN_AGENT] = {node->reported_at, "its agent was heard",
				"its agent was last heard"},
		[SIGN_PROCESS] = {node->beat_at, "a training process there was heard",
				  "a training process there was last heard"},
		[SIGN_LEASE] = {node->renewed_at, "its kubelet renewed its Lease",
				"its kubelet last renewed its Lease"},
		[SIGN_POD] = {waiting->news_at, "its kubelet changed the status of a pod",
			      "its kubelet last changed the status of a pod"},
	};

	for (size_t i = 0; i < SIGNS; i++) {
		signs[i] = all[i];
		if (signs[i].at != HF_TIME_NONE && signs[i].at <= node->since)
			signs[i].at = HF_TIME_NONE;
	}
}

/* Signs count where silence is evidence: not where the node's death is proven, or to be. */
static const char *text_signs(struct hf_brain *b, const struct waiting *waiting, bool with_times)
{
	const char *text = "";
	struct sign signs[SIGNS];

	if (waiting->node->ready != HF_NODE_UNKNOWN || waiting->node->out_of_service ||
	    hf_node_is_fenced(waiting->node, waiting->pod))
		return text;
	find_signs(waiting, signs);
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

static bool is_kubelet_mute(const struct waiting *waiting)
{
	struct sign signs[SIGNS];

	find_signs(waiting, signs);
	return signs[SIGN_LEASE].at == HF_TIME_NONE && signs[SIGN_POD].at == HF_TIME_NONE;
}

static const char *find_reason(struct hf_brain *b, enum hf_guard guard,
			       const struct waiting *waiting)
{
	if ((guard == HF_GUARD_SILENCE || guard == HF_GUARD_READ) &&
	    *text_signs(b, waiting, false) != '\0')
		return "SignsOfLife";
	return reasons[guard];
}

static const char *silence_text(struct hf_brain *b, const struct waiting *waiting)
{
	const struct hf_node_seen *node = waiting->node;
	const char *signs = text_signs(b, waiting, false);

	if (node->ready == HF_NODE_GONE)
		return "it is given up when the node stays away for 40 s";
	if (node->out_of_service)
		return node->ready == HF_NODE_UNKNOWN
			       ? "it is given up when a live look finds that taint"
			       : "it is given up when the node's Lease stands still";
	if (hf_node_is_fenced(node, waiting->pod))
		return hf_arena_printf(
			b->arena,
			"it ends itself (nodeLost.selfFence), and is given up when the "
			"node's Lease has stood still for %d s",
			waiting->pod->fence_seconds + HF_FENCE_MARGIN_SECONDS);
	if (*signs != '\0')
		return hf_arena_printf(
			b->arena,
			"the node has been Unknown since %s%s, but %s after that; the pod is given "
			"up %lld s after the last sign of life (nodeLost.afterSeconds)",
			hf_time_text(b->arena, node->unknown_at != HF_TIME_NONE ? node->unknown_at
										: node->since),
			is_kubelet_mute(waiting) ? ", for its kubelet is silent" : "", signs,
			(long long)hf_node_wait_seconds(b));
	return hf_arena_printf(b->arena,
			       "it is given up after %lld s without a sign of life "
			       "(nodeLost.afterSeconds)",
			       (long long)b->job.recovery.node_lost_after_seconds);
}

static const char *calm_text(struct hf_brain *b, const struct hf_node_seen *node)
{
	return hf_arena_printf(
		b->arena,
		"the storm of %s%s ended at %s, or the operator began to watch then; it is given up "
		"when the node is silent for %lld s after that (nodeLost.afterSeconds)",
		node->zone ? "zone " : "the cluster", hf_str_or(node->zone, ""),
		hf_time_text(b->arena, node->calm_since), (long long)hf_node_wait_seconds(b));
}

/* What is waited for, without a time that moves: a condition is not written anew for each. */
static const char *guard_text(struct hf_brain *b, enum hf_guard guard,
			      const struct waiting *waiting)
{
	const struct hf_recovery *recovery = &b->job.recovery;
	const struct hf_node_seen *node = waiting->node;

	switch (guard) {
	case HF_GUARD_NONE: return "it is given up";
	case HF_GUARD_DEADLINE:
		return hf_arena_printf(b->arena, "it is deleted by force %lld s after its grace",
				       (long long)recovery->force_delete_after_seconds);
	case HF_GUARD_SILENCE:
	case HF_GUARD_READ:
	case HF_GUARD_TAINT: return silence_text(b, waiting);
	case HF_GUARD_CALM: return calm_text(b, node);
	case HF_GUARD_TOLERATION:
		return waiting->until == HF_TIME_NEVER
			       ? "the pod's own toleration lets it stay for ever: delete the pod, "
				 "and it is given up"
			       : "the pod's own toleration lets it stay for longer";
	case HF_GUARD_VOLUME:
		return "it has a volume that only one node may have, so the node's death must be "
		       "proven";
	case HF_GUARD_MODE:
		return recovery->force == HF_FORCE_NEVER
			       ? "nodeLost.forceDelete is Never: somebody must delete it by force"
			       : "nodeLost.forceDelete is Proven: the node's death must be proven";
	default:
		return hf_arena_printf(
			b->arena,
			"%d of %d schedulable nodes%s%s are lost at once: from 55 %% "
			"on nothing is deleted",
			node->zone_lost, node->zone_nodes, node->zone ? " of zone " : "",
			hf_str_or(node->zone, ""));
	}
}

/* "ddp-worker-1 and 3 more" */
static const char *who(struct hf_brain *b, const struct waiting *waiting)
{
	return waiting->count > 1 ? hf_arena_printf(b->arena, "%s and %d more", waiting->pod->name,
						    waiting->count - 1)
				  : waiting->pod->name;
}

static const char *standing(const struct hf_node_seen *node)
{
	return node->out_of_service ? "out of service" : hf_node_ready_name(node->ready);
}

/* The taint is somebody else's to set, and a read is ours: both are said. */
static const char *detail(struct hf_brain *b, enum hf_guard guard, const struct waiting *waiting)
{
	if (guard == HF_GUARD_TAINT)
		return "; the control plane has not tainted the node yet";
	if (guard == HF_GUARD_READ &&
	    (waiting->node->ready == HF_NODE_GONE ||
	     (waiting->node->out_of_service && waiting->node->ready == HF_NODE_UNKNOWN)))
		return "; a live look is awaited";
	if (guard == HF_GUARD_READ)
		return waiting->pod->claims_len > 0 &&
				       !hf_node_is_fenced(waiting->node, waiting->pod)
			       ? "; a read of its Lease and of the pod's claims is awaited"
			       : "; a read of its Lease is awaited";
	if (waiting->until == HF_TIME_NEVER)
		return "";
	return hf_arena_printf(b->arena, "%s; not before %s",
			       guard == HF_GUARD_SILENCE ? text_signs(b, waiting, true) : "",
			       hf_time_text(b->arena, waiting->until));
}

static void say(struct hf_brain *b, enum hf_guard guard, const struct waiting *waiting)
{
	const char *text = hf_arena_printf(
		b->arena, "%s on node %s, which is %s: %s%s", who(b, waiting), waiting->node->name,
		standing(waiting->node), guard_text(b, guard, waiting), detail(b, guard, waiting));

	hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s", text);
	b->blocker = text;
}

/* The guard that takes most to end names the condition. */
static void show(struct hf_brain *b, size_t pods, enum hf_guard guard,
		 const struct waiting *waiting)
{
	const char *message = hf_arena_printf(
		b->arena, "%zu pod(s) on nodes that are lost, %s on %s (%s) first: %s", pods,
		waiting->pod->name, waiting->node->name, standing(waiting->node),
		guard_text(b, guard, waiting));

	if (!hf_cond_is_true(b, HF_COND_NODE_UNREACHABLE))
		hf_event(b, true, "NodeUnreachable", message);
	hf_cond_set(b, HF_COND_NODE_UNREACHABLE, true, find_reason(b, guard, waiting), message);
}

/* How many there are, and the guard that takes most to end. */
static size_t say_all(struct hf_brain *b, const struct waiting waiting[HF_GUARDS],
		      enum hf_guard *ret_worst)
{
	size_t pods = 0;

	for (int guard = HF_GUARD_NONE; guard < HF_GUARDS; guard++) {
		if (waiting[guard].count == 0)
			continue;
		pods += (size_t)waiting[guard].count;
		*ret_worst = (enum hf_guard)guard;
		say(b, (enum hf_guard)guard, &waiting[guard]);
	}
	return pods;
}

void hf_lost_force(struct hf_brain *b)
{
	struct waiting waiting[HF_GUARDS] = {0};
	enum hf_guard worst;

	walk(b, true, waiting);
	say_all(b, waiting, &worst);
}

bool hf_lost_unseen(struct hf_brain *b, const char *type)
{
	const struct hf_condition *condition = hf_cond_find(b, type);

	if (!b->seen->blind)
		return false;
	if (condition && hf_streq(condition->status, "True")) {
		b->blocker = hf_str_or(condition->message, type);
		hf_say(b, condition->last_transition, HF_TOPIC_BLOCKED, "%s", b->blocker);
	}
	return true;
}

void hf_lost_step(struct hf_brain *b)
{
	struct waiting waiting[HF_GUARDS] = {0};
	enum hf_guard worst = HF_GUARD_NONE;
	size_t pods;

	if (hf_lost_unseen(b, HF_COND_NODE_UNREACHABLE))
		return;

	walk(b, hf_cond_finished(b), waiting);
	pods = say_all(b, waiting, &worst);
	if (pods > 0)
		show(b, pods, worst, &waiting[worst]);
	else
		hf_cond_lower(b, HF_COND_NODE_UNREACHABLE, "NodesReachable",
			      "No pod of the job waits to be given up on a lost node.");
}
