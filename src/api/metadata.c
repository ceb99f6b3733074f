/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/metadata.h"

#include "base/str.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

/* Checks the metadata of an object by the rules for every kind (apimachinery, pkg/api/validation):
 * labels, annotations, owners, finalizers. Each problem is reported through a callback. */

#define ANNOTATIONS_BYTES_MAX ((size_t)256 << 10) /* keys and values together */
#define TEXT_BYTES_MAX 4096

struct check {
	hf_metadata_problem_fn problem;
	void *arg;
};

static void HF_PRINTF(4, 5) problem_at(const struct check *c, const char *reason, const char *field,
				       const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_BYTES_MAX);
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	c->problem(c->arg, reason, field, text.data);
}

static bool has_string(const struct hf_json *array, const char *s)
{
	for (size_t i = 0; i < hf_json_len(array); i++)
		if (hf_streq(hf_json_str(hf_json_item(array, i), NULL), s))
			return true;
	return false;
}

/* --- labels and annotations --- */

static void check_labels(const struct check *c, const struct hf_json *labels)
{
	const char *key;
	struct hf_json *value;

	if (labels && hf_json_type(labels) != HF_JSON_OBJECT)
		problem_at(c, "FieldValueInvalid", "metadata.labels",
			   "Invalid value: must be an object, not %s",
			   hf_json_type_name(hf_json_type(labels)));
	for (void *it = NULL; (it = hf_json_next(labels, it, &key, &value));) {
		const char *text = hf_json_str(value, NULL);
		const char *problem = hf_qualified_name_problem(key);
		if (problem)
			problem_at(c, "FieldValueInvalid", "metadata.labels",
				   "Invalid value: \"%s\": %s", key, problem);
		problem = text ? hf_label_value_problem(text) : "must be a string";
		if (problem)
			problem_at(c, "FieldValueInvalid", "metadata.labels",
				   "Invalid value: \"%s\": %s", hf_str_or(text, key), problem);
	}
}

static void check_annotations(const struct check *c, const struct hf_json *annotations)
{
	const char *key;
	struct hf_json *value;
	size_t bytes = 0;

	if (annotations && hf_json_type(annotations) != HF_JSON_OBJECT)
		problem_at(c, "FieldValueInvalid", "metadata.annotations",
			   "Invalid value: must be an object, not %s",
			   hf_json_type_name(hf_json_type(annotations)));
	for (void *it = NULL; (it = hf_json_next(annotations, it, &key, &value));) {
		const char *text = hf_json_str(value, NULL);
		char lower[320];
		/* Unlike labels, annotations may have capitals in a key's prefix, so the key is
		 * checked in lower case. */
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
			problem_at(c, "FieldValueInvalid", "metadata.annotations",
				   "Invalid value: \"%s\": %s", key, problem);
		if (!text)
			problem_at(c, "FieldValueInvalid", "metadata.annotations",
				   "Invalid value: \"%s\": must be a string", key);
		bytes += len + strlen(hf_str_or(text, ""));
	}
	if (bytes > ANNOTATIONS_BYTES_MAX)
		problem_at(c, "FieldValueTooLong", "metadata.annotations",
			   "Too long: may not be more than %zu bytes", ANNOTATIONS_BYTES_MAX);
}

/* --- owners and finalizers --- */

static void check_owner(const struct check *c, const struct hf_json *ref, size_t i)
{
	static const char *const required[] = {"apiVersion", "kind", "name", "uid"};

	for (size_t k = 0; k < HF_ARRAY_LEN(required); k++) {
		if (!hf_str_is_empty(hf_json_str(hf_json_get(ref, required[k]), NULL)))
			continue;
		char field[96];
		snprintf(field, sizeof(field), "metadata.ownerReferences[%zu].%s", i, required[k]);
		problem_at(c, "FieldValueInvalid", field,
			   "Invalid value: \"\": %s must not be empty", required[k]);
	}
}

static void check_owners(const struct check *c, const struct hf_json *refs)
{
	const char *controller = NULL;

	if (refs && hf_json_type(refs) != HF_JSON_ARRAY)
		problem_at(c, "FieldValueInvalid", "metadata.ownerReferences",
			   "Invalid value: must be an array, not %s",
			   hf_json_type_name(hf_json_type(refs)));
	for (size_t i = 0; i < hf_json_len(refs); i++) {
		const struct hf_json *ref = hf_json_item(refs, i);
		check_owner(c, ref, i);
		if (!hf_json_true(hf_json_get(ref, "controller"), false))
			continue;
		const char *name = hf_str_or(hf_json_path_str(ref, "name", NULL), "");
		if (controller)
			problem_at(c, "FieldValueInvalid", "metadata.ownerReferences",
				   "Invalid value: Only one reference can have Controller set "
				   "to true. Found \"true\" in references for %s and %s",
				   controller, name);
		controller = name;
	}
}

static void check_finalizers(const struct check *c, const struct hf_json *meta,
			     const struct hf_json *before)
{
	const struct hf_json *list = hf_json_get(meta, "finalizers");
	bool deleting = hf_json_get(before, "deletionTimestamp") != NULL;

	if (list && hf_json_type(list) != HF_JSON_ARRAY)
		problem_at(c, "FieldValueInvalid", "metadata.finalizers",
			   "Invalid value: must be an array, not %s",
			   hf_json_type_name(hf_json_type(list)));
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const char *name = hf_json_str(hf_json_item(list, i), "");
		const char *problem = hf_qualified_name_problem(name);
		if (problem)
			problem_at(c, "FieldValueInvalid", "metadata.finalizers",
				   "Invalid value: \"%s\": %s", name, problem);
		if (deleting && !has_string(hf_json_get(before, "finalizers"), name))
			problem_at(c, "FieldValueForbidden", "metadata.finalizers",
				   "Forbidden: no new finalizers can be added if the object is "
				   "being deleted, found new finalizers []string{\"%s\"}",
				   name);
	}
}

/* True if this member differs from the stored one. A member that has not changed was checked when
 * it was stored, so it is not checked again. */
static bool has_changed(const struct hf_json *meta, const struct hf_json *before, const char *key)
{
	const struct hf_json *now = hf_json_get(meta, key);

	return now && (!before || now != hf_json_get(before, key));
}

void hf_metadata_check(const struct hf_json *meta, const struct hf_json *before,
		       hf_metadata_problem_fn problem, void *arg)
{
	const struct check check = {problem, arg}, *c = &check;

	if (has_changed(meta, before, "labels"))
		check_labels(c, hf_json_get(meta, "labels"));
	if (has_changed(meta, before, "annotations"))
		check_annotations(c, hf_json_get(meta, "annotations"));
	if (has_changed(meta, before, "ownerReferences"))
		check_owners(c, hf_json_get(meta, "ownerReferences"));
	if (has_changed(meta, before, "finalizers"))
		check_finalizers(c, meta, before);
}
