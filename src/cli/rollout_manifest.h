/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_ROLLOUT_MANIFEST_H
#define HF_CLI_ROLLOUT_MANIFEST_H

#include "json/json.h"

#include <stdbool.h>

HF_BEGIN_DECLS

/* True if the object is a DeviceRollout of the version that Holdfast knows. */
bool hf_rollout_manifest_is(const struct hf_json *root);

/* Called for each problem: the path of the field, and what is wrong. */
typedef void (*hf_rollout_problem_fn)(void *arg, const char *field, const char *text);

/* Check the spec of a DeviceRollout with the rules of the operator, and that the object has no namespace.
 * The reader of the spec stops at the first wrong field. Returns true if there is no problem. */
bool hf_rollout_manifest_check(const struct hf_json *root, hf_rollout_problem_fn found, void *arg);

HF_END_DECLS

#endif
