/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads YAML into JSON trees. Input: text; output: one tree for each document, and marks with the
 * line and column of each value.
 *
 * libyaml's events become a tree and, beside it, the marks. An error about a field is found later,
 * when the text is gone, and must still name a line.
 *
 * Each value carries the cost of an alias to it (values, bytes, height), summed up while its
 * container is open. So an alias beyond the limits is refused before anything is copied, also for
 * aliases of aliases.
 */
#include "json/yaml.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "json/yaml_internal.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* anchors of one document; typical files have a few */
#define ANCHORS_MAX 1000
#define TAG_PREFIX "tag:yaml.org,2002:"

struct doc {
	struct hf_json *json;
	struct hf_yaml_mark *mark; /* NULL: positions are unknown */
};

struct hf_yaml {
	struct hf_arena *arena; /* memory of the marks */
	HF_VEC(struct doc) docs;
};

/* A complete value that is not in its container yet, and the cost of an alias to it. */
struct built {
	struct hf_json *json;
	struct hf_yaml_mark *mark;
	size_t nodes, bytes;
	int height;
};

struct anchor {
	struct anchor *older;
	/* The value with this anchor; its json is NULL while the value is being read. */
	struct built built;
};

/* A container that is still open. */
struct frame {
	struct built built;
	struct hf_yaml_mark *last; /* mark of the last child */
	struct anchor *anchor;
	bool is_map;
	struct hf_yaml_mark *key; /* the key whose value comes next */
	bool merging;             /* the key was << */
	/* the value of << */
	struct built merge;
};

struct builder {
	yaml_parser_t parser;
	struct hf_yaml_limits limits;
	struct hf_yaml *yaml;
	struct hf_map *anchors;
	struct anchor *newest_anchor;
	struct frame frames[HF_JSON_DEPTH_CEILING];
	int depth;
	struct built root;
	size_t nodes, bytes;
	struct hf_error *err;
};

static int report_error(struct builder *b, int code, const yaml_mark_t *at, const char *what)
{
	return hf_error_set(b->err, code, "line %zu, column %zu: %s", at->line + 1, at->column + 1,
			    what);
}

static int report_too_much(struct builder *b, const yaml_mark_t *at, size_t max,
			   const char *of_what)
{
	return hf_error_set(b->err, HF_E_TOO_LARGE,
			    "line %zu, column %zu: more than %zu %s, expanded aliases included",
			    at->line + 1, at->column + 1, max, of_what);
}

/* Counts a node, from the text or from an alias, against the limits. */
static int count_cost(struct builder *b, size_t nodes, size_t bytes, const yaml_mark_t *at)
{
	b->nodes += nodes;
	b->bytes += bytes;
	if (b->nodes > b->limits.nodes_max)
		return report_too_much(b, at, b->limits.nodes_max, "values");
	if (b->bytes > b->limits.bytes_max)
		return report_too_much(b, at, b->limits.bytes_max, "bytes of text");
	return 0;
}

static struct hf_yaml_mark *new_mark(struct builder *b, const yaml_mark_t *at)
{
	struct hf_yaml_mark *mark = HF_ARENA_NEW(b->yaml->arena, struct hf_yaml_mark);

	mark->line = (int)at->line + 1;
	mark->column = (int)at->column + 1;
	return mark;
}

/* Registers the anchor of a value that begins here. An anchor's name may be used again. */
static int new_anchor(struct builder *b, const yaml_char_t *name, const yaml_mark_t *at,
		      struct anchor **ret_anchor)
{
	struct anchor *anchor;

	*ret_anchor = NULL;
	if (!name)
		return 0;
	anchor = HF_ARENA_NEW(b->yaml->arena, struct anchor);
	anchor->older = b->newest_anchor;
	b->newest_anchor = anchor;
	if (!hf_map_put(b->anchors, (const char *)name, anchor))
		return report_error(b, HF_E_TOO_LARGE, at, "too many anchors");
	*ret_anchor = anchor;
	return 0;
}

static void fill_anchor(struct anchor *anchor, const struct built *built)
{
	if (!anchor)
		return;
	anchor->built = *built;
	hf_json_ref(built->json);
}

/* Drops the references that the anchors hold. The anchors have references of their own, because a
 * merge may have removed the named value from the tree. */
