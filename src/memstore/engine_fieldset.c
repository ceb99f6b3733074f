/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * Sets of fields, in the form of managedFields' fieldsV1:
 *
 *    {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {".": {}}}}}}
 *
 * A node has "." if its own path is in the set. In managedFields a leaf is {}; in this file it is
 * {".": {}}.
 *
 * engine_list_keys.c says which lists are maps or sets. Objects that are a single value (structType
 * atomic in the Kubernetes API types) are known by name; the job kinds' pod templates have the same
 * types.
 */

#define SELF "."
/* Limit of a key's text, larger than any real key: two keys that were cut could become equal. */
#define KEY_BYTES_MAX ((size_t)16 << 20)

static const char *const single_values[] = {
	"nodeSelector",    "labelSelector", "selector",         "namespaceSelector", "secretKeyRef",
	"configMapKeyRef", "fieldRef",      "resourceFieldRef", "secretRef",         "claimRef",
};

static bool is_single(const char *name)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(single_values); i++)
		if (hf_streq(single_values[i], name))
			return true;
	return false;
}

static bool is_map(const char *name, const struct hf_json *value)
{
	return hf_json_type(value) == HF_JSON_OBJECT && !is_single(name);
}

/* --- items of lists --- */

/* Returns the rule that makes a list a map or a set. NULL: the list is a single value, or value is
 * no list. */
static const struct hf_list_rule *rule_of(const char *name, const struct hf_json *value)
{
	return hf_json_type(value) == HF_JSON_ARRAY ? hf_list_rule_applied(name, value) : NULL;
}

/* Appends the key that identifies an item of a list: "k:{…}" with its key fields, or "v:…" with
 * its value. */
static void item_key(const struct hf_list_rule *rule, const struct hf_json *item,
		     struct hf_strbuf *sb)
{
	HF_AUTO_JSON keys = hf_json_object();

	if (!rule->keys[0]) {
		hf_strbuf_addstr(sb, "v:");
		hf_json_write(item, HF_JSON_COMPACT, sb);
		return;
	}
	for (size_t k = 0; k < HF_ARRAY_LEN(rule->keys) && rule->keys[k]; k++) {
		struct hf_json *value = hf_json_get(item, rule->keys[k]);

		if (value)
			hf_json_set(keys, rule->keys[k], hf_json_ref(value));
		else if (hf_streq(rule->keys[k], "protocol"))
			hf_json_set_str(keys, "protocol", "TCP");
	}
	hf_strbuf_addstr(sb, "k:");
	hf_json_write(keys, HF_JSON_COMPACT, sb);
}

static const struct hf_json *find_item(const struct hf_list_rule *rule, const struct hf_json *array,
				       const char *key)
{
	for (size_t i = 0; i < hf_json_len(array); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(KEY_BYTES_MAX);

		item_key(rule, hf_json_item(array, i), &sb);
		if (hf_streq(sb.data, key))
			return hf_json_item(array, i);
	}
	return NULL;
}

/* --- nodes --- */

static void add_self(struct hf_json *node)
{
	hf_json_set(node, SELF, hf_json_object());
}

static bool has_self(const struct hf_json *node)
{
	return hf_json_get(node, SELF) != NULL;
}

/* Sets a child node and takes it over; an empty child is left out. */
static void attach_child(struct hf_json *node, const char *key, struct hf_json *child)
{
	if (hf_json_len(child) > 0)
		hf_json_set(node, key, child);
	else
		hf_json_unref(child);
}

static void attach_field(struct hf_json *node, const char *name, struct hf_json *child)
{
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);

	hf_strbuf_addf(&key, "f:%s", name);
	attach_child(node, key.data, child);
}

static struct hf_json *field_node(const struct hf_json *node, const char *name)
{
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);

	hf_strbuf_addf(&key, "f:%s", name);
	return hf_json_get(node, key.data);
}

/* --- sets of values and of differences --- */

