/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads logs and performs actions. Both are requests with the caller's token, so the API server decides about them. On one machine the caller is the user of this process.
 */
#include "page/page_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/job_patch.h"
#include "cli/terminal_filter.h"
#include "page/json_out.h"
#include "store/resource.h"

#include <stdlib.h>

#define LOG_BYTES_MAX ((size_t)256 << 10)
#define ACT_TIMEOUT (15 * HF_SECOND)
/* Bytes of the reason that a person gives; an Event's message has at most 1,024. */
#define REASON_MAX 512

/* A log or an action under way. */
struct hf_page_act {
	struct hf_page_act *next;
	struct hf_page *page;
	struct hf_exchange *ex; /* NULL: the client has left */
	struct hf_page_session *session;
	struct hf_store *store; /* with the caller's token */
	bool own_store;         /* destroy the store at the end */
	struct hf_call *call;
	struct hf_log_stream *stream;
	struct hf_task *end; /* frees the act outside of the store's callbacks */
	/* of a log */
	struct hf_strbuf text;
	struct hf_terminal_filter filter;
	/* of an action */
	struct hf_doc *event; /* to record after the patch; NULL: none */
	char *message;
};

static void free_act(struct hf_page_act *act)
{
	struct hf_page_act **at = &act->page->acts;

	while (*at != act)
		at = &(*at)->next;
	*at = act->next;
	act->page->acts_len--;
	hf_call_cancel(act->call);
	hf_log_stream_stop(act->stream);
	if (act->own_store)
		hf_store_destroy(act->store);
	hf_task_destroy(act->end);
	hf_page_session_unref(act->session);
	hf_strbuf_release(&act->text);
	hf_doc_unref(act->event);
	free(act->message);
	free(act);
}

static void on_end(void *arg)
{
	free_act(arg);
}

/* The client has left. An action goes on, because it may be half done; a log does not. */
static void on_gone(void *arg, struct hf_exchange *ex)
{
	struct hf_page_act *act = arg;

	act->ex = NULL;
	if (act->call == NULL)
		hf_task_post(act->end);
}

static void end_act(struct hf_page_act *act)
{
	act->ex = NULL;
	hf_task_post(act->end);
}

/* NULL: the request was answered. */
static struct hf_page_act *create_act(const struct hf_page_request *request)
{
	struct hf_page *page = request->page;
	struct hf_store *store = page->options.store;
	struct hf_page_act *act;
	struct hf_error err;

	if (page->acts_len >= HF_PAGE_ACTS_MAX) {
		hf_exchange_add_header(request->ex, "Retry-After", "2");
		hf_page_answer_error(page, request->ex, 503,
				     "%d logs and actions are under way; try again in a moment",
				     HF_PAGE_ACTS_MAX);
		return NULL;
	}
	if (page->options.cluster &&
	    page->options.open_store(page->options.arg, request->session->token, &store, &err) !=
		    0) {
		hf_page_answer_error(page, request->ex, 503, "%s", err.text);
		return NULL;
	}
	act = hf_xcalloc(1, sizeof(*act));
	act->page = page;
	act->ex = request->ex;
	act->session = hf_page_session_ref(request->session);
	act->store = store;
	act->own_store = page->options.cluster;
	act->end = hf_task_create(page->options.loop, on_end, act);
	hf_strbuf_init(&act->text, LOG_BYTES_MAX);
	act->next = page->acts;
	page->acts = act;
	page->acts_len++;
	hf_exchange_on_closed(request->ex, on_gone, act);
	return act;
}

void hf_page_drop_acts(struct hf_page *page)
{
	while (page->acts != NULL) {
		struct hf_exchange *ex = page->acts->ex;

		free_act(page->acts);
		if (ex != NULL)
			hf_exchange_abort(ex);
	}
}

static void answer_failure(struct hf_page_act *act, int code, const char *message)
{
	struct hf_exchange *ex = act->ex;

	if (ex != NULL) {
		hf_exchange_on_closed(ex, NULL, NULL);
		hf_page_answer_error(act->page, ex, hf_code_http(code), "%s", message);
	}
	end_act(act);
}

