/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/container_reason.h"

/*
 * The class of a termination: the first row of the table that matches.  Input: the termination,
 * its pod, node and devices.  Output: the class, and whether it rests on evidence.  Class "ours"
 * has no row, because a termination of an older generation or attempt is never collected.
 */

/* The deciding container exceeded its memory limit.  If the kind's own container has failed, its
 * reason decides, because another container may have run out of memory long before. */
static bool is_out_of_memory(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_container_seen *own;

	if (termination->kind != HF_TERMINATION_FAILED || termination->gave_up)
		return false;
	own = hf_own_container(b, termination->role, termination->pod);
	if (own && own->phase == HF_CONTAINER_TERMINATED && own->exit_code != 0)
		return hf_streq(own->terminated_reason, "OOMKilled");
	for (size_t i = 0; i < termination->pod->containers_len; i++) {
		if (termination->pod->containers[i].phase == HF_CONTAINER_TERMINATED &&
		    hf_streq(termination->pod->containers[i].terminated_reason, "OOMKilled"))
			return true;
	}
	return false;
}

static bool is_killed_for_memory(const struct hf_termination *termination)
{
	return termination->out_of_memory;
}

static const struct hf_pod_condition *find_disruption(const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->conditions_len; i++) {
		if (hf_streq(pod->conditions[i].type, "DisruptionTarget") &&
		    hf_streq(pod->conditions[i].status, "True"))
			return &pod->conditions[i];
	}
	return NULL;
}

/* The control plane or the kubelet reports that it took the pod away.  A pod with reason "Evicted"
 * but without the condition DisruptionTarget does not count: that pod broke a limit of its own.  A
 * container that the kubelet restarted does not count either, because a pod that is taken away is
 * not started again. */
static bool is_disrupted(const struct hf_termination *termination)
{
	if (!termination->pod || termination->kind == HF_TERMINATION_RESTARTED)
		return false;
	if (find_disruption(termination->pod))
		return true;
	return termination->kind == HF_TERMINATION_FAILED &&
	       (hf_streq(termination->pod->reason, "NodeShutdown") ||
		hf_streq(termination->pod->reason, "Terminated"));
}

/* The node of the pod is lost.  If the kubelet restarted the container, the node was alive. */
static bool is_lost(const struct hf_termination *termination)
{
	return termination->kind == HF_TERMINATION_LOST ||
	       (termination->lost && termination->kind != HF_TERMINATION_RESTARTED);
}

/* The process ended itself (exit code 226), because its node had no contact with the control
 * plane. */
static bool is_fenced(const struct hf_termination *termination)
{
	return termination->fenced;
}

static bool has_vanished(const struct hf_termination *termination)
{
	return termination->kind == HF_TERMINATION_VANISHED;
}

/* A device failed while the pod had it.  In the table this row stands below eviction and lost node,
 * which are better explanations.  A pod that a person deleted keeps class user. */
static bool has_failed_device(const struct hf_termination *termination)
{
	return termination->device && termination->kind != HF_TERMINATION_DELETED;
}

/* The kubelet refused the pod before any container was started.  Such a pod has a reason and no
 * container status: topology manager, sysctl, pressure on the node, … */
static bool is_refused(const struct hf_termination *termination)
{
	const char *reason = termination->pod ? termination->pod->reason : NULL;

	return termination->kind == HF_TERMINATION_FAILED && reason &&
	       (termination->pod->containers_len == 0 ||
		hf_streq(reason, "UnexpectedAdmissionError") ||
		hf_str_has_prefix(reason, "OutOf") || hf_streq(reason, "NodeAffinity"));
}

/* The node lost the container and its exit code: the machine was rebooted, or the container runtime
 * ended.  A program that ends has an exit code.  If the pod has a reason, its kubelet ended the
 * pod, and that reason decides instead. */
static bool is_code_lost(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_container_seen *own;

	if (!termination->pod || !hf_str_is_empty(termination->pod->reason) ||
	    (termination->kind != HF_TERMINATION_FAILED &&
	     termination->kind != HF_TERMINATION_RESTARTED))
		return false;
	own = hf_own_container(b, termination->role, termination->pod);
	return own && hf_exit_code_is_lost(hf_container_last_termination(own).reason);
}

static bool has_lost_code(const struct hf_termination *termination)
{
	return termination->code_lost;
}

static bool is_deleted(const struct hf_termination *termination)
{
	return termination->kind == HF_TERMINATION_DELETED;
}

static bool is_any(const struct hf_termination *termination)
{
	return termination->kind == HF_TERMINATION_FAILED ||
	       termination->kind == HF_TERMINATION_RESTARTED ||
	       termination->kind == HF_TERMINATION_HUNG;
}

