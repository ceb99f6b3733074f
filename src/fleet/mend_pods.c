/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "api/condition.h"
#include "api/lifetime.h"
#include "base/str.h"
#include "store/resource.h"

#include <string.h>

/*
 * Finds the pods that have to leave the node of a Remediation before its act.
 *
 * Input: the live list of the node's pods, and the newest report of the agent. Output: the part of struct mend_facts
 * about pods. Invariant: a pod that may hold a device of a reset is either evicted or waited for. The report of an agent
 * says nothing about pods that are younger than it.
 */

/* Label "app" of these pods. */
static const char *const operand_apps[] = {
	"gpu-feature-discovery",
	"nvidia-dcgm",
	"nvidia-dcgm-exporter",
	"nvidia-device-plugin-daemonset",
};

static bool is_operand_pod(const struct hf_json *pod)
{
	const char *app = hf_json_path_str(pod, "metadata", "labels", "app", NULL);

	for (size_t i = 0; i < HF_ARRAY_LEN(operand_apps); i++)
		if (hf_streq(operand_apps[i], app))
			return hf_is_pod_of_node(pod);
	return false;
}

/* True if the agent reports that the pod holds a device of the act now. An act that names no
 * devices counts every device. */
static bool holds_target(const struct fleet_mend *mend, const struct hf_device_health *health,
			 const char *uid)
{
	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];
		bool wanted = mend->r.spec.devices.len == 0 ||
			      hf_fleet_mend_names(&mend->r, device->uuid);

		for (size_t h = 0; wanted && h < device->holders.len; h++)
			if (device->holders.items[h].until == HF_TIME_NONE &&
			    hf_streq(device->holders.items[h].uid, uid))
				return true;
	}
	return false;
}

/* By the labels of deploy/operator and of the chart. */
static bool is_operator_pod(const struct fleet_mend *mend, const struct hf_json *pod)
{
	const struct hf_json *labels = hf_json_path(pod, "metadata", "labels", NULL);

	return mend->fleet->env.pod_ns != NULL &&
	       hf_streq(hf_json_path_str(pod, "metadata", "namespace", NULL),
			mend->fleet->env.pod_ns) &&
	       hf_streq(hf_json_path_str(labels, "app.kubernetes.io/name", NULL), "holdfast") &&
	       hf_streq(hf_json_path_str(labels, "app.kubernetes.io/component", NULL), "operator");
}

/* The kubelet kills a pod at the end of its grace period. Container runtimes answer within this time. */
#define KILL_TIME (2 * HF_MINUTE)

/* Since when the node is Ready, by the operator's clock; NONE: not reported. */
static hf_time ready_since(const struct fleet_mend *mend, hf_time now)
{
	const struct fleet_health *health = hf_fleet_find_health(mend->fleet, mend->node);
	const struct hf_json *ready =
		hf_find_condition(hf_doc_json(mend->docs[MEND_READ_NODE]), "Ready");
	const char *text = hf_str_or(hf_json_path_str(ready, "lastTransitionTime", NULL), "");
	hf_time at;

	if (hf_time_parse(text, &at, NULL) != 0)
		return HF_TIME_NONE;
	if (health == NULL || health->seen_at == HF_TIME_NONE ||
	    health->observed_at == HF_TIME_NONE)
		return at;
	/* The node may be Ready since its last report, whose age tells how far its clock is off. */
	return at + now - (hf_loop_mono(mend->fleet->env.loop) - health->seen_at) -
	       health->observed_at;
}

/* The pod's time to end is over, and nothing ends it but the act. On a node that is not Ready no kubelet can: the machine is
 * for another controller now. On a Ready node the kubelet has killed it in vain: its process waits in the kernel, as the
 * process of a device that hangs does. A node that is Ready again has that time too: its kubelet may not have asked yet. */
static bool is_stranded(const struct fleet_mend *mend, const struct mend_facts *facts,
			const struct hf_json *pod)
{
	const char *until = hf_json_path_str(pod, "metadata", "deletionTimestamp", NULL);
	hf_time at, ready;

	if ((mend->rung != HF_MEND_EXTERNAL && mend->rung != HF_MEND_REBOOT) || until == NULL ||
	    hf_time_parse(until, &at, NULL) != 0)
		return false;
	if (!facts->view.node_ready)
		return mend->rung == HF_MEND_EXTERNAL && at <= facts->now;
	ready = ready_since(mend, facts->now);
	return hf_time_add(at > ready ? at : ready, KILL_TIME) <= facts->now;
}

/* The containers have ended, and the kubelet still has to unmount volumes and confirm the end. Until then a rank of a job has no
 * new pod. A pod with finalizers may stay for another reason. */
static bool is_being_removed(const struct fleet_mend *mend, const struct hf_json *pod)
{
	const struct hf_json *metadata = hf_json_get(pod, "metadata");

	return (mend->rung == HF_MEND_REBOOT || mend->rung == HF_MEND_EXTERNAL) &&
	       hf_is_leaving(pod) && hf_json_len(hf_json_get(metadata, "finalizers")) == 0;
}

