/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/remediation.h"
#include "harness/test.h"
#include "health/mend_steps.h"

/* What api says about rungs to the program for people, and what health decides by, is the same. */

static void the_same_rungs_disturb_work(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HF_MEND_RUNGS; i++)
		assert_int_equal(
			hf_remediation_disturbs_work(hf_mend_rung_name((enum hf_mend_rung)i)),
			hf_mend_disturbs_work((enum hf_mend_rung)i));
	assert_false(hf_remediation_disturbs_work(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_rungs_disturb_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
