/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_KUBELET_SILENCE_H
#define HF_AGENT_KUBELET_SILENCE_H

#include "store/store.h"

HF_BEGIN_DECLS

/*
 * Detects a silent kubelet: its Lease stands still although the API server answers this agent.  The operator may then
 * presume the node dead.  But the node's ranks live, and the agent has to publish that.  Only reads, and only while
 * the watch is wanted.
 */
struct hf_kubelet_silence;

/* How often the Lease is read; kubelets renew their Lease every 10 s. */
#define HF_KUBELET_SILENCE_LOOK_EVERY (10 * HF_SECOND)
#define HF_KUBELET_SILENCE_AFTER (25 * HF_SECOND)

struct hf_kubelet_silence_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node; /* copied */
	/* called after each read of the Lease which shows that the kubelet has not renewed it for
	 * HF_KUBELET_SILENCE_AFTER */
	void (*still)(void *arg);
	void *arg;
};

struct hf_kubelet_silence *hf_kubelet_silence_create(
	const struct hf_kubelet_silence_options *options);
struct hf_kubelet_silence *hf_kubelet_silence_destroy(
	struct hf_kubelet_silence *silence); /* NULL is fine */
void hf_kubelet_silence_want(struct hf_kubelet_silence *silence, bool wanted);

HF_END_DECLS

#endif
