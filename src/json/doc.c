/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "json/doc.h"

#include "base/arena.h"
#include "base/mem.h"
#include "json/skip.h"

#include <stdlib.h>
#include <string.h>

/* A document is at most what a parse lets in, and its text grows little when written again
 * (escapes): anything near this is a mistake in the program. */
#define TEXT_BYTES_MAX ((size_t)64 << 20)

enum { NAME, NAMESPACE, UID, RESOURCE_VERSION, METADATA_LEN };

static const char *const metadata_keys[METADATA_LEN] = {
	[NAME] = "name",
	[NAMESPACE] = "namespace",
	[UID] = "uid",
	[RESOURCE_VERSION] = "resourceVersion",
};

struct hf_doc {
	size_t refs;
	struct hf_json *root; /* NULL: not made yet, or the text is bad */
	char *text;           /* NULL: not made yet */
	size_t text_len;
	bool from_text; /* it had the text first: metadata is read from that alone */
	bool bad;       /* the text was parsed and refused */
	bool has_metadata;
	/* Of the tree, or read from the text when that was first, in one block; NULL: absent. */
	const char *metadata[METADATA_LEN];
	char *metadata_block;
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

/* Takes over the text, NUL-terminated. */
static struct hf_doc *from_own_text(char *text, size_t len)
{
	struct hf_doc *doc = doc_new(NULL, text, len);

	doc->from_text = true;
	return doc;
}

/* In place: a NUL ends a text here, and is no reason not to read the others.  "\\u0000" in JSON is a backslash and
 * five characters. */
static void replace_nuls(char *text, size_t len)
{
	static const char nul[] = "\\u0000", instead[] = "\\ufffd";
	const size_t size = sizeof(nul) - 1;
	char *end = text + len;

	for (char *at = text; (at = memmem(at, (size_t)(end - at), nul, size)) != NULL;) {
		const char *slash = at;

		while (slash > text && slash[-1] == '\\')
			slash--;
		if ((at - slash) % 2 == 0)
			memcpy(at, instead, size);
		at += size;
	}
}

struct hf_doc *hf_doc_from_text(const char *text, size_t len)
{
	/* A NUL inside is for the parse to refuse; the copy has all of len all the same. */
	char *copy = hf_xmalloc(len + 1);

