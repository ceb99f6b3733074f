/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "sim/nodes.h"

#include <stdio.h>
#include <string.h>

/*
 * Invariants of what a job asks for: limits, delays, deadlines, restart policies, clean-up and time
 * to live.
 */

#define SLACK (3 * HF_SECOND) /* stored times are whole seconds, and a write takes a moment */
#define BACKOFF_INITIAL 10    /* recovery.backoff */
#define BACKOFF_MAX 600
#define BACKOFF_RESET HF_HOUR
#define SETTLE_DEFAULT 20
#define REPLACE_DELAY 2 /* recovery.replaceDelaySeconds */
#define CLEANED_WITHIN (10 * HF_SECOND)
/* Longer than the time between two renewals of a kubelet. */
#define DEAD_BEFORE (12 * HF_SECOND)

static bool works_well(const struct sim *sim)
{
	return sim->mood.sunny && sim->n_lives == 1 && sim->script == NULL;
}

static bool clocks_are_right(const struct sim *sim)
{
	return sim->mood.per_hour[SIM_BY_LIFE] == 0 ||
	       sim->mood.weight[SIM_CLOCK_SERVER] + sim->mood.weight[SIM_CLOCK_OPERATOR] == 0;
}

static hf_time time_in(const struct hf_json *value)
{
	hf_time at = HF_TIME_NONE;
	const char *text = hf_json_str(value, NULL);

	return text != NULL && hf_time_parse(text, &at, NULL) == 0 ? at : HF_TIME_NONE;
}

static const char *failed_message(const struct hf_json *status)
{
	const struct hf_json *list = hf_json_get(status, "conditions");

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "type", NULL), "Failed"))
			return hf_str_or(hf_json_path_str(hf_json_item(list, i), "message", NULL),
					 "");
	return "";
}

/* --- 23, of the other budgets ------------------------------------------------------------------- */

static void check_limit(struct sim *sim, const struct sim_job_truth *job,
			const struct hf_json *policy, const struct hf_json *status,
			const char *budget, const char *key)
{
	const struct hf_json *limit = hf_json_path(policy, "recovery", key, NULL);
	int64_t used = sim_ledger_int(status, "restarts", budget);

	if (limit != NULL && used > hf_json_i64(limit, 0) && sim_terminal_of(status) == NULL &&
	    hf_json_path(status, "recovery", "verdict", NULL) == NULL)
		sim_fail(sim, "23 limit", "job %s goes on with %lld of %lld charged to %s",
			 job->name, (long long)used, (long long)hf_json_i64(limit, 0), budget);
}

/* --- 27: over active time, neither late nor early ------------------------------------------------- */

static hf_time active_time(const struct sim *sim, const struct sim_job_truth *job, hf_time start)
{
	hf_time now = hf_loop_wall(sim->loop);

	return job->active + (start == HF_TIME_NONE || now < start ? 0 : now - start);
}

/* Returns the deadline of the job, or -1 if there is none that can be checked. A job that is being
 * deleted does not fail any more. */
static hf_time deadline_of(const struct sim *sim, const struct sim_job_truth *job,
			   const struct hf_json *spec)
{
	int64_t seconds = hf_json_i64(
		hf_json_path(spec, "spec", "runPolicy", "activeDeadlineSeconds", NULL), -1);

	if (sim->mood.weight[SIM_EDITED] > 0 || !clocks_are_right(sim) || job->not_ours ||
	    hf_json_path(spec, "metadata", "deletionTimestamp", NULL) != NULL)
		return -1;
	return seconds < 0 ? -1 : seconds * HF_SECOND;
}

