/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * One API object, as JSON text, as a tree, or both. Input: a text or a tree; output: the form that
 * the caller asks for, and the four metadata strings that caches need.
 *
 * The missing form is made at the first request and kept. Invariant: the content of a document
 * never changes.
 */
#include "json/doc.h"

#include "base/arena.h"
#include "base/mem.h"
#include "json/skip.h"

#include <stdlib.h>
#include <string.h>

/* Bytes. A document is never larger than a parse accepts, and its text grows only a little when
 * it is written again (by escapes). A larger text is a programming error. */
#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define MANAGED "managedFields"

static const char *const metadata_keys[HF_DOC_STRINGS] = {
	[HF_DOC_NAME] = "name",
	[HF_DOC_NAMESPACE] = "namespace",
	[HF_DOC_UID] = "uid",
	[HF_DOC_RESOURCE_VERSION] = "resourceVersion",
};

struct hf_doc {
	size_t refs;
	struct hf_json *root; /* the tree; NULL: it was not made yet, or the text is invalid */
	char *text;           /* NULL: not made yet */
	size_t text_len;
	bool from_text; /* the document was created from text; metadata is read from the text */
	bool bad;       /* the text was parsed and is invalid */
	bool has_metadata;
	/* The metadata strings. They belong to the tree, or, for a document from text, to
	 * metadata_block. NULL: absent. */
	const char *metadata[HF_DOC_STRINGS];
	char *metadata_block;
	bool is_marked; /* true: managed and managed_end are known */
	/* Offsets of metadata.managedFields in the text; both equal: the text has none. */
	size_t managed, managed_end;
};

static struct hf_doc *new_doc(struct hf_json *root, char *text, size_t text_len)
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
	return new_doc(root, NULL, 0);
}

/* Takes over the text, which must end with a NUL. */
static struct hf_doc *doc_from_own_text(char *text, size_t len)
{
	struct hf_doc *doc = new_doc(NULL, text, len);

	doc->from_text = true;
	return doc;
}

/* Replaces the escape for NUL by the one for U+FFFD, in place. In this program a NUL ends a
 * string, so it cannot be kept, but the rest of the document should stay readable. An escaped
 * backslash followed by "u0000" is no such escape and stays. */
static void replace_nuls(char *text, size_t len)
{
	static const char nul[] = "\\u0000", instead[] = "\\ufffd";
	const size_t size = sizeof(nul) - 1;
	char *end = text + len;

	for (char *at = text; (at = memchr(at, '\\', (size_t)(end - at))) != NULL;) {
		if ((size_t)(end - at) < size)
			return;
		if (memcmp(at, nul, size) == 0)
			memcpy(at, instead, size);
		at += 2; /* the backslash and the escaped character */
	}
}

struct hf_doc *hf_doc_from_text(const char *text, size_t len)
{
	/* A NUL byte inside the text is copied too; the parser refuses it later. */
	char *copy = hf_xmalloc(len + 1);

	if (len > 0)
		memcpy(copy, text, len);
	copy[len] = '\0';
	replace_nuls(copy, len);
	return doc_from_own_text(copy, len);
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
		/* The size was checked when the text was received. */
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

/* Moves the reader to the value of a key in the object at the reader; false if there is none. */
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

/* The strings of metadata that the reader has found so far. */
struct found {
	struct hf_skip_string strings[HF_DOC_STRINGS];
	int left;
};

/* Reads one member of metadata: keeps one of the four strings, or skips the value. False if the
 * text is invalid. */
static bool find_string(struct found *found, struct hf_skip *s, const struct hf_skip_string *name)
{
	for (int i = 0; i < HF_DOC_STRINGS; i++) {
		if (!hf_skip_equals(name, metadata_keys[i], strlen(metadata_keys[i])) ||
		    hf_skip_peek(s) != HF_JSON_STRING)
			continue;
		found->left -= found->strings[i].bytes == NULL;
		return hf_skip_string(s, &found->strings[i]);
	}
	return hf_skip_value(s);
}

static void keep_strings(struct hf_doc *doc, const struct found *found)
{
	size_t size = 0;
	char *at;

	for (int i = 0; i < HF_DOC_STRINGS; i++)
		size += found->strings[i].bytes != NULL ? found->strings[i].len + 1 : 0;
	if (size == 0)
		return;
	at = doc->metadata_block = hf_xmalloc(size);
	for (int i = 0; i < HF_DOC_STRINGS; i++) {
		const struct hf_skip_string *string = &found->strings[i];
		size_t len;

		if (string->bytes == NULL || !hf_skip_copy(string, at, &len))
			continue;
		doc->metadata[i] = at;
		at += len + 1;
	}
}

/* Returns a new document with the text of doc, but without the bytes from `from` up to `to`. */
static struct hf_doc *cut_text(const struct hf_doc *doc, size_t from, size_t to)
{
	size_t tail = doc->text_len - to;
	char *text = hf_xmalloc(from + tail + 1);

