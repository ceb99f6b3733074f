/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_HEALTH_PLAN_TEXT_H
#define HF_TESTS_HARNESS_HEALTH_PLAN_TEXT_H

#include "health/fleet.h"
#include "health/step.h"

/* Plans of the health module as text for a person; equal plans give equal bytes. */

/* Times are relative to zero. */
void hf_health_plan_render(const struct hf_health_plan *plan, hf_time zero, struct hf_strbuf *sb);
void hf_health_fleet_render(const struct hf_health_fleet_plan *plan, struct hf_strbuf *sb);

#endif
