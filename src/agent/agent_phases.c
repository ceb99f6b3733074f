/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The tables of agent_phases.h. */
#include "agent/agent_phases.h"

#include <stdint.h>

#define NEVER UINT8_MAX

static const uint8_t steps[HF_STEP_PHASES][HF_STEP_EVENTS] = {
	[HF_STEP_IDLE] = {HF_STEP_IDLE, HF_STEP_SAVING, NEVER},
	[HF_STEP_SAVING] = {HF_STEP_QUEUED, NEVER, HF_STEP_IDLE},
	[HF_STEP_QUEUED] = {HF_STEP_QUEUED, NEVER, HF_STEP_IDLE},
};

static const uint8_t journals[HF_JOURNAL_PHASES][HF_JOURNAL_EVENTS] = {
	[HF_JOURNAL_CLEAN] = {HF_JOURNAL_DIRTY, HF_JOURNAL_BEHIND, HF_JOURNAL_CLEAN,
			      HF_JOURNAL_DIRTY},
	[HF_JOURNAL_DIRTY] = {HF_JOURNAL_DIRTY, HF_JOURNAL_BEHIND, HF_JOURNAL_CLEAN,
			      HF_JOURNAL_DIRTY},
	[HF_JOURNAL_BEHIND] = {HF_JOURNAL_BEHIND, HF_JOURNAL_BEHIND, HF_JOURNAL_CLEAN,
			       HF_JOURNAL_BEHIND},
};

enum hf_agent_step hf_agent_next_step(enum hf_agent_step phase, enum hf_agent_step_event event)
{
	uint8_t next = steps[phase][event];

	hf_assert(next != NEVER);
	return (enum hf_agent_step)next;
}

enum hf_agent_journal hf_agent_next_journal(enum hf_agent_journal phase,
					    enum hf_agent_journal_event event)
{
	return (enum hf_agent_journal)journals[phase][event];
}
