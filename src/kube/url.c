/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Builds request targets: the path of a resource and its query. */
#include "kube/kube_internal.h"

#include "base/str.h"

#include <stdio.h>

static void add_segment(struct hf_strbuf *sb, const char *text)
{
	hf_strbuf_addch(sb, '/');
	hf_url_escape(sb, text);
}

/* Adds the path of a collection: "/api/v1" or "/apis/GROUP/VERSION", then the namespace and the
 * plural. */
static void add_collection(struct hf_strbuf *sb, const struct hf_resource *resource, const char *ns)
{
	/* Outside the groups, the name alone is the path: "/version". */
	if (resource->version[0] == '\0')
		return;
	hf_strbuf_addstr(sb, resource->group[0] == '\0' ? "/api" : "/apis");
	if (resource->group[0] != '\0')
		add_segment(sb, resource->group);
	add_segment(sb, resource->version);
	if (resource->namespaced && ns != NULL) {
		hf_strbuf_addstr(sb, "/namespaces");
		add_segment(sb, ns);
	}
	add_segment(sb, resource->plural);
}

/* Appends "?name=value" or "&name=value"; a NULL value adds nothing. */
static void add_query(struct hf_strbuf *sb, size_t path_len, const char *name, const char *value)
{
	if (value == NULL)
		return;
	hf_strbuf_addch(sb, sb->len == path_len ? '?' : '&');
	hf_strbuf_addstr(sb, name);
	hf_strbuf_addch(sb, '=');
	hf_url_escape(sb, value);
}

static void add_query_i64(struct hf_strbuf *sb, size_t path_len, const char *name, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	add_query(sb, path_len, name, text);
}

static bool is_write(enum hf_verb verb)
{
	return verb == HF_VERB_CREATE || verb == HF_VERB_UPDATE || verb == HF_VERB_PATCH;
}

void hf_kube_target(struct hf_strbuf *sb, const struct hf_request *request)
{
	size_t path_len;

	add_collection(sb, request->resource, request->ns);
	/* Add the name, except for a create: a new object is sent to its collection. A create of a
	 * subresource (a binding) needs the name. */
	if (request->name != NULL &&
	    (request->verb != HF_VERB_CREATE || request->subresource != NULL))
		add_segment(sb, request->name);
	if (request->subresource != NULL)
		add_segment(sb, request->subresource);
	path_len = sb->len;

	if (request->verb == HF_VERB_LIST) {
		add_query(sb, path_len, "labelSelector", request->label_selector);
		add_query(sb, path_len, "fieldSelector", request->field_selector);
		add_query(sb, path_len, "continue", request->continue_token);
		if (request->limit > 0)
			add_query_i64(sb, path_len, "limit", request->limit);
	}
	/* Send a resourceVersion only without a continue token: the token contains the version,
	 * and a server refuses a request with both. */
	if ((request->verb == HF_VERB_LIST && request->continue_token == NULL) ||
	    request->verb == HF_VERB_GET)
		add_query(sb, path_len, "resourceVersion", request->resource_version);
	if (is_write(request->verb)) {
		add_query(sb, path_len, "fieldManager",
			  hf_str_or(request->field_manager, "holdfast"));
		add_query(sb, path_len, "fieldValidation", request->field_validation);
	}
	if (request->dry_run)
		add_query(sb, path_len, "dryRun", "All");
	if (request->verb == HF_VERB_PATCH && request->patch_type == HF_PATCH_APPLY &&
	    request->force)
		add_query(sb, path_len, "force", "true");
}

void hf_kube_watch_target(struct hf_strbuf *sb, const struct hf_watch_options *options)
{
	size_t path_len;

	add_collection(sb, options->resource, options->ns);
	path_len = sb->len;
	add_query(sb, path_len, "watch", "true");
	add_query(sb, path_len, "labelSelector", options->label_selector);
	add_query(sb, path_len, "fieldSelector", options->field_selector);
	add_query(sb, path_len, "resourceVersion", options->resource_version);
	if (options->bookmarks)
		add_query(sb, path_len, "allowWatchBookmarks", "true");
	if (options->initial_events) {
		add_query(sb, path_len, "sendInitialEvents", "true");
		add_query(sb, path_len, "resourceVersionMatch", "NotOlderThan");
	}
	if (options->timeout > 0)
		add_query_i64(sb, path_len, "timeoutSeconds",
			      (options->timeout + HF_SECOND - 1) / HF_SECOND);
}

void hf_kube_log_target(struct hf_strbuf *sb, const struct hf_log_options *options)
{
	size_t path_len;

	hf_strbuf_addstr(sb, "/api/v1/namespaces");
	add_segment(sb, options->ns);
	hf_strbuf_addstr(sb, "/pods");
	add_segment(sb, options->pod);
	hf_strbuf_addstr(sb, "/log");
	path_len = sb->len;
	add_query(sb, path_len, "container", options->container);
	add_query(sb, path_len, "follow", options->follow ? "true" : NULL);
	add_query(sb, path_len, "previous", options->previous ? "true" : NULL);
	add_query(sb, path_len, "timestamps", options->timestamps ? "true" : NULL);
	if (options->tail_lines >= 0)
		add_query_i64(sb, path_len, "tailLines", options->tail_lines);
	if (options->since_seconds > 0)
		add_query_i64(sb, path_len, "sinceSeconds", options->since_seconds);
	if (options->limit_bytes > 0)
		add_query_i64(sb, path_len, "limitBytes", options->limit_bytes);
}
