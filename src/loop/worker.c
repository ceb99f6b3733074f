/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
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

/* What is done here are reads and writes of files, some with a page on the stack. */
#define STACK_BYTES ((size_t)256 << 10)

/* What thread and worker share; the last of them frees it. */
struct desk {
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct hf_work work;
	bool posted, finished; /* a piece of work lies there; it is done, and done was not called */
	bool left;             /* the worker is gone */
	int done_fd;
};

struct hf_worker {
	struct hf_loop *loop;
	struct hf_work work; /* on a virtual loop */
	bool busy;
	struct hf_task *task; /* on a virtual loop: calls done */
	struct hf_io *io;
	struct desk *desk; /* NULL: no thread yet */
	pthread_t thread;
};

static struct desk *desk_create(void)
{
	struct desk *desk = hf_xcalloc(1, sizeof(*desk));
	pthread_condattr_t attr;
	int rc = pthread_condattr_init(&attr);

	hf_assert(rc == 0);
	rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	hf_assert(rc == 0);
	rc = pthread_cond_init(&desk->news, &attr);
	hf_assert(rc == 0);
	(void)pthread_condattr_destroy(&attr);
	rc = pthread_mutex_init(&desk->lock, NULL);
	hf_assert(rc == 0);
	desk->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return desk;
}

static struct desk *desk_destroy(struct desk *desk)
{
	(void)pthread_mutex_destroy(&desk->lock);
	(void)pthread_cond_destroy(&desk->news);
	if (desk->done_fd >= 0)
		(void)close(desk->done_fd);
	free(desk);
	return NULL;
}

static void *thread_main(void *arg)
{
	struct desk *desk = arg;
	const uint64_t one = 1;

	pthread_mutex_lock(&desk->lock);
	while (!desk->left) {
		struct hf_work work = desk->work;

		if (!desk->posted || desk->finished) {
			pthread_cond_wait(&desk->news, &desk->lock);
			continue;
		}
		pthread_mutex_unlock(&desk->lock);
		work.run(work.arg);
		pthread_mutex_lock(&desk->lock);
		desk->finished = true;
		pthread_cond_signal(&desk->news);
		/* An eventfd of which only we write one at a time is never full. */
		(void)!write(desk->done_fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&desk->lock);
	if (desk->posted)
		desk->work.drop(desk->work.arg);
	desk_destroy(desk);
	return NULL;
}

/* Signals are for the thread of the loop. */
static int start_thread(struct desk *desk, pthread_t *ret_thread)
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
		rc = pthread_create(ret_thread, &attr, thread_main, desk);
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

/* Takes the finished work off the desk; false: it is not finished. */
static bool take(struct hf_worker *worker, struct hf_work *ret_work)
{
	struct desk *desk = worker->desk;
	uint64_t count;
	bool took;

	pthread_mutex_lock(&desk->lock);
	took = desk->finished;
	if (took) {
		*ret_work = desk->work;
		desk->posted = desk->finished = false;
		(void)!read(desk->done_fd, &count, sizeof(count));
	}
	pthread_mutex_unlock(&desk->lock);
	return took;
}

static void on_finished(void *arg, HF_UNUSED unsigned events)
{
	struct hf_worker *worker = arg;
	struct hf_work work;

	if (take(worker, &work))
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

/* The thread comes with the first work: who has none needs none. */
static bool hire(struct hf_worker *worker)
{
	struct hf_error err;
	struct desk *desk = desk_create();

	if (desk->done_fd < 0 ||
	    hf_io_create(worker->loop, desk->done_fd, on_finished, worker, &worker->io, &err) < 0) {
		desk_destroy(desk);
		return false;
	}
	if (start_thread(desk, &worker->thread) != 0) {
		worker->io = hf_io_destroy(worker->io);
		desk_destroy(desk);
		return false;
	}
	worker->desk = desk;
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
	if (!worker->desk && !hire(worker))
		return false;
	worker->busy = true;
	hf_io_want(worker->io, HF_IO_READ);
	pthread_mutex_lock(&worker->desk->lock);
	worker->desk->work = *work;
	worker->desk->posted = true;
	pthread_cond_signal(&worker->desk->news);
	pthread_mutex_unlock(&worker->desk->lock);
	return true;
}

bool hf_worker_is_busy(const struct hf_worker *worker)
{
	return worker->busy;
}

static struct timespec until(const struct hf_loop *loop, hf_time at_most)
{
	hf_time at = hf_time_add(hf_loop_mono(loop), at_most);

	return (struct timespec){.tv_sec = at / HF_SECOND, .tv_nsec = at % HF_SECOND};
}

bool hf_worker_settle(struct hf_worker *worker, hf_time at_most)
{
	struct desk *desk = worker->desk;
	struct timespec at;
	int rc = 0;

	if (!worker->busy)
		return true;
	if (!desk) {
		hf_task_cancel(worker->task);
		on_task(worker);
		return true;
	}
	at = until(worker->loop, at_most);
	pthread_mutex_lock(&desk->lock);
	while (!desk->finished && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&desk->news, &desk->lock, &at);
	pthread_mutex_unlock(&desk->lock);
	on_finished(worker, HF_IO_READ);
	return !worker->busy;
}

/* The thread drops what lies there and frees the desk, at once or when it comes back. */
static void leave(struct hf_worker *worker)
{
	struct desk *desk = worker->desk;
	bool away;

	pthread_mutex_lock(&desk->lock);
	desk->left = true;
	away = desk->posted && !desk->finished;
	pthread_cond_signal(&desk->news);
	pthread_mutex_unlock(&desk->lock);
	if (away)
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
	if (worker->desk)
		leave(worker);
	else if (worker->busy)
		worker->work.drop(worker->work.arg);
	free(worker);
	return NULL;
}
