/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "json/doc.h"

#include "base/mem.h"

#include <stdlib.h>

/* A document is at most what a parse lets in, and its text grows little when written again
 * (escapes): anything near this is a mistake in the program. */
#define TEXT_BYTES_MAX ((size_t)64 << 20)

struct hf_doc {
	size_t refs;
	struct hf_json *root; /* NULL: not made yet, or the text is bad */
	char *text;           /* NULL: not made yet */
	size_t text_len;
	bool bad; /* the text was parsed and refused */
};

static struct hf_doc *doc_new(struct hf_json *root, char *text, size_t text_len)
{
	struct hf_doc *doc = hf_xcalloc(1, sizeof(*doc));

	doc->refs = 1;
	doc->root = root;
	doc->text = text;
	doc->text_len = text_len;
	return doc;
}

struct hf_doc *hf_doc_from_json(struct hf_json *root)
{
	hf_assert(root);
	return doc_new(root, NULL, 0);
}

struct hf_doc *hf_doc_from_text(const char *text, size_t len)
{
	return doc_new(NULL, hf_xstrndup(text, len), len);
}

int hf_doc_parse(const char *text, size_t len, const struct hf_json_limits *limits,
		 struct hf_doc **ret_doc, struct hf_error *err)
{
	struct hf_json *root;
	int rc = hf_json_parse(text, len, limits, &root, err);

	if (rc != 0)
		return rc;
	*ret_doc = hf_doc_from_json(root);
	return 0;
}

struct hf_doc *hf_doc_ref(struct hf_doc *doc)
{
	if (doc)
		doc->refs++;
	return doc;
}

struct hf_doc *hf_doc_unref(struct hf_doc *doc)
{
	if (!doc)
		return NULL;
	hf_assert(doc->refs > 0);
	if (--doc->refs == 0) {
		hf_json_unref(doc->root);
		free(doc->text);
		free(doc);
	}
	return NULL;
}

void hf_doc_cleanup(struct hf_doc **doc)
{
	*doc = hf_doc_unref(*doc);
}

const struct hf_json *hf_doc_json(struct hf_doc *doc)
{
	if (!doc)
		return NULL;
	if (!doc->root && !doc->bad) {
		/* The size was the business of whoever took the text in. */
		const struct hf_json_limits limits = {
			.bytes_max = doc->text_len + 1,
			.depth_max = HF_JSON_DEPTH_CEILING,
		};
		doc->bad = hf_json_parse(doc->text, doc->text_len, &limits, &doc->root, NULL) != 0;
	}
	return doc->root;
}

bool hf_doc_has_tree(const struct hf_doc *doc)
{
	return doc->root;
}

const char *hf_doc_text(struct hf_doc *doc, size_t *ret_len)
{
	if (!doc->text) {
		struct hf_strbuf sb = HF_STRBUF_INIT(TEXT_BYTES_MAX);
		hf_json_write(doc->root, HF_JSON_COMPACT, &sb);
		hf_assert(hf_strbuf_ok(&sb, "a document", NULL) == 0);
		doc->text_len = sb.len;
		doc->text = hf_strbuf_detach(&sb);
	}
	if (ret_len)
		*ret_len = doc->text_len;
	return doc->text;
}

struct hf_json *hf_doc_copy_json(struct hf_doc *doc)
{
	return hf_json_copy(hf_doc_json(doc));
}

static const char *metadata(struct hf_doc *doc, const char *key)
{
	const char *s = hf_json_path_str(hf_doc_json(doc), "metadata", key, NULL);
	return s ? s : "";
}

const char *hf_doc_name(struct hf_doc *doc)
{
	return metadata(doc, "name");
}

const char *hf_doc_namespace(struct hf_doc *doc)
{
	return metadata(doc, "namespace");
}

const char *hf_doc_uid(struct hf_doc *doc)
{
	return metadata(doc, "uid");
}

const char *hf_doc_resource_version(struct hf_doc *doc)
{
	return metadata(doc, "resourceVersion");
}
