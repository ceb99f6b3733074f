/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "sim/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Invariants of jobs and ranks: each function checks one, with its number and sentence above it.
 * The checks read changes of the store and what the world itself knows of processes. They never use
 * the operator's code to read an object.
 */

#define TRUTHS_MAX 100000
#define LEDGER_MAX 8192
/* a watch lags by up to 190 s, and a list follows after 120 s */
#define WATCH_BEHIND_MAX (6 * HF_MINUTE)

static void pod_truth_free(void *value)
{
	struct sim_pod_truth *pod = value;

	free(pod->uid);
	free(pod->job_uid);
	free(pod->name);
	free(pod);
}

static void job_truth_free(void *value)
{
	struct sim_job_truth *job = value;

	free(job->uid);
	free(job->name);
	free(job->terminal);
	free(job->completion_time);
	free(job->patch_version);
	free(job->foreign_version);
	free(job->stands_for);
	free(job);
}

struct sim_pod_truth *sim_pod_truth(struct sim *sim, const char *uid)
{
	return hf_map_get(sim->checks->pods, uid);
}

struct sim_job_truth *sim_job_truth(struct sim *sim, const char *uid)
{
	return hf_map_get(sim->checks->jobs, uid);
}

/* --- invariants ---------------------------------------------------------------------------- */

/* 1: at most one live process for each job UID, replica type, index and generation. */
static void check_one_process_per_rank(struct sim *sim, const struct sim_pod_truth *pod,
				       const struct sim_pod_truth *other)
{
	if (other->index == pod->index && other->generation == pod->generation &&
	    other->role == pod->role)
		sim_fail(sim, "1 one process per rank", "%s (%s) starts while %s runs", pod->name,
			 pod->uid, other->uid);
}

/* 2: with restartScope Job no process of an older generation runs beside a process of a newer one.
 * Exception: a list from the past told the operator that the other pod did not exist. */
static void check_generations_apart(struct sim *sim, const struct sim_job_truth *job,
				    const struct sim_pod_truth *pod,
				    const struct sim_pod_truth *other)
{
	if (job != NULL && job->scope_job && other->generation != pod->generation &&
	    !sim_may_not_know_of(sim, other))
		sim_fail(sim, "2 generations apart",
			 "%s of generation %lld starts while %s of %lld runs", pod->name,
			 (long long)pod->generation, other->name, (long long)other->generation);
}

/* Returns 1 if a pod of this rank exists and has not ended, else 0. The ledger may count the end of
 * this pod before the operator asks for it (a rank beyond the replicas, a restart that a user asked
 * for). */
static int64_t rank_is_there(struct sim *sim, const struct sim_job_truth *job, int role, int index)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &uid, &value);) {
		const struct sim_pod_truth *pod = value;

		if (!pod->ended && pod->role == (enum sim_role)role && pod->index == index &&
		    hf_streq(pod->job_uid, job->uid))
			return 1;
	}
	return 0;
}

/* Counts pods that have not ended and that the operator charges before it deletes them: the pod's
 * node could not report at some time, its device is broken, or its job stood still. */
static int64_t pods_away(struct sim *sim, const struct sim_job_truth *job)
{
	int64_t n = 0;
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &uid, &value);) {
		const struct sim_pod_truth *pod = value;

		n += !pod->ended && (pod->away || pod->sick || pod->stalled) &&
		     hf_streq(pod->job_uid, job->uid);
	}
	return n;
}

/* 3: each observed end changes the ledger at most once. */
static void check_ends_count_once(struct sim *sim, const struct sim_job_truth *job,
				  const struct hf_json *status)
{
	long long charged = (long long)sim_all_restarts(status), ends = (long long)job->ends;

	if (sim_lists_lie(sim))
		return;
	for (int role = 0; role < SIM_ROLES; role++) {
		const char *attempts = sim_ledger_text(status, sim_role_names[role], "attempts");

		for (int i = 0; attempts[0] != '\0' && i < SIM_PODS_MAX; i++)
			if (sim_sparse_get(attempts, i) > job->ended[role][i] &&
			    sim_sparse_get(attempts, i) >
				    job->ended[role][i] + rank_is_there(sim, job, role, i))
				sim_fail(sim, "3 each end counts once",
					 "%s %d of job %s: the ledger counts %lld ended attempts, "
					 "but %lld pods ended",
					 sim_role_names[role], i, job->name,
					 sim_sparse_get(attempts, i),
					 (long long)job->ended[role][i]);
	}
	/* A pod on a lost node is charged before it is deleted. */
	if (charged > ends - job->ours + pods_away(sim, job))
		sim_fail(sim, "14 our own ends cost nothing",
			 "job %s: %lld charged, but of %lld ends the operator asked for %lld",
			 job->name, charged, ends, (long long)job->ours);
	if (charged > ends + pods_away(sim, job))
		sim_fail(sim, "3 each end counts once",
			 "%lld units are charged, but only %lld ends happened", charged, ends);
}

/* 4, at each status: each incident is charged once; the newest one may still be uncharged. Incidents by people or failure policy
 * rules cost nothing, nor does the next rank that leaves a node. */
