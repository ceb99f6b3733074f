/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_SCHEDULER_H
#define HF_LOCAL_SCHEDULER_H

#include "local/local.h"

/*
 * Binds pods without a node to nodes: nodeSelector, required node affinity (labels and
 * metadata.name), taints and tolerations, spec.unschedulable, requests against
 * status.allocatable.  Pods with scheduling gates or another schedulerName are left
 * alone.  Where nothing fits, the condition PodScheduled says so in kube-scheduler's
 * words and an Event repeats it; the pod is tried again when nodes or pods change.
 */
struct hf_scheduler;

struct hf_scheduler_options {
	hf_time delay; /* span between a change and the pass it causes; 0: the next turn */
	/* Chooses among n nodes that fit (0 … n-1); NULL: the one with the fewest pods, the
	 * first by name among equals. */
	size_t (*choose)(void *arg, size_t n);
	void *choose_arg;
};
struct hf_scheduler *hf_scheduler_create(struct hf_local *local,
					 const struct hf_scheduler_options *options);
struct hf_scheduler *hf_scheduler_destroy(struct hf_scheduler *scheduler); /* NULL is fine */

#endif
