/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Watches: streams of JSON lines, one event per line. Whenever a watch ends, the user gets one
 * ENDED event. The user resumes from the last version, so no event is lost or repeated.
 *
 * The callback may stop the watch while a chunk is being read. So the code checks `stopped` after
 * each event, and deliver_event frees a stopped watch. */
#include "kube/kube_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/request.h"

#include <stdlib.h>
#include <string.h>

/* A watch asks for a random timeout of five to ten minutes, like client-go's reflector. So watches
 * that start together do not end together. */
#define TIMEOUT_MIN (5 * HF_MINUTE)
/* An API server that was asked for bookmarks sends one a minute. If four are missing, the
 * connection is dead although it was never closed. */
#define SILENCE_WITH_BOOKMARKS (4 * HF_MINUTE)
#define SILENCE_AFTER_TIMEOUT (30 * HF_SECOND)
#define REFUSAL_BYTES_MAX ((size_t)256 << 10)

struct kube_watch {
	struct hf_watch base;
	struct hf_kube_op op;
	hf_event_fn fn;
	void *arg;
	struct hf_strbuf target;
	hf_time silence_max;
	/* the beginning of a line, while its rest has not arrived; or the body of a refusal */
	struct hf_strbuf buffer;
	int status;   /* HTTP status; 0: no head yet */
	bool calling; /* the callback fn is running */
	bool stopped; /* hf_kube_watch_stop was called inside fn */
	bool ended;   /* the ENDED event was delivered */
	/* the caller asked for initial_events, and the end of the initial events has not arrived */
	bool initial;
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
	hf_strbuf_release(&watch->target);
	free(watch);
}

void hf_kube_watch_stop(struct hf_watch *base)
{
	struct kube_watch *watch = (struct kube_watch *)base;

	watch->stopped = true;
	if (watch->calling) {
		/* Unlink the op, so that no further bytes arrive. If the callback runs,
		 * deliver_event frees the watch afterwards. */
		if (watch->op.kube != NULL)
			hf_kube_op_unlink(&watch->op);
	} else {
		watch_free(watch);
	}
}

/* Calls the user's callback with an event. Returns false if the callback stopped the watch, which
 * is then freed. */
static bool deliver_event(struct kube_watch *watch, const struct hf_event *event)
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
	/* Unlink the op first: the transfer may hold further bytes, and no event may follow
	 * ENDED. */
	if (watch->op.kube != NULL)
		hf_kube_op_unlink(&watch->op);
	return deliver_event(watch, &event);
}

static bool deliver_failure(struct kube_watch *watch, int code, const char *text)
{
	struct hf_kube_failure failure = {.retry_after = 0};

	(void)hf_error_set(&failure.err, code, "%s", text);
	return deliver_end(watch, &failure);
}

/* Adds the first words of a line that is not JSON to an error, to show a login page or a message
 * of a proxy. */
static void describe_line(const struct kube_watch *watch, const char *line, size_t len,
			  const struct hf_transfer *transfer, struct hf_error *err)
{
	const struct hf_http_result head = {.status = watch->status, .transfer = transfer};
	char text[HF_KUBE_RESPONSE_TEXT_MAX];

	if (len == 0 || line[0] == '{')
		return;
	hf_kube_response_describe(&head, line, len, text);
	(void)hf_error_wrap(err, "bad answer from the server (%s)", text);
}

/* Handles one line of a watch. Returns false if the rest of the chunk must be ignored, because the
 * watch has ended or was stopped. */
