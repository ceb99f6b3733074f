/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "base/strbuf.h"
#include "sim/nodes.h"

#include <stdio.h>
#include <string.h>

/*
 * Invariants of lost nodes: which pods the operator gives up, with what evidence, and when it uses
 * the name of a pod again. The evidence is what the world knows, not what the operator has seen.
 */

#define FORCE_AFTER (5 * HF_SECOND)   /* recovery.forceDeleteAfterSeconds */
#define REPLACE_DELAY (2 * HF_SECOND) /* recovery.replaceDelaySeconds */
/* the time of one renewal, and its way to the operator */
#define SIGN_OF_LIFE_SLACK (15 * HF_SECOND)
#define EVIDENCE_MAX (5 * HF_MINUTE) /* the age of the oldest cache, and a pause of the process */
/* the operator waits this long after the end of a fence (nodeLost.selfFence) */
#define FENCE_MARGIN (10 * HF_SECOND)
#define STORM_SEEN (10 * HF_SECOND)
/* the least calm after a storm, for a job with a short nodeLost.afterSeconds */
#define CALM_MIN (15 * HF_SECOND)
/* 40 s from the last renewal to Unknown, and 40 s of afterSeconds less one look */
#define LOST_MIN (75 * HF_SECOND)
#define AFTER (60 * HF_SECOND) /* default of nodeLost.afterSeconds */
/* an agent's report of this age counts; nodeLost.afterSeconds is 60 s */
#define AGENT_FRESH (40 * HF_SECOND)

bool sim_lists_lie(const struct sim *sim)
{
	return sim->mood.weight[SIM_LIST_PAST] > 0;
}

bool sim_sees_the_present(const struct sim *sim)
{
	const unsigned *weight = sim->mood.weight;

	return weight[SIM_WATCH_LATE] + weight[SIM_WATCH_LAG] + weight[SIM_WATCH_LOST] +
			       weight[SIM_WATCH_410] + weight[SIM_WATCH_5XX] +
			       weight[SIM_REPLY_LATE] + weight[SIM_LIST_LATE] ==
		       0 &&
	       sim->mood.per_hour[SIM_BY_LIFE] == 0 && !sim_lists_lie(sim);
}

static bool clocks_are_right(const struct sim *sim)
{
	return sim->mood.per_hour[SIM_BY_LIFE] == 0 || sim->mood.weight[SIM_CLOCK_SERVER] == 0;
}

static bool is_proven(const struct sim_node *node)
{
	return !node->exists || node->out_of_service;
}

/* True if the death of the node is proven now, or was proven a short time ago. When the node comes
 * back, a request may be under way and a cache minutes old. */
static bool was_proven(const struct sim *sim, const struct sim_node *node)
{
	return is_proven(node) ||
	       (node->proven_until > 0 && sim_now(sim) - node->proven_until < EVIDENCE_MAX);
}

/* True if it is proven that no process of the pod runs: the node is proven dead, or the time of the
 * pod's fence is over and its process had time to end. */
static bool was_stopped(const struct sim *sim, const struct sim_pod_truth *pod,
			const struct sim_node *node)
{
	if (was_proven(sim, node))
		return true;
	if (pod->fence == 0 || pod->alive)
		return false;
	return sim_node_alive(node) ? sim_now(sim) - node->alive_since < EVIDENCE_MAX
				    : sim_now(sim) - sim_node_renewed(node) >=
					      pod->fence * HF_SECOND + FENCE_MARGIN;
}

/* 15: a forced delete names UID and resourceVersion, its node is lost, and the pod's grace period
 * is over. */
static void check_forced_has_evidence(struct sim *sim, const struct hf_request *request,
				      struct hf_doc *pod, const struct sim_node *node, bool proven)
{
	const char *until =
		hf_json_path_str(hf_doc_json(pod), "metadata", "deletionTimestamp", NULL);
	hf_time at = HF_TIME_NONE;

	if (request->precondition_resource_version == NULL)
		sim_fail(sim, "15 evidence", "the forced delete of %s names no resourceVersion",
			 request->name);
	if (sim_node_alive(node) && sim_now(sim) - node->alive_since > EVIDENCE_MAX)
		sim_fail(sim, "15 evidence", "pod %s is deleted by force, but node %s is well",
			 request->name, node->name);
	/* The API server refuses a request that names another version than the stored one: the pod
	 * changed after the operator had read it. */
	if (!hf_streq(request->precondition_resource_version, hf_doc_resource_version(pod)))
		return;
	if (proven || until == NULL || hf_time_parse(until, &at, NULL) != 0 ||
	    !clocks_are_right(sim))
		return;
	if (hf_loop_wall(sim->loop) < at + FORCE_AFTER - HF_SECOND)
		sim_fail(sim, "15 evidence",
			 "pod %s is deleted by force, but its grace period lasts until %s",
			 request->name, until);
}

