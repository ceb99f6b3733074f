/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The real back end of the loop, over libuv. libuv only waits for fds, signals and one alarm. Tasks
 * and timers live in loop.c; the alarm stands for the first timer of their heap. */
#include "loop/loop_internal.h"

#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

/* Most tasks and timers in a row before libuv looks at the fds. Bounds how long a flood of work can
 * keep a client waiting. */
#define REAL_ROUND_MAX 1024

struct real_loop {
	struct hf_loop base; /* must be first: a hf_loop is cast to its real_loop */
	uv_loop_t uv;
	uv_timer_t alarm;
};

struct hf_io {
	uv_poll_t poll; /* must be first: the uv handle is cast to its hf_io */
	struct hf_loop *loop;
	hf_io_fn fn;
	void *arg;
	unsigned want;
	bool detached;
};

struct hf_signal {
	uv_signal_t handle; /* must be first: the uv handle is cast to its hf_signal */
	struct hf_loop *loop;
	hf_signal_fn fn;
	void *arg;
};

static struct real_loop *to_real(struct hf_loop *loop)
{
	return (struct real_loop *)loop;
}

static hf_time read_clock(clockid_t clock)
{
	struct timespec ts;
	int rc = clock_gettime(clock, &ts);

	hf_assert(rc == 0);
	return (hf_time)ts.tv_sec * HF_SECOND + ts.tv_nsec;
}

static hf_time real_mono(const struct hf_loop *loop)
{
	return read_clock(CLOCK_MONOTONIC);
}

static hf_time real_wall(const struct hf_loop *loop)
{
	return read_clock(CLOCK_REALTIME);
}

static void on_alarm(uv_timer_t *alarm)
{
	/* The alarm only ends the wait; real_run then runs the due timers. libuv before 1.45 runs
	 * its timers before it polls. If the alarm was due by then, for example after a wait for a
	 * CPU, the poll that follows would have no timeout. uv_stop makes libuv poll without
	 * waiting. */
	uv_stop(alarm->loop);
}

/* Decides how long uv_run may wait for fds: not at all, until the first timer, or without limit. */
static uv_run_mode set_alarm(struct real_loop *real)
{
	hf_time due = hf_loop_next_due(&real->base);

	uv_timer_stop(&real->alarm);
	if (hf_loop_has_tasks(&real->base))
		return UV_RUN_NOWAIT;
	if (due == HF_TIME_NEVER)
		return UV_RUN_ONCE;
	hf_time left = due - real_mono(&real->base);
	if (left <= 0)
		return UV_RUN_NOWAIT;
	/* Rounds the wait up to a whole millisecond. Rounded down, the loop would wake too early
	 * and spin until the timer is due. */
	uv_update_time(&real->uv);
	uv_timer_start(&real->alarm, on_alarm, (uint64_t)((left + HF_MS - 1) / HF_MS), 0);
	return UV_RUN_ONCE;
}

static void real_run(struct hf_loop *loop)
{
	struct real_loop *real = to_real(loop);

	while (!loop->stop) {
		hf_time now = real_mono(loop);
		int i;

		for (i = 0; i < REAL_ROUND_MAX && !loop->stop; i++) {
			if (!hf_loop_step(loop, now))
				break;
		}
		/* Tasks that keep posting tasks must not starve the timers. */
		for (; i >= REAL_ROUND_MAX && i < 2 * REAL_ROUND_MAX && !loop->stop; i++) {
			if (!hf_loop_step_timer(loop, now))
				break;
		}
		if (loop->stop)
			break;
		uv_run_mode mode = set_alarm(real);
		if (!uv_loop_alive(&real->uv) && mode == UV_RUN_ONCE)
			break;
		uv_run(&real->uv, mode);
	}
}

static void real_destroy(struct hf_loop *loop)
{
	struct real_loop *real = to_real(loop);

	hf_process_drop_orphans(loop);
	hf_loop_release_base(loop);
	uv_close((uv_handle_t *)&real->alarm, NULL);
	/* libuv frees closed handles in a turn of its loop. */
	uv_run(&real->uv, UV_RUN_NOWAIT);
	int rc = uv_loop_close(&real->uv);
	hf_assert(rc == 0);
	free(real);
}

static const struct hf_loop_ops real_ops = {
	.mono = real_mono,
	.wall = real_wall,
	.run = real_run,
	.destroy = real_destroy,
};

