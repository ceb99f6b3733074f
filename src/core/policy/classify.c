/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"

/*
 * What an end is put down to: the first row that matches.  "Ours" has no row: an end of an
 * older generation or attempt is never collected.
 */

/* The kind's own container decides once it has failed: another container may have run out of memory
 * long before. */
static bool is_out_of_memory(const struct hf_brain *b, const struct hf_end *end)
{
	const struct hf_container_seen *own;

	if (end->kind != HF_END_FAILED || end->gave_up)
		return false;
	own = hf_own_container(b, end->role, end->pod);
	if (own && own->phase == HF_CONTAINER_TERMINATED && own->exit_code != 0)
		return hf_streq(own->terminated_reason, "OOMKilled");
	for (size_t i = 0; i < end->pod->containers_len; i++) {
		if (end->pod->containers[i].phase == HF_CONTAINER_TERMINATED &&
		    hf_streq(end->pod->containers[i].terminated_reason, "OOMKilled"))
			return true;
	}
	return false;
}

static bool out_of_memory(const struct hf_end *end)
{
	return end->out_of_memory;
}

static const struct hf_pod_condition *disruption(const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->conditions_len; i++) {
		if (hf_streq(pod->conditions[i].type, "DisruptionTarget") &&
		    hf_streq(pod->conditions[i].status, "True"))
			return &pod->conditions[i];
	}
	return NULL;
}

/* The control plane or the kubelet says that it took the pod away.  Plain "Evicted" is not
 * here: without the condition, the pod broke a limit of its own.  Nor is a container that was
 * restarted before: whoever takes a pod away does not start it again. */
static bool disrupted(const struct hf_end *end)
{
	if (!end->pod || end->kind == HF_END_RESTARTED)
		return false;
	if (disruption(end->pod))
		return true;
	return end->kind == HF_END_FAILED && (hf_streq(end->pod->reason, "NodeShutdown") ||
					      hf_streq(end->pod->reason, "Terminated"));
}

/* A container that the kubelet restarted is no end of the node. */
static bool lost(const struct hf_end *end)
{
	return end->kind == HF_END_LOST || (end->lost && end->kind != HF_END_RESTARTED);
}

/* Its node had lost the control plane, or never had it. */
static bool fenced(const struct hf_end *end)
{
	return end->fenced;
}

static bool vanished(const struct hf_end *end)
{
	return end->kind == HF_END_VANISHED;
}

/* Where the control plane took the pod away or the node is lost, the device is not needed to
 * explain it; a person's delete stays one. */
static bool sick(const struct hf_end *end)
{
	return end->device && end->kind != HF_END_DELETED;
}

/* By its kubelet, before anything was started: such a pod has a reason and no container's status,
 * whatever the reason (the topology manager's, a sysctl, pressure of the node, …). */
static bool refused(const struct hf_end *end)
{
	const char *reason = end->pod ? end->pod->reason : NULL;

	return end->kind == HF_END_FAILED && reason &&
	       (end->pod->containers_len == 0 || hf_streq(reason, "UnexpectedAdmissionError") ||
		hf_str_has_prefix(reason, "OutOf") || hf_streq(reason, "NodeAffinity"));
}

static bool deleted(const struct hf_end *end)
{
	return end->kind == HF_END_DELETED;
}

static bool anything(const struct hf_end *end)
{
	return end->kind == HF_END_FAILED || end->kind == HF_END_RESTARTED ||
	       end->kind == HF_END_HUNG;
}

static const struct {
	bool (*matches)(const struct hf_end *end);
	enum hf_class cls;
	bool evidence;
} rows[] = {
	{out_of_memory, HF_CLASS_OUT_OF_MEMORY, true},
	{disrupted, HF_CLASS_INFRASTRUCTURE, true},
	{lost, HF_CLASS_INFRASTRUCTURE, true},
	{fenced, HF_CLASS_INFRASTRUCTURE, true}, /* its node is not lost, as far as we see */
	{vanished, HF_CLASS_INFRASTRUCTURE, false},
	{sick, HF_CLASS_DEVICE, true},
	{refused, HF_CLASS_ADMISSION, true},
	{deleted, HF_CLASS_USER, true},
	{anything, HF_CLASS_APPLICATION, true},
};