/* 15: with forceDelete Never no pod is deleted by force, and with Proven no pod of a node that may
 * live. */
static void check_forced_as_asked(struct sim *sim, const struct sim_pod_truth *pod, bool proven)
{
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	struct hf_doc *doc = job == NULL || job->gone ? NULL : sim_job_peek(sim, job->name);

	if (doc == NULL || !hf_streq(hf_doc_uid(doc), job->uid))
		return;
	HF_AUTO_JSON policy = sim_run_policy(doc);
	const char *mode = hf_json_path_str(policy, "recovery", "nodeLost", "forceDelete", NULL);

	if (hf_streq(mode, "Never") || (hf_streq(mode, "Proven") && !proven))
		sim_fail(sim, "15 evidence", "pod %s is deleted by force, but forceDelete is %s",
			 pod->name, mode);
}

struct crowd {
	int nodes, lost;
};

static void add_node(struct crowd *crowd, bool lost)
{
	crowd->nodes++;
	crowd->lost += lost;
}

static bool is_storm(const struct crowd *crowd)
{
	return crowd->lost > 2 && crowd->lost * 100 >= crowd->nodes * 55;
}

/* 16: during a storm no pod is deleted by force, unless the death of its node is proven. */
static void check_no_force_in_storm(struct sim *sim, const struct hf_request *request,
				    const struct sim_node *node, bool proven)
{
	struct crowd zone = {0}, cluster = {0};

	for (size_t i = 0; i < sim->nodes->n; i++) {
		const struct sim_node *other = &sim->nodes->nodes[i];
		bool lost = other->shown == SIM_SHOWN_UNKNOWN && !other->out_of_service &&
			    sim_now(sim) - other->shown_since >= STORM_SEEN;

		if (!other->exists)
			continue;
		add_node(&cluster, lost);
		if (other->zone == node->zone)
			add_node(&zone, lost);
	}
	if (!proven && sim_sees_the_present(sim) && (is_storm(&zone) || is_storm(&cluster)))
		sim_fail(sim, "16 storm",
			 "pod %s is deleted by force while %d of %d nodes of zone %d and %d of %d "
			 "nodes of the cluster are lost",
			 request->name, zone.lost, zone.nodes, node->zone, cluster.lost,
			 cluster.nodes);
}

void sim_check_weather(struct sim *sim)
{
	struct sim_nodes *nodes = sim->nodes;
	struct crowd crowds[SIM_ZONES_MAX + 1] = {0};

	for (size_t i = 0; i < nodes->n; i++) {
		const struct sim_node *node = &nodes->nodes[i];

		bool lost = node->shown == SIM_SHOWN_UNKNOWN && !node->out_of_service;

		if (!node->exists)
			continue;
		add_node(&crowds[node->zone], lost);
		add_node(&crowds[SIM_CLUSTER], lost);
	}
	for (int z = 0; z <= SIM_CLUSTER; z++) {
		bool storm = is_storm(&crowds[z]);

		if (nodes->storm[z] && !storm) {
			nodes->storm_end[z] = sim_now(sim);
			sim_tell(sim, "check: the storm of zone %d is over", z);
		}
		nodes->storm[z] = storm;
	}
}

/* Returns nodeLost.afterSeconds of the pod's job, but at least CALM_MIN. */
static hf_time calm_of(struct sim *sim, const struct sim_pod_truth *pod)
{
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	struct hf_doc *doc = job == NULL || job->gone ? NULL : sim_job_peek(sim, job->name);
	hf_time calm;

	if (doc == NULL || !hf_streq(hf_doc_uid(doc), job->uid))
		return CALM_MIN;
	HF_AUTO_JSON policy = sim_run_policy(doc);

	calm = HF_SECOND *
	       hf_json_i64(hf_json_path(policy, "recovery", "nodeLost", "afterSeconds", NULL),
			   AFTER / HF_SECOND);
	return calm < CALM_MIN ? CALM_MIN : calm;
}

/* True if the operator deletes the pod because its node is lost: the newest record of the ledger
 * says NodeLost and names the pod. */
