/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "sim/nodes.h"

/* Invariants of what kubelets say of devices (allocatedResourcesStatus). */

/* a running pod is moved after its kubelet has called its device unhealthy for this time */
#define STANDS_FOR (30 * HF_SECOND)
#define SLACK (2 * HF_SECOND)
#define MOVED_WITHIN (15 * HF_SECOND)

static bool is_ignored(struct sim *sim, const struct sim_job_truth *job)
{
	struct hf_doc *doc = sim_job_peek(sim, job->name);

	if (doc == NULL || !hf_streq(hf_doc_uid(doc), job->uid))
		return true;
	HF_AUTO_JSON policy = sim_run_policy(doc);

	return hf_streq(hf_json_path_str(policy, "recovery", "device", "onUnhealthy", NULL),
			"Ignore");
}

/* 44: a running pod whose kubelet calls its device unhealthy is moved within 15 s after the 30 s of
 * STANDS_FOR. */
static void check_was_moved(struct sim *sim, const struct sim_pod_truth *pod)
{
	const struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);
	hf_time stood = sim_now(sim) - pod->unwell_since;

	if (!sim->mood.sunny || sim->n_lives > 1 || sim->mood.per_hour[SIM_BY_NODE] > 0 ||
	    job == NULL || job->gone || job->not_ours || job->terminal != NULL || pod->ended ||
	    !pod->alive || (job->touched && job->touched_at >= pod->unwell_since) ||
	    is_ignored(sim, job))
		return;
	if (stood > STANDS_FOR + MOVED_WITHIN)
		sim_fail(sim, "44 a kubelet's word",
			 "pod %s has run for %lld s with a device that its kubelet calls unhealthy",
			 pod->name, (long long)(stood / HF_SECOND));
}

void sim_check_word(struct sim *sim, const char *pod_uid, bool unhealthy)
{
	struct sim_pod_truth *pod = sim_pod_truth(sim, pod_uid);
	struct sim_job_truth *job = sim_job_truth(sim, pod->job_uid);

	if (unhealthy == (pod->unwell_since > 0))
		return;
	if (pod->unwell_since > 0)
		check_was_moved(sim, pod);
	pod->unwell_since = unhealthy ? sim_now(sim) : 0;
	if (job != NULL)
		job->deeds++;
	if (!unhealthy)
		return;
	pod->sick = true;
	if (pod->unwell_first == 0)
		pod->unwell_first = sim_now(sim);
	if (job != NULL)
		job->must_fail_by = 0;
}

static const struct sim_pod_truth *newest_of(struct sim *sim, const struct sim_job_truth *job,
					     const char *name)
{
	const struct sim_pod_truth *found = NULL;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		if (hf_streq(pod->name, name) && hf_streq(pod->job_uid, job->uid) &&
		    (found == NULL || pod->made_at > found->made_at))
			found = pod;
	}
	return found;
}

/* 44: a running pod is not moved before its kubelet has called its device unhealthy for 30 s.
 * "Unknown" and "Healthy" move no pod. An operator that is behind may have missed that the kubelet
 * took its word back. */
void sim_check_moved(struct sim *sim, const struct sim_job_truth *job, const struct hf_json *before,
		     const struct hf_json *after)
{
	const struct hf_json *last = hf_json_path(after, "recovery", "last", NULL);
	const struct sim_pod_truth *pod;
	hf_time since;

	if (!sim->mood.plugins || !hf_streq(hf_json_path_str(last, "cause", NULL), "device") ||
	    sim_ledger_int(after, "incident", "id") <= sim_ledger_int(before, "incident", "id"))
		return;
	pod = newest_of(sim, job, hf_json_path_str(last, "pod", NULL));
	if (pod == NULL || pod->ended || pod->restarts > 0)
		return;
	since = sim_sees_the_present(sim) && sim->n_lives == 1 ? pod->unwell_since
							       : pod->unwell_first;
	if (since == 0 || sim_now(sim) - since < STANDS_FOR - SLACK)
		sim_fail(sim, "44 a kubelet's word",
			 "pod %s runs and is moved, but its kubelet has called its device "
			 "unhealthy for only %lld s",
			 pod->name,
			 since == 0 ? 0 : (long long)((sim_now(sim) - since) / HF_SECOND));
}