static void add_value(struct hf_json *node, const char *name, const struct hf_json *value)
{
	const struct hf_list_rule *rule = rule_of(name, value);
	const char *key;
	struct hf_json *member;

	if ((!is_map(name, value) && !rule) || (!rule && hf_json_len(value) == 0))
		add_self(node);
	for (void *it = NULL;
	     is_map(name, value) && (it = hf_json_next(value, it, &key, &member));) {
		struct hf_json *child = hf_json_object();

		if (hf_json_type(member) != HF_JSON_NULL)
			add_value(child, key, member);
		attach_field(node, key, child);
	}
	for (size_t i = 0; rule && i < hf_json_len(value); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(KEY_BYTES_MAX);
		struct hf_json *child = hf_json_object();

		item_key(rule, hf_json_item(value, i), &sb);
		if (rule->keys[0])
			add_value(child, "", hf_json_item(value, i));
		add_self(child);
		attach_child(node, sb.data, child);
	}
}

struct hf_json *hf_fieldset_of(const struct hf_json *value)
{
	struct hf_json *node = hf_json_object();

	add_value(node, "", value);
	return node;
}

static void diff_values(const char *name, const struct hf_json *old, const struct hf_json *new,
			struct hf_fieldset_diff *into);

static void diff_child(const char *key, const char *name, const struct hf_json *old,
		       const struct hf_json *new, struct hf_fieldset_diff *into)
{
	struct hf_fieldset_diff child = {hf_json_object(), hf_json_object()};

	diff_values(name, old, new, &child);
	attach_child(into->changed, key, child.changed);
	attach_child(into->removed, key, child.removed);
}

static void diff_maps(const struct hf_json *old, const struct hf_json *new,
		      struct hf_fieldset_diff *into)
{
	const char *name;
	struct hf_json *value;

	for (int side = 0; side < 2; side++) {
		const struct hf_json *walked = side == 0 ? new : old;

		for (void *it = NULL; (it = hf_json_next(walked, it, &name, &value));) {
			HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);
			const struct hf_json *other = hf_json_get(side == 0 ? old : new, name);

			if (side == 1 && other)
				continue;
			hf_strbuf_addf(&key, "f:%s", name);
			diff_child(key.data, name, side == 0 ? other : value,
				   side == 0 ? value : NULL, into);
		}
	}
}

static void diff_lists(const struct hf_list_rule *rule, const struct hf_json *old,
		       const struct hf_json *new, struct hf_fieldset_diff *into)
{
	for (int side = 0; side < 2; side++) {
		const struct hf_json *walked = side == 0 ? new : old;

		for (size_t i = 0; i < hf_json_len(walked); i++) {
			HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);
			const struct hf_json *item = hf_json_item(walked, i), *other;

			item_key(rule, item, &key);
			other = find_item(rule, side == 0 ? old : new, key.data);
			if (side == 1 && other)
				continue;
			diff_child(key.data, "", side == 0 ? other : item, side == 0 ? item : NULL,
				   into);
		}
	}
}

static void diff_values(const char *name, const struct hf_json *old, const struct hf_json *new,
			struct hf_fieldset_diff *into)
{
	const struct hf_list_rule *rule = rule_of(name, new);

	if (old && new &&hf_json_equal(old, new))
		return;
	if (!old || !new) {
		struct hf_json *node = new ? into->changed : into->removed;

		add_value(node, name, new ? new : old);
		add_self(node);
	} else if (is_map(name, old) && is_map(name, new)) {
		diff_maps(old, new, into);
	} else if (rule && rule == rule_of(name, old)) {
		diff_lists(rule, old, new, into);
	} else {
		add_self(into->changed);
	}
}

struct hf_fieldset_diff hf_fieldset_diff(const struct hf_json *from, const struct hf_json *to)
{
	struct hf_fieldset_diff made = {hf_json_object(), hf_json_object()};

	diff_values("", from, to, &made);
	return made;
}

void hf_fieldset_diff_release(struct hf_fieldset_diff *made)
{
	made->changed = hf_json_unref(made->changed);
	made->removed = hf_json_unref(made->removed);
}

