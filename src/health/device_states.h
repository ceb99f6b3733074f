/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_DEVICE_STATES_H
#define HF_HEALTH_DEVICE_STATES_H

#include "health/types.h"

HF_BEGIN_DECLS

/* The events of a device.  device_states.c has the next state by state and event; device_events.c finds the
 * events. */
enum hf_health_event {
	HF_HEALTH_HEARD,     /* event: a detector can see the device, which has no fault */
	HF_HEALTH_SILENT,    /* event: no detector could see the device for a while */
	HF_HEALTH_WEAK,      /* evidence that needs to be confirmed */
	HF_HEALTH_CONFIRMED, /* weak evidence was confirmed */
	HF_HEALTH_STOPPED,   /* event: evidence of a class that stops the device */
	HF_HEALTH_QUIET,     /* event: the device has had no fault for long enough */
	HF_HEALTH_MENDED,    /* event: positive evidence has ended the fatal faults of the device */
	/* event: positive evidence has ended the fatal faults; a weaker fault is still open */
	HF_HEALTH_EASED,
	HF_HEALTH_COVERED, /* event: a fault of the node covers the faults of the device */
	HF_HEALTH_BOOTED,
	HF_HEALTH_FLAPPED,  /* event: the device entered Suspect too often within the window */
	HF_HEALTH_RELAPSED, /* event: new evidence during the probation after a remediation */
	HF_HEALTH_PASSED,   /* event: the device has passed its probation without new evidence */
	/* The events from here on are orders. TAKEN: the device is quarantined. */
	HF_HEALTH_TAKEN,
	HF_HEALTH_BEGUN,
	HF_HEALTH_VERIFIED,
	HF_HEALTH_MISSED, /* order: a remediation did not help */
	HF_HEALTH_GIVEN_UP,
	HF_HEALTH_RELEASED,
	HF_HEALTH_CLEARED_BY_PERSON,
	HF_HEALTH_EVENTS
};

const char *hf_health_event_name(enum hf_health_event event);
/* Finds the next state.  False: the event changes nothing in that state. */
bool hf_health_next(enum hf_health_state state, enum hf_health_event event,
		    enum hf_health_state *ret_next);

HF_END_DECLS

#endif
