/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/face_internal.h"

#include "api/schema.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/yaml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Requests with one response: makes a struct hf_request of an exchange, and a response of the
 * reply.
 *
 * A struct face_call lives until the reply, or until the connection closes, which cancels the
 * request. Deletions of collections run at once, inside the handler. */

#define UNKNOWN_FORMAT                                                                             \
	"the body of the request was in an unknown format - accepted media types include: "

struct face_call {
	struct hf_face *face;
	struct hf_exchange *ex;
	struct hf_call *call;
	const struct hf_resource *resource, *printed; /* printed: the kind of a table's rows */
	enum hf_verb verb;
	enum face_form form;
	enum face_include include;
};

/* ---- replies ------------------------------------------------------------------------------ */

/* Sets a list's metadata. An empty continue token marks the last page and is left out. */
static void set_list_meta(struct hf_json *meta, const struct hf_reply *reply)
{
	hf_json_set_str(meta, "resourceVersion", reply->resource_version);
	if (*reply->continue_token != '\0') {
		hf_json_set_str(meta, "continue", reply->continue_token);
		if (reply->remaining > 0)
			hf_json_set_i64(meta, "remainingItemCount", reply->remaining);
	}
}

static struct hf_json *table_of(const struct face_call *call, const struct hf_reply *reply)
{
	struct hf_json *table = hf_face_table(call->printed, true);
	struct hf_json *meta = hf_json_ensure_object(table, "metadata");
	hf_time now = hf_loop_wall(call->face->loop);

	if (call->verb == HF_VERB_LIST)
		set_list_meta(meta, reply);
	else
		hf_json_set_str(meta, "resourceVersion", hf_doc_resource_version(reply->object));
	for (size_t i = 0; i < reply->n_items; i++)
		hf_face_table_add(table, call->printed, hf_doc_json(reply->items[i]), call->include,
				  now);
	if (reply->object != NULL)
		hf_face_table_add(table, call->printed, hf_doc_json(reply->object), call->include,
				  now);
	return table;
}

/* Writes the items one by one: a tree of the whole list would double the memory. */
static void answer_list(const struct face_call *call, const struct hf_reply *reply)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FACE_LIST_BYTES_MAX);
	HF_AUTO_JSON meta = hf_json_object();
	char api_version[HF_API_VERSION_MAX];
	bool metadata = call->form == FACE_FORM_METADATA;

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
			HF_AUTO_JSON part = hf_face_metadata_of(hf_doc_json(reply->items[i]));
			hf_json_write(part, HF_JSON_COMPACT, &sb);
		} else {
			hf_face_add_doc(&sb, reply->items[i]);
		}
	}
	hf_strbuf_addstr(&sb, "]}\n");
	if (sb.full) {
		hf_face_fail(call->ex, HF_E_TOO_LARGE,
			     "the list is larger than %zu bytes: ask for it in pages (limit)",
			     HF_FACE_LIST_BYTES_MAX);
		return;
	}
	hf_exchange_add_header(call->ex, "Cache-Control", "no-cache, private");
	hf_exchange_respond_take(call->ex, 200, "application/json", &sb);
}

static void answer_reply(const struct face_call *call, const struct hf_reply *reply)
{
	int status = call->verb == HF_VERB_CREATE ? 201 : 200;
	bool is_status =
		hf_streq(hf_json_path_str(hf_doc_json(reply->object), "kind", NULL), "Status");

	for (size_t i = 0; i < reply->n_warnings; i++)
		hf_face_warn(call->ex, reply->warnings[i]);
	if (call->form == FACE_FORM_TABLE && !is_status) {
		HF_AUTO_JSON table = table_of(call, reply);
		hf_face_answer_json(call->ex, status, table);
	} else if (call->verb == HF_VERB_LIST) {
		answer_list(call, reply);
	} else if (call->form == FACE_FORM_METADATA && !is_status) {
		HF_AUTO_JSON part = hf_face_metadata_of(hf_doc_json(reply->object));
		hf_face_answer_json(call->ex, status, part);
	} else {
		hf_face_answer_doc(call->ex, status, reply->object);
	}
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct face_call *call = arg;

	hf_exchange_on_closed(call->ex, NULL, NULL);
	if (reply->code != 0)
		hf_face_fail_reply(call->ex, reply);
	else
		answer_reply(call, reply);
	free(call);
}

