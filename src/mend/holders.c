/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "mend/mend_internal.h"

#include "agent/report_socket.h"
#include "base/ascii.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Finds the processes that have a device open, by the links in /proc/PID/fd.  It reads only names and opens no
 * device, so a driver that hangs cannot stop the search.
 */

#define FILE_BYTES_MAX ((size_t)16 << 10)
#define PROCESSES_MAX (1 << 20)
#define FDS_MAX (1 << 16)
/* The first 15 letters of nvidia-persistenced; the kernel keeps only 15 letters of a process's name. */
#define PERSISTENCE_DAEMON "nvidia-persiste"

/* ---- the files of the devices ----------------------------------------------------------------- */

static void add_file(struct hf_mend_files *files, const char *name, const char *number)
{
	if (files->len < HF_MEND_FILES_MAX)
		snprintf(files->paths[files->len++], sizeof(files->paths[0]), "/dev/%s%s", name,
			 number);
}

/* Copies the value of a line "Key: \t value" in a file of the driver. */
static bool find_value(const char *text, const char *key, char *ret_value, size_t size)
{
	size_t key_len = strlen(key);

	for (const char *line = text; *line != '\0'; line += *line == '\n') {
		size_t len = strcspn(line, "\n");

		if (len > key_len && strncmp(line, key, key_len) == 0 && line[key_len] == ':') {
			const char *value = line + key_len + 1;
			size_t blanks = strspn(value, " \t");
			size_t value_len = len - key_len - 1;

			if (blanks > value_len)
				return false;
			snprintf(ret_value, size, "%.*s", (int)(value_len - blanks),
				 value + blanks);
			return true;
		}
		line += len;
	}
	return false;
}

static bool is_number(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= 4 && strspn(text, "0123456789") == len;
}

/* Adds the device file of the GPU in the folder `gpu` of /proc/driver/nvidia/gpus, if the spec
 * names that GPU. */
static void match_nvidia(const char *dir, const char *gpu, const struct hf_remediation_spec *spec,
			 bool *found, struct hf_mend_files *files)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(FILE_BYTES_MAX);
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s/information", dir, gpu);
	char uuid[96] = "", minor[16] = "";

	if (hf_fs_read_regular(path, &text, NULL) != 0)
		return;
	(void)find_value(text.data, "GPU UUID", uuid, sizeof(uuid));
	if (!find_value(text.data, "Device Minor", minor, sizeof(minor)) || !is_number(minor))
		return;
	for (size_t i = 0; i < spec->devices.len; i++) {
		const struct hf_remediation_device *device = &spec->devices.items[i];

		if (hf_streq(device->uuid, uuid) ||
		    (device->id != NULL && hf_str_case_eq(device->id, gpu))) {
			found[i] = true;
			add_file(files, "nvidia", minor);
		}
	}
}

static void find_nvidia(const struct hf_mend_options *options,
			const struct hf_remediation_spec *spec, struct hf_mend_files *files)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/driver/nvidia/gpus", options->proc);
	bool found[HF_REMEDIATION_DEVICES_MAX] = {false};
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			match_nvidia(path, entry->d_name, spec, found, files);
	if (dir != NULL)
		(void)closedir(dir);
	for (size_t i = 0; i < spec->devices.len; i++)
		files->any_nvidia |= !found[i];
}

static void find_amd(const struct hf_mend_options *options, const struct hf_remediation_spec *spec,
		     struct hf_mend_files *files)
{
	/* /dev/kfd is one file for all AMD devices, so any process with it open counts. */
	add_file(files, "kfd", "");
	for (size_t i = 0; i < spec->devices.len; i++) {
		HF_AUTOFREE char *path =
			hf_xasprintf("%s/bus/pci/devices/%s/drm", hf_str_or(options->sys, ""),
				     hf_str_or(spec->devices.items[i].id, "none"));
		DIR *dir = options->sys != NULL ? opendir(path) : NULL;
		struct dirent *entry;

		while (dir != NULL && (entry = readdir(dir)) != NULL) {
			size_t word = strcspn(entry->d_name, "0123456789");

			if (word > 0 && is_number(entry->d_name + word) &&
			    (hf_str_has_prefix(entry->d_name, "card") ||
			     hf_str_has_prefix(entry->d_name, "renderD")))
				add_file(files, "dri/", entry->d_name);
		}
		if (dir != NULL)
			(void)closedir(dir);
	}
}

