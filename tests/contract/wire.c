/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The kube store as a world of contract.h: a turn runs the real loop until a reply or an event has
 * come, or a time limit has passed. */
#include "contract/wire.h"

#define PATIENCE (10 * HF_SECOND)
#define QUIET (25 * HF_MS)

static void on_moved(void *arg)
{
	struct wire *wire = arg;

	wire->moved = true;
	hf_loop_stop(wire->w.loop);
}

static void on_timer(void *arg)
{
	struct wire *wire = arg;

	hf_loop_stop(wire->w.loop);
}

/* Runs the loop until a reply or event has come (returns true) or the span is over. */
static bool run_for(struct wire *wire, hf_time span)
{
	wire->moved = false;
	hf_timer_arm(wire->timer, span);
	hf_loop_run(wire->w.loop);
	hf_timer_disarm(wire->timer);
	return wire->moved;
}

static bool turn_loop(struct world *w)
{
	return run_for((struct wire *)w, PATIENCE);
}

static void settle_wire(struct world *w)
{
	while (run_for((struct wire *)w, QUIET))
		;
}

static void pass_time(struct world *w, hf_time span)
{
	struct wire *wire = (struct wire *)w;
	hf_time end = hf_loop_mono(w->loop) + span;

	for (hf_time left; (left = end - hf_loop_mono(w->loop)) > 0;)
		(void)run_for(wire, left);
}

static struct hf_store *open_client(struct world *w)
{
	struct wire *wire = (struct wire *)w;
	struct hf_store *store;
	struct hf_error err;

	assert_ok(hf_kube_create(w->loop, wire->config, &store, &err), &err);
	return store;
}

void wire_open(struct wire *wire, const struct hf_kube_config *config)
{
	wire->config = config;
	wire->w.turn = turn_loop;
	wire->w.settle = settle_wire;
	wire->w.pass = pass_time;
	wire->w.client = open_client;
	wire->timer = hf_timer_create(wire->w.loop, on_timer, wire);
	contract_moved = on_moved;
	contract_moved_arg = wire;
	wire->w.store = open_client(&wire->w);
	wire->w.other = open_client(&wire->w);
}

void wire_close(struct wire *wire)
{
	hf_store_destroy(wire->w.store);
	hf_store_destroy(wire->w.other);
	wire->timer = hf_timer_destroy(wire->timer);
}
