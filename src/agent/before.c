/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/before.h"

#include "api/device_health.h"
#include "base/str.h"
#include "health/types.h"

/* 65 devices with their faults and holders. */
#define ARENA_BYTES_MAX ((size_t)16 << 20)

static bool is_well(const char *word)
{
	enum hf_health_state state;

	return hf_str_is_empty(word) ||
	       (hf_health_state_of(word, &state) &&
		(state == HF_HEALTH_HEALTHY || state == HF_HEALTH_UNKNOWN));
}

/* A fault of a device that nobody heard: it is Unknown, and not well. */
static bool acts(const struct hf_device_fault *fault)
{
	enum hf_health_class cls;

	return fault->acts &&
	       (!hf_health_class_of(hf_str_or(fault->cls, ""), &cls) || cls >= HF_HEALTH_SOFTWARE);
}

static bool was_well(const struct hf_device_report *device)
{
	if (!is_well(device->state))
		return false;
	for (size_t i = 0; i < device->faults.len; i++)
		if (acts(&device->faults.items[i]))
			return false;
	return true;
}

bool hf_before_doubts(struct hf_doc *health, const char *boot_id)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	struct hf_device_health said;

	hf_device_health_read(health, arena, &said);
	if (!hf_streq(hf_str_or(said.boot_id, ""), boot_id))
		return false;
	for (size_t i = 0; i < said.devices.len; i++)
		if (!was_well(&said.devices.items[i]))
			return true;
	return said.history_lost || !is_well(said.state);
}
