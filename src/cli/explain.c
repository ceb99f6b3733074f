/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Computes the operator's next step for one job, for `why` and `describe`. Input: the job, its
 * pods, its services and its other objects, as the server has them now. Output: the plan of
 * hf_job_step. Nothing is changed on the server. */
#include "cli/explain.h"

#include "api/extra_object.h"
#include "api/job.h"
#include "api/pod.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/request.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/* Memory limit of one step: the operator's own limit (operator/operator.h), so that the same jobs
 * can be computed. */
#define STEP_BYTES_MAX ((size_t)256 << 20)

void hf_explanation_release(struct hf_explanation *explanation)
{
	for (size_t i = 0; i < explanation->n_docs; i++)
		hf_doc_unref(explanation->docs[i]);
	free(explanation->docs);
	hf_arena_destroy(explanation->arena);
	*explanation = (struct hf_explanation){.arena = NULL};
}

/* True if the operator would count the object to the job: the job is its controller, or its name
 * begins with "JOB-". Labels do not decide, as a user can edit them. */
static bool belongs_to_job(struct hf_doc *object, const struct hf_job_view *view,
			   struct hf_arena *arena)
{
	size_t len = strlen(view->name);
	const char *name = hf_doc_name(object);

	return hf_streq(hf_controller_uid(object, arena), view->uid) ||
	       (strncmp(name, view->name, len) == 0 && name[len] == '-');
}

/* The job whose objects are listed. */
struct lookup {
	struct hf_cli *cli;
	struct hf_doc *job;
	const struct hf_job_view *view;
	struct hf_arena *arena;
};

/* Lists the job's pods or services by label. If fewer than the job's ranks have the label, the
 * function reads all objects of the namespace: a label may have been edited. */
static int list_objects(const struct lookup *lookup, const struct hf_resource *resource,
			struct hf_cli_reply *ret_reply, struct hf_error *err)
{
	const struct hf_job_view *view = lookup->view;
	const struct hf_request all = {
		.verb = HF_VERB_LIST, .resource = resource, .ns = hf_doc_namespace(lookup->job)};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_job known;
	int32_t ours = 0;
	size_t len = 0;
	int rc = hf_cli_list_owned(lookup->cli, resource, lookup->job, ret_reply, err);

	if (rc != 0 || view->run_policy.suspend.value || view->deletion_time != HF_TIME_NONE ||
	    hf_status_is_finished(&view->status))
		return rc;
	hf_job_defaults(view, lookup->arena, &known);
	for (size_t i = 0; i < ret_reply->n_items; i++)
		ours += hf_streq(hf_controller_uid(ret_reply->items[i], lookup->arena), view->uid);
	if (ours >= known.ranks)
		return 0;
	rc = hf_cli_request(lookup->cli, &all, &reply, err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < reply.n_items; i++) {
		if (belongs_to_job(reply.items[i], view, lookup->arena))
			reply.items[len++] = reply.items[i];
		else
			hf_doc_unref(reply.items[i]);
	}
	reply.n_items = len;
	hf_cli_reply_release(ret_reply);
	*ret_reply = reply;
	reply = (struct hf_cli_reply){.object = NULL};
	return 0;
}

/* Removes pods of a kept run that were deleted during the run. */
static void drop_gone(struct hf_cli_reply *pods)
{
	size_t len = 0;

	for (size_t i = 0; i < pods->n_items; i++) {
		if (hf_json_path(hf_doc_json(pods->items[i]), "metadata", "annotations",
				 HF_CLI_GONE_ANNOTATION, NULL) == NULL)
			pods->items[len++] = pods->items[i];
		else
			hf_doc_unref(pods->items[i]);
	}
	pods->n_items = len;
}

static void keep_docs(struct hf_explanation *explanation, struct hf_cli_reply *reply)
{
	explanation->docs = hf_xrealloc(explanation->docs, (explanation->n_docs + reply->n_items +
							    1) * sizeof(struct hf_doc *));
	for (size_t i = 0; i < reply->n_items; i++)
		explanation->docs[explanation->n_docs++] = hf_doc_ref(reply->items[i]);
}

/* Adds the pods' nodes as the operator would see them: each Ready, but without kubelet reports,
 * which a client cannot read. So a verdict that waits for kubelet reports is shown as waiting.
 * (Node losses need no kubelet report: they are in the job's status. The operator of the embedded
 * plane writes a verdict to the status before a client can ask.) */
