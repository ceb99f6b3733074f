/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The list of evidence that waits until a probe names its device. */
#include "probes/unplaced_evidence.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

struct hf_unplaced_evidence {
	hf_time until;
	struct hf_health_evidence *items; /* NULL: no evidence was kept yet */
	size_t len;
};

struct hf_unplaced_evidence *hf_unplaced_evidence_create(hf_time now)
{
	struct hf_unplaced_evidence *list = hf_xcalloc(1, sizeof(*list));

	list->until = hf_time_add(now, HF_UNPLACED_EVIDENCE_SPAN);
	return list;
}

struct hf_unplaced_evidence *hf_unplaced_evidence_destroy(struct hf_unplaced_evidence *list)
{
	if (list != NULL)
		free(list->items);
	free(list);
	return NULL;
}

bool hf_unplaced_evidence_is_kept(const struct hf_health_evidence *evidence)
{
	return evidence->device[0] != '\0' &&
	       (evidence->detector == HF_HEALTH_AER || evidence->detector == HF_HEALTH_MLX5);
}

/* The evidence is about this device, about another function of it, or about a port above it. */
static bool fits_device(const struct hf_health_evidence *evidence,
			const struct hf_health_presence *device)
{
	char port[HF_HEALTH_DEVICE_MAX];

	return hf_streq(evidence->device, device->id) ||
	       hf_health_pci_same_device(evidence->device, device->id) ||
	       hf_health_pci_same_device(evidence->device, device->alias) ||
	       hf_health_find_above(device->above, evidence->device, port) >= 0;
}

bool hf_unplaced_evidence_keep(struct hf_unplaced_evidence *list,
			       const struct hf_health_evidence *evidence,
			       const struct hf_health_presence *devices, size_t len, hf_time now)
{
	if (now >= list->until || !hf_unplaced_evidence_is_kept(evidence))
		return false;
	for (size_t i = 0; i < len; i++)
		if (fits_device(evidence, &devices[i]))
			return false;
	if (list->items == NULL)
		list->items = hf_xcalloc(HF_UNPLACED_EVIDENCE_MAX, sizeof(*list->items));
	if (list->len == HF_UNPLACED_EVIDENCE_MAX) {
		list->len--;
		memmove(list->items, list->items + 1, list->len * sizeof(*list->items));
	}
	list->items[list->len++] = *evidence;
	return true;
}

bool hf_unplaced_evidence_take(struct hf_unplaced_evidence *list,
			       const struct hf_health_presence *device,
			       struct hf_health_evidence *ret_evidence)
{
	size_t at = 0;

	while (at < list->len && !fits_device(&list->items[at], device))
		at++;
	if (at == list->len)
		return false;
	*ret_evidence = list->items[at];
	list->len--;
	memmove(list->items + at, list->items + at + 1, (list->len - at) * sizeof(*list->items));
	return true;
}
