/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/engine_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* The rules of metadata that hold for every kind (apimachinery, pkg/api/validation). */

#define ANNOTATIONS_BYTES_MAX ((size_t)256 << 10) /* keys and values together */

struct hf_json *hf_json_share(const struct hf_json *value)
{
	/* A reference is the one thing that may change in a value others read. */
	union {
		const struct hf_json *shared;
		struct hf_json *counted;
	} u = {.shared = value};

	return hf_json_ref(u.counted);
}

struct hf_json *hf_json_shallow(const struct hf_json *value)
{
	struct hf_json *copy = hf_json_object();
	const char *key;
	struct hf_json *member;

	for (void *it = NULL; (it = hf_json_next(value, it, &key, &member));)
		hf_json_set(copy, key, hf_json_ref(member));
	return copy;
}

struct hf_json *hf_json_members(const struct hf_json *value)
{
	struct hf_json *copy = hf_json_object();
	const char *key;
	struct hf_json *member;

	for (void *it = NULL; (it = hf_json_next(value, it, &key, &member));)
		if (hf_json_type(member) != HF_JSON_NULL)
			hf_json_set(copy, key, hf_json_ref(member));
	return copy;
}

struct hf_json *hf_json_without_string(const struct hf_json *array, const char *s)
{
	struct hf_json *rest = hf_json_array();

	for (size_t i = 0; i < hf_json_len(array); i++)
		if (!hf_streq(hf_json_str(hf_json_item(array, i), NULL), s))
			hf_json_append(rest, hf_json_ref(hf_json_item(array, i)));
	return hf_json_len(rest) ? rest : hf_json_unref(rest);
}

bool hf_meta_has_finalizers(const struct hf_json *meta)
{
	return hf_json_len(hf_json_get(meta, "finalizers")) > 0;
}

static bool has_string(const struct hf_json *array, const char *s)
{
	for (size_t i = 0; i < hf_json_len(array); i++)
		if (hf_streq(hf_json_str(hf_json_item(array, i), NULL), s))
			return true;
	return false;
}

bool hf_meta_has_finalizer(const struct hf_json *meta, const char *name)
{
	return has_string(hf_json_get(meta, "finalizers"), name);
}

void hf_meta_set_time(struct hf_json *meta, const char *key, hf_time t)
{
	char text[HF_TIME_TEXT_MAX];

	hf_time_format(t, text);
	hf_json_set_str(meta, key, text);
}

hf_time hf_meta_time(const struct hf_json *meta, const char *key)
{
	const char *text = hf_json_str(hf_json_get(meta, key), NULL);
	hf_time t;

	return text && hf_time_parse(text, &t, NULL) == 0 ? t : HF_TIME_NONE;
}

const char *hf_meta_name_problem(const struct hf_kind *kind, const char *name)
{
	if (kind->resource == &hf_services)
		return hf_dns1035_label_problem(name);
	if (kind->resource == &hf_namespaces)
		return hf_dns1123_label_problem(name);
	return hf_dns1123_subdomain_problem(name);
}

/* --- labels and annotations --- */

static void check_labels(struct hf_op *op, const struct hf_json *labels)
{
	const char *key;
	struct hf_json *value;

	if (labels && hf_json_type(labels) != HF_JSON_OBJECT)
		hf_op_problem(op, "FieldValueInvalid", "metadata.labels",
			      "Invalid value: must be an object, not %s",
			      hf_json_type_name(hf_json_type(labels)));
	for (void *it = NULL; (it = hf_json_next(labels, it, &key, &value));) {
		const char *text = hf_json_str(value, NULL);
		const char *problem = hf_qualified_name_problem(key);
		if (problem)
			hf_op_problem(op, "FieldValueInvalid", "metadata.labels",
				      "Invalid value: \"%s\": %s", key, problem);
		problem = text ? hf_label_value_problem(text) : "must be a string";
		if (problem)
			hf_op_problem(op, "FieldValueInvalid", "metadata.labels",
				      "Invalid value: \"%s\": %s", hf_str_or(text, key), problem);
	}
}

static void check_annotations(struct hf_op *op, const struct hf_json *annotations)
{
	const char *key;
	struct hf_json *value;
	size_t bytes = 0;

	if (annotations && hf_json_type(annotations) != HF_JSON_OBJECT)
		hf_op_problem(op, "FieldValueInvalid", "metadata.annotations",
			      "Invalid value: must be an object, not %s",
			      hf_json_type_name(hf_json_type(annotations)));
	for (void *it = NULL; (it = hf_json_next(annotations, it, &key, &value));) {
		const char *text = hf_json_str(value, NULL);
		char lower[320];
		/* Annotation keys may have capitals in their prefix; labels may not. */
		size_t len = strlen(key);
		const char *problem = NULL;
		if (len < sizeof(lower)) {
			memcpy(lower, key, len + 1);
			hf_str_lower(lower);
			problem = hf_qualified_name_problem(lower);
		} else {
			problem = "must be no more than 317 bytes";
		}
		if (problem)
			hf_op_problem(op, "FieldValueInvalid", "metadata.annotations",
				      "Invalid value: \"%s\": %s", key, problem);
		if (!text)
			hf_op_problem(op, "FieldValueInvalid", "metadata.annotations",
				      "Invalid value: \"%s\": must be a string", key);
		bytes += len + strlen(hf_str_or(text, ""));
	}
	if (bytes > ANNOTATIONS_BYTES_MAX)
		hf_op_problem(op, "FieldValueTooLong", "metadata.annotations",
			      "Too long: may not be more than %zu bytes", ANNOTATIONS_BYTES_MAX);
}