	memcpy(text, doc->text, from);
	memcpy(text + from, doc->text + to, tail);
	text[from + tail] = '\0';
	return doc_from_own_text(text, from + tail);
}

static void copy_metadata(struct hf_doc *doc, const struct hf_doc *from)
{
	size_t size = 0;
	char *at;

	doc->has_metadata = true;
	for (int i = 0; i < HF_DOC_STRINGS; i++)
		size += from->metadata[i] ? strlen(from->metadata[i]) + 1 : 0;
	if (size == 0)
		return;
	at = doc->metadata_block = hf_xmalloc(size);
	for (int i = 0; i < HF_DOC_STRINGS; i++) {
		if (!from->metadata[i])
			continue;
		size = strlen(from->metadata[i]) + 1;
		doc->metadata[i] = memcpy(at, from->metadata[i], size);
		at += size;
	}
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* Skips the object `metadata` and notes where its strings and its managedFields are. The noted
 * range of managedFields includes the comma before it, or, for the first member, the comma behind
 * it. */
static bool skip_metadata(struct hf_skip *s, struct hf_doc_marks *marks)
{
	struct found found = {.left = HF_DOC_STRINGS};
	enum hf_skip_next next;
	struct hf_skip_string name;
	bool was_first = true, ok = true;
	const char *from;

	if (!hf_skip_enter(s))
		return false;
	from = s->p;
	for (bool first = true;
	     ok && (next = hf_skip_next_key(s, &first, &name)) == HF_SKIP_ENTRY;) {
		bool managed =
			!marks->managed && hf_skip_equals(&name, MANAGED, sizeof(MANAGED) - 1);

		ok = found.left > 0 ? find_string(&found, s, &name) : hf_skip_value(s);
		if (ok && managed) {
			(void)hf_skip_peek(s); /* skips blanks */
			marks->managed = from;
			marks->managed_end = s->p + (was_first && s->p < s->end && *s->p == ',');
		}
		was_first = false;
		from = s->p;
	}
	memcpy(marks->strings, found.strings, sizeof(marks->strings));
	return ok && next == HF_SKIP_END;
}

bool hf_doc_skip(struct hf_skip *s, struct hf_doc_marks *ret_marks)
{
	struct hf_doc_marks marks = {.managed = NULL};
	enum hf_skip_next next;
	struct hf_skip_string name;
	bool seen = false, ok = true;

	if (hf_skip_peek(s) != HF_JSON_OBJECT || !hf_skip_enter(s))
		return false;
	for (bool first = true;
	     ok && (next = hf_skip_next_key(s, &first, &name)) == HF_SKIP_ENTRY;) {
		bool metadata = !seen && hf_skip_equals(&name, "metadata", strlen("metadata"));

		seen = seen || metadata;
		ok = metadata && hf_skip_peek(s) == HF_JSON_OBJECT ? skip_metadata(s, &marks)
								   : hf_skip_value(s);
	}
	if (!ok || next != HF_SKIP_END)
		return false;
	*ret_marks = marks;
	return true;
}

/* Takes over the marks of `text`, of which the document's text is a copy. */
static void take_marks(struct hf_doc *doc, const char *text, const struct hf_doc_marks *marks)
{
	struct found found = {.left = 0};

	/* Point into the copy of the text, not into `text`: in the copy, escapes for NUL are
	 * replaced. */
	for (int i = 0; i < HF_DOC_STRINGS; i++) {
		found.strings[i] = marks->strings[i];
		if (marks->strings[i].bytes)
			found.strings[i].bytes = doc->text + (marks->strings[i].bytes - text);
	}
	if (!doc->has_metadata)
		keep_strings(doc, &found);
	doc->has_metadata = true;
	doc->is_marked = true;
	if (marks->managed) {
		doc->managed = (size_t)(marks->managed - text);
		doc->managed_end = (size_t)(marks->managed_end - text);
	}
}

struct hf_doc *hf_doc_from_marked_text(const char *text, size_t len,
				       const struct hf_doc_marks *marks)
{
	struct hf_doc *doc = hf_doc_from_text(text, len);

	take_marks(doc, text, marks);
	return doc;
}

/* Finds the marks of a document that was created without them. Does nothing if its text has no
 * metadata. */
static void mark_doc(struct hf_doc *doc)
{
	struct hf_doc_marks marks = {.managed = NULL};
	struct hf_skip s;

	hf_skip_init(&s, doc->text, doc->text_len);
	if (find_key(&s, "metadata") && hf_skip_peek(&s) == HF_JSON_OBJECT &&
	    skip_metadata(&s, &marks))
		take_marks(doc, doc->text, &marks);
}

struct hf_doc *hf_doc_without_managed_fields(struct hf_doc *doc)
{
	struct hf_doc *rest;

	if (doc->from_text && !doc->is_marked)
		mark_doc(doc);
	if (doc->managed == doc->managed_end)
		return hf_doc_ref(doc);
	rest = cut_text(doc, doc->managed, doc->managed_end);
	copy_metadata(rest, doc);
	rest->is_marked = true;
	return rest;
}

/* Reads the four strings from the text, because caches index every object by them. A tree for
 * each object of a list would need ten times the memory of its text. */
static void read_metadata(struct hf_doc *doc)
{
	struct found found = {.left = HF_DOC_STRINGS};
	struct hf_skip_string name;
	struct hf_skip s;
	bool whole = true;

	doc->has_metadata = true;
	hf_skip_init(&s, doc->text, doc->text_len);
	if (!find_key(&s, "metadata") || hf_skip_peek(&s) != HF_JSON_OBJECT || !hf_skip_enter(&s))
		return;
	/* API servers write name, namespace, uid and resourceVersion before labels, annotations and
	 * the long managedFields. So the loop usually ends early. */
	for (bool first = true;
	     whole && found.left > 0 && hf_skip_next_key(&s, &first, &name) == HF_SKIP_ENTRY;)
		whole = find_string(&found, &s, &name);
	keep_strings(doc, &found);
}

/* The document has a tree, so all four strings can point into it. */
static void borrow_metadata(struct hf_doc *doc)
{
	const struct hf_json *object = hf_json_get(doc->root, "metadata");

	doc->has_metadata = true;
	for (int i = 0; i < HF_DOC_STRINGS; i++)
		doc->metadata[i] = hf_json_str(hf_json_get(object, metadata_keys[i]), NULL);
}

static const char *metadata_string(struct hf_doc *doc, int i)
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
	return metadata_string(doc, HF_DOC_NAME);
}

const char *hf_doc_namespace(struct hf_doc *doc)
{
	return metadata_string(doc, HF_DOC_NAMESPACE);
}

const char *hf_doc_uid(struct hf_doc *doc)
{
	return metadata_string(doc, HF_DOC_UID);
}

const char *hf_doc_resource_version(struct hf_doc *doc)
{
	return metadata_string(doc, HF_DOC_RESOURCE_VERSION);
}
