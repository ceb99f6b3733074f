/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/straggle.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define RANKS 16

static struct hf_health_rank_memory memory[RANKS];
static struct hf_health_rank_view views[RANKS];
static char names[RANKS][16];
static struct hf_arena *arena;
static struct hf_health_job_verdict job;
static hf_time now;
static uint64_t step, seed;

static int setup(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	memset(views, 0, sizeof(views));
	arena = hf_arena_create((size_t)1 << 20);
	now = 1000 * HF_SECOND;
	step = 0;
	seed = 1;
	for (int i = 0; i < RANKS; i++) {
		snprintf(names[i], sizeof(names[i]), "rank-%d", i);
		views[i] = (struct hf_health_rank_view){
			.name = names[i], .group = "worker", .memory = &memory[i]};
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = hf_arena_destroy(arena);
	return 0;
}

/* Uniform between 0 and below. */
static uint64_t noise(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

static void judge(void)
{
	hf_arena_reset(arena);
	hf_health_job_judge(views, RANKS, now, arena, &job);
	for (int i = 0; i < RANKS; i++) {
		views[i].judged_window = job.ranks[i].judged_window;
		views[i].slow_windows = job.ranks[i].slow_windows;
	}
}

/* One step of every rank: all ranks take as long as the slowest. */
static void train(const uint64_t own[RANKS])
{
	uint64_t longest = 0;

	for (int i = 0; i < RANKS; i++)
		longest = own[i] > longest ? own[i] : longest;
	step++;
	now += (hf_time)longest * HF_US;
	for (int i = 0; i < RANKS; i++)
		hf_health_rank_report(&memory[i],
				      &(struct hf_health_report){.attempt = 1,
								 .step = step,
								 .own_us = own[i],
								 .wait_us = longest - own[i],
								 .at = now});
}

/* Steps with a second of work, 5 % of noise, and one rank slower by so many hundredths. */
static void train_steps(int steps, int slow, uint64_t percent)
{
	while (steps-- > 0) {
		uint64_t own[RANKS];

		for (int i = 0; i < RANKS; i++)
			own[i] = 1000000 + noise(50000);
		if (slow >= 0)
			own[slow] = own[slow] * percent / 100;
		train(own);
		judge();
	}
}

static void a_slow_rank_is_found_after_two_windows(void **state)
{
	(void)state;
	train_steps(HF_HEALTH_SKIP_STEPS + HF_HEALTH_WINDOW_STEPS, 3, 130);
	assert_int_equal(job.stragglers, 0);
	assert_int_equal(job.ranks[3].slow_windows, 1);
	train_steps(HF_HEALTH_WINDOW_STEPS, 3, 130);
	assert_int_equal(job.stragglers, 1);
	assert_true(job.ranks[3].straggler);
	assert_false(job.ranks[3].strong);
	assert_in_range(job.ranks[3].score_permille, 1250, 1350);
	assert_false(job.slow);
}

static void twice_as_slow_is_strong(void **state)
{
	(void)state;
	train_steps(HF_HEALTH_SKIP_STEPS + 2 * HF_HEALTH_WINDOW_STEPS, 3, 250);
	assert_true(job.ranks[3].strong);
}

static void a_rank_that_recovers_is_no_straggler(void **state)
{
	(void)state;
	train_steps(HF_HEALTH_SKIP_STEPS + HF_HEALTH_WINDOW_STEPS, 3, 130);
	train_steps(HF_HEALTH_WINDOW_STEPS, -1, 100);
	train_steps(HF_HEALTH_WINDOW_STEPS, 3, 130);
	assert_int_equal(job.stragglers, 0);
}

static void noise_alone_blames_no_rank(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		train_steps(HF_HEALTH_WINDOW_STEPS, -1, 100);
		assert_int_equal(job.stragglers, 0);
	}
	assert_false(job.slow);
}

/* Ranks of different positions do different work, and are not compared. */
static void only_peers_are_compared(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		views[i].group = "last stage";
	for (int s = 0; s < 60; s++) {
		uint64_t own[RANKS];

		for (int i = 0; i < RANKS; i++)
			own[i] = (i < 4 ? 2000000 : 1000000) + noise(50000);
		train(own);
		judge();
	}
	assert_int_equal(job.stragglers, 0);
	/* Two have no middle. */
	views[0].group = views[1].group = "pair";
	judge();
	assert_int_equal(job.ranks[0].score_permille, 0);
}

static void a_job_that_slows_down_together_has_no_straggler(void **state)
{
	(void)state;
	train_steps(HF_HEALTH_SKIP_STEPS + 6 * HF_HEALTH_WINDOW_STEPS, -1, 100);
	assert_false(job.slow);
	for (int s = 0; s < HF_HEALTH_WINDOW_STEPS; s++) {
		uint64_t own[RANKS];

		for (int i = 0; i < RANKS; i++)
			own[i] = 1150000 + noise(50000);
		train(own);
		judge();
	}
	assert_true(job.slow);
	assert_int_equal(job.stragglers, 0);
}

static void checkpoints_and_first_steps_are_left_out(void **state)
{
	struct hf_health_rank_memory *m = &memory[0];

	(void)state;
	for (uint64_t i = 1; i <= 100; i++)
		hf_health_rank_report(m, &(struct hf_health_report){.step = i,
								    .own_us = 9000000,
								    .phase = HF_HEALTH_OTHER_PHASE,
								    .at = now});
	assert_int_equal(m->window, 0);
	for (uint64_t i = 101; i < 101 + HF_HEALTH_SKIP_STEPS; i++)
		hf_health_rank_report(
			m, &(struct hf_health_report){.step = i, .own_us = 9000000, .at = now});
	assert_int_equal(m->steps, 0);
	assert_int_equal(m->longest_us, 0);
}

static void old_and_repeated_reports_count_once(void **state)
{
	struct hf_health_rank_memory *m = &memory[0];
	struct hf_health_report report = {.attempt = 2, .step = 10, .own_us = 1, .at = now};

	(void)state;
	hf_health_rank_report(m, &report);
	report.at += HF_SECOND;
	hf_health_rank_report(m, &report);
	assert_int_equal(m->skipped, 1);
	assert_int_equal(m->reported_at, now + HF_SECOND);
	assert_int_equal(m->advanced_at, now);
	report.attempt = 1;
	report.step = 99;
	hf_health_rank_report(m, &report);
	assert_int_equal(m->step, 10);
	report.attempt = 3;
	report.step = 1;
	hf_health_rank_report(m, &report);
	assert_int_equal(m->step, 1);
	report.step = 2;
	report.own_us = report.wait_us = UINT64_MAX;
	for (int i = 0; i < 100; i++, report.step++)
		hf_health_rank_report(m, &report);
	judge();
}

static void say(struct hf_health_rank_memory *m, uint64_t attempt, uint64_t step_of)
{
	now += HF_SECOND;
	(void)hf_health_rank_report(
		m, &(struct hf_health_report){.attempt = attempt, .step = step_of, .at = now});
}

static void a_rank_that_goes_back_to_its_checkpoint_begins_anew(void **state)
{
	struct hf_health_rank_memory *m = &memory[0];

	(void)state;
	for (uint64_t i = 100; i <= 140; i++)
		say(m, 0, i);
	assert_true(m->window > 0);
	say(m, 0, 101);
	/* A sign of life repeats the last step. */
	say(m, 0, 101);
	say(m, 0, 102);
	assert_int_equal(m->step, 140);
	say(m, 0, 103);
	assert_int_equal(m->step, 103);
	assert_int_equal(m->window, 0);
	assert_int_equal(m->advanced_at, now);
	say(m, 0, 104);
	assert_int_equal(m->step, 104);
}

static void a_rank_with_a_new_attempt_begins_anew(void **state)
{
	struct hf_health_rank_memory *m = &memory[0];

	(void)state;
	say(m, 3, 50);
	say(m, 1, 60);
	say(m, 2, 61);
	say(m, 1, 62);
	say(m, 1, 63);
	assert_int_equal(m->attempt, 3);
	say(m, 1, 64);
	assert_int_equal(m->attempt, 1);
	assert_int_equal(m->step, 64);
}

/* Ranks without a number that hang repeat their last steps; they have not gone back. */
static void a_repeated_report_is_no_return_to_a_checkpoint(void **state)
{
	struct hf_health_rank_memory *m = &memory[0];
	hf_time advanced;

	(void)state;
	say(m, 0, 100);
	say(m, 0, 101);
	advanced = m->advanced_at;
	for (int i = 0; i < 50; i++) {
		say(m, 0, 100);
		say(m, 0, 100);
		say(m, 0, 101);
		say(m, 0, 101);
	}
	assert_int_equal(m->step, 101);
	assert_int_equal(m->advanced_at, advanced);
}

static void the_slower_of_two_processes_does_not_undo_the_faster(void **state)
{
	struct hf_health_rank_memory *m = &memory[0];

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		say(m, 0, 200 + i);
		say(m, 0, 100 + i);
	}
	assert_int_equal(m->step, 299);
	assert_true(m->window > 5);
}

