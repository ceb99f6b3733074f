/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/fleet_internal.h"

#include "api/condition.h"
#include "api/lifetime.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Evicts pods from quarantined nodes, one at a time.
 * Input: a round's view of a policy. Output: one eviction, events and the wait before the next try.
 * Before each eviction the DeviceHealth, the Node and the pod are read live: the fault may have
 * been repaired, the pod may have ended, or another pod may have its name. A pod that a disruption
 * budget protects is tried again after a growing wait.
 * With drain.latePods, the mark of a Node whose other devices stay in use counts each pod that came after the
 * quarantine, before its eviction. So no death of the operator makes the evictions more than the limit.
 */

#define RETRY (5 * HF_SECOND)
/* Memory for reading the mark of one Node. */
#define MARK_ARENA_MAX ((size_t)4 << 20)

enum { LOOK_HEALTH, LOOK_NODE, LOOK_POD, COUNT, EVICT };

/* --- choosing the next pod -------------------------------------------------------------------- */

static struct hf_health_drain drain_of(const struct hf_fleet *fleet, const struct fleet_seen *seen,
				       size_t i)
{
	const struct hf_health_policy_spec *spec = &seen->policy->spec;
	const struct hf_health_node *node = &seen->nodes[i];

	return (struct hf_health_drain){
		.evicts = hf_streq(spec->mode, "remediate") && spec->drain_evicts,
		.evicts_at = seen->policy->evicts_at,
		.paused = hf_fleet_is_halted(seen) || node->excluded,
		.grace = spec->drain_grace,
		.timeout = spec->drain_timeout,
		.now = seen->now,
		.quarantined_at = node->owned ? node->owned_at : HF_TIME_NONE,
		.stale = hf_fleet_is_stale(seen, i),
		/* Pods that came back count only on a node that Holdfast quarantined. */
		.came_back = node->owned ? hf_fleet_late_pods(fleet, node->name) : 0,
	};
}

static struct hf_health_pod pod_of(struct hf_fleet *fleet, const struct fleet_holder *holder)
{
	const struct fleet_refusal *refusal = hf_map_get(fleet->refusals, holder->uid);
	const char *job = fleet->env.find_job(fleet->env.arg, holder->ns, holder->pod, holder->uid);

	return (struct hf_health_pod){
		.fatal = holder->fatal,
		/* The selector of pods and the owner are not checked here, but later on the pod as
		 * read live. */
		.selected = true,
		/* Without a UID the agent's report does not say which pod it means, so the pod
		 * counts as ended and is not evicted. */
		.ended = hf_str_is_empty(holder->uid),
		.restarting = fleet->env.is_restarting(fleet->env.arg, job),
		.not_before = refusal == NULL ? HF_TIME_NONE : refusal->not_before,
	};
}

/* --- refusals --------------------------------------------------------------------------------- */

static void leave_alone(struct hf_fleet *fleet, hf_time wait, bool grows)
{
	hf_fleet_refuse(fleet, fleet->evict_uid, wait, grows);
}

static void tell_refusal(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	struct fleet_refusal *refusal = hf_map_get(fleet->refusals, fleet->evict_uid);
	char message[1024];

	hf_fleet_note_refused(fleet, fleet->evict_uid, reply->message);
	if (refusal == NULL || refusal->told)
		return;
	refusal->told = true;
	snprintf(message, sizeof(message),
		 "pod %s/%s holds a failed device and may not be evicted "
		 "yet: %s",
		 fleet->evict_ns, fleet->evict_pod, reply->message);
	hf_fleet_event_node(fleet, fleet->evict_node, true, "EvictionRefused", message);
}

/* --- one eviction ----------------------------------------------------------------------------- */

static void on_reply(void *arg, const struct hf_reply *reply);

static void send_request(struct hf_fleet *fleet, struct hf_request *request, int step)
{
	request->timeout = fleet->env.request_timeout;
	fleet->evict_step = step;
	fleet->evicting = hf_store_request(fleet->env.store, request, on_reply, fleet);
}

static void look_at(struct hf_fleet *fleet, int step)
{
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = step == LOOK_HEALTH ? &hf_devicehealths
						 : step == LOOK_NODE ? &hf_nodes
								     : &hf_pods,
				     .ns = step == LOOK_POD ? fleet->evict_ns : NULL,
				     .name = step == LOOK_POD ? fleet->evict_pod
							      : fleet->evict_node};

	send_request(fleet, &request, step);
}

