/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "probes/mig_instances.h"

#include <stdio.h>
#include <string.h>

#define NAME "MIG-0aa1bb2c-0000-4000-8000-000000000007"

static bool tell(struct hf_mig_instances *parts, const char *name, const char *device,
		 int32_t instance, hf_time now)
{
	struct hf_mig_instance part;

	memset(&part, 0, sizeof(part));
	snprintf(part.name, sizeof(part.name), "%s", name);
	snprintf(part.device, sizeof(part.device), "%s", device);
	part.instance = instance;
	return hf_mig_instances_tell(parts, &part, now);
}

static void a_part_is_of_whom_it_was_last_said_to_be(void **state)
{
	struct hf_mig_instances *parts = hf_mig_instances_create();
	struct hf_mig_instance part;

	assert_false(hf_mig_instances_find(parts, NAME, &part));
	assert_true(tell(parts, NAME, "0000:1a:00.0", 7, 1));
	assert_false(tell(parts, NAME, "0000:1a:00.0", 7, 2));
	assert_true(hf_mig_instances_find(parts, NAME, &part));
	assert_string_equal(part.device, "0000:1a:00.0");
	assert_int_equal(part.instance, 7);
	assert_true(tell(parts, NAME, "0000:1a:00.0", 8, 3));
	assert_true(tell(parts, NAME, "0000:1b:00.0", 8, 4));
	assert_true(hf_mig_instances_find(parts, NAME, &part));
	assert_string_equal(part.device, "0000:1b:00.0");
	assert_false(hf_mig_instances_find(parts, "GPU-0aa1bb2c", &part));
	assert_false(hf_mig_instances_find(parts, "", &part));
	hf_mig_instances_destroy(parts);
}

static void some_names_say_themselves_whose_they_are(void **state)
{
	struct hf_mig_instances *parts = hf_mig_instances_create();
	struct hf_mig_instance part;

	assert_true(hf_mig_instances_find(parts, "MIG-GPU-5a1d0000-0000-4000-8000-000000000001/7/0",
					  &part));
	assert_string_equal(part.device, "GPU-5a1d0000-0000-4000-8000-000000000001");
	assert_int_equal(part.instance, 7);
	assert_true(hf_mig_instances_find(parts, "gpu-3-mig-1g10gb-19-4", &part));
	assert_string_equal(part.device, "gpu-3");
	assert_int_equal(part.instance, -1);
	/* What NVML says of such a name counts more. */
	assert_true(tell(parts, "MIG-GPU-1/7/0", "0000:1a:00.0", 7, 1));
	assert_true(hf_mig_instances_find(parts, "MIG-GPU-1/7/0", &part));
	assert_string_equal(part.device, "0000:1a:00.0");
	hf_mig_instances_destroy(parts);
}

static void names_that_say_nothing_are_no_parts(void **state)
{
	static const char *const none[] = {"MIG-", "MIG-/7/0", "gpu-", "gpu-3", "mig-1", NAME};
	static const char *const unnumbered[] = {"MIG-GPU-1/",     "MIG-GPU-1/7",
						 "MIG-GPU-1/x/0",  "MIG-GPU-1//0",
						 "MIG-GPU-1/65/0", "MIG-GPU-1/99999999999/0",
						 "MIG-GPU-1/-1/0"};
	struct hf_mig_instances *parts = hf_mig_instances_create();
	char longest[200];
	struct hf_mig_instance part;

	for (size_t i = 0; i < HF_ARRAY_LEN(none); i++)
		assert_false(hf_mig_instances_find(parts, none[i], &part));
	for (size_t i = 0; i < HF_ARRAY_LEN(unnumbered); i++) {
		assert_true(hf_mig_instances_find(parts, unnumbered[i], &part));
		assert_string_equal(part.device, "GPU-1");
		assert_int_equal(part.instance, -1);
	}
	snprintf(longest, sizeof(longest), "MIG-GPU-%0120d/7/0", 1);
	assert_false(hf_mig_instances_find(parts, longest, &part));
	hf_mig_instances_destroy(parts);
}

static void where_there_is_no_room_the_one_of_longest_ago_goes(void **state)
{
	struct hf_mig_instances *parts = hf_mig_instances_create();
	struct hf_mig_instance part;
	char name[32];

	for (int i = 0; i < HF_MIG_INSTANCES_MAX; i++) {
		snprintf(name, sizeof(name), "MIG-%d", i);
		assert_true(tell(parts, name, "0000:1a:00.0", 1, i));
	}
	/* Still there: the second is the oldest by now. */
	assert_false(tell(parts, "MIG-0", "0000:1a:00.0", 1, HF_HOUR));
	assert_true(tell(parts, NAME, "0000:1a:00.0", 1, HF_HOUR));
	assert_true(hf_mig_instances_find(parts, NAME, &part));
	assert_true(hf_mig_instances_find(parts, "MIG-0", &part));
	assert_false(hf_mig_instances_find(parts, "MIG-1", &part));
	assert_true(hf_mig_instances_find(parts, "MIG-2", &part));
	hf_mig_instances_destroy(parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_is_of_whom_it_was_last_said_to_be),
		cmocka_unit_test(some_names_say_themselves_whose_they_are),
		cmocka_unit_test(names_that_say_nothing_are_no_parts),
		cmocka_unit_test(where_there_is_no_room_the_one_of_longest_ago_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
