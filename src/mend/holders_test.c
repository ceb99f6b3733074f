/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "mend/mend_internal.h"

#include "harness/test.h"
#include "harness/tree.h"

#include <stdio.h>

#define UID_A "11111111-2222-3333-4444-555555555555"

static char folder[TREE_ROOT_MAX];
static struct hf_mend_options options;
static char root[80], proc[80], sys[80];

static int make_host(void **state)
{
	(void)state;
	tree_init(folder);
	snprintf(root, sizeof(root), "%s/root", folder);
	snprintf(proc, sizeof(proc), "%s/proc", folder);
	snprintf(sys, sizeof(sys), "%s/sys", folder);
	options = (struct hf_mend_options){.root = root, .proc = proc, .sys = sys};
	tree_put(
		proc, "/driver/nvidia/gpus/0000:1a:00.0/information",
		"Model: \t\t NVIDIA H100\nIRQ:   \t\t 33\nGPU UUID: \t GPU-1\nDevice Minor: \t 3\n");
	tree_put(proc, "/driver/nvidia/gpus/0000:1b:00.0/information",
		 "GPU UUID: \t GPU-2\nDevice Minor: \t 12\n");
	tree_put(sys, "/bus/pci/devices/0000:63:00.0/drm/renderD129/dev", "226:129\n");
	tree_put(sys, "/bus/pci/devices/0000:63:00.0/drm/card1/dev", "226:1\n");
	tree_put(sys, "/bus/pci/devices/0000:63:00.0/drm/controlD65/dev", "226:65\n");
	return 0;
}

static int remove_host(void **state)
{
	(void)state;
	tree_release(folder);
	return 0;
}

/* Adds a process of the host; file NULL: it has only /dev/null open. */
static void add_process(int pid, const char *comm, const char *cgroup, const char *file)
{
	char text[160], name[64];

	snprintf(name, sizeof(name), "/%d/comm", pid);
	snprintf(text, sizeof(text), "%s\n", comm);
	tree_put(proc, name, text);
	snprintf(name, sizeof(name), "/%d/cgroup", pid);
	tree_put(proc, name, cgroup);
	snprintf(name, sizeof(name), "/%d/fd/0", pid);
	tree_link(proc, name, "/dev/null");
	if (file == NULL)
		return;
	snprintf(name, sizeof(name), "/%d/fd/17", pid);
	tree_link(proc, name, file);
}

static struct hf_mend_holders find_with(const char *uuid, const char *id, bool nvidia)
{
	struct hf_remediation_device device = {.id = id, .uuid = uuid};
	const struct hf_remediation_spec spec = {.devices = {&device, 1}};
	struct hf_mend_files files;
	static struct hf_mend_holders holders;
	struct hf_error err;

	hf_mend_find_files(&options, &spec, nvidia, &files);
	assert_ok(hf_mend_find_holders(&options, &files, &holders, &err), &err);
	return holders;
}

static void a_device_has_its_own_file(void **state)
{
	struct hf_mend_holders got;

	(void)state;
	add_process(100, "python", "0::/user.slice\n", "/dev/nvidia3");
	add_process(101, "python", "0::/user.slice\n", "/dev/nvidia12");
	add_process(102, "bash", "0::/user.slice\n", NULL);
	add_process(103, "smi", "0::/user.slice\n", "/dev/nvidiactl");
	got = find_with("GPU-1", NULL, true);
	assert_int_equal(got.total, 1);
	assert_int_equal(got.items[0].pid, 100);
	assert_string_equal(got.comms[0], "python");
	assert_null(got.items[0].pod);
	got = find_with("GPU-2", "0000:1b:00.0", true);
	assert_int_equal(got.total, 1);
	assert_int_equal(got.items[0].pid, 101);
	/* The driver does not know the device, so the file of every GPU counts. */
	got = find_with("GPU-9", "0000:1f:00.0", true);
	assert_int_equal(got.total, 2);
}

static void a_process_is_named_with_its_pod(void **state)
{
	struct hf_mend_holders got;

	(void)state;
	add_process(100, "python",
		    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
		    "11111111_2222_3333_4444_555555555555.slice/cri-containerd-9.scope\n",
		    "/dev/nvidia3 (deleted)");
	got = find_with("GPU-1", NULL, true);
	assert_int_equal(got.total, 1);
	assert_string_equal(got.pods[0], UID_A);
	tree_put(root, "/var/log/pods/team_a-worker-0_" UID_A "/pytorch/0.log", "");
	got = find_with("GPU-1", NULL, true);
	assert_string_equal(got.pods[0], "team/a-worker-0");
	assert_ptr_not_equal(got.items[0].pod, NULL);
}

static void the_persistence_daemon_of_the_host_is_left_out(void **state)
{
	(void)state;
	add_process(100, "nvidia-persiste", "0::/system.slice/nvidia-persistenced.service\n",
		    "/dev/nvidia3");
	assert_int_equal(find_with("GPU-1", NULL, true).total, 0);
	/* A pod may choose any name. */
	add_process(101, "nvidia-persiste", "0::/kubepods/pod" UID_A "/c1\n", "/dev/nvidia3");
	assert_int_equal(find_with("GPU-1", NULL, true).total, 1);
}

