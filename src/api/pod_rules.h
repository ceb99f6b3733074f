/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_POD_RULES_H
#define HF_API_POD_RULES_H

#include "core/model/field.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * Checks the spec of a new pod by the API server's rules beyond types (core/v1 validation): names,
 * numbers, quantities, references. Covers the rules that users are likely to break, not all of
 * them. spec: its types have been checked. field: the name of the spec in errors, such as "spec".
 */
void hf_pod_rules_check(const struct hf_json *spec, const char *field,
			struct hf_field_errors *errors);

HF_END_DECLS

#endif
