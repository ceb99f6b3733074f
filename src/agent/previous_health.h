/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_PREVIOUS_HEALTH_H
#define HF_AGENT_PREVIOUS_HEALTH_H

#include "health/memory.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * What an agent without a journal (NULL) can still know: the node's DeviceHealth as it was published
 * before.  True where it is of this boot and says that a device, or the node, was not well, or that
 * its writer had lost its journal as well: then nothing may become Healthy for want of evidence.
 * Unknown alone says nothing against a device; a word that is not known counts as not well.
 *
 * A journal of this boot could not be written for a while, perhaps: with one, true where DeviceHealth
 * tells of what it does not know, and is not the older of the two.
 */
bool hf_previous_health_doubts(struct hf_doc *health, const char *boot_id,
			       const struct hf_health_memory *journal);

HF_END_DECLS

#endif
