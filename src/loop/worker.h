/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_WORKER_H
#define HF_LOOP_WORKER_H

#include "base/error.h"
#include "loop/loop.h"

#include <stdbool.h>

/*
 * A thread for what may block: an fsync waits for a disk, a read of sysfs for a device.  One piece
 * of work at a time; what it touches is its own until it is done.
 *
 * A thread that a disk or a driver does not let go of cannot be ended: it is left behind, with its
 * work, which is freed when it comes back.  On a virtual loop work is done at once, in the call.
 */
struct hf_worker;

struct hf_work {
	void (*run)(void *arg);  /* on the thread: no loop, no log, nothing that others use */
	void (*done)(void *arg); /* from the loop, as its end */
	void (*drop)(
		void *arg); /* instead of done, where the worker is gone by then: on the thread,
				  * or in destroy.  Frees what run used. */
	void *arg;
};

struct hf_worker *hf_worker_create(struct hf_loop *loop);
/* False: the last one is not done yet (nothing is called), or there is no thread to be had. */
bool hf_worker_post(struct hf_worker *worker, const struct hf_work *work) HF_MUST_CHECK;
bool hf_worker_is_busy(const struct hf_worker *worker);
/* Waits for what is under way, done included, for so long at most: for the end of a program.
 * False: it is not done. */
bool hf_worker_settle(struct hf_worker *worker, hf_time at_most);
/* Does not wait.  NULL is fine; returns NULL. */
struct hf_worker *hf_worker_destroy(struct hf_worker *worker);

#endif