static void check_active_time(struct sim *sim, struct sim_job_truth *job,
			      const struct hf_json *spec, const struct hf_json *before,
			      const struct hf_json *after)
{
	hf_time was = time_in(hf_json_get(before, "startTime"));
	hf_time is = time_in(hf_json_get(after, "startTime"));
	hf_time deadline = deadline_of(sim, job, spec), active, slack;
	bool ends = sim_terminal_of(after) != NULL;

	if (was != HF_TIME_NONE && is != was) {
		job->active = active_time(sim, job, was);
		job->runs_before++;
	}
	active = active_time(sim, job, is);
	/* The ledger stores activeSeconds of each active period in whole seconds. */
	slack = SLACK + job->runs_before * HF_SECOND;
	/* After its end a job is not active. */
	if (deadline < 0 || is == HF_TIME_NONE || sim_terminal_of(before) != NULL)
		return;
	if (ends && strstr(failed_message(after), "longer than specified deadline") != NULL &&
	    active + slack < deadline)
		sim_fail(sim, "27 deadline", "job %s failed for its deadline after %lld s of %lld",
			 job->name, (long long)(active / HF_SECOND),
			 (long long)(deadline / HF_SECOND));
	if (works_well(sim) && active > deadline + slack)
		sim_fail(sim, "27 deadline",
			 "job %s was active for %lld s, and its deadline is %lld s", job->name,
			 (long long)(active / HF_SECOND), (long long)(deadline / HF_SECOND));
}

/* --- 21: a verdict of the application's does not come before its cause ------------------------------ */

static bool was_dead_before(struct sim *sim, const struct sim_pod_truth *pod, hf_time verdict_at)
{
	const struct sim_node *node = sim_node_get(sim, pod->node);
	hf_time verdict = verdict_at - hf_loop_wall(sim->loop) + sim_now(sim);

	/* An agent that was heard later shows that only the kubelet was dead by then. */
	return node != NULL && node->exists && !sim_node_alive(node) && !pod->ended &&
	       !sim_agent_spoke(node, sim_now(sim) - verdict) &&
	       node->dead_since + DEAD_BEFORE < verdict;
}

/* True if the pod's own container has ended with 0, another container keeps the pod, and the ledger
 * lists the rank as trained or succeeded. */
static bool has_done_its_work(const struct sim_pod_truth *pod, const struct hf_json *status)
{
	const char *role = sim_role_names[pod->role];

	return pod->held_at > 0 && pod->held_code == 0 &&
	       (sim_ranges_have(sim_ledger_text(status, role, "trained"), pod->index) ||
		sim_ranges_have(sim_ledger_text(status, role, "succeeded"), pod->index));
}

static void check_cause_comes_first(struct sim *sim, const struct sim_job_truth *job,
				    const struct hf_json *policy, const struct hf_json *before,
				    const struct hf_json *after)
{
	hf_time at = time_in(hf_json_path(before, "recovery", "verdict", "at", NULL));
	const char *key;
	void *value;

	if (!works_well(sim) || sim->mood.weight[SIM_KCM_RESTART] > 0 || job->touched ||
	    job->has_rules || sim_terminal_of(before) != NULL ||
	    strstr(failed_message(after), "replica(s) failed") == NULL ||
	    hf_json_i64(hf_json_path(policy, "recovery", "settleSeconds", NULL), SETTLE_DEFAULT) <
		    SETTLE_DEFAULT)
		return;
	if (at == HF_TIME_NONE)
		at = hf_loop_wall(sim->loop);
	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		if (hf_streq(pod->job_uid, job->uid) && was_dead_before(sim, pod, at) &&
		    !has_done_its_work(pod, before))
			sim_fail(sim, "21 the cause comes first",
				 "job %s failed for its application, but pod %s is on node %s, "
				 "which died before",
				 job->name, pod->name, pod->node);
	}
}

/* --- 2: a new generation is whole -------------------------------------------------------------------- */

/* the operator uses a name again when it has the news of the old pod's end */
#define FREED (2 * HF_SECOND)

/* True if a pod of another owner has the name of this rank, or had it a moment ago, or vanished
 * unseen. The other ranks then run without this rank. */
static bool is_squatted(struct sim *sim, const struct sim_job_truth *job, int role, int64_t index)
{
	size_t len = strlen(job->name);
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		if (pod->role == (enum sim_role)role && pod->index == index &&
		    !hf_streq(pod->job_uid, job->uid) && strncmp(pod->name, job->name, len) == 0 &&
		    pod->name[len] == '-' &&
		    (!pod->gone || pod->unseen || sim_now(sim) - pod->gone_at < FREED))
			return true;
	}
	return false;
}

