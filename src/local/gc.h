/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_GC_H
#define HF_LOCAL_GC_H

#include "local/local.h"

/*
 * Owner garbage collection and the emptying of namespaces, as kube-controller-manager
 * does them: background, foreground (blockOwnerDeletion) and orphan.
 */
struct hf_gc;

struct hf_gc_options {
	hf_time delay; /* span between a change and the reaction to it; 0: the next turn */
};
/* options may be NULL.  Scans everything once, so owners that went while nobody looked count. */
struct hf_gc *hf_gc_create(struct hf_local *local, const struct hf_gc_options *options);
struct hf_gc *hf_gc_destroy(struct hf_gc *gc); /* NULL is fine; returns NULL */

#endif
