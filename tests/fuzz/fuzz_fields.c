/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: one byte of options, then a JSON text, which is read by a table with every type of field.
 * Reading from the text must give the same values and the same problems as reading from a tree. */

#include "base/compiler.h"
#include "base/strbuf.h"
#include "fuzz/fuzz.h"
#include "json/fields.h"

#include <string.h>

struct node {
	uint64_t present;
	const char *key, *s, *t;
	bool b;
	int32_t i;
	int64_t j, q;
	hf_time time;
	struct hf_int_or_string p;
	HF_LIST(const char *) strings;
	HF_LIST(int64_t) ints;
	HF_LIST(struct hf_field_pair) map;
	HF_LIST(struct hf_field_pair) quantities;
	HF_LIST(struct node) list;
	HF_LIST(struct node) objects;
};

static const struct hf_field fields[];
static const struct hf_field_table table;

static const struct hf_field fields[] = {
	HF_FIELD_STRING("s", struct node, s, 8, HF_FIELD_REQUIRED),
	HF_FIELD_STRING("t", struct node, t, 0, HF_FIELD_NONEMPTY),
	HF_FIELD_BOOL("b", struct node, b, 0),
	HF_FIELD_INT32("i", struct node, i, -5, 100, 0),
	HF_FIELD_INT64("j", struct node, j, INT64_MIN, INT64_MAX, 0),
	HF_FIELD_QUANTITY("q", struct node, q, 0),
	HF_FIELD_TIME("time", struct node, time, 0),
	HF_FIELD_INT_OR_STRING("p", struct node, p, 0),
	HF_FIELD_STRINGS("strings", struct node, strings, 5, HF_FIELD_NONEMPTY),
	HF_FIELD_INTS("ints", struct node, ints, 5, 0),
	HF_FIELD_STRING_MAP("map", struct node, map, 5, 0),
	HF_FIELD_QUANTITY_MAP("quantities", struct node, quantities, 5, HF_FIELD_REQUIRED),
	HF_FIELD_OBJECTS("list", struct node, list, &table, 5, 0),
	HF_FIELD_OBJECT_MAP("objects", struct node, objects, &table, 5, HF_FIELD_DOTTED),
	HF_FIELD_PRESENCE("x", 0),
};
static const struct hf_field_table table = HF_FIELD_TABLE_KEYED(fields, struct node);

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_pairs(const struct hf_field_pair *a, const struct hf_field_pair *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!same_text(a[i].key, b[i].key) || !same_text(a[i].value, b[i].value) ||
		    a[i].milli != b[i].milli)
			return false;
	return true;
}

static bool same_nodes(const struct node *a, const struct node *b, size_t len);

static bool same_scalars(const struct node *a, const struct node *b)
{
	return a->present == b->present && same_text(a->key, b->key) && same_text(a->s, b->s) &&
	       same_text(a->t, b->t) && a->b == b->b && a->i == b->i && a->j == b->j &&
	       a->q == b->q && a->time == b->time && same_text(a->p.string, b->p.string) &&
	       a->p.integer == b->p.integer;
}

static bool same_lists(const struct node *a, const struct node *b)
{
	if (a->strings.len != b->strings.len || a->ints.len != b->ints.len ||
	    a->map.len != b->map.len || a->quantities.len != b->quantities.len ||
	    a->list.len != b->list.len || a->objects.len != b->objects.len)
		return false;
	for (size_t i = 0; i < a->strings.len; i++)
		if (!same_text(a->strings.items[i], b->strings.items[i]))
			return false;
	for (size_t i = 0; i < a->ints.len; i++)
		if (a->ints.items[i] != b->ints.items[i])
			return false;
	return same_pairs(a->map.items, b->map.items, a->map.len) &&
	       same_pairs(a->quantities.items, b->quantities.items, a->quantities.len) &&
	       same_nodes(a->list.items, b->list.items, a->list.len) &&
	       same_nodes(a->objects.items, b->objects.items, a->objects.len);
}

static bool same_nodes(const struct node *a, const struct node *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!same_scalars(&a[i], &b[i]) || !same_lists(&a[i], &b[i]))
			return false;
	return true;
}

static void note(void *arg, enum hf_field_problem kind, const char *path, const char *text)
{
	hf_strbuf_addf(arg, "%d %s %s\n", (int)kind, path, text);
}

struct outcome {
	int rc;
	struct node node;
	struct hf_error err;
	struct hf_strbuf problems;
};

static struct hf_fields_options options_of(uint8_t bits, struct hf_strbuf *problems)
{
	return (struct hf_fields_options){
		.root = bits & 1 ? "spec" : NULL,
		.strict = (bits & 2) != 0,
		.problem = bits & 4 ? note : NULL,
		.arg = problems,
	};
}

static void compare(struct outcome *tree, struct outcome *text)
{
	/* The arenas fill a little differently. */
	if (tree->rc == HF_E_TOO_LARGE || text->rc == HF_E_TOO_LARGE)
		return;
	hf_assert(tree->rc == text->rc);
	hf_assert(strcmp(tree->problems.data, text->problems.data) == 0);
	if (tree->rc == 0)
		hf_assert(same_nodes(&tree->node, &text->node, 1));
	else
		hf_assert(strcmp(tree->err.text, text->err.text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome tree = {.problems = HF_STRBUF_INIT(1 << 16)};
	struct outcome text = {.problems = HF_STRBUF_INIT(1 << 16)};
	HF_AUTO_ARENA arena = hf_arena_create(1 << 18);
	HF_AUTO_ARENA arena_text = hf_arena_create(1 << 18);
	HF_AUTO_JSON value = NULL;

	if (size == 0)
		return 0;
	const struct hf_fields_text span = {(const char *)data + 1, size - 1};
	struct hf_fields_options options = options_of(*data, &text.problems);
	text.rc = hf_fields_read_text(&table, &span, &options, arena_text, &text.node, &text.err);
	if (hf_json_parse(span.bytes, span.len, NULL, &value, NULL) == 0) {
		options.arg = &tree.problems;
		tree.rc = hf_fields_read(&table, value, &options, arena, &tree.node, &tree.err);
		compare(&tree, &text);
	}
	hf_strbuf_release(&tree.problems);
	hf_strbuf_release(&text.problems);
	return 0;
}