static const struct {
	bool (*matches)(const struct hf_termination *termination);
	enum hf_class cls;
	bool evidence;
} rows[] = {
	{is_killed_for_memory, HF_CLASS_OUT_OF_MEMORY, true},
	{is_disrupted, HF_CLASS_INFRASTRUCTURE, true},
	{is_lost, HF_CLASS_INFRASTRUCTURE, true},
	/* here the operator does not see the node as lost */
	{is_fenced, HF_CLASS_INFRASTRUCTURE, true},
	{has_vanished, HF_CLASS_INFRASTRUCTURE, false},
	{has_failed_device, HF_CLASS_DEVICE, true},
	{is_refused, HF_CLASS_ADMISSION, true},
	{has_lost_code, HF_CLASS_INFRASTRUCTURE, true},
	{is_deleted, HF_CLASS_USER, true},
	{is_any, HF_CLASS_APPLICATION, true},
};

/* The rank had an earlier pod, and that pod had the same name. */
static bool has_predecessor(const struct hf_brain *b, const struct hf_termination *termination)
{
	return b->ledger.generation > 1 ||
	       b->roles[termination->role].slots[termination->index].attempt > 0;
}

/* The taint controller may evict pods from this node: the node has a NoExecute taint, or had one
 * within the last five minutes.  The operator may hear of a pod's end after the taint is gone. */
static bool may_evict(const struct hf_brain *b, const struct hf_node_seen *node)
{
	return hf_node_is_lost(node) || node->no_execute ||
	       (node->evicted_at != HF_TIME_NONE &&
		hf_elapsed(node->evicted_at, b->now) < hf_seconds(HF_GONE_KEPT_SECONDS));
}

/*
 * Taint eviction hit the wrong pod.  The control plane keeps one timer for each pod name and
 * deletes by name.  If a timer for a pod of a tainted node is not cancelled, it deletes the
 * replacement, which has the same name, on another node.
 */
static bool is_stray(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_pod_condition *said = find_disruption(termination->pod);
	const struct hf_node *node;

	if (!said || !hf_streq(said->reason, "DeletionByTaintManager") ||
	    !has_predecessor(b, termination))
		return false;
	node = hf_node_of(b, termination->pod);
	return node && !may_evict(b, node->seen);
}

const char *hf_termination_reason(const struct hf_termination *termination)
{
	const struct hf_pod_condition *said =
		termination->pod ? find_disruption(termination->pod) : NULL;

	if (termination->kind == HF_TERMINATION_RESTARTED && termination->cls != HF_CLASS_DEVICE)
		return termination->status_reason;
	if (termination->cls == HF_CLASS_OUT_OF_MEMORY)
		return "OOMKilled";
	if (termination->cls == HF_CLASS_DEVICE)
		return termination->device->cls;
	if (termination->kind == HF_TERMINATION_HUNG)
		return HF_REASON_NO_PROGRESS;
	if (termination->stray)
		return HF_REASON_STRAY;
	if (termination->kind == HF_TERMINATION_LOST || termination->lost)
		return HF_REASON_NODE_LOST;
	if (termination->fenced)
		return HF_REASON_SELF_FENCED;
	if (said && !hf_str_is_empty(said->reason))
		return said->reason;
	if (termination->kind != HF_TERMINATION_FAILED)
		return NULL;
	return hf_str_is_empty(termination->pod->reason) ? termination->status_reason
							 : termination->pod->reason;
}

/*
 * The loss of the node explains the termination.
 *
 * Exception: the kubelet reported the termination, so it was alive at that time, and the pod ended
 * by itself.  But if the node then counts as lost without any later sign of life, that termination
 * was the first sign of the loss.
 */
static bool is_lost_with_its_node(const struct hf_brain *b,
				  const struct hf_termination *termination)
{
	if (!hf_node_explains(b, termination->pod))
		return false;
	return termination->kind != HF_TERMINATION_FAILED ||
	       !hf_pod_is_reported(termination->pod,
				   hf_own_container(b, termination->role, termination->pod)) ||
	       hf_node_counts_as_lost(b, hf_node_lost(b, termination->pod), termination->pod);
}

void hf_classify(const struct hf_brain *b, struct hf_termination *termination)
{
	hf_assert(b->ledger.present);
	hf_assert(termination->pod || termination->kind == HF_TERMINATION_VANISHED);
	termination->lost = termination->pod && is_lost_with_its_node(b, termination);
	termination->fenced = termination->kind == HF_TERMINATION_FAILED &&
			      b->job.recovery.fence_seconds > 0 && termination->exit_code.set &&
			      termination->exit_code.value == HF_FENCED_EXIT_CODE;
	termination->device =
		termination->pod ? hf_device_find_cause(termination->pod, termination->finished_at)
				 : NULL;
	termination->gave_up = termination->pod ? hf_init_wait_gave_up(b, termination) : NULL;
	termination->out_of_memory = is_out_of_memory(b, termination);
	termination->code_lost = is_code_lost(b, termination);
	termination->stray = termination->pod && termination->kind != HF_TERMINATION_RESTARTED &&
			     is_stray(b, termination);
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		if (rows[i].matches(termination)) {
			termination->cls = rows[i].cls;
			termination->evidence = rows[i].evidence;
			termination->same_fault = hf_incident_is_same_fault(b, termination);
			return;
		}
	}
	hf_assert(!"an end of no class");
}
