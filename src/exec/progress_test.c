/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT 1000

static char proc[64];
static struct hf_progress progress;

/* Writes the process's stat file of /proc, with this start time and state; started 0: removes it, as the process
 * is gone. */
static void is(pid_t pid, int started, char state)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d", proc, (int)pid);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid);
	(void)unlink(path);
	if (started == 0)
		return;
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%d (a b) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 1 1\n", (int)pid, state,
		started);
	fclose(file);
}

static int setup(void **state)
{
	snprintf(proc, sizeof(proc), "/tmp/hf-progress-XXXXXX");
	assert_non_null(mkdtemp(proc));
	memset(&progress, 0, sizeof(progress));
	for (pid_t pid = 10; pid < 13; pid++)
		is(pid, 100 + pid, 'S');
	return 0;
}

static int teardown(void **state)
{
	char path[128];

	for (pid_t pid = 10; pid < 13; pid++) {
		is(pid, 0, 'S');
		snprintf(path, sizeof(path), "%s/%d", proc, (int)pid);
		(void)rmdir(path);
	}
	return rmdir(proc);
}

static void take(pid_t pid, int32_t rank, uint64_t attempt, uint64_t step, int64_t now_ms)
{
	const struct hf_beat beat = {
		.has_step = true, .rank = rank, .attempt = attempt, .step = step, .total = 1000};

	hf_progress_take(&progress, proc, &beat, pid, now_ms);
}

static bool stalls(int64_t now_ms, int32_t rank)
{
	int32_t which;
	bool does = hf_progress_stalls(&progress, proc, now_ms, LIMIT, &which);

	assert_int_equal(which, does ? rank : -1);
	return does;
}

static void before_the_first_step_no_rank_stalls(void **state)
{
	assert_false(stalls(100 * LIMIT, -1));
}

static void the_same_step_again_is_no_progress(void **state)
{
	for (int64_t now = 5000; now <= 6000; now += 100)
		take(10, 0, 1, 7, now);
	assert_false(stalls(5999, -1));
	assert_true(stalls(6000, -1));
	take(10, 0, 1, 8, 6000);
	assert_false(stalls(6999, -1));
}

static void one_rank_does_not_advance_for_another(void **state)
{
	take(10, 0, 1, 1, 0);
	take(11, 1, 1, 1, 0);
	take(10, 0, 1, 2, 900);
	assert_false(stalls(999, -1));
	assert_true(stalls(1000, 1));
	take(11, 1, 1, 2, 1000);
	assert_false(stalls(1000, -1));
}

static void a_rank_that_has_ended_does_not_hang(void **state)
{
	take(10, 0, 1, 1, 0);
	take(11, 1, 1, 1, 0);
	take(10, 0, 1, 2, 900);
	is(11, 111, 'Z');
	assert_false(stalls(1000, -1));
	is(11, 0, 'S');
	assert_false(stalls(1000, -1));
	/* Its number is another's. */
	is(11, 999, 'S');
	assert_false(stalls(1000, -1));
	/* All ranks have ended and CMD waits for them for ever: that is a hang. */
	assert_true(stalls(1900, -1));
}

static void a_rank_that_is_done_may_wait_for_the_others(void **state)
{
	take(10, 0, 1, 1, 0);
	take(11, 1, 1, 1000, 0);
	take(10, 0, 1, 2, 900);
	assert_false(stalls(1000, -1));
}

static void a_rank_may_evaluate_while_the_others_train(void **state)
{
	struct hf_beat beat = {.has_step = true,
			       .rank = 1,
			       .attempt = 1,
			       .step = 1,
			       .phase = HF_HEALTH_OTHER_PHASE};

	take(10, 0, 1, 1, 0);
	hf_progress_take(&progress, proc, &beat, 11, 0);
	take(10, 0, 1, 2, 900);
	assert_false(stalls(1000, -1));
	/* The ranks that train may have to wait for the rank that evaluates. */
	assert_false(stalls(HF_PROGRESS_OTHER_MS - 1, -1));
	assert_true(stalls(HF_PROGRESS_OTHER_MS, 1));
}

