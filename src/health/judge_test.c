/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "harness/test.h"

#include <string.h>

static struct health_node n;

static int setup(void **state)
{
	(void)state;
	health_init(&n, 4, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	health_release(&n);
	return 0;
}

static enum hf_health_state state_of(const char *device)
{
	return health_device(&n, device)->state;
}

static void what_is_not_supported_changes_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < HF_HEALTH_DETECTORS; i++) {
		struct hf_health_sample *s = health_sample(&n, (enum hf_health_detector)i, "gpu-0");

		memset(&s->recovery, 0, 24);
		s->driver.timed_out = true;
		s->supported = false;
	}
	for (int i = 0; i < 5; i++)
		health_step(&n, HF_MINUTE);
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
	assert_int_equal(health_device(&n, "")->faults_len, 0);
}

static void a_recovery_action_that_is_none_is_no_news(void **state)
{
	(void)state;
	health_sample(&n, HF_HEALTH_RECOVERY, "gpu-0")->recovery.action = 6;
	health_step(&n, HF_MINUTE);
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
}

static void nvml_asks_for_a_reset_itself(void **state)
{
	(void)state;
	health_sample(&n, HF_HEALTH_BUSLOST, "gpu-0")->bus.reset_required = true;
	health_step(&n, HF_MINUTE);
	assert_non_null(
		health_fault(&n, "gpu-0", HF_HEALTH_RECOVERY, HF_HEALTH_CODE_RESET_REQUIRED));
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_UNHEALTHY);
}

static void bus(bool lost, bool mute)
{
	struct hf_health_sample *s = health_sample(&n, HF_HEALTH_BUSLOST, "gpu-0");

	s->source = HF_HEALTH_BY_NVML;
	s->bus.lost = lost;
	s->bus.mute = mute;
	health_step(&n, 10 * HF_SECOND);
}

/* A measurement without an answer does not take a loss back, and a loss is not an answer that ends a fault. */
static void what_is_mute_takes_no_loss_back_nor_the_other_way(void **state)
{
	(void)state;
	bus(true, false);
	for (int i = 0; i < 5; i++)
		bus(false, true);
	assert_non_null(health_fault(&n, "gpu-0", HF_HEALTH_BUSLOST, HF_HEALTH_CODE_BUS));
	assert_non_null(health_fault(&n, "gpu-0", HF_HEALTH_BUSLOST, HF_HEALTH_CODE_INIT));
	for (int i = 0; i < 3; i++)
		bus(true, false);
	assert_non_null(health_fault(&n, "gpu-0", HF_HEALTH_BUSLOST, HF_HEALTH_CODE_INIT));
	bus(false, false);
	bus(false, false);
	assert_null(health_fault(&n, "gpu-0", HF_HEALTH_BUSLOST, HF_HEALTH_CODE_BUS));
	assert_null(health_fault(&n, "gpu-0", HF_HEALTH_BUSLOST, HF_HEALTH_CODE_INIT));
}

/* Below zero: it does not say. */
static void amd(const char *device, int64_t errors, int32_t percent)
{
	struct hf_health_sample *s = health_sample(&n, HF_HEALTH_AMD, device);

	s->amd.counted = errors >= 0;
	s->amd.uncorrectable = errors >= 0 ? (uint64_t)errors : 0;
	s->amd.timed = percent >= 0;
	s->amd.throttle_percent = percent >= 0 ? (uint32_t)percent : 0;
}

static void a_counter_that_falls_was_reset_and_is_no_error(void **state)
{
	static const uint32_t counts[] = {7, 7, 2, 2, 0};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(counts); i++) {
		health_sample(&n, HF_HEALTH_ECC, "gpu-0")->ecc.uncorrectable = i < 2 ? 7 : 0;
		amd("gpu-1", counts[i], -1);
		health_step(&n, HF_MINUTE);
	}
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
	assert_int_equal(state_of("gpu-1"), HF_HEALTH_HEALTHY);
}