static void end_eviction(struct hf_fleet *fleet)
{
	hf_fleet_look_soon(fleet, 0);
}

static bool has_ended(const struct hf_fleet *fleet, const struct hf_json *pod)
{
	return !hf_streq(hf_json_path_str(pod, "metadata", "uid", NULL), fleet->evict_uid) ||
	       !hf_streq(hf_json_path_str(pod, "spec", "nodeName", NULL), fleet->evict_node) ||
	       hf_is_leaving(pod) || hf_has_pod_ended(pod);
}

/* When the pod was bound to its node. It may have waited for devices long before. If the pod was created with a node, a
 * kubelet writes the condition, and its clock may be wrong. */
static hf_time came_at(const struct hf_json *pod, hf_time now)
{
	hf_time created = hf_created_at(pod), bound;
	const char *text = hf_json_path_str(hf_find_condition(pod, "PodScheduled"),
					    "lastTransitionTime", NULL);

	if (!hf_condition_is_true(pod, "PodScheduled") ||
	    hf_time_parse(hf_str_or(text, ""), &bound, NULL) != 0)
		return created;
	return bound > created && bound <= now ? bound : created;
}

/* Decides with what was read live. */
static enum hf_health_drain_why decide_eviction(struct hf_fleet *fleet, const struct hf_json *pod,
						hf_time *ret_wake)
{
	struct fleet_policy *policy = hf_fleet_find_policy(fleet, fleet->evict_policy);
	const struct hf_cache_entry *entry =
		hf_cache_get(fleet->policies_cache, NULL, fleet->evict_policy);
	HF_AUTO_ARENA arena = hf_arena_create(HF_FLEET_ARENA_MAX);
	struct fleet_seen seen;

	if (policy == NULL || entry == NULL)
		return HF_HEALTH_DRAIN_NOT_OURS;
	hf_fleet_see(fleet, policy, entry->doc, arena, &seen);
	for (size_t i = 0; i < seen.len; i++) {
		const struct fleet_health *health = seen.items[i].health;

		for (size_t h = 0; hf_streq(seen.items[i].name, fleet->evict_node) &&
				   health != NULL && h < health->holders_len;
		     h++) {
			struct hf_health_drain drain = drain_of(fleet, &seen, i);
			struct hf_health_pod about = pod_of(fleet, &health->holders[h]);

			if (!hf_streq(health->holders[h].uid, fleet->evict_uid))
				continue;
			about.daemon = hf_is_pod_of_node(pod);
			about.ended = has_ended(fleet, pod);
			about.came_at = came_at(pod, drain.now);
			fleet->evict_late = about.came_at > drain.quarantined_at;
			about.selected = !policy->spec.has_pod_selector ||
					 hf_selector_match_labels(
						 policy->pods,
						 hf_json_path(pod, "metadata", "labels", NULL));
			return hf_health_drain(&drain, &about, ret_wake);
		}
	}
	return HF_HEALTH_DRAIN_ENDS;
}

/* Waits longer before each further try to evict this pod: a pod may hang in its termination for
 * days, and the owner of a pod may never change. */
static void postpone_pod(struct hf_fleet *fleet, enum hf_health_drain_why why, hf_time wake)
{
	hf_time now = hf_fleet_now(fleet);
	bool stays = why == HF_HEALTH_DRAIN_DAEMON || why == HF_HEALTH_DRAIN_UNSELECTED;
	struct fleet_refusal *refusal;

	leave_alone(fleet,
		    why == HF_HEALTH_DRAIN_ENDS                  ? 0
		    : why == HF_HEALTH_DRAIN_GRACE && wake > now ? wake - now
								 : HF_MINUTE,
		    stays || why == HF_HEALTH_DRAIN_ENDS);
	refusal = hf_map_get(fleet->refusals, fleet->evict_uid);
	if (refusal != NULL)
		refusal->stays = stays;
}

static void send_eviction(struct hf_fleet *fleet)
{
	HF_AUTO_DOC body = hf_eviction(fleet->evict_ns, fleet->evict_pod, fleet->evict_uid);
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = &hf_pods,
				     .ns = fleet->evict_ns,
				     .name = fleet->evict_pod,
				     .subresource = "eviction",
				     .body = body};

	send_request(fleet, &request, EVICT);
}