static bool take_line(struct kube_watch *watch, const char *line, size_t len)
{
	struct hf_kube_failure failure = {.retry_after = 0};
	enum hf_kube_line kind;
	struct hf_event event;
	struct hf_error err;
	bool lives;

	if (hf_kube_line_read(line, len, &kind, &event, &failure, &err) != 0) {
		describe_line(watch, line, len, watch->op.transfer, &err);
		return deliver_failure(watch, HF_E_UNAVAILABLE, err.text);
	}
	switch (kind) {
	case HF_KUBE_LINE_ERROR: return deliver_end(watch, &failure);
	case HF_KUBE_LINE_UNKNOWN: return true;
	case HF_KUBE_LINE_EVENT: break;
	}
	struct hf_doc *object = event.object;
	if (watch->initial && event.type == HF_EVENT_BOOKMARK && !event.initial_end) {
		/* The server ignored sendInitialEvents, so the end of the initial events will never
		 * come. */
		(void)hf_doc_unref(object);
		watch->op.kube->no_streams = true;
		return deliver_failure(watch, HF_E_INVALID,
				       "the server does not know sendInitialEvents");
	}
	watch->initial = watch->initial && !event.initial_end;
	lives = deliver_event(watch, &event);
	(void)hf_doc_unref(object);
	return lives;
}

static void on_head(void *arg, struct hf_transfer *transfer, int status)
{
	struct kube_watch *watch = watch_of(arg);

	watch->status = status;
	hf_kube_op_observe(&watch->op, status);
}

/* Handles the complete lines of this chunk in place. Returns false if the rest of the chunk must be
 * ignored. */
static bool take_lines(struct kube_watch *watch, const char **bytes, size_t *len)
{
	const char *end;

	while ((end = memchr(*bytes, '\n', *len)) != NULL) {
		const char *line = *bytes;
		size_t line_len = (size_t)(end - line);

		*bytes = end + 1;
		*len -= line_len + 1;
		if (line_len > 0 && (!take_line(watch, line, line_len) || watch->ended))
			return false;
	}
	return true;
}

/* Completes a line that began in an earlier chunk, if this chunk has the end of the line. */
static bool take_joined_line(struct kube_watch *watch, const char **bytes, size_t *len)
{
	const char *end = memchr(*bytes, '\n', *len);
	size_t more = end == NULL ? *len : (size_t)(end - *bytes);

	hf_strbuf_add(&watch->buffer, *bytes, more);
	if (end == NULL || watch->buffer.full) {
		*len = 0;
		return true;
	}
	*bytes = end + 1;
	*len -= more + 1;
	/* Take the line out of the watch: the callback may stop and free the watch. */
	HF_AUTO_STRBUF line = watch->buffer;

	hf_strbuf_init(&watch->buffer, line.bytes_max);
	return take_line(watch, line.data, line.len) && !watch->ended;
}

static void on_data(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len)
{
	struct kube_watch *watch = watch_of(arg);

	if (watch->status != 200) {
		/* Keep the beginning of a long refusal only. Bytes from behind a gap could make a
		 * Status that the server never sent. */
		size_t space = REFUSAL_BYTES_MAX - watch->buffer.len;

		hf_strbuf_add(&watch->buffer, bytes, len < space ? len : space);
		return;
	}
	if (watch->buffer.len > 0 && !take_joined_line(watch, &bytes, &len))
		return;
	if (!take_lines(watch, &bytes, &len))
		return;
	/* Keep the beginning of the unfinished line. A watch without events thus needs no memory
	 * for lines. */
	hf_strbuf_add(&watch->buffer, bytes, len);
	if (watch->buffer.full)
		(void)deliver_failure(watch, HF_E_TOO_LARGE,
				      "an event of the watch is larger than 4194304 bytes");
}

/* Reads why the server refused to start a watch. */
static void read_refusal(struct kube_watch *watch, const struct hf_http_result *result,
			 struct hf_kube_failure *ret_failure)
{
	struct hf_kube *kube = watch->op.kube;

	hf_kube_failure_read(result, watch->buffer.data, watch->buffer.len,
			     hf_loop_wall(kube->loop), ret_failure);
	hf_kube_op_explain(&watch->op, result, &ret_failure->err);
	if (watch->initial && (result->status == 422 || result->status == 400)) {
		kube->no_streams = true;
		ret_failure->err.code = HF_E_INVALID;
	}
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct kube_watch *watch = watch_of(arg);
	struct hf_kube_failure failure = {.retry_after = 0};

