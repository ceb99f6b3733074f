/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_NODES_INTERNAL_H
#define HF_CORE_NODES_INTERNAL_H

#include "core/model/observed.h"
#include "core/model/plan.h"

HF_BEGIN_DECLS

/*
 * Part of the brain: what is known of nodes, what that does to their pods, and the names and the
 * nodes that are kept free for a while.
 */

struct hf_brain;
struct hf_edits;
struct hf_end;

/* A node that carries pods of the job, with what these tell of it. */
struct hf_node {
	const struct hf_node_seen *seen;
	hf_time news_at; /* the last sign of its kubelet's life among them; NONE: none */
};

/* ---- nodes: node.c, lost.c, stuck.c, avoid.c, unplaced.c ----------------------------------------------- */

/* The node that the pod is bound to; NULL: not bound, or nothing is known of it. */
const struct hf_node *hf_node_of(struct hf_brain *b, const struct hf_pod *pod);
/* That node where it is lost, else NULL; cheap where no node is. */
const struct hf_node *hf_node_lost(struct hf_brain *b, const struct hf_pod *pod);

/* It was Unknown before the pod came to it.  Our sight of it may be behind: it was well in between, else no
 * scheduler would have taken it.  Where it is Unknown all the same (the pod tolerates that), the pod has never
 * run: that its kubelet is silent explains nothing of what others do. */
bool hf_node_was_lost_before(const struct hf_node_seen *node, const struct hf_pod *pod);
/* hf_node_lost, where the loss can be the cause of what the pod or its peers do: not one from before the pod. */
const struct hf_node *hf_node_blamed(struct hf_brain *b, const struct hf_pod *pod);
/* The same of the pod's own end: not one from after somebody asked for that either. */
bool hf_node_explains(struct hf_brain *b, const struct hf_pod *pod);

/* The node is gone, out of service, or has been silent for as long as it takes to give pods up: whatever
 * else holds this pod, as its volumes or the job's forceDelete.  While a node is merely Unknown, it may be
 * heard of again: then it has lost nothing. */
bool hf_node_counts_as_lost(const struct hf_brain *b, const struct hf_node *node,
			    const struct hf_pod *pod);
/* A node that is lost now had fallen silent by then, as far as is known: nothing was heard of it after
 * that, and the control plane called it Unknown soon enough. */
bool hf_node_was_silent(const struct hf_node *node, hf_time at);

/* What keeps us from giving up a pod of a lost node; the higher, the more it takes to end it. */
enum hf_guard {
	HF_GUARD_NONE,
	HF_GUARD_DEADLINE,   /* its own grace, and forceDeleteAfterSeconds */
	HF_GUARD_SILENCE,    /* the node has not been silent for long enough */
	HF_GUARD_READ,       /* a Lease, the node or a claim is to be read first */
	HF_GUARD_CALM,       /* the zone's last storm ended too short a time ago */
	HF_GUARD_TAINT,      /* the control plane has not tainted the node */
	HF_GUARD_TOLERATION, /* the user wants it to stay for longer */
	HF_GUARD_VOLUME,     /* a volume that only one node may have: this needs proof */
	HF_GUARD_MODE,       /* forceDelete is Never, or Proven and there is no proof */
	HF_GUARD_STORM,      /* too many nodes are lost at once */
	HF_GUARDS,
};
struct hf_evidence {
	enum hf_guard guard;
	bool proven;   /* the machine is dead, not just silent */
	bool fenced;   /* proven, or to be: the pod has ended itself, whatever the machine does */
	hf_time until; /* when the guard ends by itself; NEVER: when something changes */
};
/* What is known of the death of the pod's node, by the job's mode.  Nothing of the pod's own
 * deadline or tolerations. */
struct hf_evidence hf_node_evidence(struct hf_brain *b, const struct hf_node *node,
				    const struct hf_pod *pod);

/* How long a node must be silent anew after a sign of life, or after a storm of its zone. */
int64_t hf_node_wait_seconds(const struct hf_brain *b);

