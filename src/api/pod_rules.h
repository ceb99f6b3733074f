/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_POD_RULES_H
#define HF_API_POD_RULES_H

#include "core/field.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * What a server says of the spec of a new pod beyond its types (core/v1 validation): names,
 * numbers, quantities, what refers to what.  The rules whose lack would surprise, not all.
 * spec: its types are right.  field: how it is called in the errors, such as "spec".
 */
void hf_pod_rules_check(const struct hf_json *spec, const char *field,
			struct hf_field_errors *errors);

HF_END_DECLS

#endif