static void a_rank_that_waited_for_an_evaluation_has_time_for_its_step(void **state)
{
	struct hf_beat beat = {.has_step = true, .rank = 1, .attempt = 1, .step = 1};

	beat.phase = HF_HEALTH_OTHER_PHASE;
	take(10, 0, 1, 1, 0);
	hf_progress_take(&progress, proc, &beat, 11, 0);
	assert_false(stalls(5000, -1));
	beat.phase = HF_HEALTH_TRAINING;
	beat.step = 2;
	hf_progress_take(&progress, proc, &beat, 11, 5500);
	assert_false(stalls(5999, -1));
	assert_true(stalls(6000, 0));
	take(10, 0, 1, 2, 6000);
	assert_false(stalls(6000, -1));
	/* Ranks do not wait for a rank outside training whose process has ended. */
	beat.phase = HF_HEALTH_OTHER_PHASE;
	hf_progress_take(&progress, proc, &beat, 11, 6000);
	assert_false(stalls(9000, -1));
	is(11, 0, 'S');
	assert_false(stalls(9999, -1));
	assert_true(stalls(10000, -1));
}

static void repeated_evaluations_give_no_rank_more_than_ten_minutes(void **state)
{
	struct hf_beat beat = {.has_step = true, .rank = 1, .attempt = 1};

	take(10, 0, 1, 1, 0);
	for (int64_t now = 0; now < HF_PROGRESS_OTHER_MS; now += 500) {
		beat.phase = ++beat.step % 2 != 0 ? HF_HEALTH_OTHER_PHASE : HF_HEALTH_TRAINING;
		hf_progress_take(&progress, proc, &beat, 11, now);
		assert_false(stalls(now, -1));
	}
	assert_true(stalls(HF_PROGRESS_OTHER_MS, 0));
}

static void a_rank_that_evaluates_for_ever_hides_no_hang_of_the_others(void **state)
{
	struct hf_beat beat = {.has_step = true, .rank = 1, .attempt = 1, .step = 1};

	beat.phase = HF_HEALTH_OTHER_PHASE;
	take(10, 0, 1, 5, 0);
	for (int64_t now = 0; now < HF_PROGRESS_OTHER_MS; now += 30000) {
		beat.step++;
		hf_progress_take(&progress, proc, &beat, 11, now);
		assert_false(stalls(now, -1));
	}
	assert_true(stalls(HF_PROGRESS_OTHER_MS, 0));
	/* Each has its own time. */
	take(10, 0, 1, 6, HF_PROGRESS_OTHER_MS);
	assert_false(stalls(HF_PROGRESS_OTHER_MS + LIMIT, -1));
}

static void a_rank_that_evaluates_alone_has_its_time(void **state)
{
	struct hf_beat beat = {.has_step = true, .attempt = 1, .step = 1};

	hf_progress_take(&progress, proc, &beat, 10, 0);
	beat.phase = HF_HEALTH_OTHER_PHASE;
	hf_progress_take(&progress, proc, &beat, 10, 500);
	assert_false(stalls(HF_PROGRESS_OTHER_MS - 1, -1));
	assert_true(stalls(HF_PROGRESS_OTHER_MS, -1));
}

static void all_that_are_done_may_take_their_time(void **state)
{
	take(10, 0, 1, 1000, 0);
	take(11, 1, 1, 1000, 0);
	assert_false(stalls(100 * LIMIT, -1));
	/* Rank 12 has ended before its last step, while the other rank has done all of its steps. */
	take(12, 2, 1, 999, 0);
	is(12, 0, 'S');
	assert_false(stalls(100 * LIMIT, -1));
	is(10, 0, 'S');
	is(11, 0, 'S');
	assert_true(stalls(100 * LIMIT, -1));
}

static void step_0_is_none(void **state)
{
	take(10, 0, 1, 0, 0);
	assert_false(stalls(100 * LIMIT, -1));
	take(10, 0, 1, 1, 100 * LIMIT);
	assert_false(stalls(101 * LIMIT - 1, -1));
	assert_true(stalls(101 * LIMIT, -1));
}

static void steps_long_after_a_signal_say_that_it_ended_nothing(void **state)
{
	assert_false(hf_progress_outlives(&progress, SIGHUP, -100000));
	take(10, 0, 1, 1, 29999);
	assert_false(hf_progress_outlives(&progress, SIGHUP, 0));
	take(10, 0, 1, 2, 30000);
	assert_true(hf_progress_outlives(&progress, SIGHUP, 0));
	assert_false(hf_progress_outlives(&progress, SIGTERM, 0));
	take(10, 0, 1, 3, 600000);
	assert_true(hf_progress_outlives(&progress, SIGTERM, 0));
}

