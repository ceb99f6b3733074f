/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the libuv back end: clocks, fds and signals. loop_test.c covers tasks and timers. */
#include "harness/real_loop.h"
#include "loop/loop.h"

#include "base/mem.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct bench {
	struct hf_test_loop t;
	struct hf_loop *loop;
	int pair[2];
	struct hf_io *io, *io2;
	struct hf_signal *sig;
	struct hf_task *task;
	struct hf_timer *timer;
	unsigned events, calls;
	char trace[64];
	size_t len;
};

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	bench->loop = bench->t.loop;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bench->pair), 0);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_io_destroy(bench->io);
	hf_io_destroy(bench->io2);
	hf_signal_destroy(bench->sig);
	hf_task_destroy(bench->task);
	hf_timer_destroy(bench->timer);
	close(bench->pair[0]);
	if (bench->pair[1] >= 0)
		close(bench->pair[1]);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

static void on_io_stop(void *arg, unsigned events)
{
	struct bench *bench = arg;

	bench->events |= events;
	bench->calls++;
	hf_loop_stop(bench->loop);
}

static void on_stop(void *arg)
{
	struct bench *bench = arg;

	bench->calls++;
	hf_loop_stop(bench->loop);
}

static void watch_fd(struct bench *bench, int fd, hf_io_fn fn, unsigned events)
{
	struct hf_error err = {0};

	assert_ok(hf_io_create(bench->loop, fd, fn, bench, &bench->io, &err), &err);
	hf_io_want(bench->io, events);
}

static void a_run_with_nothing_to_do_ends_at_once(void **state)
{
	struct bench *bench = *state;

	hf_loop_run(bench->loop);
	/* hf_loop_run returns, because an io that wants no events does not keep the loop
	 * running. */
	watch_fd(bench, bench->pair[0], on_io_stop, 0);
	hf_loop_run(bench->loop);
	assert_int_equal(bench->calls, 0);
}

static void clocks_move_on_and_timers_do_not_fire_early(void **state)
{
	struct bench *bench = *state;
	hf_time before = hf_loop_mono(bench->loop);

	bench->timer = hf_timer_create(bench->loop, on_stop, bench);
	hf_timer_arm(bench->timer, 5 * HF_MS);
	hf_test_loop_run(&bench->t);
	assert_true(hf_loop_mono(bench->loop) - before >= 5 * HF_MS);
	assert_true(hf_loop_wall(bench->loop) > 1700000000 * HF_SECOND);
	assert_int_equal(bench->calls, 1);
}

static void readable_is_reported_until_the_bytes_are_read(void **state)
{
	struct bench *bench = *state;
	char c;

	watch_fd(bench, bench->pair[0], on_io_stop, HF_IO_READ);
	assert_int_equal(write(bench->pair[1], "x", 1), 1);
	hf_test_loop_run(&bench->t);
	hf_test_loop_run(&bench->t); /* the byte is still there, so the loop reports the fd again */
	assert_int_equal(bench->events, HF_IO_READ);
	assert_int_equal(bench->calls, 2);
	assert_int_equal(read(bench->pair[0], &c, 1), 1);
	hf_io_want(bench->io, HF_IO_READ | HF_IO_WRITE);
	bench->events = 0;
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->events, HF_IO_WRITE);
}

static void a_hangup_is_reported_without_reading(void **state)
{
	struct bench *bench = *state;

	watch_fd(bench, bench->pair[0], on_io_stop, HF_IO_HANGUP);
	assert_int_equal(write(bench->pair[1], "unread", 6), 6);
	close(bench->pair[1]);
	bench->pair[1] = -1;
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->events, HF_IO_HANGUP);
}

static void an_error_of_the_fd_is_reported_as_a_hangup(void **state)
{
	struct bench *bench = *state;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	watch_fd(bench, fds[1], on_io_stop, HF_IO_READ); /* a write end is never readable */
	close(fds[0]);
	hf_test_loop_run(&bench->t);
	assert_true((bench->events & HF_IO_HANGUP) != 0);
	bench->calls = 0;
	hf_io_want(bench->io, HF_IO_READ); /* after the error the fd must be watched anew */
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->calls, 1);
	bench->io = hf_io_destroy(bench->io);
	close(fds[1]);
}

static void destroy_own_io(void *arg, unsigned events)
{
	struct bench *bench = arg;

	bench->calls++;
	bench->io = hf_io_destroy(bench->io);
	bench->io2 = hf_io_destroy(bench->io2);
}

