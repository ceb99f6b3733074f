/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "probes/mig_instances.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Of a claim's name, behind that of its device: "gpu-0-mig-1g10gb-19-4". */
#define CLAIM_MARK "-mig-"

struct told {
	struct hf_mig_instance part;
	hf_time at;
};

struct hf_mig_instances {
	struct told *items;
	size_t len;
};

struct hf_mig_instances *hf_mig_instances_create(void)
{
	return hf_xcalloc(1, sizeof(struct hf_mig_instances));
}

struct hf_mig_instances *hf_mig_instances_destroy(struct hf_mig_instances *parts)
{
	if (parts == NULL)
		return NULL;
	free(parts->items);
	free(parts);
	return NULL;
}

static struct told *by_name(const struct hf_mig_instances *parts, const char *name)
{
	for (size_t i = 0; i < parts->len; i++)
		if (hf_streq(parts->items[i].part.name, name))
			return &parts->items[i];
	return NULL;
}

static struct told *place(struct hf_mig_instances *parts)
{
	struct told *oldest;

	if (parts->len < HF_MIG_INSTANCES_MAX) {
		parts->items = hf_xrealloc(parts->items, (parts->len + 1) * sizeof(*parts->items));
		return &parts->items[parts->len++];
	}
	oldest = &parts->items[0];
	for (size_t i = 1; i < parts->len; i++)
		if (parts->items[i].at < oldest->at)
			oldest = &parts->items[i];
	return oldest;
}

bool hf_mig_instances_tell(struct hf_mig_instances *parts, const struct hf_mig_instance *part,
			   hf_time now)
{
	struct told *told = by_name(parts, part->name);
	bool is_news = told == NULL || !hf_streq(told->part.device, part->device) ||
		       told->part.instance != part->instance;

	if (told == NULL)
		told = place(parts);
	told->part = *part;
	told->at = now;
	return is_news;
}

/* "7/0" */
static int32_t instance_of(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	char number[8] = "";
	int64_t value;

	if (text[digits] != '/' || digits >= sizeof(number))
		return -1;
	memcpy(number, text, digits);
	return hf_str_to_i64(number, 0, HF_MIG_GPU_INSTANCE_MAX, &value, NULL) < 0 ? -1
										   : (int32_t)value;
}

/* The text up to there, where it is no longer than a name may be. */
static bool take_device(const char *from, const char *end, struct hf_mig_instance *ret_part)
{
	size_t len = (size_t)(end - from);

	if (len == 0 || len >= sizeof(ret_part->device))
		return false;
	memset(ret_part, 0, sizeof(*ret_part));
	memcpy(ret_part->device, from, len);
	ret_part->instance = -1;
	return true;
}

bool hf_mig_instances_find(const struct hf_mig_instances *parts, const char *id,
			   struct hf_mig_instance *ret_part)
{
	const struct told *told;
	const char *end;

	if (hf_str_has_prefix(id, "gpu-")) {
		end = strstr(id, CLAIM_MARK);
		return end != NULL && take_device(id, end, ret_part);
	}
	if (!hf_str_has_prefix(id, HF_MIG_PREFIX))
		return false;
	told = by_name(parts, id);
	if (told != NULL) {
		*ret_part = told->part;
		return true;
	}
	end = strchr(id, '/');
	if (end == NULL || !take_device(id + strlen(HF_MIG_PREFIX), end, ret_part))
		return false;
	ret_part->instance = instance_of(end + 1);
	return true;
}
