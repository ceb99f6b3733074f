/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_ACKNOWLEDGEMENT_H
#define HF_AGENT_ACKNOWLEDGEMENT_H

#include "health/step.h"

HF_BEGIN_DECLS

/*
 * A person's word that devices are well: an annotation of the node's DeviceHealth with a time, or
 * devices (ids or UUIDs; PCI addresses as anybody writes them) and a time.  Without a device it is about all
 * of them and the node.  What was known against them before that time ends; what is seen later counts as
 * ever.
 *
 * It stays where it is, so it counts for an hour and each text once: no restart, no clock that is
 * set and no copy of an object clears what failed long after.
 */
#define HF_ANNOTATION_CLEARED "holdfast.dev/cleared"
#define HF_ACKNOWLEDGEMENT_VALID HF_HOUR
#define HF_ACKNOWLEDGEMENT_DEVICES_MAX 16
#define HF_ACKNOWLEDGEMENT_AHEAD HF_MINUTE /* the person's clock may be ahead of the node's */

struct hf_acknowledgement {
	uint64_t seen;      /* hash of the last text; 0: none */
	bool pending;       /* a word that no step has taken yet */
	hf_time at;         /* on the wall clock */
	size_t devices_len; /* 0: all */
	char devices[HF_ACKNOWLEDGEMENT_DEVICES_MAX][HF_HEALTH_UUID_MAX];
};

/* The annotation as it was read last; NULL: there is none.  A new word is pending then.
 * HF_E_INVALID, once for each text: it is none, or is too old or too new. */
int hf_acknowledgement_read(struct hf_acknowledgement *cleared, const char *text, hf_time wall,
			    struct hf_error *err) HF_MUST_CHECK;

/* Why a word that was read just now ends nothing (a static text): nobody here knows what it names, or all of
 * that is as it is since later.  NULL: it may, or none is pending.  wall_less: what the wall clock is
 * ahead of the steps' by. */
const char *hf_acknowledgement_problem(const struct hf_acknowledgement *cleared,
				       const struct hf_health_memory *memory, hf_time wall_less);

/* What the word means for these devices: at most orders_max orders. */
size_t hf_acknowledgement_orders(const struct hf_acknowledgement *cleared,
				 const struct hf_health_memory *memory, hf_time wall_less,
				 struct hf_health_order *ret_orders, size_t orders_max);

/* There is something that such a word would end. */
bool hf_acknowledgement_is_of_use(const struct hf_health_memory *memory);

HF_END_DECLS

#endif
