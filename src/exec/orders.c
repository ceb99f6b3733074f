/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/orders.h"

/*
 * Follows the orders of the node's agent: which start of the rank may run, and which must stop.
 *
 * Input: targets from the agent's socket, the events of CMD, the time.  Output: the phase, whether
 * CMD may start, the deadline of a wait, and the state that exec sends to the agent.
 *
 * A target names a start: the generation and attempt of the rank, and whether the rank is held.  If
 * a target names a later start than the present one, CMD must stop (event ORDER), and may start
 * again when a target for that start or a later one has no hold.  This file starts and stops no
 * process: exec.c does.
 */

/* If the agent's queue is full, exec sends its state again after this time. */
#define SEND_AGAIN_MS 100
/* Most targets taken in a row: an agent that sends without end does not delay the fence. */
#define TARGETS_AT_ONCE 64

static bool is_above(const struct hf_process_start *left, const struct hf_process_start *right)
{
	return hf_process_start_order(left, right) > 0;
}

static void raise_start(struct hf_process_start *start, const struct hf_process_start *to)
{
	if (is_above(to, start))
		*start = *to;
}

void hf_exec_orders_open(struct hf_exec_orders *o, const char *agent_socket, bool hold,
			 int64_t now_ms)
{
	*o = (struct hf_exec_orders){
		.phase = HF_EXEC_WAITING, .since_ms = now_ms, .held_ms = now_ms, .must_wait = hold};
	hf_agent_link_open(&o->link, agent_socket);
}

void hf_exec_orders_touch(struct hf_exec_orders *o)
{
	o->link.due = true;
}

void hf_exec_orders_move(struct hf_exec_orders *o, enum hf_exec_event event, int64_t now_ms)
{
	enum hf_exec_phase next = hf_exec_next_phase(o->phase, event);

	if (next == o->phase)
		return;
	o->phase = next;
	o->since_ms = o->held_ms = now_ms;
	o->unheard = next == HF_EXEC_ENDED && !hf_agent_link_is_connected(&o->link);
	hf_exec_orders_touch(o);
}

/* ---- targets ------------------------------------------------------------------------------------- */

/* Whether the last target is of the rank's present start: the agent may know a pod before it sees the ledger's write
 * that made the pod, and a target may come late.  Then it is too low. */
static bool is_current(const struct hf_exec_orders *o)
{
	return o->target.start.known && !is_above(&o->own, &o->target.start);
}

static void take_in_waiting(struct hf_exec_orders *o)
{
	struct hf_process_start before = o->own;

	raise_start(&o->own, &o->target.first);
	raise_start(&o->own, &o->target.start);
	if (is_current(o) && o->target.hold)
		o->must_wait = true;
	if (is_above(&o->own, &before))
		hf_exec_orders_touch(o);
}

/* If the first process was started without a target, the first target tells its generation and attempt. */
static void learn_own(struct hf_exec_orders *o)
{
	if (o->own.known)
		return;
	o->own = o->target.first.known ? o->target.first : o->target.start;
	if (o->own.known)
		hf_exec_orders_touch(o);
}

static void obey_target(struct hf_exec_orders *o, int64_t now_ms)
{
	if (o->leaving || !is_above(&o->target.start, &o->own) ||
	    !is_above(&o->target.start, &o->obeyed))
		return;
	o->obeyed = o->target.start;
	hf_exec_orders_move(o, HF_EXEC_ORDER, now_ms);
	hf_exec_orders_touch(o);
}

void hf_exec_orders_take(struct hf_exec_orders *o, const struct hf_process_target *target,
			 int64_t now_ms)
{
	if (o->phase == HF_EXEC_LEAVING)
		return;
	o->target = *target;
	o->heard = true;
	if (target->start.known && (target->hold || hf_exec_orders_let_start(o, now_ms)))
		o->held_ms = now_ms;
	if (o->phase == HF_EXEC_WAITING) {
		take_in_waiting(o);
		return;
	}
	learn_own(o);
	obey_target(o, now_ms);
}

void hf_exec_orders_receive(struct hf_exec_orders *o, int64_t now_ms)
{
	struct hf_process_target target;

	if (!hf_agent_link_connect(&o->link, now_ms))
		return;
	o->unheard = false;
	for (int i = 0; i < TARGETS_AT_ONCE && hf_agent_link_receive(&o->link, now_ms, &target); i++)
		hf_exec_orders_take(o, &target, now_ms);
}

/* ---- starts and ends ----------------------------------------------------------------------------- */

