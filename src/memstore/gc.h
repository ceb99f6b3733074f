/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_MEMSTORE_GC_H
#define HF_MEMSTORE_GC_H

#include "memstore/memstore.h"

/*
 * Garbage collection by owners (background, foreground with blockOwnerDeletion, orphan) and the
 * emptying of namespaces, as kube-controller-manager does them. The collector observes the store
 * and writes by hf_memstore_apply.
 */
struct hf_gc;

struct hf_gc_options {
	/* time between a change and the reaction to it; 0: the next turn of the loop */
	hf_time delay;
};
/* Create the collector. options may be NULL. Scans all objects once, because owners may have been
 * deleted while no collector ran. */
struct hf_gc *hf_gc_create(struct hf_memstore *memstore, const struct hf_gc_options *options);
struct hf_gc *hf_gc_destroy(struct hf_gc *gc); /* NULL is fine; returns NULL */

#endif