static void check_incidents_are_charged(struct sim *sim, const struct sim_job_truth *job,
					const struct hf_json *status)
{
	const char *charged = hf_json_path_str(status, "recovery", "incident", "charged", NULL);
	bool open = charged == NULL || hf_streq(charged, "none") || charged[0] == '\0';
	int64_t incidents = sim_ledger_int(status, "incident", "id");
	int64_t free = incidents - (incidents > 0 && open) - sim_all_restarts(status);

	if (free != 0 && !job->touched && !job->has_rules && !job->evicted &&
	    (free < 0 || free > sim_pods_taken(sim, job)))
		sim_fail(sim, "4 incidents are charged", "job %s: %lld incidents, %lld charges",
			 job->name, (long long)incidents, (long long)sim_all_restarts(status));
}

/* 4, at each status: a termination that the ledger counts belongs to an incident. */
static void check_terminations_have_incident(struct sim *sim, const struct sim_job_truth *job,
					     const struct hf_json *status)
{
	/* An operator learns from its first reply that the CRD drops the ledger. By then this job
	 * has a status, so its ledger starts late, like one that was erased. */
	if (sim->narrow_schema || job->foreign || sim->mood.weight[SIM_EDITED] > 0 ||
	    sim_lists_lie(sim) || sim_ledger_int(status, "incident", "id") > 0)
		return;
	for (int role = 0; role < SIM_ROLES; role++)
		if (sim_ledger_text(status, sim_role_names[role], "seen")[0] != '\0')
			sim_fail(sim, "4 incidents are charged",
				 "job %s: terminations of %s (%s) are counted without an incident",
				 job->name, sim_role_names[role],
				 sim_ledger_text(status, sim_role_names[role], "seen"));
}

/* 4, at each create: a replacement of a pod has an incident in the ledger. */
static void check_replacement_has_cause(struct sim *sim, const struct sim_job_truth *job,
					const struct sim_pod_truth *pod,
					const struct hf_json *job_status)
{
	if (!job->touched && (pod->attempt > 0 || pod->generation > 1) &&
	    sim_ledger_int(job_status, "incident", "id") == 0)
		sim_fail(sim, "4 incidents are charged",
			 "pod %s is attempt %lld of generation %lld, but without an incident",
			 pod->name, (long long)pod->attempt, (long long)pod->generation);
}

/* Returns 1 if the charge of the newest incident may move from this budget to another one, because a
 * cause in the infrastructure may show up on a rank. */
static int unit_movable(const struct hf_json *before, const char *budget)
{
	return hf_streq(hf_json_path_str(before, "recovery", "incident", "charged", NULL), budget);
}

/* 5: restarts, generation and attempts never fall for one job UID. A charge may move to another
 * budget with its incident's cause, but the sum of all budgets never falls. */
static void check_counters_never_fall(struct sim *sim, const struct sim_job_truth *job,
				      const struct hf_json *before, const struct hf_json *after)
{
	int64_t generation = sim_ledger_int(before, NULL, "generation");

	if (hf_json_get(before, "recovery") == NULL)
		return;
	if (sim_ledger_int(after, NULL, "generation") < generation)
		sim_fail(sim, "5 counters never fall", "generation fell from %lld",
			 (long long)generation);
	for (size_t i = 0; i < HF_ARRAY_LEN(sim_budgets); i++)
		if (sim_ledger_int(after, "restarts", sim_budgets[i]) +
			    unit_movable(before, sim_budgets[i]) <
		    sim_ledger_int(before, "restarts", sim_budgets[i]))
			sim_fail(sim, "5 counters never fall", "restarts.%s fell", sim_budgets[i]);
	/* A stray eviction costs nothing, so peers that failed because of the evicted pod cost
	 * nothing either, and a charge may be taken back. */
	if (sim_all_restarts(after) + job->evicted < sim_all_restarts(before))
		sim_fail(sim, "5 counters never fall", "a charge disappeared");
	for (int r = 0; r < SIM_ROLES; r++) {
		const char *had = sim_ledger_text(before, sim_role_names[r], "attempts");
		const char *has = sim_ledger_text(after, sim_role_names[r], "attempts");

		for (long long i = 0; had[0] != '\0' && i < SIM_PODS_MAX; i++)
			if (sim_sparse_get(has, i) < sim_sparse_get(had, i))
				sim_fail(sim, "5 counters never fall", "attempts of %s %lld fell",
					 sim_role_names[r], i);
	}
}

/* 6: no status write lands with a stale resourceVersion or on another UID. */
static void check_guarded_write(struct sim *sim, const struct sim_job_truth *job,
				struct hf_doc *before)
{
	const char *version = hf_doc_resource_version(before);

	if (!hf_streq(job->patch_version, version) && !hf_streq(job->foreign_version, version))
		sim_fail(sim, "6 guarded status writes",
			 "a status for version %s was written onto version %s of job %s",
			 hf_str_or(job->patch_version, "none"), version, job->name);
}

/* 7: a terminal condition never disappears, and its type never changes. */
static void check_terminal_stays(struct sim *sim, struct sim_job_truth *job,
				 const struct hf_json *status)
{
	const char *now = sim_terminal_of(status);

	if (job->terminal == NULL) {
		job->terminal = now == NULL ? NULL : hf_xstrdup(now);
		job->ended_at = sim_now(sim);
	} else if (!hf_streq(job->terminal, now)) {
		sim_fail(sim, "7 terminal stays", "%s was %s and is %s", job->name, job->terminal,
			 hf_str_or(now, "neither"));
	}
}