static void forget_anchors(struct builder *b)
{
	for (; b->newest_anchor; b->newest_anchor = b->newest_anchor->older)
		hf_json_unref(b->newest_anchor->built.json);
	hf_map_clear(b->anchors);
}

/* Reports a duplicate key with the line of the first one, which the mark of the first key has. The
 * search for it runs only in case of an error. */
static int report_duplicate(struct builder *b, const struct frame *frame, const char *key,
			    const yaml_mark_t *at)
{
	const struct hf_yaml_mark *first = frame->built.mark->first;

	while (first && (!first->key || strcmp(first->key, key) != 0))
		first = first->next;
	return hf_error_set(b->err, HF_E_BAD_REQUEST,
			    "line %zu, column %zu: duplicate key '%s', first in line %d",
			    at->line + 1, at->column + 1, key, first ? first->line : 0);
}

/* Takes a scalar as the key of a mapping. */
static int take_key(struct builder *b, struct frame *frame, const struct built *built,
		    const yaml_mark_t *at)
{
	enum hf_json_type type = hf_json_type(built->json);

	if (type != HF_JSON_STRING)
		return hf_error_set(b->err, HF_E_BAD_REQUEST,
				    "line %zu, column %zu: a key must be a string, not %s %s: "
				    "put it in quotes",
				    at->line + 1, at->column + 1,
				    type == HF_JSON_INT || type == HF_JSON_OBJECT ||
						    type == HF_JSON_ARRAY
					    ? "an"
					    : "a",
				    hf_json_type_name(type));
	const char *key = hf_json_str(built->json, "");
	if (hf_json_get(frame->built.json, key))
		return report_duplicate(b, frame, key, at);
	if (hf_json_len(frame->built.json) >= HF_JSON_KEYS_MAX)
		return report_error(b, HF_E_TOO_LARGE, at, "too many keys in one object");
	frame->key = new_mark(b, at);
	frame->key->key = hf_arena_strdup(b->yaml->arena, key);
	return 0;
}

static void link_child(struct frame *frame, struct hf_yaml_mark *mark)
{
	if (frame->last)
		frame->last->next = mark;
	else
		frame->built.mark->first = mark;
	frame->last = mark;
}

/* Puts a complete value into its container. The reference is taken over, also on failure. */
static int attach_value(struct builder *b, const struct built *built, const yaml_mark_t *at)
{
	struct frame *frame = b->depth > 0 ? &b->frames[b->depth - 1] : NULL;

	if (!frame) {
		b->root = *built;
		return 0;
	}
	frame->built.nodes += built->nodes;
	frame->built.bytes += built->bytes;
	if (built->height >= frame->built.height)
		frame->built.height = built->height + 1;
	if (!frame->is_map) {
		hf_json_append(frame->built.json, built->json);
		link_child(frame, built->mark);
	} else if (frame->merging) {
		frame->merging = false;
		frame->merge = *built;
	} else if (!frame->key) {
		int rc = take_key(b, frame, built, at);
		hf_json_unref(built->json);
		return rc;
	} else {
		hf_json_set(frame->built.json, frame->key->key, built->json);
		frame->key->first = built->mark->first;
		link_child(frame, frame->key);
		frame->key = NULL;
	}
	return 0;
}

static int resolve_tag(struct builder *b, const yaml_event_t *event, struct hf_yaml_scalar *scalar)
{
	static const struct {
		const char *tag;
		enum hf_json_type type;
	} tags[] = {
		{TAG_PREFIX "null", HF_JSON_NULL},  {TAG_PREFIX "bool", HF_JSON_BOOL},
		{TAG_PREFIX "int", HF_JSON_INT},    {TAG_PREFIX "float", HF_JSON_REAL},
		{TAG_PREFIX "str", HF_JSON_STRING}, {"!", HF_JSON_STRING},
	};
	const char *tag = (const char *)event->data.scalar.tag;

	for (size_t i = 0; i < HF_ARRAY_LEN(tags); i++) {
		if (strcmp(tag, tags[i].tag) != 0)
			continue;
		if (tags[i].type == HF_JSON_STRING)
			scalar->type = HF_JSON_STRING;
		/* A whole number is a valid !!float. */
		if (scalar->type == tags[i].type ||
		    (scalar->type == HF_JSON_INT && tags[i].type == HF_JSON_REAL))
			return 0;
		return hf_error_set(b->err, HF_E_BAD_REQUEST,
				    "line %zu, column %zu: the value is not of type !!%s",
				    event->start_mark.line + 1, event->start_mark.column + 1,
				    tag + strlen(TAG_PREFIX));
	}
	return report_error(b, HF_E_BAD_REQUEST, &event->start_mark,
			    "a tag that is not !!str, !!int, "
			    "!!float, !!bool or !!null");
}