static void a_hang_is_no_step_of_anybody_for_long(void **state)
{
	(void)state;
	train_steps(30, -1, 100);
	now += 119 * HF_SECOND;
	judge();
	assert_false(job.hung);
	assert_int_equal(job.lost, RANKS);
	now += HF_SECOND;
	judge();
	assert_true(job.hung);
	assert_int_equal(job.hung_since, now - 120 * HF_SECOND);
	/* A checkpoint may take longer. */
	memory[5].phase = HF_HEALTH_OTHER_PHASE;
	judge();
	assert_false(job.hung);
	assert_true(job.wake_at > now);
}

static void long_steps_make_long_hangs(void **state)
{
	uint64_t own[RANKS];

	(void)state;
	for (int i = 0; i < RANKS; i++)
		own[i] = 100 * 1000000;
	for (int s = 0; s < 10; s++)
		train(own);
	now += 499 * HF_SECOND;
	judge();
	assert_false(job.hung);
	now += HF_SECOND;
	judge();
	assert_true(job.hung);
}

static void a_rank_that_never_reported_is_neither_lost_nor_hung(void **state)
{
	(void)state;
	judge();
	assert_int_equal(job.lost, 0);
	assert_false(job.hung || job.slow);
	assert_int_equal(job.wake_at, HF_TIME_NEVER);
	hf_health_job_judge(NULL, 0, now, arena, &job);
	assert_int_equal(job.ranks_len, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_rank_is_found_after_two_windows),
		TEST(twice_as_slow_is_strong),
		TEST(a_rank_that_recovers_is_no_straggler),
		TEST(noise_alone_blames_no_rank),
		TEST(only_peers_are_compared),
		TEST(a_job_that_slows_down_together_has_no_straggler),
		TEST(checkpoints_and_first_steps_are_left_out),
		TEST(old_and_repeated_reports_count_once),
		TEST(a_rank_that_goes_back_to_its_checkpoint_begins_anew),
		TEST(a_rank_with_a_new_attempt_begins_anew),
		TEST(a_repeated_report_is_no_return_to_a_checkpoint),
		TEST(the_slower_of_two_processes_does_not_undo_the_faster),
		TEST(a_hang_is_no_step_of_anybody_for_long),
		TEST(long_steps_make_long_hangs),
		TEST(a_rank_that_never_reported_is_neither_lost_nor_hung),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