/* The mark of the Node as read live. Returns false if the eviction of this pod is not counted in it. */
static bool read_counting_mark(const struct hf_fleet *fleet, const struct fleet_policy *policy,
			       struct hf_arena *arena, struct hf_quarantine_mark *ret_mark)
{
	const struct fleet_refusal *refusal = hf_map_get(fleet->refusals, fleet->evict_uid);
	struct hf_node_marks marks;

	if (!fleet->evict_late || policy == NULL || policy->spec.late_pods == 0 ||
	    !policy->spec.quarantine_devices)
		return false;
	hf_node_marks_read(fleet->evict_on, arena, &marks);
	return hf_quarantine_mark_read(marks.quarantine, arena, ret_mark) && ret_mark->devices &&
	       !hf_streq(ret_mark->late_pod, fleet->evict_uid) &&
	       (refusal == NULL || !refusal->counted);
}

static void count_pod(struct hf_fleet *fleet, struct hf_quarantine_mark *mark)
{
	HF_AUTO_DOC body = NULL;
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_nodes,
				     .name = fleet->evict_node,
				     .patch_type = HF_PATCH_MERGE};

	mark->late++;
	mark->late_pod = fleet->evict_uid;
	body = hf_node_mark_patch(fleet->evict_on, mark);
	request.body = body;
	send_request(fleet, &request, COUNT);
}

static void take_counted(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	struct fleet_refusal *refusal;

	if (reply->code != 0) {
		if (reply->code != HF_E_CONFLICT)
			hf_fleet_log_problem(fleet, "evictions", reply->code, reply->message);
		leave_alone(fleet, RETRY, reply->code != HF_E_CONFLICT);
		end_eviction(fleet);
		return;
	}
	hf_cache_put_reply(fleet->nodes, reply->object);
	leave_alone(fleet, 0, false);
	refusal = hf_map_get(fleet->refusals, fleet->evict_uid);
	if (refusal != NULL)
		refusal->counted = true;
	send_eviction(fleet);
}

/* No pod can be given a failed device of the node. */
static bool are_devices_out(const struct hf_fleet *fleet)
{
	const struct fleet_health *health = hf_fleet_find_health(fleet, fleet->evict_node);

	return health != NULL && health->told;
}

static void evict_pod(struct hf_fleet *fleet, const struct hf_json *pod)
{
	const struct fleet_policy *policy = hf_fleet_find_policy(fleet, fleet->evict_policy);
	hf_time wake = HF_TIME_NEVER;
	enum hf_health_drain_why why = decide_eviction(fleet, pod, &wake);
	HF_AUTO_ARENA arena = hf_arena_create(MARK_ARENA_MAX);
	struct hf_quarantine_mark mark;

	if (why != HF_HEALTH_DRAIN_EVICT) {
		postpone_pod(fleet, why, wake);
		end_eviction(fleet);
		return;
	}
	snprintf(fleet->evict_claim, sizeof(fleet->evict_claim), "%s",
		 hf_str_or(hf_find_shared_claim(hf_json_get(pod, "spec")), ""));
	if (!read_counting_mark(fleet, policy, arena, &mark)) {
		send_eviction(fleet);
	} else if (mark.late < policy->spec.late_pods || are_devices_out(fleet)) {
		count_pod(fleet, &mark);
	} else {
		/* The limit is reached: the node gets the taint first. */
		leave_alone(fleet, RETRY, false);
		end_eviction(fleet);
	}
}

