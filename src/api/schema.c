/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema.h"

#include "base/str.h"

const struct hf_schema *hf_schema_by_kind(const char *api_version, const char *kind)
{
	static const struct {
		const char *api_version;
		const struct hf_schema *schema; /* named like the kind */
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
		/* In every group and version. */
		{NULL, &hf_schema_delete_options},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_streq(kinds[i].schema->name, kind) &&
		    (kinds[i].api_version == NULL || hf_streq(kinds[i].api_version, api_version)))
			return kinds[i].schema;
	return NULL;
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
