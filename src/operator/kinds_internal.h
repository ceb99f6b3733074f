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

#endif
