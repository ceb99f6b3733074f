/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_DEVICE_STATES_H
#define HF_HEALTH_DEVICE_STATES_H

#include "health/types.h"

HF_BEGIN_DECLS

/* The states of a device as a table of states × events; device_events.c finds the events. */
enum hf_health_event {
	HF_HEALTH_HEARD,     /* a detector can see the device, and it has no fault */
	HF_HEALTH_SILENT,    /* no detector could see it for a while */
	HF_HEALTH_WEAK,      /* evidence that needs to be confirmed */
	HF_HEALTH_CONFIRMED, /* that evidence was confirmed */
	HF_HEALTH_STOPPED,   /* evidence of a class that stops a device */
	HF_HEALTH_QUIET,     /* no fault for long enough */
	HF_HEALTH_MENDED,    /* its fatal fault has ended, by positive evidence */
	HF_HEALTH_EASED,     /* the same, but a weaker fault is open */
	HF_HEALTH_COVERED,   /* a fault of the node covers its faults */
	HF_HEALTH_BOOTED,
	HF_HEALTH_FLAPPED,  /* too often */
	HF_HEALTH_RELAPSED, /* evidence while on probation after a remediation */
	HF_HEALTH_PASSED,   /* probation */
	HF_HEALTH_TAKEN,    /* orders from here on: quarantine */
	HF_HEALTH_BEGUN,
	HF_HEALTH_VERIFIED,
	HF_HEALTH_MISSED, /* a remediation did not help */
	HF_HEALTH_GIVEN_UP,
	HF_HEALTH_RELEASED,
	HF_HEALTH_CLEARED_BY_PERSON,
	HF_HEALTH_EVENTS
};

const char *hf_health_event_name(enum hf_health_event event);
/* False where the event changes nothing in that state. */
bool hf_health_next(enum hf_health_state state, enum hf_health_event event,
		    enum hf_health_state *ret_next);

HF_END_DECLS

#endif