/* Makes the value of a scalar. A tag outranks quotes: !!int "5" is a number, as in upstream. */
static int make_scalar(struct builder *b, const yaml_event_t *event, struct hf_json **ret_json)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	struct hf_yaml_scalar scalar = {.type = HF_JSON_STRING};

	if (event->data.scalar.plain_implicit || event->data.scalar.tag)
		hf_yaml_resolve(text, len, &scalar);
	if (event->data.scalar.tag) {
		int rc = resolve_tag(b, event, &scalar);
		if (rc != 0)
			return rc;
	}
	switch (scalar.type) {
	case HF_JSON_NULL: *ret_json = hf_json_null(); break;
	case HF_JSON_BOOL: *ret_json = hf_json_bool(scalar.integer != 0); break;
	case HF_JSON_INT: *ret_json = hf_json_int(scalar.integer); break;
	case HF_JSON_REAL:
		if (!__builtin_isfinite(scalar.real))
			return report_error(b, HF_E_BAD_REQUEST, &event->start_mark,
					    "an infinite number or NaN");
		*ret_json = hf_json_real(scalar.real);
		break;
	default:
		if (memchr(text, '\0', len))
			return report_error(b, HF_E_BAD_REQUEST, &event->start_mark,
					    "a NUL in a string");
		*ret_json = hf_json_stringn(text, len);
	}
	return 0;
}

/* True for a plain << in the position of a key. A quoted or tagged << is an ordinary key. */
static bool is_merge_key(const struct builder *b, const yaml_event_t *event)
{
	const struct frame *frame = b->depth > 0 ? &b->frames[b->depth - 1] : NULL;

	return frame && frame->is_map && !frame->key && !frame->merging &&
	       !event->data.scalar.tag && event->data.scalar.plain_implicit &&
	       strcmp((const char *)event->data.scalar.value, "<<") == 0;
}

static int on_scalar(struct builder *b, const yaml_event_t *event)
{
	const yaml_mark_t *at = &event->start_mark;
	struct built built = {.nodes = 1, .bytes = event->data.scalar.length};
	struct anchor *anchor;

	if (is_merge_key(b, event)) {
		struct frame *frame = &b->frames[b->depth - 1];
		if (frame->merge.json)
			return report_error(b, HF_E_BAD_REQUEST, at, "duplicate key '<<'");
		frame->merging = true;
		return 0;
	}
	int rc = count_cost(b, built.nodes, built.bytes, at);
	if (rc == 0)
		rc = new_anchor(b, event->data.scalar.anchor, at, &anchor);
	if (rc == 0)
		rc = make_scalar(b, event, &built.json);
	if (rc != 0)
		return rc;
	built.mark = new_mark(b, at);
	fill_anchor(anchor, &built);
	return attach_value(b, &built, at);
}

static int on_alias(struct builder *b, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;
	const yaml_mark_t *at = &event->start_mark;
	const struct anchor *anchor = hf_map_get(b->anchors, name);

	if (!anchor)
		return report_error(b, HF_E_BAD_REQUEST, at, "an alias without its anchor");
	if (!anchor->built.json)
		return report_error(b, HF_E_BAD_REQUEST, at, "an alias inside its own anchor");
	struct built built = anchor->built;
	int rc = count_cost(b, built.nodes, built.bytes, at);
	if (rc != 0)
		return rc;
	if (b->depth + built.height > b->limits.depth_max)
		return report_error(b, HF_E_TOO_LARGE, at, "nested too deeply");
	/* The fields of the copy have the positions of the anchor's fields. */
	built.mark = new_mark(b, at);
	built.mark->first = anchor->built.mark->first;
	built.json = hf_json_copy(anchor->built.json);
	return attach_value(b, &built, at);
}

