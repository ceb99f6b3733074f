/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/kmsg.h"

#include "harness/test.h"

#include <string.h>

static struct hf_health_line_reader reader;
static struct hf_health_evidence e;
static struct hf_health_record record;

static bool parse(const char *text)
{
	hf_health_kmsg_bare(text, strlen(text), &record);
	return hf_health_line_parse(&reader, &record, &e);
}

static int setup(void **state)
{
	(void)state;
	memset(&reader, 0, sizeof(reader));
	return 0;
}

static void an_xid_has_its_device_and_number(void **state)
{
	(void)state;
	assert_true(parse("NVRM: Xid (PCI:0000:1A:00): 79, GPU has fallen off the bus."));
	assert_int_equal(e.detector, HF_HEALTH_XID);
	assert_int_equal(e.code, 79);
	assert_string_equal(e.device, "0000:1a:00.0");
	assert_string_equal(e.line, "NVRM: Xid (PCI:0000:1A:00): 79, GPU has fallen off the bus.");
	assert_true(parse("NVRM: Xid (0000:03:00): 8, Channel 00000014"));
	assert_int_equal(e.code, 8);
	assert_string_equal(e.device, "0000:03:00.0");
	assert_true(parse("NVRM: Xid (PCI:0000:03:00): 63"));
}

static void processes_do_not_hide_the_text(void **state)
{
	(void)state;
	assert_true(
		parse("NVRM: Xid (PCI:0000:1a:00): 13, pid=12, name=ray::WorkerDict, Graphics SM "
		      "Warp Exception on (GPC 2, TPC 1, SM 0): Illegal Address"));
	assert_string_equal(e.unit, "GPC 2 TPC 1");
	assert_true(
		parse("NVRM: Xid (PCI:0000:1a:00): 145, pid='<unknown>', name=<unknown>, RLW_REMAP "
		      "Nonfatal XC0 i0 Link 00 (0x00000004 0x00000000)"));
	assert_int_equal(e.severity, HF_HEALTH_NONFATAL);
	assert_true(parse("NVRM: Xid (PCI:0000:1a:00): 45, pid=7, name=nvc:[driver], Ch 00000010 "
			  "caused by previous Xid 149"));
	assert_int_equal(e.cause, 149);
	/* The name of the process has no end in the line, so nothing behind it is the driver's text. */
	assert_true(parse("NVRM: Xid (PCI:0000:1a:00): 45, pid=7, name=x caused by previous Xid "
			  "149"));
	assert_int_equal(e.cause, 0);
}

static void instances_of_a_divided_device(void **state)
{
	(void)state;
	assert_true(parse("NVRM: Xid (PCI:0000:1a:00 GPU-I:05): 94, Contained: SM (0x1,0x0). RST: "
			  "No, D-RST: No"));
	assert_int_equal(e.gpu_instance, 5);
	assert_int_equal(e.compute_instance, -1);
	assert_string_equal(e.unit, "SM");
	assert_true(parse("NVRM: Xid (PCI:0000:1a:00 GPU-I:05 GPU-CI:01): 13, x"));
	assert_int_equal(e.compute_instance, 1);
	assert_string_equal(e.device, "0000:1a:00.0");
	assert_false(parse("NVRM: Xid (PCI:0000:1a:00 GPU-I:x): 13, x"));
}

static void nvlink_5_says_how_bad_each_line_is(void **state)
{
	(void)state;
	assert_true(parse("NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 "
			  "(0x025525c6 0x00000000 0x00000000)"));
	assert_int_equal(e.severity, HF_HEALTH_FATAL);
	assert_int_equal(e.subcode, 37);
	assert_string_equal(e.unit, "NETIR_LINK_EVT link 9");
	assert_true(parse("NVRM: Xid (PCI:0018:01:00): 144, SAW_MVB/SUB Nonfatal XC1 i2 Link -1 "
			  "(0x00400001 0x1)"));
	assert_int_equal(e.severity, HF_HEALTH_NONFATAL);
	assert_int_equal(e.subcode, 4);
	assert_string_equal(e.unit, "SAW_MVB/SUB link none");
	assert_true(parse("NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 "
			  "[0x0000000a]"));
	assert_int_equal(e.subcode, -1);
	assert_int_equal(e.word, 10);
	assert_true(parse("NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fat"));
	assert_int_equal(e.severity, HF_HEALTH_UNSAID);
}

