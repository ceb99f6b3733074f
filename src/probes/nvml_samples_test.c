/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/real_loop.h"
#include "probes/nvml.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

/* How a record of the driver's library becomes samples for the brain. */

struct bench {
	struct hf_test_loop t;
	struct hf_intake *intake;
	struct hf_nvml_record record;
};

static void on_news(void *arg, bool urgent)
{
	(void)arg;
	(void)urgent;
}

static int setup(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));

	hf_test_loop_init(&b->t);
	b->intake = hf_intake_create(
		&(struct hf_intake_options){.loop = b->t.loop, .news = on_news, .arg = b});
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	hf_intake_destroy(b->intake);
	hf_test_loop_release(&b->t);
	free(b);
	return 0;
}

static bool is_well(const struct hf_health_sample *s)
{
	return !s->driver.timed_out && !s->driver.mismatch && !s->driver.not_loaded;
}

static struct hf_health_sample only_sample(struct bench *b)
{
	struct hf_health_input input = {0};
	struct hf_health_sample s;

	hf_intake_take(b->intake, &input);
	assert_int_equal(input.samples_len, 1);
	s = input.samples[0];
	hf_intake_taken(b->intake);
	assert_int_equal(s.detector, HF_HEALTH_DRIVER);
	return s;
}

static size_t told_of(struct bench *b, int code, int32_t nvidia,
		      struct hf_health_sample *ret_sample)
{
	struct hf_health_input input = {0};
	size_t len;

	memset(ret_sample, 0, sizeof(*ret_sample));
	memset(&b->record, 0, sizeof(b->record));
	b->record.kind = HF_NVML_ROUND;
	b->record.code = code;
	b->record.count = code == HF_NVML_OK ? 0 : -1;
	hf_intake_count(b->intake, HF_COUNT_NVIDIA, nvidia);
	hf_nvml_report(b->intake, &b->record);
	hf_intake_take(b->intake, &input);
	len = input.samples_len;
	if (len > 0)
		*ret_sample = input.samples[0];
	hf_intake_taken(b->intake);
	return len;
}

static void a_missing_driver_is_a_fault_only_where_there_is_something_to_drive(void **state)
{
	struct bench *b = *state;
	struct hf_health_sample s = {0};

	assert_int_equal(told_of(b, HF_NVML_NOT_LOADED, 2, &s), 1);
	assert_true(s.detector == HF_HEALTH_DRIVER && s.driver.not_loaded && !s.driver.mismatch);
	assert_int_equal(told_of(b, HF_NVML_NOT_LOADED, 0, &s), 0);
	assert_int_equal(told_of(b, HF_NVML_NOT_LOADED, -1, &s), 0);
	assert_int_equal(told_of(b, HF_NVML_MISMATCH, 2, &s), 1);
	assert_true(s.driver.mismatch && !s.driver.not_loaded);
	assert_int_equal(told_of(b, HF_NVML_OK, 2, &s), 1);
	assert_true(is_well(&s));
}

/* On a node with another maker's devices, an image for all nodes may have NVIDIA's library, with or
 * without a driver: the library's answers do not count. */
static void beside_another_makers_devices_the_library_is_no_witness(void **state)
{
	static const int codes[] = {HF_NVML_NOT_LOADED, HF_NVML_MISMATCH, HF_NVML_UNKNOWN,
				    HF_NVML_OK};
	struct bench *b = *state;
	struct hf_health_sample s;
	const char *why;

	hf_intake_count(b->intake, HF_COUNT_PCI, 2);
	for (size_t i = 0; i < HF_ARRAY_LEN(codes); i++) {
		/* The only sample takes back earlier reports of missed deadlines. */
		assert_int_equal(told_of(b, codes[i], 0, &s), 1);
		assert_true(s.driver.aside);
		assert_true(is_well(&s));
		/* NVML's detector of the driver is off, so that sysfs reports the other maker's
		 * driver. */
		assert_int_equal(
			hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why),
			HF_INTAKE_OFF);
		assert_false(hf_str_has_prefix(why, HF_NVML_ERROR));
		assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_NVML), -1);
	}
	/* If the other maker's driver hangs and sysfs too, the devices are still not NVIDIA's. */
	hf_intake_count(b->intake, HF_COUNT_PCI, -1);
	assert_int_equal(told_of(b, HF_NVML_OK, -1, &s), 1);
	assert_true(s.driver.aside);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why),
			 HF_INTAKE_OFF);
	/* All NVIDIA devices are gone, and the node has no devices of other makers: NVML's answers
	 * count. */
	hf_intake_count(b->intake, HF_COUNT_PCI, 0);
	assert_int_equal(told_of(b, HF_NVML_OK, 0, &s), 1);
	assert_false(s.driver.aside);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_NVML), 0);
}

/* A hanging library is a fault of the NVIDIA driver on a node with NVIDIA devices, and while sysfs
 * has not counted the devices yet. */
