/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kube/kube_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/text_internal.h"
#include "store/request.h"

#include <stdlib.h>
#include <string.h>

/*
 * Watches: a stream of JSON lines, {"type": …, "object": …}.
 *
 * The callback may stop the watch while a chunk is being taken apart, so the loop over
 * lines looks at `stopped` after each event and the last one out frees.
 */
struct kube_watch {
	struct hf_watch base;
	struct hf_kube_op op;
	hf_event_fn fn;
	void *arg;
	struct hf_strbuf buffer; /* a line not yet whole; or the body of a refusal */
	int status;              /* of the HTTP head; 0: none yet */
	bool calling;            /* inside fn */
	bool stopped;            /* stop came while calling */
	bool ended;              /* ENDED was told */
};

static struct kube_watch *watch_of(struct hf_kube_op *op)
{
	return (struct kube_watch *)((char *)op - offsetof(struct kube_watch, op));
}

static void watch_free(struct kube_watch *watch)
{
	if (watch->op.kube != NULL)
		hf_kube_op_unlink(&watch->op);
	hf_strbuf_release(&watch->buffer);
	free(watch);
}

void hf_kube_watch_stop(struct hf_watch *base)
{
	struct kube_watch *watch = (struct kube_watch *)base;

	watch->stopped = true;
	if (watch->calling) {
		/* No more bytes; the caller of fn frees. */
		if (watch->op.kube != NULL)
			hf_kube_op_unlink(&watch->op);
	} else {
		watch_free(watch);
	}
}

/* false: the watch was stopped by the callback and is gone. */
static bool deliver(struct kube_watch *watch, const struct hf_event *event)
{
	watch->calling = true;
	watch->fn(watch->arg, event);
	watch->calling = false;
	if (!watch->stopped)
		return true;
	watch_free(watch);
	return false;
}

static bool deliver_end(struct kube_watch *watch, const struct hf_kube_failure *failure)
{
	struct hf_event event = {
		.type = HF_EVENT_ENDED,
		.resource_version = "",
		.code = failure->err.code,
		.message = failure->err.text,
		.retry_after = failure->retry_after,
	};

	watch->ended = true;
	/* Nothing comes after ENDED, whatever the transfer still holds. */
	if (watch->op.kube != NULL)
		hf_kube_op_unlink(&watch->op);
	return deliver(watch, &event);
}

static bool deliver_failure(struct kube_watch *watch, int code, const char *text)
{
	struct hf_kube_failure failure = {.retry_after = 0};

	(void)hf_error_set(&failure.err, code, "%s", text);
	return deliver_end(watch, &failure);
}

/* An ERROR event carries a Status: mostly 410, "too old resource version". */
static bool deliver_error_event(struct kube_watch *watch, const struct hf_json *status)
{
	struct hf_kube_failure failure = {.retry_after = 0};
	int64_t http = hf_json_i64(hf_json_get(status, "code"), 500);
	int64_t retry_s =
		hf_json_i64(hf_json_path(status, "details", "retryAfterSeconds", NULL), 0);

	(void)hf_error_set(
		&failure.err,
		hf_code_from_http((int)http, hf_json_path_str(status, "reason", NULL)), "%s",
		hf_str_or(hf_json_path_str(status, "message", NULL), "the watch failed"));
	if (retry_s > 0 && retry_s <= 86400)
		failure.retry_after = retry_s * HF_SECOND;
	return deliver_end(watch, &failure);
}

static bool event_type(const struct hf_skip_string *text, enum hf_event_type *ret_type)
{
	static const struct {
		const char *text;
		enum hf_event_type type;
	} types[] = {
		{"ADDED", HF_EVENT_ADDED},
		{"MODIFIED", HF_EVENT_MODIFIED},
		{"DELETED", HF_EVENT_DELETED},
		{"BOOKMARK", HF_EVENT_BOOKMARK},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(types); i++) {
		if (hf_skip_equals(text, types[i].text, strlen(types[i].text))) {
			*ret_type = types[i].type;
			return true;
		}
	}
	return false;
}

