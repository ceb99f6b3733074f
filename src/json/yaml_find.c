/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "json/yaml_internal.h"

#include <stdlib.h>
#include <string.h>

static struct hf_yaml_place place_of(const struct hf_yaml_mark *mark, bool exact)
{
	return (struct hf_yaml_place){.line = mark->line, .column = mark->column, .exact = exact};
}

static const struct hf_yaml_mark *child_by_key(const struct hf_yaml_mark *mark, const char *key,
					       size_t len)
{
	for (mark = mark->first; mark; mark = mark->next)
		if (mark->key && strncmp(mark->key, key, len) == 0 && mark->key[len] == '\0')
			return mark;
	return NULL;
}

/* Items have no keys, which tells an array from an object. */
static const struct hf_yaml_mark *child_by_index(const struct hf_yaml_mark *mark, const char *text,
						 size_t len)
{
	char *end;
	unsigned long index = strtoul(text, &end, 10);

	if (len == 0 || end != text + len || !mark->first || mark->first->key)
		return NULL;
	for (mark = mark->first; mark && index > 0; index--)
		mark = mark->next;
	return mark;
}

/* Keys may have dots and brackets in them, so a name ends at any of these: the shortest that
 * is there is tried first. */
static const char *name_end(const char *p, bool in_bracket)
{
	return p + (in_bracket ? strcspn(p, "]") : strcspn(p, ".["));
}

struct hf_yaml_place hf_yaml_mark_find(const struct hf_yaml_mark *mark, const char *path)
{
	struct hf_yaml_place best = place_of(mark, *path == '\0');

	if (*path == '\0')
		return best;
	bool in_bracket = *path == '[';
	const char *name = path + (in_bracket || *path == '.');
	for (const char *end = name_end(name, in_bracket);; end = name_end(end + 1, in_bracket)) {
		size_t len = (size_t)(end - name);
		const struct hf_yaml_mark *child = child_by_key(mark, name, len);
		if (!child && in_bracket)
			child = child_by_index(mark, name, len);
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
