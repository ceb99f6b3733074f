/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Requests with one response: get, list, create, update, patch, delete. Sends the request, retries
 * it where retry.c allows that, and calls the user's callback exactly once, from the loop. */
#include "kube/kube_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/json_split_internal.h"
#include "store/request.h"
#include "store/resource.h"

#include <stdlib.h>

/* Limit of the warnings that a call keeps of one response; users read only the first few. */
#define WARNINGS_MAX 16u

/* A request with one response. It lives until its callback has returned or until hf_kube_cancel. */
struct kube_call {
	struct hf_call base;
	struct hf_kube_op op;
	struct hf_request *request;
	hf_reply_fn done;
	void *arg;
	/* Values of the response's headers, copied because the transfer is freed before the
	 * callback. */
	hf_time server_time;
	char *warnings[WARNINGS_MAX];
	size_t n_warnings;
};

static struct kube_call *call_of(struct hf_kube_op *op)
{
	return (struct kube_call *)((char *)op - offsetof(struct kube_call, op));
}

static void call_free(struct kube_call *call)
{
	if (call->op.kube != NULL)
		hf_kube_op_unlink(&call->op);
	call->request = hf_request_free(call->request);
	for (size_t i = 0; i < call->n_warnings; i++)
		free(call->warnings[i]);
	free(call);
}

/* Ends the call: takes it out of the store's list before `done` runs. So if `done` destroys the
 * store, this call is not destroyed twice. */
static void finish_call(struct kube_call *call, struct hf_reply *reply)
{
	hf_kube_op_unlink(&call->op);
	reply->server_time = call->server_time;
	reply->warnings = (const char *const *)call->warnings;
	reply->n_warnings = call->n_warnings;
	call->done(call->arg, reply);
	call_free(call);
}

static void finish_error(struct kube_call *call, const struct hf_kube_failure *failure)
{
	struct hf_reply reply = {
		.code = failure->err.code,
		.message = failure->err.text,
		.object = failure->status,
		.resource_version = "",
		.continue_token = "",
		.remaining = -1,
		.retry_after = failure->retry_after,
	};

	finish_call(call, &reply);
}

static void call_failed(struct hf_kube_op *op, const struct hf_error *err)
{
	struct hf_kube_failure failure = {.err = *err};

	finish_error(call_of(op), &failure);
}

static void call_abandon(struct hf_kube_op *op)
{
	struct hf_kube_failure failure = {.retry_after = 0};

	(void)hf_error_set(&failure.err, HF_E_CANCELED, "the store was closed");
	finish_error(call_of(op), &failure);
}

void hf_kube_cancel(struct hf_call *base)
{
	call_free((struct kube_call *)base);
}

/* --- responses --- */

static void copy_headers(struct kube_call *call, const struct hf_transfer *transfer)
{
	const char *header;

	call->server_time = hf_kube_date_parse(hf_transfer_header(transfer, "Date"));
	for (size_t i = 0; call->n_warnings < WARNINGS_MAX &&
			   (header = hf_transfer_header_at(transfer, "Warning", i)) != NULL;
	     i++)
		if (hf_kube_warning_parse(header, &call->warnings[call->n_warnings]))
			call->n_warnings++;
}

static int finish_list(struct kube_call *call, const struct hf_http_result *result,
		       struct hf_error *err)
{
	const struct hf_resource *resource = call->request->resource;
	struct hf_kube_list list;
	int rc = hf_kube_list_read(result->body, result->body_len, resource, &list, err);

	if (rc != 0)
		return hf_error_wrap(err, "cannot read the list of %s", resource->plural);
	/* Refuse a list without a resourceVersion: no watch could continue from it. */
	if (list.resource_version[0] == '\0') {
		hf_kube_list_release(&list);
		return hf_error_set(err, HF_E_BAD_REQUEST, "the list of %s has no resourceVersion",
				    resource->plural);
	}
	struct hf_reply reply = {
		.message = "",
		.items = list.items,
		.n_items = list.len,
		.resource_version = list.resource_version,
		.continue_token = list.continue_token,
		.remaining = list.remaining,
	};
	finish_call(call, &reply);
	hf_kube_list_release(&list);
	return 0;
}

static int finish_object(struct kube_call *call, const struct hf_http_result *result,
			 struct hf_error *err)
{
	HF_AUTO_DOC doc = NULL;
	int rc = hf_kube_object_read(result->body, result->body_len, &doc, err);

