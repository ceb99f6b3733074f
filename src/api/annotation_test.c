/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "core/model/names.h"
#include "framework/framework.h"
#include "harness/test.h"

#include <string.h>

static struct hf_arena *arena;
static struct hf_field_errors errors;

static int setup(void **state)
{
	arena = hf_arena_create((size_t)8 << 20);
	hf_field_errors_init(&errors, arena);
	return 0;
}

static int teardown(void **state)
{
	hf_arena_destroy(arena);
	return 0;
}

/* Returns a job with this spec.runPolicy and these two annotations. NULL leaves out a part. */
static struct hf_doc *job(const char *spec, const char *policy, const char *ledger)
{
	struct hf_json *root = hf_json_object(), *metadata, *annotations;
	struct hf_json *run_policy = NULL;
	struct hf_error err;

	metadata = hf_json_ensure_object(root, "metadata");
	hf_json_set_str(metadata, "name", "j");
	hf_json_set_str(metadata, "resourceVersion", "7");
	hf_json_set_str(metadata, "uid", "u-1");
	annotations = hf_json_ensure_object(metadata, "annotations");
	if (policy != NULL)
		hf_json_set_str(annotations, HF_ANNOTATION_RUN_POLICY, policy);
	if (ledger != NULL)
		hf_json_set_str(annotations, HF_ANNOTATION_LEDGER, ledger);
	if (spec != NULL) {
		assert_int_equal(hf_json_parse(spec, strlen(spec), NULL, &run_policy, &err), 0);
		hf_json_set(hf_json_ensure_object(root, "spec"), "runPolicy", run_policy);
	}
	return hf_doc_from_json(root);
}
#define FRAMEWORK hf_frameworks[0]

static void read_job(struct hf_doc *doc, struct hf_job_view *ret_view)
{
	hf_job_read(doc, FRAMEWORK, NULL, arena, &errors, ret_view);
}

static void policy_comes_from_the_annotation(void **state)
{
	HF_AUTO_DOC doc =
		job("{\"backoffLimit\":3}",
		    "{\"podFailurePolicy\":{\"rules\":[{\"name\":\"r\",\"action\":\"Ignore\","
		    "\"onPodReasons\":[\"Evicted\"]}]},\"recovery\":{\"restartScope\":\"Job\","
		    "\"backoff\":{\"initialSeconds\":3}}}",
		    NULL);
	struct hf_job_view view;

	read_job(doc, &view);
	assert_int_equal(errors.len, 0);
	assert_true(view.policy_annotated);
	assert_null(view.policy_problem);
	assert_int_equal(view.run_policy.backoff_limit.value, 3);
	assert_int_equal(view.run_policy.rules_len, 1);
	assert_string_equal(view.run_policy.rules[0].name, "r");
	assert_string_equal(view.run_policy.rules[0].pod_reasons[0], "Evicted");
	assert_string_equal(view.run_policy.recovery.restart_scope, "Job");
	assert_int_equal(view.run_policy.recovery.backoff_initial_seconds.value, 3);
}

static void a_field_of_the_spec_wins(void **state)
{
	HF_AUTO_DOC doc =
		job("{\"recovery\":{\"restartScope\":\"Replica\",\"backoff\":"
		    "{\"maxSeconds\":9}},\"podFailurePolicy\":{\"rules\":[]}}",
		    "{\"podFailurePolicy\":{\"rules\":[{\"action\":\"Ignore\",\"onPodReasons\":"
		    "[\"A\"]}]},\"recovery\":{\"restartScope\":\"Job\",\"deviceLimit\":2,"
		    "\"backoff\":{\"initialSeconds\":3,\"maxSeconds\":4}}}",
		    NULL);
	struct hf_job_view view;

	read_job(doc, &view);
	assert_int_equal(errors.len, 0);
	assert_string_equal(view.run_policy.recovery.restart_scope, "Replica");
	assert_int_equal(view.run_policy.recovery.backoff_max_seconds.value, 9);
	assert_int_equal(view.run_policy.recovery.backoff_initial_seconds.value, 3);
	assert_int_equal(view.run_policy.recovery.device_limit.value, 2);
	assert_int_equal(view.run_policy.rules_len, 0);
	HF_AUTO_JSON policy = hf_job_run_policy(hf_doc_json(doc));
	assert_string_equal(hf_json_path_str(policy, "recovery", "restartScope", NULL), "Replica");
	assert_int_equal(hf_json_i64(hf_json_path(policy, "recovery", "deviceLimit", NULL), -1), 2);
}

static void without_annotations_nothing_is_said_of_them(void **state)
{
	HF_AUTO_DOC doc = job(NULL, NULL, NULL);
	struct hf_job_view view;

	read_job(doc, &view);
	assert_false(view.policy_annotated);
	assert_null(view.policy_problem);
	assert_false(view.status.ledger.present);
	assert_null(hf_job_run_policy(hf_doc_json(doc)));
}

#define LONG_20 "01234567890123456789"
#define LONG_80 LONG_20 LONG_20 LONG_20 LONG_20