static void on_closed(void *arg, struct hf_exchange *ex)
{
	struct face_call *call = arg;

	hf_call_cancel(call->call);
	free(call);
}

/* ---- bodies ------------------------------------------------------------------------------- */

static int parse_yaml(const char *text, size_t len, struct hf_doc **ret_doc, struct hf_error *err)
{
	HF_AUTO_YAML yaml = NULL;
	int rc = hf_yaml_parse(text, len, NULL, &yaml, err);

	if (rc != 0)
		return rc;
	if (hf_yaml_len(yaml) != 1)
		return hf_error_set(err, HF_E_BAD_REQUEST, "the body must be one document, not %zu",
				    hf_yaml_len(yaml));
	*ret_doc = hf_doc_from_json(hf_json_ref(hf_yaml_doc(yaml, 0)));
	return 0;
}

static int parse_json(const char *text, size_t len, struct hf_doc **ret_doc, struct hf_error *err)
{
	return hf_doc_parse(text, len, NULL, ret_doc, err);
}

/* The format in which typed Go clients, like kubectl create, send core kinds. */
static int parse_protobuf(const char *bytes, size_t len, struct hf_doc **ret_doc,
			  struct hf_error *err)
{
	struct hf_json *object;
	int rc = hf_protobuf_decode(bytes, len, &object, err);

	if (rc == 0)
		*ret_doc = hf_doc_from_json(object);
	return rc;
}

static int read_body(struct hf_exchange *ex,
		     int (*parse)(const char *text, size_t len, struct hf_doc **ret_doc,
				  struct hf_error *err),
		     struct hf_doc **ret_doc, struct hf_error *err)
{
	size_t len;
	const char *bytes = hf_exchange_body(ex, &len);
	int rc = parse(bytes, len, ret_doc, err);

	return rc == 0 ? 0 : hf_error_wrap(err, "cannot read the body");
}

int hf_face_read_object(struct hf_exchange *ex, struct hf_doc **ret_doc, struct hf_error *err)
{
	const char *type = hf_exchange_header(ex, "Content-Type");

	if (hf_str_is_empty(type) || hf_face_media_is(type, "application/json"))
		return read_body(ex, parse_json, ret_doc, err);
	if (hf_face_media_is(type, "application/yaml"))
		return read_body(ex, parse_yaml, ret_doc, err);
	if (hf_face_media_is(type, "application/vnd.kubernetes.protobuf"))
		return read_body(ex, parse_protobuf, ret_doc, err);
	return hf_error_set(err, HF_E_MEDIA_TYPE,
			    UNKNOWN_FORMAT "application/json, application/yaml, "
					   "application/vnd.kubernetes.protobuf");
}

static int read_apply(struct hf_exchange *ex, struct hf_request *request, struct hf_error *err)
{
	if (hf_str_is_empty(hf_exchange_query(ex, "fieldManager")))
		return hf_error_set(err, HF_E_INVALID,
				    "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: "
				    "Required value: is required for apply patch");
	request->patch_type = HF_PATCH_APPLY;
	request->force = hf_streq(hf_exchange_query(ex, "force"), "true");
	return read_body(ex, parse_yaml, &request->body, err);
}

static int read_patch(struct hf_exchange *ex, struct hf_request *request, struct hf_error *err)
{
	static const struct {
		const char *media;
		enum hf_patch_type type;
	} types[] = {
		{"application/merge-patch+json", HF_PATCH_MERGE},
		{"application/json-patch+json", HF_PATCH_JSON},
		{"application/strategic-merge-patch+json", HF_PATCH_STRATEGIC},
	};
	const char *media = hf_exchange_header(ex, "Content-Type");

	for (size_t i = 0; i < HF_ARRAY_LEN(types); i++) {
		if (!hf_face_media_is(media, types[i].media))
			continue;
		request->patch_type = types[i].type;
		return read_body(ex, parse_json, &request->body, err);
	}
	if (hf_face_media_is(media, "application/apply-patch+yaml"))
		return read_apply(ex, request, err);
	return hf_error_set(err, HF_E_MEDIA_TYPE,
			    UNKNOWN_FORMAT "application/json-patch+json, "
					   "application/merge-patch+json, "
					   "application/apply-patch+yaml, "
					   "application/strategic-merge-patch+json");
}

/* ---- deletion ----------------------------------------------------------------------------- */