/* True if the pod has to leave the node before the act. A reboot ends every pod. So a pod that asks for devices leaves,
 * whether the agent has reported it or not. Two kinds of pods that hold no device may stay, because the kubelet starts
 * them again after the reboot. An eviction would lose a pod without a controller. The operator may find no other node,
 * and then nothing would take the taint off. */
static bool must_leave(const struct fleet_mend *mend, const struct hf_device_health *health,
		       const struct mend_facts *facts, const struct hf_json *pod)
{
	const char *uid = hf_json_path_str(pod, "metadata", "uid", NULL);

	if ((hf_has_pod_ended(pod) && !is_being_removed(mend, pod)) || hf_is_pod_of_node(pod) ||
	    is_stranded(mend, facts, pod) ||
	    hf_streq(hf_json_path_str(pod, "metadata", "namespace", NULL), HF_MEND_NAMESPACE))
		return false;
	if (health != NULL && uid != NULL && holds_target(mend, health, uid))
		return true;
	return (mend->rung == HF_MEND_REBOOT || mend->rung == HF_MEND_EXTERNAL) &&
	       (hf_find_controller(pod) != NULL || hf_asks_for_devices(hf_json_get(pod, "spec"))) &&
	       !is_operator_pod(mend, pod);
}

/* A kubelet gives a container its devices once, before it starts, and the agent reports them within this time. */
#define REPORT_LAG (5 * HF_SECOND)

static const char *print_pod(const struct fleet_mend *mend, const struct hf_json *pod)
{
	return hf_arena_printf(mend->arena, "%.128s/%.128s",
			       hf_str_or(hf_json_path_str(pod, "metadata", "namespace", NULL), "?"),
			       hf_str_or(hf_json_path_str(pod, "metadata", "name", NULL), "?"));
}

static const char *find_job(const struct fleet_mend *mend, struct hf_doc *pod)
{
	const struct hf_controller_env *env = &mend->fleet->env;

	return env->find_job(env->arg, hf_doc_namespace(pod), hf_doc_name(pod), hf_doc_uid(pod));
}

static bool is_unselected(const struct fleet_policy *policy, const struct hf_json *pod)
{
	return policy != NULL && policy->spec.has_pod_selector &&
	       !hf_selector_match_labels(policy->pods,
					 hf_json_path(pod, "metadata", "labels", NULL));
}

static struct mend_left judge_left(const struct fleet_mend *mend, const struct mend_facts *facts,
				   size_t at)
{
	const struct hf_json *pod = hf_doc_json(mend->pods[at]);
	const struct hf_controller_env *env = &mend->fleet->env;
	const char *job = find_job(mend, mend->pods[at]);
	const char *stays = hf_is_leaving(pod) ? NULL : env->fails_by_eviction(env->arg, job, pod);

	return (struct mend_left){.at = at,
				  .stays = stays,
				  .restarts = env->is_moved(env->arg, job, pod),
				  .unselected = is_unselected(facts->policy, pod)};
}

/* Why the pod is still there; NULL: nothing keeps it. */
static const char *find_why_left(const struct fleet_mend *mend, const struct mend_left *left)
{
	const char *refused;

	if (left->stays != NULL)
		return hf_arena_printf(mend->arena, "one more eviction would fail its job (%s)",
				       left->stays);
	if (left->unselected)
		return "spec.drain.podSelector of the policy leaves it out";
	refused = hf_fleet_find_refused(mend->fleet, hf_doc_uid(mend->pods[left->at]));
	if (refused != NULL)
		return refused;
	return left->restarts ? "its job restarts" : NULL;
}

/* The plan lets pods end before it creates the act, but pods may come while the act waits for a window. */
static bool lets_work_end(const struct fleet_mend *mend, const struct mend_facts *facts,
			  const struct fleet_health *health)
{
	/* A node whose agent knows nothing of a device is given away with its pods. */
	return (mend->rung == HF_MEND_REBOOT || mend->rung == HF_MEND_EXTERNAL) &&
	       facts->policy != NULL && health != NULL && health->state != HF_HEALTH_UNKNOWN &&
	       hf_fleet_mend_lets_work_end(&facts->policy->spec, health);
}

static const char *print_at_work(const struct fleet_mend *mend, const struct mend_facts *facts,
				 const char *pods)
{
	return hf_arena_printf(mend->arena, "%s of the node, and %s", pods,
			       facts->policy->spec.drain_evicts
				       ? "the fault is not grave enough to evict pods"
				       : "drain.mode of the policy evicts no pods");
}

/* Before the phase Draining the act takes the node only if its agent reports no work. */
static void see_work(const struct fleet_mend *mend, struct mend_facts *facts)
{
	const struct fleet_health *health = hf_fleet_find_health(mend->fleet, mend->node);

	if (mend->phase == HF_MEND_PENDING && lets_work_end(mend, facts, health) && health->works)
		facts->at_work = hf_arena_printf(
			mend->arena, "%s; 'holdfast mend %s --rung reboot' does not wait for them",
			print_at_work(mend, facts, "pods have devices"), mend->node);
}

