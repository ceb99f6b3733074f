/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/*
 * Converts the pod's description (pod.json) and run files between JSON and the structs of
 * shim_internal.h. The kubelet writes these files and the shim reads them.
 */

#define FORMAT_VERSION 1

/* --- writing --- */

static void set_strings(struct hf_json *object, const char *key, const char *const *strings)
{
	struct hf_json *array = hf_json_ensure_array(object, key);

	for (size_t i = 0; strings && strings[i]; i++)
		hf_json_append(array, hf_json_string(strings[i]));
}

struct hf_json *hf_shim_pod_to_json(const struct hf_shim_pod *pod)
{
	struct hf_json *root = hf_json_object();
	struct hf_json *cgroups = hf_json_ensure_object(root, "cgroups");
	struct hf_json *tmpfs = hf_json_ensure_array(root, "tmpfs");

	hf_json_set_i64(root, "version", FORMAT_VERSION);
	hf_json_set_str(root, "namespace", pod->ns);
	hf_json_set_str(root, "name", pod->name);
	hf_json_set_str(root, "uid", pod->uid);
	hf_json_set_str(root, "hostname", pod->hostname);
	hf_json_set_bool(root, "isolate", pod->isolate);
	hf_json_set_bool(root, "pidNamespace", pod->pid_ns);
	hf_json_set_bool(root, "hostNetwork", pod->host_network);
	for (size_t i = 0; i < pod->n_gpus; i++) {
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "container", pod->gpus[i].container);
		hf_json_set_str(item, "resource", pod->gpus[i].resource);
		hf_json_set_str(item, "id", pod->gpus[i].id);
		hf_json_append(hf_json_ensure_array(root, "gpus"), item);
	}
	hf_json_set_bool(root, "hostIPC", pod->host_ipc);
	hf_json_set_bool(root, "endsWithKubelet", pod->ends_with_kubelet);
	hf_json_set_str(root, "ip", pod->ip);
	hf_json_set_str(root, "gateway", pod->gateway);
	hf_json_set_i64(root, "prefix", pod->prefix);
	hf_json_set_i64(cgroups, "version", pod->cgroups.version);
	hf_json_set_str(cgroups, "memory", pod->cgroups.memory);
	hf_json_set_str(cgroups, "cpu", pod->cgroups.cpu);
	for (size_t i = 0; i < pod->n_tmpfs; i++) {
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "path", pod->tmpfs[i].path);
		hf_json_set_i64(item, "bytesMax", pod->tmpfs[i].bytes_max);
		hf_json_append(tmpfs, item);
	}
	hf_json_set_i64(root, "logBytesMax", pod->log_bytes_max);
	hf_json_set_i64(root, "logFilesMax", pod->log_files_max);
	return root;
}

struct hf_json *hf_run_to_json(const struct hf_run *run)
{
	struct hf_json *root = hf_json_object();
	struct hf_json *groups = hf_json_ensure_array(root, "groups");
	struct hf_json *mounts = hf_json_ensure_array(root, "mounts");

	hf_json_set_i64(root, "version", FORMAT_VERSION);
	set_strings(root, "argv", run->argv);
	set_strings(root, "env", run->env);
	hf_json_set_str(root, "cwd", run->cwd);
	hf_json_set_i64(root, "uid", run->uid);
	hf_json_set_i64(root, "gid", run->gid);
	for (size_t i = 0; i < run->n_groups; i++)
		hf_json_append(groups, hf_json_int(run->groups[i]));
	for (size_t i = 0; i < run->n_mounts; i++) {
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "source", run->mounts[i].source);
		hf_json_set_str(item, "target", run->mounts[i].target);
		hf_json_set_bool(item, "readOnly", run->mounts[i].read_only);
		hf_json_set_bool(item, "file", run->mounts[i].is_file);
		hf_json_append(mounts, item);
	}
	hf_json_set_bool(root, "readOnlyRoot", run->read_only_root);
	hf_json_set_bool(root, "noNewPrivileges", run->no_new_privs);
	hf_json_set_bool(root, "init", run->init);
	hf_json_set_bool(root, "sidecar", run->sidecar);
	hf_json_set_i64(root, "memoryBytes", run->limits.memory_bytes);
	hf_json_set_i64(root, "cpuMilli", run->limits.cpu_milli);
	return root;
}

/* --- reading: the writer is this program, but perhaps another version of it --- */

