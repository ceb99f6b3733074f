/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_DOC_H
#define HF_JSON_DOC_H

#include "json/json.h"
#include "json/skip.h"

/*
 * One API object, kept whole, shared by reference and never changed (lifetime "object").
 *
 * A back end over HTTP has the text of an object, a back end in this process has its tree. A reader
 * asks for the form that it needs; the other form is made at the first request and kept. Hot paths
 * read fields from either form (json/fields.h) without making the other one.
 */
struct hf_doc;

/* Takes over the reference to root. */
struct hf_doc *hf_doc_from_json(struct hf_json *root);
/* Copies the text. The text must be one that hf_json_parse accepts; it is parsed only when the
 * tree is needed. Servers accept the escape "\u0000" in any string and send it; here it becomes
 * U+FFFD. */
struct hf_doc *hf_doc_from_text(const char *text, size_t len);
/*
 * The marks of an object's text, which one pass over the text finds. With them a document finds its
 * metadata strings without another pass. It can also leave out metadata.managedFields, often half
 * of the text.
 */
enum hf_doc_string {
	HF_DOC_NAME,
	HF_DOC_NAMESPACE,
	HF_DOC_UID,
	HF_DOC_RESOURCE_VERSION,
	HF_DOC_STRINGS
};
struct hf_doc_marks {
	struct hf_skip_string strings[HF_DOC_STRINGS]; /* bytes NULL: absent */
	/* The range of managedFields in the text, with a comma beside it; NULL: absent. */
	const char *managed, *managed_end;
};
/* Skips the object at the reader, as hf_skip_value does, and notes its metadata. */
bool hf_doc_skip(struct hf_skip *s, struct hf_doc_marks *ret_marks) HF_MUST_CHECK;
/* As hf_doc_from_text. marks: what hf_doc_skip has noted about this text, so that it is not
 * searched again. */
struct hf_doc *hf_doc_from_marked_text(const char *text, size_t len,
				       const struct hf_doc_marks *marks);
/* Parses the text at once, so that an invalid text is refused here. */
int hf_doc_parse(const char *text, size_t len, const struct hf_json_limits *limits,
		 struct hf_doc **ret_doc, struct hf_error *err) HF_MUST_CHECK;

struct hf_doc *hf_doc_ref(struct hf_doc *doc);   /* accepts NULL */
struct hf_doc *hf_doc_unref(struct hf_doc *doc); /* accepts NULL; returns NULL */
void hf_doc_cleanup(struct hf_doc **doc);
#define HF_AUTO_DOC HF_CLEANUP(hf_doc_cleanup) struct hf_doc *

/* The tree; it belongs to doc and is read-only. NULL if the text is not valid JSON (hf_doc_parse
 * reports the reason) or doc is NULL. */
const struct hf_json *hf_doc_json(struct hf_doc *doc);
/* True if the tree exists already, so that hf_doc_json is cheap. */
bool hf_doc_has_tree(const struct hf_doc *doc);
/* The text, which belongs to doc and ends with a NUL. ret_len may be NULL. */
const char *hf_doc_text(struct hf_doc *doc, size_t *ret_len);
/* Frees the tree of a document that was created from text; the next hf_doc_json makes it again.
 * No caller may hold pointers into the tree. The metadata functions below stay valid. Does
 * nothing for a document without its own text, or for NULL. */
void hf_doc_drop_tree(struct hf_doc *doc);
/* Returns the tree of one member of the object, without parsing the rest of a text; NULL if
 * absent. */
struct hf_json *hf_doc_member_json(struct hf_doc *doc, const char *key);
/* Returns a new document without metadata.managedFields. Returns doc itself if the document has
 * none, or has no text of its own. */
struct hf_doc *hf_doc_without_managed_fields(struct hf_doc *doc);
/* A copy of the tree that the caller may change. */
struct hf_json *hf_doc_copy_json(struct hf_doc *doc);

/* Fields of metadata; "" if absent or not a string. The strings belong to doc. No tree is made
 * of a text. */
const char *hf_doc_name(struct hf_doc *doc);
const char *hf_doc_namespace(struct hf_doc *doc);
const char *hf_doc_uid(struct hf_doc *doc);
const char *hf_doc_resource_version(struct hf_doc *doc);

#endif
