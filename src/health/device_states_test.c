/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/device_states.h"

#include "harness/test.h"

#include <string.h>

static bool leads(enum hf_health_state from, enum hf_health_event event, enum hf_health_state to)
{
	enum hf_health_state next;

	return hf_health_next(from, event, &next) && next == to;
}

static void unknown_is_never_quarantined(void **state)
{
	enum hf_health_state next;

	(void)state;
	assert_false(hf_health_next(HF_HEALTH_UNKNOWN, HF_HEALTH_TAKEN, &next));
	assert_false(hf_health_next(HF_HEALTH_HEALTHY, HF_HEALTH_TAKEN, &next));
}

static void silence_and_time_do_not_end_what_was_found(void **state)
{
	static const enum hf_health_state found[] = {
		HF_HEALTH_DEGRADED_STATE, HF_HEALTH_UNHEALTHY, HF_HEALTH_QUARANTINED,
		HF_HEALTH_REMEDIATING,    HF_HEALTH_PROBATION, HF_HEALTH_FAILED};
	enum hf_health_state next;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(found); i++) {
		assert_false(hf_health_next(found[i], HF_HEALTH_SILENT, &next));
		assert_false(hf_health_next(found[i], HF_HEALTH_HEARD, &next));
	}
	assert_false(hf_health_next(HF_HEALTH_UNHEALTHY, HF_HEALTH_QUIET, &next));
}

static void failed_is_left_by_a_person_alone(void **state)
{
	enum hf_health_state next;

	(void)state;
	for (int e = 0; e < HF_HEALTH_EVENTS; e++) {
		if (e != HF_HEALTH_CLEARED_BY_PERSON)
			assert_false(
				hf_health_next(HF_HEALTH_FAILED, (enum hf_health_event)e, &next));
	}
	assert_true(leads(HF_HEALTH_FAILED, HF_HEALTH_CLEARED_BY_PERSON, HF_HEALTH_PROBATION));
}

static void healthy_comes_from_unknown_quiet_or_probation(void **state)
{
	enum hf_health_state next;

	(void)state;
	for (int s = 0; s < HF_HEALTH_STATES; s++) {
		for (int e = 0; e < HF_HEALTH_EVENTS; e++) {
			if (!hf_health_next((enum hf_health_state)s, (enum hf_health_event)e,
					    &next) ||
			    next != HF_HEALTH_HEALTHY)
				continue;
			assert_true(s == HF_HEALTH_UNKNOWN || s == HF_HEALTH_SUSPECT ||
				    s == HF_HEALTH_DEGRADED_STATE || s == HF_HEALTH_PROBATION);
		}
	}
}

static void every_event_matters_somewhere_and_moves(void **state)
{
	(void)state;
	for (int e = 0; e < HF_HEALTH_EVENTS; e++) {
		bool any = false;

		for (int s = 0; s < HF_HEALTH_STATES; s++) {
			enum hf_health_state next;

			if (!hf_health_next((enum hf_health_state)s, (enum hf_health_event)e,
					    &next))
				continue;
			any = true;
			assert_int_not_equal(next, s);
		}
		assert_true(any);
		assert_true(strlen(hf_health_event_name((enum hf_health_event)e)) > 1);
	}
	assert_string_equal(hf_health_event_name((enum hf_health_event)99), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_is_never_quarantined),
		cmocka_unit_test(silence_and_time_do_not_end_what_was_found),
		cmocka_unit_test(failed_is_left_by_a_person_alone),
		cmocka_unit_test(healthy_comes_from_unknown_quiet_or_probation),
		cmocka_unit_test(every_event_matters_somewhere_and_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
