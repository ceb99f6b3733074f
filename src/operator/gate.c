/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/pass_internal.h"

/*
 * The two gates: they limit the requests under way, and decide which pass sends next.
 *
 * Input: passes that have a request to send, in the order in which they came.  Output: calls of
 * hf_pass_send.  A pass with an urgent status, or with objects of unanswered requests to read,
 * waits at the first gate.  Any other pass waits at the second gate.
 *
 * Invariants: no pass goes through the second gate while a pass waits at the first; at most
 * op->in_flight_max requests are under way; if a rate is set, no request is sent without a token,
 * which hf_pass_send takes.
 */

/* The most requests that a pass sends in its turn.  The pods of a small job are created together,
 * so that they are scheduled and reported together.  A job of thousands of pods lets other jobs in
 * between. */
#define GATE_TURN 16

static bool wants_to_send(const struct hf_pass *pass)
{
	if (pass->op->stopping)
		return false;
	switch (pass->phase) {
	case HF_PASS_LEDGER:
	case HF_PASS_STATUS:
	case HF_PASS_READ: return pass->request == HF_REQUEST_WAITING;
	case HF_PASS_STAGE:
		/* After a failure, the pass only reads the objects of unanswered requests. */
		return pass->n_unsure > 0 || (pass->code == 0 && pass->next < pass->n_calls);
	case HF_PASS_DECIDE:
	case HF_PASS_OVER:
	case HF_PASS_PHASES: break;
	}
	return false;
}

static struct hf_gate *choose_gate(struct hf_pass *pass)
{
	bool first = pass->phase == HF_PASS_STAGE ? pass->n_unsure > 0 : pass->plan.status_urgent;

	return &pass->op->gates[first ? 0 : 1];
}

void hf_gate_enter(struct hf_pass *pass)
{
	struct hf_gate *gate = choose_gate(pass);

	if (pass->gate != NULL || !wants_to_send(pass))
		return;
	pass->gate = gate;
	pass->gate_next = NULL;
	pass->turn_left = GATE_TURN;
	*gate->last = pass;
	gate->last = &pass->gate_next;
}

void hf_gate_leave(struct hf_pass *pass)
{
	struct hf_gate *gate = pass->gate;

	if (gate == NULL)
		return;
	for (struct hf_pass **p = &gate->first; *p != NULL; p = &(*p)->gate_next) {
		if (*p != pass)
			continue;
		*p = pass->gate_next;
		if (*p == NULL)
			gate->last = p;
		break;
	}
	pass->gate = NULL;
}

/* A token bucket like client-go's.  Only asks whether a token is there: hf_pass_send (pass.c) takes
 * the token with the request that it sends. */
static bool has_token(struct hf_operator *op)
{
	double qps = op->options.qps, burst = op->options.burst > 0 ? op->options.burst : 1;
	hf_time now = hf_loop_mono(op->loop);

	if (qps <= 0)
		return true;
	op->tokens += qps * (double)(now - op->tokens_at) / (double)HF_SECOND;
	if (op->tokens > burst)
		op->tokens = burst;
	op->tokens_at = now;
	if (op->tokens >= 1)
		return true;
	/* One nanosecond is added: a time that was rounded down would arm the timer again at
	 * once. */
	hf_timer_arm(op->gate_timer, (hf_time)((1 - op->tokens) / qps * (double)HF_SECOND) + 1);
	return false;
}

static struct hf_pass *find_first(struct hf_operator *op)
{
	return op->gates[0].first != NULL ? op->gates[0].first : op->gates[1].first;
}

static void let_through(struct hf_pass *pass)
{
	if (--pass->turn_left <= 0 || pass->phase != HF_PASS_STAGE || !wants_to_send(pass))
		hf_gate_leave(pass);
	if (!wants_to_send(pass))
		hf_pass_advance(pass);
	else if (!hf_pass_has_job(pass))
		hf_pass_give_up(pass, HF_E_NOT_FOUND, "the job is gone");
	else
		hf_pass_send(pass);
}

void hf_gate_open(struct hf_operator *op)
{
	struct hf_pass *pass;

	if (op->in_gate)
		return;
	op->in_gate = true;
	while (op->in_flight < op->in_flight_max && (pass = find_first(op)) != NULL) {
		if (wants_to_send(pass) && !has_token(op))
			break;
		let_through(pass);
	}
	op->in_gate = false;
}
