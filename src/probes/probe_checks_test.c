/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "probes/probe_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hf_probe_checks checks;
static struct hf_sysfs_gpus gpus;
static struct hf_sysfs_ports ports;
static struct hf_nvml_record record;

static int reset_all(void **state)
{
	memset(&checks, 0, sizeof(checks));
	memset(&gpus, 0, sizeof(gpus));
	memset(&ports, 0, sizeof(ports));
	memset(&record, 0, sizeof(record));
	gpus.known = true;
	return 0;
}

static void add_gpu(uint32_t vendor, const char *driver)
{
	struct hf_sysfs_gpu *gpu = &gpus.items[gpus.len];

	snprintf(gpu->address, sizeof(gpu->address), "0000:%02zx:00.0", 0x1a + gpus.len);
	gpu->vendor = vendor;
	snprintf(gpu->driver, sizeof(gpu->driver), "%s", driver);
	gpus.len++;
}

/* Expects a single check, with this verdict, and with these parts in message and missing. */
static void expect(enum hf_probe_verdict verdict, const char *message, const char *missing)
{
	const struct hf_probe_check *check = &checks.items[0];

	assert_int_equal(checks.len, 1);
	assert_string_equal(hf_probe_verdict_name(check->verdict), hf_probe_verdict_name(verdict));
	if (strstr(check->message, message) == NULL || strstr(check->missing, missing) == NULL)
		fail_msg("%s; %s", check->message, check->missing);
	assert_int_equal(check->missing[0] == '\0', verdict == HF_CHECK_OK);
	checks.len = 0;
}

static void a_log_that_cannot_be_read_fails_with_the_reason(void **state)
{
	hf_probe_check_log(&checks, "/dev/kmsg", NULL);
	expect(HF_CHECK_OK, "/dev/kmsg is readable", "");
	hf_probe_check_log(&checks, "/dev/kmsg", "Operation not permitted");
	expect(HF_CHECK_FAIL, "/dev/kmsg: Operation not permitted", "right to read");
}

static void a_device_without_a_driver_fails_and_is_named(void **state)
{
	hf_probe_check_pci(&checks, &gpus);
	expect(HF_CHECK_WARN, "no accelerator", "accelerator");
	add_gpu(HF_SYSFS_NVIDIA, "nvidia");
	add_gpu(HF_SYSFS_AMD, "amdgpu");
	hf_probe_check_pci(&checks, &gpus);
	expect(HF_CHECK_OK, "2 devices: 1 NVIDIA, 1 AMD", "");
	add_gpu(HF_SYSFS_NVIDIA, "");
	hf_probe_check_pci(&checks, &gpus);
	expect(HF_CHECK_FAIL, "1 of 3 devices without a driver, first 0000:1c:00.0", "module");
	gpus.known = false;
	hf_probe_check_pci(&checks, &gpus);
	expect(HF_CHECK_FAIL, "no PCI bus", "--sysfs");
}

static void a_library_is_missing_only_where_its_devices_are(void **state)
{
	record.code = HF_NVML_NO_LIBRARY;
	snprintf(record.why, sizeof(record.why), "libnvidia-ml.so.1: no such file");
	hf_probe_check_nvml(&checks, &record, "", &gpus);
	expect(HF_CHECK_OK, "not needed", "");
	hf_probe_check_nvml(&checks, NULL, "no answer", &gpus);
	expect(HF_CHECK_OK, "not needed", "");
	/* If sysfs cannot be read, the node may have NVIDIA devices, so a missing answer of NVML
	 * fails. */
	hf_probe_check_nvml(&checks, NULL, "no answer", NULL);
	expect(HF_CHECK_FAIL, "no answer", "a driver that answers");
	add_gpu(HF_SYSFS_NVIDIA, "nvidia");
	hf_probe_check_nvml(&checks, &record, "", &gpus);
	expect(HF_CHECK_FAIL, "libnvidia-ml.so.1: no such file", "--nvml");
	record.code = HF_NVML_NOT_LOADED;
	record.why[0] = '\0';
	hf_probe_check_nvml(&checks, &record, "", &gpus);
	expect(HF_CHECK_FAIL, "error 9", "modprobe nvidia");
}

