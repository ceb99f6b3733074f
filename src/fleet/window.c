/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The windows of a HealthPolicy or DeviceRollout, with the words of a message. */
#include "fleet/window.h"

#include "health/fleet.h"

const char *hf_window_find_closed(const struct hf_policy_window *windows, size_t len, hf_time now,
				  const char *whose, struct hf_arena *arena)
{
	struct hf_health_window list[HF_HEALTH_POLICY_WINDOWS_MAX];
	char opening[HF_TIME_TEXT_MAX];

	for (size_t i = 0; i < len; i++)
		list[i] = (struct hf_health_window){.days = windows[i].days,
						    .from_minute = windows[i].from_minute,
						    .to_minute = windows[i].to_minute};
	if (hf_health_in_window(list, len, now))
		return NULL;
	hf_time_format(hf_health_find_opening(list, len, now), opening);
	return hf_arena_printf(arena, "no window of the %s is open before %s", whose, opening);
}