static void see_nodes(struct hf_arena *arena, hf_time now, struct hf_observed *seen)
{
	struct hf_node_seen *nodes = HF_ARENA_ARRAY(arena, struct hf_node_seen, seen->pods_len + 1);
	size_t len = 0;

	for (size_t i = 0; i < seen->pods_len; i++) {
		bool known = seen->pods[i].node == NULL;
		for (size_t k = 0; k < len && !known; k++)
			known = hf_streq(nodes[k].name, seen->pods[i].node);
		if (known)
			continue;
		hf_node_seen_init(&nodes[len], seen->pods[i].node, HF_NODE_READY, now);
		len++;
	}
	seen->blind = true;
	seen->watched_since = HF_TIME_NONE;
	seen->nodes = nodes;
	seen->nodes_len = len;
}

/* ---- objects of a job other than pods and services ------------------------------------------------- */

static const struct hf_resource *resource_of(enum hf_extra_kind kind)
{
	static const struct hf_resource *const others[] = {&hf_autoscalers, &hf_podgroups,
							   &hf_volcano_podgroups};
	const char *version = hf_extra_kind_version(kind);
	char buf[HF_API_VERSION_MAX];

	for (size_t i = 0; i < HF_ARRAY_LEN(others); i++)
		if (hf_streq(others[i]->kind, hf_extra_kind_name(kind)) &&
		    hf_streq(hf_resource_api_version(others[i], buf), version))
			return others[i];
	return hf_resource_by_kind(version, hf_extra_kind_name(kind));
}

/* Reads one extra object of the job into `list`, if it exists. False: the client may not read the
 * object, or the server does not know its kind. */
static bool see_extra(struct hf_cli *cli, struct hf_explanation *explanation,
		      const struct hf_job_view *view, const struct hf_extra *extra,
		      struct hf_extra_seen *list, size_t *len)
{
	const struct hf_request request = {.verb = HF_VERB_GET,
					   .resource = resource_of(extra->kind),
					   .ns = view->ns,
					   .name = extra->name};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_error err = {0};
	int rc = hf_cli_request(cli, &request, &reply, &err);

	if (rc != 0)
		return rc == HF_E_NOT_FOUND &&
		       strstr(err.text, "could not find the requested resource") == NULL;
	explanation->docs =
		hf_xrealloc(explanation->docs, (explanation->n_docs + 1) * sizeof(struct hf_doc *));
	explanation->docs[explanation->n_docs++] = hf_doc_ref(reply.object);
	(void)hf_extra_read(reply.object, extra->kind, view->uid, explanation->arena, &list[*len]);
	list[(*len)++].kind = extra->kind;
	return true;
}

/* Guesses the gang scheduler, because a client cannot read the operator's flags: a job without
 * pods that owns a Volcano PodGroup waits for Volcano. */
static void find_scheduler(struct hf_cli *cli, struct hf_explanation *explanation,
			   const struct hf_job_view *view, const struct hf_observed *seen,
			   struct hf_settings *settings)
{
	const struct hf_extra group = {.kind = HF_EXTRA_VOLCANO_GROUP, .name = view->name};
	struct hf_extra_seen found[1];
	size_t len = 0;

	if (seen->pods_len == 0 && view->deletion_time == HF_TIME_NONE &&
	    !hf_status_is_finished(&view->status) &&
	    see_extra(cli, explanation, view, &group, found, &len) && len > 0 && found[0].owned)
		settings->gang_scheduler = "volcano";
}

static void see_extras(struct hf_cli *cli, struct hf_explanation *explanation,
		       const struct hf_job_view *view, struct hf_observed *seen)
{
	const struct hf_ranks_seen no_ranks = {0};
	struct hf_extras wanted = {.arena = explanation->arena};
	struct hf_extra_seen *list;
	struct hf_job job;

	seen->extras_unknown = ~0u;
	if (view->run_policy.suspend.value || view->deletion_time != HF_TIME_NONE ||
	    hf_status_is_finished(&view->status))
		return;
	hf_job_defaults(view, explanation->arena, &job);
	hf_job_extras(&job, &no_ranks, &wanted);
	list = HF_ARENA_ARRAY(explanation->arena, struct hf_extra_seen, wanted.len + 1);
	for (size_t i = 0; i < wanted.len; i++)
		if (see_extra(cli, explanation, view, &wanted.items[i], list, &seen->extras_len))
			seen->extras_unknown &= ~HF_EXTRA_BIT(wanted.items[i].kind);
	seen->extras = list;
}