/* 8: after a terminal condition nothing is created for the job, but by an operator that a list told
 * of the time before it. */
static void check_no_create_after_end(struct sim *sim, const struct sim_job_truth *job,
				      struct hf_doc *object)
{
	if (job != NULL && job->terminal != NULL && !sim_may_not_know(sim, job, job->terminal_in))
		sim_fail(sim, "8 no create after the end",
			 "%s was created for job %s, which has condition %s", hf_doc_name(object),
			 job->name, job->terminal);
}

/* 9: completionTime exists if and only if the job is terminal. It never changes and is not before
 * startTime. */
static void check_completion_time(struct sim *sim, struct sim_job_truth *job,
				  const struct hf_json *status)
{
	const char *start = hf_json_str(hf_json_get(status, "startTime"), NULL);
	const char *end = hf_json_str(hf_json_get(status, "completionTime"), NULL);

	if ((end != NULL) != (sim_terminal_of(status) != NULL))
		sim_fail(sim, "9 completionTime", "%s is %s with completionTime %s", job->name,
			 hf_str_or(sim_terminal_of(status), "not terminal"),
			 hf_str_or(end, "absent"));
	if (job->completion_time != NULL && !hf_streq(job->completion_time, end))
		sim_fail(sim, "9 completionTime", "%s: changed from %s to %s", job->name,
			 job->completion_time, hf_str_or(end, "absent"));
	/* Times in RFC 3339 and UTC sort as text. */
	if (end != NULL && start != NULL && strcmp(end, start) < 0)
		sim_fail(sim, "9 completionTime", "%s: %s is before startTime %s", job->name, end,
			 start);
	if (job->completion_time == NULL && end != NULL)
		job->completion_time = hf_xstrdup(end);
}

/* 10: Running and Restarting are never both True, and neither is True in a terminal or suspended
 * job. */
static void check_running_xor_restarting(struct sim *sim, const struct sim_job_truth *job,
					 const struct hf_json *status)
{
	bool running = sim_condition_is(status, "Running");
	bool restarting = sim_condition_is(status, "Restarting");

	if (running && restarting)
		sim_fail(sim, "10 Running xor Restarting", "%s has both", job->name);
	if ((running || restarting) &&
	    (sim_terminal_of(status) != NULL || sim_condition_is(status, "Suspended")))
		sim_fail(sim, "10 Running xor Restarting", "%s has %s beside a final one",
			 job->name, running ? "Running" : "Restarting");
}

/* 11: no two conditions have the same type, and type and status are not empty. */
static void check_conditions(struct sim *sim, const struct sim_job_truth *job,
			     const struct hf_json *status)
{
	const struct hf_json *list = hf_json_get(status, "conditions");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *c = hf_json_item(list, i);
		const char *type = hf_json_str(hf_json_get(c, "type"), "");

		if (type[0] == '\0' || hf_json_str(hf_json_get(c, "status"), "")[0] == '\0')
			sim_fail(sim, "11 conditions",
				 "job %s has a condition with an empty type or status", job->name);
		for (size_t k = 0; k < i; k++)
			if (hf_streq(type,
				     hf_json_str(hf_json_get(hf_json_item(list, k), "type"), "")))
				sim_fail(sim, "11 conditions", "%s: two of type %s", job->name,
					 type);
	}
}

/* 24: an index that the ledger lists as succeeded is not created again in its generation, but by an
 * operator that a list told of the time before. */
static void check_succeeded_not_run_again(struct sim *sim, const struct sim_job_truth *job,
					  const struct sim_pod_truth *pod,
					  const struct hf_json *job_status)
{
	if (!sim_may_not_know(sim, job, job->succeeded_in[pod->role][pod->index]) &&
	    sim_ledger_int(job_status, NULL, "generation") == pod->generation &&
	    sim_ranges_have(sim_ledger_text(job_status, sim_role_names[pod->role], "succeeded"),
			    pod->index))
		sim_fail(sim, "24 succeeded is not run again", "%s", pod->name);
}

/* 29: unknown fields and conditions of other writers survive each status write. */
static void check_foreign_survives(struct sim *sim, const struct sim_job_truth *job,
				   const struct hf_json *status)
{
	const struct hf_json *list = hf_json_get(status, "conditions");
	const struct hf_json *found = NULL;

	if (!job->foreign)
		return;
	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_str(hf_json_get(hf_json_item(list, i), "type"), ""),
			     "example.com/Foreign"))
			found = hf_json_item(list, i);
	if (!hf_streq(hf_json_str(hf_json_get(found, "note"), NULL), "kept") ||
	    hf_json_len(hf_json_path(status, "foreign", "deep", NULL)) != 1)
		sim_fail(sim, "29 foreign parts survive", "%s lost what another wrote", job->name);
}

/* 28: the operator deletes only objects that a job of the simulator controls, and names their
 * UIDs. */
