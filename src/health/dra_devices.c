/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/dra_devices.h"

#include "base/str.h"
#include "health/evidence.h"

#include <string.h>

static bool is_same_pool(const struct hf_dra_slice *a, const struct hf_dra_slice *b)
{
	return hf_streq(a->driver, b->driver) && hf_streq(a->pool, b->pool);
}

/* Whether the slice is of the newest generation of its pool. */
static bool is_newest(const struct hf_dra_slice *slices, size_t len,
		      const struct hf_dra_slice *slice)
{
	for (size_t i = 0; i < len; i++)
		if (is_same_pool(&slices[i], slice) && slices[i].generation > slice->generation)
			return false;
	return true;
}

/* Whether all slices of the slice's pool and generation are known. */
static bool is_complete(const struct hf_dra_slice *slices, size_t len,
			const struct hf_dra_slice *slice)
{
	int64_t known = 0;

	for (size_t i = 0; i < len; i++)
		known += is_same_pool(&slices[i], slice) &&
			 slices[i].generation == slice->generation;
	return known == slice->pool_slices;
}

static bool is_same_address(const char *a, const char *b)
{
	char x[HF_HEALTH_DEVICE_MAX], y[HF_HEALTH_DEVICE_MAX];

	return !hf_str_is_empty(a) && !hf_str_is_empty(b) &&
	       hf_health_pci_normalize(a, strlen(a), x) &&
	       hf_health_pci_normalize(b, strlen(b), y) && hf_streq(x, y);
}

/* The UUID decides if both are known; else the address does. */
static bool is_device(const char *uuid, const char *pci, const char *its_uuid, const char *its_pci)
{
	if (!hf_str_is_empty(uuid) && !hf_str_is_empty(its_uuid))
		return hf_streq(uuid, its_uuid);
	return is_same_address(pci, its_pci);
}

struct search {
	const char *uuid, *pci;
	struct hf_dra_match *matches;
	size_t len, whole;
	bool full;
};

static void add_match(struct search *search, const struct hf_dra_slice *slice,
		      const struct hf_dra_device *device, bool partition)
{
	const struct hf_dra_match match = {
		.driver = slice->driver, .pool = slice->pool, .device = device->name};

	if (search->len == HF_DRA_MATCHES_MAX) {
		search->full = true;
		return;
	}
	search->matches[search->len++] = match;
	if (partition)
		return;
	/* The whole device comes first. */
	search->whole++;
	search->matches[search->len - 1] = search->matches[0];
	search->matches[0] = match;
}

static void search_slice(struct search *search, const struct hf_dra_slice *slice)
{
	for (size_t i = 0; i < slice->len; i++) {
		const struct hf_dra_device *d = &slice->devices[i];
		bool partition =
			!hf_str_is_empty(d->parent_uuid) || !hf_str_is_empty(d->parent_pci);

		if (hf_str_is_empty(d->name))
			continue;
		if (partition ? is_device(search->uuid, search->pci, d->parent_uuid, d->parent_pci)
			      : is_device(search->uuid, search->pci, d->uuid, d->pci))
			add_match(search, slice, d, partition);
	}
}

/* Whether the pool has a device of this search in any generation. */
static bool concerns_pool(const struct hf_dra_slice *slices, size_t len,
			  const struct hf_dra_slice *pool, const char *uuid, const char *pci)
{
	struct hf_dra_match matches[HF_DRA_MATCHES_MAX];
	struct search search = {.uuid = uuid, .pci = pci, .matches = matches};

	for (size_t i = 0; i < len; i++)
		if (is_same_pool(&slices[i], pool))
			search_slice(&search, &slices[i]);
	return search.len > 0;
}

enum hf_dra_answer hf_dra_find(const struct hf_dra_slice *slices, size_t len, const char *uuid,
			       const char *pci, struct hf_dra_match ret_matches[HF_DRA_MATCHES_MAX],
			       size_t *ret_len)
{
	struct search search = {.uuid = uuid, .pci = pci, .matches = ret_matches};
	bool incomplete = false, blocked = false;

	for (size_t i = 0; i < len; i++) {
		if (!is_newest(slices, len, &slices[i]))
			continue;
		if (is_complete(slices, len, &slices[i])) {
			search_slice(&search, &slices[i]);
			continue;
		}
		incomplete = true;
		blocked |= concerns_pool(slices, len, &slices[i], uuid, pci);
	}
	*ret_len = 0;
	/* The missing slices may have the device, or another one that matches. */
	if (blocked || (search.len == 0 && incomplete))
		return HF_DRA_INCOMPLETE;
	if (search.whole > 1 || search.full)
		return HF_DRA_AMBIGUOUS;
	*ret_len = search.len;
	return search.len > 0 ? HF_DRA_FOUND : HF_DRA_NONE;
}

/* Whether a device is known to be another GPU; a partition is by its whole device. */
static bool is_other_device(const struct hf_dra_device *d, const char *uuid, const char *pci)
{
	bool partition = !hf_str_is_empty(d->parent_uuid) || !hf_str_is_empty(d->parent_pci);
	const char *its_uuid = partition ? d->parent_uuid : d->uuid;
	const char *its_pci = partition ? d->parent_pci : d->pci;

	if (!hf_str_is_empty(uuid) && !hf_str_is_empty(its_uuid))
		return !hf_streq(uuid, its_uuid);
	return !hf_str_is_empty(pci) && !hf_str_is_empty(its_pci) && !is_same_address(pci, its_pci);
}

bool hf_dra_is_other(const struct hf_dra_slice *slices, size_t len, const struct hf_dra_match *name,
		     const char *uuid, const char *pci)
{
	for (size_t i = 0; i < len; i++) {
		const struct hf_dra_slice *slice = &slices[i];

		if (!hf_streq(slice->driver, name->driver) || !hf_streq(slice->pool, name->pool) ||
		    !is_newest(slices, len, slice) || !is_complete(slices, len, slice))
			continue;
		for (size_t k = 0; k < slice->len; k++)
			if (hf_streq(slice->devices[k].name, name->device))
				return is_other_device(&slice->devices[k], uuid, pci);
	}
	return false;
}

int64_t hf_dra_count(const struct hf_dra_slice *slices, size_t len, const char *driver)
{
	int64_t count = 0;

	for (size_t i = 0; i < len; i++)
		if (hf_streq(slices[i].driver, driver) && is_newest(slices, len, &slices[i]))
			count += (int64_t)slices[i].len;
	return count;
}

const char *hf_dra_answer_text(enum hf_dra_answer answer)
{
	static const char *const texts[HF_DRA_ANSWERS] = {
		"found", "no DRA driver publishes the device",
		"a pool of the DRA driver is being rewritten", "more than one DRA device matches"};

	return answer < HF_DRA_ANSWERS ? texts[answer] : "?";
}