	watch->op.transfer = NULL;
	if (watch->status == 0)
		hf_kube_op_observe(&watch->op, result->code == 0 ? result->status : 0);
	if (hf_kube_op_renew_credentials(&watch->op, result)) {
		hf_strbuf_clear(&watch->buffer);
		watch->status = 0;
		hf_kube_op_start(&watch->op);
		return;
	}
	/* If the stream ended as usual, the code is 0: an API server ends each watch after some
	 * minutes. */
	if (result->code != 0)
		hf_kube_failure_read(result, "", 0, HF_TIME_NONE, &failure);
	else if (result->status != 200)
		read_refusal(watch, result, &failure);
	else if (watch->buffer.len > 0) {
		(void)hf_error_set(&failure.err, HF_E_UNAVAILABLE,
				   "the watch ended inside an event");
		describe_line(watch, watch->buffer.data, watch->buffer.len, result->transfer,
			      &failure.err);
	}
	struct hf_doc *status = failure.status;
	(void)deliver_end(watch, &failure);
	(void)hf_doc_unref(status);
}

static void watch_failed(struct hf_kube_op *op, const struct hf_error *err)
{
	struct hf_kube_failure failure = {.err = *err};

	(void)deliver_end(watch_of(op), &failure);
}

static void watch_abandon(struct hf_kube_op *op)
{
	(void)deliver_failure(watch_of(op), HF_E_CANCELED, "the store was closed");
}

static void watch_send(struct hf_kube_op *op)
{
	static const char *const headers[] = {"Accept: application/json", NULL};
	struct kube_watch *watch = watch_of(op);
	const struct hf_http_request http = {
		.method = "GET",
		.target = watch->target.data,
		.headers = headers,
		.idle_timeout = watch->silence_max,
		.stream = true,
		.on_head = on_head,
		.on_data = on_data,
		.on_done = on_done,
		.arg = op,
	};

	hf_kube_op_send(op, &http);
}

static void fill_target(struct kube_watch *watch, const struct hf_watch_options *options)
{
	struct hf_watch_options full = *options;

	if (full.timeout <= 0)
		full.timeout = TIMEOUT_MIN +
			       (hf_time)hf_rng_below(&watch->op.kube->rng, (uint64_t)TIMEOUT_MIN);
	watch->silence_max = hf_time_add(full.timeout, SILENCE_AFTER_TIMEOUT);
	if (full.bookmarks && watch->silence_max > SILENCE_WITH_BOOKMARKS)
		watch->silence_max = SILENCE_WITH_BOOKMARKS;
	if (watch->op.kube->options.watch_silence_max > 0)
		watch->silence_max = watch->op.kube->options.watch_silence_max;
	hf_strbuf_init(&watch->target, HF_KUBE_TARGET_BYTES_MAX);
	hf_kube_watch_target(&watch->target, &full);
}

struct hf_watch *hf_kube_watch(struct hf_store *store, const struct hf_watch_options *options,
			       hf_event_fn fn, void *arg)
{
	static const struct hf_kube_op_class kind = {
		.send = watch_send, .failed = watch_failed, .abandon = watch_abandon};
	struct hf_kube *kube = (struct hf_kube *)store;
	struct kube_watch *watch = hf_xcalloc(1, sizeof(*watch));

	watch->base.ops = store->ops;
	watch->fn = fn;
	watch->arg = arg;
	watch->initial = options->initial_events;
	hf_strbuf_init(&watch->buffer, HF_KUBE_EVENT_BYTES_MAX);
	hf_kube_op_link(kube, &watch->op, &kind);
	fill_target(watch, options);
	if (hf_watch_options_check(options, &watch->op.err) != 0 ||
	    hf_strbuf_ok(&watch->target, "the watch's URL", &watch->op.err) != 0)
		hf_kube_op_fail(&watch->op);
	else
		hf_kube_op_start(&watch->op);
	return &watch->base;
}
