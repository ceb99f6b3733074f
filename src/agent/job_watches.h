/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_JOB_WATCHES_H
#define HF_AGENT_JOB_WATCHES_H

#include "agent/job_orders.h"
#include "loop/loop.h"

HF_BEGIN_DECLS

/*
 * One watch for each job with ranks on this node under `holdfast exec`, by the job's name.
 * Input: the jobs that the caller wants.  Output: their orders, and a call at each change.  Read only.
 * Invariant: the orders are those of the API server at some time; before its first answer there are none.
 */
struct hf_job_watches;

/* Limit of the watched jobs: one for each possible connection of `holdfast exec`. */
#define HF_JOB_WATCHES_MAX 128

struct hf_job_watches_options {
	struct hf_loop *loop;
	struct hf_store *store;
	uint64_t seed;
	/* The orders of a job have changed.  The callback must not change which jobs are wanted. */
	void (*changed)(void *arg);
	void (*problem)(void *arg, const char *job, int code, const char *message);
	void *arg;
};

struct hf_job_watches *hf_job_watches_create(const struct hf_job_watches_options *options);
struct hf_job_watches *hf_job_watches_destroy(struct hf_job_watches *watches); /* NULL is fine */

/* Begins a round of calls of hf_job_watches_want(); hf_job_watches_end() closes the watches of jobs that the round
 * did not want. */
void hf_job_watches_begin(struct hf_job_watches *watches);
/* Wants the job of the rank in the namespace.  True: the job's state is known; *ret_orders is NULL if there is no
 * such job, and else good until the loop's next turn. */
bool hf_job_watches_want(struct hf_job_watches *watches, const struct hf_pod_rank *rank,
			 const char *ns, const struct hf_job_orders **ret_orders);
void hf_job_watches_end(struct hf_job_watches *watches);

HF_END_DECLS

#endif
