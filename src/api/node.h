/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_NODE_H
#define HF_API_NODE_H

#include "base/arena.h"
#include "core/model/observed.h"
#include "json/doc.h"

HF_BEGIN_DECLS

#define HF_NODE_ZONE_LABEL "topology.kubernetes.io/zone"
#define HF_TAINT_UNREACHABLE "node.kubernetes.io/unreachable"
#define HF_TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"
#define HF_TAINT_OUT_OF_SERVICE "node.kubernetes.io/out-of-service"

/* The facts about a Node that the operator uses; see struct hf_node_seen. */
struct hf_node_facts {
	/* never HF_NODE_GONE; NOT_READY if the Node has no condition Ready, because a node that
	 * never reported has not fallen silent */
	enum hf_node_ready ready;
	/* since when Ready is Unknown, by the control plane's clock; HF_TIME_NONE: Ready is not
	 * Unknown, or has no time */
	hf_time unknown_at;
	bool unreachable;
	bool out_of_service;
	bool no_execute;
	bool schedulable; /* not cordoned; taints do not count */
	/* When the node was cordoned: the time that the control plane writes in its taint.
	 * HF_TIME_NONE: the node is not cordoned, or the taint has no time. */
	hf_time cordoned_at;
	/* the zone in the Node's label, stored in the arena; NULL: the Node has no zone */
	const char *zone;
};

/* Reads a Node without building a tree. Fields of a wrong type count as absent; a document that
 * cannot be parsed has no fields. */
void hf_node_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_node_facts *ret_facts);

/* Returns spec.renewTime of the node's Lease as text: the kubelet's last renewal. Compare two reads
 * of the Lease by this text alone: the metadata also changes with labels, and the kubelet's clock
 * may be wrong. NULL: the Lease has no such field. */
const char *hf_node_lease_renewal(struct hf_doc *lease);

HF_END_DECLS

#endif
