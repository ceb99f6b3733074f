/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/samples.h"
#include "harness/tree.h"
#include "probes/nvml.h"
#include "probes/sysfs.h"

#include "base/mem.h"
#include "base/str.h"
#include "health/evidence.h"

#include <sys/stat.h>

/* Tests with files in a temporary tree, on the virtual clock. */

#define SLOT "/devices/pci0000:00/0000:00:01.0"
#define GPU SLOT "/0000:1a:00.0"

struct bench {
	char root[TREE_ROOT_MAX];
	struct hf_loop *loop;
	struct hf_intake *intake;
	struct hf_probe *probe;
	struct hf_health_input input;
	struct hf_sysfs_gpus gpus;
	struct hf_sysfs_ports ports;
};

static void on_news(HF_UNUSED void *arg, HF_UNUSED bool urgent)
{
}

static void put_bytes(struct bench *b, const char *name, const void *bytes, size_t len)
{
	tree_put_bytes(b->root, name, bytes, len);
}

static void put(struct bench *b, const char *name, const char *text)
{
	tree_put(b->root, name, text);
}

static void link_to(struct bench *b, const char *name, const char *target)
{
	tree_link(b->root, name, target);
}

static void drop(struct bench *b, const char *name)
{
	tree_drop(b->root, name);
}

static void put_gpu(struct bench *b)
{
	put(b, SLOT "/max_link_width", "16\n");
	put(b, SLOT "/max_link_speed", "32.0 GT/s PCIe\n");
	put(b, GPU "/vendor", "0x10de\n");
	put(b, GPU "/class", "0x030200\n");
	put(b, GPU "/current_link_width", "16\n");
	put(b, GPU "/max_link_width", "16\n");
	put(b, GPU "/current_link_speed", "32.0 GT/s PCIe\n");
	put(b, GPU "/max_link_speed", "64.0 GT/s PCIe\n");
	put(b, GPU "/aer_dev_correctable", "RxErr 3\nBadTLP 4\nTOTAL_ERR_COR 7\n");
	put(b, GPU "/aer_dev_nonfatal", "Undefined 0\nTOTAL_ERR_NONFATAL 0\n");
	put(b, GPU "/aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 0\n");
	link_to(b, GPU "/driver", "../../../../bus/pci/drivers/nvidia");
	link_to(b, "/bus/pci/devices/0000:1a:00.0",
		"../../../devices/pci0000:00/0000:00:01.0/0000:1a:00.0");
}

static void put_port(struct bench *b)
{
	tree_put_port(b->root, "mlx5_0", "0000:5e:00.0");
}

static int setup(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));

	tree_init(b->root);
	b->loop = hf_loop_create_virtual(0);
	b->intake = hf_intake_create(
		&(struct hf_intake_options){.loop = b->loop, .news = on_news, .arg = b});
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->probe)
		b->probe->ops->destroy(b->probe);
	hf_intake_destroy(b->intake);
	hf_loop_destroy(b->loop);
	tree_release(b->root);
	free(b);
	return 0;
}

/* ---- texts ------------------------------------------------------------------------------------------------ */

static void numbers_are_whole_or_none(void **state)
{
	uint64_t n = 7;

	assert_true(hf_sysfs_number("12\n", &n));
	assert_int_equal(n, 12);
	assert_true(hf_sysfs_number(" 0x10DE \n", &n));
	assert_int_equal(n, 0x10de);
	assert_true(hf_sysfs_number("18446744073709551615", &n));
	assert_true(n == UINT64_MAX);
	n = 7;
	assert_false(hf_sysfs_number("18446744073709551616", &n));
	assert_false(hf_sysfs_number("", &n));
	assert_false(hf_sysfs_number("-1", &n));
	assert_false(hf_sysfs_number("12 13", &n));
	assert_false(hf_sysfs_number("0x", &n));
	assert_false(hf_sysfs_number("N/A (no PMA)\n", &n));
	assert_int_equal(n, 7);
}

static void speeds_and_widths_that_are_none_are_not_known(void **state)
{
	assert_int_equal(hf_sysfs_speed("2.5 GT/s PCIe\n"), 25);
	assert_int_equal(hf_sysfs_speed("8 GT/s\n"), 80);
	assert_int_equal(hf_sysfs_speed("64.0 GT/s PCIe\n"), 640);
	assert_int_equal(hf_sysfs_speed("Unknown\n"), 0);
	assert_int_equal(hf_sysfs_speed("Unknown speed\n"), 0);
	assert_int_equal(hf_sysfs_speed("8.05 GT/s\n"), 0);
	assert_int_equal(hf_sysfs_speed("8\n"), 0);
	assert_int_equal(hf_sysfs_speed("99999 GT/s\n"), 0);
	assert_int_equal(hf_sysfs_width("16\n"), 16);
	assert_int_equal(hf_sysfs_width("63\n"), 0); /* a device that is gone reports 63 */
	assert_int_equal(hf_sysfs_width("0\n"), 0);
	assert_int_equal(hf_sysfs_width("x16\n"), 0);
}

