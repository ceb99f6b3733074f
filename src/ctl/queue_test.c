/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "ctl/queue.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each start of a key is recorded with the second of the start: "a@0 b@1". */
struct bench {
	struct hf_loop *loop;
	struct hf_queue *queue;
	char trace[4096];
	size_t len;
	bool done_at_once;
	void (*also)(struct bench *bench, const char *key); /* called inside run */
};

static void run_key(void *arg, const char *key)
{
	struct bench *bench = arg;
	int ms = (int)(hf_loop_mono(bench->loop) / HF_MS);

	bench->len += (size_t)snprintf(bench->trace + bench->len, sizeof(bench->trace) - bench->len,
				       "%s%s@%d", bench->len > 0 ? " " : "", key, ms);
	assert_true(bench->len < sizeof(bench->trace));
	if (bench->also != NULL)
		bench->also(bench, key);
	if (bench->done_at_once)
		hf_queue_done(bench->queue, key);
}

static void make_queue(struct bench *bench, size_t keys_max, size_t running_max)
{
	struct hf_queue_options options = {.loop = bench->loop,
					   .keys_max = keys_max,
					   .running_max = running_max,
					   .run = run_key,
					   .arg = bench};

	hf_queue_destroy(bench->queue);
	bench->queue = hf_queue_create(&options);
}

static int setup(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	bench->loop = hf_loop_create_virtual(0);
	make_queue(bench, 0, 0);
	bench->done_at_once = true;
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hf_queue_destroy(bench->queue);
	hf_loop_destroy(bench->loop);
	free(bench);
	return 0;
}

static void test_keys_run_in_the_order_added_and_from_the_loop(void **state)
{
	struct bench *bench = *state;

	hf_queue_add(bench->queue, "b");
	hf_queue_add(bench->queue, "a");
	hf_queue_add(bench->queue, "c");
	assert_string_equal(bench->trace, "");
	assert_int_equal(hf_queue_waiting(bench->queue), 3);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "b@0 a@0 c@0");
	assert_int_equal(hf_queue_waiting(bench->queue), 0);
}

static void test_keys_added_behind_run_after_the_others(void **state)
{
	struct bench *bench = *state;

	make_queue(bench, 0, 1);
	bench->done_at_once = false;
	hf_queue_add_behind(bench->queue, "new-1");
	hf_queue_add_behind(bench->queue, "new-2");
	hf_queue_add_behind(bench->queue, "new-3");
	hf_loop_run(bench->loop);
	hf_queue_add(bench->queue, "known");
	hf_queue_add(bench->queue, "new-2"); /* the key is waiting already */
	assert_int_equal(hf_queue_waiting(bench->queue), 3);
	hf_queue_done(bench->queue, "new-1");
	hf_loop_run(bench->loop);
	hf_queue_done(bench->queue, "known");
	hf_loop_run(bench->loop);
	hf_queue_done(bench->queue, "new-2");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "new-1@0 known@0 new-2@0 new-3@0");
	hf_queue_done(bench->queue, "new-3");
}

static void test_a_key_waits_at_most_once(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < 5; i++)
		hf_queue_add(bench->queue, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0");
	assert_int_equal(hf_queue_stats(bench->queue)->adds, 1);
}

