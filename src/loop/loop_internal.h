/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_LOOP_INTERNAL_H
#define HF_LOOP_LOOP_INTERNAL_H

#include "base/vec.h"
#include "loop/loop.h"

#include <stdint.h>

/*
 * What both back ends share: the queue of tasks and the heap of timers live
 * here, so that their order cannot differ between them.  A back end only says
 * what time it is and waits.
 */

/* A fleet of 100,000 simulated pods with a dozen timers each fits. */
#define HF_LOOP_TIMERS_MAX ((size_t)2000000)

/* Callbacks at one instant of the virtual clock before the loop is sure that the program
 * spins: a pass over the largest fleet is below a hundredth of that. */
#define HF_LOOP_STEPS_MAX 100000000ULL

/* A doubly linked ring; an element outside of any list points at itself. */
struct hf_task_link {
	struct hf_task_link *prev, *next;
};

struct hf_task {
	struct hf_task_link link; /* first: a link is its task */
	struct hf_loop *loop;
	hf_task_fn fn;
	void *arg;
};

struct hf_timer {
	struct hf_loop *loop;
	hf_task_fn fn;
	void *arg;
	hf_time due;
	uint64_t seq; /* of arming: breaks ties */
	size_t place; /* in the heap, or HF_TIMER_OFF */
};
#define HF_TIMER_OFF SIZE_MAX

struct hf_loop_ops {
	hf_time (*mono)(const struct hf_loop *loop);
	hf_time (*wall)(const struct hf_loop *loop);
	void (*run)(struct hf_loop *loop); /* until base.stop or nothing is left */
	void (*destroy)(struct hf_loop *loop);
};

struct hf_loop {
	const struct hf_loop_ops *ops;
	struct hf_task_link tasks; /* posted ones, oldest first */
	HF_VEC(struct hf_timer *) timers;
	uint64_t seq;
	size_t objects; /* tasks, timers, ios, signals, processes not yet destroyed */
	bool stop;
	bool running;
	struct hf_process *orphans; /* children whose owner has gone, to be reaped */
};

void hf_loop_init_base(struct hf_loop *loop, const struct hf_loop_ops *ops);
void hf_loop_release_base(struct hf_loop *loop);

/* Run the oldest task, or else the first timer due at `now`; false: there was none. */
bool hf_loop_step(struct hf_loop *loop, hf_time now);
/* The first timer that is due, whatever is posted; false: none. */
bool hf_loop_step_timer(struct hf_loop *loop, hf_time now);
bool hf_loop_has_tasks(const struct hf_loop *loop);

/* From here on the watch neither keeps hf_loop_run going nor counts as an object: for what
 * the loop itself looks after (children whose owner has gone).  Destroyed as others are. */
void hf_io_detach(struct hf_io *io);
void hf_process_drop_orphans(struct hf_loop *loop);

#endif