static bool lets_first_start(const struct hf_exec_orders *o, int64_t now_ms)
{
	if (is_current(o))
		return !o->target.hold;
	if (o->must_wait)
		return false;
	return !hf_agent_link_is_connected(&o->link) || (o->heard && !o->target.start.known) ||
	       now_ms - o->since_ms >= HF_EXEC_FIRST_MS;
}

bool hf_exec_orders_let_start(const struct hf_exec_orders *o, int64_t now_ms)
{
	if (o->phase == HF_EXEC_WAITING)
		return lets_first_start(o, now_ms);
	return o->phase == HF_EXEC_DOWN && o->target.start.known && !o->target.hold &&
	       !is_above(&o->obeyed, &o->target.start);
}

void hf_exec_orders_started(struct hf_exec_orders *o, int64_t now_ms)
{
	uint32_t ordinal = o->told.ordinal + 1;

	raise_start(&o->own, &o->obeyed);
	raise_start(&o->own, &o->target.start);
	o->told = (struct hf_process_state){.ordinal = ordinal,
					    .has_saved = o->told.has_saved,
					    .saved = o->told.saved,
					    .save_ms = o->told.save_ms};
	hf_exec_orders_move(o, HF_EXEC_GO, now_ms);
}

bool hf_exec_orders_let_stay(const struct hf_exec_orders *o)
{
	/* The operator waits for the report that the rank is down, also where nothing restarts in place. */
	bool ordered = o->phase == HF_EXEC_SAVING || o->phase == HF_EXEC_STOPPING;

	return !o->leaving && o->target.start.known && (ordered || o->target.wait_s > 0);
}

static int64_t find_wait_ms(const struct hf_exec_orders *o)
{
	/* If the job no longer restarts in place, no wait is known; the operator replaces the pod. */
	return (int64_t)(o->target.start.known && o->target.wait_s > 0 ? o->target.wait_s
								       : HF_EXEC_HOLD_S) *
	       1000;
}

static int64_t find_ended_ms(const struct hf_exec_orders *o)
{
	int64_t wait_ms = (int64_t)o->target.wait_s * 1000;

	return o->unheard && wait_ms > HF_EXEC_RETURN_MS ? HF_EXEC_RETURN_MS : wait_ms;
}

int64_t hf_exec_orders_deadline_ms(const struct hf_exec_orders *o)
{
	switch (o->phase) {
	case HF_EXEC_ENDED: return o->since_ms + find_ended_ms(o);
	case HF_EXEC_DOWN: return o->held_ms + find_wait_ms(o);
	case HF_EXEC_WAITING: return o->must_wait ? o->held_ms + find_wait_ms(o) : INT64_MAX;
	default: return INT64_MAX;
	}
}

int64_t hf_exec_orders_wake_ms(const struct hf_exec_orders *o, int64_t now_ms)
{
	int64_t at = hf_exec_orders_deadline_ms(o), retry_ms = hf_agent_link_retry_ms(&o->link);

	if (retry_ms < at)
		at = retry_ms;
	if (o->link.due && hf_agent_link_is_connected(&o->link) && now_ms + SEND_AGAIN_MS < at)
		at = now_ms + SEND_AGAIN_MS;
	if (o->phase == HF_EXEC_WAITING && !o->must_wait && o->since_ms + HF_EXEC_FIRST_MS < at)
		at = o->since_ms + HF_EXEC_FIRST_MS;
	return at;
}

/* ---- sending the state to the agent -------------------------------------------------------------- */

static uint32_t count_ended_ms(const struct hf_exec_orders *o, int64_t now_ms)
{
	int64_t ms = now_ms - o->since_ms;

	if (ms < 0)
		return 0;
	return ms < HF_PROCESS_ENDED_MS_MAX ? (uint32_t)ms : HF_PROCESS_ENDED_MS_MAX;
}

void hf_exec_orders_tell(struct hf_exec_orders *o, int64_t now_ms)
{
	struct hf_process_state state = o->told;

	state.phase = hf_exec_told_phase(o->phase);
	state.start = state.phase == HF_PROCESS_LINE_DOWN ? o->obeyed : o->own;
	/* The time, code, cause and last words of an end are sent only in the phase ENDED. */
	if (state.phase == HF_PROCESS_LINE_ENDED) {
		state.ended_ms = count_ended_ms(o, now_ms);
	} else {
		state.code = state.signal = 0;
		state.cause[0] = state.words[0] = '\0';
	}
	hf_agent_link_send(&o->link, &state, now_ms);
}
