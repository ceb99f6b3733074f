/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Answers from memory: session, jobs, one job, YAML, ranks, nodes, recovery. */
#include "page/page_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "json/yaml_write.h"
#include "page/json_out.h"

/* Memory of one job's step, as the operator's own limit. */
#define STEP_BYTES_MAX ((size_t)256 << 20)

bool hf_page_find_job(const struct hf_page_request *request, struct hf_page_job *ret_job)
{
	const struct hf_page_source *source = request->page->options.source;
	const struct hf_page_place *place = &request->place;
	const struct hf_framework *framework = hf_framework_by_name(place->kind);

	if (framework != NULL &&
	    source->find_job(source->arg, framework, place->ns, place->name, ret_job))
		return true;
	hf_page_answer_error(request->page, request->ex, 404, "%s '%s' in namespace '%s' not found",
			     place->kind, place->name, place->ns);
	return false;
}

static void read_session(const struct hf_page_request *request)
{
	const struct hf_page *page = request->page;
	HF_AUTO_JSON object = hf_json_object();
	struct hf_json *kept;

	hf_json_set_str(object, "user", request->session->user);
	hf_json_set_str(object, "world", page->options.cluster ? "cluster" : "local");
	hf_json_set_str(object, "version", HF_VERSION);
	hf_json_set_bool(object, "mayAct", true);
	hf_json_set_bool(object, "mayListNodes",
			 page->nodes != NULL && hf_page_access_sees_nodes(request->session));
	hf_json_set_bool(object, "ready", page->options.source->ready(page->options.source->arg));
	hf_page_set_time(object, "now", hf_loop_wall(page->options.loop));
	kept = hf_json_ensure_object(object, "kept");
	hf_json_set_i64(kept, "records", HF_RECORDS_MAX);
	hf_json_set_i64(kept, "ring", HF_PAGE_RING_MAX);
	hf_page_answer_json(request->page, request->ex, 200, object);
}

static void read_jobs(const struct hf_page_request *request)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_PAGE_LIST_BYTES_MAX);

	hf_page_jobs_list(request->page->jobs, request->session, &request->query, &text);
	hf_page_answer_text(request->page, request->ex, "application/json", &text);
}

static void read_job(const struct hf_page_request *request)
{
	struct hf_page *page = request->page;
	const struct hf_page_source *source = page->options.source;
	HF_AUTO_ARENA arena = NULL;
	struct hf_page_job_input input;
	struct hf_page_job_keys keys;
	struct hf_plan plan;
	struct hf_page_job job;
	bool explained;

	if (!hf_page_find_job(request, &job))
		return;
	arena = hf_arena_create(STEP_BYTES_MAX);
	HF_AUTO_JSON tree = hf_page_tree(job.doc);

	hf_page_jobs_input(page->jobs, &job, arena, &input);
	input.tree = tree;
	HF_AUTO_JSON object = hf_page_job_json(&input, &keys);

	explained = source->explain(source->arg, &job, arena, &plan, NULL) == 0;
	hf_page_job_add_detail(object, &input, explained ? &plan : NULL);
	hf_page_notes_write(page->notes, job.uid, object);
	hf_page_answer_json(page, request->ex, 200, object);
}

static void read_yaml(const struct hf_page_request *request)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_PAGE_ANSWER_BYTES_MAX);
	struct hf_page_job job;

	if (!hf_page_find_job(request, &job))
		return;
	HF_AUTO_JSON tree = hf_page_tree(job.doc);
	/* A document of the store in this process has managedFields still. */
	HF_AUTO_JSON object = hf_json_copy(tree);

	hf_json_remove(hf_json_ensure_object(object, "metadata"), "managedFields");
	hf_yaml_write(object, &text);
	hf_page_answer_text(request->page, request->ex, "text/plain; charset=utf-8", &text);
}

static void read_ranks(const struct hf_page_request *request)
{
	const struct hf_page *page = request->page;
	const struct hf_page_source *source = page->options.source;
	HF_AUTO_ARENA arena = NULL;
	const struct hf_pod *pods;
	struct hf_page_job job;
	size_t len;

	if (!hf_page_find_job(request, &job))
		return;
	arena = hf_arena_create(STEP_BYTES_MAX);
	len = source->find_pods(source->arg, &job, arena, &pods);
	HF_AUTO_JSON object = hf_page_ranks_json(page->ranks, &job, pods, len, &request->query);

	hf_page_answer_json(request->page, request->ex, 200, object);
}

static void read_nodes(const struct hf_page_request *request)
{
	struct hf_page *page = request->page;
	HF_AUTO_JSON object = NULL;

	if (page->nodes == NULL) {
		hf_page_answer_error(
			page, request->ex, 404,
			"this operator serves one namespace, so it does not know nodes");
		return;
	}
	object = request->place.route == HF_PAGE_NODES
			 ? hf_page_nodes_list(page->nodes, request->session, &request->query)
			 : hf_page_nodes_one(page->nodes, request->session, request->place.name);
	if (object == NULL)
		hf_page_answer_error(page, request->ex, 404, "node '%s' not found",
				     request->place.name);
	else
		hf_page_answer_json(page, request->ex, 200, object);
}

static void read_recovery(const struct hf_page_request *request)
{
	struct hf_page *page = request->page;
	const struct hf_page_recovery_args args = {
		.jobs = page->jobs,
		.session = request->session,
		.now = hf_loop_wall(page->options.loop),
		.window = request->query.window,
		.bucket = request->query.bucket,
		.sees_all = hf_page_access_sees_all(request->session),
		.sees_nodes = page->nodes != NULL && hf_page_access_sees_nodes(request->session),
	};
	HF_AUTO_JSON object = hf_page_recovery_json(page->recovery, &args);

	hf_page_answer_json(page, request->ex, 200, object);
}

void hf_page_read(const struct hf_page_request *request)
{
	switch (request->place.route) {
	case HF_PAGE_SESSION: read_session(request); break;
	case HF_PAGE_JOBS: read_jobs(request); break;
	case HF_PAGE_JOB: read_job(request); break;
	case HF_PAGE_JOB_YAML: read_yaml(request); break;
	case HF_PAGE_JOB_RANKS: read_ranks(request); break;
	case HF_PAGE_NODES:
	case HF_PAGE_NODE: read_nodes(request); break;
	case HF_PAGE_RECOVERY: read_recovery(request); break;
	default: hf_page_answer_error(request->page, request->ex, 404, "no such path"); break;
	}
}