/* The rank had a pod before, under the same name. */
static bool has_predecessor(const struct hf_brain *b, const struct hf_end *end)
{
	return b->ledger.generation > 1 || b->crews[end->role].slots[end->index].attempt > 0;
}

/* The news of the pod may come after the taint has gone: it went while that was there. */
static bool evicts(const struct hf_brain *b, const struct hf_node_seen *node)
{
	return hf_node_is_lost(node) || node->no_execute ||
	       (node->evicted_at != HF_TIME_NONE &&
		hf_elapsed(node->evicted_at, b->now) < hf_seconds(HF_GONE_KEPT_SECONDS));
}

/*
 * Taint eviction has one timer for each name, and deletes by name: one that was set for a pod of
 * a tainted node, and not cancelled, hits the pod that has taken its place elsewhere.
 */
static bool is_stray(struct hf_brain *b, const struct hf_end *end)
{
	const struct hf_pod_condition *said = disruption(end->pod);
	const struct hf_node *node;

	if (!said || !hf_streq(said->reason, "DeletionByTaintManager") || !has_predecessor(b, end))
		return false;
	node = hf_node_of(b, end->pod);
	return node && !evicts(b, node->seen);
}

const char *hf_end_reason(const struct hf_end *end)
{
	const struct hf_pod_condition *said = end->pod ? disruption(end->pod) : NULL;

	if (end->kind == HF_END_RESTARTED && end->cls != HF_CLASS_DEVICE)
		return end->status_reason;
	if (end->cls == HF_CLASS_OUT_OF_MEMORY)
		return "OOMKilled";
	if (end->cls == HF_CLASS_DEVICE)
		return end->device->cls;
	if (end->kind == HF_END_HUNG)
		return HF_REASON_NO_PROGRESS;
	if (end->stray)
		return HF_REASON_STRAY;
	if (end->kind == HF_END_LOST || end->lost)
		return HF_REASON_NODE_LOST;
	if (end->fenced)
		return HF_REASON_SELF_FENCED;
	if (said && !hf_str_is_empty(said->reason))
		return said->reason;
	if (end->kind != HF_END_FAILED)
		return NULL;
	return hf_str_is_empty(end->pod->reason) ? end->status_reason : end->pod->reason;
}

/* A kubelet that tells of an end was alive then: what the pod did, it did itself.  But where the kubelet
 * is not heard of again before its node counts as lost, that end was the first sign of the loss. */
static bool is_lost_with_its_node(struct hf_brain *b, const struct hf_end *end)
{
	if (!hf_node_explains(b, end->pod))
		return false;
	return end->kind != HF_END_FAILED ||
	       !hf_pod_is_reported(end->pod, hf_own_container(b, end->role, end->pod)) ||
	       hf_node_counts_as_lost(b, hf_node_lost(b, end->pod), end->pod);
}

void hf_classify(struct hf_brain *b, struct hf_end *end)
{
	hf_assert(b->ledger.present);
	hf_assert(end->pod || end->kind == HF_END_VANISHED);
	end->lost = end->pod && is_lost_with_its_node(b, end);
	end->fenced = end->kind == HF_END_FAILED && b->job.recovery.fence_seconds > 0 &&
		      end->exit_code.set && end->exit_code.value == HF_FENCED_EXIT_CODE;
	end->device = end->pod ? hf_device_of(end->pod, end->finished_at) : NULL;
	end->gave_up = end->pod ? hf_awaited_gave_up(b, end) : NULL;
	end->out_of_memory = is_out_of_memory(b, end);
	end->stray = end->pod && end->kind != HF_END_RESTARTED && is_stray(b, end);
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		if (rows[i].matches(end)) {
			end->cls = rows[i].cls;
			end->evidence = rows[i].evidence;
			return;
		}
	}
	hf_assert(!"an end of no class");
}