/* --- operations on sets --- */

struct hf_json *hf_fieldset_union(const struct hf_json *a, const struct hf_json *b)
{
	struct hf_json *out = hf_json_members(a);
	const char *key;
	struct hf_json *child;

	for (void *it = NULL; (it = hf_json_next(b, it, &key, &child));)
		hf_json_set(out, key, hf_fieldset_union(hf_json_get(a, key), child));
	return out;
}

/* Returns the fields of set a that are also in set b (wanted true), or that are not in b (wanted
 * false). */
static struct hf_json *filter_set(const struct hf_json *a, const struct hf_json *b, bool wanted)
{
	struct hf_json *out = hf_json_object();
	const char *key;
	struct hf_json *child;

	for (void *it = NULL; (it = hf_json_next(a, it, &key, &child));) {
		const struct hf_json *other = hf_json_get(b, key);

		if (!hf_streq(key, SELF))
			attach_child(out, key, filter_set(child, other, wanted));
		else if ((other != NULL) == wanted)
			add_self(out);
	}
	return out;
}

struct hf_json *hf_fieldset_both(const struct hf_json *a, const struct hf_json *b)
{
	return filter_set(a, b, true);
}

struct hf_json *hf_fieldset_minus(const struct hf_json *a, const struct hf_json *b)
{
	return filter_set(a, b, false);
}

/* --- on the wire --- */

struct hf_json *hf_fieldset_read(const struct hf_json *wire)
{
	struct hf_json *out = hf_json_object();
	const char *key;
	struct hf_json *child;

	for (void *it = NULL; (it = hf_json_next(wire, it, &key, &child));)
		if (!hf_streq(key, SELF))
			hf_json_set(out, key, hf_fieldset_read(child));
	if (hf_json_len(wire) == 0 || has_self(wire))
		add_self(out);
	return out;
}

struct hf_json *hf_fieldset_write(const struct hf_json *set)
{
	struct hf_json *out = hf_json_object();
	const char *key;
	struct hf_json *child;

	for (void *it = NULL; (it = hf_json_next(set, it, &key, &child));)
		if (!hf_streq(key, SELF))
			hf_json_set(out, key, hf_fieldset_write(child));
	if (has_self(set) && hf_json_len(out) > 0)
		add_self(out);
	return out;
}

/* Appends one step of a path: .field, [name="c"] or [="value"]. */
static void add_step(struct hf_strbuf *path, const char *key)
{
	const char *name, *between = "[";
	struct hf_json *value;
	struct hf_json *keys = NULL;

	if (hf_str_has_prefix(key, "f:")) {
		hf_strbuf_addf(path, ".%s", key + 2);
		return;
	}
	if (!hf_str_has_prefix(key, "k:") ||
	    hf_json_parse(key + 2, strlen(key + 2), NULL, &keys, NULL)) {
		hf_strbuf_addf(path, "[=%s]", key + 2);
		return;
	}
	for (void *it = NULL; (it = hf_json_next(keys, it, &name, &value));) {
		hf_strbuf_addf(path, "%s%s=", between, name);
		hf_json_write(value, HF_JSON_COMPACT, path);
		between = ",";
	}
	hf_strbuf_addstr(path, "]");
	hf_json_unref(keys);
}

static void walk_set(const struct hf_json *set, struct hf_strbuf *path,
		     void (*fn)(void *arg, const char *path), void *arg)
{
	const char *key;
	struct hf_json *child;
	size_t len = path->len;

	if (has_self(set))
		fn(arg, path->data);
	for (void *it = NULL; (it = hf_json_next(set, it, &key, &child));) {
		if (hf_streq(key, SELF))
			continue;
		add_step(path, key);
		walk_set(child, path, fn, arg);
		hf_strbuf_truncate(path, len);
	}
}

void hf_fieldset_each(const struct hf_json *set, void (*fn)(void *arg, const char *path), void *arg)
{
	HF_AUTO_STRBUF path = HF_STRBUF_INIT(KEY_BYTES_MAX);

	walk_set(set, &path, fn, arg);
}

