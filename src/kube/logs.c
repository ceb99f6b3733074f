/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Log streams of a container: passes on the bytes as they arrive, then reports one end. */
#include "kube/kube_internal.h"

#include "base/mem.h"

#include <stdlib.h>

/* A log stream. It is freed by hf_kube_logs_stop. If the callback makes that call, the stream is
 * freed when the callback returns. */
struct kube_logs {
	struct hf_log_stream base;
	struct hf_kube_op op;
	hf_log_fn fn;
	void *arg;
	struct hf_strbuf target;
	/* body of a response with a status other than 200: the reason of the refusal */
	struct hf_strbuf refusal;
	int status;
	/* calling: fn is being called; stopped: hf_kube_logs_stop was called inside fn, so the
	 * stream is freed after it */
	bool calling, stopped;
};

#define REFUSAL_BYTES_MAX ((size_t)64 << 10)

static struct kube_logs *logs_of(struct hf_kube_op *op)
{
	return (struct kube_logs *)((char *)op - offsetof(struct kube_logs, op));
}

static void logs_free(struct kube_logs *logs)
{
	if (logs->op.kube != NULL)
		hf_kube_op_unlink(&logs->op);
	hf_strbuf_release(&logs->refusal);
	hf_strbuf_release(&logs->target);
	free(logs);
}

void hf_kube_logs_stop(struct hf_log_stream *base)
{
	struct kube_logs *logs = (struct kube_logs *)base;

	logs->stopped = true;
	if (!logs->calling)
		logs_free(logs);
	else if (logs->op.kube != NULL)
		hf_kube_op_unlink(&logs->op);
}

static void deliver_bytes(struct kube_logs *logs, const char *bytes, size_t len,
			  const struct hf_error *end)
{
	logs->calling = true;
	logs->fn(logs->arg, bytes, len, end != NULL ? end->code : 0, end != NULL ? end->text : "");
	logs->calling = false;
	if (logs->stopped)
		logs_free(logs);
}

static void deliver_end(struct kube_logs *logs, const struct hf_error *end)
{
	if (logs->op.kube != NULL)
		hf_kube_op_unlink(&logs->op);
	deliver_bytes(logs, "", 0, end);
}

static void on_head(void *arg, struct hf_transfer *transfer, int status)
{
	struct kube_logs *logs = logs_of(arg);

	logs->status = status;
	hf_kube_op_observe(&logs->op, status);
}

static void on_data(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len)
{
	struct kube_logs *logs = logs_of(arg);

	if (logs->status == 200)
		deliver_bytes(logs, bytes, len, NULL);
	else
		hf_strbuf_add(&logs->refusal, bytes, len);
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct kube_logs *logs = logs_of(arg);
	struct hf_kube_failure failure = {.retry_after = 0};

	logs->op.transfer = NULL;
	if (logs->status == 0)
		hf_kube_op_observe(&logs->op, result->code == 0 ? result->status : 0);
	if (hf_kube_op_renew_credentials(&logs->op, result)) {
		hf_strbuf_clear(&logs->refusal);
		logs->status = 0;
		hf_kube_op_start(&logs->op);
		return;
	}
	if (result->code != 0 || result->status != 200) {
		hf_kube_failure_read(result, logs->refusal.data, logs->refusal.len,
				     hf_loop_wall(logs->op.kube->loop), &failure);
		hf_kube_op_explain(&logs->op, result, &failure.err);
	}
	struct hf_doc *status = failure.status;
	deliver_end(logs, &failure.err);
	hf_doc_unref(status);
}

static void logs_failed(struct hf_kube_op *op, const struct hf_error *err)
{
	deliver_end(logs_of(op), err);
}

static void logs_abandon(struct hf_kube_op *op)
{
	struct hf_error err = {.code = 0};

	(void)hf_error_set(&err, HF_E_CANCELED, "the store was closed");
	deliver_end(logs_of(op), &err);
}

static void logs_send(struct hf_kube_op *op)
{
	const struct hf_http_request http = {
		.method = "GET",
		.target = logs_of(op)->target.data,
		.stream = true,
		.on_head = on_head,
		.on_data = on_data,
		.on_done = on_done,
		.arg = op,
	};

	hf_kube_op_send(op, &http);
}

struct hf_log_stream *hf_kube_logs(struct hf_store *store, const struct hf_log_options *options,
				   hf_log_fn fn, void *arg)
{
	static const struct hf_kube_op_class kind = {
		.send = logs_send, .failed = logs_failed, .abandon = logs_abandon};
	struct hf_kube *kube = (struct hf_kube *)store;
	struct kube_logs *logs = hf_xcalloc(1, sizeof(*logs));

	logs->base.ops = store->ops;
	logs->fn = fn;
	logs->arg = arg;
	hf_strbuf_init(&logs->refusal, REFUSAL_BYTES_MAX);
	hf_strbuf_init(&logs->target, HF_KUBE_TARGET_BYTES_MAX);
	hf_kube_log_target(&logs->target, options);
	hf_kube_op_link(kube, &logs->op, &kind);
	if (hf_strbuf_ok(&logs->target, "the request's URL", &logs->op.err) != 0)
		hf_kube_op_fail(&logs->op);
	else
		hf_kube_op_start(&logs->op);
	return &logs->base;
}
