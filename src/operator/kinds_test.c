/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/script_test.h"

#include "operator/kinds_internal.h"

/* Kinds of jobs that the cluster knows, does not know yet, or does not let the operator read. */

#define MISSING "the cluster lacks the CRD of "

/* Answer the list of each kind with its code.  With code 0, the list of PyTorchJobs has one job. */
static void answer_lists(struct bench *bench, int pytorch, int tf)
{
	struct fake_call *call;

	while ((call = next(bench)) != NULL && call->request->verb == HF_VERB_LIST) {
		const char *plural = call->request->resource->plural;
		struct hf_doc *jobs[] = {NULL};
		int code = hf_streq(plural, "pytorchjobs") ? pytorch
			   : hf_streq(plural, "tfjobs")    ? tf
							   : 0;

		if (code != 0) {
			fake_refuse(call, code);
		} else if (hf_streq(plural, "pytorchjobs")) {
			jobs[0] = job_doc("ddp", "u-1", 7, "");
			fake_answer_list(call, "100", "", jobs, 1);
		} else {
			fake_answer_list(call, "100", "", NULL, 0);
		}
	}
	turn(bench);
}

static void a_missing_kind_is_told_and_holds_up_no_other(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	answer_lists(bench, 0, HF_E_NOT_FOUND);
	assert_true(hf_operator_synced(bench->op));
	assert_int_equal(brain.steps, 1);
	assert_true(hf_str_has_prefix(bench->problem, "tfjobs: the cluster does not know"));
	assert_missing(bench, MISSING "TFJob");
	assert_metric(bench, "holdfast_crd_missing{kind=\"TFJob\"} 1");
	assert_metric(bench, "holdfast_crd_missing{kind=\"PyTorchJob\"} 0");
}

static void a_kind_that_comes_later_is_found(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	answer_lists(bench, HF_E_NOT_FOUND, 0);
	assert_int_equal(brain.steps, 0);
	/* A missing kind is logged once, however often the operator looks for it. */
	bench->problem[0] = '\0';
	turn_for(bench, HF_MINUTE);
	answer_lists(bench, HF_E_NOT_FOUND, 0);
	assert_string_equal(bench->problem, "");
	turn_for(bench, HF_MINUTE);
	answer_lists(bench, 0, 0);
	assert_int_equal(brain.steps, 1);
	assert_string_equal(bench->problem, "pytorchjobs: the cluster knows this kind now");
	assert_missing(bench, "");
	assert_metric(bench, "holdfast_crd_missing{kind=\"PyTorchJob\"} 0");
}

static void where_all_kinds_are_missing_it_is_not_ready_and_says_which(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	answer_lists(bench, HF_E_NOT_FOUND, HF_E_NOT_FOUND);
	assert_false(hf_operator_synced(bench->op));
	assert_missing(bench, MISSING "PyTorchJob, TFJob");
}

static void a_kind_that_is_forbidden_holds_up_no_other_but_is_no_missing_one(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	answer_lists(bench, 0, HF_E_FORBIDDEN);
	assert_int_equal(brain.steps, 1);
	assert_false(hf_operator_synced(bench->op));
	assert_missing(bench, "");
	assert_true(hf_str_has_prefix(bench->problem, "tfjobs: "));
}

/* Controllers that evict pods wait for the jobs of the pods, but not for ever. */
static void a_list_that_is_late_is_waited_for(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	assert_false(hf_kinds_listed(bench->op));
	answer_lists(bench, 0, HF_E_UNAVAILABLE);
	assert_false(hf_kinds_listed(bench->op));
	turn_for(bench, 30 * HF_SECOND);
	answer_lists(bench, 0, HF_E_UNAVAILABLE);
	assert_false(hf_kinds_listed(bench->op));
	turn_for(bench, 30 * HF_SECOND);
	assert_true(hf_kinds_listed(bench->op));
}

static void a_missing_kind_is_not_waited_for(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	answer_lists(bench, HF_E_NOT_FOUND, HF_E_NOT_FOUND);
	assert_true(hf_kinds_listed(bench->op));
}

int main(void)
{
#define K(name) cmocka_unit_test_setup_teardown(name, setup_with_two_kinds, teardown)
	const struct CMUnitTest tests[] = {
		K(a_missing_kind_is_told_and_holds_up_no_other),
		K(a_kind_that_comes_later_is_found),
		K(where_all_kinds_are_missing_it_is_not_ready_and_says_which),
		K(a_kind_that_is_forbidden_holds_up_no_other_but_is_no_missing_one),
		K(a_list_that_is_late_is_waited_for),
		K(a_missing_kind_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
