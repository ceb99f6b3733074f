/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Compares DeviceHealth, as the former agent of this node published it, with the journal.  Pure. */
#include "agent/previous_health.h"

#include "api/device_health.h"
#include "base/str.h"
#include "health/types.h"

/* Limit of the arena: 65 devices with their faults and holders. */
#define ARENA_BYTES_MAX ((size_t)16 << 20)

static bool is_well(const char *state_name)
{
	enum hf_health_state state;

	return hf_str_is_empty(state_name) ||
	       (hf_health_state_of(state_name, &state) &&
		(state == HF_HEALTH_HEALTHY || state == HF_HEALTH_UNKNOWN));
}

/* Whether the fault counts against its device.  It also counts if the device is Unknown because no detector saw
 * it. */
static bool fault_acts(const struct hf_device_fault *fault)
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
		if (fault_acts(&device->faults.items[i]))
			return false;
	return true;
}

/* Whether the journal knows the fault: it has the fault open, or knows that it ended.  A fault that began again
 * has a count above the journal's. */
static bool has_fault(const struct hf_health_device *device, const struct hf_device_fault *fault)
{
	for (size_t i = 0; i < device->faults_len; i++) {
		const struct hf_health_fault *f = &device->faults[i];

		if ((f->open || (int64_t)f->count >= fault->count) && f->code == fault->code &&
		    hf_streq(hf_health_detector_name(f->detector), fault->detector))
			return true;
	}
	return false;
}

/* Whether DeviceHealth shows more against the device than the journal, although it is not older.  The journal is
 * written before DeviceHealth, so this means that the disk failed. */
static bool is_ahead(const struct hf_device_report *said, const struct hf_health_memory *memory)
{
	const struct hf_health_device *device = hf_health_memory_find(memory, said->id);

	if (device == NULL || said->generation > (int64_t)device->generation)
		return true;
	if (said->generation < (int64_t)device->generation)
		return false;
	if (!is_well(said->state) && is_well(hf_health_state_name(device->state)))
		return true;
	for (size_t i = 0; i < said->faults.len; i++)
		if (fault_acts(&said->faults.items[i]) &&
		    !has_fault(device, &said->faults.items[i]))
			return true;
	return false;
}

bool hf_previous_health_doubts(struct hf_doc *health, const char *boot_id,
			       const struct hf_health_memory *journal)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	struct hf_device_health said;

	hf_device_health_read(health, arena, &said);
	if (!hf_streq(hf_str_or(said.boot_id, ""), boot_id))
		return false;
	for (size_t i = 0; i < said.devices.len; i++) {
		const struct hf_device_report *device = &said.devices.items[i];

		if (!was_well(device) && (journal == NULL || is_ahead(device, journal)))
			return true;
	}
	return journal == NULL && (said.history_lost || !is_well(said.state));
}