	if (len > 0)
		memcpy(copy, text, len);
	copy[len] = '\0';
	replace_nuls(copy, len);
	return from_own_text(copy, len);
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
		free(doc->metadata_block);
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

void hf_doc_drop_tree(struct hf_doc *doc)
{
	if (doc && doc->from_text)
		doc->root = hf_json_unref(doc->root);
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

/* Stands before the value of the key then. */
static bool find_key(struct hf_skip *s, const char *key)
{
	struct hf_skip_string name;

	if (hf_skip_peek(s) != HF_JSON_OBJECT || !hf_skip_enter(s))
		return false;
	for (bool first = true; hf_skip_next_key(s, &first, &name) == HF_SKIP_ENTRY;) {
		if (hf_skip_equals(&name, key, strlen(key)))
			return true;
		if (!hf_skip_value(s))
			return false;
	}
	return false;
}

struct hf_json *hf_doc_member_json(struct hf_doc *doc, const char *key)
{
	const struct hf_json_limits limits = {
		.bytes_max = doc->text_len + 1,
		.depth_max = HF_JSON_DEPTH_CEILING,
	};
	struct hf_json *member = NULL;
	struct hf_skip s;

	if (doc->root)
		return hf_json_ref(hf_json_get(doc->root, key));
	hf_skip_init(&s, doc->text, doc->text_len);
	if (!find_key(&s, key) || hf_skip_peek(&s) == HF_JSON_ABSENT)
		return NULL;
	const char *start = s.p;
	if (!hf_skip_value(&s) ||
	    hf_json_parse(start, (size_t)(s.p - start), &limits, &member, NULL) != 0)
		return NULL;
	return member;
}

/* The member with one of its commas, where the reader stands before the members of an object. */
static bool find_member(struct hf_skip *s, const char *key, const char **ret_from,
			const char **ret_to)
{
	struct hf_skip_string name;
	bool was_first = true;

	*ret_from = s->p;
	for (bool first = true; hf_skip_next_key(s, &first, &name) == HF_SKIP_ENTRY;) {
		bool found = hf_skip_equals(&name, key, strlen(key));
		if (!hf_skip_value(s))
			return false;
		if (found) {
			*ret_to = s->p + strspn(s->p, " \t\r\n");
			if (was_first && **ret_to == ',')
				++*ret_to;
			return true;
		}
		was_first = false;
		*ret_from = s->p;
	}
	return false;
}

struct hf_doc *hf_doc_without(struct hf_doc *doc, const char *outer, const char *key)
{
	const char *from, *to;
	struct hf_skip s;

	if (!doc->from_text)
		return hf_doc_ref(doc);
	hf_skip_init(&s, doc->text, doc->text_len);
	if (!find_key(&s, outer) || hf_skip_peek(&s) != HF_JSON_OBJECT || !hf_skip_enter(&s) ||
	    !find_member(&s, key, &from, &to))
		return hf_doc_ref(doc);
	size_t head = (size_t)(from - doc->text);
	size_t tail = doc->text_len - (size_t)(to - doc->text);
	char *text = hf_xmalloc(head + tail + 1);

	memcpy(text, doc->text, head);
	memcpy(text + head, to, tail);
	text[head + tail] = '\0';
	return from_own_text(text, head + tail);
}

/* Of metadata: the four strings, where they are there. */
struct found {
	struct hf_skip_string strings[METADATA_LEN];
	int left;
};

/* One of the four, or any other member of metadata; false where the text is broken. */
static bool find_string(struct found *found, struct hf_skip *s, const struct hf_skip_string *name)
{
	for (int i = 0; i < METADATA_LEN; i++) {
		if (!hf_skip_equals(name, metadata_keys[i], strlen(metadata_keys[i])) ||
		    hf_skip_peek(s) != HF_JSON_STRING)
			continue;
		found->left -= found->strings[i].bytes == NULL;
		return hf_skip_string(s, &found->strings[i]);
	}
	return hf_skip_value(s);
}

static void keep_found(struct hf_doc *doc, const struct found *found)
{
	size_t size = 0;
	char *at;

	for (int i = 0; i < METADATA_LEN; i++)
		size += found->strings[i].bytes != NULL ? found->strings[i].len + 1 : 0;
	if (size == 0)
		return;
	at = doc->metadata_block = hf_xmalloc(size);
	for (int i = 0; i < METADATA_LEN; i++) {
		const struct hf_skip_string *string = &found->strings[i];
		size_t len;

		if (string->bytes == NULL || !hf_skip_copy(string, at, &len))
			continue;
		doc->metadata[i] = at;
		at += len + 1;
	}
}

/* Caches index by these four: a tree for each object of a list would cost ten times its text. */
static void read_metadata(struct hf_doc *doc)
{
	struct found found = {.left = METADATA_LEN};
	struct hf_skip_string name;
	struct hf_skip s;
	bool whole = true;

	doc->has_metadata = true;
	hf_skip_init(&s, doc->text, doc->text_len);
	if (!find_key(&s, "metadata") || hf_skip_peek(&s) != HF_JSON_OBJECT || !hf_skip_enter(&s))
		return;
	/* API servers write these before labels, annotations and the long managedFields. */
	for (bool first = true;
	     whole && found.left > 0 && hf_skip_next_key(&s, &first, &name) == HF_SKIP_ENTRY;)
		whole = find_string(&found, &s, &name);
	keep_found(doc, &found);
}

/* Whoever asks for one asks for more: of a document that came as a tree they are borrowed from it. */
static void borrow_metadata(struct hf_doc *doc)
{
	const struct hf_json *object = hf_json_get(doc->root, "metadata");

	doc->has_metadata = true;
	for (int i = 0; i < METADATA_LEN; i++)
		doc->metadata[i] = hf_json_str(hf_json_get(object, metadata_keys[i]), NULL);
}

static const char *metadata(struct hf_doc *doc, int i)
{
	if (!doc)
		return "";
	if (!doc->has_metadata && doc->from_text)
		read_metadata(doc);
	else if (!doc->has_metadata)
		borrow_metadata(doc);
	return doc->metadata[i] ? doc->metadata[i] : "";
}

const char *hf_doc_name(struct hf_doc *doc)
{
	return metadata(doc, NAME);
}

const char *hf_doc_namespace(struct hf_doc *doc)
{
	return metadata(doc, NAMESPACE);
}

const char *hf_doc_uid(struct hf_doc *doc)
{
	return metadata(doc, UID);
}

const char *hf_doc_resource_version(struct hf_doc *doc)
{
	return metadata(doc, RESOURCE_VERSION);
}