static void a_process_that_gets_another_number_goes_on(void **state)
{
	take(10, 0, 1, 1, 0);
	take(11, 7, 1, 1, 0);
	take(11, 1, 1, 2, 900);
	take(10, 0, 1, 2, 900);
	assert_false(stalls(1899, -1));
}

static void a_rank_that_goes_back_to_its_checkpoint_advances_from_there(void **state)
{
	take(10, 0, 1, 500, 0);
	/* A rank that went back to a checkpoint without a new attempt advances again with its third step, as in
	 * the agent. */
	take(10, 0, 1, 401, 600);
	take(10, 0, 1, 402, 700);
	assert_true(stalls(1000, -1));
	take(10, 0, 1, 403, 800);
	assert_false(stalls(1799, -1));
	/* A new attempt at once. */
	take(10, 0, 2, 400, 1700);
	assert_false(stalls(2699, -1));
	assert_true(stalls(2700, -1));
}

static void ranks_that_say_an_old_step_again_have_not_gone_back(void **state)
{
	/* Two processes report without a rank's number, a step apart. */
	take(10, -1, 1, 8, 0);
	for (int64_t now = 100; now < 1000; now += 100)
		take(now % 200 != 0 ? 11 : 10, -1, 1, now % 200 != 0 ? 7 : 8, now);
	assert_true(stalls(1000, -1));
}

static void more_ranks_than_are_kept_take_the_place_of_those_that_ended(void **state)
{
	for (int32_t rank = 0; rank < HF_PROGRESS_RANKS_MAX; rank++)
		take(10, rank, 1, 1, 0);
	take(11, 500, 1, 1, 900);
	assert_true(stalls(1000, -1));
	is(10, 0, 'S');
	take(11, 500, 1, 1, 1900);
	assert_false(stalls(2899, -1));
	assert_true(stalls(2900, -1));
}

/* A further rank makes exec read /proc for each of 128 ranks, and a turn of the loop takes 1024 reports: so exec
 * searches once a second. */
static void for_a_rank_without_a_place_one_is_looked_for_once_a_second(void **state)
{
	for (int32_t rank = 0; rank < HF_PROGRESS_RANKS_MAX; rank++)
		take(10, rank, 1, 1, 0);
	take(11, 500, 1, 1, 100);
	is(10, 0, 'S');
	take(11, 500, 1, 2, 1099);
	take(11, 501, 1, 2, 1099);
	assert_int_equal(progress.ranks[0].number, 0);
	take(11, 500, 1, 3, 1100);
	take(11, 501, 1, 3, 1100);
	assert_int_equal(progress.ranks[0].number, 500);
	assert_int_equal(progress.ranks[1].number, 501);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(before_the_first_step_no_rank_stalls),
		TEST(the_same_step_again_is_no_progress),
		TEST(one_rank_does_not_advance_for_another),
		TEST(a_rank_that_has_ended_does_not_hang),
		TEST(a_rank_that_is_done_may_wait_for_the_others),
		TEST(a_rank_may_evaluate_while_the_others_train),
		TEST(a_rank_that_waited_for_an_evaluation_has_time_for_its_step),
		TEST(repeated_evaluations_give_no_rank_more_than_ten_minutes),
		TEST(a_rank_that_evaluates_for_ever_hides_no_hang_of_the_others),
		TEST(a_rank_that_evaluates_alone_has_its_time),
		TEST(all_that_are_done_may_take_their_time),
		TEST(step_0_is_none),
		TEST(steps_long_after_a_signal_say_that_it_ended_nothing),
		TEST(a_process_that_gets_another_number_goes_on),
		TEST(a_rank_that_goes_back_to_its_checkpoint_advances_from_there),
		TEST(ranks_that_say_an_old_step_again_have_not_gone_back),
		TEST(more_ranks_than_are_kept_take_the_place_of_those_that_ended),
		TEST(for_a_rank_without_a_place_one_is_looked_for_once_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
