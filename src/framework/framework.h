/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FRAMEWORK_FRAMEWORK_H
#define HF_FRAMEWORK_FRAMEWORK_H

#include "core/framework.h"

HF_BEGIN_DECLS

/* The kinds this program knows: one const table each. */

extern const struct hf_framework hf_framework_tensorflow;
extern const struct hf_framework hf_framework_pytorch;
extern const struct hf_framework hf_framework_mpi;
extern const struct hf_framework hf_framework_xgboost;
extern const struct hf_framework hf_framework_paddle;
extern const struct hf_framework hf_framework_jax;

/* All of them, in the order upstream lists them; ends with NULL. */
extern const struct hf_framework *const hf_frameworks[];

/* By kind ("PyTorchJob") and apiVersion ("kubeflow.org/v1"); NULL when unknown. */
const struct hf_framework *hf_framework_by_kind(const char *api_version, const char *kind);
/* By plural ("pytorchjobs"), singular or kind in any case, as people type it. */
const struct hf_framework *hf_framework_by_name(const char *name);

HF_END_DECLS

#endif