/* Its own fence decides, not what is presumed of its node. */
bool hf_node_is_fenced(const struct hf_node_seen *node, const struct hf_pod *pod);

/* What keeps the pod, which is on a lost node, from being given up: the evidence, and then its
 * toleration, or its deadline when it is terminating. */
struct hf_evidence hf_lost_evidence(struct hf_brain *b, const struct hf_node *node,
				    const struct hf_pod *pod);
/* Nobody has ended the pod, and it is to be given up. */
bool hf_lost_is_given_up(struct hf_brain *b, const struct hf_pod *pod);
/* The kubelet has reported the termination of the pod, or of its own container for good: the kubelet was alive
 * then.  own: NULL, the pod has none. */
bool hf_pod_is_reported(const struct hf_pod *pod, const struct hf_container_seen *own);
/* A rank of that incident (started before it opened) on a node that is lost, as an end; false: there is
 * none.  The node was silent at that time: nothing that happened before can have it as its cause. */
bool hf_lost_suspect(struct hf_brain *b, int64_t incident, hf_time at, struct hf_end *ret_end);
/* The same for a node that counts as lost: the loss is the cause of what the peers did then. */
bool hf_lost_cause(struct hf_brain *b, int64_t incident, hf_time at, struct hf_end *ret_end);
/* The end may be the cause of what happened at that time: it is no loss of a node that was heard of after. */
bool hf_lost_precedes(struct hf_brain *b, const struct hf_end *end, hf_time at);
/* What a pod of that rank is stamped with: the open incident, so that its end is none of it; that before,
 * while the rank that a lost node had does not run again: who is started then lacks a peer, and what
 * ends it is the same fault. */
int64_t hf_incident_stamp(struct hf_brain *b, int role, int32_t index);
/* While the open incident is being mended it takes that cause. */
void hf_lost_adopt(struct hf_brain *b);
/* Fail and delete the terminating pods that are to be given up; ask, wake, say and show what is
 * waited for.  After everything that deletes. */
void hf_lost_step(struct hf_brain *b);
/* The same for a job that is being deleted: no condition. */
void hf_lost_force(struct hf_brain *b);

/* Whoever looks is blind to nodes: the condition stands, and its message is said. */
bool hf_lost_unseen(struct hf_brain *b, const char *type);

/* Pods that are past their deadline on a node that is reachable: said and shown, never forced. */
void hf_stuck_step(struct hf_brain *b);

/* Pods that no node takes and that a must keeps off some: shown, and made anew when that is over. */
void hf_unplaced_step(struct hf_brain *b);
/* None waits. */
void hf_unplaced_over(struct hf_brain *b);

/* Keep a pod of the role off the nodes that its job has had bad luck with and, if it replaces another,
 * off those where a device is out of service. */
void hf_avoid_nodes(struct hf_brain *b, int role, bool replaces, struct hf_edits *edits);
/* A replacement may not go to the node of this name now; it has len bytes. */
bool hf_avoid_is_must(struct hf_brain *b, int role, const char *name, size_t len);

void hf_ask(struct hf_brain *b, enum hf_ask_kind kind, const char *name);

/* Gone, out of service, or not heard of by the control plane. */
bool hf_node_is_lost(const struct hf_node_seen *node);
/* May be about to become lost: its kubelet says that it is not ready, or has let more than one
 * renewal of its Lease pass while we looked. */
bool hf_node_is_suspect(const struct hf_node_seen *node, hf_time now);

/* replace.c: names that stay empty for a while after their pod was removed from a tainted node. */
struct hf_empty {
	int32_t count;
	const char *first;
	hf_time until; /* of the first that may be used again */
};
/* The rank's name is one of them, which is counted. */
bool hf_replace_waits(struct hf_brain *b, int role, int32_t index, struct hf_empty *empty);
void hf_replace_say(struct hf_brain *b, const struct hf_empty *empty);

HF_END_DECLS

#endif
