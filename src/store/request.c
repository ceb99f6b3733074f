/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * What the back ends share: checks of a request, a copy that owns its strings, and an API server's
 * Status objects and messages.
 *
 * Every check reports its problem through struct hf_error; no check changes the request.
 */
#include "store/request.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/* Checks a text that becomes one segment of an API server's path (apimachinery,
 * pkg/api/validation/path). */
static int check_segment(const char *what, const char *text, struct hf_error *err)
{
	if (*text == '\0')
		return hf_error_set(err, HF_E_BAD_REQUEST, "the %s is empty", what);
	if (hf_streq(text, ".") || hf_streq(text, ".."))
		return hf_error_set(err, HF_E_BAD_REQUEST, "the %s may not be '%s'", what, text);
	if (strpbrk(text, "/%"))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "the %s '%s' may not contain '/' or '%%'", what, text);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c == 0x7f)
			return hf_error_set(err, HF_E_BAD_REQUEST,
					    "the %s may not contain blanks or control characters",
					    what);
	return 0;
}

static int check_place(const struct hf_resource *resource, const char *ns, bool all_allowed,
		       struct hf_error *err)
{
	if (!resource->namespaced) {
		if (ns)
			return hf_error_set(err, HF_E_BAD_REQUEST,
					    "%s are not in a namespace, but '%s' was given",
					    resource->plural, ns);
		return 0;
	}
	if (!ns) {
		if (all_allowed)
			return 0;
		return hf_error_set(err, HF_E_BAD_REQUEST, "%s need a namespace", resource->plural);
	}
	return check_segment("namespace", ns, err);
}

static int check_subresource(const struct hf_request *request, struct hf_error *err)
{
	const char *sub = request->subresource;

	if (!sub)
		return 0;
	if ((hf_streq(sub, "binding") || hf_streq(sub, "eviction")) &&
	    request->verb == HF_VERB_CREATE)
		return 0;
	if (!hf_streq(sub, "status") && !hf_streq(sub, "scale") && !hf_streq(sub, "finalize"))
		return hf_error_set(err, HF_E_NOT_FOUND,
				    "the server could not find the requested resource");
	if (request->verb != HF_VERB_GET && request->verb != HF_VERB_UPDATE &&
	    request->verb != HF_VERB_PATCH)
		return hf_error_set(err, HF_E_METHOD,
				    "the server does not allow this method on the requested "
				    "resource");
	return 0;
}

static int check_body(const struct hf_request *request, struct hf_error *err)
{
	bool wants = request->verb == HF_VERB_CREATE || request->verb == HF_VERB_UPDATE ||
		     request->verb == HF_VERB_PATCH;
	const struct hf_json *body = hf_doc_json(request->body);
	enum hf_json_type type = hf_json_type(body);

	if (!wants)
		return 0;
	if (!request->body)
		return hf_error_set(err, HF_E_BAD_REQUEST, "the request has no body");
	if (type == HF_JSON_ABSENT)
		return hf_error_set(err, HF_E_BAD_REQUEST, "the body is not valid JSON");
	if (request->verb == HF_VERB_PATCH && request->patch_type == HF_PATCH_JSON) {
		if (type != HF_JSON_ARRAY)
			return hf_error_set(err, HF_E_BAD_REQUEST,
					    "a JSON patch must be an array, not %s",
					    hf_json_type_name(type));
		return 0;
	}
	if (type != HF_JSON_OBJECT)
		return hf_error_set(err, HF_E_BAD_REQUEST, "the body must be an object, not %s",
				    hf_json_type_name(type));
	return 0;
}

static int check_enums(const struct hf_request *request, struct hf_error *err)
{
	const char *validation = request->field_validation;

	if (validation && !hf_streq(validation, "Strict") && !hf_streq(validation, "Warn") &&
	    !hf_streq(validation, "Ignore"))
		return hf_error_set(err, HF_E_INVALID,
				    "fieldValidation: Unsupported value: \"%s\": supported "
				    "values: \"Ignore\", \"Warn\", \"Strict\"",
				    validation);
	if (request->verb == HF_VERB_LIST && request->limit < 0)
		return hf_error_set(err, HF_E_BAD_REQUEST, "limit must not be negative");
	if (request->verb == HF_VERB_DELETE && request->grace_seconds < HF_GRACE_DEFAULT)
		return hf_error_set(err, HF_E_INVALID,
				    "gracePeriodSeconds: Invalid value: %lld: must be greater "
				    "than or equal to 0",
				    (long long)request->grace_seconds);
	return 0;
}

int hf_request_check(const struct hf_request *request, struct hf_error *err)
{
	bool list = request->verb == HF_VERB_LIST;
	bool named = !list && (request->verb != HF_VERB_CREATE || request->subresource);
	int rc = check_place(request->resource, request->ns, list, err);

	if (rc == 0 && named)
		rc = check_segment("name", request->name ? request->name : "", err);
	if (rc == 0)
		rc = check_subresource(request, err);
	if (rc == 0)
		rc = check_enums(request, err);
	if (rc == 0)
		rc = check_body(request, err);
	return rc;
}

int hf_watch_options_check(const struct hf_watch_options *options, struct hf_error *err)
{
	return check_place(options->resource, options->ns, true, err);
}

/* --- copies --- */