char *hf_cli_kept_end(const struct hf_cli *cli, struct hf_doc *job)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);
	char span[HF_TIME_TEXT_MAX];
	struct hf_job_facts facts;

	if (cli->kept_end == NULL)
		return NULL;
	hf_job_facts_read(hf_doc_json(job), &facts);
	hf_strbuf_addstr(&text, cli->kept_end);
	if (cli->kept_ended != HF_TIME_NONE && cli->kept_ended >= cli->kept_started) {
		hf_span_format(cli->kept_ended - cli->kept_started, span);
		hf_strbuf_addf(&text, " %s after its start", span);
	}
	hf_strbuf_addf(&text, ", when its state was %s", facts.state);
	return hf_strbuf_detach(&text);
}

/* Removes from the plan of an ended run what would come next. If the run ended before its job, what would be decided
 * now is removed too: the pods are gone because the run ended. */
static void drop_next(const struct hf_cli *cli, hf_time now, struct hf_explanation *explanation)
{
	/* A killed run has no time of its end. */
	hf_time end = cli->kept_ended != HF_TIME_NONE ? cli->kept_ended : now - HF_SECOND;
	struct hf_plan *plan = &explanation->plan;
	struct hf_reason *kept =
		HF_ARENA_ARRAY(explanation->arena, struct hf_reason, plan->reasons_len + 1);
	size_t len = 0;

	for (size_t i = 0; i < plan->reasons_len; i++)
		if (plan->reasons[i].topic != HF_TOPIC_NEXT &&
		    (cli->kept_end == NULL ||
		     (plan->reasons[i].time != HF_TIME_NONE && plan->reasons[i].time <= end)))
			kept[len++] = plan->reasons[i];
	plan->reasons = kept;
	plan->reasons_len = len;
	plan->stages_len = 0;
	plan->wake_at = HF_TIME_NEVER;
}

int hf_cli_explain(struct hf_cli *cli, const struct hf_framework *framework, struct hf_doc *job,
		   struct hf_explanation *ret_explanation, struct hf_error *err)
{
	struct hf_explanation explanation = {.arena = hf_arena_create(STEP_BYTES_MAX)};
	struct hf_settings *settings = HF_ARENA_NEW(explanation.arena, struct hf_settings);
	HF_AUTO_CLI_REPLY pods = {.object = NULL};
	HF_AUTO_CLI_REPLY services = {.object = NULL};
	struct hf_observed seen = {.pods_len = 0};
	struct hf_service_seen *seen_services;
	struct hf_pod *seen_pods;
	struct hf_job_view view;
	const struct lookup lookup = {cli, job, &view, explanation.arena};
	hf_time now = hf_loop_wall(cli->loop);
	int rc;

	hf_job_read(job, framework, settings, explanation.arena, NULL, &view);
	rc = list_objects(&lookup, &hf_pods, &pods, err);
	if (rc == 0)
		drop_gone(&pods);
	if (rc == 0)
		rc = list_objects(&lookup, &hf_services, &services, err);
	if (rc == 0) {
		keep_docs(&explanation, &pods);
		keep_docs(&explanation, &services);
		seen_pods = HF_ARENA_ARRAY(explanation.arena, struct hf_pod, pods.n_items + 1);
		for (size_t i = 0; i < pods.n_items; i++)
			hf_pod_read(pods.items[i], view.uid, explanation.arena, &seen_pods[i]);
		seen_services = HF_ARENA_ARRAY(explanation.arena, struct hf_service_seen,
					       services.n_items + 1);
		for (size_t i = 0; i < services.n_items; i++)
			hf_service_read(services.items[i], view.uid, explanation.arena,
					&seen_services[i]);
		seen = (struct hf_observed){.pods = seen_pods,
					    .pods_len = pods.n_items,
					    .services = seen_services,
					    .services_len = services.n_items};
		see_nodes(explanation.arena, now, &seen);
		find_scheduler(cli, &explanation, &view, &seen, settings);
		see_extras(cli, &explanation, &view, &seen);
		rc = hf_job_step(&view, &seen, now, explanation.arena, &explanation.plan, err);
	}
	if (rc != 0) {
		hf_explanation_release(&explanation);
		return rc;
	}
	if (cli->kept_over)
		drop_next(cli, now, &explanation);
	*ret_explanation = explanation;
	return 0;
}