static int read_propagation(const char *text, enum hf_propagation *ret, struct hf_error *err)
{
	static const struct {
		const char *text;
		enum hf_propagation propagation;
	} known[] = {
		{"Background", HF_PROPAGATE_BACKGROUND},
		{"Foreground", HF_PROPAGATE_FOREGROUND},
		{"Orphan", HF_PROPAGATE_ORPHAN},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(known); i++) {
		if (hf_streq(text, known[i].text)) {
			*ret = known[i].propagation;
			return 0;
		}
	}
	return hf_error_set(
		err, HF_E_INVALID,
		"DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported "
		"value: \"%s\": supported values: \"Foreground\", \"Background\", \"Orphan\"",
		text);
}

static int check_dry_run(const char *text, bool *ret, struct hf_error *err)
{
	if (!hf_streq(text, "All"))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "dryRun: Unsupported value: \"%s\": supported values: \"All\"",
				    text);
	*ret = true;
	return 0;
}

int hf_face_delete_options(const struct hf_json *options, struct hf_request *request,
			   struct hf_error *err)
{
	const struct hf_json *grace = hf_json_get(options, "gracePeriodSeconds");
	const struct hf_json *dry_run = hf_json_get(options, "dryRun");
	const struct hf_json *orphan = hf_json_get(options, "orphanDependents");
	const char *policy = hf_json_path_str(options, "propagationPolicy", NULL);
	int rc = 0;

	if (options != NULL && hf_json_type(options) != HF_JSON_OBJECT)
		return hf_error_set(err, HF_E_BAD_REQUEST, "DeleteOptions must be an object");
	request->precondition_uid = hf_json_path_str(options, "preconditions", "uid", NULL);
	request->precondition_resource_version =
		hf_json_path_str(options, "preconditions", "resourceVersion", NULL);
	if (hf_json_type(grace) == HF_JSON_INT)
		request->grace_seconds = hf_json_i64(grace, HF_GRACE_DEFAULT);
	if (hf_json_type(orphan) == HF_JSON_BOOL)
		request->propagation =
			hf_json_true(orphan, false) ? HF_PROPAGATE_ORPHAN : HF_PROPAGATE_BACKGROUND;
	if (!hf_str_is_empty(policy))
		rc = read_propagation(policy, &request->propagation, err);
	if (rc == 0 && hf_json_len(dry_run) > 0)
		rc = check_dry_run(hf_json_str(hf_json_item(dry_run, 0), ""), &request->dry_run,
				   err);
	return rc;
}

/* The query is read only if there is no body, as in an API server. */
static int read_delete(struct hf_exchange *ex, struct hf_request *request,
		       struct hf_doc **ret_options, struct hf_error *err)
{
	const char *policy = hf_exchange_query(ex, "propagationPolicy");
	const char *grace = hf_exchange_query(ex, "gracePeriodSeconds");
	size_t len;
	int rc;

	(void)hf_exchange_body(ex, &len);
	if (len > 0) {
		rc = hf_face_read_object(ex, &request->body, err);
		if (rc != 0)
			return rc;
		*ret_options = hf_steal(&request->body);
		return hf_face_delete_options(hf_doc_json(*ret_options), request, err);
	}
	if (!hf_str_is_empty(grace)) {
		rc = hf_str_to_i64(grace, 0, INT32_MAX, &request->grace_seconds, err);
		if (rc != 0)
			return hf_error_set(err, HF_E_BAD_REQUEST,
					    "gracePeriodSeconds must be a number of 0 or more");
	}
	return hf_str_is_empty(policy) ? 0 : read_propagation(policy, &request->propagation, err);
}

/* ---- requests ----------------------------------------------------------------------------- */

static int read_validation(const struct hf_exchange *ex, struct hf_request *request,
			   struct hf_error *err)
{
	const char *validation = hf_exchange_query(ex, "fieldValidation");

	if (hf_str_is_empty(validation))
		return 0;
	if (!hf_streq(validation, "Strict") && !hf_streq(validation, "Warn") &&
	    !hf_streq(validation, "Ignore"))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "fieldValidation: Unsupported value: \"%s\": supported values: "
				    "\"Ignore\", \"Strict\", \"Warn\"",
				    validation);
	request->field_validation = validation;
	return 0;
}

int hf_face_read_common(const struct hf_exchange *ex, struct hf_request *request,
			struct hf_error *err)
{
	const char *dry_run = hf_exchange_query(ex, "dryRun");
	const char *manager = hf_exchange_query(ex, "fieldManager");
	int rc = read_validation(ex, request, err);

