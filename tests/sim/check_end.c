/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "sim/nodes.h"

#include <string.h>

/* Invariants that hold at the end of a run, after the calm and the quiet. */

#define INCIDENT_SECONDS 1800 /* recovery.incidentSeconds */

/* --- the end ------------------------------------------------------------------------------- */

/* True if the end of this pod may be an incident. A pod that the operator gave up (its node came
 * back, or the reason was its device or a standstill) may have succeeded after all, and still
 * counts. */
static bool may_count(const struct sim_pod_truth *pod)
{
	return pod->ended &&
	       (!pod->succeeded || pod->gone || pod->away || pod->sick || pod->stalled);
}

/* True if the clock of the API server or of a machine was set. */
static bool was_clock_set(const struct sim *sim)
{
	return sim->dice.seen[SIM_CLOCK_SERVER] + sim->dice.seen[SIM_NODE_CLOCK] > 0;
}

/* True if the pod was lost with its node, and the node was well when the other pod ended. The two
 * ends then have two causes. The operator compares times of several clocks to find out. If one of
 * them was set, the operator may count the loss as a cause of its own although it was earlier. */
static bool died_after(struct sim *sim, const struct sim_pod_truth *pod,
		       const struct sim_pod_truth *other)
{
	const struct sim_node *node = pod->lost ? sim_node_get(sim, pod->node) : NULL;

	if (node == NULL || !other->gone)
		return false;
	return other->gone_at < node->dead_since || (was_clock_set(sim) && !other->lost);
}

void sim_check_follows(struct sim *sim, const struct sim_pod_truth *pod)
{
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		struct sim_pod_truth *former = value;

		if (former->gone && former->followed_at == 0 && former->role == pod->role &&
		    former->index == pod->index && hf_streq(former->job_uid, pod->job_uid))
			former->followed_at = sim_now(sim);
	}
}

static bool was_taken(const struct sim_pod_truth *pod)
{
	return pod->disrupted || pod->away;
}

int64_t sim_pods_taken(struct sim *sim, const struct sim_job_truth *job)
{
	int64_t n = 0;
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &uid, &value);) {
		const struct sim_pod_truth *pod = value;

		n += (was_taken(pod) || pod->sick) && hf_streq(pod->job_uid, job->uid);
	}
	return n;
}

/* True if the pod was taken away, or its machine or device failed, after the rank of the other pod ran again: that is a fault
 * of its own. The loss or the drain of one machine is one fault of all its pods. */
static bool was_taken_after(const struct sim_pod_truth *pod, const struct sim_pod_truth *other)
{
	if (was_taken(pod) && was_taken(other) && hf_streq(pod->node, other->node))
		return false;
	return (was_taken(pod) || pod->sick) && pod->gone && other->followed_at > 0 &&
	       other->followed_at < pod->gone_at;
}

/* True if two ends may belong to one incident. An incident ends incidentSeconds after all ranks run
 * again. If incidentSeconds is short, ends that lie farther apart may be two incidents. */
static bool may_be_of_one(struct sim *sim, const struct sim_pod_truth *a,
			  const struct sim_pod_truth *b, hf_time window)
{
	hf_time apart = a->gone_at > b->gone_at ? a->gone_at - b->gone_at : b->gone_at - a->gone_at;

	if (died_after(sim, a, b) || died_after(sim, b, a) || was_taken_after(a, b) ||
	    was_taken_after(b, a))
		return false;
	return window >= INCIDENT_SECONDS * HF_SECOND || (a->gone && b->gone && apart <= window);
}

