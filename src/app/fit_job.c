/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Changes a job so that its pods fit on this machine. Input: a checked manifest. Output: the manifest,
 * and a line for each change. */
#include "app/fit_job.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- removing a resource ------------------------------------------------------------------------ */

static void remove_from(struct hf_json *containers, const char *resource)
{
	static const char *const keys[] = {"requests", "limits"};

	for (size_t i = 0; i < hf_json_len(containers); i++) {
		struct hf_json *resources = hf_json_get(hf_json_item(containers, i), "resources");

		for (size_t k = 0; k < HF_ARRAY_LEN(keys); k++)
			if (hf_json_get(hf_json_get(resources, keys[k]), resource) != NULL)
				hf_json_remove(hf_json_get(resources, keys[k]), resource);
	}
}

static void remove_resource(const struct hf_framework *framework, struct hf_json *job,
			    const char *resource)
{
	struct hf_job_replicas r;

	for (void *it = NULL; hf_job_replicas_next(framework, job, &it, &r);) {
		remove_from(hf_json_get(r.spec, "containers"), resource);
		remove_from(hf_json_get(r.spec, "initContainers"), resource);
	}
}

/* ---- GPUs --------------------------------------------------------------------------------------- */

/* Returns how much of the resource the smallest form of the job asks for: one pod of each type. */
static int64_t request_of_smallest(const struct hf_framework *framework, const struct hf_json *job,
				   const char *resource)
{
	struct hf_job_replicas r;
	int64_t total = 0;

	for (void *it = NULL; hf_job_replicas_next(framework, job, &it, &r);)
		if (r.n > 0 &&
		    __builtin_add_overflow(total, hf_job_request(r.spec, resource), &total))
			return INT64_MAX;
	return total;
}

/* Sets the replicas of each type, in the manifest's order, to as many pods as the machine's GPUs
 * allow; types that come later keep one pod each. */
static void reduce_replicas(const struct hf_framework *framework, struct hf_json *job,
			    const char *resource, int64_t have, struct hf_strbuf *notes)
{
	int64_t rest = have - request_of_smallest(framework, job, resource);
	char has[HF_JOB_AMOUNT_MAX];
	struct hf_job_replicas r;

	hf_job_format_amount(resource, have, has);
	for (void *it = NULL; hf_job_replicas_next(framework, job, &it, &r);) {
		int64_t pod = hf_job_request(r.spec, resource);
		int64_t more = r.n - 1;

		if (pod <= 0 || r.n < 1)
			continue;
		if (more > rest / pod)
			more = rest / pod;
		rest -= more * pod;
		if (more + 1 == r.n)
			continue;
		hf_json_set_i64(r.value, "replicas", more + 1);
		hf_strbuf_addf(notes,
			       "--fit: %s has %" PRId64 " of its %" PRId64
			       " pods, because this machine has %s\n",
			       r.type, more + 1, r.n, has);
	}
}

/* Removes minAvailable: if it is above the reduced number of pods, the gang never starts. */
static void lower_minimum(struct hf_json *job)
{
	struct hf_json *policy =
		hf_json_get(hf_json_get(hf_json_get(job, "spec"), "runPolicy"), "schedulingPolicy");

	if (hf_json_get(policy, "minAvailable") != NULL)
		hf_json_remove(policy, "minAvailable");
}

static void fit_gpus(const struct hf_framework *framework, struct hf_json *job,
		     const char *resource, int64_t have, struct hf_strbuf *notes)
{
	char wants[HF_JOB_AMOUNT_MAX], has[HF_JOB_AMOUNT_MAX];
	int64_t least = request_of_smallest(framework, job, resource);
	bool elastic = hf_json_path(job, "spec", "elasticPolicy", NULL) != NULL;

	/* An elastic job starts with fewer pods without a change of its manifest. */
	if (hf_job_requests(framework, job, resource) <= have || (least <= have && elastic))
		return;
	if (least <= have) {
		reduce_replicas(framework, job, resource, have, notes);
		lower_minimum(job);
		return;
	}
	hf_job_format_amount(resource, least, wants);
	hf_job_format_amount(resource, have, has);
	hf_strbuf_addf(
		notes,
		"--fit: no pod has GPUs, because the smallest job asks for %s, and this machine "
		"has %s\n",
		wants, has);
	remove_resource(framework, job, resource);
}

/* ---- fitting the whole job ------------------------------------------------------------------------ */

static void fit_common(const struct hf_framework *framework, struct hf_json *job,
		       const char *resource, int64_t have, struct hf_strbuf *notes)
{
	int64_t total = hf_job_requests(framework, job, resource);
	char wants[HF_JOB_AMOUNT_MAX], has[HF_JOB_AMOUNT_MAX];

	if (total <= have)
		return;
	hf_job_format_amount(resource, total, wants);
	hf_job_format_amount(resource, have, has);
	hf_strbuf_addf(
		notes,
		"--fit: the pods share all of this machine's %s, because they ask for %s, and "
		"this machine has %s\n",
		resource, wants, has);
	remove_resource(framework, job, resource);
}

/* Finds a device resource that a pod asks for and the node does not offer. NULL: the pods ask for no such resource. */
static const char *find_other_device(const struct hf_framework *framework,
				     const struct hf_json *job)
{
	struct hf_job_replicas r;

	for (void *it = NULL; hf_job_replicas_next(framework, job, &it, &r);) {
		const struct hf_json *list = hf_json_get(r.spec, "containers");

		for (size_t i = 0; i < hf_json_len(list); i++) {
			const struct hf_json *limits =
				hf_json_path(hf_json_item(list, i), "resources", "limits", NULL);
			struct hf_json *value;
			const char *name;

			for (void *at = NULL;
			     (at = hf_json_next(limits, at, &name, &value)) != NULL;)
				if (!hf_job_knows(name))
					return name;
		}
	}
	return NULL;
}

static void leave_out_devices(const struct hf_framework *framework, struct hf_json *job,
			      struct hf_strbuf *notes)
{
	const char *name;

	while ((name = find_other_device(framework, job)) != NULL) {
		HF_AUTOFREE char *resource = hf_xstrdup(name);

		hf_strbuf_addf(notes, "--fit: no pod has %s, because this machine offers none\n",
			       resource);
		remove_resource(framework, job, resource);
	}
}

void hf_fit_job(const struct hf_local_machine *machine, struct hf_manifest *job,
		struct hf_strbuf *notes)
{
	struct hf_json *root = hf_json_copy(hf_doc_json(job->doc));

	/* Reduce the GPUs first: fewer pods also ask for less CPU and memory. */
	for (int common = 0; common < 2; common++) {
		for (size_t i = 0; hf_job_resources[i] != NULL; i++) {
			const char *resource = hf_job_resources[i];
			int64_t have = hf_job_machine_has(machine, resource);

			if (hf_job_is_common(resource) != common)
				continue;
			if (common)
				fit_common(job->framework, root, resource, have, notes);
			else
				fit_gpus(job->framework, root, resource, have, notes);
		}
	}
	leave_out_devices(job->framework, root, notes);
	hf_doc_unref(job->doc);
	job->doc = hf_doc_from_json(root);
}
