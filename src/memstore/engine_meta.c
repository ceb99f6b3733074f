/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "api/metadata.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Metadata of all kinds, and small helpers for shared JSON values. api/metadata.h has the rules for
 * metadata; this file turns their problems into causes, and checks kind and apiVersion. */

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

bool hf_meta_has_finalizer(const struct hf_json *meta, const char *name)
{
	const struct hf_json *list = hf_json_get(meta, "finalizers");

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_str(hf_json_item(list, i), NULL), name))
			return true;
	return false;
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

static void on_problem(void *arg, const char *reason, const char *field, const char *text)
{
	hf_op_problem(arg, reason, field, "%s", text);
}

void hf_meta_check(struct hf_op *op, const struct hf_json *meta, const struct hf_json *before)
{
	hf_metadata_check(meta, before, on_problem, op);
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