static bool has_pod(struct sim *sim, const struct sim_job_truth *job, int role, int64_t index,
		    int64_t generation)
{
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		if (pod->role == (enum sim_role)role && pod->index == index &&
		    pod->generation == generation && hf_streq(pod->job_uid, job->uid))
			return true;
	}
	return false;
}

/* True if the name of this rank may not be used yet (replaceDelaySeconds). The other ranks may
 * finish before it is free. */
static bool name_rests(struct sim *sim, const struct sim_job_truth *job, int role, int64_t index,
		       struct hf_doc *doc)
{
	hf_time delay = hf_json_i64(hf_json_path(hf_doc_json(doc), "spec", "runPolicy", "recovery",
						 "replaceDelaySeconds", NULL),
				    REPLACE_DELAY) *
			HF_SECOND;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		if (pod->role == (enum sim_role)role && pod->index == index && pod->gone &&
		    hf_streq(pod->job_uid, job->uid) && sim_now(sim) - pod->gone_at < delay)
			return true;
	}
	return false;
}

static void check_generation_is_whole(struct sim *sim, const struct sim_job_truth *job,
				      struct hf_doc *doc, const struct hf_json *before,
				      const struct hf_json *after)
{
	const struct hf_json *replicas = sim_replicas_of(sim, doc);
	int64_t generation = sim_ledger_int(after, NULL, "generation");

	if (!works_well(sim) || job->touched || !job->scope_job ||
	    sim_terminal_of(before) != NULL || !sim_condition_is(after, "Succeeded"))
		return;
	for (int role = 0; role < SIM_ROLES; role++) {
		const struct hf_json *spec = hf_json_get(replicas, sim_role_names[role]);
		/* A type without `replicas` is not checked: the operator has a default for it. */
		int64_t n = hf_json_i64(hf_json_get(spec, "replicas"), 0);

		for (int64_t i = 0; i < n; i++)
			if (!has_pod(sim, job, role, i, generation) &&
			    !is_squatted(sim, job, role, i) && !name_rests(sim, job, role, i, doc))
				sim_fail(sim, "2 a generation is whole",
					 "job %s succeeded, but %s %lld had no pod in generation "
					 "%lld",
					 job->name, sim_role_names[role], (long long)i,
					 (long long)generation);
	}
}

/* --- the delay of a restart ------------------------------------------------------------------------ */

/* Returns the newest pod of a rank if it is gone, else NULL. A pod that went before the operator
 * had stored its existence is created again with the same stamps, so two pods may have equal
 * stamps. */
static const struct sim_pod_truth *last_gone(struct sim *sim, const struct sim_job_truth *job,
					     const char *replica)
{
	const struct sim_pod_truth *found = NULL;
	char name[128];
	const char *key;
	void *value;

	snprintf(name, sizeof(name), "%s-%s", job->name, replica);
	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		if (hf_streq(pod->job_uid, job->uid) && hf_streq(pod->name, name) &&
		    (found == NULL || pod->made_at >= found->made_at))
			found = pod;
	}
	return found != NULL && found->gone ? found : NULL;
}

/* 4: the operator knows that a pod was being deleted when it went, so the pod does not count as
 * vanished. */
static void check_vanished(struct sim *sim, const struct sim_job_truth *job,
			   const struct hf_json *status)
{
	const struct hf_json *record = hf_json_path(status, "recovery", "last", NULL);
	const char *replica = hf_json_str(hf_json_get(record, "replica"), NULL);
	const struct sim_pod_truth *pod;

	if (replica == NULL || hf_json_get(record, "pod") != NULL ||
	    !hf_streq(hf_json_str(hf_json_get(record, "cause"), NULL), "infrastructure"))
		return;
	pod = last_gone(sim, job, replica);
	if (pod != NULL && !sim_may_miss(sim, pod))
		sim_fail(sim, "4 a delete costs nothing",
			 "pod %s was deleted, but counts as vanished", pod->name);
}

/* two deeds of people farther apart than this are single ones */
#define USER_APART (300 * HF_SECOND)
#define USER_WAIT (5 * HF_SECOND)

