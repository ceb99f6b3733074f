/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_PHASE_H
#define HF_EXEC_PHASE_H

#include "base/compiler.h"
#include "health/process_line.h"

HF_BEGIN_DECLS

/*
 * The phases of `holdfast exec`, as a table: the next phase by phase (row) and event (column).  Pure: exec.c reports
 * events, and acts as the phase requires.
 *
 *              ORDER     GO        STAY   LEAVE    SAVED     EXPIRED  TOLD      FENCED
 *   WAITING    WAITING   RUNNING   -      -        -         LEAVING  LEAVING   LEAVING
 *   RUNNING    SAVING    RUNNING   ENDED  LEAVING  -         -        RUNNING   LEAVING
 *   SAVING     SAVING    SAVING    DOWN   LEAVING  STOPPING  -        SAVING    LEAVING
 *   STOPPING   STOPPING  STOPPING  DOWN   LEAVING  -         -        STOPPING  LEAVING
 *   ENDED      DOWN      ENDED     -      -        -         LEAVING  LEAVING   LEAVING
 *   DOWN       DOWN      RUNNING   -      -        -         LEAVING  LEAVING   LEAVING
 *   LEAVING    LEAVING in each column
 *
 * A dash: the event must not happen in this phase; if it does, the program ends.  No event leads from LEAVING to
 * another phase: exec starts no process after a fence, or after a signal to end that came while no process ran.
 */
enum hf_exec_phase {
	HF_EXEC_WAITING,  /* no process was started yet */
	HF_EXEC_RUNNING,  /* CMD runs */
	HF_EXEC_SAVING,   /* an order to stop CMD came; the ranks save first */
	HF_EXEC_STOPPING, /* CMD got SIGTERM; after the grace period all descendants get SIGKILL */
	HF_EXEC_ENDED,    /* CMD ended by itself, and nothing runs; an order may still come */
	/* exec stopped CMD by an order; CMD does not run, and exec waits for the order to start it
	 * again */
	HF_EXEC_DOWN,
	HF_EXEC_LEAVING, /* exec ends */
	HF_EXEC_PHASES
};

enum hf_exec_event {
	HF_EXEC_ORDER,   /* the agent sent a target above the present start of the rank: stop CMD */
	HF_EXEC_GO,      /* event: the agent's target lets CMD run */
	HF_EXEC_STAY,    /* CMD and all descendants have ended, and exec keeps the container */
	HF_EXEC_LEAVE,   /* CMD has ended, and exec ends too */
	HF_EXEC_SAVED,   /* the ranks have saved, or the time to save is over */
	HF_EXEC_EXPIRED, /* event: the time in which exec waits for an order has passed */
	HF_EXEC_TOLD,    /* event: a signal from outside told exec to end */
	HF_EXEC_FENCED,  /* the node has no contact with the control plane */
	HF_EXEC_EVENTS
};

enum hf_exec_phase hf_exec_next_phase(enum hf_exec_phase phase, enum hf_exec_event event);
/* CMD runs in this phase. */
bool hf_exec_phase_has_cmd(enum hf_exec_phase phase);
/* The phase in the words of the agent's protocol.  LEAVING is ENDED there. */
enum hf_process_line_phase hf_exec_told_phase(enum hf_exec_phase phase);

HF_END_DECLS

#endif
