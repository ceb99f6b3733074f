/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_NODE_LOCKS_H
#define HF_API_NODE_LOCKS_H

#include "api/lifetime.h"
#include "base/arena.h"
#include "base/time.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * How maintenance tools and Holdfast tell each other that one of them is at work on a node: the lock of kured, and
 * conditions of the Node (KEP-5683). Remediations and DeviceRollouts exclude each other by one Lease a node. Pure.
 */

/* The Lease of a node has this prefix and the name of the node; its namespace is HF_MEND_NAMESPACE. */
#define HF_NODE_LEASE_PREFIX "holdfast-mend-"
/* Builds the Lease by which this holder, an object with this UID, locks the node. old: the Lease that it replaces, with
 * its version; NULL: the Lease is new. */
struct hf_doc *hf_node_lease(struct hf_doc *old, const char *node, const char *holder,
			     const struct hf_owner *owner, hf_time now);

/* The DaemonSet whose annotation is kured's lock. */
#define HF_KURED_NAMESPACE "kube-system"
#define HF_KURED_NAME "kured"

/* Holdfast writes this condition of a Node: True during its own work, False afterwards. */
#define HF_MAINTENANCE_CONDITION "holdfast.dev/MaintenanceInProgress"

/* True if kured locks the node; daemon_set is kured's own, or NULL. A lock that cannot be read counts for every
 * node. */
bool hf_node_has_kured_lock(const struct hf_json *daemon_set, const char *node);

/* Returns the tool that is at work on the node by its lock or by a condition of the Node; NULL: none. in_maintenance: a
 * NodeMaintenance names the node. */
const char *hf_node_find_lock(const struct hf_json *node, const char *name,
			      const struct hf_json *kured, bool in_maintenance,
			      struct hf_arena *arena);

/* Returns the type of a condition by which another tool says that it drains or maintains the node: DrainInProgress or
 * MaintenanceInProgress, with any prefix. NULL: the node has none with status True. */
const char *hf_node_find_maintenance(const struct hf_json *node);

/* True if the Node has HF_MAINTENANCE_CONDITION with status True. */
bool hf_node_is_in_maintenance(const struct hf_json *node);
/* Returns the message of HF_MAINTENANCE_CONDITION, which names the object at work; NULL: the condition is not True, or has
 * no message. */
const char *hf_node_maintenance_message(const struct hf_json *node);
/* Builds the strategic merge patch of subresource "status" that writes HF_MAINTENANCE_CONDITION. The version of this Node
 * guards it, so a write that is performed late changes nothing. */
struct hf_doc *hf_node_maintenance_patch(struct hf_doc *node, bool is_true, const char *reason,
					 const char *message, hf_time now);

HF_END_DECLS

#endif
