/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/phase.h"

/*
 * The table of phases and events (phase.h) as an array, and what the agent is told of a phase.
 */

#define WAITING (HF_EXEC_WAITING + 1)
#define RUNNING (HF_EXEC_RUNNING + 1)
#define SAVING (HF_EXEC_SAVING + 1)
#define STOPPING (HF_EXEC_STOPPING + 1)
#define ENDED (HF_EXEC_ENDED + 1)
#define DOWN (HF_EXEC_DOWN + 1)
#define LEAVING (HF_EXEC_LEAVING + 1)

/* The next phase + 1, by phase and event; 0: the event must not happen in this phase.  exec/phase.h has the same
 * table. */
static const unsigned char next[HF_EXEC_PHASES][HF_EXEC_EVENTS] = {
	/* The order of the columns: ORDER, GO, STAY, LEAVE, SAVED, EXPIRED, TOLD, FENCED */
	[HF_EXEC_WAITING] = {WAITING, RUNNING, 0, 0, 0, LEAVING, LEAVING, LEAVING},
	[HF_EXEC_RUNNING] = {SAVING, RUNNING, ENDED, LEAVING, 0, 0, RUNNING, LEAVING},
	[HF_EXEC_SAVING] = {SAVING, SAVING, DOWN, LEAVING, STOPPING, 0, SAVING, LEAVING},
	[HF_EXEC_STOPPING] = {STOPPING, STOPPING, DOWN, LEAVING, 0, 0, STOPPING, LEAVING},
	[HF_EXEC_ENDED] = {DOWN, ENDED, 0, 0, 0, LEAVING, LEAVING, LEAVING},
	[HF_EXEC_DOWN] = {DOWN, RUNNING, 0, 0, 0, LEAVING, LEAVING, LEAVING},
	[HF_EXEC_LEAVING] = {LEAVING, LEAVING, LEAVING, LEAVING, LEAVING, LEAVING, LEAVING,
			     LEAVING},
};

enum hf_exec_phase hf_exec_next_phase(enum hf_exec_phase phase, enum hf_exec_event event)
{
	unsigned char to = next[phase][event];

	hf_assert(to != 0);
	return (enum hf_exec_phase)(to - 1);
}

bool hf_exec_phase_has_cmd(enum hf_exec_phase phase)
{
	return phase == HF_EXEC_RUNNING || phase == HF_EXEC_SAVING || phase == HF_EXEC_STOPPING;
}

enum hf_process_line_phase hf_exec_told_phase(enum hf_exec_phase phase)
{
	if (hf_exec_phase_has_cmd(phase))
		return HF_PROCESS_LINE_RUNNING;
	if (phase == HF_EXEC_WAITING)
		return HF_PROCESS_LINE_WAITING;
	return phase == HF_EXEC_DOWN ? HF_PROCESS_LINE_DOWN : HF_PROCESS_LINE_ENDED;
}