static void lines_states_and_versions_are_found(void **state)
{
	char version[HF_SYSFS_NAME_MAX];
	uint64_t n = 7;

	assert_true(hf_sysfs_line("RxErr 1\nTOTAL_ERR_COR 12\n", "TOTAL_ERR_COR", &n));
	assert_int_equal(n, 12);
	assert_false(hf_sysfs_line("TOTAL_ERR_CORX 12\n", "TOTAL_ERR_COR", &n));
	assert_false(hf_sysfs_line("TOTAL_ERR_COR 12x\n", "TOTAL_ERR_COR", &n));
	assert_false(hf_sysfs_line("TOTAL_ERR_COR ", "TOTAL_ERR_COR", &n));
	assert_false(hf_sysfs_line("", "A", &n));
	assert_true(hf_sysfs_ras("ue: 3\nce: 14\n", &n));
	assert_int_equal(n, 3);
	assert_false(hf_sysfs_ras("Query failed\n", &n));
	assert_int_equal(hf_sysfs_state("4: ACTIVE\n"), 4);
	assert_int_equal(hf_sysfs_state("ACTIVE"), -1);
	assert_int_equal(hf_sysfs_state("400: ACTIVE"), -1);
	hf_sysfs_driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue\n",
				version);
	assert_string_equal(version, "535.54.03");
	hf_sysfs_driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
				"570.86.15  Release Build\nGCC version:  gcc version 12.2.0\n",
				version);
	assert_string_equal(version, "570.86.15");
	hf_sysfs_driver_version("none\nGCC 12.2.0\n", version);
	assert_string_equal(version, "");
}

static void start(struct bench *b, bool aer);
static void pass(struct bench *b, hf_time span);

/* ---- looking ------------------------------------------------------------------------------------------------ */

static void a_link_can_do_what_device_and_slot_both_can(void **state)
{
	struct bench *b = *state;
	const struct hf_sysfs_gpu *gpu = &b->gpus.items[0];

	put_gpu(b);
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_true(b->gpus.known);
	assert_int_equal(b->gpus.len, 1);
	assert_string_equal(gpu->address, "0000:1a:00.0");
	assert_string_equal(gpu->driver, "nvidia");
	assert_int_equal(gpu->width, 16);
	assert_int_equal(gpu->width_max, 16);
	assert_int_equal(gpu->speed, 320);
	assert_int_equal(gpu->speed_max, 320); /* the slot's, not the device's 640 */
	assert_int_equal(gpu->aer_corrected, 7);
	assert_int_equal(gpu->aer_fatal, 0);
	assert_true(gpu->ras_uncorrectable == HF_SYSFS_NOT_KNOWN);
}

static void the_ports_above_a_device_are_those_of_its_place_in_the_tree(void **state)
{
	struct bench *b = *state;
	const struct hf_health_presence *known;
	char above[HF_HEALTH_ABOVE_MAX];
	size_t len;

	put_gpu(b);
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_string_equal(b->gpus.items[0].above, "0000:00:01.0");
	start(b, false);
	pass(b, HF_SECOND);
	known = hf_intake_devices(b->intake, &len);
	assert_int_equal(len, 1);
	assert_string_equal(known->above, "0000:00:01.0");
	hf_sysfs_list_above("../../../devices/pci0000:e2/0000:e2:00.5/pci10001:e0/10001:e0:01.0/"
			    "10001:e1:00.0",
			    above);
	assert_string_equal(above, "0000:e2:00.5 10001:e0:01.0");
	/* Parts of the path that are no PCI address in the kernel's form are not listed as
	 * ports. */
	hf_sysfs_list_above("0000:9C:01.0/x/9c:01.0/0000:9c:01/0000:9d:00.0", above);
	assert_string_equal(above, "");
	hf_sysfs_list_above("0000:9d:00.0", above);
	assert_string_equal(above, "");
	hf_sysfs_list_above("", above);
	assert_string_equal(above, "");
}

static void of_more_ports_than_fit_those_next_to_the_device_are_known(void **state)
{
	char above[HF_HEALTH_ABOVE_MAX], target[1024] = "", port[HF_HEALTH_DEVICE_MAX];
	size_t len = 0;

	(void)state;
	for (unsigned i = 0; i < 32; i++)
		len += (size_t)snprintf(target + len, sizeof(target) - len, "0000:%02x:00.0/", i);
	snprintf(target + len, sizeof(target) - len, "0000:ff:00.0");
	hf_sysfs_list_above(target, above);
	assert_true(hf_health_find_above(above, "0000:1f:00.0", port) >= 0);
	assert_true(hf_health_find_above(above, "0000:10:00.0", port) >= 0);
	assert_false(hf_health_find_above(above, "0000:00:00.0", port) >= 0);
	assert_false(hf_health_find_above(above, "0000:ff:00.0", port) >= 0);
	assert_false(hf_health_find_above(above, "0000:1f:00", port) >= 0);
	assert_false(hf_health_find_above(above, "", port) >= 0);
}

