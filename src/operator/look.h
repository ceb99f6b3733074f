/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_LOOK_H
#define HF_OPERATOR_LOOK_H

#include "ctl/controller.h"
#include "operator/operator.h"

/*
 * What the operator's caches hold, for a reader in this process such as the page.  Nothing is requested and
 * nothing is changed.  All results borrow from the caches: use them before the loop runs again.
 */

struct hf_operator_job {
	const struct hf_framework *framework;
	const char *ns, *name, *uid;
	struct hf_doc *doc; /* without managedFields */
};

/* Iterates over all jobs; *it starts as {0, 0}.  False: no more jobs. */
struct hf_operator_iterator {
	size_t kind, at;
};
bool hf_operator_next_job(const struct hf_operator *op, struct hf_operator_iterator *it,
			  struct hf_operator_job *ret_job);
/* False: no such job. */
bool hf_operator_find_job(const struct hf_operator *op, const struct hf_job_ref *ref,
			  struct hf_operator_job *ret_job);
/* The pods with this controller.  The list is in the arena; returns its length. */
size_t hf_operator_find_pods(const struct hf_operator *op, const char *uid, struct hf_arena *arena,
			     const struct hf_pod **ret_pods);
/* Calls fn for each job with a pod on this node, once for each job.  Calls nothing if the operator watches neither
 * nodes nor agents. */
void hf_operator_each_job_on(const struct hf_operator *op, const char *node,
			     void (*fn)(void *arg, const struct hf_operator_job *job), void *arg);
/* Calls fn for each record of a restart by a device in the ledgers of all jobs. A ledger keeps its newest
 * HF_RECORDS_MAX records, as long as the job exists. */
void hf_operator_each_device_restart(const struct hf_operator *op, hf_device_restart_fn fn,
				     void *arg);

#endif
