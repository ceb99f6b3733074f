/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_JOB_ORDERS_H
#define HF_AGENT_JOB_ORDERS_H

#include "agent/pod_rank.h"
#include "health/process_line.h"

HF_BEGIN_DECLS

/*
 * The orders of a job for the processes of its ranks, for restarts in place.
 * Input: a job of the API server (status.recovery, or the annotation holdfast.dev/ledger where the CRD has no place
 * for it) and a pod's rank.  Output: the target of the rank's process.  Pure.
 * Invariant: a text that cannot be read holds back a restart in place, and starts none.
 */
struct hf_job_orders;

struct hf_job_orders *hf_job_orders_read(const struct hf_json *job);
struct hf_job_orders *hf_job_orders_destroy(struct hf_job_orders *orders); /* NULL is fine */

/* Whether the job has a ledger.  False: the agent's copy of the job is from before the operator's first write of
 * the ledger. */
bool hf_job_orders_have_ledger(const struct hf_job_orders *orders);

/* Makes the target of the pod's process.  True: the pod is a rank of this job, and its process is published in
 * DeviceHealth. False: the target has neither a start nor a wait.  If the job does not restart in place, the
 * target has no wait. */
bool hf_job_orders_target(const struct hf_job_orders *orders, const struct hf_pod_rank *rank,
			  struct hf_process_target *ret_target);

HF_END_DECLS

#endif
