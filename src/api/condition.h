/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_CONDITION_H
#define HF_API_CONDITION_H

#include "json/json.h"

HF_BEGIN_DECLS

/* Finds the condition of this type in the status of an object of any kind; NULL: none. */
const struct hf_json *hf_find_condition(const struct hf_json *object, const char *type);
/* True if the object has the condition, and its status is True. */
bool hf_condition_is_true(const struct hf_json *object, const char *type);

HF_END_DECLS

#endif