static void check_only_ours(struct sim *sim, const struct hf_request *request)
{
	struct hf_doc *object =
		hf_memstore_peek(sim->memstore, request->resource, request->ns, request->name);
	bool is_job = hf_resource_is_job(request->resource);

	if (request->precondition_uid == NULL)
		sim_fail(sim, "28 only ours", "a delete of %s names no UID", request->name);
	if (object == NULL || !hf_streq(hf_doc_uid(object), request->precondition_uid))
		return; /* refused by its precondition */
	if (is_job && sim_job_truth(sim, hf_doc_uid(object))->terminal == NULL)
		sim_fail(sim, "28 only ours", "the operator deletes job %s, which has not ended",
			 request->name);
	if (!is_job && sim_job_truth(sim, sim_controller_uid(hf_doc_json(object))) == NULL)
		sim_fail(sim, "28 only ours", "the operator deletes %s, which no job controls",
			 request->name);
	if (request->resource == &hf_pods)
		sim_pod_truth(sim, hf_doc_uid(object))->known = true;
}

/* 26: a job is deleted with propagation Foreground, and only after its time to live. */
void sim_check_time_to_live(struct sim *sim, const struct hf_request *request)
{
	struct hf_doc *doc;
	const struct hf_json *job;
	const char *end;
	hf_time at = HF_TIME_NONE;
	int64_t ttl;

	doc = hf_memstore_peek(sim->memstore, request->resource, request->ns, request->name);
	if (doc == NULL || !hf_streq(hf_doc_uid(doc), request->precondition_uid))
		return;
	job = hf_doc_json(doc);
	end = hf_json_path_str(job, "status", "completionTime", NULL);
	ttl = hf_json_i64(hf_json_path(job, "spec", "runPolicy", "ttlSecondsAfterFinished", NULL),
			  -1);
	if (request->propagation != HF_PROPAGATE_FOREGROUND)
		sim_fail(sim, "26 time to live", "%s is not deleted foreground", request->name);
	if (end == NULL || hf_time_parse(end, &at, NULL) != 0 ||
	    (sim->mood.weight[SIM_CLOCK_SERVER] > 0 && sim->mood.per_hour[SIM_BY_LIFE] > 0))
		return;
	/* The cache may show a shorter time to live than the store. Such a delete names an old
	 * resourceVersion, so the server refuses it. */
	if (request->precondition_resource_version != NULL &&
	    !hf_streq(request->precondition_resource_version, hf_doc_resource_version(doc)))
		return;
	if (ttl < 0 || hf_loop_wall(sim->loop) + HF_SECOND < at + ttl * HF_SECOND)
		sim_fail(sim, "26 time to live",
			 "job %s is deleted, but ended at %s and has a time to live of %lld s",
			 request->name, end, (long long)ttl);
}

/* 12: while the job is suspended and its status says so, no pod is created. A second operator that
 * is told of the past may create pods for the job as it was before, and then deletes them. */
static void check_no_create_while_suspended(struct sim *sim, const struct sim_job_truth *job,
					    const struct sim_pod_truth *pod,
					    const struct hf_json *spec,
					    const struct hf_json *status)
{
	if (sim->n_lives == 1 && !sim_may_not_know(sim, job, job->suspended_in) &&
	    sim_condition_is(status, "Suspended") &&
	    hf_json_true(hf_json_path(spec, "spec", "runPolicy", "suspend", NULL), false))
		sim_fail(sim, "12 suspended", "%s is made", pod->name);
}

/* False if the operator may not know of the pod: its create was not answered, and the watch lags. */
static bool may_be_seen(const struct sim *sim, const struct sim_pod_truth *pod)
{
	return sim->mood.weight[SIM_WATCH_LAG] + sim->mood.weight[SIM_WATCH_LOST] == 0 ||
	       sim_now(sim) - pod->made_at > WATCH_BEHIND_MAX;
}

/* 13: if a suspended job shows no active pods, no pod of the job holds a node. */
static void check_active_while_suspended(struct sim *sim, const struct sim_job_truth *job,
					 const struct hf_json *status)
{
	int64_t active = 0, holding = 0;
	const char *key;
	void *value;

	if (sim->n_lives > 1 || !sim_condition_is(status, "Suspended") ||
	    sim_terminal_of(status) != NULL)
		return;
	for (size_t i = 0; i < SIM_ROLES; i++)
		active += hf_json_i64(
			hf_json_path(status, "replicaStatuses", sim_role_names[i], "active", NULL),
			0);
	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		holding += !pod->gone && !pod->failed && !pod->succeeded && pod->node[0] != '\0' &&
			   may_be_seen(sim, pod) && !sim_may_not_know_of(sim, pod) &&
			   hf_streq(pod->job_uid, job->uid);
	}
	if (active == 0 && holding > 0)
		sim_fail(sim, "13 quota",
			 "job %s reports no active pod, but %lld of its pods hold nodes", job->name,
			 (long long)holding);
}

/* 23: backoffLimit ends the job if and only if more is charged to the application than it allows. The first status that an
 * operator writes under narrow CRDs has no ledger. */