/* Offsets of the string members. One loop adds up their sizes, a second loop copies them. */
static const size_t strings[] = {
	offsetof(struct hf_request, ns),
	offsetof(struct hf_request, name),
	offsetof(struct hf_request, subresource),
	offsetof(struct hf_request, label_selector),
	offsetof(struct hf_request, field_selector),
	offsetof(struct hf_request, resource_version),
	offsetof(struct hf_request, continue_token),
	offsetof(struct hf_request, precondition_uid),
	offsetof(struct hf_request, precondition_resource_version),
	offsetof(struct hf_request, field_manager),
	offsetof(struct hf_request, field_validation),
};

static const char **string_at(struct hf_request *request, size_t i)
{
	return (const char **)(void *)((char *)request + strings[i]);
}

struct hf_request *hf_request_copy(const struct hf_request *request)
{
	struct hf_request source = *request;
	size_t size = sizeof(source);

	for (size_t i = 0; i < HF_ARRAY_LEN(strings); i++)
		if (*string_at(&source, i))
			size += strlen(*string_at(&source, i)) + 1;

	struct hf_request *copy = hf_xmalloc(size);
	char *text = (char *)(copy + 1);
	*copy = source;
	for (size_t i = 0; i < HF_ARRAY_LEN(strings); i++) {
		const char *from = *string_at(&source, i);
		if (!from)
			continue;
		size_t len = strlen(from) + 1;
		memcpy(text, from, len);
		*string_at(copy, i) = text;
		text += len;
	}
	hf_doc_ref(copy->body);
	return copy;
}

struct hf_request *hf_request_free(struct hf_request *request)
{
	if (request) {
		hf_doc_unref(request->body);
		free(request);
	}
	return NULL;
}

/* --- Status --- */

static struct hf_json *new_status(const char *status)
{
	struct hf_json *s = hf_json_object();

	hf_json_set_str(s, "kind", "Status");
	hf_json_set_str(s, "apiVersion", "v1");
	hf_json_set(s, "metadata", hf_json_object());
	hf_json_set_str(s, "status", status);
	return s;
}

static struct hf_json *new_details(const struct hf_resource *resource, const char *name,
				   const char *uid)
{
	struct hf_json *details = hf_json_object();

	if (!hf_str_is_empty(name))
		hf_json_set_str(details, "name", name);
	if (*resource->group)
		hf_json_set_str(details, "group", resource->group);
	hf_json_set_str(details, "kind", resource->plural);
	if (!hf_str_is_empty(uid))
		hf_json_set_str(details, "uid", uid);
	return details;
}

struct hf_json *hf_status_failure(const struct hf_status_args *args)
{
	struct hf_json *s = new_status("Failure");
	struct hf_json *details = NULL;

	hf_json_set_str(s, "message", args->message);
	hf_json_set_str(s, "reason", hf_code_reason(args->code));
	if (args->resource)
		details = new_details(args->resource, args->name, args->uid);
	else if (args->causes || args->retry_after_s > 0)
		details = hf_json_object();
	/* NewInvalid of apimachinery puts the kind into details.kind; all other errors put the
	 * resource there. */
	if (args->resource && args->code == HF_E_INVALID)
		hf_json_set_str(details, "kind", args->resource->kind);
	if (args->causes)
		hf_json_set(details, "causes", args->causes);
	if (args->retry_after_s > 0)
		hf_json_set_i64(details, "retryAfterSeconds", args->retry_after_s);
	hf_json_set(s, "details", details);
	hf_json_set_i64(s, "code", hf_code_http(args->code));
	return s;
}

struct hf_json *hf_status_success(const struct hf_resource *resource, const char *name,
				  const char *uid)
{
	struct hf_json *s = new_status("Success");

	hf_json_set(s, "details", new_details(resource, name, uid));
	return s;
}

/* --- messages --- */

static void add_subject(struct hf_strbuf *sb, const struct hf_resource *r, const char *name)
{
	char buf[HF_API_VERSION_MAX];

	hf_strbuf_addf(sb, "%s \"%s\"", hf_resource_group_plural(r, buf), hf_str_or(name, ""));
}

void hf_message_not_found(struct hf_strbuf *sb, const struct hf_resource *r, const char *name)
{
	add_subject(sb, r, name);
	hf_strbuf_addstr(sb, " not found");
}

void hf_message_exists(struct hf_strbuf *sb, const struct hf_resource *r, const char *name)
{
	add_subject(sb, r, name);
	hf_strbuf_addstr(sb, " already exists");
}

void hf_message_conflict(struct hf_strbuf *sb, const struct hf_resource *r, const char *name,
			 const char *why)
{
	hf_strbuf_addstr(sb, "Operation cannot be fulfilled on ");
	add_subject(sb, r, name);
	hf_strbuf_addf(sb, ": %s", why);
}

void hf_message_invalid(struct hf_strbuf *sb, const struct hf_resource *r, const char *name,
			const char *problems)
{
	/* As apimachinery's NewInvalid, the message names the kind and not the plural. */
	hf_strbuf_addf(sb, "%s%s%s \"%s\" is invalid: %s", r->kind, *r->group ? "." : "", r->group,
		       hf_str_or(name, ""), problems);
}

void hf_message_forbidden(struct hf_strbuf *sb, const struct hf_resource *r, const char *name,
			  const char *why)
{
	add_subject(sb, r, name);
	hf_strbuf_addf(sb, " is forbidden: %s", why);
}
