/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_ACKNOWLEDGEMENT_H
#define HF_AGENT_ACKNOWLEDGEMENT_H

#include "health/step.h"

HF_BEGIN_DECLS

/*
 * A person's acknowledgement that devices are repaired: the annotation holdfast.dev/cleared of the node's
 * DeviceHealth.
 * Its text is a time, or names of devices (ids, UUIDs, PCI addresses in any usual form) and a time.  Without a device
 * it covers all devices and the node.  Faults known before that time end; later faults count as usual.
 * The annotation stays on the object, so the agent takes each text once, and only within an hour of its time.  A
 * restart, a changed clock or a copied object cannot clear a later fault.
 */
#define HF_ANNOTATION_CLEARED "holdfast.dev/cleared"
#define HF_ACKNOWLEDGEMENT_VALID HF_HOUR
#define HF_ACKNOWLEDGEMENT_DEVICES_MAX 16
/* how far an acknowledgement's time may be ahead of the node's clock: the person's clock may be ahead */
#define HF_ACKNOWLEDGEMENT_AHEAD HF_MINUTE

struct hf_acknowledgement {
	uint64_t seen;      /* hash of the last text read; 0: none */
	bool pending;       /* an acknowledgement was read, and no step has applied it yet */
	hf_time at;         /* on the wall clock */
	size_t devices_len; /* 0: all */
	char devices[HF_ACKNOWLEDGEMENT_DEVICES_MAX][HF_HEALTH_UUID_MAX];
};

/* Takes the annotation's present text; NULL: the object has no such annotation.  A new valid text becomes pending.
 * HF_E_INVALID, once for each text: the text is malformed, its time is more than an hour ago or in the future. */
int hf_acknowledgement_read(struct hf_acknowledgement *ack, const char *text, hf_time wall,
			    struct hf_error *err) HF_MUST_CHECK;

/* Why the acknowledgement that was just read ends less than it names (a static text): it names a device that this
 * node does not have, or every named device entered its state after the time.  NULL: no such problem, or no
 * acknowledgement is pending. wall_less is the wall clock minus the steps' clock. */
const char *hf_acknowledgement_problem(const struct hf_acknowledgement *ack,
				       const struct hf_health_memory *memory, hf_time wall_less);

/* Makes orders of the pending acknowledgement, one for each named device of the memory; at most orders_max. */
size_t hf_acknowledgement_orders(const struct hf_acknowledgement *ack,
				 const struct hf_health_memory *memory, hf_time wall_less,
				 struct hf_health_order *ret_orders, size_t orders_max);

/* Whether an acknowledgement could change anything: the state of a device, an absent device, or a doubt about this
 * boot. */
bool hf_acknowledgement_is_of_use(const struct hf_health_memory *memory);

HF_END_DECLS

#endif