static int on_start(struct builder *b, const yaml_event_t *event, bool is_map,
		    const yaml_char_t *name)
{
	const yaml_char_t *tag =
		is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
	const yaml_mark_t *at = &event->start_mark;
	struct frame *frame = &b->frames[b->depth];

	if (b->depth >= b->limits.depth_max)
		return report_error(b, HF_E_TOO_LARGE, at, "nested too deeply");
	if (tag && strcmp((const char *)tag, is_map ? TAG_PREFIX "map" : TAG_PREFIX "seq") != 0)
		return report_error(b, HF_E_BAD_REQUEST, at, "an unknown tag");
	int rc = count_cost(b, 1, 0, at);
	memset(frame, 0, sizeof(*frame));
	if (rc == 0)
		rc = new_anchor(b, name, at, &frame->anchor);
	if (rc != 0)
		return rc;
	frame->is_map = is_map;
	frame->built.json = is_map ? hf_json_object() : hf_json_array();
	frame->built.mark = new_mark(b, at);
	frame->built.nodes = 1;
	frame->built.height = 1;
	b->depth++;
	return 0;
}

/* Adds the keys of source that are not set yet. source is a private copy, so its values may be
 * moved. */
static void merge_object(struct builder *b, struct frame *frame, const struct hf_json *source,
			 const struct hf_yaml_mark *source_mark)
{
	const struct hf_yaml_mark *from = source_mark->first;
	const char *key;
	struct hf_json *value;

	/* Keys and marks have the same order. */
	for (void *it = NULL; (it = hf_json_next(source, it, &key, &value)); from = from->next) {
		hf_assert(from && strcmp(from->key, key) == 0);
		if (hf_json_get(frame->built.json, key))
			continue;
		struct hf_yaml_mark *mark = HF_ARENA_NEW(b->yaml->arena, struct hf_yaml_mark);
		*mark = *from;
		mark->next = NULL;
		hf_json_set(frame->built.json, key, hf_json_ref(value));
		link_child(frame, mark);
	}
}

static int merge_sources(struct builder *b, struct frame *frame, const yaml_mark_t *at)
{
	const struct hf_json *source = frame->merge.json;
	const struct hf_yaml_mark *mark = frame->merge.mark;

	if (hf_json_type(source) == HF_JSON_OBJECT)
		merge_object(b, frame, source, mark);
	else if (hf_json_type(source) != HF_JSON_ARRAY)
		return report_error(b, HF_E_BAD_REQUEST, at,
				    "the value of '<<' must be a map or a list of maps");
	mark = mark->first;
	for (size_t i = 0; hf_json_item(source, i); i++, mark = mark->next) {
		if (hf_json_type(hf_json_item(source, i)) != HF_JSON_OBJECT)
			return report_error(b, HF_E_BAD_REQUEST, at,
					    "the value of '<<' must be a map or a list of maps");
		merge_object(b, frame, hf_json_item(source, i), mark);
	}
	frame->built.nodes += frame->merge.nodes;
	frame->built.bytes += frame->merge.bytes;
	if (frame->merge.height > frame->built.height)
		frame->built.height = frame->merge.height;
	if (hf_json_len(frame->built.json) > HF_JSON_KEYS_MAX)
		return report_error(b, HF_E_TOO_LARGE, at, "too many keys in one object");
	return 0;
}

static int on_end(struct builder *b, const yaml_event_t *event)
{
	struct frame *frame = &b->frames[b->depth - 1];

	if (frame->merge.json) {
		int rc = merge_sources(b, frame, &event->start_mark);
		if (rc != 0)
			return rc;
		frame->merge.json = hf_json_unref(frame->merge.json);
	}
	struct built built = frame->built;
	const yaml_mark_t at = {
		.line = (size_t)built.mark->line - 1,
		.column = (size_t)built.mark->column - 1,
	};
	fill_anchor(frame->anchor, &built);
	frame->built.json = NULL;
	b->depth--;
	return attach_value(b, &built, &at);
}

/* Ends a document. A document that is only null comes from a stray "---"; it is skipped, as in
 * kubectl. */