static bool is_told_lost(struct sim *sim, const struct sim_pod_truth *pod)
{
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	struct hf_doc *doc = job == NULL || job->gone ? NULL : sim_job_peek(sim, job->name);
	const struct hf_json *last;

	/* All pods of a suspended job are deleted, lost or not. */
	if (doc == NULL || !hf_streq(hf_doc_uid(doc), job->uid) ||
	    hf_json_true(hf_json_path(hf_doc_json(doc), "spec", "runPolicy", "suspend", NULL),
			 false))
		return false;
	HF_AUTO_JSON status = sim_status(doc);

	/* The pods of a job that has ended are deleted too. */
	if (sim_terminal_of(status) != NULL)
		return false;
	last = hf_json_get(hf_json_get(status, "recovery"), "last");
	return hf_streq(hf_json_str(hf_json_get(last, "reason"), NULL), "NodeLost") &&
	       hf_streq(hf_json_str(hf_json_get(last, "pod"), NULL), pod->name);
}

/* Returns when the last storm of the zone or of the cluster ended, whichever was later; 0: there
 * was none. */
static hf_time find_storm_end(const struct sim_nodes *nodes, int zone)
{
	hf_time cluster = nodes->storm_end[SIM_CLUSTER];

	return nodes->storm_end[zone] > cluster ? nodes->storm_end[zone] : cluster;
}

/* 46: a node that comes back within afterSeconds of a storm's end loses no pod. So within that time
 * no pod is deleted by force, and no pod is deleted only because its node is lost. */
static void check_calm(struct sim *sim, const struct hf_request *request, struct hf_doc *pod)
{
	const struct sim_pod_truth *truth = sim_pod_truth(sim, hf_doc_uid(pod));
	const struct sim_node *node = sim_node_get(sim, truth->node);
	const char *phase = hf_json_path_str(hf_doc_json(pod), "status", "phase", NULL);
	bool forced = request->grace_seconds == 0;
	const struct sim_job_truth *job = sim_job_truth(sim, truth->job_uid);
	hf_time end = node == NULL ? 0 : find_storm_end(sim->nodes, node->zone);

	if (end == 0 || node->shown != SIM_SHOWN_UNKNOWN || !sim_sees_the_present(sim) ||
	    was_stopped(sim, truth, node) || sim_now(sim) - end >= calm_of(sim, truth))
		return;
	/* A gang restarts as a whole after any end, so its deletes are allowed. So are deletes of
	 * pods that have ended or are being deleted. */
	if (!forced && (job == NULL || job->scope_job || !is_told_lost(sim, truth) ||
			hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded") ||
			hf_json_path(hf_doc_json(pod), "metadata", "deletionTimestamp", NULL)))
		return;
	sim_fail(sim, "46 calm", "pod %s on node %s is %s %lld s after the end of a storm",
		 request->name, node->name, forced ? "forced" : "deleted",
		 (long long)((sim_now(sim) - end) / HF_SECOND));
}

void sim_check_forced(struct sim *sim, const struct hf_request *request)
{
	struct hf_doc *pod;
	struct sim_pod_truth *truth;
	const struct sim_node *node;
	bool proven;

	if (request->resource != &hf_pods || request->verb != HF_VERB_DELETE)
		return;
	pod = hf_memstore_peek(sim->memstore, &hf_pods, request->ns, request->name);
	if (pod == NULL || !hf_streq(hf_doc_uid(pod), request->precondition_uid))
		return;
	check_calm(sim, request, pod);
	if (request->grace_seconds != 0)
		return;
	truth = sim_pod_truth(sim, hf_doc_uid(pod));
	node = sim_node_get(sim, truth->node);
	if (node == NULL) {
		sim_fail(sim, "15 evidence",
			 "pod %s is deleted by force, but was never bound to a node",
			 request->name);
		return;
	}
	truth->forced = true;
	proven = was_stopped(sim, truth, node);
	sim_tell(sim, "check: the operator deletes %s on %s by force%s", request->name, node->name,
		 proven && !was_proven(sim, node) ? ", because its fence has ended it" : "");
	check_forced_has_evidence(sim, request, pod, node, proven);
	check_forced_as_asked(sim, truth, proven);
	if (truth->fence > 0)
		sim_check_stopped(sim, truth, request, pod);
	check_no_force_in_storm(sim, request, node, proven);
}

/* 17: a rank whose agent reports it is not given up because its kubelet is silent. */
static void check_training_is_a_sign_of_life(struct sim *sim, const struct sim_pod_truth *pod,
					     const struct sim_node *node)
{
	if (sim->mood.trains && pod->forced && pod->alive && node != NULL &&
	    !was_proven(sim, node) && sim_sees_the_present(sim) && sim->n_lives == 1 &&
	    sim_agent_spoke(node, AGENT_FRESH))
		sim_fail(sim, "17 sign of life",
			 "pod %s is given up, but runs on %s and its agent reports it", pod->name,
			 node->name);
}

