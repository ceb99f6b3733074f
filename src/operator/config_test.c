/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "operator/config.h"

#include "base/str.h"

#include <string.h>

static struct hf_operator_config *config;
static struct hf_error err;

static int parse(const char *text)
{
	config = hf_operator_config_destroy(config);
	hf_error_clear(&err);
	return hf_operator_config_parse(text, strlen(text), "op.yaml", &config, &err);
}

static int teardown(void **state)
{
	config = hf_operator_config_destroy(config);
	return 0;
}

static void test_every_field_of_recovery_is_read(void **state)
{
	const struct hf_recovery_spec *r;

	assert_ok(parse("recovery:\n"
			"  restartScope: Job\n"
			"  infrastructureLimit: 7\n"
			"  deviceLimit: 3\n"
			"  backoff: {initialSeconds: 1, maxSeconds: 2, resetAfterSeconds: 3}\n"
			"  incidentSeconds: 4\n"
			"  replaceDelaySeconds: 5\n"
			"  settleSeconds: 6\n"
			"  restartGraceSeconds: 8\n"
			"  nodeLost: {afterSeconds: 49, forceDelete: Proven, selfFence: true}\n"
			"  forceDeleteAfterSeconds: 10\n"
			"  device: {onUnhealthy: Fail, avoid: false}\n"
			"  progressDeadlineSeconds: 11\n"
			"  sidecarGraceSeconds: 12\n"
			"  podsAfterEnd: Keep\n"
			"  noProgressLimit: 13\n"
			"  inPlace: Never\n"
			"  inPlaceLimit: 14\n"
			"  inPlaceWaitSeconds: 15\n"
			"  checkpoint: {graceSeconds: 16}\n"),
		  &err);
	r = hf_operator_config_recovery(config);
	assert_string_equal(r->restart_scope, "Job");
	assert_int_equal(r->infrastructure_limit.value, 7);
	assert_int_equal(r->backoff_max_seconds.value, 2);
	assert_int_equal(r->settle_seconds.value, 6);
	assert_string_equal(r->node_lost_force_delete, "Proven");
	assert_true(r->node_lost_self_fence.set && r->node_lost_self_fence.value);
	assert_true(r->device_avoid.set && !r->device_avoid.value);
	assert_int_equal(r->progress_deadline_seconds.value, 11);
	assert_int_equal(r->sidecar_grace_seconds.value, 12);
	assert_string_equal(r->pods_after_end, "Keep");
	assert_int_equal(r->no_progress_limit.value, 13);
	assert_string_equal(r->in_place, "Never");
	assert_int_equal(r->in_place_limit.value, 14);
	assert_int_equal(r->in_place_wait_seconds.value, 15);
	assert_int_equal(r->checkpoint_grace_seconds.value, 16);
}

static void test_what_is_absent_stays_absent(void **state)
{
	static const char *const texts[] = {"", "# nothing\n", "{}", "recovery:\n", "recovery: {}"};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		assert_ok(parse(texts[i]), &err);
		assert_null(hf_operator_config_recovery(config)->restart_scope);
		assert_false(hf_operator_config_recovery(config)->settle_seconds.set);
	}
}

static void refused(const char *text, const char *message)
{
	assert_int_not_equal(parse(text), 0);
	assert_string_equal(err.text, message);
}

static void test_errors_name_file_line_and_field(void **state)
{
	refused("recovery:\n  restartScope: Some\n",
		"op.yaml:2:3: recovery.restartScope: Unsupported value: \"Some\": supported "
		"values: \"Replica\", \"Job\"");
	refused("recovery:\n  backoff:\n    initialSeconds: 0\n",
		"op.yaml:3:5: recovery.backoff.initialSeconds: Invalid value: 0: must be greater "
		"than or equal to 1");
	refused("recovery:\n  settleSeconds: soon\n",
		"op.yaml:2:3: recovery.settleSeconds: Invalid value: \"string\": "
		"recovery.settleSeconds in body must be of type integer: \"string\"");
}

static void test_what_no_field_has_is_refused(void **state)
{
	refused("recovery:\n  setleSeconds: 3\n",
		"op.yaml:2:3: unknown field \"recovery.setleSeconds\"");
	refused("recovery:\n  nodeLost:\n    after: 3\n",
		"op.yaml:3:5: unknown field \"recovery.nodeLost.after\"");
	refused("recover: {}\n", "op.yaml:1:1: unknown field \"recover\" (there is 'recovery')");
}

static void test_what_is_no_config_at_all_is_refused(void **state)
{
	refused("- a\n", "op.yaml: must be an object with 'recovery'");
	refused("recovery: {}\n---\nrecovery: {}\n", "op.yaml: one document, not 2");
	assert_code(parse("recovery: {\n"), HF_E_BAD_REQUEST);
	assert_true(hf_str_has_prefix(err.text, "op.yaml: "));
	assert_code(parse("recovery: 7\n"), HF_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_every_field_of_recovery_is_read, teardown),
		cmocka_unit_test_teardown(test_what_is_absent_stays_absent, teardown),
		cmocka_unit_test_teardown(test_errors_name_file_line_and_field, teardown),
		cmocka_unit_test_teardown(test_what_no_field_has_is_refused, teardown),
		cmocka_unit_test_teardown(test_what_is_no_config_at_all_is_refused, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