/* ---- logs ------------------------------------------------------------------------------------------------------- */

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct hf_page_act *act = arg;
	struct hf_exchange *ex = act->ex;

	if (len > 0) {
		hf_terminal_filter_add(&act->filter, bytes, len, &act->text);
		return;
	}
	if (code != 0) {
		answer_failure(act, code, message);
		return;
	}
	if (ex != NULL) {
		/* A log that is cut at its limit is still an answer. */
		act->text.full = false;
		hf_exchange_on_closed(ex, NULL, NULL);
		hf_page_answer_text(act->page, ex, "text/plain; charset=utf-8", &act->text);
	}
	end_act(act);
}

static const struct hf_pod *find_pod(const struct hf_pod *pods, size_t len, const char *job,
				     const char *rank)
{
	for (size_t i = 0; i < len; i++)
		if (hf_streq(hf_page_rank_name(&pods[i], job), rank))
			return &pods[i];
	return NULL;
}

/* Memory of the pods of one job. */
#define PODS_BYTES_MAX ((size_t)64 << 20)

void hf_page_log(const struct hf_page_request *request)
{
	const struct hf_page_source *source = request->page->options.source;
	const char *rank = hf_str_or(request->query.rank, "");
	HF_AUTO_ARENA arena = NULL;
	const struct hf_pod *pods, *pod;
	struct hf_page_act *act;
	struct hf_page_job job;
	size_t len;

	if (!hf_page_find_job(request, &job))
		return;
	arena = hf_arena_create(PODS_BYTES_MAX);
	len = source->find_pods(source->arg, &job, arena, &pods);
	pod = find_pod(pods, len, job.name, rank);
	if (pod == NULL) {
		hf_page_answer_error(request->page, request->ex, 404,
				     "job '%s' has no pod of rank '%s' now", job.name, rank);
		return;
	}
	act = create_act(request);
	if (act == NULL)
		return;
	const struct hf_log_options options = {.ns = job.ns,
					       .pod = pod->name,
					       .container = job.framework->container_name,
					       .tail_lines = request->query.tail,
					       .limit_bytes = LOG_BYTES_MAX};

	act->stream = hf_store_logs(act->store, &options, on_log, act);
}

/* ---- actions ------------------------------------------------------------------------------------------------------ */

static void answer_done(struct hf_page_act *act, const char *note)
{
	HF_AUTO_JSON object = hf_json_object();
	struct hf_exchange *ex = act->ex;
	HF_AUTOFREE char *message = hf_xasprintf("%s%s", act->message, note);

	hf_json_set_str(object, "message", message);
	if (ex != NULL) {
		hf_exchange_on_closed(ex, NULL, NULL);
		hf_page_answer_json(act->page, ex, 202, object);
	}
	end_act(act);
}

/* A job's list of events in the page shows only events that were added to the notes. */
static void note_event(const struct hf_page_act *act)
{
	const struct hf_json *event = hf_doc_json(act->event);
	const struct hf_event_note note = {
		.uid = hf_json_path_str(event, "involvedObject", "uid", NULL),
		.type = hf_json_path_str(event, "type", NULL),
		.reason = hf_json_path_str(event, "reason", NULL),
		.message = hf_json_path_str(event, "message", NULL),
	};

	hf_page_notes_add(act->page->notes, &note, hf_loop_wall(act->page->options.loop));
}

static void on_recorded(void *arg, const struct hf_reply *reply)
{
	struct hf_page_act *act = arg;

	act->call = NULL;
	if (reply->code == 0)
		note_event(act);
	answer_done(act, reply->code == 0 ? "" : "; the reason could not be recorded as an event");
}

static void on_patched(void *arg, const struct hf_reply *reply)
{
	struct hf_page_act *act = arg;
	struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_events, .timeout = ACT_TIMEOUT};

	act->call = NULL;
	if (reply->code != 0) {
		answer_failure(act, reply->code, reply->message);
	} else if (act->event == NULL) {
		answer_done(act, "");
	} else {
		request.ns = hf_doc_namespace(act->event);
		request.body = act->event;
		act->call = hf_store_request(act->store, &request, on_recorded, act);
	}
}

