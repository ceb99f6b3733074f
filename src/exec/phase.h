/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_PHASE_H
#define HF_EXEC_PHASE_H

#include "base/compiler.h"
#include "health/process_line.h"

HF_BEGIN_DECLS

/*
 * The phases of `holdfast exec`, as a table of phase × event.  Pure: exec.c reports events and acts on the phase.
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
 * A dash is a broken invariant, which ends the program.  From LEAVING no event leads back: no process is started
 * after a fence, or after a signal to end that came while none ran.
 */
enum hf_exec_phase {
	HF_EXEC_WAITING,  /* no process was started yet */
	HF_EXEC_RUNNING,  /* CMD runs */
	HF_EXEC_SAVING,   /* an order to stop came; the ranks save first */
	HF_EXEC_STOPPING, /* CMD got SIGTERM; after the grace all descendants get SIGKILL */
	HF_EXEC_ENDED,    /* CMD ended by itself; nothing runs; an order may come */
	HF_EXEC_DOWN,     /* an order is obeyed: nothing runs; the go may come */
	HF_EXEC_LEAVING,  /* exec ends */
	HF_EXEC_PHASES
};

enum hf_exec_event {
	HF_EXEC_ORDER,   /* the target is above the present start */
	HF_EXEC_GO,      /* the target lets a process run */
	HF_EXEC_STAY,    /* CMD and all descendants have ended, and exec keeps the container */
	HF_EXEC_LEAVE,   /* CMD has ended, and exec ends too */
	HF_EXEC_SAVED,   /* the ranks have saved, or their time is over */
	HF_EXEC_EXPIRED, /* no order, or no go, came in time */
	HF_EXEC_TOLD,    /* a signal to end came from outside */
	HF_EXEC_FENCED,  /* the node has no contact with the control plane */
	HF_EXEC_EVENTS
};

enum hf_exec_phase hf_exec_next_phase(enum hf_exec_phase phase, enum hf_exec_event event);
/* CMD runs in this phase. */
bool hf_exec_phase_has_cmd(enum hf_exec_phase phase);
/* The phase as the agent is told it.  LEAVING is told as ENDED. */
enum hf_process_line_phase hf_exec_told_phase(enum hf_exec_phase phase);

HF_END_DECLS

#endif
