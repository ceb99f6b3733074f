/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/request.h"
#include "store/selector.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Watches: one JSON object per line, until the client, the timeout or an error ends the stream.
 *
 * Nothing is buffered for a slow client. When the stream is full, the store's watch is stopped and
 * the version of the last written event is kept. When the stream has drained, a new watch resumes
 * from that version. If history does not reach back so far, the client gets a 410, after which it
 * lists again. A watch without a version begins with a list, kept as references and written as the
 * client reads.
 */
struct apiserver_watch {
	struct apiserver_stream stream; /* the first member, for casts */
	const struct hf_resource *resource;
	enum apiserver_form form;
	enum apiserver_include include;
	bool bookmarks;
	/* true: the client has the column definitions of the Table, so further events leave them
	 * out */
	bool columns_sent;
	char *ns, *labels, *fields;
	char *version; /* resourceVersion of the last written event */
	struct hf_call *list;
	/* The objects that the watch sends first; those before index at_initial have been sent. */
	struct hf_doc **initial;
	size_t n_initial, at_initial;
	/* The watch of the store; NULL: it has not been started, or is stopped because the
	 * client's stream is full. */
	struct hf_watch *watch;
	struct hf_timer *timeout;
};

static void on_drained(void *arg, struct hf_exchange *ex);

static void watch_free(struct apiserver_watch *w)
{
	hf_apiserver_stream_unlink(&w->stream);
	hf_call_cancel(w->list);
	w->watch = hf_watch_stop(w->watch);
	for (size_t i = w->at_initial; i < w->n_initial; i++)
		hf_doc_unref(w->initial[i]);
	free(w->initial);
	hf_timer_destroy(w->timeout);
	free(w->ns);
	free(w->labels);
	free(w->fields);
	free(w->version);
	free(w);
}

static void on_closed(void *arg, struct hf_exchange *ex)
{
	watch_free(arg);
}

static void finish_watch(struct apiserver_stream *stream)
{
	struct apiserver_watch *w = (struct apiserver_watch *)stream;
	struct hf_exchange *ex = stream->ex;

	hf_exchange_on_closed(ex, NULL, NULL);
	hf_exchange_on_drained(ex, NULL, NULL);
	watch_free(w);
	hf_exchange_finish(ex);
}

static void on_timeout(void *arg)
{
	finish_watch(arg);
}

/* ---- events ------------------------------------------------------------------------------- */

static struct hf_json *table_event(struct apiserver_watch *w, enum hf_event_type type,
				   const struct hf_json *object)
{
	struct hf_json *table = hf_apiserver_table(w->resource, !w->columns_sent);
	const char *version = hf_json_path_str(object, "metadata", "resourceVersion", NULL);

	hf_json_set_str(hf_json_ensure_object(table, "metadata"), "resourceVersion", version);
	if (type != HF_EVENT_BOOKMARK)
		hf_apiserver_table_add(table, w->resource, object, w->include,
				       hf_loop_wall(w->stream.server->loop));
	return table;
}

/* Writes an event to the stream. False: the stream has no room, and nothing was written. */
static bool write_event(struct apiserver_watch *w, enum hf_event_type type, struct hf_doc *doc)
{
	static const char *const names[] = {
		[HF_EVENT_ADDED] = "ADDED",
		[HF_EVENT_MODIFIED] = "MODIFIED",
		[HF_EVENT_DELETED] = "DELETED",
		[HF_EVENT_BOOKMARK] = "BOOKMARK",
	};
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_APISERVER_STREAM_BYTES_MAX);
	HF_AUTO_JSON other = NULL;

	if (w->form == APISERVER_FORM_TABLE)
		other = table_event(w, type, hf_doc_json(doc));
	else if (w->form == APISERVER_FORM_METADATA)
		other = hf_apiserver_metadata_of(hf_doc_json(doc));
	hf_strbuf_addf(&sb, "{\"type\":\"%s\",\"object\":", names[type]);
	if (other != NULL)
		hf_json_write(other, HF_JSON_COMPACT, &sb);
	else
		hf_apiserver_add_doc(&sb, doc);
	hf_strbuf_addstr(&sb, "}\n");
	hf_assert(!sb.full);
	if (!hf_exchange_write(w->stream.ex, sb.data, sb.len))
		return false;
	w->columns_sent = true;
	return true;
}

