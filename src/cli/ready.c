/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Counts the Ready pods of each job. Input: each version of each pod. Invariant: `pods` holds
 * the UID of each pod that a count in `jobs` includes. */
#include "cli/ready.h"

#include "base/map.h"
#include "base/mem.h"
#include "cli/facts.h"
#include "cli/request.h"
#include "core/model/names.h"

#include <stdlib.h>

/* A fixed seed of the map is safe: its keys are UIDs and names that the server made, not a hostile
 * user's choice, and no output depends on the order. */
#define SEED 0x7265616479u

struct count {
	int64_t n;
};

struct hf_ready {
	struct hf_map *jobs; /* "namespace/job" to struct count */
	struct hf_map *pods; /* maps the UID of each Ready pod to the struct count of its job */
};

struct hf_ready *hf_ready_create(void)
{
	struct hf_ready *ready = hf_xcalloc(1, sizeof(*ready));

	ready->jobs = hf_map_create(HF_CLI_ITEMS_MAX, SEED, free);
	ready->pods = hf_map_create(HF_CLI_ITEMS_MAX, SEED, NULL);
	return ready;
}

struct hf_ready *hf_ready_destroy(struct hf_ready *ready)
{
	if (ready == NULL)
		return NULL;
	hf_map_destroy(ready->pods);
	hf_map_destroy(ready->jobs);
	free(ready);
	return NULL;
}

const char *hf_pod_job(struct hf_doc *pod)
{
	return hf_json_path_str(hf_doc_json(pod), "metadata", "labels", HF_LABEL_JOB_NAME, NULL);
}

static struct count *count_of(struct hf_ready *ready, const char *ns, const char *job)
{
	HF_AUTOFREE char *key = hf_xasprintf("%s/%s", ns, job);
	struct count *count = hf_map_get(ready->jobs, key);

	if (count != NULL)
		return count;
	count = hf_xcalloc(1, sizeof(*count));
	if (hf_map_put(ready->jobs, key, count))
		return count;
	free(count);
	return NULL;
}

bool hf_ready_forget(struct hf_ready *ready, const char *uid)
{
	struct count *count = hf_map_get(ready->pods, uid);

	if (count == NULL)
		return false;
	count->n--;
	(void)hf_map_remove(ready->pods, uid);
	return true;
}

bool hf_ready_see(struct hf_ready *ready, struct hf_doc *pod, bool gone)
{
	const char *job = hf_pod_job(pod), *uid = hf_doc_uid(pod);
	struct count *count;

	if (job == NULL)
		return false;
	if (gone || !hf_condition_is_true(hf_doc_json(pod), "Ready"))
		return hf_ready_forget(ready, uid);
	if (hf_map_has(ready->pods, uid))
		return false;
	count = count_of(ready, hf_doc_namespace(pod), job);
	if (count == NULL || !hf_map_put(ready->pods, uid, count))
		return false;
	count->n++;
	return true;
}

int64_t hf_ready_count(const struct hf_ready *ready, const char *ns, const char *job)
{
	HF_AUTOFREE char *key = hf_xasprintf("%s/%s", ns, job);
	const struct count *count = hf_map_get(ready->jobs, key);

	return count != NULL ? count->n : 0;
}