static bool take_line(struct kube_watch *watch, const char *line, size_t len)
{
	struct hf_kube_event_text text;
	struct hf_event event = {.message = ""};
	struct hf_error err;
	HF_AUTO_DOC doc = NULL;

	if (hf_kube_event_split(line, len, &text, &err) != 0)
		return deliver_failure(watch, HF_E_UNAVAILABLE, err.text);
	doc = hf_doc_from_text(text.object, text.object_len);
	if (hf_skip_equals(&text.type, "ERROR", strlen("ERROR")))
		return deliver_error_event(watch, hf_doc_json(doc));
	/* A type of the future says nothing we can act on. */
	if (!event_type(&text.type, &event.type))
		return true;
	event.object = doc;
	event.resource_version = hf_doc_resource_version(doc);
	return deliver(watch, &event);
}

static void on_head(void *arg, struct hf_transfer *transfer, int status)
{
	watch_of(arg)->status = status;
}

static void on_data(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len)
{
	struct kube_watch *watch = watch_of(arg);
	size_t start = 0;

	hf_strbuf_add(&watch->buffer, bytes, len);
	if (watch->status != 200)
		return; /* the Status of a refusal: read when it is whole */
	if (watch->buffer.full) {
		(void)deliver_failure(watch, HF_E_TOO_LARGE, "an event is larger than the limit");
		return;
	}
	for (;;) {
		const char *from = watch->buffer.data + start;
		const char *end = memchr(from, '\n', watch->buffer.len - start);
		if (end == NULL)
			break;
		if (end > from && !take_line(watch, from, (size_t)(end - from)))
			return;
		if (watch->ended)
			return;
		start = (size_t)(end - watch->buffer.data) + 1;
	}
	hf_strbuf_consume(&watch->buffer, start);
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct kube_watch *watch = watch_of(arg);
	struct hf_kube_failure failure = {.retry_after = 0};
	bool refused = result->code == 0 && result->status != 200;

	watch->op.transfer = NULL;
	/* A server ends watches by itself after some minutes: code 0. */
	if (result->code != 0 || refused)
		hf_kube_failure_read(result, watch->buffer.data, watch->buffer.len, &failure);
	struct hf_doc *status = failure.status;
	(void)deliver_end(watch, &failure);
	hf_doc_unref(status);
}

static void send_failed(void *arg)
{
	struct kube_watch *watch = watch_of(arg);
	struct hf_kube_failure failure = {.err = watch->op.err};

	(void)deliver_end(watch, &failure);
}

void hf_kube_watch_abandon(struct hf_kube_op *op)
{
	(void)deliver_failure(watch_of(op), HF_E_CANCELED, "the store was closed");
}

struct hf_watch *hf_kube_watch(struct hf_store *store, const struct hf_watch_options *options,
			       hf_event_fn fn, void *arg)
{
	static const char *const headers[] = {"Accept: application/json", NULL};
	struct hf_kube *kube = (struct hf_kube *)store;
	struct kube_watch *watch = hf_xcalloc(1, sizeof(*watch));
	HF_AUTO_STRBUF target = HF_STRBUF_INIT(HF_KUBE_TARGET_BYTES_MAX);
	struct hf_http_request http = {
		.method = "GET",
		.headers = headers,
		.stream = true,
		.on_head = on_head,
		.on_data = on_data,
		.on_done = on_done,
		.arg = &watch->op,
	};

	watch->base.ops = &hf_kube_ops;
	watch->fn = fn;
	watch->arg = arg;
	hf_strbuf_init(&watch->buffer, HF_KUBE_EVENT_BYTES_MAX);
	hf_kube_op_link(kube, &watch->op, HF_KUBE_WATCH);
	if (hf_watch_options_check(options, &watch->op.err) != 0) {
		hf_kube_op_fail(&watch->op, send_failed);
		return &watch->base;
	}
	hf_kube_watch_target(&target, options);
	http.target = target.data;
	hf_kube_op_send(&watch->op, &http, send_failed);
	return &watch->base;
}