	if (rc != 0)
		return rc;
	struct hf_reply reply = {
		.message = "",
		.object = doc,
		.resource_version = "",
		.continue_token = "",
		.remaining = -1,
	};
	finish_call(call, &reply);
	return 0;
}

static bool only_reads(const struct hf_request *request)
{
	return request->verb == HF_VERB_GET || request->verb == HF_VERB_LIST;
}

static void finish_success(struct kube_call *call, const struct hf_http_result *result)
{
	struct hf_kube_failure failure = {.retry_after = 0};
	char text[HF_KUBE_RESPONSE_TEXT_MAX];
	int rc = call->request->verb == HF_VERB_LIST ? finish_list(call, result, &failure.err)
						     : finish_object(call, result, &failure.err);

	if (rc == 0)
		return;
	hf_kube_response_describe(result, result->body, result->body_len, text);
	(void)hf_error_wrap(&failure.err, "bad answer from the server (%s)", text);
	/* The response cannot be read. For a write the outcome is then unknown (HF_E_TIMEOUT). */
	failure.err.code = only_reads(call->request) ? HF_E_BAD_REQUEST : HF_E_TIMEOUT;
	finish_error(call, &failure);
}

/* Retries the call if retry.c allows it. Returns true if the request will be sent again. */
static bool retry_call(struct kube_call *call, const struct hf_http_result *result,
		       const struct hf_kube_failure *failure)
{
	struct hf_kube *kube = call->op.kube;
	const struct hf_kube_try made = {
		.reads = only_reads(call->request),
		.tries = call->op.tries,
		.code = result->code,
		.status = result->status,
		.retry_after = failure->retry_after,
		.retry_now = result->retry_now,
		.permanent = result->permanent,
	};
	hf_time left = call->op.deadline - hf_loop_mono(kube->loop), delay;

	if (left > 0 && hf_kube_op_renew_credentials(&call->op, result)) {
		hf_kube_op_start(&call->op);
		return true;
	}
	delay = hf_kube_retry_delay(&made, &kube->rng);
	if (delay >= left)
		return false;
	hf_kube_op_start_after(&call->op, delay);
	return true;
}

/* Treats a 4xx response that was cut off after its head like a complete one: the server did
 * nothing. (If a server refuses before it has read the request, curl 7.88 sometimes loses the rest
 * of the response.) Exception: 409 has two meanings, and only the body says which. */
static struct hf_http_result accept_cut_refusal(const struct hf_http_result *result)
{
	struct hf_http_result taken = *result;

	if (result->code != HF_E_TIMEOUT || result->status < 400 || result->status > 499 ||
	    result->status == 409)
		return taken;
	taken.code = 0;
	taken.body = "";
	taken.body_len = 0;
	return taken;
}

static void on_done(void *arg, const struct hf_http_result *whole)
{
	const struct hf_http_result taken = accept_cut_refusal(whole), *result = &taken;
	struct kube_call *call = call_of(arg);
	struct hf_kube_failure failure;
	struct hf_doc *status;

	call->op.transfer = NULL;
	hf_kube_op_observe(&call->op, result->code == 0 ? result->status : 0);
	if (result->code == 0 && result->status >= 200 && result->status < 300) {
		copy_headers(call, result->transfer);
		finish_success(call, result);
		return;
	}
	hf_kube_failure_read(result, result->body, result->body_len,
			     hf_loop_wall(call->op.kube->loop), &failure);
	status = failure.status;
	if (!retry_call(call, result, &failure)) {
		if (result->code == 0)
			copy_headers(call, result->transfer);
		hf_kube_op_explain(&call->op, result, &failure.err);
		if (call->op.tries > 1)
			(void)hf_error_wrap(&failure.err, "after %u tries", call->op.tries);
		finish_error(call, &failure);
	}
	(void)hf_doc_unref(status);
}

/* --- requests --- */

static const char *method_of(enum hf_verb verb)
{
	switch (verb) {
	case HF_VERB_GET:
	case HF_VERB_LIST: return "GET";
	case HF_VERB_CREATE: return "POST";
	case HF_VERB_UPDATE: return "PUT";
	case HF_VERB_PATCH: return "PATCH";
	case HF_VERB_DELETE: return "DELETE";
	}
	return "GET";
}

static const char *content_type_of(const struct hf_request *request)
{
	if (request->verb != HF_VERB_PATCH)
		return "application/json";
	switch (request->patch_type) {
	case HF_PATCH_MERGE: return "application/merge-patch+json";
	case HF_PATCH_JSON: return "application/json-patch+json";
	case HF_PATCH_STRATEGIC: return "application/strategic-merge-patch+json";
	case HF_PATCH_APPLY: return "application/apply-patch+yaml";
	}
	return "application/json";
}

