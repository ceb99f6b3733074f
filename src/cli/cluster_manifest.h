/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_CLUSTER_MANIFEST_H
#define HF_CLI_CLUSTER_MANIFEST_H

#include "json/json.h"

#include <stdbool.h>

HF_BEGIN_DECLS

/* True if the object is a HealthPolicy or DeviceRollout of the version that Holdfast knows. */
bool hf_cluster_manifest_is(const struct hf_json *root);

/* Called for each problem: the path of the field, and what is wrong. */
typedef void (*hf_cluster_problem_fn)(void *arg, const char *field, const char *text);

/* Check the spec of such an object with the rules of the operator, and that the object has no namespace.
 * The reader of the spec stops at the first wrong field. Returns true if there is no problem. */
bool hf_cluster_manifest_check(const struct hf_json *root, hf_cluster_problem_fn found, void *arg);

HF_END_DECLS

#endif
