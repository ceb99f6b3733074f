/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "sim/nodes.h"

#include <stdio.h>
#include <string.h>

/*
 * Invariants of time and of the number of requests. They hold for a cluster that works. So they are
 * checked only in sunny worlds, where nothing goes wrong between the operator and the store, with
 * or without trouble of nodes.
 */

#define SETTLE_DEFAULT (20 * HF_SECOND)
#define SLACK (2 * HF_SECOND) /* the promise is one second, and stored times are whole seconds */
/* Two ends within this time may reach the operator together, and one cause may decide for both. */
#define TOGETHER (2 * HF_SECOND)
/* 50 s until Unknown and 5 s for the controller's look; then 60 s of silence, 30 s of grace, 5 s
 * until force, and 15 s for two looks at the Lease. */
#define LOST_AFTER ((50 + 5 + 60 + 30 + 5 + 15) * HF_SECOND)

static bool works_well(const struct sim *sim)
{
	return sim->mood.sunny && sim->n_lives == 1 && sim->script == NULL;
}

/* --- 27: a deadline fires within a second of active time ---------------------------------------- */

void sim_check_deadline(struct sim *sim, const struct sim_job_truth *job,
			const struct hf_json *spec, const struct hf_json *status)
{
	int64_t seconds = hf_json_i64(
		hf_json_path(spec, "spec", "runPolicy", "activeDeadlineSeconds", NULL), -1);
	const char *start = hf_json_str(hf_json_get(status, "startTime"), NULL);
	const char *end = hf_json_str(hf_json_get(status, "completionTime"), NULL);
	hf_time began, ended = hf_loop_wall(sim->loop);

	if (seconds < 0 || start == NULL || job->touched || job->not_ours || !works_well(sim) ||
	    hf_time_parse(start, &began, NULL) != 0)
		return;
	if (end != NULL && hf_time_parse(end, &ended, NULL) != 0)
		return;
	if (ended - began > seconds * HF_SECOND + SLACK)
		sim_fail(sim, "27 deadline",
			 "job %s has run for %lld s, and its deadline is %lld s", job->name,
			 (long long)((ended - began) / HF_SECOND), (long long)seconds);
}

/* --- 49: a termination is counted when it is seen, not when the container starts again ----------- */

void sim_check_starts_again(struct sim *sim, const char *pod_uid)
{
	const struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	struct hf_doc *doc = job == NULL ? NULL : sim_job_peek(sim, job->name);
	HF_AUTO_JSON status = doc == NULL ? NULL : sim_status(doc);

	if (!works_well(sim) || status == NULL || job->touched || job->not_ours || pod->marked ||
	    !hf_streq(hf_doc_uid(doc), job->uid) || sim_terminal_of(status) != NULL ||
	    hf_json_path(status, "recovery", "verdict", NULL) != NULL ||
	    sim_now(sim) - pod->ended_in_place_at < SLACK)
		return;
	if (sim_sparse_get(sim_ledger_text(status, sim_role_names[pod->role], "seen"), pod->index) <
	    pod->restarts - pod->init_ends)
		sim_fail(sim, "49 counted when seen",
			 "the container of %s starts again %lld ms after a termination that the "
			 "ledger does not count",
			 pod->name, (long long)((sim_now(sim) - pod->ended_in_place_at) / HF_MS));
}

/* --- 22: an end that is no case for a retry ends the job, and nothing is made again ------------- */

static int64_t exit_code(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);

	return hf_json_i64(
		hf_json_path(hf_json_item(list, 0), "state", "terminated", "exitCode", NULL), -1);
}

/* True if this exit code ends the job. Under Never every code but 0 does, unless the job may go on
 * with fewer ranks. Under ExitCode the codes from 1 to 127 do. */
static bool policy_ends_job(struct sim *sim, struct hf_doc *job, enum sim_role role, int64_t code)
{
	const char *policy = hf_json_path_str(sim_replicas_of(sim, job), sim_role_names[role],
					      "restartPolicy", NULL);
	bool may_shrink = sim_kind_of(sim, hf_doc_name(job))->resource == &hf_tfjobs ||
			  hf_json_path(hf_doc_json(job), "spec", "elasticPolicy", NULL) != NULL;

	return (hf_streq(policy, "Never") && code >= 1 && !may_shrink) ||
	       (hf_streq(policy, "ExitCode") && code >= 1 && code <= 127);
}

