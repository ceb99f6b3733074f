/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_NODE_LOCKS_H
#define HF_API_NODE_LOCKS_H

#include "base/time.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * How maintenance tools and Holdfast tell each other that one of them is at work on a node: the lock of kured, and
 * conditions of the Node (KEP-5683). Pure.
 */

/* Holdfast writes this condition of a Node: True during its own work, False afterwards. */
#define HF_MAINTENANCE_CONDITION "holdfast.dev/MaintenanceInProgress"

/* True if kured locks the node; daemon_set is kured's own, or NULL. A lock that cannot be read counts for every
 * node. */
bool hf_node_has_kured_lock(const struct hf_json *daemon_set, const char *node);

/* Returns the type of a condition by which another tool says that it drains or maintains the node: DrainInProgress or
 * MaintenanceInProgress, with any prefix. NULL: the node has none with status True. */
const char *hf_node_find_maintenance(const struct hf_json *node);

/* True if the Node has HF_MAINTENANCE_CONDITION with status True. */
bool hf_node_is_in_maintenance(const struct hf_json *node);
/* Builds the strategic merge patch of subresource "status" that writes HF_MAINTENANCE_CONDITION. */
struct hf_doc *hf_node_maintenance_patch(bool is_true, const char *reason, const char *message,
					 hf_time now);

HF_END_DECLS

#endif
