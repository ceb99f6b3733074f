/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/cgroup_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Finds a folder in which this user may make control groups, version 1 or 2, and sets limits of
 * memory and CPU there. Reads /proc/self/cgroup and works on the files of the cgroup file system.
 */

#define MOUNT_POINT "/sys/fs/cgroup"
#define OUR_FOLDER "holdfast"
#define FILE_BYTES_MAX ((size_t)64 << 10)
#define CPU_PERIOD_US 100000  /* the default of upstream's --cpu-cfs-quota-period */
#define CPU_QUOTA_MIN_US 1000 /* the kernel refuses a lower quota */

static int write_in(const char *folder, const char *file, const char *text)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", folder, file);
	HF_AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return errno;
	return 0;
}

static bool has_file(const char *folder, const char *file)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", folder, file);

	return access(path, F_OK) == 0;
}

/* Returns the number in the line "KEY NUMBER" of a file; -1: the file has no such line. */
static int64_t read_key(const char *folder, const char *file, const char *key)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", folder, file);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(FILE_BYTES_MAX);
	char *rest, *line;

	if (hf_fs_read(path, &sb, NULL) != 0)
		return -1;
	rest = sb.data;
	while ((line = strsep(&rest, "\n"))) {
		char *value = line;
		const char *name = strsep(&value, " ");
		int64_t n;

		if (value && hf_streq(name, key) &&
		    hf_str_to_i64(value, 0, INT64_MAX, &n, NULL) == 0)
			return n;
	}
	return -1;
}

/* --- search for a folder --- */

/* Tests a folder: makes a group in it, enters the group and leaves it again. Only if this works
 * can limits in the folder bind a container. */
static bool can_enter(const char *folder, const char *back)
{
	HF_AUTOFREE char *group = hf_xasprintf("%s/probe.%d", folder, (int)getpid());
	bool entered;

	if (mkdir(group, 0755) < 0 && errno != EEXIST)
		return false;
	entered = write_in(group, "cgroup.procs", "0") == 0;
	if (entered)
		entered = write_in(back, "cgroup.procs", "0") == 0;
	(void)rmdir(group);
	return entered;
}

/* Tries to use a folder below `parent` for groups of version 2. For limits of memory and CPU,
 * `parent` must enable both controllers for the folder, and the folder must enable them for its
 * groups. */
static bool try_v2(const char *parent, const char *own, struct hf_cgroup_base *base)
{
	HF_AUTOFREE char *folder = hf_xasprintf("%s/%s", parent, OUR_FOLDER);
	bool made, memory, cpu;

	if (strlen(folder) >= HF_CGROUP_PATH_MAX)
		return false;
	made = mkdir(folder, 0755) == 0;
	if (!made && errno != EEXIST)
		return false;
	if (!has_file(folder, "memory.max"))
		(void)write_in(parent, "cgroup.subtree_control", "+memory");
	if (!has_file(folder, "cpu.max"))
		(void)write_in(parent, "cgroup.subtree_control", "+cpu");
	memory = has_file(folder, "memory.max") &&
		 write_in(folder, "cgroup.subtree_control", "+memory") == 0;
	cpu = has_file(folder, "cpu.max") &&
	      write_in(folder, "cgroup.subtree_control", "+cpu") == 0;
	if ((memory || cpu) && can_enter(folder, own)) {
		base->version = 2;
		(void)snprintf(base->memory, sizeof(base->memory), "%s", memory ? folder : "");
		(void)snprintf(base->cpu, sizeof(base->cpu), "%s", cpu ? folder : "");
		return true;
	}
	if (made)
		(void)rmdir(folder);
	return false;
}

/* Uses the nearest usable folder, starting at the process's own group and going up. So the limits
 * that hold for the process also hold for the containers. */
static bool find_v2(const char *mount, const char *path, struct hf_cgroup_base *base)
{
	HF_AUTOFREE char *own = hf_xasprintf("%s%s", mount, path);
	HF_AUTOFREE char *at = hf_xstrdup(own);
	size_t least = strlen(mount);

	for (;;) {
		size_t len = strlen(at);

		while (len > least && at[len - 1] == '/')
			at[--len] = '\0';
		if (try_v2(at, own, base))
			return true;
		if (len <= least)
			return false;
		*strrchr(at, '/') = '\0';
	}
}

