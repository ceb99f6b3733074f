/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_JSON_SPLIT_INTERNAL_H
#define HF_KUBE_JSON_SPLIT_INTERNAL_H

#include "json/doc.h"
#include "json/skip.h"
#include "store/resource.h"

HF_BEGIN_DECLS

/* Splits the text of API responses. Documents keep their text; a JSON tree is parsed on demand
 * only. So a watch of 10,000 pods is read at about the speed of memory. Malformed JSON is refused
 * as far as json/skip.h looks; hf_doc_json refuses the rest, inside a document.
 *
 * Errors: HF_E_BAD_REQUEST with line and column. */

/* An event of a watch: {"type": …, "object": {…}}. The members point into the line. */
struct hf_kube_event_text {
	struct hf_skip_string type;
	const char *object;
	size_t object_len;
	struct hf_doc_marks marks; /* marks of the object's text */
};
int hf_kube_event_split(const char *line, size_t len, struct hf_kube_event_text *ret_event,
			struct hf_error *err) HF_MUST_CHECK;

/* A page of a list. Items without kind and apiVersion get the values of `resource`. */
struct hf_kube_list {
	struct hf_doc **items; /* array of documents, owned by this struct */
	size_t len, cap, len_max;
	/* fields of the list's metadata; "": the list has no such field */
	char *resource_version, *continue_token;
	int64_t remaining; /* number of items after this page; -1: unknown */
};
int hf_kube_list_read(const char *body, size_t len, const struct hf_resource *resource,
		      struct hf_kube_list *ret_list, struct hf_error *err) HF_MUST_CHECK;
void hf_kube_list_release(struct hf_kube_list *list);

/* Reads a body that is a single JSON object, into a document. */
int hf_kube_object_read(const char *body, size_t len, struct hf_doc **ret_doc, struct hf_error *err)
	HF_MUST_CHECK;

HF_END_DECLS

#endif
