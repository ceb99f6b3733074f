/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads the annotation holdfast.dev/cleared, by which a person declares devices repaired, and makes orders for the
 * brain of it. Input: the annotation's text, the brain's memory, the wall clock.  Output: orders, or the problem of
 * the text.
 */
#include "agent/acknowledgement.h"

#include "base/str.h"
#include "health/evidence.h"

#include <stdio.h>
#include <string.h>

static int read_device(struct hf_acknowledgement *ack, const char *name, size_t len,
		       struct hf_error *err)
{
	char address[HF_HEALTH_DEVICE_MAX], *to;

	if (len >= sizeof(ack->devices[0]))
		return hf_error_set(err, HF_E_INVALID,
				    "a device name in the acknowledgement is too long");
	if (ack->devices_len == HF_ACKNOWLEDGEMENT_DEVICES_MAX)
		return hf_error_set(err, HF_E_INVALID,
				    "the acknowledgement names more than %d devices",
				    HF_ACKNOWLEDGEMENT_DEVICES_MAX);
	to = ack->devices[ack->devices_len];
	memset(to, 0, sizeof(ack->devices[0]));
	/* nvidia-smi and lspci print a PCI address in other forms than the kernel, which names the devices. */
	if (hf_health_pci_normalize(name, len, address))
		memcpy(to, address, sizeof(address));
	else
		memcpy(to, name, len);
	ack->devices_len++;
	return 0;
}

int hf_acknowledgement_read(struct hf_acknowledgement *ack, const char *text, hf_time wall,
			    struct hf_error *err)
{
	uint64_t seen = text != NULL ? hf_hash_str(text) : 0;
	const char *blank;
	hf_time at;

	if (seen == ack->seen)
		return 0;
	ack->seen = seen;
	ack->pending = false;
	ack->devices_len = 0;
	if (text == NULL)
		return 0;
	blank = strrchr(text, ' ');
	for (const char *name = text; blank != NULL && name < blank;) {
		size_t len = strcspn(name, " ");

		if (len > 0 && read_device(ack, name, len, err) != 0)
			return HF_E_INVALID;
		name += len + 1;
	}
	if (hf_time_parse(blank != NULL ? blank + 1 : text, &at, NULL) != 0)
		return hf_error_set(
			err, HF_E_INVALID,
			"the acknowledgement is neither a time nor a list of devices and a time");
	if (at < wall - HF_ACKNOWLEDGEMENT_VALID)
		return hf_error_set(err, HF_E_INVALID,
				    "the acknowledgement's time is more than an hour ago");
	if (at > wall + HF_ACKNOWLEDGEMENT_AHEAD)
		return hf_error_set(err, HF_E_INVALID,
				    "the acknowledgement's time is in the future");
	ack->at = at < wall ? at : wall;
	ack->pending = true;
	return 0;
}

static bool names_device(const struct hf_acknowledgement *ack,
			 const struct hf_health_memory *memory, const struct hf_health_device *d)
{
	for (size_t i = 0; i < ack->devices_len; i++)
		if (d == hf_health_memory_find(memory, ack->devices[i]))
			return true;
	return ack->devices_len == 0;
}

const char *hf_acknowledgement_problem(const struct hf_acknowledgement *ack,
				       const struct hf_health_memory *memory, hf_time wall_less)
{
	const char *problem = NULL;

	if (!ack->pending)
		return NULL;
	for (size_t i = 0; i < ack->devices_len; i++)
		if (hf_health_memory_find(memory, ack->devices[i]) == NULL)
			return "the acknowledgement names a device that this node does not have";
	for (size_t i = 0; i < memory->devices_len; i++) {
		const struct hf_health_device *d = &memory->devices[i];

		if (!names_device(ack, memory, d))
			continue;
		if (d->since < ack->at - wall_less)
			return NULL;
		problem = "every named device entered its state after the acknowledgement's time";
	}
	return problem;
}

size_t hf_acknowledgement_orders(const struct hf_acknowledgement *ack,
				 const struct hf_health_memory *memory, hf_time wall_less,
				 struct hf_health_order *ret_orders, size_t orders_max)
{
	size_t len = 0;

	if (!ack->pending)
		return 0;
	for (size_t i = 0; i < memory->devices_len && len < orders_max; i++) {
		const struct hf_health_device *d = &memory->devices[i];

		if (!names_device(ack, memory, d))
			continue;
		memset(&ret_orders[len], 0, sizeof(ret_orders[len]));
		ret_orders[len].kind = HF_HEALTH_ORDER_CLEAR;
		ret_orders[len].at = ack->at - wall_less;
		memcpy(ret_orders[len].device, d->id, sizeof(d->id));
		len++;
	}
	return len;
}

bool hf_acknowledgement_is_of_use(const struct hf_health_memory *memory)
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
