/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "store/resource.h"

#include <ctype.h>
#include <string.h>

/* Invariants of condition messages: a pod that a message names exists. */

/* News of a pod and a write of the status take at most this long, even if requests fail now and
 * then. */
#define NEWS_WITHIN (10 * HF_SECOND)

static bool names(const char *text, const char *pod)
{
	size_t len = strlen(pod);

	for (const char *at = strstr(text, pod); at != NULL; at = strstr(at + 1, pod))
		if ((at == text || at[-1] == ' ') && !isalnum((unsigned char)at[len]) &&
		    at[len] != '-')
			return true;
	return false;
}

/* Returns the newest pod of the job that the text names; NULL: the text names no pod of the job. */
static const struct sim_pod_truth *find_named(struct sim *sim, const struct sim_job_truth *job,
					      const char *text)
{
	const struct sim_pod_truth *last = NULL;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->checks->pods, &it, &key, &value);) {
		const struct sim_pod_truth *pod = value;

		if (hf_streq(pod->job_uid, job->uid) && names(text, pod->name) &&
		    (last == NULL || pod->made_at >= last->made_at))
			last = pod;
	}
	return last;
}

/* True if the pod is gone and the operator has had time to hear of it. Of a pod that vanished
 * unseen the operator hears with the next list, so such a pod does not count. */
static bool is_long_gone(struct sim *sim, const struct sim_pod_truth *pod)
{
	return pod->gone && !pod->unseen && sim_now(sim) - pod->gone_at > NEWS_WITHIN &&
	       hf_memstore_peek(sim->memstore, &hf_pods, "default", pod->name) == NULL;
}

/* 54: a condition holdfast.dev/… with status True names no pod that is gone. */
void sim_check_texts(struct sim *sim, const struct sim_job_truth *job, const struct hf_json *status)
{
	const struct hf_json *list = hf_json_get(status, "conditions");

	if (job->not_ours || job->foreign || !sim_sees_the_present(sim) || sim_lists_lie(sim))
		return;
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *c = hf_json_item(list, i);
		const char *type = hf_json_str(hf_json_get(c, "type"), "");
		const char *text = hf_json_str(hf_json_get(c, "message"), "");
		const struct sim_pod_truth *pod;

		if (!hf_str_has_prefix(type, "holdfast.dev/") ||
		    !hf_streq(hf_json_str(hf_json_get(c, "status"), ""), "True"))
			continue;
		pod = find_named(sim, job, text);
		if (pod != NULL && is_long_gone(sim, pod))
			sim_fail(sim, "54 conditions name what is there",
				 "job %s: condition %s names pod %s, which has been gone for %lld "
				 "s: %s",
				 job->name, type, pod->name,
				 (long long)((sim_now(sim) - pod->gone_at) / HF_SECOND), text);
	}
}
