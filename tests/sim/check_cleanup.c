/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "store/resource.h"

/*
 * Invariants of pods with a second container, and of what the end of a job leaves: which pods the
 * operator may end and keep, and which it must end.
 */

#define SLACK (2 * HF_SECOND)
#define CLEANED_WITHIN (10 * HF_SECOND)
/* A verdict waits at most settleSeconds (20 s by default) for news of the nodes. A few seconds more
 * are allowed. */
#define SETTLED_WITHIN (25 * HF_SECOND)

static bool works_well(const struct sim *sim)
{
	return sim->mood.sunny && sim->n_lives == 1 && sim->script == NULL &&
	       sim->mood.per_hour[SIM_BY_NODE] == 0;
}

static bool keeps_pods(struct hf_doc *job)
{
	HF_AUTO_JSON policy = sim_run_policy(job);

	return hf_streq(hf_json_path_str(policy, "recovery", "podsAfterEnd", NULL), "Keep");
}

/* Returns -1 if the job sets no sidecarGraceSeconds. */
static hf_time grace_of(struct hf_doc *job)
{
	HF_AUTO_JSON policy = sim_run_policy(job);
	int64_t seconds =
		hf_json_i64(hf_json_path(policy, "recovery", "sidecarGraceSeconds", NULL), -1);

	return seconds < 0 ? -1 : seconds * HF_SECOND;
}

/* Returns the stored job of a pod, or NULL if the job is gone or another job has its name. */
static struct hf_doc *job_of(struct sim *sim, const struct sim_job_truth *job)
{
	struct hf_doc *stored = job == NULL ? NULL : sim_job_peek(sim, job->name);

	return stored != NULL && hf_streq(hf_doc_uid(stored), job->uid) ? stored : NULL;
}

bool sim_stops_pods(const struct sim_job_truth *job, struct hf_doc *stored)
{
	return hf_streq(job->terminal, "Failed") && !keeps_pods(stored);
}

/* --- containers that outlive the training container ------------------------------------------------ */

void sim_check_held(struct sim *sim, const char *pod_uid, int code)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);

	/* The value 0 means that held_at is not set. */
	pod->held_at = sim_now(sim) > 0 ? sim_now(sim) : 1;
	pod->held_code = code;
}

/* True for kinds and jobs that may go on without a rank that has failed. */
static bool may_do_without(struct sim *sim, struct hf_doc *job)
{
	const struct hf_resource *resource = sim_kind_of(sim, hf_doc_name(job))->resource;

	return resource == &hf_tfjobs || resource == &hf_mpijobs ||
	       hf_json_path(hf_doc_json(job), "spec", "elasticPolicy", NULL) != NULL;
}

/* 50: the operator ends a pod soon after its program has failed, and sidecarGraceSeconds after its
 * program has succeeded, although another container runs on. */
void sim_check_held_ends(struct sim *sim, const char *pod_uid)
{
	const struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	struct hf_doc *stored = job_of(sim, job);
	hf_time grace = stored == NULL ? -1 : grace_of(stored);
	hf_time held = sim_now(sim) - pod->held_at;

	if (stored == NULL || !works_well(sim) || job->not_ours || job->touched ||
	    job->terminal != NULL || pod->known)
		return;
	if (pod->held_code != 0 && held > SETTLED_WITHIN && !may_do_without(sim, stored))
		sim_fail(sim, "50 sidecar",
			 "the program of %s failed %lld s ago, but the operator has not ended the "
			 "pod",
			 pod->name, (long long)(held / HF_SECOND));
	if (pod->held_code == 0 && grace >= 0 && held > grace + CLEANED_WITHIN)
		sim_fail(sim, "50 sidecar",
			 "pod %s was kept for %lld s after its program succeeded, and "
			 "sidecarGraceSeconds is %lld",
			 pod->name, (long long)(held / HF_SECOND), (long long)(grace / HF_SECOND));
}

/* 53: a rank that the ledger lists as trained is not created again in its generation, whatever
 * happens to its pod. Exceptions: people restart the rank, take it out of the job, or edit the
 * ledger. */