static void only_the_whole_sentence_takes_a_fault_back(void **state)
{
	static const char *const not_quite[] = {
		"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x2 (a) to 0x0 (",
		"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x2 (a) to 0x0",
		("NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x2 (a) to 0x0 "
		 "(None) or not"),
		("NVRM: Xid (PCI:0000:9b:00): 154, x GPU recovery action changed from 0x2 (a) to 0x0 "
		 "(None)"),
		"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x2 (a) to 0x9 (x)",
	};

	(void)state;
	assert_true(parse("NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 "
			  "(None) to 0x2 (Node Reboot Required)"));
	assert_int_equal(e.detector, HF_HEALTH_RECOVERY);
	assert_int_equal(e.verb, HF_HEALTH_FAULT);
	assert_int_equal(e.code, 2);
	assert_true(
		parse("NVRM: Xid (PCI:0000:9b:00): 154, pid=1, name=x, GPU recovery action changed "
		      "from 0x1 (GPU Reset Required) to 0x0 (None)"));
	assert_int_equal(e.verb, HF_HEALTH_RECOVERED);
	for (size_t i = 0; i < HF_ARRAY_LEN(not_quite); i++) {
		assert_true(parse(not_quite[i]));
		assert_int_equal(e.detector, HF_HEALTH_XID);
		assert_int_equal(e.verb, HF_HEALTH_FAULT);
	}
}

static void registers_of_an_old_link(void **state)
{
	(void)state;
	assert_true(
		parse("NVRM: Xid (PCI:0000:9b:00): 74, pid=1, name=x, NVLink: fatal error detected "
		      "on link 2(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"));
	assert_true(e.has_word);
	assert_int_equal(e.word, 0x10000);
	assert_string_equal(e.unit, "link 2");
	assert_true(parse("NVRM: Xid (PCI:0000:9b:00): 74, NVLink"));
	assert_false(e.has_word);
}

static void a_lost_bus_comes_in_three_ways(void **state)
{
	(void)state;
	assert_true(parse("NVRM: GPU 0000:1A:00.0: GPU has fallen off the bus."));
	assert_int_equal(e.detector, HF_HEALTH_BUSLOST);
	assert_string_equal(e.device, "0000:1a:00.0");
	/* One record. */
	assert_true(
		parse("NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in "
		      "this system has\nNVRM: fallen off the bus and is not responding to "
		      "commands."));
	assert_string_equal(e.device, "0000:b3:00.0");
	/* Three. */
	assert_false(parse("NVRM: The NVIDIA GPU 0000:b4:00.0"));
	assert_false(parse("NVRM: (PCI ID: 10de:26b5) installed in this system has"));
	assert_true(parse("NVRM: fallen off the bus and is not responding to commands."));
	assert_string_equal(e.device, "0000:b4:00.0");
	/* The last line of a notice, without its first line or too late after it, names no device. */
	assert_false(parse("NVRM: fallen off the bus and is not responding to commands."));
	assert_false(parse("NVRM: The NVIDIA GPU 0000:b4:00.0"));
	for (int i = 0; i < 4; i++)
		assert_false(parse("eth0: link up"));
	assert_false(parse("NVRM: fallen off the bus and is not responding to commands."));
}

static void what_the_driver_cannot_bring_up_is_told_in_two_lines(void **state)
{
	static const char *const not_quite[] = {
		"NVRM: GPU 0000:1d:00.0: RmInitAdapter failed! (0x26:0x56:1474",
		"NVRM: GPU 0000:1d:00.0: RmInitAdapter failed! (0x26:0x56:1474) not",
		"NVRM: GPU 0000:1d:00.0: RmInitAdapter succeeded! (0x26:0x56:1474)",
		"NVRM: GPU 0000:1d:00: RmInitAdapter failed! (0x26:0x56:1474)",
		"NVRM: GPU 0000:1d:00.0: rm_init_adapter failed, device minor number ",
		"NVRM: GPU 0000:1d:00.0: rm_init_adapter failed, device minor number 3 or not",
	};

	(void)state;
	assert_true(parse("NVRM: GPU 0000:1D:00.0: RmInitAdapter failed! (0x26:0xffff:1474)"));
	assert_int_equal(e.detector, HF_HEALTH_BUSLOST);
	assert_int_equal(e.code, HF_HEALTH_CODE_INIT);
	assert_string_equal(e.device, "0000:1d:00.0");
	assert_true(parse("NVRM: GPU 0000:1d:00.0: rm_init_adapter failed, device minor number 3"));
	assert_int_equal(e.code, HF_HEALTH_CODE_INIT);
	for (size_t i = 0; i < HF_ARRAY_LEN(not_quite); i++)
		assert_false(parse(not_quite[i]));
}