static void what_is_no_accelerator_of_this_node_is_passed_over(void **state)
{
	struct bench *b = *state;

	put(b, "/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
	put(b, "/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
	put(b, "/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n");
	put(b, "/bus/pci/devices/0000:03:00.0/class", "0x068000\n"); /* a switch */
	put(b, "/bus/pci/devices/0000:04:00.0/vendor", "0x10de\n");
	put(b, "/bus/pci/devices/0000:04:00.0/class", "0x030200\n");
	link_to(b, "/bus/pci/devices/0000:04:00.0/driver", "../vfio-pci");
	put(b, "/bus/pci/devices/0000:05:00.0/vendor", "0x1002\n");
	put(b, "/bus/pci/devices/0000:05:00.0/class", "0x120000\n");
	put(b, "/bus/pci/devices/nonsense/vendor", "0x10de\n");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 1);
	assert_string_equal(b->gpus.items[0].address, "0000:05:00.0");
	assert_int_equal(b->gpus.items[0].vendor, HF_SYSFS_AMD);
	assert_int_equal(b->gpus.items[0].width, 0);
}

/* A device without a driver is of no use to pods, and counts as missing for them, unless
 * driver_override keeps it for another driver. The count of the bus has both. */
static void a_device_without_a_driver_counts_unless_it_is_kept_for_another(void **state)
{
	struct bench *b = *state;

	put_gpu(b);
	drop(b, GPU "/driver");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 1);
	assert_int_equal(b->gpus.foreign, 0);
	put(b, GPU "/driver_override", "(null)\n");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 1);
	put(b, GPU "/driver_override", "nvidia\n");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 1);
	put(b, GPU "/driver_override", "vfio-pci\n");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 0);
	assert_int_equal(b->gpus.foreign, 1);
	/* A device with its driver counts, for any value of driver_override. */
	link_to(b, GPU "/driver", "../../../../bus/pci/drivers/nvidia");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 1);
	assert_int_equal(b->gpus.foreign, 0);
}

/* NVreg_ExcludedGpus: the driver has the device and hides it, also from NVML. */
static void what_a_driver_keeps_back_is_read(void **state)
{
	static const char *const told[] = {"GPU Excluded:\t Yes\n", "GPU Excluded: \t No\n",
					   "Blacklisted:\t Yes\n", "Model: \t GPU Excluded: Yes\n"};
	static const bool kept[] = {true, false, true, false};
	struct bench *b = *state;

	put_gpu(b);
	for (size_t i = 0; i < HF_ARRAY_LEN(told); i++) {
		char text[128];

		snprintf(text, sizeof(text), "Model: \t\t NVIDIA H100\nDevice Minor: \t 0\n%s",
			 told[i]);
		put(b, "/driver/nvidia/gpus/0000:1a:00.0/information", text);
		hf_sysfs_gpus(b->root, b->root, &b->gpus);
		assert_int_equal(b->gpus.items[0].kept_back, kept[i]);
	}
}

/* Virtual functions (SR-IOV) are left out: NVML counts one device, and so does the bus. */
static void virtual_functions_are_told_of_their_device(void **state)
{
	struct bench *b = *state;

	put_gpu(b);
	put(b, SLOT "/0000:1a:00.4/vendor", "0x10de\n");
	put(b, SLOT "/0000:1a:00.4/class", "0x030200\n");
	link_to(b, SLOT "/0000:1a:00.4/driver", "../../../../bus/pci/drivers/nvidia");
	link_to(b, SLOT "/0000:1a:00.4/physfn", "../0000:1a:00.0");
	link_to(b, "/bus/pci/devices/0000:1a:00.4",
		"../../../devices/pci0000:00/0000:00:01.0/0000:1a:00.4");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 1);
	assert_string_equal(b->gpus.items[0].address, "0000:1a:00.0");
	/* Inside a virtual machine, where the physical device is not visible, the virtual function
	 * counts. */
	drop(b, SLOT "/0000:1a:00.4/physfn");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 2);
	put_port(b);
	put(b, "/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
	put(b, "/devices/0000:5e:00.1/vendor", "0x15b3\n");
	link_to(b, "/devices/0000:5e:00.1/physfn", "../0000:5e:00.0");
	link_to(b, "/class/infiniband/mlx5_1/device", "../../../devices/0000:5e:00.1");
	hf_sysfs_ports(b->root, true, &b->ports);
	assert_int_equal(b->ports.len, 1);
	assert_string_equal(b->ports.items[0].id, "mlx5_0/1");
}