int hf_loop_create(struct hf_loop **ret_loop, struct hf_error *err)
{
	struct real_loop *real = hf_xcalloc(1, sizeof(*real));
	int rc = uv_loop_init(&real->uv);

	if (rc < 0) {
		free(real);
		return hf_error_errno(err, -rc, "cannot make an event loop");
	}
	hf_loop_init_base(&real->base, &real_ops);
	uv_timer_init(&real->uv, &real->alarm);
	signal(SIGPIPE, SIG_IGN);
	*ret_loop = &real->base;
	return 0;
}

/* --- fds --- */

static void free_handle(uv_handle_t *handle)
{
	free(handle);
}

static void on_poll(uv_poll_t *poll, int status, int uv_events)
{
	struct hf_io *io = (struct hf_io *)poll;
	unsigned events = 0;

	if (status < 0) {
		/* libuv has stopped watching the fd; the user must call hf_io_want again. */
		io->want = 0;
		events = HF_IO_HANGUP;
	}
	if (uv_events & UV_READABLE)
		events |= HF_IO_READ;
	if (uv_events & UV_WRITABLE)
		events |= HF_IO_WRITE;
	if (uv_events & UV_DISCONNECT)
		events |= HF_IO_HANGUP;
	if (events != 0)
		io->fn(io->arg, events);
}

int hf_io_create(struct hf_loop *loop, int fd, hf_io_fn fn, void *arg, struct hf_io **ret_io,
		 struct hf_error *err)
{
	if (!hf_loop_is_real(loop))
		return hf_error_set(err, HF_E_UNSUPPORTED, "a virtual loop watches no fds");
	struct hf_io *io = hf_xcalloc(1, sizeof(*io));
	int rc = uv_poll_init(&to_real(loop)->uv, &io->poll, fd);

	if (rc < 0) {
		free(io);
		return hf_error_errno(err, -rc, "cannot watch fd %d", fd);
	}
	io->loop = loop;
	io->fn = fn;
	io->arg = arg;
	loop->objects++;
	*ret_io = io;
	return 0;
}

struct hf_io *hf_io_destroy(struct hf_io *io)
{
	if (!io)
		return NULL;
	if (!io->detached) {
		hf_assert(io->loop->objects > 0);
		io->loop->objects--;
	}
	uv_close((uv_handle_t *)&io->poll, free_handle);
	return NULL;
}

void hf_io_want(struct hf_io *io, unsigned events)
{
	int uv_events = 0;

	if (events == io->want)
		return;
	io->want = events;
	if (events & HF_IO_READ)
		uv_events |= UV_READABLE;
	if (events & HF_IO_WRITE)
		uv_events |= UV_WRITABLE;
	if (events & HF_IO_HANGUP)
		uv_events |= UV_DISCONNECT;
	int rc = uv_events ? uv_poll_start(&io->poll, uv_events, on_poll) : uv_poll_stop(&io->poll);
	hf_assert(rc == 0);
}

void hf_io_detach(struct hf_io *io)
{
	hf_assert(!io->detached);
	io->detached = true;
	io->loop->objects--;
	uv_unref((uv_handle_t *)&io->poll);
}

/* --- signals --- */

static void on_signal(uv_signal_t *handle, int signum)
{
	struct hf_signal *sig = (struct hf_signal *)handle;

	sig->fn(sig->arg, signum);
}

int hf_signal_create(struct hf_loop *loop, int signum, hf_signal_fn fn, void *arg,
		     struct hf_signal **ret_signal, struct hf_error *err)
{
	if (!hf_loop_is_real(loop))
		return hf_error_set(err, HF_E_UNSUPPORTED, "a virtual loop has no signals");
	struct hf_signal *sig = hf_xcalloc(1, sizeof(*sig));

	int rc = uv_signal_init(&to_real(loop)->uv, &sig->handle);
	if (rc < 0) {
		free(sig);
		return hf_error_errno(err, -rc, "cannot watch signal %d", signum);
	}
	sig->loop = loop;
	sig->fn = fn;
	sig->arg = arg;
	rc = uv_signal_start(&sig->handle, on_signal, signum);
	if (rc < 0) {
		uv_close((uv_handle_t *)&sig->handle, free_handle);
		return hf_error_errno(err, -rc, "cannot watch signal %d", signum);
	}
	loop->objects++;
	*ret_signal = sig;
	return 0;
}

bool hf_signal_is_ignored(int signum)
{
	struct sigaction action;

	return sigaction(signum, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

struct hf_signal *hf_signal_destroy(struct hf_signal *sig)
{
	if (!sig)
		return NULL;
	hf_assert(sig->loop->objects > 0);
	sig->loop->objects--;
	uv_close((uv_handle_t *)&sig->handle, free_handle);
	return NULL;
}