static void an_io_may_destroy_itself_and_others_and_then_nothing_is_watched(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};

	watch_fd(bench, bench->pair[0], destroy_own_io, HF_IO_WRITE);
	assert_ok(
		hf_io_create(bench->loop, bench->pair[1], destroy_own_io, bench, &bench->io2, &err),
		&err);
	hf_io_want(bench->io2, HF_IO_WRITE);
	/* Both fds are ready at once. The first callback destroys both watches. */
	hf_loop_run(bench->loop);
	assert_int_equal(bench->calls, 1);
	watch_fd(bench, bench->pair[0], destroy_own_io, HF_IO_WRITE); /* a new io on the same fd */
	hf_loop_run(bench->loop);
	assert_int_equal(bench->calls, 2);
}

static void an_invalid_fd_is_refused(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	struct hf_io *io = NULL;

	assert_code(hf_io_create(bench->loop, 9999, on_io_stop, bench, &io, &err), HF_E_IO);
	assert_null(io);
	assert_non_null(strstr(err.text, "9999"));
}

static void repost_task(void *arg)
{
	struct bench *bench = arg;

	bench->calls++;
	hf_task_post(bench->task);
}

static void a_flood_of_tasks_does_not_starve_fds(void **state)
{
	struct bench *bench = *state;

	bench->task = hf_task_create(bench->loop, repost_task, bench);
	hf_task_post(bench->task);
	watch_fd(bench, bench->pair[0], on_io_stop, HF_IO_WRITE);
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->events, HF_IO_WRITE);
	assert_true(bench->calls > 1);
}

static void a_flood_of_tasks_does_not_starve_timers(void **state)
{
	struct bench *bench = *state;

	bench->task = hf_task_create(bench->loop, repost_task, bench);
	bench->timer = hf_timer_create(bench->loop, on_stop, bench);
	hf_task_post(bench->task);
	hf_timer_arm(bench->timer, HF_MS);
	hf_loop_run(bench->loop);
	assert_true(bench->calls > 0);
}

static void note_task(void *arg)
{
	struct bench *bench = arg;

	bench->trace[bench->len++] = 'T';
}

static void note_timer(void *arg)
{
	struct bench *bench = arg;

	bench->trace[bench->len++] = 't';
	hf_loop_stop(bench->loop);
}

static void tasks_come_before_timers_here_too(void **state)
{
	struct bench *bench = *state;

	bench->timer = hf_timer_create(bench->loop, note_timer, bench);
	bench->task = hf_task_create(bench->loop, note_task, bench);
	hf_timer_arm(bench->timer, 0);
	hf_task_post(bench->task);
	hf_test_loop_run(&bench->t);
	assert_string_equal(bench->trace, "Tt");
}

static void on_signal(void *arg, int signum)
{
	struct bench *bench = arg;

	assert_int_equal(signum, SIGUSR1);
	bench->calls++;
	bench->sig = hf_signal_destroy(bench->sig); /* destroyed in its own callback */
	hf_loop_stop(bench->loop);
}

static void a_signal_arrives_in_the_loop(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};

	assert_ok(hf_signal_create(bench->loop, SIGUSR1, on_signal, bench, &bench->sig, &err),
		  &err);
	raise(SIGUSR1);
	/* The signal handler does not run the callback; the loop runs it later. */
	assert_int_equal(bench->calls, 0);
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->calls, 1);
	assert_code(hf_signal_create(bench->loop, SIGKILL, on_signal, bench, &bench->sig, &err),
		    HF_E_IO);
	assert_null(bench->sig);
}

static void writing_to_a_closed_peer_is_an_error_without_sigpipe(void **state)
{
	struct bench *bench = *state;

	close(bench->pair[1]);
	bench->pair[1] = -1;
	assert_int_equal(write(bench->pair[0], "x", 1), -1); /* without hf_loop_create, SIGPIPE
	                                                      * would end this process */
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_run_with_nothing_to_do_ends_at_once),
		UNIT(clocks_move_on_and_timers_do_not_fire_early),
		UNIT(readable_is_reported_until_the_bytes_are_read),
		UNIT(a_hangup_is_reported_without_reading),
		UNIT(an_error_of_the_fd_is_reported_as_a_hangup),
		UNIT(an_io_may_destroy_itself_and_others_and_then_nothing_is_watched),
		UNIT(an_invalid_fd_is_refused),
		UNIT(a_flood_of_tasks_does_not_starve_fds),
		UNIT(a_flood_of_tasks_does_not_starve_timers),
		UNIT(tasks_come_before_timers_here_too),
		UNIT(a_signal_arrives_in_the_loop),
		UNIT(writing_to_a_closed_peer_is_an_error_without_sigpipe),
	};
	return cmocka_run_group_tests_name("real", tests, NULL, NULL);
}
