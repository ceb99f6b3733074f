/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_NAMES_H
#define HF_CORE_NAMES_H

#include "base/arena.h"

#include <stdint.h>

HF_BEGIN_DECLS

/* Names and keys of labels and annotations: those that clients, Kueue and the Python SDK rely on,
 * and Holdfast's own. */

#define HF_LABEL_OPERATOR_NAME "training.kubeflow.org/operator-name"
#define HF_LABEL_JOB_NAME "training.kubeflow.org/job-name"
#define HF_LABEL_REPLICA_TYPE "training.kubeflow.org/replica-type"
#define HF_LABEL_REPLICA_INDEX "training.kubeflow.org/replica-index"
#define HF_LABEL_JOB_ROLE "training.kubeflow.org/job-role"
#define HF_LABEL_KUEUE_QUEUE "kueue.x-k8s.io/queue-name"

#define HF_ANNOTATION_GENERATION "holdfast.dev/generation"
#define HF_ANNOTATION_ATTEMPT "holdfast.dev/attempt"
#define HF_ANNOTATION_INCIDENT "holdfast.dev/incident"
/* On a pod: the nodes that the pod must not run on because devices there are out of service,
 * separated by commas. */
#define HF_ANNOTATION_AVOIDS "holdfast.dev/avoids"
/* On a pod: the digest of the job's spec that the pod was made from (hf_job_view.spec). */
#define HF_ANNOTATION_SPEC "holdfast.dev/spec"
/* On a pod: why the operator has stopped it by activeDeadlineSeconds, one of HF_STOPPED_*. */
#define HF_ANNOTATION_STOPPED "holdfast.dev/stopped"
#define HF_STOPPED_SUCCEEDED                                                                       \
	"Succeeded" /* the rank's own container succeeded, while other containers kept its pod */
#define HF_STOPPED_JOB_FAILED "JobFailed"
/* On a job: restart the job or the rank in the value, "<RFC 3339 time>" or "<time>
 * <type>-<index>".  Each new value is acted on once. */
#define HF_ANNOTATION_RESTART "holdfast.dev/restart"
/* On a job: the fields without a place in the upstream CRDs.  podFailurePolicy and recovery as in
 * spec.runPolicy (the spec's fields win), and status.recovery. */
#define HF_ANNOTATION_RUN_POLICY "holdfast.dev/run-policy"
#define HF_ANNOTATION_LEDGER "holdfast.dev/ledger"

#define HF_MANAGED_BY_US "kubeflow.org/training-operator"
#define HF_MANAGED_BY_MULTIKUEUE "kueue.x-k8s.io/multikueue"

/* The Lease of leader election: that of upstream's operator, so that the two never lead at once. */
#define HF_LEADER_LEASE "1ca428e5.training-operator.kubeflow.org"

/* Replica types as written ("Worker"); names and label values have them in lower case. */
/* "<job>-<type>-<index>", "/" becoming "-": the name of a pod and of its service. */
const char *hf_replica_name(struct hf_arena *arena, const char *job, const char *type,
			    int64_t index);
/* a service's name must be a DNS label; a pod's name may be longer */
#define HF_SERVICE_NAME_LEN_MAX 63
/* The name of a rank in records, events and commands: "worker-1". */
const char *hf_rank_name(struct hf_arena *arena, const char *type, int64_t index);
const char *hf_type_lower(struct hf_arena *arena, const char *type);

HF_END_DECLS

#endif
