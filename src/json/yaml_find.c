/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Finds the line and column of a field by its path. Input: the marks of a document and a path as
 * error texts print it; output: the position, or that of the nearest field above.
 */
#include "json/yaml_internal.h"

#include <stdlib.h>
#include <string.h>

static struct hf_yaml_place make_place(const struct hf_yaml_mark *mark, bool exact)
{
	return (struct hf_yaml_place){.line = mark->line, .column = mark->column, .exact = exact};
}

static const struct hf_yaml_mark *find_child_by_key(const struct hf_yaml_mark *mark,
						    const char *key, size_t len)
{
	for (mark = mark->first; mark; mark = mark->next)
		if (mark->key && strncmp(mark->key, key, len) == 0 && mark->key[len] == '\0')
			return mark;
	return NULL;
}

/* Items have no keys; that distinguishes the marks of an array from those of an object. */
static const struct hf_yaml_mark *find_child_by_index(const struct hf_yaml_mark *mark,
						      const char *text, size_t len)
{
	char *end;
	unsigned long index = strtoul(text, &end, 10);

	if (len == 0 || end != text + len || !mark->first || mark->first->key)
		return NULL;
	for (mark = mark->first; mark && index > 0; index--)
		mark = mark->next;
	return mark;
}

/* Returns the end of the next name in a path. Keys may contain dots and brackets, so any of these
 * characters may end a name; the caller tries the shortest name first. */
static const char *find_name_end(const char *p, bool in_bracket)
{
	return p + (in_bracket ? strcspn(p, "]") : strcspn(p, ".["));
}

struct hf_yaml_place hf_yaml_mark_find(const struct hf_yaml_mark *mark, const char *path)
{
	struct hf_yaml_place best = make_place(mark, *path == '\0');

	if (*path == '\0')
		return best;
	bool in_bracket = *path == '[';
	const char *name = path + (in_bracket || *path == '.');
	for (const char *end = find_name_end(name, in_bracket);;
	     end = find_name_end(end + 1, in_bracket)) {
		size_t len = (size_t)(end - name);
		const struct hf_yaml_mark *child = find_child_by_key(mark, name, len);
		if (!child && in_bracket)
			child = find_child_by_index(mark, name, len);
		if (child) {
			const char *rest = in_bracket && *end ? end + 1 : end;
			struct hf_yaml_place place = hf_yaml_mark_find(child, rest);
			if (place.exact)
				return place;
			if (best.line == mark->line && best.column == mark->column)
				best = place;
		}
		if (*end == '\0')
			return best;
	}
}
