/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_POD_RULES_H
#define HF_API_POD_RULES_H

#include "core/model/field.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * Checks the spec of a new pod by rules of the API server (core/v1 validation): names, numbers,
 * quantities, references. The rules that users are likely to break are covered, not all of them.
 * The types in spec must have been checked before. field: the name of the spec in errors, such as
 * "spec".
 */
void hf_pod_rules_check(const struct hf_json *spec, const char *field,
			struct hf_field_errors *errors);

HF_END_DECLS

#endif