static const char *read_str(const struct hf_json *object, const char *key, struct hf_arena *arena)
{
	const char *s = hf_json_str(hf_json_get(object, key), NULL);

	return s ? hf_arena_strdup(arena, s) : NULL;
}

static bool read_bool(const struct hf_json *object, const char *key)
{
	return hf_json_true(hf_json_get(object, key), false);
}

static const char *const *read_strings(const struct hf_json *object, const char *key,
				       struct hf_arena *arena)
{
	const struct hf_json *array = hf_json_get(object, key);
	size_t n = hf_json_len(array);
	const char **strings = HF_ARENA_ARRAY(arena, const char *, n + 1);

	for (size_t i = 0; i < n; i++)
		strings[i] = hf_arena_strdup(arena, hf_json_str(hf_json_item(array, i), ""));
	return strings;
}

static int check_version(const struct hf_json *json, struct hf_error *err)
{
	if (hf_json_i64(hf_json_get(json, "version"), 0) != FORMAT_VERSION)
		return hf_error_set(err, HF_E_INVALID,
				    "written by another version of this program");
	return 0;
}

static int check_pod(const struct hf_shim_pod *pod, struct hf_error *err)
{
	bool needs_ip = pod->isolate && !pod->host_network;
	uint32_t ip;

	if (!pod->ns || !pod->name || !pod->uid || !pod->hostname || pod->log_bytes_max <= 0 ||
	    pod->log_files_max < 1 || pod->n_tmpfs > HF_POD_VOLUMES_MAX)
		return hf_error_set(err, HF_E_INVALID, "'%s' is not complete", HF_SHIM_CONFIG_FILE);
	if (!needs_ip)
		return 0;
	if (!pod->ip || pod->prefix < 1 || pod->prefix > 32)
		return hf_error_set(err, HF_E_INVALID, "'%s' has no address", HF_SHIM_CONFIG_FILE);
	return hf_net_ip_parse(pod->ip, &ip, err);
}

static int check_gpus(const struct hf_shim_pod *pod, struct hf_error *err)
{
	for (size_t i = 0; i < pod->n_gpus; i++)
		if (!pod->gpus[i].container || !pod->gpus[i].resource || !pod->gpus[i].id)
			return hf_error_set(err, HF_E_INVALID, "'%s' has a GPU without an owner",
					    HF_SHIM_CONFIG_FILE);
	return 0;
}

int hf_shim_pod_from_json(const struct hf_json *json, struct hf_arena *arena,
			  struct hf_shim_pod *ret_pod, struct hf_error *err)
{
	const struct hf_json *cgroups = hf_json_get(json, "cgroups");
	const struct hf_json *tmpfs = hf_json_get(json, "tmpfs");
	const struct hf_json *gpus = hf_json_get(json, "gpus");
	struct hf_shim_tmpfs *items =
		HF_ARENA_ARRAY(arena, struct hf_shim_tmpfs, hf_json_len(tmpfs) + 1);
	struct hf_shim_pod pod = {
		.ns = read_str(json, "namespace", arena),
		.name = read_str(json, "name", arena),
		.uid = read_str(json, "uid", arena),
		.hostname = read_str(json, "hostname", arena),
		.isolate = read_bool(json, "isolate"),
		.pid_ns = read_bool(json, "pidNamespace"),
		.host_network = read_bool(json, "hostNetwork"),
		.host_ipc = read_bool(json, "hostIPC"),
		.ends_with_kubelet = read_bool(json, "endsWithKubelet"),
		.ip = read_str(json, "ip", arena),
		.gateway = read_str(json, "gateway", arena),
		.prefix = (int)hf_json_i64(hf_json_get(json, "prefix"), 0),
		.cgroups.version = (int)hf_json_i64(hf_json_get(cgroups, "version"), 0),
		.tmpfs = items,
		.n_tmpfs = hf_json_len(tmpfs),
		.gpus = HF_ARENA_ARRAY(arena, struct hf_shim_gpu, hf_json_len(gpus) + 1),
		.n_gpus = hf_json_len(gpus),
		.log_bytes_max = hf_json_i64(hf_json_get(json, "logBytesMax"), 0),
		.log_files_max = (int)hf_json_i64(hf_json_get(json, "logFilesMax"), 0),
	};
	int rc = check_version(json, err);

