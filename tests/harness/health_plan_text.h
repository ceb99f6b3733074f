/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_HEALTH_PLAN_TEXT_H
#define HF_TESTS_HARNESS_HEALTH_PLAN_TEXT_H

#include "health/fleet.h"
#include "health/step.h"

/* The plans of the health module as a person reads them: the same bytes for the same plan. */

/* Times are relative to zero. */
void hf_health_plan_render(const struct hf_health_plan *plan, hf_time zero, struct hf_strbuf *sb);
void hf_health_fleet_render(const struct hf_health_fleet_plan *plan, struct hf_strbuf *sb);

#endif