static void check_limit_of_application(struct sim *sim, const struct sim_job_truth *job,
				       const struct hf_json *spec, const struct hf_json *status)
{
	const struct hf_json *limit = hf_json_path(spec, "spec", "runPolicy", "backoffLimit", NULL);
	const struct hf_json *list = hf_json_get(status, "conditions");
	int64_t used = sim_ledger_int(status, "restarts", "application");
	bool settles = hf_json_path(status, "recovery", "verdict", NULL) != NULL;

	if (sim->mood.weight[SIM_EDITED] > 0 ||
	    (sim->narrow_schema && !hf_json_get(status, "recovery")))
		return;
	for (size_t i = 0; i < hf_json_len(list); i++)
		if (strstr(hf_json_str(hf_json_get(hf_json_item(list, i), "message"), ""),
			   "specified backoff limit") != NULL &&
		    (limit == NULL || used <= hf_json_i64(limit, 0)))
			sim_fail(sim, "23 limit",
				 "job %s failed for backoffLimit with %lld of %lld charged",
				 job->name, (long long)used, (long long)hf_json_i64(limit, -1));
	if (limit != NULL && sim_terminal_of(status) == NULL && !settles &&
	    used > hf_json_i64(limit, 0))
		sim_fail(sim, "23 limit", "job %s goes on with %lld charged to the application",
			 job->name, (long long)used);
}

/* 33: what is counted stays small. */
static void check_small(struct sim *sim, const struct sim_job_truth *job,
			const struct hf_json *status)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);
	const struct hf_json *ledger = hf_json_get(status, "recovery");

	if (ledger == NULL)
		return;
	hf_json_write(ledger, HF_JSON_COMPACT, &text);
	/* The limit is for the few ranks of this world, which need about 3 KB. A ledger of 20,000
	 * ranks may have 64 KiB. */
	if (text.full || text.len > LEDGER_MAX)
		sim_fail(sim, "33 size", "the ledger of %s has %zu bytes", job->name, text.len);
}

/* 36: the operator writes nothing to a job that another controller manages. */
static void check_not_ours(struct sim *sim, const struct sim_job_truth *job)
{
	if (job->not_ours)
		sim_fail(sim, "36 managed by another", "%s was written to", job->name);
}

/* --- what is looked at, and when ----------------------------------------------------------- */

void sim_check_request(struct sim *sim, const struct hf_request *request)
{
	bool status = hf_streq(request->subresource, "status");

	if (hf_streq(request->resource->plural, "events"))
		return;
	if (request->verb == HF_VERB_DELETE)
		check_only_ours(sim, request);
	sim_check_stop(sim, request);
	sim_check_forced(sim, request);
	sim_check_cost(sim, request);
	/* The ledger is in the status or, with narrow CRDs, in an annotation. */
	if (request->verb == HF_VERB_PATCH && (status || sim->narrow_schema)) {
		struct hf_doc *job = hf_memstore_peek(sim->memstore, request->resource, request->ns,
						      request->name);
		struct sim_job_truth *truth =
			job == NULL ? NULL : sim_job_truth(sim, hf_doc_uid(job));

		if (truth == NULL)
			return;
		free(truth->patch_version);
		truth->patch_version = hf_xstrdup(hf_doc_resource_version(request->body));
	}
}

/* 30: at the time of each write, the Lease names the operator that writes. */
void sim_check_leader(struct sim_life *life, const struct hf_request *request)
{
	struct sim *sim = life->sim;
	bool reads = request->verb == HF_VERB_GET || request->verb == HF_VERB_LIST;
	const char *holder;

	if (sim->n_lives < 2 || reads || hf_streq(request->resource->plural, "leases"))
		return;
	holder = hf_json_path_str(
		hf_doc_json(hf_memstore_peek(sim->memstore, &hf_leases, "default", SIM_LEASE)),
		"spec", "holderIdentity", NULL);
	if (!hf_streq(holder, life->identity))
		sim_fail(sim, "30 leader", "%s writes %s, but the Lease names %s", life->identity,
			 request->resource->plural, hf_str_or(holder, "nobody"));
}

void sim_check_process_starts(struct sim *sim, const char *pod_uid)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *other = value;

		/* An operator gave this pod up. check_nodes.c checked the reason when the pod was
		 * deleted. */
		if (job == NULL || other == pod || !other->alive || other->gone ||
		    !hf_streq(other->job_uid, pod->job_uid))
			continue; /* a stranger's pod is no rank */
		check_one_process_per_rank(sim, pod, other);
		check_generations_apart(sim, job, pod, other);
	}
	pod->alive = true;
	if (job != NULL)
		sim_check_begins(sim, job, pod);
	if (job != NULL)
		sim_check_service(sim, job, pod);
	sim_training_started(sim, pod);
}

void sim_check_process_ends(struct sim *sim, const char *pod_uid)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);

	if (pod->fence > 0)
		sim_check_contact(sim, pod);
	pod->alive = false;
	pod->process_end = sim_now(sim);
	if (sim_job_truth(sim, pod->job_uid) != NULL)
		sim_check_ran_on(sim, sim_job_truth(sim, pod->job_uid), pod);
	sim_training_ended(sim, pod);
}

