/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

/* Requests for resources: passes each to a call, a watch, a log or an eviction.
 *
 * A call has one response. Its struct apiserver_call lives until the reply, or until the connection
 * closes, which cancels the request. Deletions of collections run at once, inside the handler. */

struct apiserver_call {
	struct hf_apiserver *server;
	struct hf_exchange *ex;
	struct hf_call *call;
	/* The kind of the objects, and the kind that gives a table its columns (for a scale, the
	 * kind Scale). */
	const struct hf_resource *resource, *printed;
	enum hf_verb verb;
	enum apiserver_form form;
	enum apiserver_include include;
};

/* ---- replies ------------------------------------------------------------------------------ */

/* Writes the metadata of a list. On the last page the continue token is empty, and is left out. */
static void set_list_meta(struct hf_json *meta, const struct hf_reply *reply)
{
	hf_json_set_str(meta, "resourceVersion", reply->resource_version);
	if (*reply->continue_token != '\0') {
		hf_json_set_str(meta, "continue", reply->continue_token);
		if (reply->remaining > 0)
			hf_json_set_i64(meta, "remainingItemCount", reply->remaining);
	}
}

static struct hf_json *table_of(const struct apiserver_call *call, const struct hf_reply *reply)
{
	struct hf_json *table = hf_apiserver_table(call->printed, true);
	struct hf_json *meta = hf_json_ensure_object(table, "metadata");
	hf_time now = hf_loop_wall(call->server->loop);

	if (call->verb == HF_VERB_LIST)
		set_list_meta(meta, reply);
	else
		hf_json_set_str(meta, "resourceVersion", hf_doc_resource_version(reply->object));
	for (size_t i = 0; i < reply->n_items; i++)
		hf_apiserver_table_add(table, call->printed, hf_doc_json(reply->items[i]),
				       call->include, now);
	if (reply->object != NULL)
		hf_apiserver_table_add(table, call->printed, hf_doc_json(reply->object),
				       call->include, now);
	return table;
}

/* Writes a list item by item: a JSON tree of the whole list would need twice the memory. */
static void answer_list(const struct apiserver_call *call, const struct hf_reply *reply)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_APISERVER_LIST_BYTES_MAX);
	HF_AUTO_JSON meta = hf_json_object();
	char api_version[HF_API_VERSION_MAX];
	bool metadata = call->form == APISERVER_FORM_METADATA;

	set_list_meta(meta, reply);
	hf_strbuf_addf(&sb, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":",
		       metadata ? "PartialObjectMetadata" : call->resource->kind,
		       metadata ? "meta.k8s.io/v1"
				: hf_resource_api_version(call->resource, api_version));
	hf_json_write(meta, HF_JSON_COMPACT, &sb);
	hf_strbuf_addstr(&sb, ",\"items\":[");
	for (size_t i = 0; i < reply->n_items; i++) {
		if (i > 0)
			hf_strbuf_addch(&sb, ',');
		if (metadata) {
			HF_AUTO_JSON part = hf_apiserver_metadata_of(hf_doc_json(reply->items[i]));
			hf_json_write(part, HF_JSON_COMPACT, &sb);
		} else {
			hf_apiserver_add_doc(&sb, reply->items[i]);
		}
	}
	hf_strbuf_addstr(&sb, "]}\n");
	if (sb.full) {
		hf_apiserver_fail(call->ex, HF_E_TOO_LARGE,
				  "the list is larger than %zu bytes: ask for it in pages (limit)",
				  HF_APISERVER_LIST_BYTES_MAX);
		return;
	}
	hf_exchange_add_header(call->ex, "Cache-Control", "no-cache, private");
	hf_exchange_respond_take(call->ex, 200, "application/json", &sb);
}

static void answer_reply(const struct apiserver_call *call, const struct hf_reply *reply)
{
	int status = call->verb == HF_VERB_CREATE ? 201 : 200;
	bool is_status =
		hf_streq(hf_json_path_str(hf_doc_json(reply->object), "kind", NULL), "Status");

	for (size_t i = 0; i < reply->n_warnings; i++)
		hf_apiserver_warn(call->ex, reply->warnings[i]);
	if (call->form == APISERVER_FORM_TABLE && !is_status) {
		HF_AUTO_JSON table = table_of(call, reply);
		hf_apiserver_answer_json(call->ex, status, table);
	} else if (call->verb == HF_VERB_LIST) {
		answer_list(call, reply);
	} else if (call->form == APISERVER_FORM_METADATA && !is_status) {
		HF_AUTO_JSON part = hf_apiserver_metadata_of(hf_doc_json(reply->object));
		hf_apiserver_answer_json(call->ex, status, part);
	} else {
		hf_apiserver_answer_doc(call->ex, status, reply->object);
	}
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct apiserver_call *call = arg;

	hf_exchange_on_closed(call->ex, NULL, NULL);
	if (reply->code != 0)
		hf_apiserver_fail_reply(call->ex, reply);
	else
		answer_reply(call, reply);
	free(call);
}

static void on_closed(void *arg, struct hf_exchange *ex)
{
	struct apiserver_call *call = arg;

	hf_call_cancel(call->call);
	free(call);
}

/* ---- calls -------------------------------------------------------------------------------- */

static enum apiserver_include include_of(const struct hf_exchange *ex)
{
	const char *include = hf_exchange_query(ex, "includeObject");

	if (hf_streq(include, "None"))
		return APISERVER_INCLUDE_NONE;
	return hf_streq(include, "Object") ? APISERVER_INCLUDE_OBJECT : APISERVER_INCLUDE_METADATA;
}

