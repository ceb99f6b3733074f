/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/reader_internal.h"
#include "api/schema_internal.h"
#include "base/quantity.h"
#include "base/str.h"

/*
 * Checks the types of all fields in an object by the tables of schema.h. An API server makes the
 * same check if a CRD's schema has the fields of a pod. Unknown keys are reported by check_keys.c.
 */

static void check_object(struct hf_reader *r, const struct hf_json *object,
			 const struct hf_schema *schema);

static void check_quantity(struct hf_reader *r, const struct hf_json *value)
{
	const char *text = hf_json_str(value, NULL);
	int64_t milli;

	if (text != NULL && hf_quantity_parse_milli(text, &milli, NULL) != 0)
		hf_field_add(r->errors, HF_PROBLEM_INVALID, hf_field_quote(r->errors, text),
			     "not a quantity such as 500m, 2 or 1.5Gi", "%s", hf_reader_path(r));
}

static void check_range(struct hf_reader *r, const struct hf_json *value)
{
	int64_t number = hf_json_i64(value, 0);

	if (number < INT32_MIN || number > INT32_MAX)
		hf_field_add(r->errors, HF_PROBLEM_INVALID, "\"integer\"", "must fit in 32 bits",
			     "%s", hf_reader_path(r));
}

static void check_scalar(struct hf_reader *r, const struct hf_json *value,
			 const struct hf_schema_field *field)
{
	if (!hf_schema_takes(field, hf_json_type(value)))
		hf_reader_report_type(r, value, hf_schema_type_name(field->type));
	else if (field->type == HF_SCHEMA_OBJECT)
		check_object(r, value, field->schema);
	else if (field->type == HF_SCHEMA_QUANTITY)
		check_quantity(r, value);
	else if (field->type == HF_SCHEMA_INT32)
		check_range(r, value);
}

static void check_list(struct hf_reader *r, const struct hf_json *list,
		       const struct hf_schema_field *field)
{
	for (size_t i = 0; i < hf_json_len(list); i++) {
		size_t mark = hf_reader_enter(r, "[%zu]", i);
		check_scalar(r, hf_json_item(list, i), field);
		hf_reader_leave(r, mark);
	}
}

static void check_map(struct hf_reader *r, const struct hf_json *map,
		      const struct hf_schema_field *field)
{
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(map, it, &key, &value)) != NULL;) {
		size_t mark = hf_reader_enter(r, ".%s", key);
		check_scalar(r, value, field);
		hf_reader_leave(r, mark);
	}
}

static void check_value(struct hf_reader *r, const struct hf_json *value,
			const struct hf_schema_field *field)
{
	enum hf_json_type type = hf_json_type(value);

	if (type == HF_JSON_NULL)
		return; /* absent */
	if (field->shape == HF_SCHEMA_LIST && type != HF_JSON_ARRAY)
		hf_reader_report_type(r, value, "array");
	else if (field->shape == HF_SCHEMA_MAP && type != HF_JSON_OBJECT)
		hf_reader_report_type(r, value, "object");
	else if (field->shape == HF_SCHEMA_LIST)
		check_list(r, value, field);
	else if (field->shape == HF_SCHEMA_MAP)
		check_map(r, value, field);
	else
		check_scalar(r, value, field);
}

static void check_object(struct hf_reader *r, const struct hf_json *object,
			 const struct hf_schema *schema)
{
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value)) != NULL;) {
		const struct hf_schema_field *field = hf_schema_field(schema, key);
		size_t mark;
		if (field == NULL)
			continue;
		mark = hf_reader_enter(r, ".%s", key);
		check_value(r, value, field);
		hf_reader_leave(r, mark);
	}
}

bool hf_check_template_types(struct hf_reader *r, const struct hf_json *pod)
{
	size_t before = r->errors->len + r->errors->dropped;

	check_object(r, pod, &hf_schema_pod_template_spec);
	return r->errors->len + r->errors->dropped == before;
}
