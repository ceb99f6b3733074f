/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of tasks and timers on the virtual back end; both back ends share this code. Each object
 * appends its letter to a trace, which shows the order of the callbacks. */
#include "harness/test.h"
#include "loop/loop.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define TRACE_MAX 256

struct bench {
	struct hf_loop *loop;
	char trace[TRACE_MAX];
	size_t len;
};

struct thing {
	struct bench *bench;
	char letter;
	struct hf_task *task;
	struct hf_timer *timer;
	void (*also)(struct thing *thing); /* called after the letter was appended */
	struct thing *other;
	int left; /* how often rearm_while_left arms the timer again */
};

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	bench->loop = hf_loop_create_virtual(1000 * HF_SECOND);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_loop_destroy(bench->loop);
	free(bench);
	return 0;
}

static void on_thing(void *arg)
{
	struct thing *thing = arg;

	assert_true(thing->bench->len + 1 < TRACE_MAX);
	thing->bench->trace[thing->bench->len++] = thing->letter;
	if (thing->also)
		thing->also(thing);
}

static void thing_init(struct thing *thing, struct bench *bench, char letter)
{
	memset(thing, 0, sizeof(*thing));
	thing->bench = bench;
	thing->letter = letter;
	thing->task = hf_task_create(bench->loop, on_thing, thing);
	thing->timer = hf_timer_create(bench->loop, on_thing, thing);
}

static void thing_release(struct thing *thing)
{
	thing->task = hf_task_destroy(thing->task);
	thing->timer = hf_timer_destroy(thing->timer);
}

static void things_init(struct thing *things, size_t count, struct bench *bench)
{
	for (size_t i = 0; i < count; i++)
		thing_init(&things[i], bench, (char)('a' + i));
}

static void things_release(struct thing *things, size_t count)
{
	for (size_t i = 0; i < count; i++)
		thing_release(&things[i]);
}

static void tasks_run_in_the_order_posted(void **state)
{
	struct bench *bench = *state;
	struct thing t[3];

	things_init(t, 3, bench);
	hf_task_post(t[2].task);
	hf_task_post(t[0].task);
	hf_task_post(t[1].task);
	assert_string_equal(bench->trace, ""); /* posting a task does not run it */
	assert_true(hf_loop_run_ready(bench->loop));
	assert_string_equal(bench->trace, "cab");
	assert_false(hf_loop_run_ready(bench->loop));
	things_release(t, 3);
}

static void posting_twice_runs_once_and_cancel_undoes(void **state)
{
	struct bench *bench = *state;
	struct thing t[3];

	things_init(t, 3, bench);
	hf_task_post(t[0].task);
	hf_task_post(t[1].task);
	hf_task_post(t[0].task);
	hf_task_post(t[2].task);
	assert_true(hf_task_posted(t[1].task));
	hf_task_cancel(t[1].task);
	hf_task_cancel(t[1].task);
	assert_false(hf_task_posted(t[1].task));
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "ac");
	assert_false(hf_task_posted(t[0].task));
	things_release(t, 3);
}

static void post_other(struct thing *thing)
{
	hf_task_post(thing->other->task);
}

static void tasks_posted_by_timers_run_before_the_next_timer(void **state)
{
	struct bench *bench = *state;
	struct thing t[3];

	things_init(t, 3, bench);
	t[0].also = post_other;
	t[0].other = &t[2];
	hf_timer_arm(t[0].timer, HF_SECOND);
	hf_timer_arm(t[1].timer, HF_SECOND);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "acb");
	things_release(t, 3);
}

static void timers_run_by_due_time_and_equal_ones_as_armed(void **state)
{
	struct bench *bench = *state;
	struct thing t[6];

	things_init(t, 6, bench);
	hf_timer_arm(t[0].timer, 5 * HF_SECOND);
	hf_timer_arm(t[1].timer, 3 * HF_SECOND);
	hf_timer_arm(t[2].timer, 5 * HF_SECOND);
	hf_timer_arm(t[3].timer, 0);
	hf_timer_arm(t[4].timer, -HF_HOUR);
	hf_timer_arm(t[5].timer, 3 * HF_SECOND + 1);
	hf_timer_arm(t[0].timer, 5 * HF_SECOND); /* moved behind timer c */
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "debfca");
	assert_int_equal(hf_loop_mono(bench->loop), 5 * HF_SECOND);
	things_release(t, 6);
}

static void the_clock_jumps_and_the_wall_may_step(void **state)
{
	struct bench *bench = *state;
	struct thing a;

	thing_init(&a, bench, 'a');
	hf_timer_arm(a.timer, HF_DAY);
	assert_int_equal(hf_timer_due(a.timer), HF_DAY);
	assert_true(hf_loop_run_until(bench->loop, HF_HOUR));
	assert_int_equal(hf_loop_mono(bench->loop), HF_HOUR);
	assert_int_equal(hf_loop_wall(bench->loop), 1000 * HF_SECOND + HF_HOUR);
	hf_loop_step_wall(bench->loop, -2 * HF_HOUR);
	assert_int_equal(hf_loop_wall(bench->loop), 1000 * HF_SECOND - HF_HOUR);
	assert_int_equal(hf_loop_mono(bench->loop), HF_HOUR);
	assert_string_equal(bench->trace, "");
	assert_true(hf_loop_run_until(bench->loop, HF_DAY)); /* up to and including HF_DAY */
	assert_string_equal(bench->trace, "a");
	/* The due time is in the past, so the clock does not move. */
	assert_true(hf_loop_run_until(bench->loop, HF_HOUR));
	assert_int_equal(hf_loop_mono(bench->loop), HF_DAY);
	thing_release(&a);
}