static void what_amd_does_not_say_is_neither_a_rise_nor_rest(void **state)
{
	(void)state;
	/* The counts come and go, while the device is throttled all the time. */
	for (int i = 0; i < 20; i++) {
		amd("gpu-1", i % 2 == 0 ? 7 : -1, 30);
		health_step(&n, 30 * HF_SECOND);
	}
	assert_int_equal(state_of("gpu-1"), HF_HEALTH_SUSPECT);
	/* No measurement shows that the device is no longer throttled. */
	for (int i = 0; i < 30; i++) {
		amd("gpu-1", 7, -1);
		health_step(&n, 30 * HF_SECOND);
	}
	assert_non_null(health_fault(&n, "gpu-1", HF_HEALTH_AMD, HF_HEALTH_CODE_AMD_SLOW));
	assert_int_equal(state_of("gpu-1"), HF_HEALTH_SUSPECT);
	assert_null(health_fault(&n, "gpu-1", HF_HEALTH_AMD, HF_HEALTH_CODE_UNCORRECTABLE));
}

static void throttle(uint64_t reasons, uint32_t load, int times)
{
	for (int i = 0; i < times; i++) {
		struct hf_health_sample *s = health_sample(&n, HF_HEALTH_THROTTLE, "gpu-0");

		s->throttle.reasons = reasons;
		s->throttle.load_percent = load;
		health_step(&n, 10 * HF_SECOND);
	}
}

static void half_of_the_samples_is_not_enough_to_be_throttled(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		throttle(0x8, 100, 1);
		throttle(0, 100, 1);
	}
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
}

static void a_silence_begins_the_window_anew(void **state)
{
	(void)state;
	throttle(0x8, 100, 50);
	n.now += HF_HOUR;
	throttle(0x8, 100, 50);
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
	throttle(0x8, 100, 10);
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_DEGRADED_STATE);
}

static void what_the_device_chose_itself_is_no_throttling(void **state)
{
	(void)state;
	throttle(0x1 | 0x2 | 0x4 | 0x20 | 0x100, 100, 100);
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
}

static void two_devices_have_no_median(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		for (int k = 0; k < 2; k++) {
			struct hf_health_sample *s =
				health_sample(&n, HF_HEALTH_CLOCK, k ? "gpu-0" : "gpu-1");

			s->clock.model = 1;
			s->clock.mhz = k ? 500 : 2000;
			s->clock.load_percent = 100;
		}
		health_step(&n, 10 * HF_SECOND);
	}
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
}

/* Gives so many measurements of all four devices, the first of them at first_mhz. */
static void clocks(int looks, uint64_t model, uint64_t reasons, uint32_t first_mhz)
{
	static const char *const names[] = {"gpu-0", "gpu-1", "gpu-2", "gpu-3"};

	for (int i = 0; i < looks; i++) {
		for (size_t k = 0; k < HF_ARRAY_LEN(names); k++) {
			struct hf_health_sample *s = health_sample(&n, HF_HEALTH_CLOCK, names[k]);

			s->clock.model = model;
			s->clock.reasons = reasons;
			s->clock.mhz = k == 0 ? first_mhz : 2000;
			s->clock.load_percent = 100;
		}
		health_step(&n, 10 * HF_SECOND);
	}
}

static void models_that_are_not_known_are_not_compared(void **state)
{
	(void)state;
	clocks(60, 0, 0, 500);
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
	clocks(60, 1, 0, 500);
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_DEGRADED_STATE);
}

/* A rate as fast as that of devices at their power limit shows nothing about a device that was not found slow: the
 * five minutes go on. */
static void a_moment_at_the_limit_does_not_interrupt_what_is_slow(void **state)
{
	(void)state;
	clocks(15, 1, 0, 500);
	clocks(2, 1, 0x4, 2000);
	clocks(13, 1, 0, 500);
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
	clocks(2, 1, 0, 500);
	assert_non_null(health_fault(&n, "gpu-0", HF_HEALTH_CLOCK, HF_HEALTH_CODE_SLOW));
}

