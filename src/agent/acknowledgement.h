/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_ACKNOWLEDGEMENT_H
#define HF_AGENT_ACKNOWLEDGEMENT_H

#include "health/step.h"

HF_BEGIN_DECLS

/*
 * A person's acknowledgement that devices are repaired: an annotation of the node's DeviceHealth.
 * It holds a time, or devices (ids, UUIDs, PCI addresses in any usual form) and a time. Without a
 * device it covers all devices and the node. Faults known before that time end; later faults count
 * as usual.
 *
 * The annotation stays on the object, so each text counts once, and for an hour. A restart, a
 * changed clock or a copied object cannot clear a later fault.
 */
#define HF_ANNOTATION_CLEARED "holdfast.dev/cleared"
#define HF_ACKNOWLEDGEMENT_VALID HF_HOUR
#define HF_ACKNOWLEDGEMENT_DEVICES_MAX 16
#define HF_ACKNOWLEDGEMENT_AHEAD HF_MINUTE /* the person's clock may be ahead of the node's */

struct hf_acknowledgement {
	uint64_t seen;      /* hash of the last text; 0: none */
	bool pending;       /* no step has applied the acknowledgement yet */
	hf_time at;         /* on the wall clock */
	size_t devices_len; /* 0: all */
	char devices[HF_ACKNOWLEDGEMENT_DEVICES_MAX][HF_HEALTH_UUID_MAX];
};

/* Takes the annotation's present text; NULL: the object has none. A new valid text becomes
 * pending. HF_E_INVALID, once for each text: the text is malformed, too old or in the future. */
int hf_acknowledgement_read(struct hf_acknowledgement *ack, const char *text, hf_time wall,
			    struct hf_error *err) HF_MUST_CHECK;

/* Why the acknowledgement that was just read ends nothing (a static text): it names no device of
 * this node, or every named device entered its state later. NULL: it may end something, or none
 * is pending. wall_less is the wall clock minus the steps' clock. */
const char *hf_acknowledgement_problem(const struct hf_acknowledgement *ack,
				       const struct hf_health_memory *memory, hf_time wall_less);

/* Turns the pending acknowledgement into at most orders_max orders for these devices. */
size_t hf_acknowledgement_orders(const struct hf_acknowledgement *ack,
				 const struct hf_health_memory *memory, hf_time wall_less,
				 struct hf_health_order *ret_orders, size_t orders_max);

/* An acknowledgement would change the state of at least one device. */
bool hf_acknowledgement_is_of_use(const struct hf_health_memory *memory);

HF_END_DECLS

#endif