/* 17 and 25: no running process of a node that is well again is given up. The kubelet has written
 * the pod's status since, so a delete that names the version before fails. */
void sim_check_given_up(struct sim *sim, const char *pod_uid)
{
	const struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	const struct sim_node *node = sim_node_get(sim, pod->node);

	if (pod->forced && node != NULL && pod->alive && sim_node_alive(node) &&
	    sim_now(sim) - node->alive_since > SIGN_OF_LIFE_SLACK)
		sim_fail(sim, "25 reachable is not forced",
			 "pod %s is given up, but runs on node %s, which is well", pod->name,
			 node->name);
	check_training_is_a_sign_of_life(sim, pod, node);
}

void sim_check_away(struct sim *sim, const char *pod_uid)
{
	sim_pod_truth(sim, pod_uid)->away = true;
}

void sim_check_sick(struct sim *sim, const char *pod_uid)
{
	sim_pod_truth(sim, pod_uid)->sick = true;
}

/* A failed device explains an end at most this long before the failure
 * (src/core/policy/devices.c). */
#define DEVICE_EXPLAINS (10 * HF_SECOND)

void sim_check_sick_late(struct sim *sim, const char *node)
{
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		struct sim_pod_truth *pod = value;

		/* The process may have ended while the object of the pod still exists. */
		if (hf_streq(pod->node, node) &&
		    ((pod->gone && sim_now(sim) - pod->gone_at <= DEVICE_EXPLAINS) ||
		     (pod->process_end > 0 && sim_now(sim) - pod->process_end <= DEVICE_EXPLAINS)))
			pod->sick = true;
	}
}

void sim_check_node_down(struct sim *sim, const char *node)
{
	const char *key;
	void *value;

	for (size_t it = 0;
	     !sim_sees_the_present(sim) && hf_map_next(sim->checks->pods, &it, &key, &value);) {
		struct sim_pod_truth *pod = value;

		if (pod->gone && hf_streq(pod->node, node) &&
		    sim_now(sim) - pod->gone_at < EVIDENCE_MAX)
			pod->away = true;
	}
}

void sim_check_lost(struct sim *sim, const char *name)
{
	const struct sim_node *node = sim_node_get(sim, name);
	const char *key;
	void *value;

	if (node == NULL || (!is_proven(node) &&
			     (sim_node_alive(node) || sim_now(sim) - node->dead_since < LOST_MIN)))
		return;
	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		struct sim_pod_truth *pod = value;

		/* The operator still sees a pod that vanished unseen, so the operator takes it for
		 * lost with the node. */
		if (hf_streq(pod->node, name) &&
		    (!pod->gone || pod->unseen || pod->gone_at >= node->dead_since))
			pod->lost = true;
	}
}

/* True if a late watch may show this node as lost although it is well. A missing Node object and an
 * out-of-service taint have no time. Condition Unknown has one, which means nothing where the
 * server's clock was set. */
static bool may_show_lost(const struct sim *sim, const struct sim_node *node)
{
	if (sim_sees_the_present(sim) || node == NULL)
		return false;
	return was_proven(sim, node) ||
	       (sim->dice.seen[SIM_CLOCK_SERVER] > 0 && node->shown_since > 0 &&
		sim_now(sim) - node->shown_since < EVIDENCE_MAX);
}

void sim_check_bound(struct sim *sim, const char *pod_uid, const char *node)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);

	snprintf(pod->node, sizeof(pod->node), "%s", node);
	pod->away = pod->away || may_show_lost(sim, sim_node_get(sim, node));
}

void sim_check_gone(struct sim *sim, struct sim_pod_truth *pod)
{
	const struct sim_node *node = sim_node_get(sim, pod->node);

	pod->gone_at = sim_now(sim);
	pod->tainted = node != NULL && (!node->exists || node->out_of_service || node->drained ||
					node->unreachable_execute);
}

/* 18: the name of a pod that went from a tainted node is not used again within
 * replaceDelaySeconds, also by the next job of this name. */
void sim_check_replace_delay(struct sim *sim, const struct sim_pod_truth *pod)
{
	const char *key;
	void *value;

	/* A late watch may tell of the pod's end after the taint is gone, so the operator cannot
	 * know of the taint. */
	if (sim->mood.per_hour[SIM_BY_NODE] == 0 || !sim_sees_the_present(sim))
		return;
	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *other = value;

		if (other->gone && other->tainted && hf_streq(other->name, pod->name) &&
		    sim_now(sim) - other->gone_at < REPLACE_DELAY)
			sim_fail(sim, "18 replace delay",
				 "pod %s is created %lld ms after its predecessor on tainted node "
				 "%s was gone",
				 pod->name, (long long)((sim_now(sim) - other->gone_at) / HF_MS),
				 other->node);
	}
}

