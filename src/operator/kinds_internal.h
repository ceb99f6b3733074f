/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_KINDS_INTERNAL_H
#define HF_OPERATOR_KINDS_INTERNAL_H

#include "operator/operator_internal.h"

/* --- kinds.c: which kinds of job are there ---------------------------------------------------- */

/* Takes an error of the kind's cache. */
void hf_kind_problem(struct hf_kind *kind, int code, const char *message);
/* The cluster knows the kind: a job or its CRD was seen. */
void hf_kind_found(struct hf_kind *kind);
/* Every kind is worked on or missing, and at least one is worked on. */
bool hf_kinds_known(const struct hf_operator *op);
/* Adds a sentence that names the missing kinds; nothing if the cluster knows all. */
void hf_kinds_describe(const struct hf_operator *op, struct hf_strbuf *sb);

/* --- groups.c: the pod groups of a gang scheduler ----------------------------------------------- */

/* The kind of pod groups, for which jobs of all kinds wait. NULL: no gang scheduler. */
const struct hf_kind *hf_groups_kind(const struct hf_operator *op);
/* Watched from the start and not from the first job, so that an administrator sees a missing CRD at
 * once. */
void hf_groups_start(struct hf_operator *op);
/* Takes an error of the pod groups' cache. */
void hf_groups_problem(struct hf_kind *groups, int code, const char *message);
/* Records an event of a job that waits for the missing CRD. */
void hf_groups_tell(struct hf_kind *kind, struct hf_doc *job);

#endif
