/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/types.h"

#include "harness/test.h"

static void every_word_has_a_name_and_back(void **state)
{
	(void)state;
	for (int i = 0; i < HF_HEALTH_CLASSES; i++) {
		enum hf_health_class cls;

		assert_true(
			hf_health_class_of(hf_health_class_name((enum hf_health_class)i), &cls));
		assert_int_equal(cls, i);
	}
	for (int i = 0; i < HF_HEALTH_DETECTORS; i++) {
		enum hf_health_detector det;

		assert_true(hf_health_detector_of(
			hf_health_detector_name((enum hf_health_detector)i), &det));
		assert_int_equal(det, i);
	}
	for (int i = 0; i < HF_HEALTH_STATES; i++) {
		enum hf_health_state st;

		assert_true(hf_health_state_of(hf_health_state_name((enum hf_health_state)i), &st));
		assert_int_equal(st, i);
	}
	for (int i = 0; i < HF_HEALTH_ACTIONS; i++) {
		enum hf_health_action action;

		assert_true(hf_health_action_of(hf_health_action_name((enum hf_health_action)i),
						&action));
		assert_int_equal(action, i);
	}
}

static void what_is_none_has_no_number_and_no_name(void **state)
{
	enum hf_health_class cls = HF_HEALTH_APP;

	(void)state;
	assert_false(hf_health_class_of("Reboot", &cls));
	assert_false(hf_health_class_of("", &cls));
	assert_int_equal(cls, HF_HEALTH_APP);
	assert_string_equal(hf_health_class_name((enum hf_health_class)99), "?");
	assert_string_equal(hf_health_kind_name(HF_HEALTH_PORT), "port");
	assert_string_equal(hf_health_source_name(HF_HEALTH_BY_NVML), "nvml");
}

static void a_class_is_weak_or_fatal_or_only_written_down(void **state)
{
	(void)state;
	assert_false(hf_health_is_weak(HF_HEALTH_APP) || hf_health_is_fatal(HF_HEALTH_APP));
	assert_true(hf_health_is_weak(HF_HEALTH_SOFTWARE) && hf_health_is_weak(HF_HEALTH_DRAIN));
	assert_false(hf_health_is_fatal(HF_HEALTH_DRAIN));
	assert_true(hf_health_is_fatal(HF_HEALTH_GPU_RESET) &&
		    hf_health_is_fatal(HF_HEALTH_REPLACE));
	assert_false(hf_health_is_weak(HF_HEALTH_GPU_RESET));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_has_a_name_and_back),
		cmocka_unit_test(what_is_none_has_no_number_and_no_name),
		cmocka_unit_test(a_class_is_weak_or_fatal_or_only_written_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