static void silence_of_nvml_is_no_evidence_against_another_makers_driver(void **state)
{
	struct bench *b = *state;
	struct hf_health_sample s;
	const char *why;

	hf_nvml_report_silence(b->intake);
	assert_true(only_sample(b).driver.timed_out);
	hf_intake_count(b->intake, HF_COUNT_PCI, 2);
	hf_intake_count(b->intake, HF_COUNT_NVIDIA, 0);
	hf_nvml_report_silence(b->intake);
	s = only_sample(b);
	assert_true(s.driver.aside && !s.driver.timed_out);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why),
			 HF_INTAKE_OFF);
	hf_intake_count(b->intake, HF_COUNT_NVIDIA, 2);
	hf_nvml_report_silence(b->intake);
	assert_true(only_sample(b).driver.timed_out);
}

/* Makes a record with this number of devices, in which all facts are known. */
static void record_of(struct bench *b, int devices)
{
	memset(&b->record, 0, sizeof(b->record));
	b->record.kind = HF_NVML_ROUND;
	b->record.count = devices;
	b->record.devices_len = (size_t)devices;
	for (int i = 0; i < devices; i++)
		snprintf(b->record.devices[i].address, sizeof(b->record.devices[i].address),
			 "0000:%xa:00.0", i + 1);
}

static void all_fail(struct hf_nvml_device *d, int code)
{
	for (int i = 0; i < HF_NVML_FACTS; i++)
		d->codes[i] = (uint16_t)code;
}

/* The sample that the record gives for this detector and device; `supported` is false if there is
 * none. */
static struct hf_health_sample tell_one(struct bench *b, enum hf_health_detector detector,
					const char *device)
{
	struct hf_health_input input = {0};
	struct hf_health_sample s = {0};

	hf_nvml_report(b->intake, &b->record);
	hf_intake_take(b->intake, &input);
	for (size_t i = 0; i < input.samples_len; i++)
		if (input.samples[i].detector == detector &&
		    hf_streq(input.samples[i].device, device))
			s = input.samples[i];
	hf_intake_taken(b->intake);
	return s;
}

/* A device that cannot be opened, for example with "Unable to determine the device handle for GPU
 * …: Unknown Error", counts as mute if other devices answer. */
static void a_device_of_which_nothing_can_be_told_is_mute_where_others_are_not(void **state)
{
	static const int handles[] = {HF_NVML_UNKNOWN, HF_NVML_NO_INTERRUPT, HF_NVML_NO_POWER};
	struct bench *b = *state;
	struct hf_nvml_device *d = &b->record.devices[1];

	for (size_t i = 0; i < HF_ARRAY_LEN(handles); i++) {
		record_of(b, 3);
		all_fail(d, HF_NVML_UNSUPPORTED);
		d->code = handles[i];
		assert_true(tell_one(b, HF_HEALTH_BUSLOST, "0000:2a:00.0").bus.mute);
		assert_false(tell_one(b, HF_HEALTH_BUSLOST, "0000:1a:00.0").bus.mute);
		assert_false(tell_one(b, HF_HEALTH_DRIVER, "").driver.timed_out);
	}
	/* The device can be opened, and every question that the device itself must answer fails. */
	record_of(b, 3);
	all_fail(d, HF_NVML_UNKNOWN);
	d->codes[HF_NVML_MINOR] = d->codes[HF_NVML_PCIE_WIDTH_MAX] = HF_NVML_OK;
	d->codes[HF_NVML_RETIRE_PENDING] = HF_NVML_UNSUPPORTED;
	assert_true(tell_one(b, HF_HEALTH_BUSLOST, "0000:2a:00.0").bus.mute);
	d->codes[HF_NVML_POWER_MW] = HF_NVML_OK;
	assert_false(tell_one(b, HF_HEALTH_BUSLOST, "0000:2a:00.0").bus.mute);
}

/* Codes that mean something else than a mute device: not initialized, no permission, not supported,
 * driver not loaded yet, kept away by a control group. */
static void what_the_library_does_not_tell_otherwise_is_not_mute(void **state)
{
	static const int codes[] = {1,  HF_NVML_UNSUPPORTED, HF_NVML_NO_PERMISSION,
				    6,  HF_NVML_NOT_LOADED,  17,
				    19, HF_NVML_NO_GPU};
	struct bench *b = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(codes); i++) {
		record_of(b, 2);
		all_fail(&b->record.devices[1], HF_NVML_UNSUPPORTED);
		b->record.devices[1].code = codes[i];
		assert_false(tell_one(b, HF_HEALTH_BUSLOST, "0000:2a:00.0").supported);
		record_of(b, 2);
		all_fail(&b->record.devices[1], codes[i]);
		assert_false(tell_one(b, HF_HEALTH_BUSLOST, "0000:2a:00.0").bus.mute);
	}
}

