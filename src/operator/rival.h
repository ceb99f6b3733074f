/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_RIVAL_H
#define HF_OPERATOR_RIVAL_H

#include "base/arena.h"
#include "base/time.h"
#include "core/framework.h"
#include "json/doc.h"
#include "store/store.h"

#include <stdbool.h>

/*
 * Another operator for the same jobs: the Go training-operator, which runs without leader
 * election by default, or one of ours with another Lease.  Two of them on one job make and
 * delete each other's pods.  What gives one away:
 *
 *   - its Deployment "training-operator" has a ready replica (and is not our own, which may
 *     have that name so that it replaces the other: label app.kubernetes.io/name=holdfast), and
 *     its flags leave it one of our kinds in a namespace of ours;
 *   - a job's managedFields show a write of what only an operator sets in a status (counts, start,
 *     completion), by a manager that is neither us nor a person's kubectl, newer than when we
 *     began, and its status changes with it when we write none (managedFields alone can be
 *     forged by whoever may write the job).  Jobs that are managed elsewhere (spec.runPolicy.managedBy) do not count: there it
 *     is right.  Whoever adds a condition of its own to a status is no operator.
 */
#define HF_RIVAL_DEPLOYMENT "training-operator"

extern const struct hf_resource hf_rival_deployments;

#define HF_RIVAL_NAME_MAX 128
/* Later than `since` and no later than `until`.  ret_manager gets who wrote.  Never fails: what cannot be
 * read shows nothing.  What it says is as good as the word of anybody who may write the job. */
bool hf_rival_wrote(struct hf_doc *job, hf_time since, hf_time until, struct hf_arena *scratch,
		    char ret_manager[HF_RIVAL_NAME_MAX]);
bool hf_rival_is_ready(struct hf_doc *deployment);
/* By its --enable-scheme, --namespace and $KUBEFLOW_NAMESPACE it serves jobs of these kinds (ends with
 * NULL) in this namespace (NULL: all).  True where that cannot be known. */
bool hf_rival_shares(struct hf_doc *deployment, const struct hf_framework *const *frameworks,
		     const char *ns);

#endif
