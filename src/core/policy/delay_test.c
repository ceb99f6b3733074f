/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "harness/test.h"

static const struct hf_recovery defaults = {.backoff_initial_seconds = 10,
					    .backoff_max_seconds = 600,
					    .backoff_reset_after_seconds = 3600};

/* The delay in seconds.  The UID "" adds no spread, which would add up to a tenth. */
static int seconds(enum hf_budget budget, int64_t n, bool kueue)
{
	return (int)(hf_delay_compute(&defaults, budget, n, "", kueue) / HF_SECOND);
}

static void the_first_never_waits_and_the_rest_doubles(void **state)
{
	static const int expected[] = {0, 10, 20, 40, 80, 160, 320, 600, 600};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(expected); i++) {
		int got = seconds(HF_BUDGET_APPLICATION, (int64_t)i + 1, false);

		assert_in_range(got, expected[i], expected[i] + expected[i] / 10);
	}
	assert_int_equal(hf_delay_compute(&defaults, HF_BUDGET_APPLICATION, 1, "uid", false), 0);
}

static void infrastructure_and_devices_start_at_five(void **state)
{
	static const int expected[] = {0, 5, 10, 20, 40, 80, 160, 300, 300};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(expected); i++) {
		int got = seconds(HF_BUDGET_INFRASTRUCTURE, (int64_t)i + 1, false);

		assert_in_range(got, expected[i], expected[i] + expected[i] / 10);
		assert_int_equal(got, seconds(HF_BUDGET_DEVICE, (int64_t)i + 1, false));
	}
}

static void kueue_would_evict_a_job_that_waits_longer(void **state)
{
	(void)state;
	assert_int_equal(seconds(HF_BUDGET_APPLICATION, 20, true), 240);
	assert_int_equal(seconds(HF_BUDGET_INFRASTRUCTURE, 20, true), 240);
	assert_in_range(seconds(HF_BUDGET_APPLICATION, 2, true), 10, 11);
}

static void the_spread_is_of_the_uid_and_within_a_tenth_and_the_maximum(void **state)
{
	hf_time a = hf_delay_compute(&defaults, HF_BUDGET_APPLICATION, 3, "uid-a", false);
	hf_time b = hf_delay_compute(&defaults, HF_BUDGET_APPLICATION, 3, "uid-b", false);

	(void)state;
	assert_int_equal(a, hf_delay_compute(&defaults, HF_BUDGET_APPLICATION, 3, "uid-a", false));
	assert_true(a != b);
	assert_true(a >= 20 * HF_SECOND && a <= 22 * HF_SECOND);
	assert_true(hf_delay_compute(&defaults, HF_BUDGET_APPLICATION, 40, "uid-a", false) <=
		    600 * HF_SECOND);
}

static void a_huge_streak_does_not_overflow(void **state)
{
	struct hf_recovery huge = {.backoff_initial_seconds = INT32_MAX,
				   .backoff_max_seconds = INT32_MAX};

	(void)state;
	assert_int_equal(hf_delay_compute(&huge, HF_BUDGET_APPLICATION, INT64_MAX, "u", false),
			 (hf_time)1000000000 * HF_SECOND);
	assert_int_equal(seconds(HF_BUDGET_INFRASTRUCTURE, INT64_MAX, false), 300);
}

static struct hf_plan plan;

/* A job without a delay. */
static struct hf_brain begin_job(void)
{
	static const struct hf_job_view view = {.uid = "uid"};
	struct hf_brain b = {.view = &view, .now = 1000 * HF_SECOND, .plan = &plan};

	plan = (struct hf_plan){.status = {.start_time = HF_TIME_NONE}};
	b.job.recovery = defaults;
	b.ledger.not_before = HF_TIME_NONE;
	return b;
}

