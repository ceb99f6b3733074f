/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/script_test.h"

#include "operator/operator_internal.h"

#include <string.h>

/* The CRD of a gang scheduler's pod groups is missing, exists, or arrives later. */

#define CRD "podgroups.scheduling.volcano.sh"

static int setup_volcano(void **state)
{
	return setup_with_gangs(state, "volcano");
}

static int setup_plugins(void **state)
{
	return setup_with_gangs(state, "scheduler-plugins");
}

/* Answer the lists: one job, and pod groups with this code.  Returns how often pod groups were
 * listed. */
static int answer_lists(struct bench *bench, const char *group, int code)
{
	struct fake_call *call;
	int asked = 0;

	while ((call = next(bench)) != NULL && call->request->verb == HF_VERB_LIST) {
		const struct hf_resource *resource = call->request->resource;
		struct hf_doc *jobs[] = {NULL};

		if (hf_streq(resource->plural, "podgroups")) {
			assert_string_equal(resource->group, group);
			asked++;
			if (code != 0) {
				fake_refuse(call, code);
				continue;
			}
		}
		if (hf_streq(resource->plural, "pytorchjobs"))
			jobs[0] = job_doc("ddp", "u-1", 7, "");
		fake_answer_list(call, "100", "", jobs, jobs[0] != NULL);
	}
	gathered(bench);
	return asked;
}

static int lists(struct bench *bench, int code)
{
	return answer_lists(bench, "scheduling.volcano.sh", code);
}

static void where_the_crd_is_there_jobs_begin(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	assert_int_equal(lists(bench, 0), 1);
	assert_true(hf_operator_synced(bench->op));
	assert_int_equal(brain.steps, 1);
	assert_missing(bench, "");
	assert_metric(bench, "holdfast_crd_missing{kind=\"PodGroup\"} 0");
}

static void where_it_is_missing_it_is_named_and_the_operator_not_ready(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	lists(bench, HF_E_NOT_FOUND);
	assert_int_equal(brain.steps, 0);
	assert_false(hf_operator_synced(bench->op));
	assert_true(hf_str_has_prefix(bench->problem, "podgroups: the cluster does not know"));
	assert_non_null(
		strstr(bench->problem, "the CRD " CRD " of the gang scheduler \"volcano\""));
	assert_missing(bench, "the cluster lacks the CRD of PodGroup of scheduling.volcano.sh");
	assert_metric(bench, "holdfast_crd_missing{kind=\"PodGroup\"} 1");
}

static void a_job_that_waits_is_told_what_for(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX);

	hf_operator_start(bench->op);
	lists(bench, HF_E_NOT_FOUND);
	turn_for(bench, HF_SECOND);
	event_lines(bench, &lines);
	assert_string_equal(lines.data, "MissingCRD: The job waits: the cluster lacks the CRD " CRD
					" of the gang scheduler \"volcano\"\n");
}

static void jobs_go_on_when_it_comes(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	lists(bench, HF_E_NOT_FOUND);
	/* A missing CRD is logged once, however often the operator looks for it. */
	bench->problem[0] = '\0';
	turn_for(bench, HF_MINUTE);
	assert_true(lists(bench, HF_E_NOT_FOUND) > 0);
	assert_string_equal(bench->problem, "");
	assert_int_equal(brain.steps, 0);
	turn_for(bench, HF_MINUTE);
	lists(bench, 0);
	assert_int_equal(brain.steps, 1);
	assert_true(hf_operator_synced(bench->op));
	assert_string_equal(bench->problem, "podgroups: the cluster knows this kind now");
	assert_missing(bench, "");
	assert_metric(bench, "holdfast_crd_missing{kind=\"PodGroup\"} 0");
}

static void groups_that_may_not_be_listed_are_no_missing_ones(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	lists(bench, HF_E_FORBIDDEN);
	assert_int_equal(brain.steps, 0);
	assert_false(hf_operator_synced(bench->op));
	assert_missing(bench, "");
	assert_true(hf_str_has_prefix(bench->problem, "podgroups: "));
	assert_non_null(strstr(bench->problem, "`holdfast manifests --operator "
					       "--gang-scheduler-name volcano` has the right"));
	turn_for(bench, HF_MINUTE);
	lists(bench, 0);
	assert_int_equal(brain.steps, 1);
}

static void any_other_scheduler_reads_those_of_scheduler_plugins(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	assert_int_equal(answer_lists(bench, "scheduling.x-k8s.io", HF_E_NOT_FOUND), 1);
	assert_non_null(strstr(bench->problem, "the CRD podgroups.scheduling.x-k8s.io of the gang "
					       "scheduler \"scheduler-plugins\""));
}

int main(void)
{
#define V(name) cmocka_unit_test_setup_teardown(name, setup_volcano, teardown)
#define P(name) cmocka_unit_test_setup_teardown(name, setup_plugins, teardown)
	const struct CMUnitTest tests[] = {
		V(where_the_crd_is_there_jobs_begin),
		V(where_it_is_missing_it_is_named_and_the_operator_not_ready),
		V(a_job_that_waits_is_told_what_for),
		V(jobs_go_on_when_it_comes),
		V(groups_that_may_not_be_listed_are_no_missing_ones),
		P(any_other_scheduler_reads_those_of_scheduler_plugins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