static void ras_counts_are_summed_or_not_known(void **state)
{
	struct bench *b = *state;

	put(b, "/bus/pci/devices/0000:05:00.0/vendor", "0x1002\n");
	put(b, "/bus/pci/devices/0000:05:00.0/class", "0x120000\n");
	put(b, "/bus/pci/devices/0000:05:00.0/ras/umc_err_count", "ue: 2\nce: 9\n");
	put(b, "/bus/pci/devices/0000:05:00.0/ras/gfx_err_count", "ue: 1\nce: 0\n");
	put(b, "/bus/pci/devices/0000:05:00.0/ras/features", "feature mask: 0x7ff\n");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.items[0].ras_uncorrectable, 3);
	/* A block that cannot be read makes the sum unknown, not smaller. */
	put(b, "/bus/pci/devices/0000:05:00.0/ras/gfx_err_count", "query failed\n");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_true(b->gpus.items[0].ras_uncorrectable == HF_SYSFS_NOT_KNOWN);
}

static void the_number_of_an_amd_device_is_its_uuid(void **state)
{
	static const char *const none[] = {"", "0000000000000000\n", "N/A\n", "0x12\n",
					   "0123456789abcdef0123456789abcdef0\n"};
	struct bench *b = *state;

	put(b, "/bus/pci/devices/0000:05:00.0/vendor", "0x1002\n");
	put(b, "/bus/pci/devices/0000:05:00.0/class", "0x120000\n");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_string_equal(b->gpus.items[0].unique_id, "");
	for (size_t i = 0; i < HF_ARRAY_LEN(none); i++) {
		put(b, "/bus/pci/devices/0000:05:00.0/unique_id", none[i]);
		hf_sysfs_gpus(b->root, b->root, &b->gpus);
		assert_string_equal(b->gpus.items[0].unique_id, "");
	}
	put(b, "/bus/pci/devices/0000:05:00.0/unique_id", "deff74a0c5f5d080\n");
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_string_equal(b->gpus.items[0].unique_id, "deff74a0c5f5d080");
}

static void a_pipe_in_the_place_of_a_file_does_not_make_it_wait(void **state)
{
	struct bench *b = *state;
	char path[512];

	put_gpu(b);
	drop(b, GPU "/current_link_width");
	snprintf(path, sizeof(path), "%s%s", b->root, GPU "/current_link_width");
	assert_int_equal(mkfifo(path, 0600), 0);
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	assert_int_equal(b->gpus.len, 1);
	assert_int_equal(b->gpus.items[0].width, 0);
}

static void drivers_are_found_by_their_modules(void **state)
{
	struct bench *b = *state;
	struct hf_sysfs_driver driver;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);

	hf_sysfs_driver(b->root, b->root, &driver);
	assert_false(driver.nvidia || driver.amdgpu);
	put(b, "/module/nvidia/version", "570.86.15\n");
	hf_sysfs_driver(b->root, b->root, &driver);
	assert_true(driver.nvidia && !driver.amdgpu);
	assert_string_equal(driver.version, "570.86.15");
	put(b, "/driver/nvidia/version", "NVRM version: Kernel Module  535.54.03  Tue\n");
	hf_sysfs_driver(b->root, b->root, &driver);
	assert_string_equal(driver.version, "535.54.03");
	put_gpu(b);
	put_port(b);
	hf_sysfs_gpus(b->root, b->root, &b->gpus);
	hf_sysfs_ports(b->root, true, &b->ports);
	hf_sysfs_render(&b->gpus, &b->ports, &driver, &sb);
	assert_non_null(strstr(sb.data, "nvidia: loaded, 535.54.03\n"));
	assert_non_null(strstr(sb.data, "  speed: 32.0 of 32.0 GT/s\n"));
	assert_non_null(strstr(sb.data, "port mlx5_0/1\n  address: 0000:5e:00.0\n  state: 4\n"));
}

static void nothing_there_is_not_known_and_no_error(void **state)
{
	struct bench *b = *state;

	hf_sysfs_gpus("/nonexistent", "/nonexistent", &b->gpus);
	hf_sysfs_ports("/nonexistent", true, &b->ports);
	assert_false(b->gpus.known || b->ports.known);
	assert_int_equal(b->gpus.len + b->ports.len, 0);
}

/* ---- the probe ------------------------------------------------------------------------------------------------ */

/* Starts the probe before NVML has answered. */
static void start_first(struct bench *b, bool aer)
{
	b->probe = hf_sysfs_probe_create(
		b->intake,
		&(struct hf_sysfs_options){.sys_root = b->root, .proc_root = b->root, .aer = aer});
	b->probe->ops->start(b->probe);
}

