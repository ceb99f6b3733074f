/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
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
	struct hf_look_thread *looker = arg;
	struct hf_intake *intake = looker->options.intake;

	hf_timer_disarm(looker->deadline);
	hf_intake_looked(intake, looker->options.probe, hf_intake_now(intake) - looker->began);
	looker->options.looked(looker->options.arg);
}

/* Worker and bench: all that the thread has of it. */
struct errand {
	struct hf_look_thread *looker; /* not for the thread */
	void (*look)(void *bench);
	void (*release)(void *bench);
	void *bench;
};

static void run(void *arg)
{
	struct errand *errand = arg;

	errand->look(errand->bench);
}

static void done(void *arg)
{
	struct errand *errand = arg;
	struct hf_look_thread *looker = errand->looker;

	free(errand);
	on_done(looker);
}

static void drop(void *arg)
{
	struct errand *errand = arg;

	errand->release(errand->bench);
	free(errand);
}

static void on_deadline(void *arg)
{
	struct hf_look_thread *looker = arg;

	hf_timer_arm(looker->deadline, looker->options.deadline);
	hf_intake_timed_out(looker->options.intake, looker->options.probe);
	looker->options.late(looker->options.arg);
}

struct hf_look_thread *hf_look_thread_create(const struct hf_look_thread_options *options)
{
	struct hf_look_thread *looker = hf_xcalloc(1, sizeof(*looker));
	struct hf_loop *loop = hf_intake_loop(options->intake);

	looker->options = *options;
	if (looker->options.deadline == 0)
		looker->options.deadline = HF_LOOK_THREAD_DEADLINE;
	looker->worker = hf_worker_create(loop);
	looker->deadline = hf_timer_create(loop, on_deadline, looker);
	return looker;
}

struct hf_look_thread *hf_look_thread_destroy(struct hf_look_thread *looker)
{
	if (looker == NULL)
		return NULL;
	if (!hf_worker_is_busy(looker->worker))
		looker->options.release(looker->options.bench);
	hf_worker_destroy(looker->worker);
	hf_timer_destroy(looker->deadline);
	free(looker);
	return NULL;
}

bool hf_look_thread_is_free(const struct hf_look_thread *looker)
{
	return !hf_worker_is_busy(looker->worker);
}

bool hf_look_thread_look(struct hf_look_thread *looker)
{
	struct errand *errand;

	if (hf_worker_is_busy(looker->worker))
		return false;
	errand = hf_xcalloc(1, sizeof(*errand));
	*errand = (struct errand){.looker = looker,
				  .look = looker->options.look,
				  .release = looker->options.release,
				  .bench = looker->options.bench};
	looker->began = hf_intake_now(looker->options.intake);
	if (!hf_worker_post(
		    looker->worker,
		    &(struct hf_work){.run = run, .done = done, .drop = drop, .arg = errand})) {
		free(errand);
		return false;
	}
	hf_timer_arm(looker->deadline, looker->options.deadline);
	return true;
}
