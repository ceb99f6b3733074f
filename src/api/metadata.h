/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_METADATA_H
#define HF_API_METADATA_H

#include "json/json.h"

HF_BEGIN_DECLS

/*
 * What the metadata of every kind must look like: labels, annotations, owners and finalizers.
 * The same rules for the server that refuses and for the check of a file without one.
 */

/* reason: as in the causes of a Status; text: what stands behind "field: ". */
typedef void (*hf_metadata_problem_fn)(void *arg, const char *reason, const char *field,
				       const char *text);

/* before: as it is stored, NULL on create; what did not change is not looked at again. */
void hf_metadata_check(const struct hf_json *meta, const struct hf_json *before,
		       hf_metadata_problem_fn problem, void *arg);

HF_END_DECLS

#endif
