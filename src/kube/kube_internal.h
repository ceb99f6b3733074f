/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_KUBE_INTERNAL_H
#define HF_KUBE_KUBE_INTERNAL_H

#include "base/strbuf.h"
#include "http/client.h"
#include "kube/kube.h"
#include "loop/loop.h"
#include "store/backend.h"

#define HF_KUBE_TARGET_BYTES_MAX ((size_t)8 << 10)

/* What calls, watches and log streams have in common: a transfer, a place in the store's
 * list so that destroy finds them, and a task for failures found before sending. */
enum hf_kube_op_kind { HF_KUBE_CALL, HF_KUBE_WATCH, HF_KUBE_LOGS };

struct hf_kube_op {
	struct hf_kube_op *prev, *next;
	struct hf_kube *kube;
	enum hf_kube_op_kind kind;
	struct hf_transfer *transfer; /* NULL: not under way */
	struct hf_task *fail_task;    /* NULL unless sending failed at once */
	struct hf_error err;          /* what fail_task reports */
};

struct hf_kube {
	struct hf_store base;
	struct hf_loop *loop;
	struct hf_http_client *client;
	struct hf_kube_op *ops;
};

extern const struct hf_store_ops hf_kube_ops;

void hf_kube_op_link(struct hf_kube *kube, struct hf_kube_op *op, enum hf_kube_op_kind kind);
void hf_kube_op_unlink(struct hf_kube_op *op); /* cancels the transfer and the task as well */
/* Send; where that fails at once, have `failed` run from the loop with op->err set. */
void hf_kube_op_send(struct hf_kube_op *op, const struct hf_http_request *request,
		     hf_task_fn failed);

/* Have `failed` run from the loop; op->err says why. */
void hf_kube_op_fail(struct hf_kube_op *op, hf_task_fn failed);

/* call.c */
struct hf_call *hf_kube_request(struct hf_store *store, const struct hf_request *request,
				hf_reply_fn done, void *arg);
void hf_kube_cancel(struct hf_call *call);
void hf_kube_call_abandon(struct hf_kube_op *op); /* store destroyed: HF_E_CANCELED */
/* watch.c */
struct hf_watch *hf_kube_watch(struct hf_store *store, const struct hf_watch_options *options,
			       hf_event_fn fn, void *arg);
void hf_kube_watch_stop(struct hf_watch *watch);
void hf_kube_watch_abandon(struct hf_kube_op *op);
/* logs.c */
struct hf_log_stream *hf_kube_logs(struct hf_store *store, const struct hf_log_options *options,
				   hf_log_fn fn, void *arg);
void hf_kube_logs_stop(struct hf_log_stream *stream);
void hf_kube_logs_abandon(struct hf_kube_op *op);

/* url.c: targets ("/api/v1/namespaces/default/pods?limit=500") */
void hf_kube_target(struct hf_strbuf *sb, const struct hf_request *request);
void hf_kube_watch_target(struct hf_strbuf *sb, const struct hf_watch_options *options);
void hf_kube_log_target(struct hf_strbuf *sb, const struct hf_log_options *options);

/* answer.c */

/* What a failed answer says: its Status' message and reason, or the HTTP status alone. */
struct hf_kube_failure {
	struct hf_error err;
	hf_time retry_after;   /* span */
	struct hf_doc *status; /* owned; NULL: the body was no Status */
};
void hf_kube_failure_read(const struct hf_http_result *result, const char *body, size_t len,
			  struct hf_kube_failure *ret_failure);
/* The Date header: HF_TIME_NONE where absent or malformed. */
hf_time hf_kube_date_parse(const char *text);

#endif