static void a_switch_says_how_bad_it_is(void **state)
{
	(void)state;
	assert_true(
		parse("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress "
		      "non-posted PRIV error (First)"));
	assert_int_equal(e.detector, HF_HEALTH_SXID);
	assert_int_equal(e.code, 12028);
	assert_int_equal(e.severity, HF_HEALTH_NONFATAL);
	assert_string_equal(e.unit, "link 32");
	assert_string_equal(e.device, "0000:c1:00.0");
	assert_true(parse(
		"nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30 sourcetrack "
		"timeout error"));
	assert_int_equal(e.severity, HF_HEALTH_FATAL);
	assert_true(parse("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 00115, Data {0x1}"));
	assert_int_equal(e.severity, HF_HEALTH_UNSAID);
	assert_false(parse("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): garbled, Fatal"));
	assert_false(parse("nvidia-nvswitchX: SXid (PCI:0000:c3:00.0): 1, Fatal"));
}

static void pcie_and_cards(void **state)
{
	(void)state;
	assert_true(parse("nvidia 0000:1a:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), "
			  "type=Transaction Layer, (Requester ID)"));
	assert_int_equal(e.detector, HF_HEALTH_AER);
	assert_int_equal(e.severity, HF_HEALTH_FATAL);
	assert_string_equal(e.unit, "Transaction Layer");
	assert_true(parse(
		"pcieport 0000:00:01.0: AER: Multiple Uncorrectable (Non-Fatal) error message "
		"received from 0000:1a:00.0"));
	assert_int_equal(e.severity, HF_HEALTH_NONFATAL);
	assert_string_equal(e.device, "0000:1a:00.0");
	assert_true(parse("pcieport 0000:00:01.0: AER: Corrected error received: 0000:1a:00.0"));
	assert_int_equal(e.severity, HF_HEALTH_CORRECTED);
	assert_false(parse("pcieport 0000:00:01.0: AER: enabled with IRQ 24"));
	assert_true(parse(
		"mlx5_core 0000:b1:00.0: poll_health:825:(pid 0): device's health compromised "
		"- reached miss count"));
	assert_int_equal(e.detector, HF_HEALTH_MLX5);
	assert_int_equal(e.code, HF_HEALTH_CODE_MLX5_HEALTH);
	assert_string_equal(e.device, "0000:b1:00.0");
	assert_true(
		parse("mlx5_core 0000:b1:00.0: mlx5_pcie_event:301: Detected insufficient power on "
		      "the PCIe slot (27W)."));
	assert_int_equal(e.code, HF_HEALTH_CODE_MLX5_POWER);
	assert_false(parse("mlx5_core 0000:b1:00.0 ens1np0: Link up"));
}

