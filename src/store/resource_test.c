/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/str.h"
#include "store/resource.h"

#include <string.h>

static void the_table_is_sorted_and_whole(void **state)
{
	for (size_t i = 0; i < hf_resource_count(); i++) {
		const struct hf_resource_info *info = hf_resource_at(i);
		const struct hf_resource *r = info->resource;
		assert_true(strlen(r->version) && strlen(r->plural) && strlen(r->singular) &&
			    strlen(r->kind));
		assert_non_null(info->fields);
		/* A kind has either all three paths of the scale subresource or none of them. */
		assert_int_equal(!info->scale_spec, !info->scale_status);
		assert_int_equal(!info->scale_spec, !info->scale_selector);
		if (i == 0)
			continue;
		const struct hf_resource *last = hf_resource_at(i - 1)->resource;
		int c = strcmp(last->group, r->group);
		assert_true(c < 0 || (c == 0 && strcmp(last->plural, r->plural) < 0));
	}
}

static void every_kind_is_found_by_each_of_its_names(void **state)
{
	for (size_t i = 0; i < hf_resource_count(); i++) {
		const struct hf_resource_info *info = hf_resource_at(i);
		const struct hf_resource *r = info->resource;
		char buf[HF_API_VERSION_MAX];
		assert_ptr_equal(hf_resource_info(r), info);
		assert_ptr_equal(hf_resource_by_plural(r->group, r->plural), r);
		assert_ptr_equal(hf_resource_by_kind(hf_resource_api_version(r, buf), r->kind), r);
		assert_ptr_equal(hf_resource_by_word(r->plural), r);
		assert_ptr_equal(hf_resource_by_word(r->singular), r);
		assert_ptr_equal(hf_resource_by_word(r->kind), r);
		if (info->short_name)
			assert_ptr_equal(hf_resource_by_word(info->short_name), r);
	}
}

static void a_copy_of_a_kind_is_that_kind(void **state)
{
	const struct hf_resource copy = hf_pytorchjobs;

	assert_true(hf_resource_equal(&copy, &hf_pytorchjobs));
	assert_false(hf_resource_equal(&copy, &hf_tfjobs));
	assert_ptr_equal(hf_resource_info(&copy)->resource, &hf_pytorchjobs);
}

static void people_may_write_words_as_they_like(void **state)
{
	assert_ptr_equal(hf_resource_by_word("PODS"), &hf_pods);
	assert_ptr_equal(hf_resource_by_word("po"), &hf_pods);
	assert_ptr_equal(hf_resource_by_word("pytorchjobs.kubeflow.org"), &hf_pytorchjobs);
	assert_ptr_equal(hf_resource_by_word("PyTorchJob.kubeflow.org"), &hf_pytorchjobs);
	assert_null(hf_resource_by_word("pods.kubeflow.org"));
	assert_null(hf_resource_by_word("deployments"));
	assert_null(hf_resource_by_word(""));
	assert_null(hf_resource_by_word("a-word-that-is-longer-than-any-kind-there-could-ever-be-"
					"in-the-table.kubeflow.org"));
}

static void an_unknown_kind_is_null(void **state)
{
	const struct hf_resource other = {.group = "apps",
					  .version = "v1",
					  .plural = "deployments",
					  .singular = "deployment",
					  .kind = "Deployment",
					  .namespaced = true};

	assert_null(hf_resource_info(&other));
	assert_null(hf_resource_by_plural("apps", "deployments"));
	assert_null(hf_resource_by_plural("apps", "pods"));
	assert_null(hf_resource_by_kind("v1", "PyTorchJob"));
	assert_null(hf_resource_by_kind("v2", "Pod"));
}

static void names_for_messages_have_their_group(void **state)
{
	char buf[HF_API_VERSION_MAX];

	assert_string_equal(hf_resource_group_plural(&hf_pods, buf), "pods");
	assert_string_equal(hf_resource_group_plural(&hf_leases, buf),
			    "leases.coordination.k8s.io");
	assert_string_equal(hf_resource_api_version(&hf_pods, buf), "v1");
	assert_string_equal(hf_resource_api_version(&hf_tfjobs, buf), "kubeflow.org/v1");
}

static void the_six_job_kinds_are_jobs_with_a_status(void **state)
{
	size_t jobs = 0, scaled = 0;

	for (size_t i = 0; i < hf_resource_count(); i++) {
		const struct hf_resource_info *info = hf_resource_at(i);
		if (!hf_resource_is_job(info->resource))
			continue;
		jobs++;
		scaled += info->scale_spec != NULL;
		assert_true(info->custom && info->status && info->generation);
		assert_true(info->resource->namespaced);
	}
	assert_int_equal(jobs, 6);
	assert_int_equal(scaled, 3);
	assert_false(hf_resource_is_job(&hf_pods));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sorted_and_whole),
		cmocka_unit_test(every_kind_is_found_by_each_of_its_names),
		cmocka_unit_test(a_copy_of_a_kind_is_that_kind),
		cmocka_unit_test(people_may_write_words_as_they_like),
		cmocka_unit_test(an_unknown_kind_is_null),
		cmocka_unit_test(names_for_messages_have_their_group),
		cmocka_unit_test(the_six_job_kinds_are_jobs_with_a_status),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
