/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/nodes.h"

#include "base/mem.h"
#include "base/str.h"
#include "sim/check.h"

#include <stdlib.h>
#include <string.h>

/*
 * Training processes that report their steps to the agents. All ranks of a job step together. So
 * when one rank hangs, the job stands still and no process ends; only the reported steps show it.
 */

#define STANDS_MIN HF_MINUTE
#define STANDS_MAX (15 * HF_MINUTE)
/* An agent reports a rank that stands still every five minutes, with at least 10 s between its
 * writes. Then the operator needs a look. */
#define TOLD_WITHIN (6 * HF_MINUTE)
/* For this time a restart may be due to an old report of a standstill that has just ended. */
#define OVER_TOLD_WITHIN (30 * HF_SECOND)
#define TIMES_SLACK (2 * HF_SECOND)

static struct sim_job_truth *job_of(struct sim *sim, const struct sim_pod_truth *pod)
{
	return pod == NULL ? NULL : sim_job_truth(sim, pod->job_uid);
}

/* Returns the stored job's progressDeadlineSeconds, or -1 if there is none. */
static hf_time deadline_of(struct sim *sim, const struct sim_job_truth *job)
{
	struct hf_doc *doc = sim_job_peek(sim, job->name);
	int64_t seconds;

	if (doc == NULL || !hf_streq(hf_doc_uid(doc), job->uid))
		return -1;
	HF_AUTO_JSON policy = sim_run_policy(doc);

	seconds =
		hf_json_i64(hf_json_path(policy, "recovery", "progressDeadlineSeconds", NULL), -1);
	return seconds < 0 ? -1 : seconds * HF_SECOND;
}

/* --- 37: a standstill ends the generation when its deadline is over, and not before --------------- */

/* The standstill is over by itself, so the job must not have been due for a restart. */
static void check_was_short(struct sim *sim, const struct sim_job_truth *job)
{
	hf_time deadline = deadline_of(sim, job);
	hf_time stood = sim_now(sim) - job->stands_since;

	if (!sim->mood.sunny || sim->n_lives > 1 || sim->mood.per_hour[SIM_BY_NODE] > 0 ||
	    deadline < 0 || job->not_ours || job->terminal != NULL ||
	    job->touched_at >= job->stands_since || job->ends != job->stands_ends ||
	    job->stands_state != SIM_IN_RUNNING)
		return;
	if (stood > deadline + TOLD_WITHIN)
		sim_fail(sim, "37 progress",
			 "job %s stood still for %lld s with a deadline of %lld s, and was not "
			 "restarted",
			 job->name, (long long)(stood / HF_SECOND),
			 (long long)(deadline / HF_SECOND));
}

/* Checks a new incident of the ledger whose reason is NoProgress. */
void sim_check_no_progress(struct sim *sim, const struct sim_job_truth *job,
			   const struct hf_json *before, const struct hf_json *after)
{
	const char *reason = hf_json_path_str(after, "recovery", "last", "reason", NULL);
	hf_time deadline = deadline_of(sim, job);

	if (!hf_streq(reason, "NoProgress") ||
	    sim_ledger_int(after, "incident", "id") <= sim_ledger_int(before, "incident", "id"))
		return;
	if (!sim->mood.trains || deadline < 0) {
		sim_fail(sim, "37 progress",
			 "job %s is restarted for NoProgress without progressDeadlineSeconds",
			 job->name);
		return;
	}
	/* The reports of an agent that is away or cut off are old; they must restart nothing. */
	if (!sim_sees_the_present(sim) || sim->mood.weight[SIM_EDITED] > 0)
		return;
	if (job->stands_since == 0 &&
	    (job->stood_until == 0 || sim_now(sim) - job->stood_until > OVER_TOLD_WITHIN))
		sim_fail(sim, "37 progress", "job %s is restarted for NoProgress, but it advances",
			 job->name);
	else if (job->stands_since > 0 && sim_now(sim) - job->stands_since + TIMES_SLACK < deadline)
		sim_fail(sim, "37 progress",
			 "job %s is restarted for NoProgress after %lld s of %lld", job->name,
			 (long long)((sim_now(sim) - job->stands_since) / HF_SECOND),
			 (long long)(deadline / HF_SECOND));
}

/* --- standstills ---------------------------------------------------------------------------------- */

static void mark_stalled(struct sim *sim, const struct sim_job_truth *job)
{
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		struct sim_pod_truth *pod = value;

		if (pod->alive && hf_streq(pod->job_uid, job->uid))
			pod->stalled = true;
	}
}

static void go_on(struct sim *sim, struct sim_job_truth *job)
{
	sim_tell(sim, "world: job %s advances again", job->name);
	job->stands_since = 0;
	job->stood_until = sim_now(sim);
}

void sim_training_hangs(struct sim *sim, const char *pod_uid)
{
	const struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	struct sim_job_truth *job = job_of(sim, pod);

	if (!sim->mood.trains || job == NULL || !pod->alive || job->stands_since > 0)
		return;
	job->stands_since = sim_now(sim);
	job->stands_until = sim_now(sim) + STANDS_MIN + sim_how_span(sim, STANDS_MAX);
	job->stands_ends = job->ends;
	job->stands_state = job->state;
	free(job->stands_for);
	job->stands_for = hf_xstrdup(pod_uid);
	mark_stalled(sim, job);
	sim_tell(sim, "world: pod %s hangs, so job %s stands still", pod->name, job->name);
}

bool sim_training_stands(struct sim *sim, const char *pod_uid)
{
	struct sim_job_truth *job = job_of(sim, sim_pod_truth(sim, pod_uid));

	if (job == NULL || job->stands_since == 0)
		return false;
	/* In a script the rank hangs until its process is ended. */
	if (sim->script != NULL || (!sim->calm && sim_now(sim) < job->stands_until))
		return true;
	check_was_short(sim, job);
	go_on(sim, job);
	return false;
}

hf_time sim_training_advanced(struct sim *sim, const char *pod_uid)
{
	return sim_training_stands(sim, pod_uid)
		       ? job_of(sim, sim_pod_truth(sim, pod_uid))->stands_since
		       : sim_now(sim);
}

void sim_training_started(struct sim *sim, struct sim_pod_truth *pod)
{
	const struct sim_job_truth *job = job_of(sim, pod);

	/* A rank that starts while another one hangs stands still too. */
	pod->stalled = pod->stalled || (job != NULL && job->stands_since > 0);
}

void sim_training_ended(struct sim *sim, const struct sim_pod_truth *pod)
{
	struct sim_job_truth *job = job_of(sim, pod);

	if (job != NULL && job->stands_since > 0 && hf_streq(job->stands_for, pod->uid))
		go_on(sim, job);
}