/* --- owners and finalizers --- */

static void check_owner(struct hf_op *op, const struct hf_json *ref, size_t i)
{
	static const char *const required[] = {"apiVersion", "kind", "name", "uid"};

	for (size_t k = 0; k < HF_ARRAY_LEN(required); k++) {
		if (!hf_str_is_empty(hf_json_str(hf_json_get(ref, required[k]), NULL)))
			continue;
		char field[96];
		snprintf(field, sizeof(field), "metadata.ownerReferences[%zu].%s", i, required[k]);
		hf_op_problem(op, "FieldValueInvalid", field,
			      "Invalid value: \"\": %s must not be empty", required[k]);
	}
}

static void check_owners(struct hf_op *op, const struct hf_json *refs)
{
	const char *controller = NULL;

	if (refs && hf_json_type(refs) != HF_JSON_ARRAY)
		hf_op_problem(op, "FieldValueInvalid", "metadata.ownerReferences",
			      "Invalid value: must be an array, not %s",
			      hf_json_type_name(hf_json_type(refs)));
	for (size_t i = 0; i < hf_json_len(refs); i++) {
		const struct hf_json *ref = hf_json_item(refs, i);
		check_owner(op, ref, i);
		if (!hf_json_true(hf_json_get(ref, "controller"), false))
			continue;
		const char *name = hf_str_or(hf_json_path_str(ref, "name", NULL), "");
		if (controller)
			hf_op_problem(op, "FieldValueInvalid", "metadata.ownerReferences",
				      "Invalid value: Only one reference can have Controller set "
				      "to true. Found \"true\" in references for %s and %s",
				      controller, name);
		controller = name;
	}
}

static void check_finalizers(struct hf_op *op, const struct hf_json *meta,
			     const struct hf_json *before)
{
	const struct hf_json *list = hf_json_get(meta, "finalizers");
	bool deleting = hf_json_get(before, "deletionTimestamp") != NULL;

	if (list && hf_json_type(list) != HF_JSON_ARRAY)
		hf_op_problem(op, "FieldValueInvalid", "metadata.finalizers",
			      "Invalid value: must be an array, not %s",
			      hf_json_type_name(hf_json_type(list)));
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const char *name = hf_json_str(hf_json_item(list, i), "");
		const char *problem = hf_qualified_name_problem(name);
		if (problem)
			hf_op_problem(op, "FieldValueInvalid", "metadata.finalizers",
				      "Invalid value: \"%s\": %s", name, problem);
		if (deleting && !hf_meta_has_finalizer(before, name))
			hf_op_problem(op, "FieldValueForbidden", "metadata.finalizers",
				      "Forbidden: no new finalizers can be added if the object is "
				      "being deleted, found new finalizers []string{\"%s\"}",
				      name);
	}
}

/* What did not change since it was stored was checked then: most updates share these. */
static bool changed(const struct hf_json *meta, const struct hf_json *before, const char *key)
{
	const struct hf_json *now = hf_json_get(meta, key);

	return now && (!before || now != hf_json_get(before, key));
}

void hf_meta_check(struct hf_op *op, const struct hf_json *meta, const struct hf_json *before)
{
	if (changed(meta, before, "labels"))
		check_labels(op, hf_json_get(meta, "labels"));
	if (changed(meta, before, "annotations"))
		check_annotations(op, hf_json_get(meta, "annotations"));
	if (changed(meta, before, "ownerReferences"))
		check_owners(op, hf_json_get(meta, "ownerReferences"));
	if (changed(meta, before, "finalizers"))
		check_finalizers(op, meta, before);
}

/* --- type --- */

int hf_meta_check_type(struct hf_op *op, const struct hf_json *object)
{
	const struct hf_resource *r = op->kind->resource;
	const char *kind = hf_json_path_str(object, "kind", NULL);
	const char *version = hf_json_path_str(object, "apiVersion", NULL);
	char buf[HF_API_VERSION_MAX];

	if (hf_str_is_empty(kind))
		return hf_op_fail(op, HF_E_BAD_REQUEST, "Object 'Kind' is missing");
	if (hf_str_is_empty(version))
		return hf_op_fail(op, HF_E_BAD_REQUEST, "Object 'apiVersion' is missing");
	hf_resource_api_version(r, buf);
	if (!hf_streq(kind, r->kind) || !hf_streq(version, buf))
		return hf_op_fail(op, HF_E_BAD_REQUEST,
				  "the object provided is unrecognized (must be of type %s in %s): "
				  "it is %s in %s",
				  r->kind, buf, kind, version);
	const struct hf_json *meta = hf_json_get(object, "metadata");
	if (meta && hf_json_type(meta) != HF_JSON_OBJECT)
		return hf_op_fail(op, HF_E_BAD_REQUEST, "metadata must be an object, not %s",
				  hf_json_type_name(hf_json_type(meta)));
	return 0;
}
