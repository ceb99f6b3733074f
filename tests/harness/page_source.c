/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/page_source.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 160

static struct page_source_job *find(const struct page_source *source, const char *ns,
				    const char *name)
{
	char key[KEY_MAX];

	snprintf(key, sizeof(key), "%s/%s", ns, name);
	return hf_map_get(source->by_name, key);
}

static struct hf_page_job view_of(const struct page_source_job *job)
{
	return (struct hf_page_job){.framework = &hf_framework_pytorch,
				    .ns = job->ns,
				    .name = job->name,
				    .uid = job->uid,
				    .doc = job->doc};
}

static bool is_ready(void *arg)
{
	return ((const struct page_source *)arg)->ready;
}

static void each_job(void *arg, hf_page_job_fn fn, void *fn_arg)
{
	const struct page_source *source = arg;

	for (size_t i = 0; i < source->len; i++) {
		struct hf_page_job job = view_of(source->jobs[i]);

		fn(fn_arg, &job);
	}
}

static bool find_job(void *arg, const struct hf_framework *framework, const char *ns,
		     const char *name, struct hf_page_job *ret_job)
{
	const struct page_source_job *job =
		framework == &hf_framework_pytorch ? find(arg, ns, name) : NULL;

	if (job != NULL)
		*ret_job = view_of(job);
	return job != NULL;
}

static size_t find_pods(void *arg, const struct hf_page_job *job, struct hf_arena *arena,
			const struct hf_pod **ret_pods)
{
	const struct page_source_job *found = find(arg, job->ns, job->name);

	*ret_pods = &found->pod;
	return 1;
}

static void jobs_on_node(void *arg, const char *node, hf_page_job_fn fn, void *fn_arg)
{
	if (hf_streq(node, "n1"))
		each_job(arg, fn, fn_arg);
}

static int explain(void *arg, const struct hf_page_job *job, struct hf_arena *arena,
		   struct hf_plan *ret_plan, struct hf_error *err)
{
	const struct page_source *source = arg;
	struct hf_reason *reason = HF_ARENA_NEW(arena, struct hf_reason);

	if (source->next == NULL)
		return hf_error_set(err, HF_E_UNAVAILABLE, "no explanation");
	*reason = (struct hf_reason){
		.time = HF_TIME_NONE, .topic = HF_TOPIC_NEXT, .text = source->next};
	*ret_plan = (struct hf_plan){
		.summary = "running since 12:00", .reasons = reason, .reasons_len = 1};
	return 0;
}

struct page_source *page_source_create(void)
{
	struct page_source *source = hf_xcalloc(1, sizeof(*source));

	source->ready = true;
	source->by_name = hf_map_create(PAGE_SOURCE_JOBS_MAX, 0, NULL);
	source->jobs = hf_xcalloc(PAGE_SOURCE_JOBS_MAX, sizeof(struct page_source_job *));
	source->source = (struct hf_page_source){.ready = is_ready,
						 .each_job = each_job,
						 .find_job = find_job,
						 .find_pods = find_pods,
						 .jobs_on_node = jobs_on_node,
						 .explain = explain,
						 .arg = source};
	return source;
}

static void free_job(struct page_source_job *job)
{
	hf_doc_unref(job->doc);
	free(job);
}

void page_source_destroy(struct page_source *source)
{
	for (size_t i = 0; i < source->len; i++)
		free_job(source->jobs[i]);
	free(source->jobs);
	hf_map_destroy(source->by_name);
	free(source);
}

static struct page_source_job *make(struct page_source *source, const char *ns, const char *name)
{
	struct page_source_job *job = hf_xcalloc(1, sizeof(*job));
	char key[KEY_MAX];

	snprintf(key, sizeof(key), "%s/%s", ns, name);
	hf_assert(source->len < PAGE_SOURCE_JOBS_MAX);
	snprintf(job->ns, sizeof(job->ns), "%s", ns);
	snprintf(job->name, sizeof(job->name), "%s", name);
	snprintf(job->uid, sizeof(job->uid), "uid-%.50s", name);
	snprintf(job->pod_name, sizeof(job->pod_name), "%s-master-0", name);
	snprintf(job->pod_uid, sizeof(job->pod_uid), "pod-%s", name);
	job->ready = (struct hf_pod_condition){.type = "Ready", .status = "True"};
	job->pod = (struct hf_pod){.name = job->pod_name,
				   .uid = job->pod_uid,
				   .phase = HF_POD_RUNNING,
				   .node = "n1",
				   .deletion_time = HF_TIME_NONE,
				   .conditions = &job->ready,
				   .conditions_len = 1};
	job->number = source->len;
	source->jobs[source->len++] = job;
	bool put = hf_map_put(source->by_name, key, job);

	hf_assert(put);
	return job;
}

const char *page_source_put(struct page_source *source, const char *ns, const char *name,
			    const char *status)
{
	static char key[200];
	struct page_source_job *job = find(source, ns, name);

	if (job == NULL)
		job = make(source, ns, name);
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"%s\","
		"\"namespace\":\"%s\",\"uid\":\"uid-%s\",\"creationTimestamp\":\"2026-01-01T00:00:%02zuZ\"},"
		"\"spec\":{\"pytorchReplicaSpecs\":{\"Master\":{\"replicas\":1,\"template\":{\"spec\":"
		"{\"containers\":[{\"name\":\"pytorch\",\"image\":\"train\"}]}}}}},\"status\":%s}",
		name, ns, name, job->number % 60, status);

	hf_doc_unref(job->doc);
	job->doc = hf_doc_from_text(text, strlen(text));
	snprintf(key, sizeof(key), "pytorchjobs/%s/%s", ns, name);
	return key;
}

void page_source_remove(struct page_source *source, const char *ns, const char *name)
{
	char key[KEY_MAX];

	for (size_t i = 0; i < source->len; i++) {
		if (!hf_streq(source->jobs[i]->name, name) || !hf_streq(source->jobs[i]->ns, ns))
			continue;
		snprintf(key, sizeof(key), "%s/%s", ns, name);
		hf_map_remove(source->by_name, key);
		free_job(source->jobs[i]);
		source->jobs[i] = source->jobs[--source->len];
		return;
	}
}

const char *page_source_status(const char *state, int restarts)
{
	static char status[1024];

	snprintf(
		status, sizeof(status),
		"{\"conditions\":[{\"type\":\"%s\",\"status\":\"True\",\"message\":\"m\","
		"\"lastTransitionTime\":\"2026-01-01T00:01:00Z\"}],\"startTime\":\"2026-01-01T00:00:30Z\","
		"\"recovery\":{\"schema\":1,\"generation\":%d,\"restarts\":{\"application\":%d},"
		"\"last\":{\"generation\":%d,\"incident\":1,\"cause\":\"application\",\"scope\":\"Job\","
		"\"replica\":\"worker-1\",\"node\":\"n1\",\"exitCode\":1,"
		"\"detectedAt\":\"2026-01-01T00:02:00.000000Z\",\"decidedAt\":\"2026-01-01T00:02:01.000000Z\","
		"\"runningAt\":\"2026-01-01T00:02:11.000000Z\"}}}",
		state, restarts + 1, restarts, restarts + 1);
	return status;
}
