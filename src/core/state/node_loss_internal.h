/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_NODE_LOSS_INTERNAL_H
#define HF_CORE_NODE_LOSS_INTERNAL_H

#include "core/model/observed.h"
#include "core/model/plan.h"

HF_BEGIN_DECLS

/*
 * Facts about a lost node, and the guards that hold back the replacement of a pod on a lost node.
 */

/* A node on which pods of the job run or ran, as the step sees it. */
struct hf_node {
	const struct hf_node_seen *seen;
	/* the last change of a pod's status by the node's kubelet, which is a sign of life; NONE:
	 * no change */
	hf_time news_at;
};

/*
 * What holds back giving up a pod of a lost node.  A higher guard takes more to end.
 *
 * A new guard also needs:
 *
 * - a branch in hf_node_evidence (policy/node_evidence.c), and one in hf_node_counts_as_lost if the
 *   node is no cause while the guard holds;
 * - its reads in ask_for_reads (policy/lost_pods.c), at the place that the branch has in
 *   hf_node_evidence;
 * - its reason and text in explain/node_loss_text.c;
 * - a row in docs/reference/conditions.md; golden files in tests/golden/nodes.
 */
enum hf_guard {
	HF_GUARD_NONE,
	HF_GUARD_DEADLINE,   /* the pod's grace period and forceDeleteAfterSeconds are not over */
	HF_GUARD_SILENCE,    /* the node has not been silent for long enough */
	HF_GUARD_READ,       /* a Lease, the node or a claim must be read first */
	HF_GUARD_CALM,       /* the zone's last storm ended too short a time ago */
	HF_GUARD_TAINT,      /* the node lacks the control plane's taint unreachable */
	HF_GUARD_TOLERATION, /* the user's toleration keeps the pod for longer */
	HF_GUARD_VOLUME,     /* the pod has a volume that only one node may have: proof is needed */
	HF_GUARD_MODE,       /* forceDelete is Never, or Proven and there is no proof */
	HF_GUARD_STORM, /* too many nodes are lost at once, so the network is the likely fault */
	HF_GUARDS,
};

/* What is known of the death of a pod's node. */
struct hf_evidence {
	enum hf_guard guard;
	bool proven;   /* the machine is known to be dead, not just silent */
	bool fenced;   /* the pod has ended itself, or will: its own fence decides, not its node */
	hf_time until; /* when the guard ends by itself; NEVER: only when something changes */
};

/* The pods for which the same guard holds back a forced delete. */
struct hf_guarded {
	int32_t count;
	const struct hf_pod *pod; /* the first pod by name */
	const struct hf_node_seen *node;
	hf_time news_at; /* the last sign of life from that node; see struct hf_node */
	hf_time until;   /* when the guard ends for the first of these pods */
};

HF_END_DECLS

#endif