static void nvml_fails_for_a_device_less_or_a_lost_one(void **state)
{
	add_gpu(HF_SYSFS_NVIDIA, "nvidia");
	add_gpu(HF_SYSFS_NVIDIA, "nvidia");
	snprintf(record.driver, sizeof(record.driver), "570.86.15");
	record.count = 2;
	record.devices_len = 2;
	hf_probe_check_nvml(&checks, &record, "", &gpus);
	expect(HF_CHECK_OK, "driver 570.86.15, 2 devices", "");
	record.count = 1;
	hf_probe_check_nvml(&checks, &record, "", &gpus);
	expect(HF_CHECK_FAIL, "counts 1 devices, the PCI bus has 2", "dmesg");
	/* A device that the administrator excluded from the driver is not counted. */
	gpus.items[1].kept_back = true;
	hf_probe_check_nvml(&checks, &record, "", &gpus);
	expect(HF_CHECK_OK, "1 devices", "");
	record.devices[1].code = HF_NVML_LOST;
	hf_probe_check_nvml(&checks, &record, "", &gpus);
	expect(HF_CHECK_FAIL, "1 of 2 devices are lost", "reset");
}

static void a_port_that_is_not_active_warns(void **state)
{
	hf_probe_check_ports(&checks, &ports);
	expect(HF_CHECK_OK, "not needed", "");
	ports.len = 2;
	ports.items[0].state = 4;
	ports.items[1].state = 1;
	snprintf(ports.items[1].id, sizeof(ports.items[1].id), "mlx5_1/1");
	hf_probe_check_ports(&checks, &ports);
	expect(HF_CHECK_WARN, "1 of 2 ports are not active, first mlx5_1/1", "cable");
	ports.items[1].state = 4;
	hf_probe_check_ports(&checks, &ports);
	expect(HF_CHECK_OK, "2 ports are active", "");
}

static void a_kubelet_that_offers_nothing_fails_only_beside_devices(void **state)
{
	struct hf_podresources found = {.pods = 3};

	hf_probe_check_holders(&checks, NULL, "the kubelet does not answer");
	expect(HF_CHECK_FAIL, "does not answer", "--kubelet-socket");
	hf_probe_check_holders(&checks, &found, "");
	expect(HF_CHECK_OK, "hold 0 devices; the kubelet lists 3 pods", "");
	hf_probe_check_allocatable(&checks, &found, "", &gpus);
	expect(HF_CHECK_OK, "offers 0 devices", "");
	add_gpu(HF_SYSFS_AMD, "amdgpu");
	hf_probe_check_allocatable(&checks, &found, "", &gpus);
	expect(HF_CHECK_FAIL, "offers no device, the PCI bus has 1", "device plugin");
	hf_probe_check_allocatable(&checks, NULL, "the kubelet does not answer", &gpus);
	expect(HF_CHECK_FAIL, "does not answer", "--kubelet-socket");
}

static void a_source_that_is_off_warns_with_its_flag(void **state)
{
	hf_probe_check_off(&checks, "nvml", "--nvml");
	expect(HF_CHECK_WARN, "turned off by --nvml=''", "--nvml");
}

static void a_line_has_verdict_name_and_the_missing_thing(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1024);

	hf_probe_check_log(&checks, "/dev/kmsg", NULL);
	/* A reason may contain control characters from another program. */
	hf_probe_check_nvml(&checks, NULL, "bad\x1b[31m text", NULL);
	hf_probe_checks_render(&checks, &sb);
	assert_non_null(strstr(sb.data, "ok    kernel-log   /dev/kmsg is readable\n"));
	assert_non_null(strstr(sb.data, "fail  nvml         bad"));
	assert_non_null(strstr(sb.data, "; missing: "));
	assert_null(strchr(sb.data, '\x1b'));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_log_that_cannot_be_read_fails_with_the_reason, reset_all),
		cmocka_unit_test_setup(a_device_without_a_driver_fails_and_is_named, reset_all),
		cmocka_unit_test_setup(a_library_is_missing_only_where_its_devices_are, reset_all),
		cmocka_unit_test_setup(nvml_fails_for_a_device_less_or_a_lost_one, reset_all),
		cmocka_unit_test_setup(a_port_that_is_not_active_warns, reset_all),
		cmocka_unit_test_setup(a_kubelet_that_offers_nothing_fails_only_beside_devices,
				       reset_all),
		cmocka_unit_test_setup(a_source_that_is_off_warns_with_its_flag, reset_all),
		cmocka_unit_test_setup(a_line_has_verdict_name_and_the_missing_thing, reset_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
