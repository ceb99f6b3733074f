/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_SCHEDULER_SCHEDULER_H
#define HF_SCHEDULER_SCHEDULER_H

#include "memstore/memstore.h"

/*
 * Binds pods to nodes. It looks at nodeSelector, required node affinity (labels and metadata.name),
 * taints and tolerations, spec.unschedulable, the PersistentVolumeClaims that the pod names, and
 * requests against status.allocatable. Pods with scheduling gates or another schedulerName are
 * skipped.
 *
 * If no node fits, the condition PodScheduled has the reasons in kube-scheduler's words, and an
 * Event repeats them. A later change of nodes or pods starts another try.
 */
struct hf_scheduler;

struct hf_scheduler_options {
	/* time between a change and the pass that it starts; 0: the pass runs in the next turn of
	 * the loop */
	hf_time delay;
	/* Chooses one of n fitting nodes (returns 0 to n-1). NULL: the node with the fewest pods,
	 * and among equals the first by name. */
	size_t (*choose)(void *arg, size_t n);
	void *choose_arg;
	/* true: the kubelet makes the PersistentVolumeClaims that a pod names, so they may be
	 * missing. false: a pod is not bound before its claims exist. */
	bool missing_claims;
};
/* Create the scheduler. options may be NULL. Destroy the scheduler before the store. */
struct hf_scheduler *hf_scheduler_create(struct hf_memstore *memstore,
					 const struct hf_scheduler_options *options);
struct hf_scheduler *hf_scheduler_destroy(struct hf_scheduler *scheduler); /* NULL is fine */

/*
 * Reports each field of a pod's spec that keeps this scheduler from ever binding the pod to the node:
 * another scheduler or node, scheduling gates, labels that the node lacks, required pod (anti-)affinity.
 * Taints and amounts are left out. field: relative to the spec; text: a sentence without a full stop; both
 * are borrowed for the call. Pure.
 */
typedef void (*hf_placement_fn)(void *arg, const char *field, const char *text);
void hf_placement_check(const struct hf_json *spec, const struct hf_json *node,
			hf_placement_fn found, void *arg);

#endif