static void job_created(struct sim *sim, struct hf_doc *doc)
{
	struct sim_job_truth *job;
	HF_AUTO_JSON policy = NULL;
	const char *scope;

	if (sim_job_truth(sim, hf_doc_uid(doc)) != NULL)
		return;
	job = hf_xcalloc(1, sizeof(*job));
	policy = sim_run_policy(doc);
	scope = hf_json_path_str(policy, "recovery", "restartScope", NULL);

	job->state = SIM_IN_CREATED;
	job->not_ours =
		hf_json_path(hf_doc_json(doc), "spec", "runPolicy", "managedBy", NULL) != NULL;
	job->uid = hf_xstrdup(hf_doc_uid(doc));
	job->name = hf_xstrdup(hf_doc_name(doc));
	job->scope_job = hf_streq(scope, "Job");
	job->has_rules = hf_json_get(policy, "podFailurePolicy") != NULL;
	bool put = hf_map_put(sim->checks->jobs, job->uid, job);

	hf_assert(put);
}

static void tell_status(struct sim *sim, const struct sim_job_truth *job,
			const struct hf_json *status)
{
	const struct hf_json *list = hf_json_get(status, "conditions");
	size_t len = hf_json_len(list);
	const struct hf_json *last = len > 0 ? hf_json_item(list, len - 1) : NULL;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	if (!sim->story.kept)
		return;
	hf_json_write(hf_json_get(status, "recovery"), HF_JSON_COMPACT, &text);
	sim_tell(sim, "status: %s %s=%s %s %s", job->name,
		 hf_json_str(hf_json_get(last, "type"), "-"),
		 hf_json_str(hf_json_get(last, "status"), "-"),
		 hf_json_str(hf_json_get(last, "message"), ""), text.data);
}

static void job_changed(struct sim *sim, struct hf_doc *before, struct hf_doc *after)
{
	HF_AUTO_JSON old = sim_status(before);
	HF_AUTO_JSON status = sim_status(after);
	struct sim_job_truth *job = sim_job_truth(sim, hf_doc_uid(after));

	job->state = sim_state_of(hf_doc_json(after), status);
	if (hf_json_equal(old, status))
		return;
	tell_status(sim, job, status);
	sim_past_note(sim, job, old, status);
	check_guarded_write(sim, job, before);
	check_terminal_stays(sim, job, status);
	check_counters_never_fall(sim, job, old, status);
	check_ends_count_once(sim, job, status);
	check_incidents_are_charged(sim, job, status);
	check_terminations_have_incident(sim, job, status);
	check_completion_time(sim, job, status);
	check_running_xor_restarting(sim, job, status);
	check_conditions(sim, job, status);
	/* With narrow CRDs the ledger is written to an annotation before the status that belongs to it. */
	if (!hf_json_equal(hf_json_get(hf_doc_json(before), "status"),
			   hf_json_get(hf_doc_json(after), "status")))
		sim_check_texts(sim, job, status);
	check_active_while_suspended(sim, job, status);
	check_limit_of_application(sim, job, hf_doc_json(after), status);
	check_not_ours(sim, job);
	check_foreign_survives(sim, job, status);
	check_small(sim, job, status);
	sim_check_no_progress(sim, job, old, status);
	sim_check_policy(sim, job, after, old, status);
	sim_check_deadline(sim, job, hf_doc_json(after), status);
}

/* "<job>-<type>-<index>", or "<job>-launcher" */
static void read_name(struct sim_pod_truth *pod)
{
	HF_AUTOFREE char *name = hf_xstrdup(pod->name);
	char *index = strrchr(name, '-');

	hf_assert(index != NULL);
	if (hf_streq(index, "-launcher")) {
		pod->role = SIM_LAUNCHER;
		return;
	}
	*index++ = '\0';
	const char *type = strrchr(name, '-');

	hf_assert(type != NULL);
	/* Another controller's pod may have a name like that of a rank; it counts as a worker. */
	pod->role = SIM_WORKER;
	for (int role = 0; role < SIM_ROLES; role++)
		if (strcasecmp(type + 1, sim_role_names[role]) == 0)
			pod->role = (enum sim_role)role;
	int rc = hf_str_to_i64(index, 0, SIM_PODS_MAX - 1, &pod->index, NULL);

	hf_assert(rc == 0);
}

static void pod_created(struct sim *sim, struct hf_doc *doc)
{
	const struct hf_json *object = hf_doc_json(doc);
	struct sim_pod_truth *pod = hf_xcalloc(1, sizeof(*pod));
	struct sim_job_truth *job;

	pod->uid = hf_xstrdup(hf_doc_uid(doc));
	pod->job_uid = hf_xstrdup(sim_controller_uid(object));
	pod->name = hf_xstrdup(hf_doc_name(doc));
	pod->generation = sim_stamp(object, "holdfast.dev/generation");
	pod->attempt = sim_stamp(object, "holdfast.dev/attempt");
	pod->incident = sim_stamp(object, "holdfast.dev/incident");
	pod->fence = sim->mood.fences ? sim_fence_seconds(object) : 0;
	pod->made_at = sim_now(sim);
	sim_past_made(sim, pod);
	read_name(pod);
	bool put = hf_map_put(sim->checks->pods, pod->uid, pod);

	hf_assert(put);
	sim_tell(sim, "store: pod %s is created, generation %lld attempt %lld incident %lld",
		 pod->name, (long long)pod->generation, (long long)pod->attempt,
		 (long long)pod->incident);
	job = sim_job_truth(sim, pod->job_uid);
	check_no_create_after_end(sim, job, doc);
	if (job != NULL)
		check_not_ours(sim, job);
	if (job != NULL)
		job->made++;
	struct hf_doc *stored = job == NULL ? NULL : sim_job_peek(sim, job->name);

	if (stored == NULL || !hf_streq(hf_doc_uid(stored), job->uid))
		return;
	HF_AUTO_JSON status = sim_status(stored);

	check_succeeded_not_run_again(sim, job, pod, status);
	sim_check_trained(sim, job, pod);
	check_no_create_while_suspended(sim, job, pod, hf_doc_json(stored), status);
	sim_check_replace_delay(sim, pod);
	sim_check_barrier(sim, job, pod);
	check_replacement_has_cause(sim, job, pod, status);
	sim_check_avoids(sim, pod, doc, status);
	sim_check_not_made_again(sim, job, pod);
	sim_check_delay(sim, job, pod, stored, status);
	sim_check_delay_of_people(sim, job, pod, status);
}