/* 4, at the end: the ledger charges no more incidents than happened. */
static void check_restarts_match_truth(struct sim *sim, struct hf_doc *job)
{
	HF_AUTO_JSON status = sim_status(job);
	hf_time window = hf_json_i64(hf_json_path(hf_doc_json(job), "spec", "runPolicy", "recovery",
						  "incidentSeconds", NULL),
				     INCIDENT_SECONDS) *
			 HF_SECOND;
	int64_t incidents = 0;
	const char *key;
	void *value;

	/* An incident begins when a pod ends that was created after the incident before. So the
	 * number of incidents is the number of different stamps on ended pods. A pod that vanished
	 * may be an incident of its own, and so may each restart in place. An end joins an incident
	 * only by that incident's first end: of three ends, the second may belong to the first or to
	 * the third while these two have different causes. */
	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		struct sim_pod_truth *pod = value;
		bool first = may_count(pod);
		void *other;

		if (!hf_streq(pod->job_uid, hf_doc_uid(job)))
			continue;
		incidents += pod->restarts;
		for (size_t at = 0;
		     first && pod->known && hf_map_next(sim->checks->pods, &at, &key, &other);) {
			const struct sim_pod_truth *o = other;

			if (o == pod)
				break;
			first = !(o->known && o->opens && o->incident == pod->incident &&
				  may_be_of_one(sim, o, pod, window) &&
				  hf_streq(o->job_uid, pod->job_uid));
		}
		pod->opens = first && !pod->succeeded;
		incidents += first;
	}
	if (sim_all_restarts(status) > incidents)
		sim_fail(sim, "4 restarts match the truth", "%s: %lld charged, %lld incidents",
			 hf_doc_name(job), (long long)sim_all_restarts(status),
			 (long long)incidents);
}

/* True if a fault of its device may explain the end of this pod. The machine's clock tells which
 * came first, the pod or the fault. If a clock was set, every device that failed counts. */
static bool may_be_sick(struct sim *sim, const struct sim_pod_truth *pod)
{
	const struct sim_node *node = sim_node_get(sim, pod->node);

	return pod->sick || (was_clock_set(sim) && node != NULL && sim_device_has_failed(node));
}

static void check_budget(struct sim *sim, struct hf_doc *job, const struct hf_json *status,
			 const char *budget, int64_t truth)
{
	int64_t charged = sim_ledger_int(status, "restarts", budget);

	if (charged > truth)
		sim_fail(sim, "4 restarts match the truth", "%s: %s %lld of %lld", hf_doc_name(job),
			 budget, (long long)charged, (long long)truth);
}

/* True if the pod went without a trace, so the operator need not know the cause. */
static bool went_unseen(const struct sim *sim, const struct sim_pod_truth *pod)
{
	return pod->gone && !pod->known && sim_may_miss(sim, pod);
}

/* True if the loss of its node may explain the end of this pod or of its peers. If a person deletes
 * a pod while its node is Unknown, the loss of the node counts as the cause at once. */
static bool may_be_lost(struct sim *sim, const struct sim_pod_truth *pod)
{
	if (!sim_sees_the_present(sim) || sim->mood.fences)
		return pod->away || pod->lost;
	return pod->lost || (pod->away && pod->marked);
}

/* 4 and 21, by budget: each budget is charged no more than the ends that were seen to have such a
 * cause. A disruption or a refusal of the kubelet is never charged to the application, but memory
 * that the program used up is. A pod that vanished without a request of the operator counts as
 * infrastructure. */
static void check_classes_match_truth(struct sim *sim, struct hf_doc *job)
{
	HF_AUTO_JSON status = sim_status(job);
	int64_t application = 0, infrastructure = 0, device = 0, ends = 0;
	bool away = false;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;
		bool lost = may_be_lost(sim, pod);

		if (!hf_streq(pod->job_uid, hf_doc_uid(job)))
			continue;
		application += (int64_t)pod->restarts + pod->stalled +
			       (pod->failed && !pod->refused && (pod->failed_alone || pod->oom));
		device += may_be_sick(sim, pod) ? 1 + (int64_t)pod->restarts : 0;
		ends += (int64_t)pod->restarts + pod->ended;
		away = away || lost;
		infrastructure += pod->disrupted || lost || pod->refused || went_unseen(sim, pod);
		infrastructure += pod->codes_lost;
	}
	/* The loss of a node may explain every end of the job, whatever the exit codes are. A node
	 * that comes back before it counts as lost explains nothing: ends meanwhile are charged to
	 * the application. */
	if (away)
		infrastructure = ends;
	check_budget(sim, job, status, "application", application);
	check_budget(sim, job, status, "infrastructure", infrastructure);
	check_budget(sim, job, status, "device", device);
}

/* True if a new job of the same name and kind needs the name of this pod. The new job's operator
 * gives the pod up with its node. The server's clock tells which object is older; where this clock
 * is set, the result is false. */
