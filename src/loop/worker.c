/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* A thread that runs one piece of work at a time for a loop. The loop and the thread share one
 * locked struct and an eventfd: the loop posts work, the thread runs it and writes to the eventfd,
 * the loop then calls done. A thread that hangs is detached and frees its work later. On a virtual
 * loop there is no thread. */
#include "loop/worker.h"

#include "base/mem.h"
#include "loop/loop_internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Bytes of the thread's stack. Some work reads or writes files through a buffer of 4 KiB on the
 * stack. */
#define STACK_BYTES ((size_t)256 << 10)

/* What the thread and the worker share. The thread frees this struct as its last act. */
struct shared {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct hf_work work;
	bool posted, finished; /* posted: work holds a piece of work; finished: run has returned
	                        * and done was not called yet */
	bool abandoned;        /* hf_worker_destroy was called */
	int done_fd;
};

struct hf_worker {
	struct hf_loop *loop;
	struct hf_work work; /* the posted work, on a virtual loop, which has no thread */
	bool busy;
	struct hf_task *task; /* calls `done` of the posted work; used on a virtual loop only */
	struct hf_io *io;
	/* memory shared with the thread; NULL: no thread was started yet */
	struct shared *shared;
	pthread_t thread;
};

static struct shared *shared_create(void)
{
	struct shared *shared = hf_xcalloc(1, sizeof(*shared));
	pthread_condattr_t attr;
	int rc = pthread_condattr_init(&attr);

	hf_assert(rc == 0);
	rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	hf_assert(rc == 0);
	rc = pthread_cond_init(&shared->changed, &attr);
	hf_assert(rc == 0);
	(void)pthread_condattr_destroy(&attr);
	rc = pthread_mutex_init(&shared->lock, NULL);
	hf_assert(rc == 0);
	shared->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return shared;
}

static struct shared *shared_destroy(struct shared *shared)
{
	(void)pthread_mutex_destroy(&shared->lock);
	(void)pthread_cond_destroy(&shared->changed);
	if (shared->done_fd >= 0)
		(void)close(shared->done_fd);
	free(shared);
	return NULL;
}