	for (size_t i = 0; i < pod.n_gpus; i++) {
		const struct hf_json *item = hf_json_item(gpus, i);

		pod.gpus[i] = (struct hf_shim_gpu){.container = read_str(item, "container", arena),
						   .resource = read_str(item, "resource", arena),
						   .id = read_str(item, "id", arena)};
	}
	if (!rc)
		rc = check_pod(&pod, err);
	if (!rc)
		rc = check_gpus(&pod, err);
	if (rc)
		return rc;
	(void)snprintf(pod.cgroups.memory, sizeof(pod.cgroups.memory), "%s",
		       hf_json_str(hf_json_get(cgroups, "memory"), ""));
	(void)snprintf(pod.cgroups.cpu, sizeof(pod.cgroups.cpu), "%s",
		       hf_json_str(hf_json_get(cgroups, "cpu"), ""));
	for (size_t i = 0; i < pod.n_tmpfs; i++) {
		const struct hf_json *item = hf_json_item(tmpfs, i);

		items[i].path = hf_str_or(read_str(item, "path", arena), "/");
		items[i].bytes_max = hf_json_i64(hf_json_get(item, "bytesMax"), 0);
	}
	*ret_pod = pod;
	return 0;
}

static int check_run(const struct hf_run *run, struct hf_error *err)
{
	if (!run->argv[0] || !run->argv[0][0])
		return hf_error_set(err, HF_E_INVALID, "no command specified");
	if (run->n_mounts > HF_RUN_MOUNTS_MAX || run->n_groups > HF_RUN_GROUPS_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE, "more than %d mounts or %d groups",
				    HF_RUN_MOUNTS_MAX, HF_RUN_GROUPS_MAX);
	for (size_t i = 0; i < run->n_mounts; i++)
		if (!run->mounts[i].source || !run->mounts[i].target ||
		    run->mounts[i].source[0] != '/' || run->mounts[i].target[0] != '/')
			return hf_error_set(err, HF_E_INVALID, "mount %zu has no absolute path", i);
	return 0;
}

int hf_run_from_json(const struct hf_json *json, struct hf_arena *arena, struct hf_run *ret_run,
		     struct hf_error *err)
{
	const struct hf_json *groups_json = hf_json_get(json, "groups");
	const struct hf_json *mounts_json = hf_json_get(json, "mounts");
	size_t n_groups = hf_json_len(groups_json), n_mounts = hf_json_len(mounts_json);
	int64_t *groups = HF_ARENA_ARRAY(arena, int64_t, n_groups + 1);
	struct hf_run_mount *mounts = HF_ARENA_ARRAY(arena, struct hf_run_mount, n_mounts + 1);
	struct hf_run run = {
		.argv = read_strings(json, "argv", arena),
		.env = read_strings(json, "env", arena),
		.cwd = read_str(json, "cwd", arena),
		.uid = hf_json_i64(hf_json_get(json, "uid"), -1),
		.gid = hf_json_i64(hf_json_get(json, "gid"), -1),
		.groups = groups,
		.n_groups = n_groups,
		.mounts = mounts,
		.n_mounts = n_mounts,
		.read_only_root = read_bool(json, "readOnlyRoot"),
		.no_new_privs = read_bool(json, "noNewPrivileges"),
		.init = read_bool(json, "init"),
		.sidecar = read_bool(json, "sidecar"),
		.limits.memory_bytes = hf_json_i64(hf_json_get(json, "memoryBytes"), 0),
		.limits.cpu_milli = hf_json_i64(hf_json_get(json, "cpuMilli"), 0),
	};
	int rc;

	for (size_t i = 0; i < n_groups; i++)
		groups[i] = hf_json_i64(hf_json_item(groups_json, i), -1);
	for (size_t i = 0; i < n_mounts; i++) {
		const struct hf_json *item = hf_json_item(mounts_json, i);

		mounts[i] = (struct hf_run_mount){
			.source = read_str(item, "source", arena),
			.target = read_str(item, "target", arena),
			.read_only = read_bool(item, "readOnly"),
			.is_file = read_bool(item, "file"),
		};
	}
	rc = check_version(json, err);
	if (!rc)
		rc = check_run(&run, err);
	if (!rc)
		*ret_run = run;
	return rc;
}

int hf_shim_read_json(int dir_fd, const char *name, struct hf_json **ret_json, struct hf_error *err)
{
	HF_AUTO_FD fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_RUN_BYTES_MAX);
	int rc;

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot open '%s'", name);
	rc = hf_fs_read_fd(fd, name, &text, err);
	if (!rc)
		rc = hf_json_parse(text.data, text.len, NULL, ret_json, err);
	return rc ? hf_error_wrap(err, "'%s'", name) : 0;
}