static void one_disagreement_of_counts_takes_the_place_of_another(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		struct hf_health_sample *s = health_sample(&n, HF_HEALTH_COUNT, "");

		s->count.pci = 4;
		s->count.nvml = i < 4 ? 3 : 4;
		s->count.allocatable = 3;
		health_step(&n, 30 * HF_SECOND);
		if (i == 3)
			assert_non_null(
				health_fault(&n, "", HF_HEALTH_COUNT, HF_HEALTH_CODE_PCI_MISSING));
	}
	assert_null(health_fault(&n, "", HF_HEALTH_COUNT, HF_HEALTH_CODE_PCI_MISSING));
	assert_non_null(health_fault(&n, "", HF_HEALTH_COUNT, HF_HEALTH_CODE_KUBELET_FEWER));
}

static void unknown_counts_do_not_disagree(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct hf_health_sample *s = health_sample(&n, HF_HEALTH_COUNT, "");

		s->count.pci = s->count.nvml = -1;
		s->count.allocatable = i;
		s = health_sample(&n, HF_HEALTH_COUNT, "");
		s->count.pci = 4;
		s->count.nvml = s->count.allocatable = -1;
		health_step(&n, 30 * HF_SECOND);
	}
	assert_int_equal(health_device(&n, "")->state, HF_HEALTH_HEALTHY);
}

static void a_deadline_that_is_met_begins_the_count_anew(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		health_sample(&n, HF_HEALTH_DRIVER, "")->driver.timed_out = i % 3 != 2;
		health_step(&n, 30 * HF_SECOND);
	}
	assert_int_equal(health_device(&n, "")->state, HF_HEALTH_HEALTHY);
}

static void links_of_a_generation_that_is_unknown_are_not_judged(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 9; i++) {
		struct hf_health_sample *s = health_sample(&n, HF_HEALTH_REPLAY, "gpu-0");

		s->replay.counter = i * 1000000;
		s->replay.generation = i % 2 ? 7 : 0;
		s->replay.lanes = 16;
		health_step(&n, HF_MINUTE);
	}
	assert_int_equal(state_of("gpu-0"), HF_HEALTH_HEALTHY);
}

static void a_sample_of_the_wrong_kind_of_device_is_none(void **state)
{
	(void)state;
	health_sample(&n, HF_HEALTH_IB, "gpu-0")->ib.missing = true;
	health_sample(&n, HF_HEALTH_ECC, "")->ecc.failed = true;
	health_step(&n, HF_MINUTE);
	assert_int_equal(health_device(&n, "gpu-0")->faults_len, 0);
	assert_int_equal(health_device(&n, "")->faults_len, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_not_supported_changes_nothing),
		TEST(a_recovery_action_that_is_none_is_no_news),
		TEST(nvml_asks_for_a_reset_itself),
		TEST(what_is_mute_takes_no_loss_back_nor_the_other_way),
		TEST(a_counter_that_falls_was_reset_and_is_no_error),
		TEST(what_amd_does_not_say_is_neither_a_rise_nor_rest),
		TEST(half_of_the_samples_is_not_enough_to_be_throttled),
		TEST(a_silence_begins_the_window_anew),
		TEST(what_the_device_chose_itself_is_no_throttling),
		TEST(two_devices_have_no_median),
		TEST(models_that_are_not_known_are_not_compared),
		TEST(a_moment_at_the_limit_does_not_interrupt_what_is_slow),
		TEST(one_disagreement_of_counts_takes_the_place_of_another),
		TEST(unknown_counts_do_not_disagree),
		TEST(a_deadline_that_is_met_begins_the_count_anew),
		TEST(links_of_a_generation_that_is_unknown_are_not_judged),
		TEST(a_sample_of_the_wrong_kind_of_device_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
