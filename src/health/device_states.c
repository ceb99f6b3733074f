/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The states of a device: the table of the next state by state and event, and the names; see
 * docs/design/132-device-states.md. */
#include "health/device_states.h"

static const char *const event_names[HF_HEALTH_EVENTS] = {
	"heard",    "silent",   "weak",     "confirmed", "stopped",
	"quiet",    "mended",   "eased",    "covered",   "booted",
	"flapped",  "relapsed", "passed",   "taken",     "begun",
	"verified", "missed",   "given-up", "released",  "cleared-by-person",
};

/* The state plus 1, so that 0 means that the table has no entry. */
#define TO(state) (1 + HF_HEALTH_##state)

/*
 * Without an entry the event changes nothing.  Unknown is never quarantined.  Silence of the detectors ends only the
 * state Suspect. A device leaves Unhealthy by positive evidence, by an order or by a person, and Failed by a person
 * alone.
 */
static const uint8_t table[HF_HEALTH_STATES][HF_HEALTH_EVENTS] = {
	[HF_HEALTH_UNKNOWN] =
		{
			[HF_HEALTH_HEARD] = TO(HEALTHY),
			[HF_HEALTH_WEAK] = TO(SUSPECT),
			[HF_HEALTH_STOPPED] = TO(UNHEALTHY),
		},
	[HF_HEALTH_HEALTHY] =
		{
			[HF_HEALTH_SILENT] = TO(UNKNOWN),
			[HF_HEALTH_WEAK] = TO(SUSPECT),
			[HF_HEALTH_STOPPED] = TO(UNHEALTHY),
			[HF_HEALTH_COVERED] = TO(UNKNOWN),
			[HF_HEALTH_BOOTED] = TO(UNKNOWN),
		},
	[HF_HEALTH_SUSPECT] =
		{
			[HF_HEALTH_SILENT] = TO(UNKNOWN),
			[HF_HEALTH_CONFIRMED] = TO(DEGRADED_STATE),
			[HF_HEALTH_STOPPED] = TO(UNHEALTHY),
			[HF_HEALTH_QUIET] = TO(HEALTHY),
			[HF_HEALTH_COVERED] = TO(UNKNOWN),
			[HF_HEALTH_BOOTED] = TO(UNKNOWN),
			[HF_HEALTH_FLAPPED] = TO(FAILED),
			[HF_HEALTH_TAKEN] = TO(QUARANTINED),
			[HF_HEALTH_CLEARED_BY_PERSON] = TO(PROBATION),
		},
	[HF_HEALTH_DEGRADED_STATE] =
		{
			[HF_HEALTH_STOPPED] = TO(UNHEALTHY),
			[HF_HEALTH_QUIET] = TO(HEALTHY),
			[HF_HEALTH_COVERED] = TO(UNKNOWN),
			[HF_HEALTH_BOOTED] = TO(UNKNOWN),
			[HF_HEALTH_TAKEN] = TO(QUARANTINED),
			[HF_HEALTH_CLEARED_BY_PERSON] = TO(PROBATION),
		},
	[HF_HEALTH_UNHEALTHY] =
		{
			[HF_HEALTH_MENDED] = TO(PROBATION),
			[HF_HEALTH_EASED] = TO(DEGRADED_STATE),
			[HF_HEALTH_COVERED] = TO(UNKNOWN),
			[HF_HEALTH_TAKEN] = TO(QUARANTINED),
			[HF_HEALTH_GIVEN_UP] = TO(FAILED),
			[HF_HEALTH_CLEARED_BY_PERSON] = TO(PROBATION),
		},
	[HF_HEALTH_QUARANTINED] =
		{
			[HF_HEALTH_BEGUN] = TO(REMEDIATING),
			[HF_HEALTH_GIVEN_UP] = TO(FAILED),
			[HF_HEALTH_RELEASED] = TO(PROBATION),
			[HF_HEALTH_CLEARED_BY_PERSON] = TO(PROBATION),
		},
	[HF_HEALTH_REMEDIATING] =
		{
			[HF_HEALTH_VERIFIED] = TO(PROBATION),
			[HF_HEALTH_MISSED] = TO(QUARANTINED),
			[HF_HEALTH_GIVEN_UP] = TO(FAILED),
		},
	[HF_HEALTH_PROBATION] =
		{
			[HF_HEALTH_WEAK] = TO(SUSPECT),
			[HF_HEALTH_STOPPED] = TO(UNHEALTHY),
			[HF_HEALTH_RELAPSED] = TO(QUARANTINED),
			[HF_HEALTH_PASSED] = TO(HEALTHY),
			[HF_HEALTH_TAKEN] = TO(QUARANTINED),
			[HF_HEALTH_GIVEN_UP] = TO(FAILED),
		},
	[HF_HEALTH_FAILED] =
		{
			[HF_HEALTH_CLEARED_BY_PERSON] = TO(PROBATION),
		},
};

const char *hf_health_event_name(enum hf_health_event event)
{
	return (unsigned)event < HF_HEALTH_EVENTS ? event_names[event] : "?";
}

bool hf_health_next(enum hf_health_state state, enum hf_health_event event,
		    enum hf_health_state *ret_next)
{
	hf_assert((unsigned)state < HF_HEALTH_STATES && (unsigned)event < HF_HEALTH_EVENTS);
	if (table[state][event] == 0)
		return false;
	*ret_next = (enum hf_health_state)(table[state][event] - 1);
	return true;
}