static void note_user(struct sim *sim, struct sim_job_truth *job, const struct hf_json *status)
{
	const char *cause = hf_json_path_str(status, "recovery", "incident", "cause", NULL);

	if (!hf_streq(cause, "user"))
		return;
	job->user_again = job->user_at > 0 && sim_now(sim) - job->user_at < USER_APART &&
			  job->user_runs == job->runs_before;
	job->user_at = sim_now(sim);
	job->user_runs = job->runs_before;
}

static void note_incident(struct sim *sim, struct sim_job_truth *job, const struct hf_json *status)
{
	int64_t id = sim_ledger_int(status, "incident", "id");

	if (id == job->incident)
		return;
	check_vanished(sim, job, status);
	job->late = job->late ||
		    (job->incident > 0 && sim_now(sim) - job->incident_at >= BACKOFF_RESET);
	note_user(sim, job, status);
	job->incident = id;
	job->incident_at = sim_now(sim);
}

/* 38: a restart after the second or a later charge to the application waits
 * recovery.backoff.initialSeconds at least. */
void sim_check_delay(struct sim *sim, const struct sim_job_truth *job,
		     const struct sim_pod_truth *pod, struct hf_doc *doc,
		     const struct hf_json *status)
{
	HF_AUTO_JSON policy = sim_run_policy(doc);
	const struct hf_json *backoff = hf_json_path(policy, "recovery", "backoff", NULL);
	int64_t wait = hf_json_i64(hf_json_get(backoff, "initialSeconds"), BACKOFF_INITIAL);
	int64_t max = hf_json_i64(hf_json_get(backoff, "maxSeconds"), BACKOFF_MAX);

	wait = wait < max ? wait : max;
	if (job->touched || job->in_place || job->late || sim->n_lives > 1 ||
	    !clocks_are_right(sim) || pod->attempt + pod->generation <= 1 ||
	    pod->incident != job->incident ||
	    sim_ledger_int(status, "restarts", "application") < 2 ||
	    !hf_streq(hf_json_path_str(status, "recovery", "incident", "charged", NULL),
		      "application"))
		return;
	if (sim_now(sim) - job->incident_at + SLACK < wait * HF_SECOND)
		sim_fail(sim, "38 delay",
			 "pod %s is created %lld s after incident %lld, but has to wait %lld s",
			 pod->name, (long long)((sim_now(sim) - job->incident_at) / HF_SECOND),
			 (long long)job->incident, (long long)wait);
}

/* 47: a rank that people delete or restart again within five minutes waits 5 s before it is created
 * again. */
void sim_check_delay_of_people(struct sim *sim, const struct sim_job_truth *job,
			       const struct sim_pod_truth *pod, const struct hf_json *status)
{
	if (!job->user_again || sim->n_lives > 1 || !clocks_are_right(sim) ||
	    sim->mood.weight[SIM_EDITED] > 0 || job->user_runs != job->runs_before ||
	    pod->attempt + pod->generation <= 1 || pod->incident != job->incident ||
	    !hf_streq(hf_json_path_str(status, "recovery", "incident", "cause", NULL), "user"))
		return;
	if (sim_now(sim) - job->user_at + SLACK < USER_WAIT)
		sim_fail(sim, "47 delay of people",
			 "pod %s is created only %lld ms after people deleted or restarted it "
			 "again",
			 pod->name, (long long)((sim_now(sim) - job->user_at) / HF_MS));
}

/* --- at each change of a status -------------------------------------------------------------------- */

void sim_check_policy(struct sim *sim, struct sim_job_truth *job, struct hf_doc *doc,
		      const struct hf_json *before, const struct hf_json *after)
{
	HF_AUTO_JSON policy = sim_run_policy(doc);

	note_incident(sim, job, after);
	check_limit(sim, job, policy, after, "infrastructure", "infrastructureLimit");
	check_limit(sim, job, policy, after, "device", "deviceLimit");
	check_active_time(sim, job, hf_doc_json(doc), before, after);
	check_cause_comes_first(sim, job, policy, before, after);
	sim_check_moved(sim, job, before, after);
	check_generation_is_whole(sim, job, doc, before, after);
}

/* --- 39: whoever runs can be found -------------------------------------------------------------------- */