	/* A client without fieldManager is identified by its User-Agent. */
	if (hf_str_is_empty(manager))
		manager = hf_exchange_header(ex, "User-Agent");
	request->field_manager = hf_str_is_empty(manager) ? "unknown" : manager;
	if (rc == 0 && !hf_str_is_empty(dry_run))
		rc = check_dry_run(dry_run, &request->dry_run, err);
	return rc;
}

static const char *query_or_null(const struct hf_exchange *ex, const char *name)
{
	const char *value = hf_exchange_query(ex, name);

	return hf_str_is_empty(value) ? NULL : value;
}

static int read_list(const struct hf_exchange *ex, struct hf_request *request, struct hf_error *err)
{
	const char *limit = query_or_null(ex, "limit");

	request->label_selector = query_or_null(ex, "labelSelector");
	request->field_selector = query_or_null(ex, "fieldSelector");
	request->resource_version = query_or_null(ex, "resourceVersion");
	request->continue_token = query_or_null(ex, "continue");
	/* The continue token contains the version. */
	if (request->continue_token != NULL)
		request->resource_version = NULL;
	if (limit != NULL && hf_str_to_i64(limit, 0, INT32_MAX, &request->limit, NULL) != 0)
		return hf_error_set(err, HF_E_BAD_REQUEST, "limit must be a number of 0 or more");
	return 0;
}

static enum face_include include_of(const struct hf_exchange *ex)
{
	const char *include = hf_exchange_query(ex, "includeObject");

	if (hf_streq(include, "None"))
		return FACE_INCLUDE_NONE;
	return hf_streq(include, "Object") ? FACE_INCLUDE_OBJECT : FACE_INCLUDE_METADATA;
}

static int verb_of(const struct hf_exchange *ex, const struct face_route *route)
{
	static const struct {
		const char *method;
		bool named;
		enum hf_verb verb;
	} verbs[] = {
		{"GET", true, HF_VERB_GET},      {"GET", false, HF_VERB_LIST},
		{"POST", false, HF_VERB_CREATE}, {"PUT", true, HF_VERB_UPDATE},
		{"PATCH", true, HF_VERB_PATCH},  {"DELETE", true, HF_VERB_DELETE},
	};

	if (hf_streq(route->sub, "binding"))
		return hf_streq(hf_exchange_method(ex), "POST") ? HF_VERB_CREATE : -1;
	for (size_t i = 0; i < HF_ARRAY_LEN(verbs); i++)
		if (hf_streq(hf_exchange_method(ex), verbs[i].method) &&
		    verbs[i].named == (route->name != NULL))
			return (int)verbs[i].verb;
	return -1;
}

static int read_request(struct hf_exchange *ex, struct hf_request *request,
			struct hf_doc **ret_options, struct hf_error *err)
{
	int rc = hf_face_read_common(ex, request, err);

	if (rc != 0)
		return rc;
	switch (request->verb) {
	case HF_VERB_GET: return 0;
	case HF_VERB_LIST: return read_list(ex, request, err);
	case HF_VERB_CREATE:
	case HF_VERB_UPDATE: return hf_face_read_object(ex, &request->body, err);
	case HF_VERB_PATCH: return read_patch(ex, request, err);
	case HF_VERB_DELETE: return read_delete(ex, request, ret_options, err);
	}
	return 0;
}

static void send_call(struct hf_face *face, struct hf_exchange *ex,
		      const struct hf_request *request, enum face_form form)
{
	struct face_call *call = hf_xcalloc(1, sizeof(*call));

	*call = (struct face_call){.face = face,
				   .ex = ex,
				   .resource = request->resource,
				   .printed = hf_streq(request->subresource, "scale")
						      ? &hf_face_scale
						      : request->resource,
				   .verb = request->verb,
				   .form = form,
				   .include = include_of(ex)};
	hf_exchange_on_closed(ex, on_closed, call);
	call->call = hf_store_request(face->client, request, on_reply, call);
}

/* ---- collections -------------------------------------------------------------------------- */