void hf_mend_find_files(const struct hf_mend_options *options,
			const struct hf_remediation_spec *spec, bool nvidia,
			struct hf_mend_files *ret_files)
{
	*ret_files = (struct hf_mend_files){.len = 0};
	if (nvidia)
		find_nvidia(options, spec, ret_files);
	else
		find_amd(options, spec, ret_files);
}

/* ---- processes -------------------------------------------------------------------------------- */

static bool is_device(const struct hf_mend_files *files, char *path)
{
	static const char deleted[] = " (deleted)";

	if (hf_str_has_suffix(path, deleted))
		path[strlen(path) - (sizeof(deleted) - 1)] = '\0';
	if (files->any_nvidia && hf_str_has_prefix(path, "/dev/nvidia") &&
	    is_number(path + strlen("/dev/nvidia")))
		return true;
	for (size_t i = 0; i < files->len; i++)
		if (hf_streq(files->paths[i], path))
			return true;
	return false;
}

static bool has_open(const char *proc, const char *pid, const struct hf_mend_files *files)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s/fd", proc, pid);
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	/* The process has ended. */
	if (dir == NULL)
		return false;
	for (int i = 0; i < FDS_MAX && !found && (entry = readdir(dir)) != NULL; i++) {
		char target[128];
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (len <= 0 || (size_t)len == sizeof(target) - 1)
			continue;
		target[len] = '\0';
		found = is_device(files, target);
	}
	(void)closedir(dir);
	return found;
}

/* Finds the pod of a UID: the kubelet names the log folder of a pod NAMESPACE_NAME_UID. */
static void name_pod(const char *root, const char *uid, char *ret_pod, size_t size)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/var/log/pods", hf_str_or(root, ""));
	DIR *dir = root != NULL ? opendir(path) : NULL;
	struct dirent *entry;

	snprintf(ret_pod, size, "%s", uid);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		const char *name = strchr(entry->d_name, '_');
		const char *last = strrchr(entry->d_name, '_');

		if (name == NULL || last == name || !hf_streq(last + 1, uid))
			continue;
		snprintf(ret_pod, size, "%.*s/%.*s", (int)(name - entry->d_name), entry->d_name,
			 (int)(last - name - 1), name + 1);
		break;
	}
	if (dir != NULL)
		(void)closedir(dir);
}

static void read_text(const char *proc, const char *pid, const char *file, struct hf_strbuf *sb)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s/%s", proc, pid, file);

	hf_strbuf_clear(sb);
	if (hf_fs_read_regular(path, sb, NULL) != 0)
		hf_strbuf_clear(sb);
}

/* Whether the process is the child of an agent that asks NVML: src/app/agent.c starts "/proc/self/exe agent
 * --nvml=LIB --nvml-child". */
static bool is_watcher_command(const char *proc, const char *pid)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(FILE_BYTES_MAX);
	const char *second, *last;

	read_text(proc, pid, "cmdline", &text);
	if (text.len < 2 || text.data[text.len - 1] != '\0')
		return false;
	second = text.data + strlen(text.data) + 1;
	if (second >= text.data + text.len || !hf_streq(second, "agent"))
		return false;
	last = text.data + text.len - 1;
	while (last > text.data && last[-1] != '\0')
		last--;
	return hf_streq(last, "--nvml-child");
}

/* Whether the process is of the agent of the DaemonSet, or of an agent that the host runs.  A pod can choose its
 * command line, but not the name of its log folder. */
static bool is_watcher(const struct hf_mend_options *options, const char *pid, const char *uid)
{
	char pod[330];
	const char *name;

	if (!is_watcher_command(options->proc, pid))
		return false;
	if (uid == NULL)
		return true;
	name_pod(options->root, uid, pod, sizeof(pod));
	name = strchr(pod, '/');
	return name != NULL && hf_str_has_prefix(name, "/holdfast-agent-");
}

