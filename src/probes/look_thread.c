/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Runs one look at a time on a thread. Invariant: loop and thread never touch the bench at the same
 * time.
 */
#include "probes/look_thread.h"

#include "base/mem.h"
#include "loop/worker.h"

#include <stdlib.h>

struct hf_look_thread {
	struct hf_look_thread_options options;
	struct hf_worker *worker;
	struct hf_timer *deadline;
	hf_time began;
};

static void on_done(void *arg)
{
	struct hf_look_thread *thread = arg;
	struct hf_intake *intake = thread->options.intake;

	hf_timer_disarm(thread->deadline);
	hf_intake_looked(intake, thread->options.probe, hf_intake_now(intake) - thread->began);
	thread->options.looked(thread->options.arg);
}

/* What the thread works with; the thread touches nothing else. */
struct errand {
	struct hf_look_thread *thread; /* only the loop uses this member */
	void (*look)(void *bench);
	void (*release)(void *bench);
	void *bench;
};

static void run_errand(void *arg)
{
	struct errand *errand = arg;

	errand->look(errand->bench);
}

static void finish_errand(void *arg)
{
	struct errand *errand = arg;
	struct hf_look_thread *thread = errand->thread;

	free(errand);
	on_done(thread);
}

static void drop_errand(void *arg)
{
	struct errand *errand = arg;

	errand->release(errand->bench);
	free(errand);
}

static void on_deadline(void *arg)
{
	struct hf_look_thread *thread = arg;

	hf_timer_arm(thread->deadline, thread->options.deadline);
	hf_intake_timed_out(thread->options.intake, thread->options.probe);
	thread->options.late(thread->options.arg);
}

struct hf_look_thread *hf_look_thread_create(const struct hf_look_thread_options *options)
{
	struct hf_look_thread *thread = hf_xcalloc(1, sizeof(*thread));
	struct hf_loop *loop = hf_intake_loop(options->intake);

	thread->options = *options;
	if (thread->options.deadline == 0)
		thread->options.deadline = HF_LOOK_THREAD_DEADLINE;
	thread->worker = hf_worker_create(loop);
	thread->deadline = hf_timer_create(loop, on_deadline, thread);
	return thread;
}

struct hf_look_thread *hf_look_thread_destroy(struct hf_look_thread *thread)
{
	if (thread == NULL)
		return NULL;
	if (!hf_worker_is_busy(thread->worker))
		thread->options.release(thread->options.bench);
	hf_worker_destroy(thread->worker);
	hf_timer_destroy(thread->deadline);
	free(thread);
	return NULL;
}

bool hf_look_thread_is_free(const struct hf_look_thread *thread)
{
	return !hf_worker_is_busy(thread->worker);
}

bool hf_look_thread_look(struct hf_look_thread *thread)
{
	struct errand *errand;

	if (hf_worker_is_busy(thread->worker))
		return false;
	errand = hf_xcalloc(1, sizeof(*errand));
	*errand = (struct errand){.thread = thread,
				  .look = thread->options.look,
				  .release = thread->options.release,
				  .bench = thread->options.bench};
	thread->began = hf_intake_now(thread->options.intake);
	if (!hf_worker_post(thread->worker, &(struct hf_work){.run = run_errand,
							      .done = finish_errand,
							      .drop = drop_errand,
							      .arg = errand})) {
		free(errand);
		return false;
	}
	hf_timer_arm(thread->deadline, thread->options.deadline);
	return true;
}
