/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_MODEL_INTERNAL_H
#define HF_CORE_MODEL_INTERNAL_H

#include "core/model/observed.h"
#include "core/model/status.h"

HF_BEGIN_DECLS

/*
 * What the rooms of core share and no other module uses: questions about one pod or one node,
 * arithmetic with spans of time, lists in an arena.  The result of every function depends only on
 * its arguments.
 */

/* ---- pod.c -------------------------------------------------------------------------------------- */

/* The phase is Succeeded or Failed. */
bool hf_pod_is_terminal(const struct hf_pod *pod);
/* The pod has a deletionTimestamp. */
bool hf_pod_is_terminating(const struct hf_pod *pod);
/* A main container of the pod has started, as far as the kubelet has reported. */
bool hf_pod_has_begun(const struct hf_pod *pod);
/* The container runs, or ran before. */
bool hf_container_has_begun(const struct hf_container_seen *seen);
/* The container is terminated, and the kubelet does not start it again. */
bool hf_container_is_over(const struct hf_container_seen *seen);
/* The first main container other than `own` that keeps the pod alive; NULL: none does.  own may be
 * NULL. */
const struct hf_container_seen *hf_pod_keeper(const struct hf_pod *pod,
					      const struct hf_container_seen *own);
/* The pod goes on after its own container has ended: another main container keeps it, or a native
 * sidecar runs, which the kubelet ends last. */
bool hf_pod_goes_on(const struct hf_pod *pod, const struct hf_container_seen *own);
/* The kubelet has reported that the pod ended, or that its own container ended for good. So the
 * kubelet was alive at that time. own: NULL if the pod has no own container. */
bool hf_pod_is_reported(const struct hf_pod *pod, const struct hf_container_seen *own);

/* ---- node.c ------------------------------------------------------------------------------------- */

/* A Lease that has not moved for this long is late: a kubelet renews it every 10 seconds, and a
 * busy kubelet gets 5 more. */
#define HF_RENEWAL_LATE_SECONDS 15

/* The node is gone, out of service, or Unknown to the control plane: a fact about the node alone.
 * hf_node_lost (state/) asks the same for the node of a pod and excepts some pods.
 * hf_node_counts_as_lost (policy/) asks for more: whether the loss is certain enough to be the
 * cause of a fault. */
bool hf_node_is_lost(const struct hf_node_seen *node);
/* True if the control plane still hears from the node's kubelet. */
bool hf_node_is_heard_of(const struct hf_node_seen *node);
/* The node may be about to become lost: its kubelet reports NotReady, or its Lease has stood still
 * for HF_RENEWAL_LATE_SECONDS while the operator read it. */
bool hf_node_is_suspect(const struct hf_node_seen *node, hf_time now);
/* The last sign of life from the node: its kubelet's Lease, its agent, a training process that the
 * agent heard, or `news_at`; NONE: there was none. */
hf_time hf_node_last_sign(const struct hf_node_seen *node, hf_time news_at);
/* Since when an Unknown node is silent: the last renewal of its Lease, or, if that is not known or
 * cannot be right, when the control plane called the node Unknown; NONE: neither is known. */
hf_time hf_node_silent_since(const struct hf_node_seen *node);
/* The node was Unknown before the pod was bound to it. Two cases: the operator's view of the node
 * is behind, or the pod tolerates an Unknown node and has never run. In both, the silence of the
 * node's kubelet does not explain what other pods do. */
bool hf_node_was_lost_before(const struct hf_node_seen *node, const struct hf_pod *pod);
/* Whether the pod has ended is decided by its own fence (nodeLost.selfFence), not by a presumption
 * about its node. */
bool hf_node_is_fenced(const struct hf_node_seen *node, const struct hf_pod *pod);

/* ---- time_span.c -------------------------------------------------------------------------------- */

#define HF_SECONDS_MAX ((int64_t)9000000000) /* 285 years */
/* Seconds as a span; a number above HF_SECONDS_MAX becomes HF_TIME_NEVER. */
hf_time hf_seconds(int64_t seconds);
/* The time from `from` to `to`; 0 if `to` is earlier. A span that does not fit is HF_TIME_NEVER. */
hf_time hf_elapsed(hf_time from, hf_time to);
const char *hf_time_text(struct hf_arena *arena, hf_time t);    /* RFC 3339, "" for NONE */
const char *hf_span_text(struct hf_arena *arena, hf_time span); /* "1m30s" */

/* ---- lists, statuses, reasons -------------------------------------------------------------------- */

/* Return the list with room for one more element: the same list, or a longer copy in the arena. */
void *hf_grow(struct hf_arena *arena, void *items, size_t len, size_t *cap, size_t size);
/* The two statuses differ.  ret_urgent: the difference must be written before any action. */
bool hf_status_differs(const struct hf_status *a, const struct hf_status *b, bool *ret_urgent);
/* The budget to which incidents of that class are charged, or HF_BUDGET_NONE. */
enum hf_budget hf_class_budget(enum hf_class cls);
/* The reason itself, if it says more than the exit code; else NULL ("Error", "Completed"). */
const char *hf_container_reason_telling(const char *reason);

HF_END_DECLS

#endif
