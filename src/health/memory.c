/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Copies, searches, checks and shifts the memory of the brain.
 * Invariant: devices are sorted by id, the node (id "") first.
 */
#include "health/memory.h"

#include "base/str.h"

#include <string.h>

const char *hf_health_truth_name(enum hf_health_truth truth)
{
	return truth == HF_HEALTH_TRUE ? "True" : truth == HF_HEALTH_FALSE ? "False" : "Unknown";
}

void hf_health_memory_init(struct hf_health_memory *memory)
{
	memset(memory, 0, sizeof(*memory));
	memory->now = HF_TIME_NONE;
	memory->written_at = HF_TIME_NONE;
	memory->tokens_at = HF_TIME_NONE;
	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++)
		memory->conditions[i].changed_at = HF_TIME_NONE;
}

struct hf_health_memory *hf_health_memory_copy(const struct hf_health_memory *memory, size_t more,
					       struct hf_arena *arena)
{
	struct hf_health_memory *copy = HF_ARENA_NEW(arena, struct hf_health_memory);
	size_t len = memory->devices_len;

	memcpy(copy, memory, sizeof(*copy));
	copy->devices = HF_ARENA_ARRAY(arena, struct hf_health_device, len + more + 1);
	if (len > 0)
		memcpy(copy->devices, memory->devices, len * sizeof(*copy->devices));
	return copy;
}

static void shift_times(hf_time *times, size_t len, hf_time by)
{
	for (size_t i = 0; i < len; i++) {
		/* HF_TIME_NONE is below zero, and in some fields 0 means "never" too. */
		if (times[i] <= 0)
			continue;
		times[i] = hf_time_add(times[i], by);
		if (times[i] < 1)
			times[i] = 1;
	}
}

static void shift_device(struct hf_health_device *d, hf_time by)
{
	shift_times(&d->since, 1, by);
	shift_times(&d->heard_at, 1, by);
	shift_times(&d->watched_at, 1, by);
	shift_times(&d->fresh_after, 1, by);
	shift_times(&d->weak_at, 1, by);
	shift_times(&d->hold_until, 1, by);
	shift_times(d->sightings, d->sightings_len, by);
	shift_times(d->fatals, d->fatals_len, by);
	shift_times(d->flaps, d->flaps_len, by);
	for (size_t i = 0; i < d->faults_len; i++) {
		struct hf_health_fault *f = &d->faults[i];

		shift_times(&f->opened_at, 1, by);
		shift_times(&f->event_at, 1, by);
		shift_times(&f->last, 1, by);
		shift_times(&f->closed_at, 1, by);
		shift_times(&f->told_at, 1, by);
		shift_times(f->repeats, f->repeats_len, by);
	}
	for (size_t i = 0; i < HF_HEALTH_DETECTORS; i++) {
		shift_times(&d->tracks[i].since, 1, by);
		shift_times(&d->tracks[i].at, 1, by);
	}
}

void hf_health_memory_shift(struct hf_health_memory *memory, hf_time by)
{
	shift_times(&memory->now, 1, by);
	shift_times(&memory->written_at, 1, by);
	shift_times(&memory->tokens_at, 1, by);
	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++)
		shift_times(&memory->conditions[i].changed_at, 1, by);
	for (size_t i = 0; i < memory->devices_len; i++)
		shift_device(&memory->devices[i], by);
}

static bool has_end(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool fault_is_sound(const struct hf_health_fault *f)
{
	return (unsigned)f->detector < HF_HEALTH_DETECTORS &&
	       (unsigned)f->severity < HF_HEALTH_SEVERITIES &&
	       (unsigned)f->cls < HF_HEALTH_CLASSES && (unsigned)f->action < HF_HEALTH_ACTIONS &&
	       (unsigned)f->scope < HF_HEALTH_SCOPES && (unsigned)f->clear < HF_HEALTH_CLEARS &&
	       f->repeats_len <= HF_HEALTH_REPEATS_MAX && has_end(f->unit, sizeof(f->unit)) &&
	       has_end(f->line, sizeof(f->line));
}

static bool device_is_sound(const struct hf_health_device *d)
{
	if (!has_end(d->id, sizeof(d->id)) || !has_end(d->uuid, sizeof(d->uuid)) ||
	    !has_end(d->alias, sizeof(d->alias)) || !has_end(d->above, sizeof(d->above)))
		return false;
	if ((unsigned)d->kind >= HF_HEALTH_KINDS || (unsigned)d->state >= HF_HEALTH_STATES)
		return false;
	if (d->sightings_len > HF_HEALTH_SIGHTINGS_MAX || d->fatals_len > HF_HEALTH_REPEATS_MAX ||
	    d->flaps_len > HF_HEALTH_FLAPS_MAX || d->faults_len > HF_HEALTH_FAULTS_MAX)
		return false;
	for (size_t i = 0; i < d->faults_len; i++) {
		if (!fault_is_sound(&d->faults[i]))
			return false;
	}
	return true;
}

const char *hf_health_memory_problem(const struct hf_health_memory *memory)
{
	if (!has_end(memory->boot_id, sizeof(memory->boot_id)))
		return "the boot ID has no end";
	if (memory->devices_len > HF_HEALTH_DEVICES_MAX)
		return "too many devices";
	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++) {
		const struct hf_health_condition *c = &memory->conditions[i];

		if ((unsigned)c->status > HF_HEALTH_FALSE ||
		    !has_end(c->reason, sizeof(c->reason)) ||
		    !has_end(c->message, sizeof(c->message)))
			return "a condition has an unknown status or a text without an end";
	}
	for (size_t i = 0; i < memory->devices_len; i++) {
		const struct hf_health_device *d = &memory->devices[i];

		if (!device_is_sound(d))
			return "a device has a value out of range";
		if (i > 0 && strcmp(memory->devices[i - 1].id, d->id) >= 0)
			return "the devices are not sorted by id";
		if ((d->kind == HF_HEALTH_NODE) != (i == 0) || (i == 0) != (d->id[0] == '\0'))
			return "the node is not the first device";
	}
	return NULL;
}

