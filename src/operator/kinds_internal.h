/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_KINDS_INTERNAL_H
#define HF_OPERATOR_KINDS_INTERNAL_H

#include "operator/operator_internal.h"

/* --- kinds.c: which kinds of job are there ---------------------------------------------------- */

/* Must be called with each error of the kind's cache. */
void hf_kind_problem(struct hf_kind *kind, int code, const char *message);
/* The cluster knows the kind: a job or its CRD was seen. */
void hf_kind_found(struct hf_kind *kind);
/* Each kind is either running or missing in the cluster, and at least one kind is running. */
bool hf_kinds_known(const struct hf_operator *op);
/* The jobs of each kind are listed, as far as the cluster gives them.  A list that fails for long keeps nothing waiting. */
bool hf_kinds_listed(const struct hf_operator *op);
/* Append a sentence that names the missing kinds; nothing if the cluster has all. */
void hf_kinds_describe(const struct hf_operator *op, struct hf_strbuf *sb);

/* --- groups.c: the pod groups of a gang scheduler ----------------------------------------------- */

/* The kind of pod groups, for which jobs of all kinds wait. NULL: no gang scheduler. */
const struct hf_kind *hf_groups_kind(const struct hf_operator *op);
/* Start watching the pod groups.  Other extra objects are watched from the first job on; pod groups
 * from the start, so that an administrator sees a missing CRD at once. */
void hf_groups_start(struct hf_operator *op);
/* Must be called with each error of the pod groups' cache. */
void hf_groups_problem(struct hf_kind *groups, int code, const char *message);
/* Record an event of a job that waits for the missing CRD. */
void hf_groups_tell(struct hf_kind *kind, struct hf_doc *job);

#endif