static void write_error(struct apiserver_watch *w, int code, const char *message)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(16384);
	HF_AUTO_JSON status =
		hf_status_failure(&(struct hf_status_args){.code = code, .message = message});

	hf_strbuf_addstr(&sb, "{\"type\":\"ERROR\",\"object\":");
	hf_json_write(status, HF_JSON_COMPACT, &sb);
	hf_strbuf_addstr(&sb, "}\n");
	/* If the stream has no room for this error, it is lost. The client then sees the end of
	 * the stream, and lists again. */
	(void)!hf_exchange_write(w->stream.ex, sb.data, sb.len);
}

static void set_version(struct apiserver_watch *w, const char *version)
{
	free(w->version);
	w->version = hf_xstrdup(version);
}

static void on_event(void *arg, const struct hf_event *event)
{
	struct apiserver_watch *w = arg;

	if (event->type == HF_EVENT_ENDED) {
		if (event->code != 0)
			write_error(w, event->code, event->message);
		finish_watch(&w->stream);
		return;
	}
	if (write_event(w, event->type, event->object)) {
		set_version(w, event->resource_version);
		return;
	}
	w->watch = hf_watch_stop(w->watch);
	hf_exchange_on_drained(w->stream.ex, on_drained, w);
}

/* ---- start and resume
 * ------------------------------------------------------------------------- */

static void start_watch(struct apiserver_watch *w)
{
	const struct hf_watch_options options = {
		.resource = w->resource,
		.ns = w->ns,
		.label_selector = w->labels,
		.field_selector = w->fields,
		.resource_version = w->version,
		.bookmarks = w->bookmarks,
	};

	w->watch = hf_store_watch(w->stream.server->client, &options, on_event, w);
}

/* Writes as many of the remaining initial objects as the stream has room for; after the last one,
 * starts the watch. */
static void resume_watch(struct apiserver_watch *w)
{
	for (; w->at_initial < w->n_initial; w->at_initial++) {
		if (!write_event(w, HF_EVENT_ADDED, w->initial[w->at_initial])) {
			hf_exchange_on_drained(w->stream.ex, on_drained, w);
			return;
		}
		hf_doc_unref(w->initial[w->at_initial]);
	}
	hf_exchange_on_drained(w->stream.ex, NULL, NULL);
	start_watch(w);
}

static void on_drained(void *arg, struct hf_exchange *ex)
{
	resume_watch(arg);
}

static void on_list(void *arg, const struct hf_reply *reply)
{
	struct apiserver_watch *w = arg;

	w->list = NULL;
	if (reply->code != 0) {
		write_error(w, reply->code, reply->message);
		finish_watch(&w->stream);
		return;
	}
	w->initial = hf_xcalloc(reply->n_items + 1, sizeof(*w->initial));
	for (size_t i = 0; i < reply->n_items; i++)
		w->initial[w->n_initial++] = hf_doc_ref(reply->items[i]);
	set_version(w, reply->resource_version);
	resume_watch(w);
}

static void start_list(struct apiserver_watch *w)
{
	const struct hf_request request = {
		.verb = HF_VERB_LIST,
		.resource = w->resource,
		.ns = w->ns,
		.label_selector = w->labels,
		.field_selector = w->fields,
	};

	w->list = hf_store_request(w->stream.server->client, &request, on_list, w);
}

/* ---- the request -------------------------------------------------------------------------- */

static char *dup_query(const struct hf_exchange *ex, const char *name)
{
	const char *value = hf_exchange_query(ex, name);

	return hf_str_is_empty(value) ? NULL : hf_xstrdup(value);
}