/* 19: with restartScope Job no pod of a generation is created while a pod of an older generation
 * exists. */
void sim_check_barrier(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod)
{
	const char *key;
	void *value;

	for (size_t it = 0; job->scope_job && hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *other = value;

		if (!other->gone && other->generation < pod->generation &&
		    hf_streq(other->job_uid, pod->job_uid) && !sim_may_not_know_of(sim, other))
			sim_fail(sim, "19 barrier",
				 "pod %s of generation %lld is created while %s of generation %lld "
				 "exists",
				 pod->name, (long long)pod->generation, other->name,
				 (long long)other->generation);
	}
}

/* 18, the reason for the delay: the timer of a taint, set for a pod, never deletes the pod that
 * replaces it. */
void sim_check_stray(struct sim *sim, const char *name)
{
	struct hf_doc *doc = hf_memstore_peek(sim->memstore, &hf_pods, "default", name);
	const struct sim_pod_truth *pod = sim_pod_truth(sim, hf_doc_uid(doc));

	if (sim_sees_the_present(sim) && sim->n_lives == 1)
		sim_fail(sim, "18 taint race",
			 "pod %s on %s is evicted by a timer for a taint of another node", name,
			 pod->node);
}

static bool names_node(struct hf_doc *pod, const char *node)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)64 << 10);
	char quoted[32];

	hf_json_write(hf_json_path(hf_doc_json(pod), "spec", "affinity", "nodeAffinity", NULL),
		      HF_JSON_COMPACT, &text);
	snprintf(quoted, sizeof(quoted), "\"%s\"", node);
	return strstr(hf_str_or(text.data, ""), quoted) != NULL;
}

static void check_avoids(struct sim *sim, const struct sim_pod_truth *pod, struct hf_doc *object,
			 const struct hf_json *record)
{
	const char *node = hf_json_str(hf_json_get(record, "node"), NULL);

	if (node != NULL &&
	    hf_streq(hf_json_str(hf_json_get(record, "reason"), NULL), "NodeLost") &&
	    !names_node(object, node))
		sim_fail(sim, "20 avoided nodes", "pod %s does not avoid node %s, which was lost",
			 pod->name, node);
}

static bool asks_for_a_device(const struct hf_json *pod)
{
	const struct hf_json *container =
		hf_json_item(hf_json_path(pod, "spec", "containers", NULL), 0);

	return hf_json_path(container, "resources", "limits", "example.com/gpu", NULL) != NULL;
}

/* 20: a replacement that needs a device avoids all nodes with a device that an agent calls
 * broken. */
static void check_avoids_sick(struct sim *sim, const struct sim_pod_truth *pod,
			      struct hf_doc *object)
{
	struct hf_doc *stored = sim_job_peek(sim, sim_job_truth(sim, pod->job_uid)->name);
	HF_AUTO_JSON policy = sim_run_policy(stored);

	if ((pod->generation <= 1 && pod->attempt == 0) || sim->mood.weight[SIM_EDITED] > 0 ||
	    !asks_for_a_device(hf_doc_json(object)) ||
	    !hf_json_true(hf_json_path(policy, "recovery", "device", "avoid", NULL), true))
		return;
	for (size_t i = 0; i < sim->nodes->n; i++) {
		const struct sim_node *node = &sim->nodes->nodes[i];

		if (sim_device_is_told_sick(node) && !names_node(object, node->name))
			sim_fail(sim, "20 avoided nodes",
				 "pod %s does not avoid node %s, which has a broken device",
				 pod->name, node->name);
	}
}

/* 20: a pod that is created after the loss of a node avoids this node. Where this is mandatory, the
 * world's scheduler obeys. */
void sim_check_avoids(struct sim *sim, const struct sim_pod_truth *pod, struct hf_doc *object,
		      const struct hf_json *status)
{
	const struct hf_json *ledger = hf_json_get(status, "recovery");
	const struct hf_json *history = hf_json_get(ledger, "history");

	if (!sim_sees_the_present(sim) || sim->n_lives > 1)
		return;
	check_avoids_sick(sim, pod, object);
	check_avoids(sim, pod, object, hf_json_get(ledger, "last"));
	for (size_t i = 0; i < hf_json_len(history); i++)
		check_avoids(sim, pod, object, hf_json_item(history, i));
}