static void start(struct bench *b, bool aer)
{
	const char *why;

	if (hf_intake_state(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, &why) ==
	    HF_INTAKE_UNTOLD)
		hf_intake_off(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, "no library");
	start_first(b, aer);
}

static void pass(struct bench *b, hf_time span)
{
	samples_pass(b->loop, b->intake, span, &b->input);
}

static const struct hf_health_sample *last(const struct bench *b, enum hf_health_detector detector,
					   size_t *ret_count)
{
	return samples_last(&b->input, detector, ret_count);
}

static void a_device_is_measured_and_its_loss_is_seen(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	put_gpu(b);
	put(b, GPU "/current_link_width", "8\n");
	hf_intake_load(b->intake, "0000:1a:00.0", 80);
	start(b, false);
	pass(b, HF_SECOND);
	s = last(b, HF_HEALTH_PCIE, &count);
	assert_int_equal(count, 1);
	assert_string_equal(s->device, "0000:1a:00.0");
	assert_int_equal(s->source, HF_HEALTH_BY_SYSFS);
	assert_true(s->supported);
	assert_int_equal(s->pcie.width, 8);
	assert_int_equal(s->pcie.width_max, 16);
	assert_int_equal(s->pcie.load_percent, 80);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
	s = last(b, HF_HEALTH_BUSLOST, &count);
	assert_true(s && !s->bus.lost);
	/* The directory of the device disappears. */
	drop(b, "/bus/pci/devices/0000:1a:00.0");
	pass(b, HF_MINUTE);
	s = last(b, HF_HEALTH_BUSLOST, &count);
	assert_int_equal(count, 2);
	assert_true(s->bus.lost);
	assert_string_equal(s->device, "0000:1a:00.0");
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 0);
	assert_null(last(b, HF_HEALTH_PCIE, &count));
}

/* An earlier agent knew three devices: one is present, a virtual machine has got one, and one is
 * gone. Only that one is reported as lost. */
static void a_device_that_went_while_no_agent_ran_is_lost(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	put(b, "/bus/pci/devices/0000:3d:00.0/vendor", "0x10de\n");
	put(b, "/bus/pci/devices/0000:3d:00.0/class", "0x030200\n");
	link_to(b, "/bus/pci/devices/0000:3d:00.0/driver", "../vfio-pci");
	hf_intake_remember(b->intake, "0000:3d:00.0", "");
	hf_intake_remember(b->intake, "0000:5e:00.0", "");
	hf_intake_remember(b->intake, "nvidia-nvswitch0", "");
	start(b, false);
	pass(b, HF_SECOND);
	s = last(b, HF_HEALTH_BUSLOST, &count);
	assert_int_equal(count, 1);
	assert_true(s->bus.lost);
	assert_string_equal(s->device, "0000:5e:00.0");
	/* The device is back, and is seen. */
	put_gpu(b);
	put(b, "/bus/pci/devices/0000:5e:00.0/vendor", "0x10de\n");
	put(b, "/bus/pci/devices/0000:5e:00.0/class", "0x030200\n");
	pass(b, 30 * HF_SECOND);
	s = last(b, HF_HEALTH_BUSLOST, &count);
	assert_int_equal(count, 2);
	assert_false(s->bus.lost);
}

static void a_device_that_a_virtual_machine_got_is_not_lost(void **state)
{
	struct bench *b = *state;
	size_t count;

	put_gpu(b);
	start(b, false);
	pass(b, HF_SECOND);
	drop(b, GPU "/driver");
	link_to(b, GPU "/driver", "../../../../bus/pci/drivers/vfio-pci");
	pass(b, HF_MINUTE);
	assert_null(last(b, HF_HEALTH_BUSLOST, &count));
}

static void errors_of_the_bus_are_told_where_the_log_is_not(void **state)
{
	struct bench *b = *state;

	put_gpu(b);
	start(b, true);
	pass(b, HF_SECOND);
	assert_int_equal(b->input.evidence_len,
			 0); /* errors from before the first look do not count */
	put(b, GPU "/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 3\n");
	put(b, GPU "/aer_dev_fatal", "nonsense\n");
	pass(b, HF_MINUTE);
	assert_int_equal(b->input.evidence_len, 1);
	assert_int_equal(b->input.evidence[0].detector, HF_HEALTH_AER);
	assert_int_equal(b->input.evidence[0].severity, HF_HEALTH_NONFATAL);
	assert_string_equal(b->input.evidence[0].line, "AER: 3 non-fatal errors more");
	/* Fallen is cleared, and no news. */
	put(b, GPU "/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 1\n");
	pass(b, HF_MINUTE);
	assert_int_equal(b->input.evidence_len, 0);
}

