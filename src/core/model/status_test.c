/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/status.h"

#include "harness/test.h"

#include "core/model/job.h"
#include "core/model/observed.h"

static void names_of_enums_are_read_back(void **state)
{
	(void)state;
	for (int c = HF_CLASS_OURS; c <= HF_CLASS_APPLICATION; c++)
		assert_int_equal(hf_class_parse(hf_class_name((enum hf_class)c)), c);
	for (int i = 0; i <= HF_BUDGET_NONE; i++)
		assert_int_equal(hf_budget_parse(hf_budget_name((enum hf_budget)i)), i);
	for (int p = 0; p < HF_PHASES; p++)
		assert_int_equal(hf_phase_parse(hf_phase_name((enum hf_phase)p)), p);
	for (int p = 0; p <= HF_POD_FAILED; p++)
		assert_int_equal(hf_pod_phase_parse(hf_pod_phase_name((enum hf_pod_phase)p)), p);
	for (int a = 0; a < HF_RULE_UNKNOWN; a++)
		assert_int_equal(hf_rule_action_parse(hf_rule_action_name((enum hf_rule_action)a)),
				 a);
	for (int r = HF_RESTART_ALWAYS; r < HF_RESTART_UNKNOWN; r++)
		assert_int_equal(
			hf_restart_policy_parse(hf_restart_policy_name((enum hf_restart_policy)r)),
			r);
}

static void unknown_texts_have_a_safe_meaning(void **state)
{
	(void)state;
	assert_int_equal(hf_class_parse("bad luck"), HF_CLASS_NONE);
	assert_int_equal(hf_class_parse(NULL), HF_CLASS_NONE);
	assert_int_equal(hf_budget_parse("gold"), HF_BUDGET_PENDING);
	assert_int_equal(hf_budget_parse(""), HF_BUDGET_PENDING);
	assert_int_equal(hf_phase_parse("Dreaming"), HF_PHASE_CREATING);
	assert_int_equal(hf_pod_phase_parse("Unknown"), HF_POD_PENDING);
	assert_int_equal(hf_pod_phase_parse(NULL), HF_POD_PENDING);
	assert_int_equal(hf_restart_policy_parse(""), HF_RESTART_UNSET);
	assert_int_equal(hf_restart_policy_parse("Sometimes"), HF_RESTART_UNKNOWN);
	assert_int_equal(hf_rule_action_parse("FailIndex"), HF_RULE_UNKNOWN);
}

static void finished_is_succeeded_or_failed_and_true(void **state)
{
	struct hf_condition conditions[] = {{.type = "Created", .status = "True"},
					    {.type = "Failed", .status = "False"}};
	struct hf_status status = {.conditions = conditions, .conditions_len = 2};

	(void)state;
	assert_false(hf_status_is_finished(&status));
	assert_ptr_equal(hf_status_condition(&status, "Failed"), &conditions[1]);
	assert_null(hf_status_condition(&status, "Running"));
	conditions[1].status = "True";
	assert_true(hf_status_is_finished(&status));
	conditions[1].type = "Succeeded";
	assert_true(hf_status_is_finished(&status));
	conditions[1].status = "Unknown";
	assert_false(hf_status_is_finished(&status));
}

static void restarts_are_told_in_words(void **state)
{
	static const struct {
		int64_t restarts[HF_BUDGETS];
		const char *text;
	} rows[] = {
		{{0, 0, 0}, "0"},
		{{0, 1, 0}, "1 (infrastructure)"},
		{{2, 0, 0}, "2 (application)"},
		{{2, 0, 1}, "3 (2 application, 1 device)"},
		{{1, 2, 3}, "6 (1 application, 2 infrastructure, 3 device)"},
		{{INT32_MAX, INT32_MAX, INT32_MAX},
		 "6442450941 (2147483647 application, 2147483647 infrastructure, 2147483647 device)"},
		{{-1, 0, 0}, "?"},
		{{0, INT64_MAX, 0}, "?"},
	};
	char text[HF_RESTARTS_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		hf_restarts_text(rows[i].restarts, text);
		assert_string_equal(text, rows[i].text);
	}
}

static void the_incident_that_ended_the_job_is_no_restart(void **state)
{
	struct hf_ledger ledger = {.restarts = {3, 1, 0},
				   .incident = {.id = 4, .charged = HF_BUDGET_APPLICATION},
				   .records = {{.incident = 4, .scope = "Job"}},
				   .records_len = 1};
	int64_t restarts[HF_BUDGETS];

	(void)state;
	hf_ledger_restarts(&ledger, restarts);
	assert_int_equal(restarts[HF_BUDGET_APPLICATION], 3);
	ledger.records[0].scope = NULL;
	hf_ledger_restarts(&ledger, restarts);
	assert_int_equal(restarts[HF_BUDGET_APPLICATION], 2);
	assert_int_equal(restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	/* The record is of an older incident, or nothing was charged. */
	ledger.records[0].incident = 3;
	hf_ledger_restarts(&ledger, restarts);
	assert_int_equal(restarts[HF_BUDGET_APPLICATION], 3);
	ledger.records[0].incident = 4;
	ledger.incident.charged = HF_BUDGET_NONE;
	hf_ledger_restarts(&ledger, restarts);
	assert_int_equal(restarts[HF_BUDGET_APPLICATION], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_enums_are_read_back),
		cmocka_unit_test(unknown_texts_have_a_safe_meaning),
		cmocka_unit_test(finished_is_succeeded_or_failed_and_true),
		cmocka_unit_test(restarts_are_told_in_words),
		cmocka_unit_test(the_incident_that_ended_the_job_is_no_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