/* Finds the folder of a controller of version 1, below the process's own group. */
static void find_v1(const char *mount, const char *path, const char *file, char *ret_folder)
{
	HF_AUTOFREE char *own = hf_xasprintf("%s%s", mount, hf_streq(path, "/") ? "" : path);
	HF_AUTOFREE char *folder = hf_xasprintf("%s/%s", own, OUR_FOLDER);
	bool made;

	if (strlen(folder) >= HF_CGROUP_PATH_MAX)
		return;
	made = mkdir(folder, 0755) == 0;
	if (!made && errno != EEXIST)
		return;
	if (has_file(folder, file) && can_enter(folder, own))
		(void)snprintf(ret_folder, HF_CGROUP_PATH_MAX, "%s", folder);
	else if (made)
		(void)rmdir(folder);
}

static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == '\0'))
			return true;
	}
	return false;
}

/* Reads a line of /proc/self/cgroup: "ID:CONTROLLERS:PATH", or "0::PATH" for version 2. */
static void look_at_line(const char *root, char *line, struct hf_cgroup_base *base)
{
	char *rest = line;
	const char *id = strsep(&rest, ":");
	const char *controllers = rest ? strsep(&rest, ":") : NULL;

	if (!rest || rest[0] != '/')
		return;
	if (hf_streq(id, "0") && hf_streq(controllers, "")) {
		HF_AUTOFREE char *unified = hf_xasprintf("%s/unified", root);

		if (base->version)
			return;
		(void)find_v2(has_file(root, "cgroup.controllers") ? root : unified, rest, base);
		return;
	}
	if (base->version == 2)
		return;
	if (list_has(controllers, "memory")) {
		HF_AUTOFREE char *mount = hf_xasprintf("%s/memory", root);

		find_v1(mount, rest, "memory.limit_in_bytes", base->memory);
	}
	if (list_has(controllers, "cpu")) {
		HF_AUTOFREE char *mount = hf_xasprintf("%s/cpu", root);

		find_v1(mount, rest, "cpu.cfs_quota_us", base->cpu);
	}
	if (base->memory[0] || base->cpu[0])
		base->version = 1;
}

void hf_cgroup_find(const char *root, const char *own, struct hf_cgroup_base *ret_base,
		    struct hf_error *ret_why)
{
	HF_AUTOFREE char *copy = hf_xstrdup(own);
	struct hf_cgroup_base base = {0};
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		look_at_line(root, line, &base);
	*ret_base = base;
	hf_error_clear(ret_why);
	if (!base.version)
		(void)hf_error_set(ret_why, HF_E_FORBIDDEN,
				   "no control group can be made below '%s' "
				   "by this user",
				   root);
}

void hf_cgroup_probe(struct hf_cgroup_base *ret_base, struct hf_error *ret_why)
{
	HF_AUTO_STRBUF own = HF_STRBUF_INIT(FILE_BYTES_MAX);

	if (hf_fs_read("/proc/self/cgroup", &own, ret_why) != 0) {
		*ret_base = (struct hf_cgroup_base){0};
		return;
	}
	hf_cgroup_find(MOUNT_POINT, own.data, ret_base, ret_why);
}

/* --- a group --- */

static int set_limit(const char *folder, const char *file, const char *text, struct hf_error *err)
{
	int errnum = write_in(folder, file, text);

	return errnum ? hf_error_errno(err, errnum, "cannot set '%s/%s'", folder, file) : 0;
}

static int limit_memory(const struct hf_cgroup *group, int64_t bytes, struct hf_error *err)
{
	bool v2 = group->version == 2;
	char text[32];
	int rc;

	(void)snprintf(text, sizeof(text), "%" PRId64, bytes);
	rc = set_limit(group->memory, v2 ? "memory.max" : "memory.limit_in_bytes", text, err);
	if (rc)
		return rc;
	/* As upstream does: allow no swap, and let the kernel kill the whole container instead of
	 * one process. Older kernels do not have these files, so errors are ignored. */
	if (v2) {
		(void)write_in(group->memory, "memory.swap.max", "0");
		(void)write_in(group->memory, "memory.oom.group", "1");
	} else {
		(void)write_in(group->memory, "memory.memsw.limit_in_bytes", text);
	}
	return 0;
}