static void errors_of_the_bus_are_left_to_the_log_otherwise(void **state)
{
	struct bench *b = *state;
	const char *why;

	put_gpu(b);
	start(b, false);
	pass(b, HF_SECOND);
	put(b, GPU "/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 3\n");
	pass(b, HF_MINUTE);
	assert_int_equal(b->input.evidence_len, 0);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_AER, &why),
			 HF_INTAKE_UNTOLD);
}

static void a_driver_is_spoken_of_only_while_its_library_is_silent(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	put_gpu(b);
	start_first(b, false);
	pass(b, HF_SECOND);
	assert_null(last(b, HF_HEALTH_DRIVER, &count));
	hf_intake_heard(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER);
	pass(b, HF_MINUTE);
	assert_null(last(b, HF_HEALTH_DRIVER, &count));
	hf_intake_off(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, "no library");
	pass(b, HF_MINUTE);
	s = last(b, HF_HEALTH_DRIVER, &count);
	assert_true(s && s->driver.not_loaded);
	put(b, "/module/nvidia/version", "570.86.15\n");
	pass(b, HF_MINUTE);
	s = last(b, HF_HEALTH_DRIVER, &count);
	assert_true(s && !s->driver.not_loaded);
	hf_intake_off(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, HF_NVML_ERROR "999");
	pass(b, HF_MINUTE);
	assert_null(last(b, HF_HEALTH_DRIVER, &count));
}

static void put_display(struct bench *b, const char *vendor, const char *driver)
{
	put(b, "/bus/pci/devices/0000:01:03.0/vendor", vendor);
	put(b, "/bus/pci/devices/0000:01:03.0/class", "0x030000\n");
	if (driver[0] != '\0')
		link_to(b, "/bus/pci/devices/0000:01:03.0/driver", driver);
}

/* The chip that draws a server's console has no driver in headless kernels, and no pod misses
 * it. */
static void a_display_that_never_had_its_driver_is_no_device(void **state)
{
	static const char *const vendors[] = {"0x1002\n", "0x10de\n"};
	struct bench *b = *state;
	const char *why;
	size_t count;

	for (size_t i = 0; i < HF_ARRAY_LEN(vendors); i++) {
		put_display(b, vendors[i], "");
		hf_intake_off(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, "no library");
		if (b->probe == NULL)
			start(b, false);
		pass(b, HF_MINUTE);
		assert_null(last(b, HF_HEALTH_DRIVER, &count));
		assert_null(last(b, HF_HEALTH_BUSLOST, &count));
		assert_int_equal(b->input.devices_len, 0);
		assert_int_equal(
			hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_DRIVER, &why),
			HF_INTAKE_OFF);
		assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 0);
		/* The display is on the bus, and not reported as gone. */
		assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_BUS), 1);
	}
}

/* Display and compute cards have the same PCI class: if a card once had its driver, it is missed
 * when it loses the driver. */
static void a_display_that_its_driver_had_is_missed_without_it(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	put(b, "/module/amdgpu/version", "6\n");
	put_display(b, "0x1002\n", "../amdgpu");
	hf_intake_off(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, "no library");
	start(b, false);
	pass(b, HF_SECOND);
	assert_int_equal(b->input.devices_len, 1);
	drop(b, "/module/amdgpu");
	drop(b, "/bus/pci/devices/0000:01:03.0/driver");
	pass(b, HF_MINUTE);
	s = last(b, HF_HEALTH_DRIVER, &count);
	assert_true(s && s->driver.not_loaded);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
	s = last(b, HF_HEALTH_BUSLOST, &count);
	assert_true(s && !s->bus.lost);
}

/* NVML counts one device less than the bus. The driver says that it excludes this device, so the
 * device is not missing. */
static void a_device_that_its_driver_keeps_back_is_nobodys(void **state)
{
	struct bench *b = *state;

	put_gpu(b);
	put_display(b, "0x10de\n", "../nvidia");
	put(b, "/driver/nvidia/gpus/0000:01:03.0/information", "GPU Excluded:\t Yes\n");
	hf_intake_heard(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER);
	hf_intake_count(b->intake, HF_COUNT_NVML, 1);
	start(b, false);
	pass(b, HF_MINUTE);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_BUS), 2);
	assert_int_equal(b->input.devices_len, 1);
	/* If NVML fails, the driver is not asked again, and its earlier answer stays valid. */
	hf_intake_count(b->intake, HF_COUNT_NVML, -1);
	hf_intake_off(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, "no answer");
	drop(b, "/driver/nvidia/gpus");
	pass(b, HF_MINUTE);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
	/* The driver no longer excludes the device. */
	hf_intake_heard(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER);
	hf_intake_count(b->intake, HF_COUNT_NVML, 1);
	pass(b, HF_MINUTE);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 2);
}

/* The bus answers before NVML. The probe waits for NVML's count before it names devices, because a
 * named device stays. */