/* The GPU Operator's pod of the driver runs the daemon, and shows its root folder to the host. */
static void the_persistence_daemon_of_the_driver_pod_is_left_out(void **state)
{
	char driver[128], other[128];

	(void)state;
	snprintf(driver, sizeof(driver), "%s/run/nvidia/driver", root);
	snprintf(other, sizeof(other), "%s/run/other", root);
	tree_put(driver, "/usr/bin/nvidia-smi", "");
	tree_put(other, "/usr/bin/nvidia-smi", "");
	add_process(100, "nvidia-persiste", "0::/kubepods/pod" UID_A "/c1\n", "/dev/nvidia3");
	tree_link(proc, "/100/root", driver);
	assert_int_equal(find_with("GPU-1", NULL, true).total, 0);
	/* Another pod with a process of that name, and another process of the driver's pod. */
	add_process(101, "nvidia-persiste", "0::/kubepods/pod" UID_A "/c2\n", "/dev/nvidia3");
	tree_link(proc, "/101/root", other);
	add_process(102, "nv-hostengine", "0::/kubepods/pod" UID_A "/c1\n", "/dev/nvidia3");
	tree_link(proc, "/102/root", driver);
	assert_int_equal(find_with("GPU-1", NULL, true).total, 2);
}

static void put_command(int pid, const char *words, size_t len)
{
	char name[64];

	snprintf(name, sizeof(name), "/%d/cmdline", pid);
	tree_put_bytes(proc, name, words, len);
}

static void the_agent_of_holdfast_is_no_holder(void **state)
{
	static const char child[] = "/proc/self/exe\0agent\0--nvml=libnvidia-ml.so.1\0--nvml-child";
	static const char other[] = "/proc/self/exe\0run\0--nvml-child";
	struct hf_mend_holders got;

	(void)state;
	/* One that the host runs. */
	add_process(100, "exe", "0::/system.slice/holdfast.service\n", "/dev/nvidia3");
	put_command(100, child, sizeof(child));
	got = find_with("GPU-1", NULL, true);
	assert_int_equal(got.total, 0);
	assert_int_equal(got.watchers_len, 1);
	assert_int_equal(got.watchers[0], 100);
	/* A pod has the agent's command line, but no name of a pod of the DaemonSet. */
	add_process(101, "exe", "0::/kubepods/pod" UID_A "/c1\n", "/dev/nvidia3");
	put_command(101, child, sizeof(child));
	assert_int_equal(find_with("GPU-1", NULL, true).total, 1);
	tree_put(root, "/var/log/pods/team_holdfast-agent_" UID_A "/c/0.log", "");
	assert_int_equal(find_with("GPU-1", NULL, true).total, 1);
	tree_release(root);
	tree_put(root, "/var/log/pods/holdfast-agent_holdfast-agent-x7k2p_" UID_A "/c/0.log", "");
	got = find_with("GPU-1", NULL, true);
	assert_int_equal(got.total, 0);
	assert_int_equal(got.watchers_len, 2);
	/* Other commands, also broken ones. */
	put_command(100, other, sizeof(other));
	put_command(101, "agent", 5);
	assert_int_equal(find_with("GPU-1", NULL, true).total, 2);
	put_command(100, "", 0);
	put_command(101, "\0\0\0", 3);
	assert_int_equal(find_with("GPU-1", NULL, true).total, 2);
}

static void amd_devices_have_render_files_and_kfd(void **state)
{
	struct hf_mend_holders got;

	(void)state;
	add_process(100, "python", "0::/\n", "/dev/dri/renderD129");
	add_process(101, "python", "0::/\n", "/dev/dri/renderD130");
	add_process(102, "rocm", "0::/\n", "/dev/kfd");
	add_process(103, "Xorg", "0::/\n", "/dev/dri/card1");
	got = find_with("5f1a", "0000:63:00.0", false);
	assert_int_equal(got.total, 3);
}

static void more_processes_are_counted_than_named(void **state)
{
	struct hf_mend_holders got;

	(void)state;
	for (int i = 0; i < HF_REMEDIATION_HOLDERS_MAX + 4; i++)
		add_process(200 + i, "a\tname\nwith lines", "0::/\n", "/dev/nvidia3");
	got = find_with("GPU-1", NULL, true);
	assert_int_equal(got.total, HF_REMEDIATION_HOLDERS_MAX + 4);
	assert_int_equal(got.len, HF_REMEDIATION_HOLDERS_MAX);
	assert_string_equal(got.comms[0], "a?name");
}

static void a_folder_without_processes_is_an_error(void **state)
{
	struct hf_mend_files files = {.any_nvidia = true};
	struct hf_mend_options none = {.proc = "/tmp/hf-no-such-folder"};
	struct hf_mend_holders holders;
	struct hf_error err;

	(void)state;
	assert_code(hf_mend_find_holders(&none, &files, &holders, &err), HF_E_IO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_host, remove_host)
	const struct CMUnitTest tests[] = {
		TEST(a_device_has_its_own_file),
		TEST(a_process_is_named_with_its_pod),
		TEST(the_persistence_daemon_of_the_host_is_left_out),
		TEST(the_persistence_daemon_of_the_driver_pod_is_left_out),
		TEST(the_agent_of_holdfast_is_no_holder),
		TEST(amd_devices_have_render_files_and_kfd),
		TEST(more_processes_are_counted_than_named),
		TEST(a_folder_without_processes_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
