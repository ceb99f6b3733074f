/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "probes/mig_instances.h"

#include <stdio.h>
#include <string.h>

#define NAME "MIG-0aa1bb2c-0000-4000-8000-000000000007"

static bool tell(struct hf_mig_instances *instances, const char *name, const char *device,
		 int32_t instance, hf_time now)
{
	struct hf_mig_instance mig;

	memset(&mig, 0, sizeof(mig));
	snprintf(mig.name, sizeof(mig.name), "%s", name);
	snprintf(mig.device, sizeof(mig.device), "%s", device);
	mig.instance = instance;
	return hf_mig_instances_add(instances, &mig, now);
}

static void a_mig_instance_is_of_the_gpu_that_was_reported_last(void **state)
{
	struct hf_mig_instances *instances = hf_mig_instances_create();
	struct hf_mig_instance mig;

	assert_false(hf_mig_instances_find(instances, NAME, &mig));
	assert_true(tell(instances, NAME, "0000:1a:00.0", 7, 1));
	assert_false(tell(instances, NAME, "0000:1a:00.0", 7, 2));
	assert_true(hf_mig_instances_find(instances, NAME, &mig));
	assert_string_equal(mig.device, "0000:1a:00.0");
	assert_int_equal(mig.instance, 7);
	assert_true(tell(instances, NAME, "0000:1a:00.0", 8, 3));
	assert_true(tell(instances, NAME, "0000:1b:00.0", 8, 4));
	assert_true(hf_mig_instances_find(instances, NAME, &mig));
	assert_string_equal(mig.device, "0000:1b:00.0");
	assert_false(hf_mig_instances_find(instances, "GPU-0aa1bb2c", &mig));
	assert_false(hf_mig_instances_find(instances, "", &mig));
	hf_mig_instances_destroy(instances);
}

static void some_names_of_instances_contain_their_gpu(void **state)
{
	struct hf_mig_instances *instances = hf_mig_instances_create();
	struct hf_mig_instance mig;

	assert_true(hf_mig_instances_find(
		instances, "MIG-GPU-5a1d0000-0000-4000-8000-000000000001/7/0", &mig));
	assert_string_equal(mig.device, "GPU-5a1d0000-0000-4000-8000-000000000001");
	assert_int_equal(mig.instance, 7);
	assert_true(hf_mig_instances_find(instances, "gpu-3-mig-1g10gb-19-4", &mig));
	assert_string_equal(mig.device, "gpu-3");
	assert_int_equal(mig.instance, -1);
	/* If NVML reported an instance of this name, its report counts and not the GPU in the
	 * name. */
	assert_true(tell(instances, "MIG-GPU-1/7/0", "0000:1a:00.0", 7, 1));
	assert_true(hf_mig_instances_find(instances, "MIG-GPU-1/7/0", &mig));
	assert_string_equal(mig.device, "0000:1a:00.0");
	hf_mig_instances_destroy(instances);
}

static void names_that_say_nothing_are_no_parts(void **state)
{
	static const char *const none[] = {"MIG-", "MIG-/7/0", "gpu-", "gpu-3", "mig-1", NAME};
	static const char *const unnumbered[] = {"MIG-GPU-1/",     "MIG-GPU-1/7",
						 "MIG-GPU-1/x/0",  "MIG-GPU-1//0",
						 "MIG-GPU-1/65/0", "MIG-GPU-1/99999999999/0",
						 "MIG-GPU-1/-1/0"};
	struct hf_mig_instances *instances = hf_mig_instances_create();
	char longest[200];
	struct hf_mig_instance mig;

	for (size_t i = 0; i < HF_ARRAY_LEN(none); i++)
		assert_false(hf_mig_instances_find(instances, none[i], &mig));
	for (size_t i = 0; i < HF_ARRAY_LEN(unnumbered); i++) {
		assert_true(hf_mig_instances_find(instances, unnumbered[i], &mig));
		assert_string_equal(mig.device, "GPU-1");
		assert_int_equal(mig.instance, -1);
	}
	snprintf(longest, sizeof(longest), "MIG-GPU-%0120d/7/0", 1);
	assert_false(hf_mig_instances_find(instances, longest, &mig));
	hf_mig_instances_destroy(instances);
}

static void where_there_is_no_room_the_one_of_longest_ago_goes(void **state)
{
	struct hf_mig_instances *instances = hf_mig_instances_create();
	struct hf_mig_instance mig;
	char name[32];

	for (int i = 0; i < HF_MIG_INSTANCES_MAX; i++) {
		snprintf(name, sizeof(name), "MIG-%d", i);
		assert_true(tell(instances, name, "0000:1a:00.0", 1, i));
	}
	/* MIG-0 is reported again, so MIG-1 is the oldest report: the full list drops MIG-1. */
	assert_false(tell(instances, "MIG-0", "0000:1a:00.0", 1, HF_HOUR));
	assert_true(tell(instances, NAME, "0000:1a:00.0", 1, HF_HOUR));
	assert_true(hf_mig_instances_find(instances, NAME, &mig));
	assert_true(hf_mig_instances_find(instances, "MIG-0", &mig));
	assert_false(hf_mig_instances_find(instances, "MIG-1", &mig));
	assert_true(hf_mig_instances_find(instances, "MIG-2", &mig));
	hf_mig_instances_destroy(instances);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mig_instance_is_of_the_gpu_that_was_reported_last),
		cmocka_unit_test(some_names_of_instances_contain_their_gpu),
		cmocka_unit_test(names_that_say_nothing_are_no_parts),
		cmocka_unit_test(where_there_is_no_room_the_one_of_longest_ago_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
