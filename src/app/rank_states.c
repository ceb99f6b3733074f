/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads from the pods of a run which ranks have failed, have not ended, never ran or can never start. */
#include "app/rank_states.h"

#include "app/job_resources.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "store/resource.h"

#include <inttypes.h>

static const char *phase_of(struct hf_doc *pod)
{
	return hf_json_path_str(hf_doc_json(pod), "status", "phase", NULL);
}

static void see_rank(void *arg, struct hf_doc *pod)
{
	struct hf_rank_states *states = arg;

	if (hf_streq(phase_of(pod), "Failed"))
		states->failed = pod;
	else if (!hf_streq(phase_of(pod), "Succeeded"))
		states->unfinished = hf_doc_name(pod);
}

struct hf_rank_states hf_rank_states_of(struct hf_memstore *store, const char *ns)
{
	struct hf_rank_states states = {.unfinished = NULL};

	hf_memstore_each(store, &hf_pods, ns, see_rank, &states);
	return states;
}

static void see_status(struct hf_blocked_pod *blocked, struct hf_doc *pod,
		       const struct hf_json *status)
{
	const struct hf_json *waiting = hf_json_path(status, "state", "waiting", NULL);

	if (!hf_streq(hf_json_path_str(waiting, "reason", NULL), "CreateContainerConfigError"))
		return;
	blocked->pod = hf_doc_name(pod);
	blocked->message = hf_str_or(hf_json_path_str(waiting, "message", NULL),
				     "its container cannot be made");
}

static void see_blocked(void *arg, struct hf_doc *pod)
{
	static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
	struct hf_blocked_pod *blocked = arg;

	for (size_t i = 0; i < HF_ARRAY_LEN(lists); i++) {
		const struct hf_json *list =
			hf_json_path(hf_doc_json(pod), "status", lists[i], NULL);

		for (size_t k = 0; k < hf_json_len(list); k++)
			see_status(blocked, pod, hf_json_item(list, k));
	}
}

struct hf_blocked_pod hf_blocked_pod_of(struct hf_memstore *store, const char *ns)
{
	struct hf_blocked_pod blocked = {.pod = NULL};

	hf_memstore_each(store, &hf_pods, ns, see_blocked, &blocked);
	return blocked;
}

bool hf_restarts_without_limit(const struct hf_json *job, const struct hf_json *pod)
{
	struct hf_job_facts facts;

	if (hf_json_path(job, "spec", "runPolicy", "backoffLimit", NULL) != NULL)
		return false;
	hf_job_facts_read(job, &facts);
	return facts.charged[HF_BUDGET_APPLICATION] > 0 ||
	       hf_json_i64(hf_json_get(hf_pod_main_status(pod), "restartCount"), 0) > 0;
}

void hf_note_started(struct hf_map *started, struct hf_doc *pod)
{
	if (hf_streq(phase_of(pod), "Running") || hf_streq(phase_of(pod), "Succeeded") ||
	    hf_streq(phase_of(pod), "Failed"))
		(void)!hf_map_put(started, hf_doc_name(pod), started);
}

char *hf_never_started(const struct hf_manifest *manifest, const struct hf_json *job,
		       const struct hf_map *started)
{
	int64_t n = (int64_t)hf_map_len(started), all = 0;
	struct hf_job_replicas r;

	for (void *it = NULL; hf_job_replicas_next(manifest->framework, job, &it, &r);)
		all += r.n > 0 && r.n < INT32_MAX ? r.n : 0;
	if (n >= all || hf_json_path(job, "spec", "elasticPolicy", NULL) != NULL)
		return NULL;
	return hf_xasprintf("%" PRId64 " of %" PRId64
			    " ranks never started: the job succeeded without them",
			    all - n, all);
}

const char *hf_rank_unschedulable(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);
		if (hf_streq(hf_json_path_str(item, "type", NULL), "PodScheduled") &&
		    hf_streq(hf_json_path_str(item, "reason", NULL), "Unschedulable"))
			return hf_json_path_str(item, "message", NULL);
	}
	return NULL;
}
