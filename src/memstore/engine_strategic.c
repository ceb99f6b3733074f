/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * Strategic merge patch: a merge patch that treats some lists as maps or sets. kubectl apply and
 * edit send it for built-in kinds. engine_list_keys.c has the lists and their keys. If a name stands
 * for two lists (ports), the key that the patch uses decides.
 */
#define DELETE_FROM "$deleteFromPrimitiveList/"
#define SET_ORDER "$setElementOrder/"
#define RETAIN_KEYS "$retainKeys"
#define DIRECTIVE "$patch"

static int merge_map(const struct hf_json *target, const struct hf_json *patch,
		     struct hf_json **ret_value, struct hf_error *err);

static bool contains_value(const struct hf_json *array, const struct hf_json *value)
{
	for (size_t i = 0; i < hf_json_len(array); i++)
		if (hf_json_equal(hf_json_item(array, i), value))
			return true;
	return false;
}

/* Returns the index of the first item that has this value in its member `key`; the length of the
 * array if no item matches. */
static size_t find_item(const struct hf_json *array, const char *key, const struct hf_json *value)
{
	size_t i = 0;

	while (i < hf_json_len(array) &&
	       !hf_json_equal(hf_json_get(hf_json_item(array, i), key), value))
		i++;
	return i;
}

static struct hf_json *shallow_list(const struct hf_json *array)
{
	struct hf_json *copy = hf_json_array();

	for (size_t i = 0; i < hf_json_len(array); i++)
		hf_json_append(copy, hf_json_ref(hf_json_item(array, i)));
	return copy;
}

static struct hf_json *merge_set(const struct hf_json *target, const struct hf_json *patch)
{
	struct hf_json *out = shallow_list(target);

	for (size_t i = 0; i < hf_json_len(patch); i++)
		if (!contains_value(out, hf_json_item(patch, i)))
			hf_json_append(out, hf_json_ref(hf_json_item(patch, i)));
	return out;
}

/* Chooses the rule of a list: several lists may have the same name, and then the key in the
 * patch's items decides. NULL: an error was set. */
static const struct hf_list_rule *list_rule(const struct hf_list_rule *first,
					    const struct hf_json *patch, struct hf_error *err)
{
	if (hf_json_len(patch) == 0)
		return first;
	for (const struct hf_list_rule *rule = first; rule; rule = hf_list_rule_next(rule))
		for (size_t i = 0; i < hf_json_len(patch); i++)
			if (hf_json_get(hf_json_item(patch, i), rule->keys[0]))
				return rule;
	hf_error_set(err, HF_E_INVALID, "map: does not contain declared merge key: %s in '%s'",
		     first->keys[0], first->name);
	return NULL;
}

static int merge_item(struct hf_json *out, const char *key, const struct hf_json *item,
		      struct hf_error *err)
{
	const struct hf_json *value = hf_json_get(item, key);
	const char *directive = hf_json_path_str(item, DIRECTIVE, NULL);
	struct hf_json *merged;

	if (!value)
		return hf_error_set(err, HF_E_INVALID,
				    "map: does not contain declared merge key: %s", key);
	size_t i = find_item(out, key, value);
	bool found = i < hf_json_len(out);
	if (hf_streq(directive, "delete")) {
		if (found)
			hf_json_remove_item(out, i);
		return 0;
	}
	int rc = merge_map(found ? hf_json_item(out, i) : NULL, item, &merged, err);
	if (rc)
		return rc;
	if (found)
		hf_json_replace_item(out, i, merged);
	else
		hf_json_append(out, merged);
	return 0;
}

/* Returns the new list if the patch has an item "$patch: replace": the other items of the patch
 * replace the whole list. NULL: the patch has no such item. */
static struct hf_json *make_replaced_list(const struct hf_json *patch)
{
	struct hf_json *out = NULL;

	for (size_t i = 0; i < hf_json_len(patch); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(patch, i), DIRECTIVE, NULL), "replace"))
			out = hf_json_array();
	for (size_t i = 0; out && i < hf_json_len(patch); i++)
		if (!hf_json_get(hf_json_item(patch, i), DIRECTIVE))
			hf_json_append(out, hf_json_ref(hf_json_item(patch, i)));
	return out;
}

static int merge_list(const struct hf_list_rule *rule, const struct hf_json *target,
		      const struct hf_json *patch, struct hf_json **ret_value, struct hf_error *err)
{
	if (!rule->keys[0]) {
		*ret_value = merge_set(target, patch);
		return 0;
	}
	struct hf_json *out = make_replaced_list(patch);
	if (out) {
		*ret_value = out;
		return 0;
	}
	rule = list_rule(rule, patch, err);
	if (!rule)
		return err ? err->code : HF_E_INVALID;
	out = shallow_list(target);
	for (size_t i = 0; i < hf_json_len(patch); i++) {
		int rc = merge_item(out, rule->keys[0], hf_json_item(patch, i), err);
		if (rc) {
			hf_json_unref(out);
			return rc;
		}
	}
	*ret_value = out;
	return 0;
}

/* --- "$setElementOrder/list" --- */

/* Returns the index of an item in the order, found by its key (objects) or by its value (key
 * NULL); SIZE_MAX: the order does not have it. */
static size_t find_rank(const struct hf_json *order, const char *key, const struct hf_json *item)
{
	const struct hf_json *value = key ? hf_json_get(item, key) : item;

	for (size_t i = 0; i < hf_json_len(order); i++) {
		const struct hf_json *o = hf_json_item(order, i);
		if (hf_json_equal(key ? hf_json_get(o, key) : o, value))
			return i;
	}
	return SIZE_MAX;
}

/* Sorts a merged list: items that the patch names come in the patch's order, and other items keep
 * their places relative to those. */
