/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The list of MIG instances with their GPUs, and the names of MIG instances that contain the name
 * of their GPU. */
#include "probes/mig_instances.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Stands in a claim's device name between the GPU's name and the instance's profile:
 * "gpu-0-mig-1g10gb-19-4". */
#define CLAIM_MARK "-mig-"

struct told {
	struct hf_mig_instance mig;
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

struct hf_mig_instances *hf_mig_instances_destroy(struct hf_mig_instances *instances)
{
	if (instances == NULL)
		return NULL;
	free(instances->items);
	free(instances);
	return NULL;
}

static struct told *by_name(const struct hf_mig_instances *instances, const char *name)
{
	for (size_t i = 0; i < instances->len; i++)
		if (hf_streq(instances->items[i].mig.name, name))
			return &instances->items[i];
	return NULL;
}

static struct told *make_place(struct hf_mig_instances *instances)
{
	struct told *oldest;

	if (instances->len < HF_MIG_INSTANCES_MAX) {
		instances->items = hf_xrealloc(instances->items,
					       (instances->len + 1) * sizeof(*instances->items));
		return &instances->items[instances->len++];
	}
	oldest = &instances->items[0];
	for (size_t i = 1; i < instances->len; i++)
		if (instances->items[i].at < oldest->at)
			oldest = &instances->items[i];
	return oldest;
}

bool hf_mig_instances_add(struct hf_mig_instances *instances, const struct hf_mig_instance *mig,
			  hf_time now)
{
	struct told *told = by_name(instances, mig->name);
	bool is_news = told == NULL || !hf_streq(told->mig.device, mig->device) ||
		       told->mig.instance != mig->instance;

	if (told == NULL)
		told = make_place(instances);
	told->mig = *mig;
	told->at = now;
	return is_news;
}

/* Parses the end of a name, "7/0", into the GPU instance. */
static int32_t parse_instance(const char *text)
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

/* Takes the text before `end` as the name of the GPU. False: it is empty or too long for a name. */
static bool take_device(const char *from, const char *end, struct hf_mig_instance *ret_mig)
{
	size_t len = (size_t)(end - from);

	if (len == 0 || len >= sizeof(ret_mig->device))
		return false;
	memset(ret_mig, 0, sizeof(*ret_mig));
	memcpy(ret_mig->device, from, len);
	ret_mig->instance = -1;
	return true;
}

bool hf_mig_instances_find(const struct hf_mig_instances *instances, const char *id,
			   struct hf_mig_instance *ret_mig)
{
	const struct told *told;
	const char *end;

	if (hf_str_has_prefix(id, "gpu-")) {
		end = strstr(id, CLAIM_MARK);
		return end != NULL && take_device(id, end, ret_mig);
	}
	if (!hf_str_has_prefix(id, HF_MIG_PREFIX))
		return false;
	told = by_name(instances, id);
	if (told != NULL) {
		*ret_mig = told->mig;
		return true;
	}
	end = strchr(id, '/');
	if (end == NULL || !take_device(id + strlen(HF_MIG_PREFIX), end, ret_mig))
		return false;
	ret_mig->instance = parse_instance(end + 1);
	return true;
}
