/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_WINDOW_H
#define HF_FLEET_WINDOW_H

#include "api/health_policy.h"
#include "base/arena.h"

HF_BEGIN_DECLS

/* Returns that none of the weekly windows is open, and when the next one opens; NULL: one is open, or there are no windows.
 * whose: "policy" or "rollout". The text comes from the arena. */
const char *hf_window_find_closed(const struct hf_policy_window *windows, size_t len, hf_time now,
				  const char *whose, struct hf_arena *arena);

HF_END_DECLS

#endif