static void a_policy_that_cannot_be_read_is_a_problem(void **state)
{
	static const char *const bad[][2] = {
		{"", "holdfast.dev/run-policy"},
		{"[]", "no JSON object"},
		{"[[[", "[holdfast.dev/run-policy]: Invalid value: \"[[[\": "},
		{LONG_80 "x", "Invalid value: \"" LONG_80 "...\": "},
		{LONG_20 LONG_20 LONG_20 "0123456789012345678\u00e4\u00e4", "78...\": "},
		{"{\"recovery\":{\"restartScope\":1}}", "recovery.restartScope"},
		{"{\"recovery\":{\"restartScop\":\"Job\"}}", "recovery.restartScop"},
		{"{\"backoffLimit\":3}", "backoffLimit"},
		{"{\"podFailurePolicy\":{}}", "podFailurePolicy.rules"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		HF_AUTO_DOC doc = job(NULL, bad[i][0], NULL);
		struct hf_job_view view;

		hf_field_errors_init(&errors, arena);
		read_job(doc, &view);
		assert_true(errors.len > 0);
		assert_non_null(view.policy_problem);
		assert_non_null(strstr(view.policy_problem, bad[i][1]));
		/* The operator reads jobs without a list of errors: the problem must still be in
		 * the view. */
		hf_job_read(doc, FRAMEWORK, NULL, arena, NULL, &view);
		assert_non_null(view.policy_problem);
	}
}

static void a_ledger_that_is_patched_in_is_read_back(void **state)
{
	struct hf_ledger ledger = {.present = true,
				   .schema = HF_LEDGER_SCHEMA,
				   .generation = 4,
				   .phase = HF_PHASE_RUNNING,
				   .restarts = {2, 1, 0},
				   .records = {{.generation = 4, .replica = "worker-1"}},
				   .records_len = 1};
	HF_AUTO_DOC before = job(NULL, NULL, NULL);
	HF_AUTO_DOC patch = NULL;
	struct hf_doc *none = NULL;
	struct hf_job_view view;
	struct hf_error err;

	ledger.roles[0].attempts = "0:1";
	assert_int_equal(hf_ledger_patch(&ledger, FRAMEWORK, before, &patch, &err), 0);
	assert_non_null(patch);
	assert_string_equal(
		hf_json_path_str(hf_doc_json(patch), "metadata", "resourceVersion", NULL), "7");

	HF_AUTO_DOC after = job(NULL, NULL,
				hf_json_path_str(hf_doc_json(patch), "metadata", "annotations",
						 HF_ANNOTATION_LEDGER, NULL));
	read_job(after, &view);
	assert_true(view.status.ledger.present);
	assert_false(view.status.ledger.broken);
	assert_int_equal(view.status.ledger.generation, 4);
	assert_int_equal(view.status.ledger.restarts[0], 2);
	assert_string_equal(view.status.ledger.roles[0].attempts, "0:1");
	assert_string_equal(view.status.ledger.records[0].replica, "worker-1");
	HF_AUTO_JSON recovery = hf_job_recovery(hf_doc_json(after));
	assert_int_equal(hf_json_i64(hf_json_get(recovery, "generation"), 0), 4);
	assert_null(hf_job_recovery(hf_doc_json(before)));
	/* No patch is made if the annotation already has this text, or if the ledger is broken and
	 * must stay as it is. */
	assert_int_equal(hf_ledger_patch(&ledger, FRAMEWORK, after, &none, &err), 0);
	assert_null(none);
	ledger.generation = 5;
	ledger.kept = true;
	assert_int_equal(hf_ledger_patch(&ledger, FRAMEWORK, after, &none, &err), 0);
	assert_null(none);
}

static void status_wins_over_the_annotated_ledger(void **state)
{
	HF_AUTO_DOC plain = job(NULL, NULL, "{\"schema\":1,\"generation\":3,\"uid\":\"u-1\"}");
	struct hf_json *root = hf_json_copy(hf_doc_json(plain));
	struct hf_job_view view;

	hf_json_set_i64(hf_json_ensure_object(hf_json_ensure_object(root, "status"), "recovery"),
			"generation", 9);
	HF_AUTO_DOC doc = hf_doc_from_json(root);

	read_job(doc, &view);
	assert_int_equal(view.status.ledger.generation, 9);
}

static void a_ledger_that_was_copied_from_another_job_is_not_ours(void **state)
{
	HF_AUTO_DOC doc = job(NULL, NULL, "{\"schema\":1,\"generation\":3,\"uid\":\"u-0\"}");
	struct hf_job_view view;

	read_job(doc, &view);
	assert_false(view.status.ledger.present);
	assert_false(view.ledger_annotated);
	assert_null(hf_job_recovery(hf_doc_json(doc)));
}

static void an_annotated_ledger_that_cannot_be_read_is_not_none(void **state)
{
	HF_AUTO_DOC doc = job(NULL, NULL, "{\"generation\":");
	struct hf_job_view view;

	read_job(doc, &view);
	assert_true(view.status.ledger.present);
	assert_true(view.status.ledger.broken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(policy_comes_from_the_annotation, setup, teardown),
		cmocka_unit_test_setup_teardown(a_field_of_the_spec_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(without_annotations_nothing_is_said_of_them, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_policy_that_cannot_be_read_is_a_problem, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_ledger_that_is_patched_in_is_read_back, setup,
						teardown),
		cmocka_unit_test_setup_teardown(status_wins_over_the_annotated_ledger, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_ledger_that_was_copied_from_another_job_is_not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(an_annotated_ledger_that_cannot_be_read_is_not_none,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