void sim_check_trained(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod)
{
	if (job->trained_in[pod->role][pod->index] == pod->generation && pod->generation > 0 &&
	    !job->touched && !job->foreign && sim->mood.weight[SIM_EDITED] == 0 &&
	    !sim_lists_lie(sim) && sim_sees_the_present(sim))
		sim_fail(sim, "53 trained is not run again", "%s", pod->name);
}

/* --- pods that are ended and kept -------------------------------------------------------------------- */

/* 50: before the end of a job, the operator may end a pod only if its program has succeeded and the
 * grace of the job is over. */
static void check_released(struct sim *sim, const struct sim_pod_truth *pod, struct hf_doc *stored)
{
	hf_time grace = grace_of(stored);
	/* A kubelet reports that the container has ended before it reports that the pod has. The
	 * operator may have seen the first report alone; then it ends a pod that has ended. */
	hf_time since = pod->held_at == 0 && pod->succeeded ? pod->process_end : pod->held_at;

	if (since == 0 || pod->held_code != 0 || grace < 0 || sim_now(sim) - since + SLACK < grace)
		sim_fail(sim, "50 sidecar", "%s is ended, and %s", pod->name,
			 since == 0            ? "its program runs"
			 : pod->held_code != 0 ? "its program has failed"
			 : grace < 0           ? "its job sets no grace"
					       : "its grace is not over");
}

/* 51: the operator ends and keeps a pod only if the job has failed or the rank has succeeded. */
void sim_check_stop(struct sim *sim, const struct hf_request *request)
{
	struct hf_doc *object;
	const char *uid;
	struct sim_pod_truth *pod;
	const struct sim_job_truth *job;

	if (request->verb != HF_VERB_PATCH || request->resource != &hf_pods ||
	    request->subresource != NULL)
		return;
	object = hf_memstore_peek(sim->memstore, request->resource, request->ns, request->name);
	uid = hf_json_path_str(hf_doc_json(request->body), "metadata", "uid", NULL);
	if (uid == NULL)
		sim_fail(sim, "28 only ours", "the end of %s names no UID", request->name);
	if (object == NULL || !hf_streq(hf_doc_uid(object), uid))
		return;
	pod = sim_pod_truth(sim, uid);
	job = sim_job_truth(sim, pod->job_uid);
	if (job == NULL) {
		sim_fail(sim, "28 only ours",
			 "the operator ends %s, which no job of the world controls", request->name);
		return;
	}
	pod->known = true;
	if (job_of(sim, job) == NULL || sim->mood.weight[SIM_EDITED] > 0)
		return;
	if (job->terminal == NULL || !sim_stops_pods(job, job_of(sim, job)))
		check_released(sim, pod, job_of(sim, job));
}

/* --- after the end ------------------------------------------------------------------------------------ */

/* 52: a pod that has not begun when its job fails never begins. */
void sim_check_begins(struct sim *sim, const struct sim_job_truth *job, struct sim_pod_truth *pod)
{
	struct hf_doc *stored = job_of(sim, job);
	bool first = !pod->begun;

	sim_check_follows(sim, pod);
	pod->begun = true;
	if (stored == NULL || job->terminal == NULL || !first || !works_well(sim) ||
	    job->not_ours || !sim_stops_pods(job, stored) || sim_now(sim) - job->ended_at < SLACK)
		return;
	sim_fail(sim, "52 begins after the end", "pod %s begins %lld s after the end of job %s",
		 pod->name, (long long)((sim_now(sim) - job->ended_at) / HF_SECOND), job->name);
}

/* 51, at the end: a failed job leaves no pod that runs or waits to begin, but with podsAfterEnd:
 * Keep. */
void sim_check_leftover(struct sim *sim, const struct sim_job_truth *job,
			const struct sim_pod_truth *pod)
{
	struct hf_doc *stored = job_of(sim, job);

	if (stored == NULL || job->not_ours || keeps_pods(stored) || pod->failed || pod->succeeded)
		return;
	if (sim_stops_pods(job, stored))
		sim_fail(sim, "51 a failed job uses nothing",
			 "pod %s is left of job %s, which has condition %s", pod->name, job->name,
			 job->terminal);
}
