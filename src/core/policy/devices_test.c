/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "harness/test.h"

/* Tests which device explains a termination.  The decisions that follow are in
 * tests/golden/devices. */

#define T0 (1700000000 * HF_SECOND)

static struct hf_device_seen fatal(const char *id, hf_time first)
{
	return (struct hf_device_seen){.id = id,
				       .cls = "gpu-reset",
				       .agent = true,
				       .fatal = true,
				       .first = first,
				       .last = first};
}

static struct hf_device_seen weak(const char *id, hf_time last)
{
	return (struct hf_device_seen){
		.id = id, .cls = "fabric", .agent = true, .first = last, .last = last};
}

static struct hf_pod pod_with(const struct hf_device_seen *devices, size_t len)
{
	return (struct hf_pod){.name = "p", .devices = devices, .devices_len = len};
}

static void nothing_explains_where_nothing_is_known(void **state)
{
	struct hf_pod pod = pod_with(NULL, 0);

	(void)state;
	assert_null(hf_device_find_cause(&pod, T0));
	assert_null(hf_device_find_cause(&pod, HF_TIME_NONE));
}

static void a_fault_explains_ends_until_ten_seconds_before_it(void **state)
{
	struct hf_device_seen device = fatal("a", T0);
	struct hf_pod pod = pod_with(&device, 1);

	(void)state;
	assert_ptr_equal(hf_device_find_cause(&pod, T0 - 10 * HF_SECOND), &device);
	assert_null(hf_device_find_cause(&pod, T0 - 11 * HF_SECOND));
	/* A fatal fault does not pass by itself, so it explains a termination a day later. */
	assert_ptr_equal(hf_device_find_cause(&pod, T0 + 86400 * HF_SECOND), &device);
	/* If the time of the termination is unknown, the fault counts as its cause. */
	assert_ptr_equal(hf_device_find_cause(&pod, HF_TIME_NONE), &device);
	device.first = device.last = HF_TIME_NONE;
	assert_ptr_equal(hf_device_find_cause(&pod, T0), &device);
	/* A repaired device explains a termination soon after the fault. */
	device = fatal("a", T0);
	device.over = true;
	assert_ptr_equal(hf_device_find_cause(&pod, T0 + 1800 * HF_SECOND), &device);
	assert_null(hf_device_find_cause(&pod, T0 + 1801 * HF_SECOND));
}

static void what_is_degraded_explains_only_by_a_rule_and_only_lately(void **state)
{
	static const char *const classes[] = {"reboot", "fabric"};
	const struct hf_rule rule = {
		.has_device = true, .device_classes = classes, .device_classes_len = 2};
	const struct hf_rule other = {
		.has_device = true, .device_classes = classes, .device_classes_len = 1};
	struct hf_device_seen device = weak("a", T0);
	struct hf_pod pod = pod_with(&device, 1);

	(void)state;
	assert_null(hf_device_find_cause(&pod, T0));
	assert_ptr_equal(hf_device_match(&rule, &pod, T0), &device);
	assert_null(hf_device_match(&other, &pod, T0));
	assert_ptr_equal(hf_device_match(&rule, &pod, T0 + 1800 * HF_SECOND), &device);
	assert_null(hf_device_match(&rule, &pod, T0 + 1801 * HF_SECOND));
}

static void of_several_the_choice_does_not_depend_on_their_order(void **state)
{
	struct hf_device_seen kubelet = {.id = "0",
					 .cls = HF_DEVICE_UNHEALTHY,
					 .fatal = true,
					 .first = HF_TIME_NONE,
					 .last = HF_TIME_NONE};
	struct hf_device_seen devices[] = {weak("a", T0), fatal("c", T0), kubelet, fatal("b", T0)};
	struct hf_device_seen turned[] = {devices[3], devices[2], devices[1], devices[0]};
	struct hf_pod pod = pod_with(devices, 4), other = pod_with(turned, 4);

	(void)state;
	assert_string_equal(hf_device_find_cause(&pod, T0)->id, "b");
	assert_string_equal(hf_device_find_cause(&other, T0)->id, "b");
	pod.devices_len = 1;
	assert_null(hf_device_find_cause(&pod, T0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_explains_where_nothing_is_known),
		cmocka_unit_test(a_fault_explains_ends_until_ten_seconds_before_it),
		cmocka_unit_test(what_is_degraded_explains_only_by_a_rule_and_only_lately),
		cmocka_unit_test(of_several_the_choice_does_not_depend_on_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
