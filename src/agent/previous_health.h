/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_PREVIOUS_HEALTH_H
#define HF_AGENT_PREVIOUS_HEALTH_H

#include "health/memory.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Tells whether DeviceHealth, as published before this agent started, shows more against the node than this agent
 * knows.
 *
 * - Without a journal (NULL): true if DeviceHealth is of this boot and shows a device or the node as not well, or
 *   shows that its writer had lost its journal too.  The state Unknown alone is no fault; an unrecognised state
 *   counts as not well.
 * - With a journal of this boot: true if DeviceHealth shows faults that the journal lacks, and is not older than the
 *   journal. The disk may have failed for a while.
 */
bool hf_previous_health_doubts(struct hf_doc *health, const char *boot_id,
			       const struct hf_health_memory *journal);

HF_END_DECLS

#endif