static bool has_heir(struct sim *sim, const struct sim_pod_truth *pod)
{
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	struct hf_doc *next = job == NULL ? NULL : sim_job_peek(sim, job->name);
	const struct hf_json *role;

	if (next == NULL || hf_streq(hf_doc_uid(next), pod->job_uid) ||
	    sim_job_truth(sim, hf_doc_uid(next))->not_ours ||
	    sim->mood.weight[SIM_CLOCK_SERVER] > 0)
		return false;
	role = hf_json_get(sim_replicas_of(sim, next), sim_role_names[pod->role]);
	return role != NULL && pod->index < hf_json_i64(hf_json_get(role, "replicas"), 1);
}

/* True if the pod may stay for ever: its job is gone or has ended, its node stays dead, and no new
 * job needs its name. */
static bool may_stay(struct sim *sim, const struct sim_pod_truth *pod)
{
	const struct sim_node *node = sim_node_get(sim, pod->node);
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);

	return node != NULL && node->stays_dead && (job == NULL || job->gone || job->terminal) &&
	       !has_heir(sim, pod);
}

/* True if a pod of an earlier job of the same name, on a node that stays dead, holds the name of a
 * rank of this job. */
static bool name_is_held(struct sim *sim, struct hf_doc *job)
{
	size_t len = strlen(hf_doc_name(job));
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		if (!pod->gone && !hf_streq(pod->job_uid, hf_doc_uid(job)) &&
		    strncmp(pod->name, hf_doc_name(job), len) == 0 && may_stay(sim, pod))
			return true;
	}
	return false;
}

/* Liveness: after the faults have stopped, every job ends, or is suspended with no pod that
 * runs. */
static void check_job_settled(void *arg, struct hf_doc *doc)
{
	struct sim *sim = arg;
	const struct hf_json *job = hf_doc_json(doc), *status = hf_json_get(job, "status");
	bool suspend = hf_json_true(hf_json_path(job, "spec", "runPolicy", "suspend", NULL), false);

	if (!sim_lists_lie(sim)) {
		for (size_t i = 0; i < sim->nodes->n; i++)
			sim_check_lost(sim, sim->nodes->nodes[i].name);
		check_restarts_match_truth(sim, doc);
		check_classes_match_truth(sim, doc);
	}
	sim_check_writes(sim, sim_job_truth(sim, hf_doc_uid(doc)));
	sim_check_left(sim, doc);
	sim_check_texts(sim, sim_job_truth(sim, hf_doc_uid(doc)), status);
	if (sim_terminal_of(status) != NULL || sim_job_truth(sim, hf_doc_uid(doc))->not_ours)
		return;
	if ((!suspend || !sim_condition_is(status, "Suspended")) && !name_is_held(sim, doc))
		sim_fail(sim, "liveness", "job %s is neither finished nor suspended at the end",
			 hf_doc_name(doc));
}

static void check_pod_settled(void *arg, struct hf_doc *doc)
{
	struct sim *sim = arg;
	const struct sim_pod_truth *pod = sim_pod_truth(sim, hf_doc_uid(doc));
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);

	if (may_stay(sim, pod))
		return;
	if (job == NULL) {
		sim_fail(sim, "liveness", "pod %s of another program was not removed", pod->name);
		return;
	}
	struct hf_doc *stored = sim_job_peek(sim, job->name);

	if (job->gone)
		sim_fail(sim, "liveness", "pod %s still exists, but its job %s is gone", pod->name,
			 job->name);
	else if (stored != NULL && job->terminal == NULL && !name_is_held(sim, stored))
		sim_fail(sim, "liveness", "pod %s is left of suspended job %s", pod->name,
			 job->name);
	else if (job->terminal != NULL)
		sim_check_cleaned(sim, job, pod);
	if (job->terminal != NULL)
		sim_check_leftover(sim, job, pod);
}

/* At the end exactly one operator acts, and it has nothing to do. */
static void check_who_acts(struct sim *sim)
{
	size_t acting = 0;

	for (size_t i = 0; i < sim->n_lives; i++) {
		const struct hf_operator *op = sim_acting(&sim->lives[i]);

		acting += op != NULL;
		if (op != NULL && !hf_operator_idle(op))
			sim_fail(sim, "31 quiet", "the operator is busy although nothing happens");
	}
	if (acting != 1)
		sim_fail(sim, "leader", "%zu operators act at the end", acting);
}

/* --- where a job stands ---------------------------------------------------------------------- */