static bool is_refusal(const char *reason)
{
	return reason != NULL &&
	       (hf_streq(reason, "UnexpectedAdmissionError") || hf_streq(reason, "NodeShutdown") ||
		hf_streq(reason, "NodeAffinity") || strncmp(reason, "OutOf", 5) == 0);
}

/* True if taint eviction deleted the pod, rightly or as a stray. */
static bool was_evicted(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_str(hf_json_get(hf_json_item(list, i), "reason"), ""),
			     "DeletionByTaintManager"))
			return true;
	return false;
}

/* For this time after lost news an operator may not know what they said. */
#define GAP_LASTS (10 * HF_MINUTE)

void sim_check_gap(struct sim *sim)
{
	const char *key;
	void *value;

	/* The value 0 means that no news was ever lost. */
	sim->checks->gap_at = sim_now(sim) > 0 ? sim_now(sim) : 1;
	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		struct sim_pod_truth *pod = value;

		pod->missed =
			pod->missed ||
			(pod->marked && (!pod->gone || sim_now(sim) - pod->gone_at < GAP_LASTS));
	}
}

bool sim_may_miss(const struct sim *sim, const struct sim_pod_truth *pod)
{
	return !pod->marked || pod->missed || sim->n_lives > 1 || sim_lists_lie(sim);
}

static void learn_mark(struct sim *sim, struct sim_pod_truth *pod, const struct hf_json *object)
{
	hf_time gap_at = sim->checks->gap_at;

	if (pod->marked || hf_json_path(object, "metadata", "deletionTimestamp", NULL) == NULL)
		return;
	pod->marked = true;
	pod->missed = gap_at > 0 && sim_now(sim) - gap_at < GAP_LASTS;
}

/* True if the training container failed, the kubelet does not start it again, and another container
 * still runs. */
static bool has_failed_beside(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);

	return hf_streq(hf_json_path_str(pod, "spec", "restartPolicy", NULL), "Never") &&
	       hf_json_i64(
		       hf_json_path(hf_json_item(list, 0), "state", "terminated", "exitCode", NULL),
		       0) != 0 &&
	       hf_json_path(hf_json_item(list, 1), "state", "running", NULL) != NULL;
}

static void learn_end(struct sim_pod_truth *pod, const struct hf_json *object, const char *phase)
{
	pod->succeeded = pod->succeeded || hf_streq(phase, "Succeeded");
	pod->disrupted = pod->disrupted ||
			 sim_condition_is(hf_json_get(object, "status"), "DisruptionTarget");
	/* A pod that failed and is evicted after that keeps its cause. */
	if (!pod->failed && (hf_streq(phase, "Failed") || has_failed_beside(object)))
		pod->failed_alone = !pod->disrupted;
	pod->failed = pod->failed || hf_streq(phase, "Failed") || has_failed_beside(object);
}

static bool has_ended(struct hf_doc *pod, const char *phase)
{
	const struct hf_json *object = hf_doc_json(pod);

	return pod == NULL || hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded") ||
	       has_failed_beside(object) ||
	       hf_json_path(object, "metadata", "deletionTimestamp", NULL) != NULL;
}

static void count_end(struct sim *sim, struct sim_job_truth *job, struct sim_pod_truth *pod,
		      struct hf_doc *after)
{
	pod->ended = true;
	if (job == NULL)
		return;
	job->ended[pod->role][pod->index]++;
	job->ends++;
	job->ours += pod->known && !pod->away && !pod->sick && !pod->stalled;
	sim_check_ended(sim, job, pod, after);
}

static void pod_changed(struct sim *sim, struct hf_doc *after, const char *uid)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, uid);
	const struct hf_json *object = hf_doc_json(after);
	const char *phase = hf_str_or(hf_json_path_str(object, "status", "phase", NULL), "");

	struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);

	learn_end(pod, object, phase);
	learn_mark(sim, pod, object);
	if (job != NULL && after != NULL && was_evicted(object))
		job->evicted = true;
	pod->refused =
		pod->refused || is_refusal(hf_json_path_str(object, "status", "reason", NULL));
	pod->gone = after == NULL;
	if (pod->gone)
		sim_check_gone(sim, pod);
	/* While the operator waits with its verdict, an eviction of the pod counts as the cause. */
	if (job != NULL && pod->ended && pod->disrupted)
		job->must_fail_by = 0;
	if (!pod->ended && has_ended(after, phase))
		count_end(sim, job, pod, after);
}