/* --- merging and pruning values --- */

static struct hf_json *merge_value(const char *name, const struct hf_json *live,
				   const struct hf_json *desired);

static struct hf_json *merge_items(const struct hf_list_rule *rule, const struct hf_json *live,
				   const struct hf_json *desired)
{
	struct hf_json *out = hf_json_array();

	for (size_t i = 0; i < hf_json_len(live); i++) {
		HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);
		const struct hf_json *item = hf_json_item(live, i), *wanted;

		item_key(rule, item, &key);
		wanted = find_item(rule, desired, key.data);
		hf_json_append(out, wanted ? merge_value("", item, wanted) : hf_json_share(item));
	}
	for (size_t i = 0; i < hf_json_len(desired); i++) {
		HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);
		const struct hf_json *item = hf_json_item(desired, i);

		item_key(rule, item, &key);
		if (!find_item(rule, live, key.data))
			hf_json_append(out, merge_value("", NULL, item));
	}
	return out;
}

static struct hf_json *merge_value(const char *name, const struct hf_json *live,
				   const struct hf_json *desired)
{
	const struct hf_list_rule *rule = rule_of(name, desired);
	const char *key;
	struct hf_json *value, *out;

	if (rule && (!live || rule == rule_of(name, live)))
		return merge_items(rule, live, desired);
	if (!is_map(name, desired))
		return hf_json_share(desired);
	out = is_map(name, live) ? hf_json_shallow(live) : hf_json_object();
	for (void *it = NULL; (it = hf_json_next(desired, it, &key, &value));)
		if (hf_json_type(value) != HF_JSON_NULL)
			hf_json_set(out, key, merge_value(key, hf_json_get(live, key), value));
	return out;
}

struct hf_json *hf_fieldset_merge(const struct hf_json *live, const struct hf_json *desired)
{
	return merge_value("", live, desired);
}

static struct hf_json *prune_value(const char *name, const struct hf_json *value,
				   const struct hf_json *gone, const struct hf_json *kept);

static struct hf_json *prune_items(const struct hf_list_rule *rule, const struct hf_json *value,
				   const struct hf_json *gone, const struct hf_json *kept)
{
	struct hf_json *out = hf_json_array();

	for (size_t i = 0; i < hf_json_len(value); i++) {
		HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);
		struct hf_json *item;

		item_key(rule, hf_json_item(value, i), &key);
		item = prune_value("", hf_json_item(value, i), hf_json_get(gone, key.data),
				   hf_json_get(kept, key.data));
		if (item)
			hf_json_append(out, item);
	}
	return out;
}

/* Returns `value` without the fields of the set `gone`, except those in the set `kept`; NULL: no
 * field is left. */
static struct hf_json *prune_value(const char *name, const struct hf_json *value,
				   const struct hf_json *gone, const struct hf_json *kept)
{
	const struct hf_list_rule *rule = rule_of(name, value);
	struct hf_json *out, *member;
	const char *key;

	if (!gone)
		return hf_json_share(value);
	if (has_self(gone) && hf_json_len(kept) == 0)
		return NULL;
	if (rule) {
		out = prune_items(rule, value, gone, kept);
	} else if (is_map(name, value)) {
		out = hf_json_object();
		for (void *it = NULL; (it = hf_json_next(value, it, &key, &member));) {
			struct hf_json *left = prune_value(key, member, field_node(gone, key),
							   field_node(kept, key));
			if (left)
				hf_json_set(out, key, left);
		}
	} else {
		return hf_json_share(value);
	}
	if (hf_json_len(out) == 0 && hf_json_len(value) > 0 && hf_json_len(kept) == 0)
		return hf_json_unref(out);
	return out;
}

struct hf_json *hf_fieldset_prune(const struct hf_json *value, const struct hf_json *gone,
				  const struct hf_json *kept)
{
	struct hf_json *left = prune_value("", value, gone, kept);

	return left ? left : hf_json_object();
}