/* Returns the field selector of the watch. If the path has the name of an object, the selector
 * selects this object only. */
static char *fields_of(const struct hf_exchange *ex, const struct apiserver_route *route)
{
	if (route->name == NULL)
		return dup_query(ex, "fieldSelector");
	return hf_xasprintf("metadata.name=%s", route->name);
}

static int check_selectors(const struct apiserver_watch *w, struct hf_error *err)
{
	const struct hf_resource_info *info = hf_resource_info(w->resource);
	struct hf_selector *selector = NULL;
	int rc = hf_selector_parse_labels(w->labels, &selector, err);

	if (rc != 0)
		return rc;
	selector = hf_selector_destroy(selector);
	rc = hf_selector_parse_fields(w->fields, info != NULL ? info->fields : NULL, &selector,
				      err);
	if (rc == 0)
		hf_selector_destroy(selector);
	return rc;
}

static int check_watch(const struct apiserver_watch *w, const struct hf_exchange *ex,
		       struct hf_error *err)
{
	const char *version = hf_exchange_query(ex, "resourceVersion");
	int64_t number;

	if (hf_apiserver_query_true(ex, "sendInitialEvents"))
		return hf_error_set(
			err, HF_E_INVALID,
			"ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: "
			"Forbidden: sendInitialEvents is forbidden for watch unless the "
			"WatchList feature gate is enabled");
	if (!hf_str_is_empty(version) && hf_str_to_i64(version, 0, INT64_MAX, &number, NULL) != 0)
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "Invalid value: \"%s\": strconv.ParseUint: "
				    "parsing \"%s\": invalid syntax",
				    version, version);
	if (w->stream.server->quiet)
		return hf_error_set(err, HF_E_UNAVAILABLE, "the server is shutting down");
	return check_selectors(w, err);
}

void hf_apiserver_watch(struct hf_apiserver *server, struct hf_exchange *ex,
			const struct apiserver_route *route, enum apiserver_form form)
{
	struct apiserver_watch *w;
	struct hf_error err = {0};
	const char *include = hf_exchange_query(ex, "includeObject");
	const char *version = hf_exchange_query(ex, "resourceVersion");
	int64_t seconds;

	if (!hf_apiserver_query_i64(ex, "timeoutSeconds", 0, &seconds))
		return;
	w = hf_xcalloc(1, sizeof(*w));
	*w = (struct apiserver_watch){
		.resource = route->resource,
		.form = form,
		.include = hf_streq(include, "Object") ? APISERVER_INCLUDE_OBJECT
			   : hf_streq(include, "None") ? APISERVER_INCLUDE_NONE
						       : APISERVER_INCLUDE_METADATA,
		.bookmarks = hf_apiserver_query_true(ex, "allowWatchBookmarks"),
		.ns = route->ns != NULL ? hf_xstrdup(route->ns) : NULL,
		.labels = dup_query(ex, "labelSelector"),
		.fields = fields_of(ex, route),
	};
	w->stream = (struct apiserver_stream){.ex = ex, .end = finish_watch};
	hf_apiserver_stream_link(server, &w->stream);
	if (check_watch(w, ex, &err) != 0) {
		watch_free(w);
		hf_apiserver_fail_err(ex, &err);
		return;
	}
	hf_exchange_on_closed(ex, on_closed, w);
	hf_exchange_add_header(ex, "Cache-Control", "no-cache, private");
	hf_exchange_begin(ex, 200, "application/json");
	w->timeout = hf_timer_create(server->loop, on_timeout, w);
	hf_timer_arm(w->timeout, seconds > 0 && seconds < HF_APISERVER_WATCH_TIMEOUT / HF_SECOND
					 ? seconds * HF_SECOND
					 : HF_APISERVER_WATCH_TIMEOUT);
	if (hf_str_is_empty(version) || hf_streq(version, "0")) {
		start_list(w);
		return;
	}
	set_version(w, version);
	start_watch(w);
}
