/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/cause.h"

static void each_code_has_a_name(void **state)
{
	for (int code = 220; code <= 226; code++)
		assert_string_not_equal(hf_exec_cause_name((enum hf_exec_cause)code), "");
	assert_string_equal(hf_exec_cause_name(HF_EXEC_CAUSE_NONE), "");
	assert_string_equal(hf_exec_cause_name(HF_EXEC_CAUSE_HANG), "hang");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_code_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