static void test_a_key_added_while_it_runs_runs_again_afterwards(void **state)
{
	struct bench *bench = *state;

	bench->done_at_once = false;
	hf_queue_add(bench->queue, "a");
	hf_loop_run(bench->loop);
	hf_queue_add(bench->queue, "a");
	hf_queue_add(bench->queue, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0");
	assert_int_equal(hf_queue_running(bench->queue), 1);
	hf_queue_done(bench->queue, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0 a@0");
	assert_int_equal(hf_queue_stats(bench->queue)->adds, 2);
	hf_queue_done(bench->queue, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0 a@0");
	assert_int_equal(hf_queue_running(bench->queue), 0);
}

static void test_no_more_keys_run_at_once_than_allowed(void **state)
{
	struct bench *bench = *state;

	make_queue(bench, 0, 2);
	bench->done_at_once = false;
	hf_queue_add(bench->queue, "a");
	hf_queue_add(bench->queue, "b");
	hf_queue_add(bench->queue, "c");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0 b@0");
	hf_queue_done(bench->queue, "b");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0 b@0 c@0");
}

static void test_of_two_delays_the_earlier_wins(void **state)
{
	struct bench *bench = *state;

	hf_queue_add_after(bench->queue, "a", 50 * HF_MS);
	hf_queue_add_after(bench->queue, "a", 20 * HF_MS);
	hf_queue_add_after(bench->queue, "a", 90 * HF_MS);
	assert_int_equal(hf_queue_due(bench->queue, "a"), 20 * HF_MS);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@20");
	assert_int_equal(hf_queue_due(bench->queue, "a"), HF_TIME_NEVER);
}

static void test_a_plain_add_overtakes_a_delay_and_cancels_it(void **state)
{
	struct bench *bench = *state;

	hf_queue_add_after(bench->queue, "a", 50 * HF_MS);
	hf_queue_add(bench->queue, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0");
}

static void test_a_delay_of_a_waiting_key_adds_nothing(void **state)
{
	struct bench *bench = *state;

	hf_queue_add(bench->queue, "a");
	hf_queue_add_after(bench->queue, "a", 50 * HF_MS);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0");
}

static void delay_from_inside(struct bench *bench, const char *key)
{
	if (bench->len < 9)
		hf_queue_add_after(bench->queue, key, 30 * HF_MS);
}

static void test_a_run_may_ask_for_the_next_one_later(void **state)
{
	struct bench *bench = *state;

	bench->also = delay_from_inside;
	hf_queue_add(bench->queue, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0 a@30 a@60");
}

static void test_a_delay_that_ends_while_the_key_runs_makes_it_run_again(void **state)
{
	struct bench *bench = *state;

	bench->done_at_once = false;
	hf_queue_add(bench->queue, "a");
	hf_loop_run(bench->loop);
	hf_queue_add_after(bench->queue, "a", 10 * HF_MS);
	hf_loop_run_until(bench->loop, 40 * HF_MS);
	assert_string_equal(bench->trace, "a@0");
	hf_queue_done(bench->queue, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0 a@40");
}

static void test_retries_wait_5_ms_doubled_each_time_until_forgotten(void **state)
{
	struct bench *bench = *state;

	for (unsigned n = 0; n < 4; n++) {
		assert_int_equal(hf_queue_failures(bench->queue, "a"), n);
		hf_queue_retry(bench->queue, "a");
		assert_int_equal(hf_queue_due(bench->queue, "a") - hf_loop_mono(bench->loop),
				 (5 << n) * HF_MS);
		hf_loop_run(bench->loop);
	}
	assert_string_equal(bench->trace, "a@5 a@15 a@35 a@75");
	hf_queue_forget(bench->queue, "a");
	assert_int_equal(hf_queue_failures(bench->queue, "a"), 0);
	hf_queue_retry(bench->queue, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@5 a@15 a@35 a@75 a@80");
	assert_int_equal(hf_queue_stats(bench->queue)->retries, 5);
}

static void test_retries_wait_two_minutes_at_most(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < 40; i++) {
		hf_queue_retry(bench->queue, "a");
		hf_loop_run(bench->loop);
		bench->len = 0;
	}
	hf_queue_retry(bench->queue, "a");
	assert_int_equal(hf_queue_due(bench->queue, "a") - hf_loop_mono(bench->loop),
			 120 * HF_SECOND);
}

static void test_a_full_queue_refuses_new_keys_and_keeps_the_old(void **state)
{
	struct bench *bench = *state;

	make_queue(bench, 2, 0);
	assert_true(hf_queue_add(bench->queue, "a"));
	assert_true(hf_queue_add_after(bench->queue, "b", HF_MS));
	assert_false(hf_queue_add(bench->queue, "c"));
	assert_false(hf_queue_add_after(bench->queue, "c", HF_MS));
	assert_false(hf_queue_retry(bench->queue, "c"));
	assert_true(hf_queue_add(bench->queue, "a"));
	assert_int_equal(hf_queue_stats(bench->queue)->dropped, 3);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0 b@1");
	assert_true(hf_queue_add(bench->queue, "c"));
}

static void test_a_paused_queue_starts_nothing(void **state)
{
	struct bench *bench = *state;

	hf_queue_add(bench->queue, "a");
	hf_queue_pause(bench->queue);
	hf_queue_add(bench->queue, "b");
	hf_queue_add_after(bench->queue, "c", HF_MS);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "");
	assert_int_equal(hf_queue_waiting(bench->queue), 3);
}

static void test_a_long_queue_lets_timers_run_in_between(void **state)
{
	struct bench *bench = *state;
	char key[16];

	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		hf_queue_add(bench->queue, key);
	}
	hf_loop_run(bench->loop);
	assert_true(hf_str_has_prefix(bench->trace, "k0@0 k1@0"));
	assert_true(hf_str_has_suffix(bench->trace, " k198@0 k199@0"));
}

static void test_destroy_with_keys_waiting_delayed_and_running_leaks_nothing(void **state)
{
	struct bench *bench = *state;

	bench->done_at_once = false;
	hf_queue_add(bench->queue, "a");
	hf_loop_run(bench->loop);
	hf_queue_add(bench->queue, "a");
	hf_queue_add(bench->queue, "b");
	hf_queue_add_after(bench->queue, "c", HF_MS);
	bench->queue = hf_queue_destroy(bench->queue);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a@0");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static hf_time waited_last;

static void on_waited(void *arg, hf_time span)
{
	waited_last = span;
}

static void run_and_end(void *arg, const char *key)
{
	hf_queue_done(*(struct hf_queue **)arg, key);
}

static void test_the_time_a_key_was_ready_is_reported(void **state)
{
	struct hf_loop *loop = hf_loop_create_virtual(0);
	struct hf_queue *queue = NULL;
	struct hf_queue_options options = {
		.loop = loop, .run = run_and_end, .waited = on_waited, .arg = &queue, .seed = 1};

	queue = hf_queue_create(&options);
	waited_last = -1;
	hf_queue_add(queue, "a");
	hf_loop_freeze(loop, 3 * HF_SECOND);
	hf_loop_run_ready(loop);
	assert_int_equal(waited_last, 3 * HF_SECOND);
	/* The delay of hf_queue_add_after does not count as waiting. */
	hf_queue_add_after(queue, "b", HF_MINUTE);
	hf_loop_run_until(loop, 2 * HF_MINUTE);
	assert_int_equal(waited_last, 0);
	hf_queue_destroy(queue);
	hf_loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_keys_run_in_the_order_added_and_from_the_loop),
		T(test_keys_added_behind_run_after_the_others),
		T(test_a_key_waits_at_most_once),
		T(test_a_key_added_while_it_runs_runs_again_afterwards),
		T(test_no_more_keys_run_at_once_than_allowed),
		T(test_of_two_delays_the_earlier_wins),
		T(test_a_plain_add_overtakes_a_delay_and_cancels_it),
		T(test_a_delay_of_a_waiting_key_adds_nothing),
		T(test_a_run_may_ask_for_the_next_one_later),
		T(test_a_delay_that_ends_while_the_key_runs_makes_it_run_again),
		T(test_retries_wait_5_ms_doubled_each_time_until_forgotten),
		T(test_retries_wait_two_minutes_at_most),
		T(test_a_full_queue_refuses_new_keys_and_keeps_the_old),
		T(test_a_paused_queue_starts_nothing),
		T(test_a_long_queue_lets_timers_run_in_between),
		T(test_destroy_with_keys_waiting_delayed_and_running_leaks_nothing),
		cmocka_unit_test(test_the_time_a_key_was_ready_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
