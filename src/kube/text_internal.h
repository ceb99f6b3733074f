/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_TEXT_INTERNAL_H
#define HF_KUBE_TEXT_INTERNAL_H

#include "json/doc.h"
#include "json/skip.h"
#include "store/resource.h"

HF_BEGIN_DECLS

/*
 * What an API server sends, taken apart as text: documents keep their text, and a tree is
 * made of those alone of which somebody asks for one.  A watch of 10,000 pods is read at
 * about the speed of memory this way.  Broken text is refused as far as it was looked at
 * (json/skip.h): what stands inside a document is for hf_doc_json to refuse.
 *
 * Errors: HF_E_BAD_REQUEST with line and column.
 */

/* {"type": …, "object": {…}}; both point into the line. */
struct hf_kube_event_text {
	struct hf_skip_string type;
	const char *object;
	size_t object_len;
};
int hf_kube_event_split(const char *line, size_t len, struct hf_kube_event_text *ret_event,
			struct hf_error *err) HF_MUST_CHECK;

/* A page of a list; items without kind and apiVersion get those of resource. */
struct hf_kube_list {
	struct hf_doc **items; /* owned */
	size_t len, cap, len_max;
	char *resource_version, *continue_token; /* "" where absent */
	int64_t remaining;                       /* -1: not told */
};
int hf_kube_list_read(const char *body, size_t len, const struct hf_resource *resource,
		      struct hf_kube_list *ret_list, struct hf_error *err) HF_MUST_CHECK;
void hf_kube_list_release(struct hf_kube_list *list);

/* One object. */
int hf_kube_object_read(const char *body, size_t len, struct hf_doc **ret_doc, struct hf_error *err)
	HF_MUST_CHECK;

HF_END_DECLS

#endif
