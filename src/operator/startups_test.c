/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "operator/startups_internal.h"

#define T0 (1000 * HF_SECOND)

static void begin_many(struct hf_startups *startups, int jobs, hf_time now)
{
	for (int i = 0; i < jobs; i++)
		hf_startups_begin(startups, now);
}

/* Notes a finished start of the duration `span`. */
static void one_took(struct hf_startups *startups, hf_time span, hf_time now)
{
	hf_startups_begin(startups, now - span);
	hf_startups_end(startups, now - span, true, now);
}

static void test_as_long_as_nothing_is_known_a_lone_job_waits_shortly(void **state)
{
	struct hf_startups startups = {0};

	hf_startups_begin(&startups, T0);
	assert_int_equal(hf_startups_status_wait(&startups, true, T0), 2 * HF_SECOND);
	assert_int_equal(hf_startups_status_wait(&startups, false, T0), 5 * HF_SECOND);
}

static void test_jobs_wait_half_as_long_again_as_others_took(void **state)
{
	struct hf_startups startups = {0};

	one_took(&startups, 1200 * HF_MS, T0);
	hf_startups_begin(&startups, T0);
	assert_int_equal(hf_startups_status_wait(&startups, true, T0), 1800 * HF_MS);
	assert_int_equal(hf_startups_status_wait(&startups, false, T0), 1800 * HF_MS);
}

static void test_a_second_is_the_least(void **state)
{
	struct hf_startups startups = {0};

	one_took(&startups, 10 * HF_MS, T0);
	assert_int_equal(hf_startups_status_wait(&startups, true, T0), HF_SECOND);
}

static void test_a_start_that_would_wait_in_vain_is_written_soon(void **state)
{
	struct hf_startups startups = {0};

	one_took(&startups, HF_HOUR, T0);
	hf_startups_begin(&startups, T0);
	assert_int_equal(hf_startups_status_wait(&startups, true, T0), HF_SECOND);
	assert_int_equal(hf_startups_status_wait(&startups, false, T0), 5 * HF_SECOND);
}

static void test_of_many_that_begin_together_each_waits_longer(void **state)
{
	struct hf_startups startups = {0};

	one_took(&startups, 12 * HF_SECOND, T0);
	begin_many(&startups, 31, T0);
	assert_int_equal(hf_startups_status_wait(&startups, true, T0), 17 * HF_SECOND);
	begin_many(&startups, 10, T0);
	assert_int_equal(hf_startups_status_wait(&startups, true, T0), 18 * HF_SECOND);
	assert_int_equal(hf_startups_status_wait(&startups, false, T0), 9 * HF_SECOND);
}

static void test_there_is_a_longest_wait(void **state)
{
	struct hf_startups startups = {0};

	begin_many(&startups, 100000, T0);
	assert_int_equal(hf_startups_status_wait(&startups, true, T0), 60 * HF_SECOND);
	assert_int_equal(hf_startups_status_wait(&startups, false, T0), 30 * HF_SECOND);
}

static void test_more_load_counts_at_once_and_less_of_it_slowly(void **state)
{
	struct hf_startups startups = {0};

	one_took(&startups, 10 * HF_SECOND, T0);
	one_took(&startups, 20 * HF_SECOND, T0);
	assert_int_equal(startups.lately, 20 * HF_SECOND);
	one_took(&startups, 4 * HF_SECOND, T0);
	assert_int_equal(startups.lately, 16 * HF_SECOND);
}

static void test_what_was_given_up_says_nothing_of_how_long_it_takes(void **state)
{
	struct hf_startups startups = {0};

	hf_startups_begin(&startups, T0);
	hf_startups_end(&startups, T0, false, T0 + HF_SECOND);
	assert_int_equal(startups.count, 0);
	assert_int_equal(startups.lately, 0);
}

static void test_jobs_that_wait_for_machines_delay_no_other_job(void **state)
{
	struct hf_startups startups = {0};

	begin_many(&startups, 500, T0);
	hf_startups_begin(&startups, T0 + 60 * HF_SECOND);
	assert_int_equal(startups.count, 501);
	assert_int_equal(hf_startups_status_wait(&startups, true, T0 + 70 * HF_SECOND),
			 2 * HF_SECOND);
	assert_int_equal(startups.count, 1);
	/* These starts end long after they were last counted. */
	hf_startups_end(&startups, T0, false, T0 + HF_HOUR);
	assert_int_equal(startups.count, 0);
	hf_startups_begin(&startups, T0 + HF_HOUR);
	hf_startups_end(&startups, T0, false, T0 + HF_HOUR);
	assert_int_equal(startups.count, 1);
}

static void test_each_is_counted_until_it_ends(void **state)
{
	struct hf_startups startups = {0};

	for (int i = 0; i < 1000; i++)
		hf_startups_begin(&startups, T0 + i * 50 * HF_MS);
	assert_int_equal(startups.count, 1000);
	for (int i = 0; i < 1000; i++)
		hf_startups_end(&startups, T0 + i * 50 * HF_MS, true, T0 + 50 * HF_SECOND);
	assert_int_equal(startups.count, 0);
}

static void test_changes_gather_for_a_small_part_of_the_way(void **state)
{
	struct hf_startups startups = {0};

	one_took(&startups, 8 * HF_SECOND, T0);
	begin_many(&startups, 100, T0);
	assert_int_equal(hf_startups_gather_time(&startups), 2 * HF_SECOND);
}

static void test_a_job_alone_on_its_way_is_looked_at_soon(void **state)
{
	struct hf_startups startups = {0};

	one_took(&startups, HF_MINUTE, T0);
	hf_startups_begin(&startups, T0);
	assert_int_equal(hf_startups_gather_time(&startups), 50 * HF_MS);
	one_took(&startups, HF_MINUTE, T0);
	begin_many(&startups, 1000, T0);
	assert_int_equal(hf_startups_gather_time(&startups), 10 * HF_SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_long_as_nothing_is_known_a_lone_job_waits_shortly),
		cmocka_unit_test(test_jobs_wait_half_as_long_again_as_others_took),
		cmocka_unit_test(test_a_second_is_the_least),
		cmocka_unit_test(test_a_start_that_would_wait_in_vain_is_written_soon),
		cmocka_unit_test(test_of_many_that_begin_together_each_waits_longer),
		cmocka_unit_test(test_there_is_a_longest_wait),
		cmocka_unit_test(test_more_load_counts_at_once_and_less_of_it_slowly),
		cmocka_unit_test(test_what_was_given_up_says_nothing_of_how_long_it_takes),
		cmocka_unit_test(test_jobs_that_wait_for_machines_delay_no_other_job),
		cmocka_unit_test(test_each_is_counted_until_it_ends),
		cmocka_unit_test(test_changes_gather_for_a_small_part_of_the_way),
		cmocka_unit_test(test_a_job_alone_on_its_way_is_looked_at_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