static hf_time settle_of(struct hf_doc *job)
{
	HF_AUTO_JSON policy = sim_run_policy(job);

	return HF_SECOND * hf_json_i64(hf_json_path(policy, "recovery", "settleSeconds", NULL),
				       SETTLE_DEFAULT / HF_SECOND);
}

static bool has_another_cause(const struct sim_pod_truth *pod)
{
	return pod->disrupted || pod->refused || pod->away || pod->oom || pod->gone || pod->known ||
	       pod->sick;
}

/* True if this end must end its job. Checked only without trouble of nodes and devices, for a job
 * that people have not touched. */
static bool ends_its_job(struct sim *sim, const struct sim_job_truth *job,
			 const struct sim_pod_truth *pod, struct hf_doc *object)
{
	struct hf_doc *stored = sim_job_peek(sim, job->name);
	int64_t code = exit_code(hf_doc_json(object));

	if (!works_well(sim) || sim->mood.per_hour[SIM_BY_NODE] > 0 || sim->mood.plugins ||
	    job->touched || job->not_ours || job->has_rules || !pod->failed ||
	    has_another_cause(pod))
		return false;
	return stored != NULL && hf_streq(hf_doc_uid(stored), job->uid) &&
	       policy_ends_job(sim, stored, pod->role, code);
}

void sim_check_ended(struct sim *sim, struct sim_job_truth *job, const struct sim_pod_truth *pod,
		     struct hf_doc *object)
{
	bool alone = job->ends == 1;

	/* If a second end comes with the first, or evidence of another cause, this may decide, and
	 * the job need not fail. */
	if ((!alone && sim_now(sim) - job->must_fail_since < TOGETHER) || has_another_cause(pod))
		job->must_fail_by = 0;
	if (!alone || !ends_its_job(sim, job, pod, object))
		return;
	job->must_fail_since = sim_now(sim);
	job->must_fail_by = sim_now(sim) + settle_of(sim_job_peek(sim, job->name)) + SLACK;
}

static void check_must_fail(struct sim *sim, const struct sim_job_truth *job)
{
	if (job->must_fail_by > 0 && job->terminal == NULL && !job->touched && !job->gone &&
	    sim_now(sim) > job->must_fail_by)
		sim_fail(sim, "22 exit code", "job %s goes on after an exit code that must end it",
			 job->name);
}

void sim_check_not_made_again(struct sim *sim, const struct sim_job_truth *job,
			      const struct sim_pod_truth *pod)
{
	if (job->must_fail_by > 0 && !job->touched && pod->attempt + pod->generation > 1 &&
	    sim_now(sim) - job->must_fail_since > TOGETHER)
		sim_fail(sim, "22 exit code",
			 "pod %s is created again after an exit code that must end job %s",
			 pod->name, job->name);
}

/* --- 34: what a lost node holds up is mended, or a condition says why not ------------------------ */

static void check_pod_of_lost(struct sim *sim, const struct sim_node *node,
			      const struct sim_pod_truth *pod)
{
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	struct hf_doc *stored = job == NULL || job->gone ? NULL : sim_job_peek(sim, job->name);

	if (stored == NULL || job->not_ours || job->terminal != NULL || job->touched ||
	    hf_json_path(hf_doc_json(stored), "metadata", "deletionTimestamp", NULL) != NULL)
		return;
	HF_AUTO_JSON status = sim_status(stored);

	if (!sim_condition_is(status, "holdfast.dev/NodeUnreachable"))
		sim_fail(sim, "34 liveness",
			 "pod %s is on node %s, which has been silent for %lld s, but job %s has "
			 "no condition NodeUnreachable",
			 pod->name, node->name,
			 (long long)((sim_now(sim) - node->dead_since) / HF_SECOND), job->name);
}

static void check_lost(struct sim *sim, const struct sim_node *node)
{
	const char *key;
	void *value;

	/* If kube-controller-manager is away, no node becomes Unknown. */
	if (!works_well(sim) || sim->mood.weight[SIM_KCM_RESTART] > 0 || sim_node_alive(node) ||
	    node->shown != SIM_SHOWN_UNKNOWN || sim_now(sim) - node->dead_since < LOST_AFTER)
		return;
	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;
		bool trained = pod->held_at > 0 && pod->held_code == 0;

		/* A rank that has trained holds nothing up: if its node is lost, the rank has
		 * succeeded. */
		if (!pod->gone && !pod->failed && !pod->succeeded && !trained &&
		    hf_streq(pod->node, node->name))
			check_pod_of_lost(sim, node, pod);
	}
}

