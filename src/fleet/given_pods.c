/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/given_pods.h"

#include "base/str.h"
#include "fleet/impact.h"

static void note_pod(struct hf_given_pods *pods, const struct hf_device_holder *holder, bool late)
{
	const uint64_t uid = hf_hash_str(holder->uid);
	size_t at = 0;

	while (at < pods->len && pods->items[at].uid != uid)
		at++;
	if (at == HF_GIVEN_PODS_MAX)
		return;
	if (at == pods->len)
		pods->items[pods->len++] = (struct hf_given_pod){.uid = uid, .late = late};
	pods->items[at].ended |= holder->until != HF_TIME_NONE;
}

void hf_given_pods_note(struct hf_given_pods *pods, const struct hf_device_health *health,
			bool late)
{
	for (size_t i = 0; health != NULL && i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];

		for (size_t h = 0; h < device->holders.len; h++)
			if (hf_impact_of_device(device) == HF_IMPACT_STOPPED &&
			    !hf_str_is_empty(device->holders.items[h].uid) &&
			    !device->holders.items[h].of_node)
				note_pod(pods, &device->holders.items[h], late);
	}
}

int32_t hf_given_pods_count(const struct hf_given_pods *pods)
{
	int32_t n = 0;

	for (size_t i = 0; i < pods->len; i++)
		n += pods->items[i].late && pods->items[i].ended;
	return n;
}
