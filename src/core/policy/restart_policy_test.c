/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

static struct brain b;

/* What happens to the job if hand-0 exits with that code under that restartPolicy: "Failed", or
 * "Restarting". */
static const char *outcome(const char *policy, int code)
{
	static const char *state;

	brain_init(&b, &brain_kind, 1, 2);
	b.replicas[1].restart_policy = policy;
	brain_run_up(&b);
	if (code == 0) {
		brain_pod(&b, "demo-hand-0")->pod.phase = HF_POD_FAILED; /* no code to be had */
		brain_pod(&b, "demo-hand-0")->containers[0].phase = HF_CONTAINER_WAITING;
	} else {
		brain_exit(&b, "demo-hand-0", code);
	}
	brain_step(&b);
	state = hf_status_is_true(&b.plan.status, HF_COND_FAILED)       ? "Failed"
		: hf_status_is_true(&b.plan.status, HF_COND_RESTARTING) ? "Restarting"
									: "nothing";
	brain_release(&b);
	return state;
}

static void every_policy_and_code(void **state)
{
	static const struct {
		const char *policy;
		int code;
		const char *outcome;
	} rows[] = {
		{"OnFailure", 1, "Restarting"},  {"OnFailure", 137, "Restarting"},
		{"Always", 1, "Restarting"},     {"Always", 255, "Restarting"},
		{"Never", 1, "Failed"},          {"Never", 137, "Failed"},
		{"Never", 0, "Failed"},          {"ExitCode", 1, "Failed"},
		{"ExitCode", 2, "Failed"},       {"ExitCode", 127, "Failed"},
		{"ExitCode", 128, "Restarting"}, {"ExitCode", 130, "Restarting"},
		{"ExitCode", 137, "Restarting"}, {"ExitCode", 143, "Restarting"},
		{"ExitCode", 255, "Restarting"}, {"ExitCode", 0, "Restarting"},
		{NULL, 1, "Restarting"}, /* the kind's default is OnFailure */
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		const char *got = outcome(rows[i].policy, rows[i].code);

		if (!hf_streq(got, rows[i].outcome))
			fail_msg("%s, code %d: %s, not %s", hf_str_or(rows[i].policy, "none"),
				 rows[i].code, got, rows[i].outcome);
	}
}

static void code_0_in_a_failed_pod_says_nothing(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.replicas[1].restart_policy = "ExitCode";
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 0);
	brain_pod(&b, "demo-hand-0")->pod.phase = HF_POD_FAILED; /* a sidecar failed */
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	brain_release(&b);
}

static void infrastructure_ends_no_job_under_any_policy(void **state)
{
	static const char *const policies[] = {"OnFailure", "Always", "Never", "ExitCode"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(policies); i++) {
		brain_init(&b, &brain_kind, 1, 2);
		b.replicas[1].restart_policy = policies[i];
		brain_run_up(&b);
		brain_exit(&b, "demo-hand-0", 1);
		brain_disrupt(&b, "demo-hand-0");
		brain_step(&b);
		assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
		assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 1);
		assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 0);
		brain_release(&b);
	}
}

static void the_pod_never_restarts_in_place_where_an_end_must_be_one(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	b.replicas[0].restart_policy = "ExitCode";
	b.replicas[1].restart_policy = "Always";
	brain_step(&b);
	assert_string_equal(brain_edit(&b, "demo-boss-0", HF_EDIT_RESTART_POLICY, NULL), "Never");
	assert_string_equal(brain_edit(&b, "demo-hand-0", HF_EDIT_RESTART_POLICY, NULL), "Always");
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_step(&b);
	assert_string_equal(brain_edit(&b, "demo-hand-0", HF_EDIT_RESTART_POLICY, NULL), "Never");
	b.view.run_policy.recovery.restart_scope = NULL;
	b.view.run_policy.has_pod_failure_policy = true;
	brain_step(&b);
	assert_string_equal(brain_edit(&b, "demo-hand-0", HF_EDIT_RESTART_POLICY, NULL), "Never");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_and_code),
		cmocka_unit_test(code_0_in_a_failed_pod_says_nothing),
		cmocka_unit_test(infrastructure_ends_no_job_under_any_policy),
		cmocka_unit_test(the_pod_never_restarts_in_place_where_an_end_must_be_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