static void a_library_that_tells_nothing_of_any_device_is_a_driver_that_does_not_answer(
	void **state)
{
	struct bench *b = *state;
	const char *why;

	record_of(b, 2);
	for (int i = 0; i < 2; i++)
		all_fail(&b->record.devices[i], HF_NVML_UNKNOWN);
	assert_false(tell_one(b, HF_HEALTH_BUSLOST, "0000:1a:00.0").supported);
	assert_true(tell_one(b, HF_HEALTH_DRIVER, "").driver.timed_out);
	(void)hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_BUSLOST, &why);
	assert_string_equal(why, "NVML: error 999");
	/* If one device is lost or forbidden and the other one is mute, the other one's failure is
	 * still a fault of the driver. */
	b->record.devices[0].code = HF_NVML_LOST;
	assert_false(tell_one(b, HF_HEALTH_BUSLOST, "0000:2a:00.0").supported);
	assert_true(tell_one(b, HF_HEALTH_DRIVER, "").driver.timed_out);
	b->record.devices[0].code = HF_NVML_NO_PERMISSION;
	assert_true(tell_one(b, HF_HEALTH_DRIVER, "").driver.timed_out);
	record_of(b, 0);
	assert_false(tell_one(b, HF_HEALTH_DRIVER, "").driver.timed_out);
}

static void what_is_told_of_the_fabric_is_no_answer_of_a_device_and_counts_by_itself(void **state)
{
	struct bench *b = *state;
	struct hf_nvml_device *d = b->record.devices;

	record_of(b, 2);
	for (int i = 0; i < 2; i++)
		d[i].values[HF_NVML_FABRIC_STATE] = 3;
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_asked, 2);
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_waiting, 0);
	/* The registration has completed with an error. */
	d[1].values[HF_NVML_FABRIC_STATUS] = 999;
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_waiting, 1);
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_status, 999);
	/* GPUs that do not count: with an unknown state, lost, or without a fabric state. */
	d[1].values[HF_NVML_FABRIC_STATE] = 200;
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_asked, 1);
	d[1].values[HF_NVML_FABRIC_STATE] = 1;
	d[1].code = HF_NVML_LOST;
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_asked, 1);
	d[0].codes[HF_NVML_FABRIC_STATE] = HF_NVML_NO_FUNCTION;
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_asked, 0);
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_none, 0);
	/* State 0 means that a GPU belongs to no fabric: here the first of two GPUs, then both. */
	record_of(b, 2);
	d[0].values[HF_NVML_FABRIC_STATE] = 0;
	d[1].values[HF_NVML_FABRIC_STATE] = 3;
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_none, 0);
	d[1].values[HF_NVML_FABRIC_STATE] = 0;
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_none, 2);
	assert_int_equal(tell_one(b, HF_HEALTH_DRIVER, "").driver.fabric_asked, 0);
	/* The driver knows the fabric state without asking the device, so a mute device may have
	 * it. */
	record_of(b, 2);
	all_fail(&d[1], HF_NVML_UNKNOWN);
	d[1].codes[HF_NVML_FABRIC_STATE] = d[1].codes[HF_NVML_FABRIC_STATUS] = HF_NVML_OK;
	d[1].values[HF_NVML_FABRIC_STATE] = 3;
	assert_true(tell_one(b, HF_HEALTH_BUSLOST, "0000:2a:00.0").bus.mute);
}

static void other_errors_of_the_library_are_not_known_and_no_fault(void **state)
{
	static const int codes[] = {HF_NVML_NO_LIBRARY, HF_NVML_NO_PERMISSION, HF_NVML_NO_GPU,
				    HF_NVML_UNKNOWN, HF_NVML_TIMEOUT};
	struct bench *b = *state;
	struct hf_health_sample s;
	const char *why;

	for (size_t i = 0; i < HF_ARRAY_LEN(codes); i++) {
		assert_int_equal(told_of(b, codes[i], 2, &s), 0);
		assert_int_equal(
			hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why),
			HF_INTAKE_OFF);
	}
}

static void a_load_that_cannot_be_is_not_known(void **state)
{
	struct bench *b = *state;
	struct hf_health_input input = {0};
	struct hf_nvml_device *d = &b->record.devices[0];

	b->record.kind = HF_NVML_ROUND;
	b->record.devices_len = 1;
	snprintf(d->address, sizeof(d->address), "0000:1a:00.0");
	for (int i = 0; i < HF_NVML_FACTS; i++)
		d->codes[i] = HF_NVML_UNSUPPORTED;
	d->codes[HF_NVML_LOAD_PERCENT] = d->codes[HF_NVML_SM_MHZ] = HF_NVML_OK;
	d->values[HF_NVML_LOAD_PERCENT] = 101;
	hf_nvml_report(b->intake, &b->record);
	hf_intake_take(b->intake, &input);
	for (size_t i = 0; i < input.samples_len; i++)
		assert_int_not_equal(input.samples[i].detector, HF_HEALTH_CLOCK);
	hf_intake_taken(b->intake);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_missing_driver_is_a_fault_only_where_there_is_something_to_drive),
		T(beside_another_makers_devices_the_library_is_no_witness),
		T(silence_of_nvml_is_no_evidence_against_another_makers_driver),
		T(a_device_of_which_nothing_can_be_told_is_mute_where_others_are_not),
		T(what_the_library_does_not_tell_otherwise_is_not_mute),
		T(a_library_that_tells_nothing_of_any_device_is_a_driver_that_does_not_answer),
		T(other_errors_of_the_library_are_not_known_and_no_fault),
		T(what_is_told_of_the_fabric_is_no_answer_of_a_device_and_counts_by_itself),
		T(a_load_that_cannot_be_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