static int on_document_end(struct builder *b, const yaml_event_t *event)
{
	struct doc doc = {.json = b->root.json, .mark = b->root.mark};

	forget_anchors(b);
	b->root.json = NULL;
	if (hf_json_type(doc.json) == HF_JSON_NULL) {
		hf_json_unref(doc.json);
		return 0;
	}
	if (!HF_VEC_PUSH(&b->yaml->docs, doc)) {
		hf_json_unref(doc.json);
		return report_error(b, HF_E_TOO_LARGE, &event->start_mark, "too many documents");
	}
	return 0;
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT: return on_scalar(b, event);
	case YAML_ALIAS_EVENT: return on_alias(b, event);
	case YAML_MAPPING_START_EVENT:
		return on_start(b, event, true, event->data.mapping_start.anchor);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(b, event, false, event->data.sequence_start.anchor);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT: return on_end(b, event);
	case YAML_DOCUMENT_END_EVENT: return on_document_end(b, event);
	default: return 0;
	}
}

/* libyaml also refuses such bytes, but without a line number. */
static int check_text(const char *text, size_t len, struct hf_error *err)
{
	const char *line_start = text;
	size_t line = 1;

	for (const char *p = text, *end = text + len; p < end;) {
		size_t n = hf_utf8_sequence(p, (size_t)(end - p));
		unsigned char c = (unsigned char)*p;
		bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
		if (n == 0 || control)
			return hf_error_set(err, HF_E_BAD_REQUEST, "line %zu, column %zu: %s", line,
					    (size_t)(p - line_start) + 1,
					    n == 0 ? "not UTF-8" : "a control character");
		p += n;
		if (c == '\n') {
			line++;
			line_start = p;
		}
	}
	return 0;
}

/* Returns the byte at a mark. The column of a mark counts characters, not bytes. */
static char find_byte(const char *text, size_t len, const yaml_mark_t *at)
{
	const char *p = text, *end = text + len;

	for (size_t line = 0; line < at->line && p < end; line++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		p = newline ? newline + 1 : end;
	}
	for (size_t column = 0; column < at->column && p < end; column++)
		p += hf_utf8_sequence(p, (size_t)(end - p));
	return p < end ? *p : '\0';
}

static int report_syntax_error(const yaml_parser_t *parser, const char *text, size_t len,
			       struct hf_error *err)
{
	const yaml_mark_t *at = &parser->problem_mark;
	const char *problem = parser->problem ? parser->problem : "not YAML";

	if (parser->error == YAML_MEMORY_ERROR)
		return hf_error_set(err, HF_E_NO_MEMORY, "out of memory");
	if (parser->error == YAML_SCANNER_ERROR && find_byte(text, len, at) == '\t')
		problem = "found a tab where indentation is expected";
	else if (parser->context && parser->context_mark.line != at->line)
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "line %zu, column %zu: %s (%s that begins in line %zu)",
				    at->line + 1, at->column + 1, problem, parser->context,
				    parser->context_mark.line + 1);
	return hf_error_set(err, HF_E_BAD_REQUEST, "line %zu, column %zu: %s", at->line + 1,
			    at->column + 1, problem);
}

static int read_events(struct builder *b, const char *text, size_t len)
{
	yaml_event_t event;
	int rc = 0;

	for (bool more = true; more && rc == 0;) {
		if (!yaml_parser_parse(&b->parser, &event))
			return report_syntax_error(&b->parser, text, len, b->err);
		more = event.type != YAML_STREAM_END_EVENT;
		rc = on_event(b, &event);
		yaml_event_delete(&event);
	}
	return rc;
}

static void release_builder(struct builder *b)
{
	for (int i = 0; i < b->depth; i++) {
		hf_json_unref(b->frames[i].built.json);
		hf_json_unref(b->frames[i].merge.json);
	}
	hf_json_unref(b->root.json);
	forget_anchors(b);
	hf_map_destroy(b->anchors);
	yaml_parser_delete(&b->parser);
	free(b);
}

static int build_docs(const char *text, size_t len, const struct hf_yaml_limits *limits,
		      struct hf_yaml *yaml, struct hf_error *err)
{
	int rc = check_text(text, len, err);

	if (rc != 0)
		return rc;
	struct builder *b = hf_xcalloc(1, sizeof(*b));
	b->limits = *limits;
	b->yaml = yaml;
	b->err = err;
	b->anchors = hf_map_create(ANCHORS_MAX, 0, NULL);
	hf_assert(yaml_parser_initialize(&b->parser));
	yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b->parser, (const unsigned char *)text, len);
	rc = read_events(b, text, len);
	release_builder(b);
	return rc;
}