static void what_a_driver_keeps_back_is_not_named_before_the_library_has_counted(void **state)
{
	struct bench *b = *state;

	put_gpu(b);
	put_display(b, "0x10de\n", "../nvidia");
	put(b, "/driver/nvidia/gpus/0000:01:03.0/information", "GPU Excluded:\t Yes\n");
	start_first(b, false);
	pass(b, 5 * HF_SECOND);
	assert_int_equal(b->input.devices_len, 0);
	hf_intake_heard(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER);
	hf_intake_count(b->intake, HF_COUNT_NVML, 1);
	pass(b, 2 * HF_SECOND);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
	assert_int_equal(b->input.devices_len, 1);
	assert_string_equal(b->input.devices[0].id, "0000:1a:00.0");
}

/* If NVML says nothing, the probe waits for its first answer only, then names the devices. */
static void devices_are_named_though_the_library_says_nothing(void **state)
{
	struct bench *b = *state;

	put_gpu(b);
	start_first(b, false);
	pass(b, 5 * HF_MINUTE + 9 * HF_SECOND);
	assert_int_equal(b->input.devices_len, 0);
	pass(b, 3 * HF_SECOND);
	assert_int_equal(b->input.devices_len, 1);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
}

/* The driver was loaded anew without exclusions: NVML counts all devices, and the driver is not
 * asked again. */
static void what_a_driver_gives_back_counts_with_the_library(void **state)
{
	struct bench *b = *state;

	put_gpu(b);
	put_display(b, "0x10de\n", "../nvidia");
	put(b, "/driver/nvidia/gpus/0000:01:03.0/information", "GPU Excluded:\t Yes\n");
	hf_intake_heard(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER);
	hf_intake_count(b->intake, HF_COUNT_NVML, 1);
	start(b, false);
	pass(b, HF_MINUTE);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
	hf_intake_count(b->intake, HF_COUNT_NVML, 2);
	pass(b, HF_MINUTE);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 2);
}

static void so_is_one_of_which_the_agent_before_knew_that(void **state)
{
	struct bench *b = *state;
	size_t count;

	/* The driver had the first card in this boot, the second one in an earlier boot, by the
	 * journal. */
	put_display(b, "0x10de\n", "");
	put(b, "/bus/pci/devices/0000:02:00.0/vendor", "0x10de\n");
	put(b, "/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
	put(b, "/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n");
	put(b, "/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
	hf_intake_remember(b->intake, "0000:01:03.0", "");
	hf_intake_driven(b->intake, "0000:02:00.0");
	hf_intake_off(b->intake, HF_HEALTH_BY_NVML, HF_HEALTH_DRIVER, "no library");
	start(b, false);
	pass(b, HF_SECOND);
	assert_int_equal(b->input.devices_len, 2);
	assert_non_null(last(b, HF_HEALTH_DRIVER, &count));
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 2);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_BUS), 3);
}

static void a_node_without_devices_is_off_and_not_at_fault(void **state)
{
	struct bench *b = *state;
	const char *why;

	put(b, "/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
	start(b, false);
	pass(b, HF_MINUTE);
	assert_int_equal(b->input.samples_len, 0);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_PCIE, &why),
			 HF_INTAKE_OFF);
	assert_string_equal(why, "no device");
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_IB, &why),
			 HF_INTAKE_OFF);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 0);
	/* Devices that are plugged in later are found. */
	put_gpu(b);
	put_port(b);
	pass(b, HF_MINUTE);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_PCIE, &why),
			 HF_INTAKE_OK);
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_IB, &why),
			 HF_INTAKE_OK);
}

static void amds_counts_are_told(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	size_t count;

	put(b, "/bus/pci/devices/0000:05:00.0/vendor", "0x1002\n");
	put(b, "/bus/pci/devices/0000:05:00.0/class", "0x120000\n");
	put(b, "/bus/pci/devices/0000:05:00.0/ras/umc_err_count", "ue: 2\nce: 9\n");
	put(b, "/bus/pci/devices/0000:05:00.0/unique_id", "deff74a0c5f5d080\n");
	start(b, false);
	pass(b, HF_SECOND);
	/* A reset names its devices by UUID. */
	assert_string_equal(hf_intake_devices(b->intake, &count)->uuid, "deff74a0c5f5d080");
	s = last(b, HF_HEALTH_AMD, &count);
	assert_true(s && s->amd.counted && s->amd.uncorrectable == 2 && !s->amd.timed);
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_PCI), 1);
	/* None of the devices is NVIDIA's, so NVML can count none. */
	assert_int_equal(hf_intake_counted(b->intake, HF_COUNT_NVIDIA), 0);
}

/* Writes a table gpu_metrics 1.6 with all cycles, and the cycles in which the memory was too
 * hot. */
