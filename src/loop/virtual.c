/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The virtual back end of the loop: its clock is a variable. When no callback is due, the clock
 * jumps to the due time of the next timer. It offers no fds, signals or processes. */
#include "loop/loop_internal.h"

#include "base/mem.h"

#include <stdlib.h>

/* A loop without a real clock: its monotonic time is the field `now`, which only this file sets
 * forward. */
struct virtual_loop {
	struct hf_loop base; /* must be first: a hf_loop is cast to its virtual_loop */
	hf_time now;
	hf_time wall_offset; /* difference between the wall clock and the monotonic clock */
};

static const struct hf_loop_ops virtual_ops;

static struct virtual_loop *to_virtual(struct hf_loop *loop)
{
	hf_assert(loop->ops == &virtual_ops);
	return (struct virtual_loop *)loop;
}

static hf_time virtual_mono(const struct hf_loop *loop)
{
	return ((const struct virtual_loop *)loop)->now;
}

static hf_time virtual_wall(const struct hf_loop *loop)
{
	const struct virtual_loop *v = (const struct virtual_loop *)loop;

	return v->now + v->wall_offset;
}

/* Runs everything due at this instant. Returns false if hf_loop_stop was called. */
static bool run_due_now(struct virtual_loop *v, bool *ret_any)
{
	unsigned long long steps = 0;

	while (!v->base.stop && hf_loop_step(&v->base, v->now)) {
		*ret_any = true;
		hf_assert(++steps < HF_LOOP_STEPS_MAX);
	}
	return !v->base.stop;
}

static void virtual_run(struct hf_loop *loop)
{
	struct virtual_loop *v = to_virtual(loop);
	bool any = false;

	while (run_due_now(v, &any) && hf_loop_next_due(loop) != HF_TIME_NEVER)
		v->now = hf_loop_next_due(loop);
}

bool hf_loop_run_until(struct hf_loop *loop, hf_time until)
{
	struct virtual_loop *v = to_virtual(loop);
	bool any = false;

	hf_assert(!loop->running && until != HF_TIME_NEVER);
	loop->running = true;
	while (run_due_now(v, &any) && hf_loop_next_due(loop) <= until)
		v->now = hf_loop_next_due(loop);
	bool whole = !loop->stop;
	if (whole && v->now < until)
		v->now = until;
	loop->running = loop->stop = false;
	return whole;
}

bool hf_loop_run_ready(struct hf_loop *loop)
{
	bool any = false;

	hf_assert(!loop->running);
	loop->running = true;
	(void)run_due_now(to_virtual(loop), &any);
	loop->running = loop->stop = false;
	return any;
}

void hf_loop_step_wall(struct hf_loop *loop, hf_time by)
{
	to_virtual(loop)->wall_offset += by;
}

void hf_loop_freeze(struct hf_loop *loop, hf_time span)
{
	hf_assert(!loop->running && span >= 0);
	to_virtual(loop)->now += span;
}

static void virtual_destroy(struct hf_loop *loop)
{
	hf_loop_release_base(loop);
	free(to_virtual(loop));
}

static const struct hf_loop_ops virtual_ops = {
	.mono = virtual_mono,
	.wall = virtual_wall,
	.run = virtual_run,
	.destroy = virtual_destroy,
};

struct hf_loop *hf_loop_create_virtual(hf_time wall_start)
{
	struct virtual_loop *v = hf_xcalloc(1, sizeof(*v));

	hf_loop_init_base(&v->base, &virtual_ops);
	v->wall_offset = wall_start;
	return &v->base;
}

bool hf_loop_is_real(const struct hf_loop *loop)
{
	return loop->ops != &virtual_ops;
}