static void what_becomes_of_an_error_of_the_bus(void **state)
{
	(void)state;
	assert_true(parse("pcieport 0000:9c:01.0: AER: device recovery successful"));
	assert_int_equal(e.detector, HF_HEALTH_AER);
	assert_int_equal(e.verb, HF_HEALTH_RECOVERED);
	assert_int_equal(e.code, 0);
	assert_true(parse("pcieport 0000:9c:01.0: DPC: containment event, status:0x1f01 source:0"));
	assert_int_equal(e.code, HF_HEALTH_CODE_CONTAINED);
	assert_int_equal(e.severity, HF_HEALTH_FATAL);
	assert_true(parse("pcieport 0000:9c:01.0: pciehp: Slot(0-2): Card not present"));
	assert_int_equal(e.code, HF_HEALTH_CODE_LINK_DOWN);
	assert_string_equal(e.device, "0000:9c:01.0");
	assert_false(parse("pcieport 0000:9c:01.0: pciehp: Slot(12): Link Down/Up ignored"));
	assert_false(parse("pcieport 0000:9c:01.0: pciehp: Slot(12): Link Up"));
	assert_false(parse("pcieport 0000:9c:01.0: pciehp: Slot(12"));
	assert_false(parse("pcieport 0000:9c:01.0: DPC: enabled with IRQ 24"));
	assert_false(parse("nvidia 0000:9d:00.0: Unable to change power state from D3hot to D0, "
			   "device is busy"));
	assert_false(parse("vfio-pci 0000:9d:00.0: Unable to change power state from D3cold to D0, "
			   "device inaccessible"));
	/* Without a report before this line, the severity of the error is not known. */
	memset(&reader, 0, sizeof(reader));
	assert_true(parse("nvidia 0000:9d:00.0: AER: can't recover (no error_detected callback)"));
	assert_int_equal(e.severity, HF_HEALTH_UNSAID);
	assert_true(parse("pcieport 0000:9c:01.0: AER: Corrected error received: 0000:9d:00.0"));
	assert_true(parse("pcieport 0000:9c:01.0: AER: Device recovery failed"));
	assert_int_equal(e.severity, HF_HEALTH_CORRECTED);
}

static void what_names_no_gpu_is_the_nodes(void **state)
{
	(void)state;
	assert_true(parse("NVRM: GPU12 nvCheckOkFailedNoLog: Check failed: Reset required "
			  "[NV_ERR_RESET_REQUIRED] (0x00000062) returned from a @ b.c:1"));
	assert_int_equal(e.detector, HF_HEALTH_RECOVERY);
	assert_int_equal(e.code, HF_HEALTH_CODE_RESET_SOMEWHERE);
	assert_string_equal(e.device, "");
	/* The line has another status, or another name for the status. */
	assert_false(parse("NVRM: nvAssertOkFailedNoLog: Assertion failed: Out of memory "
			   "[NV_ERR_NO_MEMORY] (0x00000051) returned from a @ b.c:1"));
	assert_false(parse("NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required "
			   "[NV_ERR_RESET_REQUIRED] (0x00000063) returned from a @ b.c:1"));
	assert_false(parse("NVRM: a b: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] "
			   "(0x00000062)"));
}

static void a_stuck_task_is_of_the_driver_that_a_later_line_names(void **state)
{
	const char *const task = "INFO: task kworker/ blocked:7 blocked for more than 122 seconds.";
	const char *const work = "Workqueue: mlx5_health0000:b1:00.0 mlx5_work [mlx5_core]";

	(void)state;
	assert_false(parse(work));
	assert_false(parse(task));
	assert_true(parse(work));
	assert_int_equal(e.code, HF_HEALTH_CODE_MLX5_LOCKUP);
	assert_string_equal(e.device, "0000:b1:00.0");
	/* Once. */
	assert_false(parse(work));
	assert_false(parse(task));
	assert_false(parse("Workqueue: mlx5e mlx5_work [mlx5_core][7f00+1000]"));
	assert_false(parse("RIP: 0033:mlx5_cmd_exec+0x12/0x34 [mlx5_core]"));
	assert_true(parse("RIP: 0010:mlx5_ib_poll_cq+0x12/0x34 [mlx5_ib]"));
	assert_string_equal(e.device, "");
	assert_false(parse(task));
	for (int i = 0; i < 64; i++)
		assert_false(parse("x"));
	assert_false(parse(work));
}

static void a_stuck_task_is_not_of_the_driver_that_another_record_names(void **state)
{
	static const char *const between[] = {
		"CPU: 3 PID: 8 Comm: kworker/3:1 Tainted: G 5.15.0 #1",
		"CPU: 3 UID: 0 PID: 8 Comm: kworker/3:1 Tainted: G 6.12.0 #1",
		"NMI backtrace for cpu 3",
		"------------[ cut here ]------------",
		"RIP: 0010:nvme_poll+0x12/0x40 [nvme_core]",
		"pc : nvme_poll+0x12/0x40 [nvme_core] (P)",
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(between); i++) {
		assert_false(parse("INFO: task kworker/3:0:7 blocked for more than 122 seconds."));
		assert_false(parse(between[i]));
		assert_false(parse("Workqueue: mlx5e mlx5_work [mlx5_core]"));
	}
	/* The dump of another task gives no evidence; the dump of the stuck task does. */
	assert_false(parse("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a b:7]"));
	assert_false(parse("CPU: 3 PID: 7 Comm: a b Tainted: G 5.15.0 #1"));
	/* Only a worker has a queue. */
	assert_false(parse("Workqueue: mlx5e mlx5_work [mlx5_core]"));
	assert_true(parse("pc : mlx5_ib_poll_cq+0x12/0x34 [mlx5_ib] (P)"));
}

