/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FRAMEWORK_FRAMEWORK_H
#define HF_FRAMEWORK_FRAMEWORK_H

#include "core/model/framework.h"

HF_BEGIN_DECLS

/* The job kinds of this program. Every kind has a constant table. */

extern const struct hf_framework hf_framework_tensorflow;
extern const struct hf_framework hf_framework_pytorch;
extern const struct hf_framework hf_framework_mpi;
extern const struct hf_framework hf_framework_xgboost;
extern const struct hf_framework hf_framework_paddle;
extern const struct hf_framework hf_framework_jax;

/* All kinds in upstream's order; ends with NULL. */
extern const struct hf_framework *const hf_frameworks[];

/* Finds a kind by kind ("PyTorchJob") and apiVersion ("kubeflow.org/v1"); NULL if unknown. */
const struct hf_framework *hf_framework_by_kind(const char *api_version, const char *kind);
/* Finds a kind by plural ("pytorchjobs") or singular, in upper or lower case, as users type it;
 * NULL if unknown. */
const struct hf_framework *hf_framework_by_name(const char *name);

HF_END_DECLS

#endif
