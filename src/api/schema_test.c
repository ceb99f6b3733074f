/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema.h"

#include "base/str.h"
#include "framework/framework.h"
#include "harness/test.h"

#define TABLES_MAX 512

struct seen {
	const struct hf_schema *schemas[TABLES_MAX];
	size_t len;
};

/* Collects every table below this one, each once. The bound on the depth fails the test if there is
 * a cycle. */
static void collect(struct seen *seen, const struct hf_schema *schema, int depth)
{
	assert_true(depth < 32);
	for (size_t i = 0; i < seen->len; i++)
		if (seen->schemas[i] == schema)
			return;
	assert_true(seen->len < TABLES_MAX);
	seen->schemas[seen->len++] = schema;
	for (const struct hf_schema_field *field = schema->fields; field->name != NULL; field++) {
		assert_int_equal(field->schema != NULL, field->type == HF_SCHEMA_OBJECT);
		if (field->schema != NULL)
			collect(seen, field->schema, depth + 1);
	}
}

static const char *const kinds[][2] = {
	{"v1", "Binding"},
	{"v1", "ConfigMap"},
	{"v1", "DeleteOptions"},
	{"v1", "Event"},
	{"v1", "Namespace"},
	{"v1", "Node"},
	{"v1", "PersistentVolumeClaim"},
	{"v1", "Pod"},
	{"v1", "Secret"},
	{"v1", "Service"},
	{"v1", "ServiceAccount"},
	{"autoscaling/v1", "Scale"},
	{"coordination.k8s.io/v1", "Lease"},
	{"rbac.authorization.k8s.io/v1", "Role"},
	{"rbac.authorization.k8s.io/v1", "RoleBinding"},
	{"kubeflow.org/v1", "JAXJob"},
	{"kubeflow.org/v1", "MPIJob"},
	{"kubeflow.org/v1", "PaddleJob"},
	{"kubeflow.org/v1", "PyTorchJob"},
	{"kubeflow.org/v1", "TFJob"},
	{"kubeflow.org/v1", "XGBoostJob"},
};

static void kinds_are_found_by_version_and_name(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++) {
		const struct hf_schema *schema = hf_schema_by_kind(kinds[i][0], kinds[i][1]);
		assert_non_null(schema);
		assert_string_equal(schema->name, kinds[i][1]);
	}
	assert_non_null(hf_schema_by_kind("any.group/v7", "DeleteOptions"));
	assert_null(hf_schema_by_kind("v2", "Pod"));
	assert_null(hf_schema_by_kind("apps/v1", "Deployment"));
	assert_null(hf_schema_by_kind(NULL, NULL));
}

static void no_two_tables_have_one_name_and_no_table_one_field_twice(void **state)
{
	struct seen seen = {.len = 0};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		collect(&seen, hf_schema_by_kind(kinds[i][0], kinds[i][1]), 0);
	for (size_t i = 0; i < seen.len; i++) {
		const struct hf_schema *schema = seen.schemas[i];
		for (size_t k = 0; k < i; k++)
			if (hf_streq(schema->name, seen.schemas[k]->name))
				fail_msg("%s is there twice", schema->name);
		for (const struct hf_schema_field *f = schema->fields; f->name != NULL; f++)
			for (const struct hf_schema_field *g = schema->fields; g != f; g++)
				assert_false(hf_streq(f->name, g->name) ||
					     (f->number != 0 && f->number == g->number));
	}
}

static void a_kind_of_job_has_its_replicas_and_a_pods_template(void **state)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		const struct hf_framework *kind = hf_frameworks[i];
		const struct hf_schema *job = hf_schema_by_kind(kind->api_version, kind->kind);
		const struct hf_schema *spec = hf_schema_field(job, "spec")->schema;
		const struct hf_schema_field *replicas = hf_schema_field(spec, kind->replicas_key);
		assert_non_null(replicas);
		assert_int_equal(replicas->shape, HF_SCHEMA_MAP);
		const struct hf_schema *pod =
			hf_schema_field(hf_schema_field(replicas->schema, "template")->schema,
					"spec")
				->schema;
		assert_ptr_equal(pod, hf_schema_field(&hf_schema_pod, "spec")->schema);
	}
}

static void fields_are_found_in_their_parents_place_too(void **state)
{
	const struct hf_schema_field *spec = hf_schema_field(&hf_schema_pod, "spec"), *volumes;

	assert_non_null(spec);
	volumes = hf_schema_field(spec->schema, "volumes");
	assert_non_null(volumes);
	assert_non_null(hf_schema_field(volumes->schema, "name"));
	assert_non_null(hf_schema_field(volumes->schema, "emptyDir"));
	assert_null(hf_schema_field(volumes->schema, "volumeSource"));
	assert_null(hf_schema_field(volumes->schema, "none"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_found_by_version_and_name),
		cmocka_unit_test(no_two_tables_have_one_name_and_no_table_one_field_twice),
		cmocka_unit_test(a_kind_of_job_has_its_replicas_and_a_pods_template),
		cmocka_unit_test(fields_are_found_in_their_parents_place_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
