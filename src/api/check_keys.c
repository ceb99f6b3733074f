/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "api/reader_internal.h"
#include "api/schema.h"
#include "base/str.h"

/*
 * Reports unknown keys by the tables of schema.h, down to the last field of a pod template. The
 * status is not checked: other controllers may write any member there.
 */

static void check_object(struct hf_reader *r, const struct hf_json *object,
			 const struct hf_schema *schema);

static void check_list(struct hf_reader *r, const struct hf_json *list,
		       const struct hf_schema *schema)
{
	for (size_t i = 0; i < hf_json_len(list); i++) {
		size_t mark = hf_reader_enter(r, "[%zu]", i);
		check_object(r, hf_json_item(list, i), schema);
		hf_reader_leave(r, mark);
	}
}

static void check_map(struct hf_reader *r, const struct hf_json *map,
		      const struct hf_schema *schema)
{
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(map, it, &key, &value)) != NULL;) {
		size_t mark = hf_reader_enter(r, ".%s", key);
		check_object(r, value, schema);
		hf_reader_leave(r, mark);
	}
}

/* Skips a value of a wrong type: it has no keys, and the reader reports it. */
static void check_value(struct hf_reader *r, const struct hf_json *value,
			const struct hf_schema_field *field)
{
	enum hf_json_type type = hf_json_type(value);

	if (field->shape == HF_SCHEMA_LIST && type == HF_JSON_ARRAY)
		check_list(r, value, field->schema);
	else if (field->shape == HF_SCHEMA_MAP && type == HF_JSON_OBJECT)
		check_map(r, value, field->schema);
	else if (field->shape == HF_SCHEMA_ONE)
		check_object(r, value, field->schema);
}

/* Reports the object's own keys first, then those of the objects in it. */
static void check_object(struct hf_reader *r, const struct hf_json *object,
			 const struct hf_schema *schema)
{
	bool root = r->path_len == 0;
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value)) != NULL;) {
		size_t mark = hf_reader_enter(r, root ? "%s" : ".%s", key);
		if (hf_schema_field(schema, key) == NULL)
			hf_field_add(r->errors, HF_PROBLEM_UNKNOWN, NULL, "", "%s",
				     hf_reader_path(r));
		hf_reader_leave(r, mark);
	}
	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value)) != NULL;) {
		const struct hf_schema_field *field = hf_schema_field(schema, key);
		size_t mark = hf_reader_enter(r, root ? "%s" : ".%s", key);
		if (field != NULL && field->type == HF_SCHEMA_OBJECT &&
		    !(root && hf_streq(key, "status")))
			check_value(r, value, field);
		hf_reader_leave(r, mark);
	}
}

void hf_check_policy_additions(struct hf_reader *r, const struct hf_framework *framework,
			       const struct hf_json *policy)
{
	static const char *const way[] = {"spec", "runPolicy"};
	const struct hf_schema *schema = hf_schema_by_kind(framework->api_version, framework->kind);
	struct hf_json *value;
	const char *key;

	for (size_t i = 0; i < HF_ARRAY_LEN(way); i++)
		schema = hf_schema_field(schema, way[i])->schema;
	for (void *it = NULL; (it = hf_json_next(policy, it, &key, &value)) != NULL;) {
		size_t mark = hf_reader_enter(r, ".%s", key);
		if (hf_streq(key, "podFailurePolicy") || hf_streq(key, "recovery"))
			check_value(r, value, hf_schema_field(schema, key));
		else
			hf_field_add(r->errors, HF_PROBLEM_UNKNOWN, NULL, "", "%s",
				     hf_reader_path(r));
		hf_reader_leave(r, mark);
	}
}

void hf_job_read_unknown(struct hf_doc *doc, const struct hf_framework *framework,
			 struct hf_field_errors *errors)
{
	const struct hf_schema *schema = hf_schema_by_kind(framework->api_version, framework->kind);
	struct hf_reader r = {.arena = errors->arena, .errors = errors};

	hf_assert(schema != NULL);
	check_object(&r, hf_doc_json(doc), schema);
}