static void note_work(const struct fleet_mend *mend, const struct hf_device_health *report,
		      const struct hf_json *pod, struct mend_facts *facts)
{
	const struct fleet_health *health = hf_fleet_find_health(mend->fleet, mend->node);
	const char *uid = hf_str_or(hf_json_path_str(pod, "metadata", "uid", NULL), "");

	if (mend->phase != HF_MEND_PENDING && lets_work_end(mend, facts, health) &&
	    (hf_asks_for_devices(hf_json_get(pod, "spec")) ||
	     (report != NULL && holds_target(mend, report, uid))))
		facts->at_work = print_at_work(
			mend, facts,
			hf_arena_printf(mend->arena, "pod %s has devices", print_pod(mend, pod)));
}

static void add_left(const struct fleet_mend *mend, const struct hf_device_health *health,
		     struct mend_facts *facts, size_t at)
{
	const struct hf_json *pod = hf_doc_json(mend->pods[at]);
	struct mend_left left = judge_left(mend, facts, at);
	const char *why = find_why_left(mend, &left);

	/* A pod that may not leave is named before others. */
	if (facts->view.pods_left == 0 || left.stays != NULL ||
	    (why != NULL && facts->view.pods_stay == 0))
		facts->view.pod_left = hf_arena_printf(mend->arena, "%s%s%s", print_pod(mend, pod),
						       why == NULL ? "" : ": ", hf_str_or(why, ""));
	note_work(mend, health, pod, facts);
	facts->left[facts->view.pods_left++] = left;
	facts->view.pods_stay += left.stays != NULL || left.unselected;
	facts->view.pods_lost += hf_find_controller(pod) == NULL;
}

/* True if the agent's report is too old to say which devices the pod was given. Both times are of the node's clock. */
static bool is_unreported(const struct hf_device_health *health, const struct hf_json *pod)
{
	const char *started = hf_json_path_str(pod, "status", "startTime", NULL);
	hf_time at;

	if (hf_has_pod_ended(pod) || hf_is_pod_of_node(pod) ||
	    !hf_asks_for_devices(hf_json_get(pod, "spec")))
		return false;
	return health == NULL || health->observed_at == HF_TIME_NONE ||
	       hf_time_parse(hf_str_or(started, ""), &at, NULL) != 0 ||
	       health->observed_at <= hf_time_add(at, REPORT_LAG);
}

/* A reset needs to know who was given the device: the pods of other devices stay. */
static void see_unreported(const struct fleet_mend *mend, const struct hf_device_health *health,
			   const struct hf_json *pod, struct mend_facts *facts)
{
	if (mend->rung != HF_MEND_RESET_DEVICE || !mend->before_act || !is_unreported(health, pod))
		return;
	facts->view.pod_unreported = print_pod(mend, pod);
	/* A report from before the pod's start is not enough, so the agent is asked once more after the start. */
	facts->request =
		hf_arena_printf(mend->arena, "%s %s %s %lld", mend->name,
				hf_str_or(hf_json_path_str(pod, "metadata", "uid", NULL), "?"),
				hf_str_or(hf_json_path_str(pod, "status", "startTime", NULL), "?"),
				(long long)(REPORT_LAG / HF_SECOND));
}

/* The actor of another Remediation may still be at work, although its object is gone: a person can remove the finalizer.
 * An actor that has written the end of its act does nothing more. On a node that is lost no kubelet can confirm the end
 * of a pod. */
static void see_other_actor(const struct fleet_mend *mend, const struct hf_json *pod,
			    struct mend_facts *facts)
{
	const char *name = hf_str_or(hf_json_path_str(pod, "metadata", "name", NULL), "");
	const struct hf_cache_entry *entry;
	const struct mend_object *object;

	if (!hf_streq(hf_json_path_str(pod, "metadata", "namespace", NULL), HF_MEND_NAMESPACE) ||
	    !hf_str_has_prefix(name, HF_MEND_POD_PREFIX) || hf_has_pod_ended(pod))
		return;
	name += strlen(HF_MEND_POD_PREFIX);
	entry = hf_cache_get(mend->cache, NULL, name);
	object = entry == NULL ? NULL : entry->view;
	if (hf_streq(name, mend->name) ||
	    (object != NULL && object->readable && object->r.status.act.ended_at != HF_TIME_NONE) ||
	    (hf_is_leaving(pod) && !facts->view.node_ready))
		return;
	facts->other_actor = hf_arena_strdup(mend->arena, name);
}

void hf_fleet_mend_see_pods(const struct fleet_mend *mend, const struct hf_device_health *health,
			    struct mend_facts *facts)
{
	see_work(mend, facts);
	for (size_t i = 0; i < mend->pods_len; i++) {
		const struct hf_json *pod = hf_doc_json(mend->pods[i]);

		if (must_leave(mend, health, facts, pod))
			add_left(mend, health, facts, i);
		else if (mend->r.status.saved.labels.len > 0 && !hf_has_pod_ended(pod) &&
			 is_operand_pod(pod))
			facts->view.operands_left++;
		else
			see_unreported(mend, health, pod, facts);
		see_other_actor(mend, pod, facts);
	}
}