static struct hf_yaml *new_yaml(const struct hf_yaml_limits *limits)
{
	struct hf_yaml *yaml = hf_xcalloc(1, sizeof(*yaml));

	/* The arena holds two marks for each node (a merged node has a second mark), the keys and
	 * the anchors. */
	yaml->arena = hf_arena_create(limits->nodes_max * 2 * (sizeof(struct hf_yaml_mark) + 16) +
				      limits->bytes_max * 2 + limits->nodes_max * 32 +
				      ANCHORS_MAX * limits->docs_max * sizeof(struct anchor) +
				      ((size_t)1 << 20));
	yaml->docs.len_max = limits->docs_max;
	return yaml;
}

/* Tries to parse the text as JSON, which may have tabs for indentation and escapes that YAML
 * lacks. */
static int try_json(const char *text, size_t len, const struct hf_yaml_limits *limits,
		    struct hf_yaml *yaml)
{
	const struct hf_json_limits json_limits = {
		.bytes_max = limits->bytes_max,
		.depth_max = limits->depth_max,
	};
	size_t blanks = 0;
	struct doc doc = {.mark = NULL};

	while (blanks < len && memchr(" \t\r\n", text[blanks], 4))
		blanks++;
	if (blanks == len || text[blanks] != '{')
		return HF_E_BAD_REQUEST;
	int rc = hf_json_parse(text, len, &json_limits, &doc.json, NULL);
	if (rc == 0 && !HF_VEC_PUSH(&yaml->docs, doc))
		hf_json_unref(doc.json);
	return rc;
}

static void drop_docs(struct hf_yaml *yaml)
{
	for (size_t i = 0; i < yaml->docs.len; i++)
		hf_json_unref(yaml->docs.items[i].json);
	HF_VEC_RELEASE(&yaml->docs);
}

int hf_yaml_parse(const char *text, size_t len, const struct hf_yaml_limits *limits,
		  struct hf_yaml **ret_yaml, struct hf_error *err)
{
	static const struct hf_yaml_limits none;
	struct hf_yaml_limits full = limits ? *limits : none;

	full.bytes_max = full.bytes_max ? full.bytes_max : HF_YAML_BYTES_MAX;
	full.docs_max = full.docs_max ? full.docs_max : HF_YAML_DOCS_MAX;
	full.nodes_max = full.nodes_max ? full.nodes_max : HF_YAML_NODES_MAX;
	full.depth_max = full.depth_max ? full.depth_max : HF_JSON_DEPTH_MAX;
	hf_assert(full.depth_max <= HF_JSON_DEPTH_CEILING);
	hf_assert(text || len == 0);
	text = text ? text : "";
	/* Some editors begin files with a byte order mark, which is not part of the text. */
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	if (len > full.bytes_max)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "%zu bytes of YAML, more than the limit of %zu", len,
				    full.bytes_max);

	struct hf_yaml *yaml = new_yaml(&full);
	int rc = build_docs(text, len, &full, yaml, err);
	if (rc == HF_E_BAD_REQUEST) {
		drop_docs(yaml);
		if (try_json(text, len, &full, yaml) == 0) {
			hf_error_clear(err);
			rc = 0;
		}
	}
	if (rc != 0) {
		hf_yaml_destroy(yaml);
		return rc;
	}
	*ret_yaml = yaml;
	return 0;
}

struct hf_yaml *hf_yaml_destroy(struct hf_yaml *yaml)
{
	if (yaml) {
		drop_docs(yaml);
		hf_arena_destroy(yaml->arena);
		free(yaml);
	}
	return NULL;
}

void hf_yaml_cleanup(struct hf_yaml **yaml)
{
	*yaml = hf_yaml_destroy(*yaml);
}

size_t hf_yaml_len(const struct hf_yaml *yaml)
{
	return yaml->docs.len;
}

struct hf_json *hf_yaml_doc(const struct hf_yaml *yaml, size_t i)
{
	hf_assert(i < yaml->docs.len);
	return yaml->docs.items[i].json;
}

struct hf_yaml_place hf_yaml_find(const struct hf_yaml *yaml, size_t i, const char *path)
{
	const struct hf_yaml_place unknown = {.line = 0};

	hf_assert(i < yaml->docs.len);
	const struct hf_yaml_mark *mark = yaml->docs.items[i].mark;
	return mark ? hf_yaml_mark_find(mark, path) : unknown;
}