struct order {
	const char *action, *rank, *reason;
	const char *event_reason, *done;
};

static int prepare_patch(const struct hf_page *page, const struct hf_page_job *job,
			 struct order *order, struct hf_json **ret_patch, struct hf_error *err)
{
	const struct hf_job_restart restart = {.framework = job->framework,
					       .job = job->doc,
					       .word = order->rank,
					       .now = hf_loop_wall(page->options.loop)};

	if (hf_streq(order->action, "suspend")) {
		order->event_reason = "SuspendRequested";
		order->done = "suspended";
		return hf_job_patch_suspend(job->doc, true, ret_patch, err);
	}
	if (hf_streq(order->action, "resume")) {
		order->event_reason = "ResumeRequested";
		order->done = "resumed";
		return hf_job_patch_suspend(job->doc, false, ret_patch, err);
	}
	if (hf_streq(order->action, "restart")) {
		order->event_reason = "RestartRequested";
		order->done = "restarting";
		return hf_job_patch_restart(&restart, ret_patch, err);
	}
	return hf_error_set(err, HF_E_BAD_REQUEST, "'action' must be suspend, resume or restart");
}

static void send_patch(const struct hf_page_request *request, const struct hf_page_job *job,
		       const struct order *order, struct hf_json *patch)
{
	HF_AUTO_DOC body = hf_doc_from_json(hf_json_ref(patch));
	struct hf_request call = {
		.verb = HF_VERB_PATCH,
		.resource = hf_resource_by_plural(job->framework->group, job->framework->plural),
		.ns = job->ns,
		.name = job->name,
		.body = body,
		.patch_type = HF_PATCH_MERGE,
		.timeout = ACT_TIMEOUT};
	struct hf_page_act *act = create_act(request);

	if (act == NULL)
		return;
	act->message = hf_xasprintf("%s/%s %s", job->framework->singular, job->name, order->done);
	if (!hf_str_is_empty(order->reason)) {
		HF_AUTOFREE char *reason =
			hf_xstrndup(order->reason, hf_utf8_cut(order->reason, REASON_MAX));
		HF_AUTOFREE char *text =
			hf_xasprintf("%s (by %s on the page)", reason, request->session->user);

		act->event = hf_job_reason_event(job->doc, order->event_reason, text,
						 hf_loop_wall(request->page->options.loop));
	}
	act->call = hf_store_request(act->store, &call, on_patched, act);
}

void hf_page_act(const struct hf_page_request *request)
{
	HF_AUTO_JSON body = NULL;
	HF_AUTO_JSON patch = NULL;
	struct hf_page_job job;
	struct order order;
	struct hf_error err;
	const char *bytes;
	size_t len;

	bytes = hf_exchange_body(request->ex, &len);
	if (hf_json_parse(bytes, len, NULL, &body, &err) != 0) {
		hf_page_answer_error(request->page, request->ex, 400, "the body is not JSON: %s",
				     err.text);
		return;
	}
	if (!hf_page_find_job(request, &job))
		return;
	order = (struct order){.action = hf_json_path_str(body, "action", NULL),
			       .rank = hf_json_path_str(body, "rank", NULL),
			       .reason = hf_json_path_str(body, "reason", NULL)};
	if (prepare_patch(request->page, &job, &order, &patch, &err) != 0) {
		hf_page_answer_error(request->page, request->ex,
				     err.code == HF_E_CONFLICT ? 409 : 400, "%s", err.text);
	} else if (patch == NULL) {
		HF_AUTO_JSON answer = hf_json_object();
		HF_AUTOFREE char *message = hf_xasprintf(
			"%s/%s is already %s", job.framework->singular, job.name, order.done);

		hf_json_set_str(answer, "message", message);
		hf_page_answer_json(request->page, request->ex, 202, answer);
	} else {
		send_patch(request, &job, &order, patch);
	}
}
