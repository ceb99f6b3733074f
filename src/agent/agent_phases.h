/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_AGENT_PHASES_H
#define HF_AGENT_AGENT_PHASES_H

#include "base/compiler.h"

HF_BEGIN_DECLS

/*
 * The phases of an agent, as tables: the next phase by phase (row) and event (column).  Pure: agent.c reports events,
 * and acts as the phase requires.
 *
 * A dash in a table: the event must not happen in this phase; if it does, the program ends.
 */

/* The life of an agent.  hf_agent_start() and hf_agent_stop() move it forward only. */
enum hf_agent_life { HF_LIFE_CREATED, HF_LIFE_RUNNING, HF_LIFE_STOPPED };

/* What the agent knows about this boot from before its own start, from the journal or else from DeviceHealth. */
enum hf_agent_history {
	HF_HISTORY_KNOWN,
	/* The agent has not read DeviceHealth yet, and does not write it before.  Without a journal of this boot
	 * no device becomes Healthy. */
	HF_HISTORY_ASKING,
	HF_HISTORY_DOUBTED, /* DeviceHealth showed more faults of the node than the journal */
};

/*
 * A step of the brain.  The step's plan is published after the journal has it; until then no other step is made.
 *
 *              WANTED   PLANNED   PUBLISHED
 *   IDLE       IDLE     SAVING    -
 *   SAVING     QUEUED   -         IDLE
 *   QUEUED     QUEUED   -         IDLE
 *
 * In IDLE a wanted step is made at once.  After QUEUED the next step is made when the plan is published.
 */
enum hf_agent_step {
	HF_STEP_IDLE,
	HF_STEP_SAVING, /* the plan of a step is published once the journal is written */
	HF_STEP_QUEUED, /* a plan waits for the journal, and another step is wanted */
	HF_STEP_PHASES
};
enum hf_agent_step_event { HF_STEP_WANTED, HF_STEP_PLANNED, HF_STEP_PUBLISHED, HF_STEP_EVENTS };
enum hf_agent_step hf_agent_next_step(enum hf_agent_step phase, enum hf_agent_step_event event);

/*
 * Whether the journal on the disk has what the memory of the brain has.
 *
 *             CHANGED   REFUSED   TAKEN   FAILED
 *   CLEAN     DIRTY     BEHIND    CLEAN   DIRTY
 *   DIRTY     DIRTY     BEHIND    CLEAN   DIRTY
 *   BEHIND    BEHIND    BEHIND    CLEAN   BEHIND
 */
enum hf_agent_journal {
	HF_JOURNAL_CLEAN, /* written, or being written */
	HF_JOURNAL_DIRTY, /* the journal is out of date, and is written when its timer fires */
	/* A write was refused because another write was running: the journal is written again after that write. */
	HF_JOURNAL_BEHIND,
	HF_JOURNAL_PHASES
};
enum hf_agent_journal_event {
	HF_JOURNAL_CHANGED,
	HF_JOURNAL_REFUSED,
	HF_JOURNAL_TAKEN,
	HF_JOURNAL_FAILED,
	HF_JOURNAL_EVENTS
};
enum hf_agent_journal hf_agent_next_journal(enum hf_agent_journal phase,
					    enum hf_agent_journal_event event);

/* A set of these flags: the objects of the API server that would change if the agent wrote them now. */
enum hf_agent_stale {
	HF_STALE_DEVICE = 1, /* DeviceHealth */
	HF_STALE_NODE = 2,   /* the node's conditions: the Node may be a new object without them */
	HF_STALE_PODS = 4,   /* the conditions of pods */
};

HF_END_DECLS

#endif
