/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_METADATA_H
#define HF_API_METADATA_H

#include "json/json.h"

HF_BEGIN_DECLS

/*
 * The rules for the metadata of every kind: labels, annotations, owners and finalizers. The
 * embedded API server refuses objects by them, and `lint` checks files by them.
 */

/* A function that gets each problem. reason: the reason of the cause in a Status, such as
 * "FieldValueInvalid". text: what follows "FIELD: " in the message. */
typedef void (*hf_metadata_problem_fn)(void *arg, const char *reason, const char *field,
				       const char *text);

/* before: the stored metadata; NULL on create. Members equal to the stored ones are not checked. */
void hf_metadata_check(const struct hf_json *meta, const struct hf_json *before,
		       hf_metadata_problem_fn problem, void *arg);

HF_END_DECLS

#endif