enum sim_state sim_state_of(const struct hf_json *job, const struct hf_json *status)
{
	const char *phase = hf_json_str(hf_json_path(status, "recovery", "phase", NULL), "");

	if (sim_terminal_of(status) != NULL)
		return SIM_IN_ENDED;
	if (hf_json_true(hf_json_path(job, "spec", "runPolicy", "suspend", NULL), false))
		return sim_condition_is(status, "Suspended") ? SIM_IN_SUSPENDED : SIM_IN_SUSPENDING;
	if (hf_streq(phase, "Tearing"))
		return SIM_IN_TEARING;
	if (sim_condition_is(status, "Restarting"))
		return SIM_IN_RESTARTING;
	if (hf_streq(phase, "Creating"))
		return SIM_IN_CREATING;
	return sim_condition_is(status, "Running") ? SIM_IN_RUNNING : SIM_IN_CREATED;
}

size_t sim_states_count(struct sim *sim, unsigned long long hits[SIM_STATES])
{
	size_t n = 0;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->jobs, &it, &key, &value);) {
		const struct sim_job_truth *job = value;

		if (job->gone)
			continue;
		hits[job->state]++;
		n++;
	}
	return n;
}

static void look_whether_settled(void *arg, struct hf_doc *doc)
{
	const struct hf_json *job = hf_doc_json(doc), *status = hf_json_get(job, "status");
	bool *settled = arg;

	/* A job with a time to live still has to be deleted. */
	if (sim_terminal_of(status) != NULL &&
	    hf_json_path(job, "spec", "runPolicy", "ttlSecondsAfterFinished", NULL) != NULL)
		*settled = false;
	if (hf_json_path(job, "spec", "runPolicy", "managedBy", NULL) != NULL)
		return;
	*settled = *settled &&
		   (sim_terminal_of(status) != NULL || sim_condition_is(status, "Suspended"));
}

struct ending {
	struct sim *sim;
	bool any;
};

static void look_whether_ending(void *arg, struct hf_doc *pod)
{
	struct ending *ending = arg;

	ending->any =
		ending->any ||
		(hf_json_path(hf_doc_json(pod), "metadata", "deletionTimestamp", NULL) != NULL &&
		 !may_stay(ending->sim, sim_pod_truth(ending->sim, hf_doc_uid(pod))));
}

/* A pod that still runs half a minute after the end of its job is reported then, so the run waits
 * for that. */
#define TOLD_AFTER (40 * HF_SECOND)

/* The end of the job by its status. The operator's clock stands still if that of the API server was set back. */
static hf_time read_end(struct sim *sim, const struct sim_job_truth *job)
{
	struct hf_doc *stored = sim_job_peek(sim, job->name);
	const char *text = stored == NULL ? NULL
					  : hf_json_path_str(hf_doc_json(stored), "status",
							     "completionTime", NULL);
	hf_time at;

	return hf_time_parse(hf_str_or(text, ""), &at, NULL) == 0 ? at : 0;
}

static bool has_just_ended(struct sim *sim)
{
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->jobs, &it, &key, &value);) {
		const struct sim_job_truth *job = value;

		if (job->terminal != NULL &&
		    (sim_now(sim) - job->ended_at < TOLD_AFTER ||
		     hf_loop_wall(sim->loop) - read_end(sim, job) < TOLD_AFTER))
			return true;
	}
	return false;
}

bool sim_is_settled(struct sim *sim)
{
	bool settled = !has_just_ended(sim);
	struct ending ending = {.sim = sim};

	sim_each_job(sim, look_whether_settled, &settled);
	hf_memstore_each(sim->memstore, &hf_pods, "default", look_whether_ending, &ending);
	return settled && !ending.any && sim_nodes_are_well(sim);
}

void sim_check_end(struct sim *sim)
{
	sim_each_job(sim, check_job_settled, sim);
	hf_memstore_each(sim->memstore, &hf_pods, "default", check_pod_settled, sim);
	/* 31: a world in which nothing happens causes no requests. Each end of a process may cause
	 * two, a status and an event. */
	check_who_acts(sim);
	if (sim->requests_quiet > 2 * sim->ends_quiet)
		sim_fail(sim, "31 quiet", "%llu requests although nothing happens",
			 sim->requests_quiet);
}
