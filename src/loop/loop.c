/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The part of the event loop that both back ends share: objects, the queue of posted tasks and the
 * heap of armed timers. A back end (real.c, virtual.c) supplies the clocks and the waiting through
 * hf_loop_ops and calls hf_loop_step to run one callback.
 * Invariant: a callback is off its queue before it runs, so it may destroy or re-arm its own
 * object. */
#include "loop/loop_internal.h"

#include "base/mem.h"

#include <stdlib.h>

void hf_loop_init_base(struct hf_loop *loop, const struct hf_loop_ops *ops)
{
	loop->ops = ops;
	loop->tasks.prev = loop->tasks.next = &loop->tasks;
	loop->timers.len_max = HF_LOOP_TIMERS_MAX;
}

void hf_loop_release_base(struct hf_loop *loop)
{
	hf_assert(loop->objects == 0);
	hf_assert(!loop->running);
	HF_VEC_RELEASE(&loop->timers);
}

struct hf_loop *hf_loop_destroy(struct hf_loop *loop)
{
	if (loop)
		loop->ops->destroy(loop);
	return NULL;
}

void hf_loop_run(struct hf_loop *loop)
{
	hf_assert(!loop->running);
	loop->running = true;
	loop->ops->run(loop);
	loop->running = false;
	loop->stop = false;
}

void hf_loop_stop(struct hf_loop *loop)
{
	loop->stop = true;
}

hf_time hf_loop_mono(const struct hf_loop *loop)
{
	return loop->ops->mono(loop);
}

hf_time hf_loop_wall(const struct hf_loop *loop)
{
	return loop->ops->wall(loop);
}

/* --- tasks --- */

struct hf_task *hf_task_create(struct hf_loop *loop, hf_task_fn fn, void *arg)
{
	hf_assert(fn);
	struct hf_task *task = hf_xcalloc(1, sizeof(*task));

	task->link.prev = task->link.next = &task->link;
	task->loop = loop;
	task->fn = fn;
	task->arg = arg;
	loop->objects++;
	return task;
}

struct hf_task *hf_task_destroy(struct hf_task *task)
{
	if (!task)
		return NULL;
	hf_task_cancel(task);
	hf_assert(task->loop->objects > 0);
	task->loop->objects--;
	free(task);
	return NULL;
}

void hf_task_post(struct hf_task *task)
{
	struct hf_task_link *ring = &task->loop->tasks;

	if (hf_task_posted(task))
		return;
	task->link.prev = ring->prev;
	task->link.next = ring;
	ring->prev->next = &task->link;
	ring->prev = &task->link;
}

void hf_task_cancel(struct hf_task *task)
{
	task->link.prev->next = task->link.next;
	task->link.next->prev = task->link.prev;
	task->link.prev = task->link.next = &task->link;
}

bool hf_task_posted(const struct hf_task *task)
{
	return task->link.next != &task->link;
}

bool hf_loop_has_tasks(const struct hf_loop *loop)
{
	return loop->tasks.next != &loop->tasks;
}

/* --- timers: a binary heap by (due, seq) --- */

static bool timer_before(const struct hf_timer *a, const struct hf_timer *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void heap_place(struct hf_loop *loop, size_t at, struct hf_timer *timer)
{
	loop->timers.items[at] = timer;
	timer->place = at;
}

static void heap_sift_up(struct hf_loop *loop, size_t at, struct hf_timer *timer)
{
	while (at > 0 && timer_before(timer, loop->timers.items[(at - 1) / 2])) {
		heap_place(loop, at, loop->timers.items[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_place(loop, at, timer);
}

static void heap_sift_down(struct hf_loop *loop, size_t at, struct hf_timer *timer)
{
	struct hf_timer **items = loop->timers.items;
	size_t len = loop->timers.len;

	for (size_t child = 2 * at + 1; child < len; child = 2 * at + 1) {
		if (child + 1 < len && timer_before(items[child + 1], items[child]))
			child++;
		if (!timer_before(items[child], timer))
			break;
		heap_place(loop, at, items[child]);
		at = child;
	}
	heap_place(loop, at, timer);
}

struct hf_timer *hf_timer_create(struct hf_loop *loop, hf_task_fn fn, void *arg)
{
	hf_assert(fn);
	struct hf_timer *timer = hf_xcalloc(1, sizeof(*timer));

	timer->loop = loop;
	timer->fn = fn;
	timer->arg = arg;
	timer->due = HF_TIME_NEVER;
	timer->place = HF_TIMER_OFF;
	loop->objects++;
	return timer;
}

struct hf_timer *hf_timer_destroy(struct hf_timer *timer)
{
	if (!timer)
		return NULL;
	hf_timer_disarm(timer);
	hf_assert(timer->loop->objects > 0);
	timer->loop->objects--;
	free(timer);
	return NULL;
}

void hf_timer_arm(struct hf_timer *timer, hf_time after)
{
	struct hf_loop *loop = timer->loop;

	hf_timer_disarm(timer);
	hf_time due = hf_time_add(hf_loop_mono(loop), after > 0 ? after : 0);
	if (due == HF_TIME_NEVER)
		return;
	timer->due = due;
	timer->seq = loop->seq++;
	bool fits = HF_VEC_PUSH(&loop->timers, timer);
	hf_assert(fits);
	heap_sift_up(loop, loop->timers.len - 1, timer);
}

void hf_timer_disarm(struct hf_timer *timer)
{
	struct hf_loop *loop = timer->loop;
	size_t at = timer->place;

	if (at == HF_TIMER_OFF)
		return;
	hf_assert(at < loop->timers.len && loop->timers.items[at] == timer);
	struct hf_timer *last = loop->timers.items[--loop->timers.len];
	if (last != timer) {
		/* Moves the last element of the heap to its place above or below the gap. One of
		 * the two calls changes nothing. */
		heap_sift_down(loop, at, last);
		heap_sift_up(loop, last->place, last);
	}
	timer->place = HF_TIMER_OFF;
	timer->due = HF_TIME_NEVER;
}

bool hf_timer_armed(const struct hf_timer *timer)
{
	return timer->place != HF_TIMER_OFF;
}

hf_time hf_timer_due(const struct hf_timer *timer)
{
	return timer->due;
}

hf_time hf_loop_next_due(const struct hf_loop *loop)
{
	return loop->timers.len > 0 ? loop->timers.items[0]->due : HF_TIME_NEVER;
}

bool hf_loop_step_timer(struct hf_loop *loop, hf_time now)
{
	struct hf_timer *timer;

	if (loop->timers.len == 0 || hf_loop_next_due(loop) > now)
		return false;
	timer = loop->timers.items[0];
	hf_timer_disarm(timer);
	timer->fn(timer->arg);
	return true;
}

bool hf_loop_step(struct hf_loop *loop, hf_time now)
{
	if (hf_loop_has_tasks(loop)) {
		/* Take the task off the queue first: the callback may destroy or post it again. */
		struct hf_task *task = (struct hf_task *)loop->tasks.next;
		hf_task_cancel(task);
		task->fn(task->arg);
		return true;
	}
	return hf_loop_step_timer(loop, now);
}