void sim_check_touched(struct sim *sim, struct hf_doc *doc)
{
	struct sim_job_truth *job = sim_job_truth(sim, hf_doc_uid(doc));
	const char *kind = hf_json_str(hf_json_get(hf_doc_json(doc), "kind"), NULL);

	/* A person acts between two requests of one moment, before the store has told of the new
	 * job. */
	if (job == NULL && hf_streq(kind, sim_kind_of(sim, hf_doc_name(doc))->framework->kind)) {
		job_created(sim, doc);
		job = sim_job_truth(sim, hf_doc_uid(doc));
	}
	if (job == NULL)
		job = sim_job_truth(sim, sim_controller_uid(hf_doc_json(doc)));
	if (job != NULL) {
		job->touched = true;
		job->touched_at = sim_now(sim);
		job->deeds++;
	}
}

void sim_check_oom(struct sim *sim, const char *pod_uid)
{
	sim_pod_truth(sim, pod_uid)->oom = true;
}

void sim_check_unseen(struct sim *sim, const char *pod_uid)
{
	sim_pod_truth(sim, pod_uid)->unseen = true;
}

void sim_check_ends_in_place(struct sim *sim, const char *pod_uid)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);

	struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);

	pod->restarts++;
	pod->ended_in_place_at = sim_now(sim);
	if (job != NULL) {
		job->ends++;
		job->in_place = true;
	}
}

/* An init container ended. An operator that sees the pod only after the program has begun counts
 * nothing for it. */
void sim_check_init_ends(struct sim *sim, const char *pod_uid)
{
	sim_check_ends_in_place(sim, pod_uid);
	sim_pod_truth(sim, pod_uid)->init_ends++;
}

void sim_check_code_lost(struct sim *sim, const char *pod_uid)
{
	sim_pod_truth(sim, pod_uid)->codes_lost++;
}

/* Adds the object, time and version of a change to the digest. Equal runs have equal digests. */
static void digest(struct sim *sim, const struct hf_memstore_change *change, struct hf_doc *doc)
{
	uint64_t value = sim->checks->digest;

	value = (value ^ hf_hash_str(hf_doc_name(doc))) * 0x100000001b3u;
	value = (value ^ hf_hash_str(hf_doc_uid(doc))) * 0x100000001b3u;
	value = (value ^ change->version ^ (uint64_t)sim_now(sim)) * 0x100000001b3u;
	sim->checks->digest = value ^ (value >> 29);
}

/* True for the objects of jobs other than pods: Services, and what MPIJobs and elastic jobs
 * need. */
static bool is_beside_pods(const struct hf_resource *resource)
{
	static const char *const plurals[] = {"services",        "configmaps",
					      "serviceaccounts", "roles",
					      "rolebindings",    "horizontalpodautoscalers"};

	for (size_t i = 0; i < HF_ARRAY_LEN(plurals); i++)
		if (hf_streq(resource->plural, plurals[i]))
			return true;
	return false;
}

static void beside_changed(struct sim *sim, struct hf_doc *doc, bool made)
{
	struct sim_job_truth *job = sim_job_truth(sim, sim_controller_uid(hf_doc_json(doc)));

	if (made)
		check_no_create_after_end(sim, job, doc);
	if (job != NULL)
		*(made ? &job->made : &job->remade) += 1;
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct sim *sim = arg;
	struct hf_doc *doc = change->after != NULL ? change->after : change->before;

	sim->checks->checked++;
	digest(sim, change, doc);
	if (change->resource == &hf_pods) {
		sim_past_changed(sim, change->resource);
		if (change->before == NULL)
			pod_created(sim, doc);
		else
			pod_changed(sim, change->after, hf_doc_uid(doc));
	} else if (is_beside_pods(change->resource) && change->after != NULL) {
		beside_changed(sim, doc, change->before == NULL);
	} else if (hf_resource_is_job(change->resource)) {
		sim_past_changed(sim, change->resource);
		if (change->before == NULL)
			job_created(sim, doc);
		else if (change->after == NULL)
			sim_job_truth(sim, hf_doc_uid(doc))->gone = true;
		else
			job_changed(sim, change->before, change->after);
	}
}

void sim_checks_init(struct sim *sim)
{
	sim->checks = hf_xcalloc(1, sizeof(*sim->checks));
	sim->checks->pods = hf_map_create(TRUTHS_MAX, 0, pod_truth_free);
	sim->checks->jobs = hf_map_create(TRUTHS_MAX, 0, job_truth_free);
	sim->checks->observer = (struct hf_memstore_observer){
		.changed = on_change, .reset = sim_on_reset, .arg = sim};
	hf_memstore_observe(sim->memstore, &sim->checks->observer);
}

void sim_checks_release(struct sim *sim)
{
	hf_memstore_unobserve(sim->memstore, &sim->checks->observer);
	hf_map_destroy(sim->checks->pods);
	hf_map_destroy(sim->checks->jobs);
	free(sim->checks);
}
