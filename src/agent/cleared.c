/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/cleared.h"

#include "base/str.h"
#include "health/evidence.h"

#include <stdio.h>
#include <string.h>

int hf_cleared_read(struct hf_cleared *cleared, const char *text, hf_time wall,
		    struct hf_error *err)
{
	uint64_t seen = text != NULL ? hf_hash_str(text) : 0;
	char address[HF_HEALTH_DEVICE_MAX];
	const char *blank;
	hf_time at;

	if (seen == cleared->seen)
		return 0;
	cleared->seen = seen;
	cleared->pending = false;
	if (text == NULL)
		return 0;
	blank = strrchr(text, ' ');
	if (blank != NULL && (size_t)(blank - text) >= sizeof(cleared->device))
		return hf_error_set(err, HF_E_INVALID, "no device has so long a name");
	if (hf_time_parse(blank != NULL ? blank + 1 : text, &at, NULL) != 0)
		return hf_error_set(err, HF_E_INVALID, "neither a time nor a device and a time");
	if (at < wall - HF_CLEARED_VALID)
		return hf_error_set(err, HF_E_INVALID, "it is older than an hour");
	if (at > wall + HF_CLEARED_AHEAD)
		return hf_error_set(err, HF_E_INVALID, "it is of a time to come");
	memset(cleared->device, 0, sizeof(cleared->device));
	/* An address as nvidia-smi or lspci print it is the kernel's too. */
	if (blank != NULL && hf_health_pci_normalize(text, (size_t)(blank - text), address))
		memcpy(cleared->device, address, sizeof(address));
	else if (blank != NULL)
		memcpy(cleared->device, text, (size_t)(blank - text));
	cleared->at = at < wall ? at : wall;
	cleared->pending = true;
	return 0;
}

static bool names(const struct hf_cleared *cleared, const struct hf_health_memory *memory,
		  const struct hf_health_device *d)
{
	return cleared->device[0] == '\0' || d == hf_health_memory_find(memory, cleared->device);
}

const char *hf_cleared_problem(const struct hf_cleared *cleared,
			       const struct hf_health_memory *memory, hf_time wall_less)
{
	const char *problem = cleared->device[0] != '\0' ? "it names no device of this node" : NULL;

	if (!cleared->pending)
		return NULL;
	for (size_t i = 0; i < memory->devices_len; i++) {
		const struct hf_health_device *d = &memory->devices[i];

		if (!names(cleared, memory, d))
			continue;
		if (d->since < cleared->at - wall_less)
			return NULL;
		problem = "what it names is in its state since a later time";
	}
	return problem;
}

size_t hf_cleared_orders(const struct hf_cleared *cleared, const struct hf_health_memory *memory,
			 hf_time wall_less, struct hf_health_order *ret_orders, size_t orders_max)
{
	size_t len = 0;

	if (!cleared->pending)
		return 0;
	for (size_t i = 0; i < memory->devices_len && len < orders_max; i++) {
		const struct hf_health_device *d = &memory->devices[i];

		if (!names(cleared, memory, d))
			continue;
		memset(&ret_orders[len], 0, sizeof(ret_orders[len]));
		ret_orders[len].kind = HF_HEALTH_ORDER_CLEAR;
		ret_orders[len].at = cleared->at - wall_less;
		memcpy(ret_orders[len].device, d->id, sizeof(d->id));
		len++;
	}
	return len;
}

bool hf_cleared_is_of_use(const struct hf_health_memory *memory)
{
	enum hf_health_state next;

	for (size_t i = 0; i < memory->devices_len; i++) {
		const struct hf_health_device *d = &memory->devices[i];

		if (hf_health_next(d->state, HF_HEALTH_CLEARED_BY_PERSON, &next) ||
		    (!d->seen && d->kind != HF_HEALTH_NODE))
			return true;
	}
	return memory->doubted;
}