static void send_call(struct hf_apiserver *server, struct hf_exchange *ex,
		      const struct hf_request *request, enum apiserver_form form)
{
	struct apiserver_call *call = hf_xcalloc(1, sizeof(*call));

	*call = (struct apiserver_call){.server = server,
					.ex = ex,
					.resource = request->resource,
					.printed = hf_streq(request->subresource, "scale")
							   ? &hf_apiserver_scale
							   : request->resource,
					.verb = request->verb,
					.form = form,
					.include = include_of(ex)};
	hf_exchange_on_closed(ex, on_closed, call);
	call->call = hf_store_request(server->client, request, on_reply, call);
}

/* ---- collections -------------------------------------------------------------------------- */

/* Deletes all objects that match the selectors, one after the other, before the handler
 * returns. */
static void delete_collection(struct hf_apiserver *server, struct hf_exchange *ex,
			      const struct apiserver_route *route)
{
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = route->resource,
				     .ns = route->ns,
				     .grace_seconds = HF_GRACE_DEFAULT};
	HF_AUTO_DOC options = NULL;
	struct hf_error err = {0};
	struct hf_result list = {0};
	int rc = hf_apiserver_read_list(ex, &request, &err);

	if (rc == 0)
		hf_memstore_apply(server->memstore, &request, &list);
	if (rc == 0 && list.code != 0)
		rc = hf_error_set(&err, list.code, "%s", list.err.text);
	request = (struct hf_request){.verb = HF_VERB_DELETE,
				      .resource = route->resource,
				      .grace_seconds = HF_GRACE_DEFAULT};
	if (rc == 0)
		rc = hf_apiserver_read_delete(ex, &request, &options, &err);
	for (size_t i = 0; rc == 0 && i < list.n_items; i++) {
		struct hf_result result = {0};
		const char *ns = hf_doc_namespace(list.items[i]);
		request.ns = *ns != '\0' ? ns : NULL;
		request.name = hf_doc_name(list.items[i]);
		hf_memstore_apply(server->memstore, &request, &result);
		/* HF_E_NOT_FOUND is no error: the deletion of an earlier object may have removed
		 * this object too. */
		if (result.code != 0 && result.code != HF_E_NOT_FOUND)
			rc = hf_error_set(&err, result.code, "%s", result.err.text);
		hf_result_release(&result);
	}
	if (rc == 0)
		rc = hf_memstore_flush(server->memstore, &err);
	if (rc == 0) {
		HF_AUTO_JSON status = hf_json_object();
		hf_json_set_str(status, "kind", "Status");
		hf_json_set_str(status, "apiVersion", "v1");
		hf_json_set_str(status, "status", "Success");
		hf_apiserver_answer_json(ex, 200, status);
	} else {
		hf_apiserver_fail_err(ex, &err);
	}
	hf_result_release(&list);
}

/* ---- dispatch ----------------------------------------------------------------------------- */

/* Serves subresources of pods that need no struct hf_request (eviction, log), and refuses the
 * unsupported ones. Returns false for any other request. */
static bool serve_special(struct hf_apiserver *server, struct hf_exchange *ex,
			  const struct apiserver_route *route)
{
	static const char *const refused[] = {"exec", "attach", "portforward", "proxy",
					      "ephemeralcontainers"};

	if (route->resource != &hf_pods || route->sub == NULL)
		return false;
	if (hf_streq(route->sub, "log") && !route->too_long) {
		hf_apiserver_log(server, ex, route);
		return true;
	}
	if (hf_streq(route->sub, "eviction") && !route->too_long) {
		hf_apiserver_evict(server, ex, route);
		return true;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(refused); i++) {
		if (!hf_streq(route->sub, refused[i]))
			continue;
		hf_apiserver_fail(ex, HF_E_UNSUPPORTED,
				  "pods/%s is not supported by Holdfast's embedded plane",
				  route->sub);
		return true;
	}
	return false;
}

static void serve_call(struct hf_apiserver *server, struct hf_exchange *ex,
		       const struct apiserver_route *route, enum apiserver_form form)
{
	struct hf_request request = {.resource = route->resource,
				     .ns = route->ns,
				     .name = route->name,
				     .subresource = route->sub,
				     .grace_seconds = HF_GRACE_DEFAULT};
	HF_AUTO_DOC options = NULL;
	struct hf_error err = {0};
	int verb = hf_apiserver_verb_of(ex, route);

	if (verb < 0) {
		hf_apiserver_fail(
			ex, HF_E_METHOD,
			"the server does not allow this method on the requested resource");
		return;
	}
	request.verb = (enum hf_verb)verb;
	if (hf_apiserver_read_request(ex, &request, &options, &err) != 0)
		hf_apiserver_fail_err(ex, &err);
	else
		send_call(server, ex, &request, form);
	hf_doc_unref(request.body);
}

void hf_apiserver_serve_resource(struct hf_apiserver *server, struct hf_exchange *ex,
				 const struct apiserver_route *route)
{
	bool get = hf_streq(hf_exchange_method(ex), "GET");
	enum apiserver_form form = hf_apiserver_form(hf_exchange_header(ex, "Accept"));

	if (!hf_apiserver_serves(server, route->resource)) {
		hf_apiserver_no_such_path(ex);
		return;
	}
	if (serve_special(server, ex, route))
		return;
	if (route->too_long) {
		hf_apiserver_no_such_path(ex);
		return;
	}
	if (form == APISERVER_FORM_UNACCEPTABLE)
		hf_apiserver_fail(ex, HF_E_NOT_ACCEPTABLE,
				  "only the following media types are accepted: application/json");
	else if (get && route->sub == NULL && hf_apiserver_query_true(ex, "watch"))
		hf_apiserver_watch(server, ex, route, form);
	else if (hf_streq(hf_exchange_method(ex), "DELETE") && route->name == NULL)
		delete_collection(server, ex, route);
	else
		serve_call(server, ex, route, form);
}