static void write_delete_options(const struct hf_request *request, struct hf_strbuf *sb)
{
	static const char *const policies[] = {
		[HF_PROPAGATE_BACKGROUND] = "Background",
		[HF_PROPAGATE_FOREGROUND] = "Foreground",
		[HF_PROPAGATE_ORPHAN] = "Orphan",
	};
	HF_AUTO_JSON options = hf_json_object();

	hf_json_set_str(options, "kind", "DeleteOptions");
	hf_json_set_str(options, "apiVersion", "v1");
	if (request->grace_seconds != HF_GRACE_DEFAULT)
		hf_json_set_i64(options, "gracePeriodSeconds", request->grace_seconds);
	if (request->propagation != HF_PROPAGATE_DEFAULT)
		hf_json_set_str(options, "propagationPolicy", policies[request->propagation]);
	/* Put dryRun into the body too: an API server ignores dryRun in the URL of a deletion with
	 * a body, and would delete the object. */
	if (request->dry_run)
		hf_json_append(hf_json_ensure_array(options, "dryRun"), hf_json_string("All"));
	if (request->precondition_uid != NULL || request->precondition_resource_version != NULL) {
		struct hf_json *preconditions = hf_json_ensure_object(options, "preconditions");
		hf_json_set_str(preconditions, "uid", request->precondition_uid);
		hf_json_set_str(preconditions, "resourceVersion",
				request->precondition_resource_version);
	}
	hf_json_write(options, HF_JSON_COMPACT, sb);
}

static void call_send(struct hf_kube_op *op)
{
	static const char *const headers[] = {"Accept: application/json", NULL};
	struct kube_call *call = call_of(op);
	const struct hf_request *request = call->request;
	HF_AUTO_STRBUF target = HF_STRBUF_INIT(HF_KUBE_TARGET_BYTES_MAX);
	HF_AUTO_STRBUF options = HF_STRBUF_INIT(4096);
	hf_time left = op->deadline - hf_loop_mono(op->kube->loop);
	struct hf_http_request http = {
		.method = method_of(request->verb),
		.headers = headers,
		.gzip = op->kube->gzip && request->verb == HF_VERB_LIST,
		.timeout = left,
		.response_bytes_max = HF_KUBE_LIST_BYTES_MAX,
		.on_done = on_done,
		.arg = op,
	};

	/* The deadline has passed: this process was suspended during the retry delay. Do not send
	 * the request, because the caller may have lost the leader election meanwhile. */
	if (left <= 0) {
		(void)hf_error_set(&op->err, HF_E_UNAVAILABLE,
				   "the request was not sent: its deadline had passed");
		hf_kube_op_fail(op);
		return;
	}
	hf_kube_target(&target, request);
	if (hf_strbuf_ok(&target, "the request's URL", &op->err) != 0) {
		hf_kube_op_fail(op);
		return;
	}
	http.target = target.data;
	if (request->verb == HF_VERB_DELETE) {
		write_delete_options(request, &options);
		http.body = options.data;
		http.body_len = options.len;
	} else if (request->body != NULL) {
		http.body = hf_doc_text(request->body, &http.body_len);
	}
	if (http.body != NULL)
		http.content_type = content_type_of(request);
	hf_kube_op_send(op, &http);
}

struct hf_call *hf_kube_request(struct hf_store *store, const struct hf_request *request,
				hf_reply_fn done, void *arg)
{
	static const struct hf_kube_op_class kind = {
		.send = call_send, .failed = call_failed, .abandon = call_abandon};
	struct hf_kube *kube = (struct hf_kube *)store;
	struct kube_call *call = hf_xcalloc(1, sizeof(*call));
	hf_time timeout = request->timeout > 0 ? request->timeout : kube->options.timeout;

	call->base.ops = store->ops;
	call->done = done;
	call->arg = arg;
	call->server_time = HF_TIME_NONE;
	call->request = hf_request_copy(request);
	hf_kube_op_link(kube, &call->op, &kind);
	call->op.deadline = hf_time_add(hf_loop_mono(kube->loop), timeout);
	if (hf_request_check(request, &call->op.err) != 0)
		hf_kube_op_fail(&call->op);
	else
		hf_kube_op_start(&call->op);
	return &call->base;
}
