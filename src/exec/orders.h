/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_ORDERS_H
#define HF_EXEC_ORDERS_H

#include "exec/agent_link.h"
#include "exec/phase.h"

HF_BEGIN_DECLS

/*
 * The orders of the agent: which start (generation and attempt) of the rank may run, and which start must stop.
 * Input: the targets of the agent, the ends of CMD, the time.  Output: the phase, and the state that exec sends to
 * the agent. exec.c starts and stops the processes.
 *
 * Invariants:
 * - A target is a level: it may be lost, repeated or late.  A target below the present start changes nothing.
 * - exec reports DOWN after everything below exec has ended.  A go (a target without a hold) counts only for the
 *   start that exec stopped CMD for, or a later start.
 * - No phase without a process lasts for ever: see hf_exec_orders_deadline_ms.
 *
 * All times are of one clock in ms, which the caller gives.
 */

/* exec waits at most this long for the agent's target before it starts CMD for the first time. */
#define HF_EXEC_FIRST_MS 1000
/* How many seconds a pod with variable HOLDFAST_HOLD waits for the agent's order to start CMD, if
 * no target gives another time. */
#define HF_EXEC_HOLD_S 600

/* If CMD ends while no agent is connected, exec keeps the container at most this long for the agent to come back: its
 * kubelet starts a killed agent again within seconds, and a rollout takes a few seconds more. */
#define HF_EXEC_RETURN_MS 15000

struct hf_exec_orders {
	enum hf_exec_phase phase;
	int64_t since_ms; /* when the present phase began */
	struct hf_agent_link link;
	bool heard; /* the agent has sent at least one target */
	/* from when the wait for a go counts: when the present phase began, or later when a target
	 * with a hold arrived; set also if no target ever held the rank */
	int64_t held_ms;
	struct hf_process_target target; /* the target that the agent sent last */
	/* the start (generation, attempt) of the process that runs, or ran last */
	struct hf_process_start own;
	/* the start of the rank for which CMD was, or is being, stopped */
	struct hf_process_start obeyed;
	/* CMD may be started for the first time only after an order of the agent */
	bool must_wait;
	/* CMD ended while no agent was connected, and none has connected since */
	bool unheard;
	bool leaving; /* CMD got a signal to end from outside, so orders do not count any more */
	/* the state for the agent: callers fill in ordinal, end, step and last words; orders.c fills in phase and start */
	struct hf_process_state told;
};

void hf_exec_orders_open(struct hf_exec_orders *orders, const char *agent_socket, bool hold,
			 int64_t now_ms);
/* Connects to the agent if there is no connection, and takes all targets that have arrived. */
void hf_exec_orders_receive(struct hf_exec_orders *orders, int64_t now_ms);
/* Takes one target. */
void hf_exec_orders_take(struct hf_exec_orders *orders, const struct hf_process_target *target,
			 int64_t now_ms);
void hf_exec_orders_move(struct hf_exec_orders *orders, enum hf_exec_event event, int64_t now_ms);
/* Sends the state to the agent if it has changed since the last time. */
void hf_exec_orders_tell(struct hf_exec_orders *orders, int64_t now_ms);
/* Call this after a change of `told`: exec then sends the state to the agent again. */
void hf_exec_orders_touch(struct hf_exec_orders *orders);

/* Whether exec may start CMD now; asked in the phases WAITING and DOWN. */
bool hf_exec_orders_let_start(const struct hf_exec_orders *orders, int64_t now_ms);
/* The caller is about to start CMD: CMD gets the generation and attempt of the last target. */
void hf_exec_orders_started(struct hf_exec_orders *orders, int64_t now_ms);
/* Whether exec may keep the container if CMD ends now. */
bool hf_exec_orders_let_stay(const struct hf_exec_orders *orders);
/*
 * When a phase without a process is over; INT64_MAX: it lasts until the next event.
 *   ENDED    the target's wait after the end of CMD; HF_EXEC_RETURN_MS at most if the agent does not come back
 *   DOWN     the target's wait after the last target with a hold, which the agent repeats while the hold lasts, or after
 *            the go
 *   WAITING  with a hold as in DOWN; without a hold INT64_MAX
 */
int64_t hf_exec_orders_deadline_ms(const struct hf_exec_orders *orders);
/* When the caller has to call hf_exec_orders_receive(), _let_start() or _tell() again; INT64_MAX: at the next
 * event of the connection. */
int64_t hf_exec_orders_wake_ms(const struct hf_exec_orders *orders, int64_t now_ms);

HF_END_DECLS

#endif