static void what_a_user_wrote_is_dropped(void **state)
{
	static const char forged[] =
		"12,1,2,-;NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.";

	(void)state;
	assert_int_equal(hf_health_kmsg_parse(forged, sizeof(forged) - 1, &record),
			 HF_HEALTH_KMSG_FORGED);
	assert_false(hf_health_line_parse(&reader, &record, &e));
	/* A line that the kernel quotes within another line does not count. */
	assert_false(parse("audit: comm=\"NVRM: Xid (PCI:0000:1a:00): 79, x\""));
}

static void every_cut_of_a_line_is_read_or_refused(void **state)
{
	static const char *const lines[] = {
		("NVRM: Xid (PCI:0018:01:00 GPU-I:01 GPU-CI:02): 149, pid=1, name=a, NETIR_LINK_EVT  Fatal "
		 "XC0 i0 Link 09 (0x025525c6 0x00000000)"),
		"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x1 (R) to 0x0 (None)",
		"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress",
		"pcieport 0000:00:01.0: AER: Multiple Uncorrectable (Fatal) error received: 0000:1a:00.0",
		"NVRM: The NVIDIA GPU 0000:b3:00.0 has fallen off the bus",
		"NVRM: GPU 0000:1d:00.0: RmInitAdapter failed! (0x26:0x56:1474)",
		"nvidia 0000:9d:00.0: Unable to change power state from D3cold to D0, device inaccessible",
		"pciehp 0000:9e:01.0:pcie004: Slot(12): Link Down",
		"mlx5_core 0000:b1:00.0: a:1:(pid 0): Health issue observed, x, severity(3) ERROR:",
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(lines); i++) {
		size_t len = strlen(lines[i]);

		for (size_t n = 0; n <= len; n++) {
			memset(&reader, 0, sizeof(reader));
			hf_health_kmsg_bare(lines[i], n, &record);
			if (hf_health_line_parse(&reader, &record, &e))
				assert_true(n == len || e.verb == HF_HEALTH_FAULT);
			/* The same line with a NUL in its middle is not read. */
			record.text[n / 2] = '\0';
			(void)!hf_health_line_parse(&reader, &record, &e);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_xid_has_its_device_and_number, setup),
		cmocka_unit_test_setup(processes_do_not_hide_the_text, setup),
		cmocka_unit_test_setup(instances_of_a_divided_device, setup),
		cmocka_unit_test_setup(nvlink_5_says_how_bad_each_line_is, setup),
		cmocka_unit_test_setup(only_the_whole_sentence_takes_a_fault_back, setup),
		cmocka_unit_test_setup(registers_of_an_old_link, setup),
		cmocka_unit_test_setup(a_lost_bus_comes_in_three_ways, setup),
		cmocka_unit_test_setup(what_the_driver_cannot_bring_up_is_told_in_two_lines, setup),
		cmocka_unit_test_setup(a_switch_says_how_bad_it_is, setup),
		cmocka_unit_test_setup(pcie_and_cards, setup),
		cmocka_unit_test_setup(what_becomes_of_an_error_of_the_bus, setup),
		cmocka_unit_test_setup(what_names_no_gpu_is_the_nodes, setup),
		cmocka_unit_test_setup(a_stuck_task_is_of_the_driver_that_a_later_line_names,
				       setup),
		cmocka_unit_test_setup(a_stuck_task_is_not_of_the_driver_that_another_record_names,
				       setup),
		cmocka_unit_test_setup(what_a_user_wrote_is_dropped, setup),
		cmocka_unit_test_setup(every_cut_of_a_line_is_read_or_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
