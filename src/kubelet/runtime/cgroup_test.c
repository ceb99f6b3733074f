/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/cgroup_internal.h"

#include "harness/test.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Tests on a folder that looks like the cgroup file system: which folder the search chooses, and
 * which files get which text. shim_test.c tests limits that the kernel enforces.
 */

static int set_up(void **state)
{
	char *dir = hf_xstrdup("/tmp/hf-cgroup-XXXXXX");

	assert_non_null(mkdtemp(dir));
	*state = dir;
	return 0;
}

static int tear_down(void **state)
{
	struct hf_error err;

	assert_ok(hf_fs_remove_tree(*state, &err), &err);
	free(*state);
	return 0;
}

/* Makes a file and its parent folders. */
static void touch(const char *root, const char *path, const char *text)
{
	HF_AUTOFREE char *whole = hf_xasprintf("%s/%s", root, path);
	HF_AUTOFREE char *folder = hf_xstrdup(whole);
	struct hf_error err;

	*strrchr(folder, '/') = '\0';
	assert_ok(hf_fs_mkdirs(folder, 0755, &err), &err);
	assert_ok(hf_fs_write_atomic(whole, text, strlen(text), 0644, &err), &err);
}

static void assert_text(const char *root, const char *path, const char *expected)
{
	HF_AUTOFREE char *whole = hf_xasprintf("%s/%s", root, path);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_error err;

	assert_ok(hf_fs_read(whole, &text, &err), &err);
	/* A file of the kernel takes each write as a whole. The test's plain file keeps the end of
	 * a longer text, which is cut off here. */
	text.data[strlen(expected)] = '\0';
	assert_string_equal(text.data, expected);
}

/* Makes the folder of the group with which the search tests a folder, and the file by which a
 * process enters the group. */
static void make_enterable(const char *root, const char *folder)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/probe.%d/cgroup.procs", folder, (int)getpid());

	touch(root, path, "");
}

static void version_2_is_had_from_the_nearest_folder_that_passes_controllers_on(void **state)
{
	const char *root = *state;
	HF_AUTOFREE char *expected = hf_xasprintf("%s/user.slice/me/holdfast", root);
	struct hf_cgroup_base base;
	struct hf_error why;

	touch(root, "cgroup.controllers", "cpu memory");
	touch(root, "user.slice/me/cgroup.subtree_control", "");
	touch(root, "user.slice/me/app/cgroup.procs", "");
	touch(root, "user.slice/me/holdfast/memory.max", "max");
	touch(root, "user.slice/me/holdfast/cpu.max", "max 100000");
	touch(root, "user.slice/me/holdfast/cgroup.subtree_control", "");
	make_enterable(root, "user.slice/me/holdfast");
	hf_cgroup_find(root, "0::/user.slice/me/app\n", &base, &why);
	assert_int_equal(base.version, 2);
	assert_string_equal(base.memory, expected);
	assert_string_equal(base.cpu, expected);
	/* After the test of the folder, the process is in its own group again, and the failed try
	 * has left no folder. */
	assert_text(root, "user.slice/me/app/cgroup.procs", "0");
	{
		HF_AUTOFREE char *tried = hf_xasprintf("%s/user.slice/me/app/holdfast", root);

		assert_int_equal(access(tried, F_OK), -1);
	}
}

static void version_1_has_a_folder_for_each_controller(void **state)
{
	const char *root = *state;
	HF_AUTOFREE char *expected = hf_xasprintf("%s/memory/own/holdfast", root);
	struct hf_cgroup_base base;
	struct hf_error why;

	touch(root, "memory/own/cgroup.procs", "");
	touch(root, "memory/own/holdfast/memory.limit_in_bytes", "");
	make_enterable(root, "memory/own/holdfast");
	hf_cgroup_find(root, "4:memory:/own\n1:cpu,cpuacct:/\n0::/\n", &base, &why);
	assert_int_equal(base.version, 1);
	assert_string_equal(base.memory, expected);
	assert_string_equal(base.cpu, "");
}

static void where_nothing_can_be_made_it_is_said(void **state)
{
	struct hf_cgroup_base base;
	struct hf_error why;

	hf_cgroup_find("/nonexistent", "0::/a/b\n4:memory:/x\nnonsense\n:\n", &base, &why);
	assert_int_equal(base.version, 0);
	assert_true(hf_str_has_prefix(why.text, "no control group can be made below"));
	hf_cgroup_find(*state, "", &base, &why);
	assert_int_equal(base.version, 0);
}