/* --- 34, of nodes that are avoided: a pod without another node is reported --------------------- */

/* Within this time the operator deletes a pod that is to be created again, or writes the
 * condition. */
#define TOLD_WITHIN (5 * HF_SECOND)

static bool is_about_to_change(struct sim *sim, const struct sim_job_truth *job,
			       const struct sim_pod_truth *pod, struct hf_doc *stored)
{
	HF_AUTO_JSON status = sim_status(stored);
	hf_time since =
		job->touched_at > pod->unplaced_since ? job->touched_at : pod->unplaced_since;

	return sim_now(sim) - since < TOLD_WITHIN || pod->ended || job->terminal != NULL ||
	       hf_json_path(hf_doc_json(stored), "metadata", "deletionTimestamp", NULL) != NULL ||
	       hf_json_true(hf_json_path(hf_doc_json(stored), "spec", "runPolicy", "suspend", NULL),
			    false) ||
	       hf_json_path(status, "recovery", "verdict", NULL) != NULL;
}

void sim_check_unplaced(struct sim *sim, const char *pod_uid)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	struct hf_doc *object = hf_memstore_peek(sim->memstore, &hf_pods, "default", pod->name);
	struct hf_doc *stored = job == NULL || job->gone ? NULL : sim_job_peek(sim, job->name);

	if (pod->unplaced_since == 0)
		pod->unplaced_since = sim_now(sim);
	if (!works_well(sim) || stored == NULL || job->not_ours || object == NULL ||
	    hf_json_path(hf_doc_json(object), "metadata", "annotations", "holdfast.dev/avoids",
			 NULL) == NULL ||
	    is_about_to_change(sim, job, pod, stored))
		return;
	HF_AUTO_JSON status = sim_status(stored);

	if (!sim_condition_is(status, "holdfast.dev/PodUnschedulable"))
		sim_fail(sim, "34 liveness",
			 "pod %s avoids nodes and no other node has taken it for %lld s, but job "
			 "%s has no condition PodUnschedulable",
			 pod->name, (long long)((sim_now(sim) - pod->unplaced_since) / HF_SECOND),
			 job->name);
}

/* --- 32: what a restart may cost ----------------------------------------------------------------- */

void sim_check_cost(struct sim *sim, const struct hf_request *request)
{
	const char *dash;
	char name[64];
	struct hf_doc *stored;
	struct sim_job_truth *job;

	if (request->verb == HF_VERB_GET || request->verb == HF_VERB_LIST ||
	    hf_streq(request->resource->plural, "leases"))
		return;
	snprintf(name, sizeof(name), "%s",
		 hf_str_or(request->name, request->body != NULL ? hf_doc_name(request->body) : ""));
	dash = strchr(name, '-');
	if (dash != NULL)
		name[dash - name] = '\0';
	stored = sim_job_peek(sim, name);
	job = stored == NULL ? NULL : sim_job_truth(sim, hf_doc_uid(stored));
	if (job != NULL)
		job->writes++;
}

/* 32: bounds the writes for a job. Each pod and each other object costs two, and each event of the
 * job some statuses and events. An MPIJob also writes its hosts for each pod that comes or goes.
 * Worlds with trouble of nodes are not checked. */
void sim_check_writes(struct sim *sim, const struct sim_job_truth *job)
{
	/* With narrow CRDs each write of the ledger is a patch of its own. */
	int64_t patches = sim->narrow_schema ? 2 : 1;
	int64_t things = job->ends + job->deeds;
	int64_t remade =
		job->remade < 2 * (job->made + things) ? job->remade : 2 * (job->made + things);
	int64_t bound = 2 * job->made + remade + patches * (6 + 4 * things);

	if (works_well(sim) && sim->mood.per_hour[SIM_BY_NODE] == 0 && job->writes > bound)
		sim_fail(sim, "32 requests",
			 "job %s took %lld writes for %lld objects and %lld ends", job->name,
			 (long long)job->writes, (long long)job->made, (long long)job->ends);
}

/* --- looked at when time goes by ----------------------------------------------------------------- */

void sim_check_clock(struct sim *sim)
{
	const char *key;
	void *value;

	for (size_t i = 0; i < sim->nodes->n; i++)
		check_lost(sim, &sim->nodes->nodes[i]);
	for (size_t it = 0; hf_map_next(sim->checks->jobs, &it, &key, &value);)
		check_must_fail(sim, value);
}
