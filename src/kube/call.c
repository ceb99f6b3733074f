/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kube/kube_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/text_internal.h"
#include "store/request.h"
#include "store/resource.h"

#include <stdlib.h>

/* Requests that get one answer. */
struct kube_call {
	struct hf_call base;
	struct hf_kube_op op;
	struct hf_request *request;
	hf_reply_fn done;
	void *arg;
	bool retried;
};

static void send_call(struct kube_call *call);

static struct kube_call *call_of(struct hf_kube_op *op)
{
	return (struct kube_call *)((char *)op - offsetof(struct kube_call, op));
}

static void call_free(struct kube_call *call)
{
	if (call->op.kube != NULL)
		hf_kube_op_unlink(&call->op);
	call->request = hf_request_free(call->request);
	free(call);
}

/* The handle is dead before the callback runs: what it does to the store cannot reach us. */
static void finish(struct kube_call *call, const struct hf_reply *reply)
{
	hf_reply_fn done = call->done;
	void *arg = call->arg;

	call_free(call);
	done(arg, reply);
}

static void finish_error(struct kube_call *call, const struct hf_kube_failure *failure,
			 hf_time server_time)
{
	struct hf_reply reply = {
		.code = failure->err.code,
		.message = failure->err.text,
		.object = failure->status,
		.resource_version = "",
		.continue_token = "",
		.remaining = -1,
		.server_time = server_time,
		.retry_after = failure->retry_after,
	};

	finish(call, &reply);
}

static void send_failed(void *arg)
{
	struct kube_call *call = call_of(arg);
	struct hf_kube_failure failure = {.err = call->op.err};

	finish_error(call, &failure, HF_TIME_NONE);
}

void hf_kube_call_abandon(struct hf_kube_op *op)
{
	struct hf_kube_failure failure = {.retry_after = 0};

	(void)hf_error_set(&failure.err, HF_E_CANCELED, "the store was closed");
	finish_error(call_of(op), &failure, HF_TIME_NONE);
}

void hf_kube_cancel(struct hf_call *base)
{
	call_free((struct kube_call *)base);
}

static int read_list(struct kube_call *call, const struct hf_http_result *result,
		     struct hf_reply *reply, struct hf_error *err)
{
	const struct hf_resource *resource = call->request->resource;
	struct hf_kube_list list;
	int rc = hf_kube_list_read(result->body, result->body_len, resource, &list, err);

	if (rc != 0)
		return hf_error_wrap(err, "cannot read the list of %s", resource->plural);
	reply->items = list.items;
	reply->n_items = list.len;
	reply->resource_version = list.resource_version;
	reply->continue_token = list.continue_token;
	reply->remaining = list.remaining;
	finish(call, reply);
	hf_kube_list_release(&list);
	return 0;
}

static void finish_success(struct kube_call *call, const struct hf_http_result *result,
			   hf_time server_time)
{
	struct hf_reply reply = {
		.message = "",
		.resource_version = "",
		.continue_token = "",
		.remaining = -1,
		.server_time = server_time,
	};
	HF_AUTO_DOC doc = NULL;
	struct hf_kube_failure failure = {.retry_after = 0};
	int rc;

	if (call->request->verb == HF_VERB_LIST) {
		rc = read_list(call, result, &reply, &failure.err);
	} else {
		rc = hf_kube_object_read(result->body, result->body_len, &doc, &failure.err);
		if (rc == 0) {
			reply.object = doc;
			finish(call, &reply);
		}
	}
	if (rc != 0) {
		/* It was done, or not: an answer that cannot be read says neither. */
		(void)hf_error_wrap(&failure.err, "bad answer from the server");
		failure.err.code = HF_E_TIMEOUT;
		finish_error(call, &failure, server_time);
	}
}

static bool only_reads(const struct hf_request *request)
{
	return request->verb == HF_VERB_GET || request->verb == HF_VERB_LIST;
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct kube_call *call = call_of(arg);
	hf_time server_time = HF_TIME_NONE;

	call->op.transfer = NULL;
	if (result->code == 0 && result->transfer != NULL)
		server_time = hf_kube_date_parse(hf_transfer_header(result->transfer, "Date"));
	if (result->code == 0 && result->status >= 200 && result->status < 300) {
		finish_success(call, result, server_time);
		return;
	}
	/* A broken connection under a read is worth one more try at once; a write may have
	 * been done, which the caller has to find out. */
	if (result->retry_now && !call->retried && only_reads(call->request)) {
		call->retried = true;
		send_call(call);
		return;
	}
	struct hf_kube_failure failure;
	hf_kube_failure_read(result, result->body, result->body_len, &failure);
	struct hf_doc *status = failure.status;
	finish_error(call, &failure, server_time);
	hf_doc_unref(status);
}

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
	if (request->precondition_uid != NULL || request->precondition_resource_version != NULL) {
		struct hf_json *preconditions = hf_json_ensure_object(options, "preconditions");
		hf_json_set_str(preconditions, "uid", request->precondition_uid);
		hf_json_set_str(preconditions, "resourceVersion",
				request->precondition_resource_version);
	}
	hf_json_write(options, HF_JSON_COMPACT, sb);
}

static void send_call(struct kube_call *call)
{
	static const char *const headers[] = {"Accept: application/json", NULL};
	const struct hf_request *request = call->request;
	HF_AUTO_STRBUF target = HF_STRBUF_INIT(HF_KUBE_TARGET_BYTES_MAX);
	HF_AUTO_STRBUF options = HF_STRBUF_INIT(4096);
	struct hf_http_request http = {
		.method = method_of(request->verb),
		.target = target.data,
		.headers = headers,
		.gzip = request->verb == HF_VERB_LIST,
		.timeout = request->timeout,
		.response_bytes_max = HF_KUBE_LIST_BYTES_MAX,
		.on_done = on_done,
		.arg = &call->op,
	};

	hf_kube_target(&target, request);
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
	hf_kube_op_send(&call->op, &http, send_failed);
}

struct hf_call *hf_kube_request(struct hf_store *store, const struct hf_request *request,
				hf_reply_fn done, void *arg)
{
	struct hf_kube *kube = (struct hf_kube *)store;
	struct kube_call *call = hf_xcalloc(1, sizeof(*call));

	call->base.ops = &hf_kube_ops;
	call->done = done;
	call->arg = arg;
	call->request = hf_request_copy(request);
	hf_kube_op_link(kube, &call->op, HF_KUBE_CALL);
	if (hf_request_check(request, &call->op.err) != 0)
		hf_kube_op_fail(&call->op, send_failed);
	else
		send_call(call);
	return &call->base;
}