struct hf_health_device *hf_health_memory_find(const struct hf_health_memory *memory,
					       const char *name)
{
	struct hf_health_device *found = NULL;

	for (size_t i = 0; i < memory->devices_len; i++) {
		struct hf_health_device *d = &memory->devices[i];

		if (hf_streq(d->id, name))
			return d;
		if (name[0] != '\0' && (hf_streq(d->uuid, name) || hf_streq(d->alias, name)) &&
		    (found == NULL || (d->seen && !found->seen)))
			found = d;
	}
	return found;
}

/* Whether the device had faults that a boot has ended. */
static bool was_sick(const struct hf_health_device *d)
{
	for (size_t i = 0; i < d->faults_len; i++)
		if (d->faults[i].cls >= HF_HEALTH_SOFTWARE && !d->faults[i].open &&
		    d->faults[i].closed_at >= d->since)
			return true;
	return false;
}

/* Whether the device was sick before the boot, was not seen since, and is not known at another address. */
static bool is_lost(const struct hf_health_memory *m, const struct hf_health_device *d)
{
	if (d->state != HF_HEALTH_UNKNOWN || d->seen || d->kind == HF_HEALTH_NODE || !was_sick(d))
		return false;
	for (size_t i = 0; i < m->devices_len && d->uuid[0] != '\0'; i++)
		if (m->devices[i].seen && hf_streq(m->devices[i].uuid, d->uuid))
			return false;
	return true;
}

bool hf_health_memory_misses(const struct hf_health_memory *memory)
{
	bool all_on_bus = memory->bus >= memory->bus_before && memory->bus >= memory->gpus_before;

	if ((memory->gpus < memory->gpus_before && !all_on_bus) || memory->offered)
		return true;
	for (size_t i = 0; i < memory->devices_len; i++)
		if (is_lost(memory, &memory->devices[i]))
			return true;
	return false;
}

bool hf_health_fault_is_of_port(const struct hf_health_fault *fault)
{
	char address[HF_HEALTH_DEVICE_MAX];
	const char *rest = fault->unit + strlen(HF_HEALTH_UNIT_PORT);

	return hf_str_has_prefix(fault->unit, HF_HEALTH_UNIT_PORT) &&
	       hf_health_pci_normalize(rest, strlen(rest), address);
}

static int count_words(const char *text)
{
	int n = 0;

	for (; *text != '\0'; n++) {
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	return n;
}

int hf_health_find_above(const char above[HF_HEALTH_ABOVE_MAX], const char *address,
			 char ret_port[HF_HEALTH_DEVICE_MAX])
{
	char port[HF_HEALTH_DEVICE_MAX], parent[HF_HEALTH_DEVICE_MAX] = "";
	int ports = count_words(above), function_of = -1;
	const char *at = above;

	for (int place = 0; place < ports; place++) {
		size_t len = strcspn(at, " ");
		/* The ports of the processor, and the ports of a switch to the devices below it, may be functions
		 * of one device, each with a link of its own.  Seen from the device these ports come first, third
		 * and so on. */
		bool is_upstream = (ports - place) % 2 == 0;

		hf_str_print(port, sizeof(port), at, len);
		at += len + strspn(at + len, " ");
		if (hf_streq(port, address)) {
			memcpy(ret_port, port, sizeof(port));
			return place;
		}
		/* A port without a parent in its PCI domain belongs to the processor. */
		if (is_upstream && hf_health_pci_same_domain(parent, port) &&
		    hf_health_pci_same_device(port, address)) {
			memcpy(ret_port, port, sizeof(port));
			function_of = place;
		}
		memcpy(parent, port, sizeof(parent));
	}
	return function_of;
}

bool hf_health_fault_is_graver(const struct hf_health_fault *a, const struct hf_health_fault *b)
{
	return a->cls != b->cls ? a->cls > b->cls : a->action > b->action;
}

const struct hf_health_fault *hf_health_device_worst(const struct hf_health_device *device)
{
	const struct hf_health_fault *found = NULL;

	for (size_t i = 0; i < device->faults_len; i++) {
		const struct hf_health_fault *f = &device->faults[i];

		if (hf_health_fault_acts(f) && (!found || hf_health_fault_is_graver(f, found)))
			found = f;
	}
	return found;
}

enum hf_health_class hf_health_device_class(const struct hf_health_device *device)
{
	const struct hf_health_fault *worst = hf_health_device_worst(device);

	return worst ? worst->cls : HF_HEALTH_NONE;
}
