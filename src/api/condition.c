/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/condition.h"

#include "base/str.h"

const struct hf_json *hf_find_condition(const struct hf_json *object, const char *type)
{
	const struct hf_json *conditions = hf_json_path(object, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(conditions); i++) {
		const struct hf_json *condition = hf_json_item(conditions, i);

		if (hf_streq(hf_json_path_str(condition, "type", NULL), type))
			return condition;
	}
	return NULL;
}

bool hf_condition_is_true(const struct hf_json *object, const char *type)
{
	return hf_streq(hf_json_path_str(hf_find_condition(object, type), "status", NULL), "True");
}