static void take_eviction_reply(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	char message[1024];

	if (reply->code == HF_E_TOO_MANY) {
		hf_fleet_count_eviction(fleet, "refused");
		leave_alone(fleet, reply->retry_after, true);
		tell_refusal(fleet, reply);
		end_eviction(fleet);
		return;
	}
	/* The pod is gone, or another pod has its name: nothing is left to evict. */
	if (reply->code != 0 && reply->code != HF_E_NOT_FOUND && reply->code != HF_E_CONFLICT) {
		hf_fleet_count_eviction(fleet, "failed");
		hf_fleet_log_problem(fleet, "evictions", reply->code, reply->message);
		leave_alone(fleet, reply->retry_after, true);
		if (!hf_fleet_is_server_failure(reply->code))
			tell_refusal(fleet, reply);
		end_eviction(fleet);
		return;
	}
	/* The pod holds its device until the agent reports its termination: no second eviction
	 * within a minute. */
	leave_alone(fleet, HF_MINUTE, false);
	if (reply->code == 0) {
		if (fleet->evict_late)
			hf_fleet_count_late(fleet, fleet->evict_node);
		hf_fleet_count_eviction(fleet, "done");
		snprintf(message, sizeof(message),
			 "pod %s/%s is evicted: it holds a failed device (policy %s)%s%s%s",
			 fleet->evict_ns, fleet->evict_pod, fleet->evict_policy,
			 *fleet->evict_claim != '\0' ? "; ResourceClaim " : "", fleet->evict_claim,
			 *fleet->evict_claim != '\0'
				 ? " keeps the device until all pods that use the claim are gone"
				 : "");
		hf_fleet_event_node(fleet, fleet->evict_node, false, "PodEvicted", message);
	}
	end_eviction(fleet);
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_fleet *fleet = arg;

	fleet->evicting = NULL;
	hf_fleet_note_reply(fleet, reply);
	if (fleet->nodes == NULL)
		return;
	if (fleet->evict_step == EVICT) {
		take_eviction_reply(fleet, reply);
		return;
	}
	if (fleet->evict_step == COUNT) {
		take_counted(fleet, reply);
		return;
	}
	if (reply->code != 0) {
		if (reply->code != HF_E_NOT_FOUND)
			hf_fleet_log_problem(fleet, "evictions", reply->code, reply->message);
		leave_alone(fleet, RETRY, false);
		end_eviction(fleet);
		return;
	}
	if (fleet->evict_step == LOOK_HEALTH) {
		hf_cache_put_live(fleet->health, reply->object);
		look_at(fleet, LOOK_NODE);
	} else if (fleet->evict_step == LOOK_NODE) {
		hf_cache_put_live(fleet->nodes, reply->object);
		hf_doc_unref(fleet->evict_on);
		fleet->evict_on = hf_doc_ref(reply->object);
		look_at(fleet, LOOK_POD);
	} else {
		evict_pod(fleet, hf_doc_json(reply->object));
	}
}

/* Recorded once for each quarantine. */
static void tell_stuck(struct hf_fleet *fleet, const struct fleet_seen *seen, size_t i,
		       const struct hf_health_drain *drain)
{
	const struct fleet_health *health = seen->items[i].health;
	char since[HF_TIME_TEXT_MAX], message[256];
	int32_t pods = 0;

	for (size_t h = 0; health != NULL && h < health->holders_len; h++) {
		const struct fleet_refusal *refusal =
			hf_map_get(fleet->refusals, health->holders[h].uid);

		pods += health->holders[h].fatal && (refusal == NULL || !refusal->stays);
	}
	if (pods == 0 || !hf_health_drain_is_stuck(drain) ||
	    !hf_fleet_is_news(seen->policy, "drain", seen->items[i].name, drain->quarantined_at))
		return;
	hf_time_format(drain->quarantined_at, since);
	snprintf(
		message, sizeof(message),
		"%d pods still hold failed devices after the quarantine at %s; Holdfast deletes no pod by force: delete them by hand",
		pods, since);
	hf_fleet_event_node(fleet, seen->items[i].name, true, "DrainStuck", message);
}

void hf_fleet_drain(struct hf_fleet *fleet, const struct fleet_seen *seen, hf_time *ret_wake)
{
	for (size_t i = 0; i < seen->len && fleet->evicting == NULL; i++) {
		const struct fleet_health *health = seen->items[i].health;
		struct hf_health_drain drain = drain_of(fleet, seen, i);

		tell_stuck(fleet, seen, i, &drain);
		for (size_t h = 0; health != NULL && h < health->holders_len; h++) {
			const struct fleet_holder *holder = &health->holders[h];
			struct hf_health_pod pod = pod_of(fleet, holder);

			if (hf_health_drain(&drain, &pod, ret_wake) != HF_HEALTH_DRAIN_EVICT)
				continue;
			snprintf(fleet->evict_node, sizeof(fleet->evict_node), "%s",
				 seen->items[i].name);
			snprintf(fleet->evict_ns, sizeof(fleet->evict_ns), "%s", holder->ns);
			snprintf(fleet->evict_pod, sizeof(fleet->evict_pod), "%s", holder->pod);
			snprintf(fleet->evict_uid, sizeof(fleet->evict_uid), "%s", holder->uid);
			snprintf(fleet->evict_policy, sizeof(fleet->evict_policy), "%s",
				 seen->policy->name);
			look_at(fleet, LOOK_HEALTH);
			return;
		}
	}
}
