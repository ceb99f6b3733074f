/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_WATCH_INTERNAL_H
#define HF_OPERATOR_WATCH_INTERNAL_H

#include "operator/operator_internal.h"

/* Creates the cache of jobs of a kind and does not start it.  Its changes queue the jobs
 * concerned. */
void hf_watch_create_jobs(struct hf_operator *op, struct hf_kind *kind,
			  const struct hf_framework *framework, const struct hf_resource *resource);
/* Pods, services and extra objects. */
void hf_watch_create_objects(struct hf_operator *op);

/* companion.c: the controllers that run beside the operator. */
void hf_companions_create(struct hf_operator *op);
void hf_companions_start(struct hf_operator *op);
void hf_companions_wake(struct hf_operator *op);
void hf_companions_stop(struct hf_operator *op);
void hf_companions_update_metrics(struct hf_operator *op);
void hf_companions_destroy(struct hf_operator *op);

#endif