static int limit_cpu(const struct hf_cgroup *group, int64_t milli, struct hf_error *err)
{
	int64_t most = INT64_MAX / CPU_PERIOD_US;
	int64_t quota = (milli > most ? most : milli) * CPU_PERIOD_US / 1000;
	char text[64];
	int rc;

	if (quota < CPU_QUOTA_MIN_US)
		quota = CPU_QUOTA_MIN_US;
	if (group->version == 2) {
		(void)snprintf(text, sizeof(text), "%" PRId64 " %d", quota, CPU_PERIOD_US);
		return set_limit(group->cpu, "cpu.max", text, err);
	}
	(void)snprintf(text, sizeof(text), "%d", CPU_PERIOD_US);
	rc = set_limit(group->cpu, "cpu.cfs_period_us", text, err);
	if (rc)
		return rc;
	(void)snprintf(text, sizeof(text), "%" PRId64, quota);
	return set_limit(group->cpu, "cpu.cfs_quota_us", text, err);
}

static int make_folder(const char *base, const char *name, char *ret_path, size_t size,
		       struct hf_error *err)
{
	int n = snprintf(ret_path, size, "%s/%s", base, name);

	if (n < 0 || (size_t)n >= size || strchr(name, '/') || name[0] == '.') {
		ret_path[0] = '\0';
		return hf_error_set(err, HF_E_INVALID, "'%s' cannot name a control group", name);
	}
	if (mkdir(ret_path, 0755) < 0 && errno != EEXIST) {
		int rc = hf_error_errno(err, errno, "cannot make control group '%s'", ret_path);

		ret_path[0] = '\0';
		return rc;
	}
	return 0;
}

int hf_cgroup_make(const struct hf_cgroup_base *base, const char *name,
		   const struct hf_cgroup_limits *limits, struct hf_cgroup *ret_group,
		   struct hf_error *err)
{
	struct hf_cgroup group = {.version = base->version};
	bool memory = limits->memory_bytes > 0 && base->memory[0];
	bool cpu = limits->cpu_milli > 0 && base->cpu[0];
	int rc = 0;

	if (memory)
		rc = make_folder(base->memory, name, group.memory, sizeof(group.memory), err);
	if (!rc && memory)
		rc = limit_memory(&group, limits->memory_bytes, err);
	if (!rc && cpu)
		rc = make_folder(base->cpu, name, group.cpu, sizeof(group.cpu), err);
	if (!rc && cpu)
		rc = limit_cpu(&group, limits->cpu_milli, err);
	if (rc) {
		hf_cgroup_remove(&group);
		return rc;
	}
	*ret_group = group;
	return 0;
}

int hf_cgroup_join(const struct hf_cgroup *group, struct hf_error *err)
{
	const char *folders[] = {group->memory, group->cpu};

	for (size_t i = 0; i < HF_ARRAY_LEN(folders); i++) {
		int rc = folders[i][0] ? set_limit(folders[i], "cgroup.procs", "0", err) : 0;

		if (rc)
			return rc;
	}
	return 0;
}

bool hf_cgroup_oom_killed(const struct hf_cgroup *group)
{
	if (!group->memory[0])
		return false;
	return read_key(group->memory, group->version == 2 ? "memory.events" : "memory.oom_control",
			"oom_kill") > 0;
}

void hf_cgroup_remove(const struct hf_cgroup *group)
{
	if (group->memory[0])
		(void)rmdir(group->memory);
	if (group->cpu[0] && !hf_streq(group->cpu, group->memory))
		(void)rmdir(group->cpu);
}

void hf_cgroup_sweep(const struct hf_cgroup_base *base, const char *prefix)
{
	const char *folders[] = {base->memory, base->cpu};

	for (size_t i = 0; i < HF_ARRAY_LEN(folders); i++) {
		DIR *dir = folders[i][0] ? opendir(folders[i]) : NULL;
		struct dirent *entry;

		while (dir && (entry = readdir(dir)))
			if (entry->d_type == DT_DIR && hf_str_has_prefix(entry->d_name, prefix))
				(void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
		if (dir)
			(void)closedir(dir);
	}
}
