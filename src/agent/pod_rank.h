/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_POD_RANK_H
#define HF_AGENT_POD_RANK_H

#include "json/json.h"
#include "store/store.h"

#include <stdint.h>

HF_BEGIN_DECLS

/*
 * The rank and the job of a pod, from the pod's controller, labels and annotations.
 * Input: a pod of the API server.  Pure.  A user with the right to create pods can write all of them, so the caller
 * compares job_uid with the job.
 */
#define HF_POD_RANK_NAME_MAX 254 /* bytes of an object's name, with the NUL */
#define HF_POD_RANK_TYPE_MAX 64
#define HF_POD_RANK_UID_MAX 64

struct hf_pod_rank {
	/* the kind of the pod's job; NULL: the pod is no rank of a job */
	const struct hf_resource *kind;
	char job[HF_POD_RANK_NAME_MAX];
	char job_uid[HF_POD_RANK_UID_MAX];
	char type[HF_POD_RANK_TYPE_MAX]; /* the replica type in lower case, as in the label */
	int32_t index;
	/* the job's generation and the rank's attempt for which the pod was created */
	int64_t generation, attempt;
	uint32_t grace_s; /* terminationGracePeriodSeconds */
	bool deleting;
};

void hf_pod_rank_read(const struct hf_json *pod, struct hf_pod_rank *ret_rank);

HF_END_DECLS

#endif