static void *thread_main(void *arg)
{
	struct shared *shared = arg;
	const uint64_t one = 1;

	pthread_mutex_lock(&shared->lock);
	while (!shared->abandoned) {
		struct hf_work work = shared->work;

		if (!shared->posted || shared->finished) {
			pthread_cond_wait(&shared->changed, &shared->lock);
			continue;
		}
		pthread_mutex_unlock(&shared->lock);
		work.run(work.arg);
		pthread_mutex_lock(&shared->lock);
		shared->finished = true;
		pthread_cond_signal(&shared->changed);
		/* The thread is the only writer and adds 1 at a time, so the eventfd is never
		 * full. */
		(void)!write(shared->done_fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&shared->lock);
	if (shared->posted)
		shared->work.drop(shared->work.arg);
	shared_destroy(shared);
	return NULL;
}

/* The new thread blocks all signals: the thread of the loop handles them. */
static int start_thread(struct shared *shared, pthread_t *ret_thread)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return rc;
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	rc = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (rc == 0) {
		rc = pthread_create(ret_thread, &attr, thread_main, shared);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	(void)pthread_attr_destroy(&attr);
	return rc;
}

static void call_done(struct hf_worker *worker, const struct hf_work *work)
{
	worker->busy = false;
	if (worker->io)
		hf_io_want(worker->io, 0);
	work->done(work->arg);
}

/* Takes the finished work out of the shared struct. Returns false if the work is not finished. */
static bool take_finished_work(struct hf_worker *worker, struct hf_work *ret_work)
{
	struct shared *shared = worker->shared;
	uint64_t count;
	bool taken;

	pthread_mutex_lock(&shared->lock);
	taken = shared->finished;
	if (taken) {
		*ret_work = shared->work;
		shared->posted = shared->finished = false;
		(void)!read(shared->done_fd, &count, sizeof(count));
	}
	pthread_mutex_unlock(&shared->lock);
	return taken;
}

static void on_finished(void *arg, HF_UNUSED unsigned events)
{
	struct hf_worker *worker = arg;
	struct hf_work work;

	if (take_finished_work(worker, &work))
		call_done(worker, &work);
}

static void on_task(void *arg)
{
	struct hf_worker *worker = arg;
	struct hf_work work = worker->work;

	call_done(worker, &work);
}

struct hf_worker *hf_worker_create(struct hf_loop *loop)
{
	struct hf_worker *worker = hf_xcalloc(1, sizeof(*worker));

	worker->loop = loop;
	worker->task = hf_task_create(loop, on_task, worker);
	return worker;
}

/* Starts the thread at the first post: a worker that gets no work needs no thread. */
static bool open_thread(struct hf_worker *worker)
{
	struct hf_error err;
	struct shared *shared = shared_create();

	if (shared->done_fd < 0 || hf_io_create(worker->loop, shared->done_fd, on_finished, worker,
						&worker->io, &err) < 0) {
		shared_destroy(shared);
		return false;
	}
	if (start_thread(shared, &worker->thread) != 0) {
		worker->io = hf_io_destroy(worker->io);
		shared_destroy(shared);
		return false;
	}
	worker->shared = shared;
	return true;
}

bool hf_worker_post(struct hf_worker *worker, const struct hf_work *work)
{
	hf_assert(work->run && work->done && work->drop);
	if (worker->busy)
		return false;
	if (!hf_loop_is_real(worker->loop)) {
		worker->work = *work;
		worker->busy = true;
		work->run(work->arg);
		hf_task_post(worker->task);
		return true;
	}
	if (!worker->shared && !open_thread(worker))
		return false;
	worker->busy = true;
	hf_io_want(worker->io, HF_IO_READ);
	pthread_mutex_lock(&worker->shared->lock);
	worker->shared->work = *work;
	worker->shared->posted = true;
	pthread_cond_signal(&worker->shared->changed);
	pthread_mutex_unlock(&worker->shared->lock);
	return true;
}

bool hf_worker_is_busy(const struct hf_worker *worker)
{
	return worker->busy;
}

static struct timespec deadline_after(const struct hf_loop *loop, hf_time at_most)
{
	hf_time at = hf_time_add(hf_loop_mono(loop), at_most);

	return (struct timespec){.tv_sec = at / HF_SECOND, .tv_nsec = at % HF_SECOND};
}

bool hf_worker_settle(struct hf_worker *worker, hf_time at_most)
{
	struct shared *shared = worker->shared;
	struct timespec at;
	int rc = 0;

	if (!worker->busy)
		return true;
	if (!shared) {
		hf_task_cancel(worker->task);
		on_task(worker);
		return true;
	}
	at = deadline_after(worker->loop, at_most);
	pthread_mutex_lock(&shared->lock);
	while (!shared->finished && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&shared->changed, &shared->lock, &at);
	pthread_mutex_unlock(&shared->lock);
	on_finished(worker, HF_IO_READ);
	return !worker->busy;
}

/* Ends the thread if it is idle, else detaches it. The thread drops posted work and frees the
 * shared struct, at once or when its call returns. */
static void close_thread(struct hf_worker *worker)
{
	struct shared *shared = worker->shared;
	bool running;

	pthread_mutex_lock(&shared->lock);
	shared->abandoned = true;
	running = shared->posted && !shared->finished;
	pthread_cond_signal(&shared->changed);
	pthread_mutex_unlock(&shared->lock);
	if (running)
		(void)pthread_detach(worker->thread);
	else
		(void)pthread_join(worker->thread, NULL);
}

struct hf_worker *hf_worker_destroy(struct hf_worker *worker)
{
	if (!worker)
		return NULL;
	hf_io_destroy(worker->io);
	hf_task_destroy(worker->task);
	if (worker->shared)
		close_thread(worker);
	else if (worker->busy)
		worker->work.drop(worker->work.arg);
	free(worker);
	return NULL;
}
