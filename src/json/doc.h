/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_DOC_H
#define HF_JSON_DOC_H

#include "json/json.h"

/*
 * A document as the world has it: one API object, kept whole, shared by reference
 * and never changed ("object" lifetime).
 *
 * A back end over HTTP has its text, an in-process one its tree; a reader asks for
 * what it needs, the other form is made at the first request and kept.  Hot paths
 * read fields from either form (json/fields.h) without making the other.
 */
struct hf_doc;

/* Takes over the reference to root. */
struct hf_doc *hf_doc_from_json(struct hf_json *root);
/* Copies the text, which must be what hf_json_parse accepts: it is parsed when first asked for.  Servers take and
 * give "\u0000" in any string; here it is U+FFFD. */
struct hf_doc *hf_doc_from_text(const char *text, size_t len);
/* Parses now, so that bad text is refused here. */
int hf_doc_parse(const char *text, size_t len, const struct hf_json_limits *limits,
		 struct hf_doc **ret_doc, struct hf_error *err) HF_MUST_CHECK;

struct hf_doc *hf_doc_ref(struct hf_doc *doc);   /* NULL is fine */
struct hf_doc *hf_doc_unref(struct hf_doc *doc); /* NULL is fine; returns NULL */
void hf_doc_cleanup(struct hf_doc **doc);
#define HF_AUTO_DOC HF_CLEANUP(hf_doc_cleanup) struct hf_doc *

/* The tree, borrowed from doc and read-only.  NULL where the text turns out not to be JSON
 * (hf_doc_parse gives the reason) or doc is NULL. */
const struct hf_json *hf_doc_json(struct hf_doc *doc);
/* Is the tree there already, so that hf_doc_json costs nothing? */
bool hf_doc_has_tree(const struct hf_doc *doc);
/* The text, borrowed from doc, NUL-terminated.  ret_len may be NULL. */
const char *hf_doc_text(struct hf_doc *doc, size_t *ret_len);
/* Free the tree of a document that was made from text; it is made again when next asked for.
 * Only for who knows that nobody borrows from the tree: metadata below never does.  Nothing
 * happens to a document without a text of its own, or to NULL. */
void hf_doc_drop_tree(struct hf_doc *doc);
/* The tree of one member of the object alone (NULL: absent), for who needs no more of a text. */
struct hf_json *hf_doc_member_json(struct hf_doc *doc, const char *key);
/* The document without doc.outer.key, "metadata" and "managedFields" say: a new one, or doc itself
 * where that is absent or doc has no text of its own. */
struct hf_doc *hf_doc_without(struct hf_doc *doc, const char *outer, const char *key);
/* A private copy of the tree to change. */
struct hf_json *hf_doc_copy_json(struct hf_doc *doc);

/* metadata.*, "" where absent or no string; borrowed from doc.  Makes no tree of a text. */
const char *hf_doc_name(struct hf_doc *doc);
const char *hf_doc_namespace(struct hf_doc *doc);
const char *hf_doc_uid(struct hf_doc *doc);
const char *hf_doc_resource_version(struct hf_doc *doc);

#endif
