/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_REMEDY_H
#define HF_OPERATOR_REMEDY_H

/*
 * What is done about nodes whose devices fail: see remedy_internal.h.  Where HealthPolicy is no kind
 * of the cluster, or there is none of it, a list is asked for every half minute or watched, and
 * that is all.
 */
struct hf_operator;
struct hf_remedy;

struct hf_remedy *hf_remedy_create(struct hf_operator *op);
void hf_remedy_start(struct hf_remedy *remedy);
/* A list has come in whole that a round may have waited for. */
void hf_remedy_synced(struct hf_remedy *remedy);
/* Nothing more is sent. */
void hf_remedy_stop(struct hf_remedy *remedy);
struct hf_remedy *hf_remedy_destroy(struct hf_remedy *remedy); /* NULL is fine; returns NULL */
void hf_remedy_update_metrics(struct hf_remedy *remedy);

#endif
