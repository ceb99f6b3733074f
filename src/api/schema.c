/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema.h"

#include "base/str.h"

/*
 * Finds the table of a kind and a field in a table, and tells which JSON types a field takes. The
 * tables themselves are in schema_*.c, which tools/schema and tools/crds generate.
 */

static const struct {
	enum hf_json_type type, other;
	const char *name;
} values[] = {
	[HF_SCHEMA_STRING] = {HF_JSON_STRING, HF_JSON_STRING, "string"},
	[HF_SCHEMA_INT32] = {HF_JSON_INT, HF_JSON_INT, "integer"},
	[HF_SCHEMA_INT64] = {HF_JSON_INT, HF_JSON_INT, "integer"},
	[HF_SCHEMA_BOOL] = {HF_JSON_BOOL, HF_JSON_BOOL, "boolean"},
	[HF_SCHEMA_BYTES] = {HF_JSON_STRING, HF_JSON_STRING, "string"},
	[HF_SCHEMA_QUANTITY] = {HF_JSON_STRING, HF_JSON_INT, "integer or string"},
	[HF_SCHEMA_TIME] = {HF_JSON_STRING, HF_JSON_STRING, "string"},
	[HF_SCHEMA_MICRO_TIME] = {HF_JSON_STRING, HF_JSON_STRING, "string"},
	[HF_SCHEMA_INT_OR_STRING] = {HF_JSON_INT, HF_JSON_STRING, "integer or string"},
	[HF_SCHEMA_OBJECT] = {HF_JSON_OBJECT, HF_JSON_OBJECT, "object"},
};

const struct hf_schema *hf_schema_by_kind(const char *api_version, const char *kind)
{
	static const struct {
		const char *api_version;
		const struct hf_schema *schema; /* the schema of the kind with the same name */
	} kinds[] = {
		{"v1", &hf_schema_binding},
		{"v1", &hf_schema_config_map},
		{"v1", &hf_schema_event},
		{"v1", &hf_schema_namespace},
		{"v1", &hf_schema_node},
		{"v1", &hf_schema_persistent_volume_claim},
		{"v1", &hf_schema_pod},
		{"v1", &hf_schema_secret},
		{"v1", &hf_schema_service},
		{"v1", &hf_schema_service_account},
		{"kubeflow.org/v1", &hf_schema_jax_job},
		{"kubeflow.org/v1", &hf_schema_mpi_job},
		{"kubeflow.org/v1", &hf_schema_paddle_job},
		{"kubeflow.org/v1", &hf_schema_py_torch_job},
		{"kubeflow.org/v1", &hf_schema_tf_job},
		{"kubeflow.org/v1", &hf_schema_xg_boost_job},
		{"autoscaling/v1", &hf_schema_scale},
		{"coordination.k8s.io/v1", &hf_schema_lease},
		{"rbac.authorization.k8s.io/v1", &hf_schema_role},
		{"rbac.authorization.k8s.io/v1", &hf_schema_role_binding},
		/* DeleteOptions exist in every group and version. */
		{NULL, &hf_schema_delete_options},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_streq(kinds[i].schema->name, kind) &&
		    (kinds[i].api_version == NULL || hf_streq(kinds[i].api_version, api_version)))
			return kinds[i].schema;
	return NULL;
}

bool hf_schema_takes(const struct hf_schema_field *field, enum hf_json_type type)
{
	hf_assert(field->type <= HF_SCHEMA_OBJECT);
	if (field->type == HF_SCHEMA_RAW)
		return true;
	/* A quantity may be written as a number with a fraction. */
	if (field->type == HF_SCHEMA_QUANTITY && type == HF_JSON_REAL)
		return true;
	return type == values[field->type].type || type == values[field->type].other;
}

const char *hf_schema_type_name(enum hf_schema_type type)
{
	hf_assert(type <= HF_SCHEMA_OBJECT);
	return hf_str_or(values[type].name, "");
}

const struct hf_schema_field *hf_schema_field(const struct hf_schema *schema, const char *name)
{
	for (const struct hf_schema_field *field = schema->fields; field->name != NULL; field++) {
		const struct hf_schema_field *inner = field->shape == HF_SCHEMA_INLINE
							      ? hf_schema_field(field->schema, name)
							      : NULL;
		if (inner != NULL)
			return inner;
		if (field->shape != HF_SCHEMA_INLINE && hf_streq(field->name, name))
			return field;
	}
	return NULL;
}
