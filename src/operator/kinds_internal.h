/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_KINDS_INTERNAL_H
#define HF_OPERATOR_KINDS_INTERNAL_H

#include "operator/operator_internal.h"

/* --- kinds.c: which kinds of job are there ---------------------------------------------------- */

/* The kind's cache has failed. */
void hf_kind_problem(struct hf_kind *kind, int code, const char *message);
/* There are jobs of it, or its CRD. */
void hf_kind_found(struct hf_kind *kind);
/* Every kind is worked on, or missing, and one is worked on. */
bool hf_kinds_known(const struct hf_operator *op);
/* The missing ones in a sentence for people; nothing where there are none. */
void hf_kinds_describe(const struct hf_operator *op, struct hf_strbuf *sb);

/* --- groups.c: the pod groups of a gang scheduler ----------------------------------------------- */

/* The kind of those groups, which the jobs of all kinds wait for; NULL: there is no gang scheduler. */
const struct hf_kind *hf_groups_kind(const struct hf_operator *op);
/* From the start, and not with the first job: an administrator learns at once what is missing. */
void hf_groups_start(struct hf_operator *op);
/* Its cache has failed. */
void hf_groups_problem(struct hf_kind *groups, int code, const char *message);
/* An event of a job that waits because it is. */
void hf_groups_tell(struct hf_kind *kind, struct hf_doc *job);

#endif
