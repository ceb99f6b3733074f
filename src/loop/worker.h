/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_WORKER_H
#define HF_LOOP_WORKER_H

#include "base/error.h"
#include "loop/loop.h"

#include <stdbool.h>

/* A thread for calls that may block: an fsync waits for a disk, a read of sysfs for a device. A
 * worker runs one piece of work at a time. While the work runs, only the thread may use the data of
 * the work.
 *
 * A thread that hangs in a disk or driver call cannot be ended. hf_worker_destroy leaves such a
 * thread behind; the thread frees its work when the call returns. On a virtual loop the work runs
 * inside hf_worker_post. */
struct hf_worker;

struct hf_work {
	/* Runs on the thread; must not use the loop, the log or shared data. */
	void (*run)(void *arg);
	void (*done)(void *arg); /* on the loop, after run returned */
	void (*drop)(void *arg); /* called instead of done if the worker was destroyed first: on the
		             * thread or in destroy. Frees the data that run used. */
	void *arg;
};

struct hf_worker *hf_worker_create(struct hf_loop *loop);
/* Returns false, and calls nothing, if the previous work is not done or no thread can be
 * created. */
bool hf_worker_post(struct hf_worker *worker, const struct hf_work *work) HF_MUST_CHECK;
bool hf_worker_is_busy(const struct hf_worker *worker);
/* Waits until the current work, including done, has ended, but at most `at_most`. A program calls
 * this at its end. Returns false if the work has not ended. */
bool hf_worker_settle(struct hf_worker *worker, hf_time at_most);
/* Does not wait for a running piece of work. Accepts NULL; returns NULL. */
struct hf_worker *hf_worker_destroy(struct hf_worker *worker);

#endif