static struct hf_json *order_items(const struct hf_json *merged, const struct hf_json *order,
				   const struct hf_json *before, const char *key)
{
	HF_AUTO_JSON wanted = hf_json_array();
	HF_AUTO_JSON others = hf_json_array();
	struct hf_json *out = hf_json_array();

	for (size_t o = 0; o < hf_json_len(order); o++)
		for (size_t i = 0; i < hf_json_len(merged); i++)
			if (find_rank(order, key, hf_json_item(merged, i)) == o)
				hf_json_append(wanted, hf_json_ref(hf_json_item(merged, i)));
	for (size_t i = 0; i < hf_json_len(merged); i++)
		if (find_rank(order, key, hf_json_item(merged, i)) == SIZE_MAX)
			hf_json_append(others, hf_json_ref(hf_json_item(merged, i)));
	size_t w = 0, o = 0;
	while (w < hf_json_len(wanted) || o < hf_json_len(others)) {
		struct hf_json *a = hf_json_item(wanted, w), *b = hf_json_item(others, o);
		bool take_other = !a || (b && find_rank(before, key, a) != SIZE_MAX &&
					 find_rank(before, key, b) < find_rank(before, key, a));
		hf_json_append(out, hf_json_ref(take_other ? b : a));
		*(take_other ? &o : &w) += 1;
	}
	return out;
}

static void apply_orders(struct hf_json *out, const struct hf_json *target,
			 const struct hf_json *patch)
{
	const char *name;
	struct hf_json *order;

	for (void *it = NULL; (it = hf_json_next(patch, it, &name, &order));) {
		if (!hf_str_has_prefix(name, SET_ORDER))
			continue;
		const char *list_name = name + strlen(SET_ORDER);
		const struct hf_list_rule *rule = hf_list_rule_patched(list_name);
		const struct hf_json *merged = hf_json_get(out, list_name);
		if (rule && rule->keys[0])
			rule = list_rule(rule, order, NULL);
		if (rule && merged)
			hf_json_set(out, list_name,
				    order_items(merged, order, hf_json_get(target, list_name),
						rule->keys[0]));
	}
}

/* --- maps --- */

static void retain_keys(struct hf_json *out, const struct hf_json *keep)
{
	const char *key;
	struct hf_json *value;
	HF_AUTO_JSON names = hf_json_array();

	for (void *it = NULL; (it = hf_json_next(out, it, &key, &value));) {
		HF_AUTO_JSON name = hf_json_string(key);
		if (!contains_value(keep, name))
			hf_json_append(names, hf_json_ref(name));
	}
	for (size_t i = 0; i < hf_json_len(names); i++)
		hf_json_remove(out, hf_json_str(hf_json_item(names, i), ""));
}

static void delete_from_list(struct hf_json *out, const char *list_name,
			     const struct hf_json *values)
{
	const struct hf_json *list = hf_json_get(out, list_name);
	struct hf_json *rest;

	if (!list)
		return;
	rest = hf_json_array();
	for (size_t i = 0; i < hf_json_len(list); i++)
		if (!contains_value(values, hf_json_item(list, i)))
			hf_json_append(rest, hf_json_ref(hf_json_item(list, i)));
	hf_json_set(out, list_name, rest);
}

static int merge_member(struct hf_json *out, const char *key, const struct hf_json *value,
			struct hf_error *err)
{
	struct hf_json *old = hf_json_get(out, key);
	const struct hf_list_rule *rule = hf_list_rule_patched(key);
	struct hf_json *merged;
	int rc = 0;

	if (hf_json_type(value) == HF_JSON_NULL) {
		hf_json_remove(out, key);
		return 0;
	}
	if (hf_json_type(value) == HF_JSON_OBJECT)
		rc = merge_map(old, value, &merged, err);
	else if (hf_json_type(value) == HF_JSON_ARRAY && rule)
		rc = merge_list(rule, old, value, &merged, err);
	else
		merged = hf_json_share(value);
	if (rc == 0)
		hf_json_set(out, key, merged);
	return rc;
}

static int merge_members(struct hf_json *out, const struct hf_json *patch, struct hf_error *err)
{
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(patch, it, &key, &value));) {
		int rc = 0;
		if (hf_str_has_prefix(key, DELETE_FROM))
			delete_from_list(out, key + strlen(DELETE_FROM), value);
		else if (*key != '$')
			rc = merge_member(out, key, value, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int merge_map(const struct hf_json *target, const struct hf_json *patch,
		     struct hf_json **ret_value, struct hf_error *err)
{
	const char *directive = hf_json_path_str(patch, DIRECTIVE, NULL);

	if (hf_streq(directive, "replace") || hf_streq(directive, "delete"))
		target = NULL;
	else if (directive && !hf_streq(directive, "merge"))
		return hf_error_set(err, HF_E_BAD_REQUEST, "unknown patch type: %s", directive);
	if (hf_streq(directive, "delete")) {
		*ret_value = hf_json_object();
		return 0;
	}
	HF_AUTO_JSON out =
		hf_json_type(target) == HF_JSON_OBJECT ? hf_json_shallow(target) : hf_json_object();
	if (hf_json_get(patch, RETAIN_KEYS))
		retain_keys(out, hf_json_get(patch, RETAIN_KEYS));
	int rc = merge_members(out, patch, err);
	if (rc)
		return rc;
	apply_orders(out, target, patch);
	*ret_value = hf_json_ref(out);
	return 0;
}

int hf_patch_strategic(const struct hf_json *target, const struct hf_json *patch,
		       struct hf_json **ret_value, struct hf_error *err)
{
	return merge_map(target, patch, ret_value, err);
}
