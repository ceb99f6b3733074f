/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads one line of a watch, {"type": …, "object": …}, into an event, a failure (type ERROR) or an
 * unknown type, which the caller skips. */
#include "kube/kube_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/json_split_internal.h"

#include <string.h>

static bool find_event_type(const struct hf_skip_string *text, enum hf_event_type *ret_type)
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

/* Reads an event of type ERROR. Its object is a Status, mostly 410 ("too old resource
 * version"). */
static int read_error(const struct hf_kube_event_text *text, struct hf_kube_failure *ret_failure,
		      struct hf_error *err)
{
	HF_AUTO_JSON status = NULL;
	struct hf_kube_failure failure = {.retry_after = 0};
	int64_t http;
	int rc = hf_json_parse(text->object, text->object_len, NULL, &status, err);

	if (rc != 0)
		return rc;
	http = hf_json_i64(hf_json_get(status, "code"), 500);
	/* An ERROR event always means a failure, so a code that means success is replaced by
	 * 500. */
	if (http < 400 || http > 599)
		http = 500;
	(void)hf_error_set(
		&failure.err,
		hf_code_from_http((int)http, hf_json_path_str(status, "reason", NULL)), "%s",
		hf_str_or(hf_json_path_str(status, "message", NULL), "the watch failed"));
	failure.retry_after = hf_kube_status_retry_after(status);
	*ret_failure = failure;
	return 0;
}

static int refuse_line(struct hf_error *err, const char *why)
{
	return hf_error_set(err, HF_E_BAD_REQUEST, "a line of the watch %s", why);
}

int hf_kube_line_read(const char *line, size_t len, enum hf_kube_line *ret_line,
		      struct hf_event *ret_event, struct hf_kube_failure *ret_failure,
		      struct hf_error *err)
{
	struct hf_event event = {.message = ""};
	struct hf_kube_event_text text;
	int rc = hf_kube_event_split(line, len, &text, err);

	if (rc != 0)
		return rc;
	if (hf_skip_equals(&text.type, "ERROR", 5)) {
		rc = read_error(&text, ret_failure, err);
		if (rc == 0)
			*ret_line = HF_KUBE_LINE_ERROR;
		return rc;
	}
	/* A newer server may send types that this version does not know. The caller skips them. */
	if (!find_event_type(&text.type, &event.type)) {
		*ret_line = HF_KUBE_LINE_UNKNOWN;
		return 0;
	}
	HF_AUTO_DOC doc = hf_doc_from_marked_text(text.object, text.object_len, &text.marks);
	event.resource_version = hf_doc_resource_version(doc);
	/* Refuse an object without a resourceVersion: the watch could not be resumed after it. */
	if (event.resource_version[0] == '\0')
		return refuse_line(err, "has an object without a resourceVersion");
	if (event.type != HF_EVENT_BOOKMARK && hf_doc_name(doc)[0] == '\0')
		return refuse_line(err, "has an object without a name");
	if (event.type == HF_EVENT_BOOKMARK)
		event.initial_end =
			hf_streq(hf_json_path_str(hf_doc_json(doc), "metadata", "annotations",
						  "k8s.io/initial-events-end", NULL),
				 "true");
	event.object = hf_steal(&doc);
	*ret_event = event;
	*ret_line = HF_KUBE_LINE_EVENT;
	return 0;
}