static void rearm_while_left(struct thing *thing)
{
	if (thing->left-- > 0)
		hf_timer_arm(thing->timer, HF_SECOND);
}

static void a_timer_may_arm_itself(void **state)
{
	struct bench *bench = *state;
	struct thing a;

	thing_init(&a, bench, 'a');
	a.also = rearm_while_left;
	a.left = 3;
	hf_timer_arm(a.timer, HF_SECOND);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "aaaa");
	assert_int_equal(hf_loop_mono(bench->loop), 4 * HF_SECOND);
	thing_release(&a);
}

static void arming_at_never_disarms(void **state)
{
	struct bench *bench = *state;
	struct thing a;

	thing_init(&a, bench, 'a');
	hf_timer_arm(a.timer, HF_SECOND);
	assert_true(hf_timer_armed(a.timer));
	hf_timer_arm(a.timer, HF_TIME_NEVER);
	assert_false(hf_timer_armed(a.timer));
	assert_int_equal(hf_timer_due(a.timer), HF_TIME_NEVER);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "");
	assert_int_equal(hf_loop_mono(bench->loop), 0);
	thing_release(&a);
}

static void destroy_both(struct thing *thing)
{
	thing_release(thing);
	if (thing->other)
		thing_release(thing->other);
}

static void a_callback_may_destroy_itself_and_others(void **state)
{
	struct bench *bench = *state;
	struct thing t[5];

	things_init(t, 5, bench);
	t[0].also = destroy_both;
	t[0].other = &t[1];
	t[2].also = destroy_both;
	t[2].other = &t[3];
	hf_task_post(t[0].task);
	hf_task_post(t[1].task); /* destroyed before it runs */
	hf_timer_arm(t[2].timer, HF_SECOND);
	hf_timer_arm(t[3].timer, HF_SECOND);
	hf_timer_arm(t[4].timer, HF_SECOND);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "ace");
	thing_release(&t[4]);
}

static void stop_loop(struct thing *thing)
{
	hf_loop_stop(thing->bench->loop);
}

static void stop_ends_the_run_before_another_callback(void **state)
{
	struct bench *bench = *state;
	struct thing t[3];

	things_init(t, 3, bench);
	t[0].also = stop_loop;
	hf_timer_arm(t[0].timer, HF_SECOND);
	hf_timer_arm(t[1].timer, HF_SECOND);
	hf_timer_arm(t[2].timer, HF_MINUTE);
	assert_false(hf_loop_run_until(bench->loop, HF_HOUR));
	assert_string_equal(bench->trace, "a");
	assert_int_equal(hf_loop_mono(bench->loop), HF_SECOND);
	hf_loop_stop(bench->loop); /* A stop outside of a run makes the next run return at once. */
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "a");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->trace, "abc");
	things_release(t, 3);
}

static void the_heap_agrees_with_a_sort(void **state)
{
	enum { COUNT = 200 };
	struct bench *bench = *state;
	struct hf_timer *timers[COUNT];
	struct thing things[COUNT];
	uint64_t x = 88172645463325252ULL;

	memset(things, 0, sizeof(things));
	for (int i = 0; i < COUNT; i++) {
		things[i].bench = bench;
		things[i].letter = '.';
		timers[i] = hf_timer_create(bench->loop, on_thing, &things[i]);
	}
	for (int round = 0; round < 2000; round++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		struct hf_timer *timer = timers[x % COUNT];
		if ((x >> 20) % 3 == 0)
			hf_timer_disarm(timer);
		else
			hf_timer_arm(timer, (hf_time)((x >> 24) % 1000));
		/* In every tenth round the loop runs up to its first due timer. A scan of all
		 * timers must find the same timer. */
		if (round % 10 != 9)
			continue;
		hf_time first = HF_TIME_NEVER;
		for (int i = 0; i < COUNT; i++)
			first = hf_timer_due(timers[i]) < first ? hf_timer_due(timers[i]) : first;
		if (first == HF_TIME_NEVER)
			continue;
		bench->len = 0;
		assert_true(hf_loop_run_until(bench->loop, first));
		assert_true(bench->len > 0);
	}
	for (int i = 0; i < COUNT; i++)
		hf_timer_destroy(timers[i]);
}

static void ignore_io(void *arg, unsigned events)
{
}

static void ignore_signal(void *arg, int signum)
{
}

static void the_virtual_loop_refuses_what_needs_a_kernel(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	struct hf_io *io = NULL;
	struct hf_signal *sig = NULL;

	assert_code(hf_io_create(bench->loop, 0, ignore_io, NULL, &io, &err), HF_E_UNSUPPORTED);
	assert_null(io);
	assert_code(hf_signal_create(bench->loop, 10, ignore_signal, NULL, &sig, &err),
		    HF_E_UNSUPPORTED);
	assert_null(sig);
	assert_null(hf_io_destroy(NULL));
	assert_null(hf_signal_destroy(NULL));
	assert_null(hf_task_destroy(NULL));
	assert_null(hf_timer_destroy(NULL));
	assert_null(hf_loop_destroy(NULL));
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(tasks_run_in_the_order_posted),
		UNIT(posting_twice_runs_once_and_cancel_undoes),
		UNIT(tasks_posted_by_timers_run_before_the_next_timer),
		UNIT(timers_run_by_due_time_and_equal_ones_as_armed),
		UNIT(the_clock_jumps_and_the_wall_may_step),
		UNIT(a_timer_may_arm_itself),
		UNIT(arming_at_never_disarms),
		UNIT(a_callback_may_destroy_itself_and_others),
		UNIT(stop_ends_the_run_before_another_callback),
		UNIT(the_heap_agrees_with_a_sort),
		UNIT(the_virtual_loop_refuses_what_needs_a_kernel),
	};
	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
