/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_LADDER_INTERNAL_H
#define HF_HEALTH_LADDER_INTERNAL_H

#include "health/fleet.h"

HF_BEGIN_DECLS

/* What a node needs next, budgets and modes apart: doing, action, why; the answer is GO, NOTHING,
 * HELD or WAITS.  ret_wake: when time alone changes it; NEVER else. */
struct hf_health_decision hf_health_ladder(const struct hf_health_node *node,
					   const struct hf_health_fleet *fleet,
					   const struct hf_health_policy *policy,
					   hf_time *ret_wake);

HF_END_DECLS

#endif
