/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "framework/framework.h"

#include "harness/test.h"

#include "base/str.h"

static void kinds_are_found_by_users_words_and_documents(void **state)
{
	(void)state;
	assert_ptr_equal(hf_framework_by_kind("kubeflow.org/v1", "PyTorchJob"),
			 &hf_framework_pytorch);
	assert_null(hf_framework_by_kind("kubeflow.org/v2", "PyTorchJob"));
	assert_null(hf_framework_by_kind("kubeflow.org/v1", "pytorchjob"));
	assert_null(hf_framework_by_kind(NULL, NULL));
	assert_ptr_equal(hf_framework_by_name("pytorchjobs"), &hf_framework_pytorch);
	assert_ptr_equal(hf_framework_by_name("PyTorchJob"), &hf_framework_pytorch);
	assert_null(hf_framework_by_name("pods"));
}

/* Checks for every kind what core relies on. */
static void every_table_is_complete(void **state)
{
	(void)state;
	for (size_t i = 0; hf_frameworks[i]; i++) {
		const struct hf_framework *kind = hf_frameworks[i];

		assert_non_null(kind->judge);
		assert_in_range(kind->roles_len, 1, HF_ROLES_MAX);
		assert_true(hf_str_has_suffix(kind->controller_name, "-controller"));
		assert_true(kind->default_restart != HF_RESTART_UNSET);
		assert_true(!kind->inject_port || kind->port_number > 0);
		assert_true(!kind->has_scale || kind->scale_role < kind->roles_len);
		for (int r = 0; r < kind->roles_len; r++) {
			assert_false(hf_str_is_empty(kind->roles[r].name));
			assert_int_equal(hf_framework_role(kind, kind->roles[r].name), r);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_found_by_users_words_and_documents),
		cmocka_unit_test(every_table_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