static void put_metrics(struct bench *b, uint32_t cycles, uint32_t hot)
{
	unsigned char table[1664];
	const uint32_t numbers[6] = {cycles, 0, cycles, 0, 0, hot};

	memset(table, 0xff, sizeof(table));
	memcpy(table, "\x80\x06\x01\x06", 4);
	table[12] = 70; /* percent of load */
	table[13] = 0;
	for (size_t i = 0; i < sizeof(numbers); i++)
		table[32 + i] = (unsigned char)(numbers[i / 4] >> (8 * (i % 4)));
	put_bytes(b, "/bus/pci/devices/0000:05:00.0/gpu_metrics", table, sizeof(table));
}

static void amds_throttling_is_told_from_the_second_look_on(void **state)
{
	struct bench *b = *state;
	const struct hf_health_sample *s;
	const char *why;
	size_t count;

	put(b, "/bus/pci/devices/0000:05:00.0/vendor", "0x1002\n");
	put(b, "/bus/pci/devices/0000:05:00.0/class", "0x120000\n");
	put_metrics(b, 1000, 50);
	start(b, false);
	pass(b, HF_SECOND);
	assert_null(last(b, HF_HEALTH_AMD, &count));
	/* The detector can see, and makes its first sample after the second look. */
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_AMD, &why),
			 HF_INTAKE_OK);
	put_metrics(b, 3000, 550);
	pass(b, 30 * HF_SECOND);
	s = last(b, HF_HEALTH_AMD, &count);
	assert_int_equal(count, 1);
	assert_true(s->amd.timed && !s->amd.counted);
	assert_int_equal(s->amd.throttle_percent, 25);
	assert_int_equal(s->amd.load_percent, 70);
	/* A table of another kernel's version is unknown: the detector is off, and no sample
	 * reports an idle device. */
	put(b, "/bus/pci/devices/0000:05:00.0/gpu_metrics", "\x04");
	pass(b, 30 * HF_SECOND);
	assert_null(last(b, HF_HEALTH_AMD, &count));
	assert_int_equal(hf_intake_state(b->intake, HF_HEALTH_BY_SYSFS, HF_HEALTH_AMD, &why),
			 HF_INTAKE_OFF);
	assert_string_equal(why, "sysfs has neither RAS counts nor a known version of gpu_metrics");
}

static void a_poke_looks_now_but_once_a_second(void **state)
{
	struct bench *b = *state;
	size_t count;

	put_gpu(b);
	start(b, false);
	pass(b, 5 * HF_SECOND);
	for (int i = 0; i < 100; i++) {
		b->probe->ops->poke(b->probe);
		hf_loop_run_ready(b->loop);
	}
	memset(&b->input, 0, sizeof(b->input));
	hf_intake_take(b->intake, &b->input);
	(void)last(b, HF_HEALTH_PCIE, &count);
	assert_int_equal(count, 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_whole_or_none),
		cmocka_unit_test(speeds_and_widths_that_are_none_are_not_known),
		cmocka_unit_test(lines_states_and_versions_are_found),
		T(a_link_can_do_what_device_and_slot_both_can),
		T(what_is_no_accelerator_of_this_node_is_passed_over),
		T(the_ports_above_a_device_are_those_of_its_place_in_the_tree),
		T(of_more_ports_than_fit_those_next_to_the_device_are_known),
		T(what_a_driver_keeps_back_is_read),
		T(virtual_functions_are_told_of_their_device),
		T(a_device_that_went_while_no_agent_ran_is_lost),
		T(a_device_without_a_driver_counts_unless_it_is_kept_for_another),
		T(ras_counts_are_summed_or_not_known),
		T(the_number_of_an_amd_device_is_its_uuid),
		T(a_pipe_in_the_place_of_a_file_does_not_make_it_wait),
		T(drivers_are_found_by_their_modules),
		T(nothing_there_is_not_known_and_no_error),
		T(a_device_is_measured_and_its_loss_is_seen),
		T(a_device_that_a_virtual_machine_got_is_not_lost),
		T(errors_of_the_bus_are_told_where_the_log_is_not),
		T(errors_of_the_bus_are_left_to_the_log_otherwise),
		T(a_driver_is_spoken_of_only_while_its_library_is_silent),
		T(a_display_that_never_had_its_driver_is_no_device),
		T(a_display_that_its_driver_had_is_missed_without_it),
		T(a_device_that_its_driver_keeps_back_is_nobodys),
		T(what_a_driver_keeps_back_is_not_named_before_the_library_has_counted),
		T(devices_are_named_though_the_library_says_nothing),
		T(what_a_driver_gives_back_counts_with_the_library),
		T(so_is_one_of_which_the_agent_before_knew_that),
		T(a_node_without_devices_is_off_and_not_at_fault),
		T(amds_counts_are_told),
		T(amds_throttling_is_told_from_the_second_look_on),
		T(a_poke_looks_now_but_once_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