static void a_delay_is_never_shortened_by_the_next_and_begins_anew_after_quiet(void **state)
{
	struct hf_brain b = begin_job();

	(void)state;
	hf_delay_next(&b, HF_BUDGET_APPLICATION);
	assert_true(b.ledger.not_before == HF_TIME_NONE);
	b.ledger.streak[HF_BUDGET_APPLICATION] = 6;
	hf_delay_next(&b, HF_BUDGET_APPLICATION);
	assert_in_range(b.ledger.not_before - b.now, 320 * HF_SECOND, 352 * HF_SECOND);
	b.ledger.streak[HF_BUDGET_INFRASTRUCTURE] = 1;
	hf_delay_next(&b, HF_BUDGET_INFRASTRUCTURE);
	assert_in_range(b.ledger.not_before - b.now, 320 * HF_SECOND, 352 * HF_SECOND);
	/* One hour after the last rank ran again, all streaks are over. */
	b.ledger.records_len = 1;
	b.ledger.records[0].running_at = b.now;
	b.now += 3600 * HF_SECOND;
	/* Exception: a suspension within that hour, seen by the later start time. */
	plan.status.start_time = b.now - HF_SECOND;
	hf_delay_reset(&b);
	assert_int_equal(b.ledger.streak[HF_BUDGET_APPLICATION], 7);
	plan.status.start_time = b.ledger.records[0].running_at;
	hf_delay_next(&b, HF_BUDGET_DEVICE);
	assert_int_equal(b.ledger.streak[HF_BUDGET_APPLICATION], 0);
	assert_int_equal(b.ledger.streak[HF_BUDGET_DEVICE], 1);
}

static void what_people_delete_waits_on_a_streak_of_its_own_which_ends_after_five_minutes(
	void **state)
{
	struct hf_brain b = begin_job();

	(void)state;
	b.ledger.streak[HF_BUDGET_APPLICATION] = 4;
	hf_delay_next(&b, HF_BUDGET_NONE);
	assert_true(b.ledger.not_before == HF_TIME_NONE);
	hf_delay_next(&b, HF_BUDGET_NONE);
	assert_in_range(b.ledger.not_before - b.now, 5 * HF_SECOND, 5500 * HF_MS);
	b.ledger.records_len = 1;
	b.ledger.records[0].running_at = b.now;
	b.now += 299 * HF_SECOND;
	hf_delay_next(&b, HF_BUDGET_NONE);
	assert_int_equal(b.ledger.streak[HF_BUDGET_NONE], 3);
	b.now += HF_SECOND;
	hf_delay_next(&b, HF_BUDGET_NONE);
	assert_int_equal(b.ledger.streak[HF_BUDGET_NONE], 1);
	assert_int_equal(b.ledger.streak[HF_BUDGET_APPLICATION], 4);
}

/* Nodes are emptied one after the other, and the job runs on well in between. */
static void evictions_begin_anew_after_five_minutes(void **state)
{
	struct hf_brain b = begin_job();

	(void)state;
	b.ledger.streak[HF_BUDGET_APPLICATION] = b.ledger.streak[HF_BUDGET_DEVICE] = 4;
	b.ledger.streak[HF_BUDGET_INFRASTRUCTURE] = 3;
	b.ledger.records_len = 1;
	b.ledger.records[0].running_at = b.now;
	b.now += 299 * HF_SECOND;
	hf_delay_next(&b, HF_BUDGET_INFRASTRUCTURE);
	assert_int_equal(b.ledger.streak[HF_BUDGET_INFRASTRUCTURE], 4);
	b.ledger.not_before = HF_TIME_NONE;
	b.now += HF_SECOND;
	hf_delay_next(&b, HF_BUDGET_INFRASTRUCTURE);
	assert_true(b.ledger.not_before == HF_TIME_NONE);
	assert_int_equal(b.ledger.streak[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_int_equal(b.ledger.streak[HF_BUDGET_APPLICATION], 4);
	assert_int_equal(b.ledger.streak[HF_BUDGET_DEVICE], 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_never_waits_and_the_rest_doubles),
		cmocka_unit_test(infrastructure_and_devices_start_at_five),
		cmocka_unit_test(kueue_would_evict_a_job_that_waits_longer),
		cmocka_unit_test(the_spread_is_of_the_uid_and_within_a_tenth_and_the_maximum),
		cmocka_unit_test(a_huge_streak_does_not_overflow),
		cmocka_unit_test(
			what_people_delete_waits_on_a_streak_of_its_own_which_ends_after_five_minutes),
		cmocka_unit_test(
			a_delay_is_never_shortened_by_the_next_and_begins_anew_after_quiet),
		cmocka_unit_test(evictions_begin_anew_after_five_minutes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
