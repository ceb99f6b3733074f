/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_AGENT_PHASES_H
#define HF_AGENT_AGENT_PHASES_H

#include "base/compiler.h"

HF_BEGIN_DECLS

/*
 * The phases of an agent, as tables of phase × event.  Pure: agent.c reports events and acts on the phase.
 *
 * A dash in a table is a broken invariant, which ends the program.
 */

/* The agent's life.  hf_agent_start and hf_agent_stop move it forward only. */
enum hf_agent_life { HF_LIFE_CREATED, HF_LIFE_RUNNING, HF_LIFE_STOPPED };

/* What the agent knows about this boot from the time before it started: the journal, else DeviceHealth. */
enum hf_agent_history {
	HF_HISTORY_KNOWN,
	/* DeviceHealth has not been read yet.  Until then it is not written.  Without a journal of this boot
	 * no device becomes Healthy. */
	HF_HISTORY_ASKING,
	HF_HISTORY_DOUBTED, /* DeviceHealth held more against the node than the journal */
};

/*
 * A step of the brain.  Its plan is published after the journal has it; meanwhile no other step is made.
 *
 *              WANTED   PLANNED   PUBLISHED
 *   IDLE       IDLE     SAVING    -
 *   SAVING     QUEUED   -         IDLE
 *   QUEUED     QUEUED   -         IDLE
 *
 * In IDLE a wanted step is made at once.  From QUEUED, a step follows the publication.
 */
enum hf_agent_step {
	HF_STEP_IDLE,
	HF_STEP_SAVING, /* a plan waits for the journal */
	HF_STEP_QUEUED, /* the same, and another step is wanted */
	HF_STEP_PHASES
};
enum hf_agent_step_event { HF_STEP_WANTED, HF_STEP_PLANNED, HF_STEP_PUBLISHED, HF_STEP_EVENTS };
enum hf_agent_step hf_agent_next_step(enum hf_agent_step phase, enum hf_agent_step_event event);

/*
 * The journal, compared with the memory of the brain.
 *
 *             CHANGED   REFUSED   TAKEN   FAILED
 *   CLEAN     DIRTY     BEHIND    CLEAN   DIRTY
 *   DIRTY     DIRTY     BEHIND    CLEAN   DIRTY
 *   BEHIND    BEHIND    BEHIND    CLEAN   BEHIND
 */
enum hf_agent_journal {
	HF_JOURNAL_CLEAN, /* written, or being written */
	HF_JOURNAL_DIRTY, /* written with the next timer */
	/* A write was refused, as one was running: write after its end. */
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

/* The objects that would read otherwise if they were written now: a set of these. */
enum hf_agent_stale {
	HF_STALE_DEVICE = 1, /* DeviceHealth */
	HF_STALE_NODE = 2,   /* the node's conditions, as the Node may be a new one */
	HF_STALE_PODS = 4,   /* the conditions of pods */
};

HF_END_DECLS

#endif
