/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_ORDERS_H
#define HF_EXEC_ORDERS_H

#include "exec/agent_link.h"
#include "exec/phase.h"

HF_BEGIN_DECLS

/*
 * The orders of the agent: which start of the rank may run, and which must stop.  Input: targets of the agent, the ends of
 * CMD, the time.  Output: the phase, and what exec tells the agent.  exec.c starts and stops processes.
 *
 * Invariants:
 * - A target is a level: it may be lost, repeated or late.  A target below the present start changes nothing.
 * - Down is told after everything below exec has ended, and a go counts only for the start that is obeyed, or a later one.
 * - No phase without a process lasts for ever: see hf_exec_orders_deadline_ms.
 *
 * All times are of one clock in ms, which the caller gives.
 */

/* exec gives an agent this long to tell the start before it starts CMD for the first time. */
#define HF_EXEC_FIRST_MS 1000
/* With HOLDFAST_HOLD and without a word of the agent, a rank waits so long for its go. */
#define HF_EXEC_HOLD_S 600

struct hf_exec_orders {
	enum hf_exec_phase phase;
	int64_t since_ms; /* of the phase */
	struct hf_agent_link link;
	bool heard;                      /* a target came */
	int64_t held_ms;                 /* time of the last target with a hold */
	struct hf_process_target target; /* the last one */
	struct hf_process_start own;     /* of the present or last process */
	struct hf_process_start obeyed;  /* CMD was, or is, stopped for this start */
	bool must_wait;                  /* the first start needs a go */
	bool leaving; /* CMD got a signal to end from outside: orders do not count any more */
	struct hf_process_state
		told; /* ordinal, end, step and words of the process; orders.c fills in the rest */
};

void hf_exec_orders_open(struct hf_exec_orders *orders, const char *agent_socket, bool hold,
			 int64_t now_ms);
/* Connects to the agent, and takes all targets that have arrived. */
void hf_exec_orders_receive(struct hf_exec_orders *orders, int64_t now_ms);
/* Takes one target. */
void hf_exec_orders_take(struct hf_exec_orders *orders, const struct hf_process_target *target,
			 int64_t now_ms);
void hf_exec_orders_move(struct hf_exec_orders *orders, enum hf_exec_event event, int64_t now_ms);
/* Tells the agent the state if it has changed. */
void hf_exec_orders_tell(struct hf_exec_orders *orders, int64_t now_ms);
/* The contents of `told` have changed. */
void hf_exec_orders_touch(struct hf_exec_orders *orders);

/* In WAITING and DOWN: CMD may be started now. */
bool hf_exec_orders_let_start(const struct hf_exec_orders *orders, int64_t now_ms);
/* CMD is started: it belongs to the start that the target names. */
void hf_exec_orders_started(struct hf_exec_orders *orders, int64_t now_ms);
/* If CMD ends now, exec may keep the container. */
bool hf_exec_orders_let_stay(const struct hf_exec_orders *orders);
/*
 * When a phase without a process is over; INT64_MAX: not before the next event.
 *   ENDED   the target's wait after the end
 *   DOWN, WAITING with a hold
 *           the target's wait after the last target that holds this rank; the agent repeats it while it stands
 */
int64_t hf_exec_orders_deadline_ms(const struct hf_exec_orders *orders);
/* When the functions above have to be called again; INT64_MAX: at the next event of the link. */
int64_t hf_exec_orders_wake_ms(const struct hf_exec_orders *orders, int64_t now_ms);

HF_END_DECLS

#endif