void hf_mend_end_watchers(const struct hf_mend_options *options,
			  const struct hf_mend_holders *holders)
{
	char name[16];

	for (size_t i = 0; i < holders->watchers_len; i++) {
		snprintf(name, sizeof(name), "%d", (int)holders->watchers[i]);
		/* The pid may belong to another process by now. */
		if (!is_watcher_command(options->proc, name) ||
		    kill(holders->watchers[i], SIGKILL) != 0)
			continue;
		for (int tries = 0; tries < 10 && is_watcher_command(options->proc, name); tries++)
			hf_mend_wait(options->loop, 100 * HF_MS);
	}
}

/* Whether the root folder of the process is that of the driver's container.  No other pod can choose this. */
static bool is_in_driver(const struct hf_mend_options *options, const char *pid)
{
	HF_AUTOFREE char *own = hf_xasprintf("%s/%s/root", options->proc, pid);
	HF_AUTOFREE char *driver =
		hf_xasprintf("%s" HF_MEND_DRIVER_ROOT, hf_str_or(options->root, ""));
	struct stat a, b;

	return options->root != NULL && stat(own, &a) == 0 && stat(driver, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Whether the process is NVIDIA's persistence daemon, of the host or of the driver's container.  A pod can choose the
 * name of its process. */
static bool is_persistence_daemon(const struct hf_mend_options *options, const char *pid,
				  const char *comm, bool in_pod)
{
	return hf_str_has_prefix(comm, PERSISTENCE_DAEMON) &&
	       (!in_pod || is_in_driver(options, pid));
}

static void add_holder(const struct hf_mend_options *options, const char *pid,
		       struct hf_mend_holders *holders)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(FILE_BYTES_MAX);
	char uid[HF_REPORT_POD_UID_MAX];
	size_t at = holders->len;
	bool in_pod;

	read_text(options->proc, pid, "cgroup", &text);
	in_pod = hf_report_socket_pod_of_cgroup(text.data, text.len, uid);
	read_text(options->proc, pid, "comm", &text);
	if (is_persistence_daemon(options, pid, text.data, in_pod))
		return;
	if (holders->watchers_len < HF_MEND_WATCHERS_MAX &&
	    is_watcher(options, pid, in_pod ? uid : NULL)) {
		holders->watchers[holders->watchers_len++] = (pid_t)strtol(pid, NULL, 10);
		return;
	}
	holders->total++;
	if (at == HF_REMEDIATION_HOLDERS_MAX)
		return;
	hf_str_print(holders->comms[at], sizeof(holders->comms[at]), text.data,
		     strcspn(text.data, "\n"));
	if (in_pod)
		name_pod(options->root, uid, holders->pods[at], sizeof(holders->pods[at]));
	holders->items[at] =
		(struct hf_remediation_holder){.pid = strtol(pid, NULL, 10),
					       .comm = holders->comms[at],
					       .pod = in_pod ? holders->pods[at] : NULL};
	holders->len++;
}

static bool is_pid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= 7 && strspn(name, "0123456789") == len;
}

int hf_mend_find_holders(const struct hf_mend_options *options, const struct hf_mend_files *files,
			 struct hf_mend_holders *ret_holders, struct hf_error *err)
{
	DIR *dir = opendir(options->proc);
	struct dirent *entry;
	char own[16];

	*ret_holders = (struct hf_mend_holders){.len = 0};
	if (dir == NULL)
		return hf_error_set(err, HF_E_IO,
				    "cannot list '%s' to find processes that use the devices",
				    options->proc);
	snprintf(own, sizeof(own), "%d", (int)getpid());
	for (int i = 0; i < PROCESSES_MAX && (entry = readdir(dir)) != NULL; i++)
		if (is_pid(entry->d_name) && !hf_streq(entry->d_name, own) &&
		    has_open(options->proc, entry->d_name, files))
			add_holder(options, entry->d_name, ret_holders);
	(void)closedir(dir);
	return 0;
}
