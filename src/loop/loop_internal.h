/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_LOOP_INTERNAL_H
#define HF_LOOP_LOOP_INTERNAL_H

#include "base/vec.h"
#include "loop/loop.h"

#include <stdint.h>

/* The queue of tasks and the heap of timers, which both back ends share: so their order cannot
 * differ. A back end only reads a clock and waits. */

/* Enough for 100,000 simulated pods with a dozen timers each. */
#define HF_LOOP_TIMERS_MAX ((size_t)2000000)

/* Most callbacks at one instant of the virtual clock; beyond it an assert reports that the program
 * spins. A pass over the largest simulated fleet takes less than a hundredth of this. */
#define HF_LOOP_STEPS_MAX 100000000ULL

/* A doubly linked ring. An element outside any list points at itself. */
struct hf_task_link {
	struct hf_task_link *prev, *next;
};

struct hf_task {
	struct hf_task_link link; /* must be first: a link is cast to its task */
	struct hf_loop *loop;
	hf_task_fn fn;
	void *arg;
};

struct hf_timer {
	struct hf_loop *loop;
	hf_task_fn fn;
	void *arg;
	hf_time due;
	uint64_t seq; /* serial number of arming; orders timers with equal due times */
	size_t place; /* index in the heap, or HF_TIMER_OFF */
};
#define HF_TIMER_OFF SIZE_MAX

struct hf_loop_ops {
	hf_time (*mono)(const struct hf_loop *loop);
	hf_time (*wall)(const struct hf_loop *loop);
	/* Runs callbacks until base.stop is set, or until the loop has nothing left to wait for. */
	void (*run)(struct hf_loop *loop);
	void (*destroy)(struct hf_loop *loop);
};

struct hf_loop {
	const struct hf_loop_ops *ops;
	struct hf_task_link tasks; /* the posted tasks, oldest first */
	HF_VEC(struct hf_timer *) timers;
	uint64_t seq;
	size_t objects; /* number of tasks, timers, ios, signals and processes not yet destroyed */
	bool stop;
	bool running;
	struct hf_process *orphans; /* children that run on after hf_process_destroy; the loop
	                             * reaps them */
};

void hf_loop_init_base(struct hf_loop *loop, const struct hf_loop_ops *ops);
void hf_loop_release_base(struct hf_loop *loop);

/* Runs the oldest task or, without one, the first timer due at `now`. Returns false if neither
 * exists. */
bool hf_loop_step(struct hf_loop *loop, hf_time now);
/* Runs the first timer due at `now`, before any posted task. Returns false if no timer is due. */
bool hf_loop_step_timer(struct hf_loop *loop, hf_time now);
bool hf_loop_has_tasks(const struct hf_loop *loop);

/* After this call the watch neither keeps hf_loop_run running nor counts as an object. Used for the
 * pidfds of orphans, which belong to the loop. hf_io_destroy still frees the hf_io. */
void hf_io_detach(struct hf_io *io);
void hf_process_drop_orphans(struct hf_loop *loop);

#endif