static void limits_are_written_as_each_version_has_them(void **state)
{
	const char *root = *state;
	struct hf_cgroup_base base = {.version = 2};
	struct hf_cgroup_limits limits = {.memory_bytes = 64 << 20, .cpu_milli = 1500};
	struct hf_cgroup group;
	struct hf_error err;

	(void)snprintf(base.memory, sizeof(base.memory), "%s/v2", root);
	(void)snprintf(base.cpu, sizeof(base.cpu), "%s/v2", root);
	touch(root, "v2/u.c.0/memory.max", "");
	touch(root, "v2/u.c.0/memory.oom.group", "");
	touch(root, "v2/u.c.0/memory.swap.max", "");
	touch(root, "v2/u.c.0/cpu.max", "");
	touch(root, "v2/u.c.0/cgroup.procs", "");
	assert_ok(hf_cgroup_make(&base, "u.c.0", &limits, &group, &err), &err);
	assert_text(root, "v2/u.c.0/memory.max", "67108864");
	assert_text(root, "v2/u.c.0/memory.oom.group", "1");
	assert_text(root, "v2/u.c.0/memory.swap.max", "0");
	assert_text(root, "v2/u.c.0/cpu.max", "150000 100000");
	assert_ok(hf_cgroup_join(&group, &err), &err);
	assert_text(root, "v2/u.c.0/cgroup.procs", "0");

	touch(root, "v2/u.c.0/memory.events", "low 0\noom 1\noom_kill 0\n");
	assert_false(hf_cgroup_oom_killed(&group));
	touch(root, "v2/u.c.0/memory.events", "low 0\noom 1\noom_kill 2\n");
	assert_true(hf_cgroup_oom_killed(&group));

	base.version = 1;
	(void)snprintf(base.memory, sizeof(base.memory), "%s/m1", root);
	(void)snprintf(base.cpu, sizeof(base.cpu), "%s/c1", root);
	touch(root, "m1/u.c.1/memory.limit_in_bytes", "");
	touch(root, "c1/u.c.1/cpu.cfs_period_us", "");
	touch(root, "c1/u.c.1/cpu.cfs_quota_us", "");
	limits.cpu_milli = 1; /* below the kernel's minimum */
	assert_ok(hf_cgroup_make(&base, "u.c.1", &limits, &group, &err), &err);
	assert_text(root, "m1/u.c.1/memory.limit_in_bytes", "67108864");
	assert_text(root, "c1/u.c.1/cpu.cfs_period_us", "100000");
	assert_text(root, "c1/u.c.1/cpu.cfs_quota_us", "1000");
	touch(root, "m1/u.c.1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
	assert_true(hf_cgroup_oom_killed(&group));
}

static void without_limits_or_a_place_there_is_no_group(void **state)
{
	struct hf_cgroup_base base = {0};
	struct hf_cgroup_limits limits = {.memory_bytes = 1};
	struct hf_cgroup group;
	struct hf_error err;

	assert_ok(hf_cgroup_make(&base, "u.c.0", &limits, &group, &err), &err);
	assert_string_equal(group.memory, "");
	assert_ok(hf_cgroup_join(&group, &err), &err);
	assert_false(hf_cgroup_oom_killed(&group));
	hf_cgroup_remove(&group);
	base.version = 2;
	(void)snprintf(base.memory, sizeof(base.memory), "%s", (const char *)*state);
	limits.memory_bytes = 0;
	assert_ok(hf_cgroup_make(&base, "u.c.0", &limits, &group, &err), &err);
	assert_string_equal(group.memory, "");
	/* Setting a limit fails with an error if the file cannot be written. A name with '/' does
	 * not leave the folder. */
	limits.memory_bytes = 1;
	assert_code(hf_cgroup_make(&base, "u.c.0", &limits, &group, &err), HF_E_IO);
	assert_code(hf_cgroup_make(&base, "../x", &limits, &group, &err), HF_E_INVALID);
	assert_code(hf_cgroup_make(&base, ".", &limits, &group, &err), HF_E_INVALID);
}

static void empty_groups_of_a_pod_are_swept(void **state)
{
	const char *root = *state;
	struct hf_cgroup_base base = {.version = 2};
	static const char *const folders[] = {"uid-1.a.0", "uid-1.b.3", "uid-2.a.0"};

	(void)snprintf(base.memory, sizeof(base.memory), "%s", root);
	for (size_t i = 0; i < HF_ARRAY_LEN(folders); i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%s/%s", root, folders[i]);

		assert_int_equal(mkdir(path, 0755), 0);
	}
	hf_cgroup_sweep(&base, "uid-1.");
	for (size_t i = 0; i < HF_ARRAY_LEN(folders); i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%s/%s", root, folders[i]);

		assert_int_equal(access(path, F_OK), i < 2 ? -1 : 0);
	}
}

static void addresses_are_written_and_read(void **state)
{
	static const char *const bad[] = {"", "10.0.0", "10.0.0.256", "::1", "10.0.0.1 "};
	char text[HF_NET_IP_MAX];
	struct hf_error err;
	uint32_t ip = 0;

	hf_net_ip_format(HF_NET_FIRST, text);
	assert_string_equal(text, "10.244.0.16");
	hf_net_ip_format(HF_NET_LAST, text);
	assert_ok(hf_net_ip_parse(text, &ip, &err), &err);
	assert_int_equal(ip, HF_NET_LAST);
	hf_net_ip_format(HF_NET_HOST_FIRST, text);
	assert_string_equal(text, "127.0.1.2");
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_code(hf_net_ip_parse(bad[i], &ip, &err), HF_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(version_2_is_had_from_the_nearest_folder_that_passes_controllers_on),
		T(version_1_has_a_folder_for_each_controller),
		T(where_nothing_can_be_made_it_is_said),
		T(limits_are_written_as_each_version_has_them),
		T(without_limits_or_a_place_there_is_no_group),
		T(empty_groups_of_a_pod_are_swept),
		T(addresses_are_written_and_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
