/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_LADDER_INTERNAL_H
#define HF_HEALTH_LADDER_INTERNAL_H

#include "health/fleet.h"

HF_BEGIN_DECLS

/* Proposes what a node needs next, without regard to budgets and modes: doing, action and reason.  The answer is
 * GO, NOTHING, HELD or WAITS.  ret_wake: when time alone may change the proposal; NEVER: not. */
struct hf_health_decision hf_health_ladder(const struct hf_health_node *node,
					   const struct hf_health_fleet *fleet,
					   const struct hf_health_policy *policy,
					   hf_time *ret_wake);

HF_END_DECLS

#endif
