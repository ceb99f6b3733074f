/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "api/schema.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/yaml.h"

/* Reads requests: makes a struct hf_request of an exchange's method, query, headers and body. Strings
 * are borrowed from the exchange or from the document that holds the options. */

#define UNKNOWN_FORMAT                                                                             \
	"the body of the request was in an unknown format - accepted media types include: "

/* ---- bodies ------------------------------------------------------------------------------- */

static int parse_yaml(const char *text, size_t len, struct hf_doc **ret_doc, struct hf_error *err)
{
	HF_AUTO_YAML yaml = NULL;
	int rc = hf_yaml_parse(text, len, NULL, &yaml, err);

	if (rc != 0)
		return rc;
	if (hf_yaml_len(yaml) != 1)
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "the body must be one YAML document, not %zu",
				    hf_yaml_len(yaml));
	*ret_doc = hf_doc_from_json(hf_json_ref(hf_yaml_doc(yaml, 0)));
	return 0;
}

static int parse_json(const char *text, size_t len, struct hf_doc **ret_doc, struct hf_error *err)
{
	return hf_doc_parse(text, len, NULL, ret_doc, err);
}

/* Parses Kubernetes' protobuf, in which typed Go clients such as kubectl create send core kinds. */
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

int hf_apiserver_read_object(struct hf_exchange *ex, struct hf_doc **ret_doc, struct hf_error *err)
{
	const char *type = hf_exchange_header(ex, "Content-Type");

	if (hf_str_is_empty(type) || hf_apiserver_media_is(type, "application/json"))
		return read_body(ex, parse_json, ret_doc, err);
	if (hf_apiserver_media_is(type, "application/yaml"))
		return read_body(ex, parse_yaml, ret_doc, err);
	if (hf_apiserver_media_is(type, "application/vnd.kubernetes.protobuf"))
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
		if (!hf_apiserver_media_is(media, types[i].media))
			continue;
		request->patch_type = types[i].type;
		return read_body(ex, parse_json, &request->body, err);
	}
	if (hf_apiserver_media_is(media, "application/apply-patch+yaml"))
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

int hf_apiserver_delete_options(const struct hf_json *options, struct hf_request *request,
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

/* Options in the query count only if the request has no body, as in an API server. */
int hf_apiserver_read_delete(struct hf_exchange *ex, struct hf_request *request,
			     struct hf_doc **ret_options, struct hf_error *err)
{
	const char *policy = hf_exchange_query(ex, "propagationPolicy");
	const char *grace = hf_exchange_query(ex, "gracePeriodSeconds");
	size_t len;
	int rc;

	(void)hf_exchange_body(ex, &len);
	if (len > 0) {
		rc = hf_apiserver_read_object(ex, &request->body, err);
		if (rc != 0)
			return rc;
		*ret_options = hf_steal(&request->body);
		return hf_apiserver_delete_options(hf_doc_json(*ret_options), request, err);
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

int hf_apiserver_read_common(const struct hf_exchange *ex, struct hf_request *request,
			     struct hf_error *err)
{
	const char *dry_run = hf_exchange_query(ex, "dryRun");
	const char *manager = hf_exchange_query(ex, "fieldManager");
	int rc = read_validation(ex, request, err);

	/* If the request names no fieldManager, the User-Agent stands for it. */
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

int hf_apiserver_read_list(const struct hf_exchange *ex, struct hf_request *request,
			   struct hf_error *err)
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

int hf_apiserver_verb_of(const struct hf_exchange *ex, const struct apiserver_route *route)
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

int hf_apiserver_read_request(struct hf_exchange *ex, struct hf_request *request,
			      struct hf_doc **ret_options, struct hf_error *err)
{
	int rc = hf_apiserver_read_common(ex, request, err);

	if (rc != 0)
		return rc;
	switch (request->verb) {
	case HF_VERB_GET: return 0;
	case HF_VERB_LIST: return hf_apiserver_read_list(ex, request, err);
	case HF_VERB_CREATE:
	case HF_VERB_UPDATE: return hf_apiserver_read_object(ex, &request->body, err);
	case HF_VERB_PATCH: return read_patch(ex, request, err);
	case HF_VERB_DELETE: return hf_apiserver_read_delete(ex, request, ret_options, err);
	}
	return 0;
}