void sim_check_service(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod)
{
	const struct hf_doc *service =
		hf_memstore_peek(sim->memstore, &hf_services, "default", pod->name);

	if (works_well(sim) && !job->touched && job->terminal == NULL && service == NULL &&
	    sim->mood.weight[SIM_SERVICE_DELETED] + sim->mood.weight[SIM_SQUATTED] == 0 &&
	    sim_kind_of(sim, job->name)->framework->has_services)
		sim_fail(sim, "39 service", "pod %s runs but has no Service", pod->name);
}

/* --- what is to end does not run to its end ------------------------------------------------------------- */

/* 41: the pods of a job that was scaled down end within 10 s. */
static void check_beyond(struct sim *sim, const struct sim_job_truth *job,
			 const struct sim_pod_truth *pod, struct hf_doc *doc)
{
	int64_t replicas = hf_json_i64(hf_json_path(sim_replicas_of(sim, doc),
						    sim_role_names[pod->role], "replicas", NULL),
				       INT64_MAX);

	if (pod->index >= replicas && job->terminal == NULL &&
	    sim_now(sim) - job->touched_at > CLEANED_WITHIN)
		sim_fail(sim, "41 scale", "pod %s ran on, but job %s has only %lld replicas",
			 pod->name, job->name, (long long)replicas);
}

/* 40: after the end of a job, pods that its clean-up policy removes do not run on. */
void sim_check_ran_on(struct sim *sim, const struct sim_job_truth *job,
		      const struct sim_pod_truth *pod)
{
	struct hf_doc *stored = sim_job_peek(sim, job->name);
	const char *clean =
		hf_json_path_str(hf_doc_json(stored), "spec", "runPolicy", "cleanPodPolicy", NULL);

	if (!works_well(sim) || sim->mood.per_hour[SIM_BY_NODE] > 0 || job->not_ours ||
	    pod->ended || pod->known || stored == NULL || !hf_streq(hf_doc_uid(stored), job->uid))
		return;
	check_beyond(sim, job, pod, stored);
	if (sim->mood.weight[SIM_EDITED] == 0 && job->terminal != NULL &&
	    sim_now(sim) - job->ended_at > CLEANED_WITHIN &&
	    (hf_streq(clean, "All") || hf_streq(clean, "Running") || sim_stops_pods(job, stored)))
		sim_fail(sim, "40 clean-up", "pod %s ran on for %lld s after the end of job %s",
			 pod->name, (long long)((sim_now(sim) - job->ended_at) / HF_SECOND),
			 job->name);
}

/* --- in the end -------------------------------------------------------------------------------------- */

/* 26, at the end: no job is left whose time to live is over. If its pods hold it up, the checks of
 * pods report that. */
void sim_check_left(struct sim *sim, struct hf_doc *doc)
{
	const struct hf_json *job = hf_doc_json(doc);

	if (sim_terminal_of(hf_json_get(job, "status")) != NULL &&
	    hf_json_path(job, "spec", "runPolicy", "ttlSecondsAfterFinished", NULL) != NULL &&
	    hf_json_path(job, "spec", "runPolicy", "managedBy", NULL) == NULL &&
	    hf_json_path(job, "metadata", "deletionTimestamp", NULL) == NULL)
		sim_fail(sim, "26 time to live", "job %s still exists after its time to live",
			 hf_doc_name(doc));
}

/* 40, at the end: the pods of an ended job are left that its clean-up policy keeps, and no
 * others. */
void sim_check_cleaned(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod)
{
	struct hf_doc *stored = sim_job_peek(sim, job->name);
	const char *clean = hf_str_or(
		hf_json_path_str(hf_doc_json(stored), "spec", "runPolicy", "cleanPodPolicy", NULL),
		"None");

	if (stored == NULL || !hf_streq(hf_doc_uid(stored), job->uid) || job->not_ours)
		return;
	if (hf_streq(clean, "All") ||
	    (hf_streq(clean, "Running") && !pod->failed && !pod->succeeded))
		sim_fail(sim, "40 clean-up", "pod %s is left of job %s, whose cleanPodPolicy is %s",
			 pod->name, job->name, clean);
}
