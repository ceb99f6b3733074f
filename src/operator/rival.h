/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_RIVAL_H
#define HF_OPERATOR_RIVAL_H

#include "base/arena.h"
#include "base/time.h"
#include "core/model/framework.h"
#include "json/doc.h"
#include "store/store.h"

#include <stdbool.h>

/*
 * Detects another operator for the same jobs: the Go training-operator, which runs without leader
 * election by default, or a second Holdfast with another Lease. Two operators on one job create and
 * delete each other's pods. Two signs:
 * - Its Deployment "training-operator" has a ready replica, and its flags leave it one of our
 *   kinds in a namespace of ours. Our own Deployment may have that name, so that it replaces the
 *   other one: label app.kubernetes.io/name=holdfast.
 * - A job's managedFields show a write of what only an operator sets in a status (counts, start,
 *   completion). The manager is neither Holdfast nor kubectl, the write is newer than our start,
 *   and the status changes with it while we write none: any client that may write a job can
 *   forge managedFields. Jobs managed elsewhere (spec.runPolicy.managedBy) do not count.
 * A client that only adds a condition of its own is no operator.
 */
#define HF_RIVAL_DEPLOYMENT "training-operator"

extern const struct hf_resource hf_rival_deployments;

#define HF_RIVAL_NAME_MAX 128
/* The job's managedFields show that a rival wrote the status after `since` and up to `until`.
 * ret_manager gets the rival's name.  managedFields that cannot be read show nothing.  Any client
 * that may write the job can forge them. */
bool hf_rival_wrote(struct hf_doc *job, hf_time since, hf_time until, struct hf_arena *scratch,
		    char ret_manager[HF_RIVAL_NAME_MAX]);
bool hf_rival_is_ready(struct hf_doc *deployment);
/* By its flags --enable-scheme and --namespace and by $KUBEFLOW_NAMESPACE, the Go operator
 * serves one of these kinds (list ends with NULL) in this namespace (NULL: all).  True if that
 * is unknown. */
bool hf_rival_shares(struct hf_doc *deployment, const struct hf_framework *const *frameworks,
		     const char *ns);

#endif
