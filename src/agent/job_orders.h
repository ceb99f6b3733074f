/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_JOB_ORDERS_H
#define HF_AGENT_JOB_ORDERS_H

#include "agent/pod_rank.h"
#include "health/process_line.h"

HF_BEGIN_DECLS

/*
 * What a job says about restarts in place of its ranks.  Input: a job of the API server (status.recovery, or its
 * annotation where the CRD has no place for it) and a pod's rank.  Output: the target of the
 * rank's process.  Pure.
 *
 * Invariant: a text that cannot be read holds back a restart in place and starts none.
 */
struct hf_job_orders;

struct hf_job_orders *hf_job_orders_read(const struct hf_json *job);
struct hf_job_orders *hf_job_orders_destroy(struct hf_job_orders *orders); /* NULL is fine */

/* False: the agent knows the job from before the first write of its ledger. */
bool hf_job_orders_have_ledger(const struct hf_job_orders *orders);

/* True: the pod is a rank of this job, and its process is published.  False: the target has neither a start
 * nor a wait.  A job that does not restart in place gives no wait. */
bool hf_job_orders_target(const struct hf_job_orders *orders, const struct hf_pod_rank *rank,
			  struct hf_process_target *ret_target);

HF_END_DECLS

#endif
