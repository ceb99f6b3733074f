/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_PLAN_TEXT_H
#define HF_TESTS_HARNESS_PLAN_TEXT_H

#include "core/model/framework.h"
#include "core/model/plan.h"

/* Writes a whole plan as text, equal for equal plans. Tests and golden files compare these
 * texts. */
void hf_plan_render(const struct hf_plan *plan, const struct hf_framework *framework,
		    struct hf_strbuf *sb);

#endif
