/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_NODE_H
#define HF_API_NODE_H

#include "base/arena.h"
#include "core/observed.h"
#include "json/doc.h"

HF_BEGIN_DECLS

#define HF_NODE_ZONE_LABEL "topology.kubernetes.io/zone"
#define HF_TAINT_UNREACHABLE "node.kubernetes.io/unreachable"
#define HF_TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"
#define HF_TAINT_OUT_OF_SERVICE "node.kubernetes.io/out-of-service"

/* What of a Node matters here; see struct hf_node_seen. */
struct hf_node_facts {
	enum hf_node_ready ready; /* never GONE; NOT_READY where there is no such condition: a
				     node that was never heard of is not one that fell silent */
	hf_time unknown_at; /* UNKNOWN: since then, as the control plane tells; else, or untold: NONE */
	bool unreachable;
	bool out_of_service;
	bool no_execute;
	bool schedulable; /* not cordoned; taints do not count */
	/* Since when it is cordoned: the control plane's time of the taint that it adds then; NONE:
	 * it is not, or nobody says. */
	hf_time cordoned_at;
	const char *zone; /* NULL: none; from the arena */
};

/* Fields of a wrong type count as absent; broken text has no fields.  Makes no tree. */
void hf_node_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_node_facts *ret_facts);

/* The kubelet's last renewal: spec.renewTime of the node's Lease, as it is written.  Two reads of the Lease
 * are compared by this text alone: metadata changes with every label, and the kubelet's clock may be
 * wrong.  NULL: the Lease tells none. */
const char *hf_node_lease_renewal(struct hf_doc *lease);

HF_END_DECLS

#endif
