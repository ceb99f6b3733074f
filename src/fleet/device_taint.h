/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_DEVICE_TAINT_H
#define HF_FLEET_DEVICE_TAINT_H

#include "fleet/fleet_internal.h"

/*
 * Takes single devices out of use: DeviceTaintRules of Kubernetes' dynamic resource allocation (DRA).
 * Input: nodes whose quarantine has the mark "scope": "Device", and in mode observe the nodes that would get one.
 * Output: one rule for each failed device, and for fleet.act the nodes that need a taint of their own after all.
 */

struct fleet_taints *hf_fleet_taints_create(struct hf_fleet *fleet);
struct fleet_taints *hf_fleet_taints_destroy(struct fleet_taints *taints); /* returns NULL */
void hf_fleet_taints_stop(struct fleet_taints *taints);
/* Notes which nodes of a policy need rules, and starts to look at them. Call this in each round of the policy. */
void hf_fleet_taints_want(struct fleet_taints *taints, const struct fleet_seen *seen);
/* Call this after a Node or its DeviceHealth has changed: a node that needs rules gets a pass. */
void hf_fleet_taints_wake_node(struct fleet_taints *taints, const char *node);
/* Why the whole node has to be taken out of use although its mark names single devices; NULL: it has not. */
const char *hf_fleet_taints_why_node(const struct fleet_taints *taints, const char *node);
/* Whether a new quarantine of this node may leave the node itself in use. */
bool hf_fleet_taints_may_confine(const struct fleet_policy *policy,
				 const struct fleet_health *health);

#endif