/* Deletes all objects that match the selectors, in order, in this turn. */
static void delete_collection(struct hf_face *face, struct hf_exchange *ex,
			      const struct face_route *route)
{
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = route->resource,
				     .ns = route->ns,
				     .grace_seconds = HF_GRACE_DEFAULT};
	HF_AUTO_DOC options = NULL;
	struct hf_error err = {0};
	struct hf_result list = {0};
	int rc = read_list(ex, &request, &err);

	if (rc == 0)
		hf_local_apply(face->local, &request, &list);
	if (rc == 0 && list.code != 0)
		rc = hf_error_set(&err, list.code, "%s", list.err.text);
	request = (struct hf_request){.verb = HF_VERB_DELETE,
				      .resource = route->resource,
				      .grace_seconds = HF_GRACE_DEFAULT};
	if (rc == 0)
		rc = read_delete(ex, &request, &options, &err);
	for (size_t i = 0; rc == 0 && i < list.n_items; i++) {
		struct hf_result result = {0};
		const char *ns = hf_doc_namespace(list.items[i]);
		request.ns = *ns != '\0' ? ns : NULL;
		request.name = hf_doc_name(list.items[i]);
		hf_local_apply(face->local, &request, &result);
		/* The deletion of an earlier object may have removed this one. */
		if (result.code != 0 && result.code != HF_E_NOT_FOUND)
			rc = hf_error_set(&err, result.code, "%s", result.err.text);
		hf_result_release(&result);
	}
	if (rc == 0)
		rc = hf_local_flush(face->local, &err);
	if (rc == 0) {
		HF_AUTO_JSON status = hf_json_object();
		hf_json_set_str(status, "kind", "Status");
		hf_json_set_str(status, "apiVersion", "v1");
		hf_json_set_str(status, "status", "Success");
		hf_face_answer_json(ex, 200, status);
	} else {
		hf_face_fail_err(ex, &err);
	}
	hf_result_release(&list);
}

/* ---- dispatch ------------------------------------------------------------------------------- */

/* Serves the subresources of pods that need no struct hf_request, and refuses the unsupported ones;
 * false: the request is none of these. */
static bool serve_special(struct hf_face *face, struct hf_exchange *ex,
			  const struct face_route *route)
{
	static const char *const refused[] = {"exec", "attach", "portforward", "proxy",
					      "ephemeralcontainers"};

	if (route->resource != &hf_pods || route->sub == NULL)
		return false;
	if (hf_streq(route->sub, "log") && !route->too_long) {
		hf_face_log(face, ex, route);
		return true;
	}
	if (hf_streq(route->sub, "eviction") && !route->too_long) {
		hf_face_evict(face, ex, route);
		return true;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(refused); i++) {
		if (!hf_streq(route->sub, refused[i]))
			continue;
		hf_face_fail(ex, HF_E_UNSUPPORTED,
			     "pods/%s is not supported by Holdfast's embedded plane", route->sub);
		return true;
	}
	return false;
}

static void serve_call(struct hf_face *face, struct hf_exchange *ex, const struct face_route *route,
		       enum face_form form)
{
	struct hf_request request = {.resource = route->resource,
				     .ns = route->ns,
				     .name = route->name,
				     .subresource = route->sub,
				     .grace_seconds = HF_GRACE_DEFAULT};
	HF_AUTO_DOC options = NULL;
	struct hf_error err = {0};
	int verb = verb_of(ex, route);

	if (verb < 0) {
		hf_face_fail(ex, HF_E_METHOD,
			     "the server does not allow this method on the requested resource");
		return;
	}
	request.verb = (enum hf_verb)verb;
	if (read_request(ex, &request, &options, &err) != 0)
		hf_face_fail_err(ex, &err);
	else
		send_call(face, ex, &request, form);
	hf_doc_unref(request.body);
}

void hf_face_serve_resource(struct hf_face *face, struct hf_exchange *ex,
			    const struct face_route *route)
{
	bool get = hf_streq(hf_exchange_method(ex), "GET");
	enum face_form form = hf_face_form(hf_exchange_header(ex, "Accept"));

	if (!hf_face_serves(face, route->resource)) {
		hf_face_no_such_path(ex);
		return;
	}
	if (serve_special(face, ex, route))
		return;
	if (route->too_long) {
		hf_face_no_such_path(ex);
		return;
	}
	if (form == FACE_FORM_UNACCEPTABLE)
		hf_face_fail(ex, HF_E_NOT_ACCEPTABLE,
			     "only the following media types are accepted: application/json");
	else if (get && route->sub == NULL && hf_face_query_true(ex, "watch"))
		hf_face_watch(face, ex, route, form);
	else if (hf_streq(hf_exchange_method(ex), "DELETE") && route->name == NULL)
		delete_collection(face, ex, route);
	else
		serve_call(face, ex, route, form);
}
