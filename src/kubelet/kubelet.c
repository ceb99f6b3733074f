/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/gpu_search.h"
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/*
 * Creates and destroys the kubelet: takes the folder's lock, finds the pods of an earlier kubelet on
 * disk, and follows the pods of the store. pod.c does the work for each pod.
 */

/* limit of known pods; ended pods count as long as their logs are on disk */
#define PODS_KNOWN_MAX 4096
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LEFTOVERS_WAIT_MS 10000

struct hf_kubelet_pod *hf_kubelet_find(const struct hf_kubelet *k, const char *ns, const char *name)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		struct hf_kubelet_pod *pod = value;

		if (pod->doc && hf_streq(pod->ns, ns) && hf_streq(pod->name, name))
			return pod;
	}
	return NULL;
}

/* --- pods of the store --- */

static void free_pod(void *pod)
{
	(void)hf_kubelet_pod_destroy(pod);
}

static void on_pod(void *arg, struct hf_doc *doc)
{
	struct hf_kubelet *k = arg;
	const char *uid = hf_doc_uid(doc);
	struct hf_kubelet_pod *pod = hf_map_get(k->pods, uid);

	/* The UID becomes the name of a folder, so it must not contain "/". */
	if (hf_dns1123_label_problem(uid))
		return;
	if (pod) {
		hf_kubelet_pod_set_doc(pod, doc);
	} else {
		pod = hf_kubelet_pod_create(k, doc);
		if (!hf_map_put(k->pods, uid, pod)) {
			(void)hf_kubelet_pod_destroy(pod);
			hf_kubelet_notice(k,
					  "more than %d pods are known: pod %s/%s is not started",
					  PODS_KNOWN_MAX, hf_doc_namespace(doc), hf_doc_name(doc));
			return;
		}
	}
	if (k->draining)
		hf_kubelet_drain_pod(pod);
	hf_kubelet_hosts_changed(k);
}

static void on_pod_removed(void *arg, struct hf_doc *last)
{
	struct hf_kubelet *k = arg;
	struct hf_kubelet_pod *pod = hf_map_get(k->pods, hf_doc_uid(last));

	if (pod)
		hf_kubelet_pod_gone_from_store(pod);
	hf_kubelet_hosts_changed(k);
}

/* Called when the pods of the store are listed: ends pods that are on disk and not in the
 * store. */
static void on_pods_listed(void *arg)
{
	struct hf_kubelet *k = arg;
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		struct hf_kubelet_pod *pod = value;

		if (!pod->doc)
			hf_kubelet_pod_gone_from_store(pod);
	}
}

static void on_service(void *arg, struct hf_doc *doc HF_UNUSED)
{
	hf_kubelet_hosts_changed(arg);
}

static void on_nothing(void *arg HF_UNUSED)
{
}

static void watch_store(struct hf_kubelet *k)
{
	struct hf_kubelet_watch_options pods = {.loop = k->loop,
						.store = k->store,
						.resource = &hf_pods,
						.field_selector = k->selector,
						.changed = on_pod,
						.removed = on_pod_removed,
						.synced = on_pods_listed,
						.arg = k};
	struct hf_kubelet_watch_options services = {.loop = k->loop,
						    .store = k->store,
						    .resource = &hf_services,
						    .changed = on_service,
						    .removed = on_service,
						    .synced = on_nothing,
						    .arg = k};

	k->pod_watch = hf_kubelet_watch_create(&pods);
	k->service_watch = hf_kubelet_watch_create(&services);
}

void hf_kubelet_facts(const struct hf_kubelet *k, struct hf_kubelet_facts *ret_facts)
{
	*ret_facts = (struct hf_kubelet_facts){
		.pod_network = k->isolate,
		.user_ns = k->user_ns,
		.pid_ns = k->pid_ns,
		.uplink = k->uplink,
		.uplink_why = k->isolate && !k->uplink ? k->uplink_why : "",
		.cgroups = k->cgroups.memory[0] && k->cgroups.cpu[0],
		.why = k->why,
	};
}

/* --- create --- */

static int take_lock(const char *state_dir, int *ret_fd, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/lock", state_dir);
	HF_AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return hf_error_set(err, HF_E_CONFLICT, "another kubelet works in '%s'", state_dir);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* busybox's nslookup asks DNS servers, which do not know the pods. This script resolves names with
 * the C library, as all programs of the container do. */
static const char nslookup_script[] =
	"#!/bin/sh\n"
	"# nslookup NAME, answered as this container's programs resolve names.\n"
	"[ $# -ge 1 ] || { echo 'usage: nslookup NAME' >&2; exit 1; }\n"
	"found=$(getent ahosts \"$1\") || { echo \"nslookup: can't resolve '$1'\"; exit 1; }\n"
	"printf 'Server:\\t\\t/etc/hosts\\n\\nName:\\t%s\\n' \"$1\"\n"
	"printf '%s\\n' \"$found\" | while read -r address type _; do\n"
	"\t[ \"$type\" != STREAM ] || printf 'Address: %s\\n' \"$address\"\n"
	"done\n";

/* Links this program into the plane's folder, so that a pod's command can be `holdfast exec`. */
static void link_program(const struct hf_kubelet *k)
{
	HF_AUTOFREE char *link = hf_xasprintf("%s/holdfast", k->bin_dir);

	(void)unlink(link);
	if (!hf_streq(k->exe, "/proc/self/exe"))
		(void)!symlink(k->exe, link);
}

static int make_folders(struct hf_kubelet *k, struct hf_error *err)
{
	HF_AUTOFREE char *nslookup = hf_xasprintf("%s/nslookup", k->bin_dir);
	int rc = hf_fs_mkdirs(k->state_dir, 0700, err);

	if (!rc)
		rc = take_lock(k->state_dir, &k->lock_fd, err);
	if (!rc)
		rc = hf_fs_mkdirs(k->pods_dir, 0700, err);
	if (!rc)
		rc = hf_fs_mkdirs(k->bin_dir, 0755, err);
	if (!rc)
		rc = hf_fs_write_changed(nslookup, nslookup_script, sizeof(nslookup_script) - 1,
					 0755, err);
	if (rc)
		return rc;
	link_program(k);
	hf_kubelet_mend_torchrun(k->bin_dir);
	return 0;
}

static char *find_exe(const char *asked)
{
	char path[HF_KUBELET_PATH_MAX];
	ssize_t n = asked ? -1 : readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (asked)
		return hf_xstrdup(asked);
	if (n <= 0)
		return hf_xstrdup("/proc/self/exe");
	path[n] = '\0';
	/* If the program's file was replaced during the run, use /proc/self/exe, which still is
	 * the running version. */
	return hf_xstrdup(access(path, X_OK) == 0 ? path : "/proc/self/exe");
}

/* Looks for the preload library: beside the program, in the build folder, and where `meson
 * install` puts it. */
static char *find_preload(const char *exe)
{
	static const char *const folders[] = {"", "/src/kubelet", "/../lib/holdfast"};
	const char *slash = strrchr(exe, '/');

	for (size_t i = 0; slash && i < HF_ARRAY_LEN(folders); i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%.*s%s/" HF_PRELOAD_FILE, (int)(slash - exe),
						      exe, folders[i]);

		if (access(path, R_OK) == 0)
			return hf_steal(&path);
	}
	return NULL;
}

/* Makes the variables that every container gets from this program's environment: where programs
 * are found and how text is written. Other variables are not passed on, as they may be secret. */
static void make_base_env(struct hf_kubelet *k, const char *const *env)
{
	static const char *const names[] = {"HOME",   "USER",     "LOGNAME", "LANG",
					    "LC_ALL", "LC_CTYPE", "TZ",      "LD_LIBRARY_PATH"};
	const char *path = getenv("PATH");
	size_t more = 0;

	while (env && env[more])
		more++;
	k->base_env = hf_xcalloc(HF_ARRAY_LEN(names) + more + 2, sizeof(*k->base_env));
	k->base_env[k->n_base_env++] =
		hf_xasprintf("PATH=%s:%s", k->bin_dir, hf_str_or(path, DEFAULT_PATH));
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);

		if (!hf_str_is_empty(value))
			k->base_env[k->n_base_env++] = hf_xasprintf("%s=%s", names[i], value);
	}
	for (size_t i = 0; i < more; i++)
		k->base_env[k->n_base_env++] = hf_xstrdup(env[i]);
}

static int find_pods(struct hf_kubelet *k, struct hf_error *err)
{
	DIR *dir = opendir(k->pods_dir);
	struct dirent *entry;

	if (!dir)
		return hf_error_errno(err, errno, "cannot read '%s'", k->pods_dir);
	while ((entry = readdir(dir))) {
		struct hf_kubelet_pod *pod;

		if (hf_dns1123_label_problem(entry->d_name))
			continue;
		pod = hf_kubelet_pod_create_found(k, entry->d_name);
		if (!hf_map_put(k->pods, entry->d_name, pod))
			(void)hf_kubelet_pod_destroy(pod);
	}
	(void)closedir(dir);
	hf_kubelet_skip_known_ips(k);
	return 0;
}

static struct hf_kubelet *allocate_kubelet(const struct hf_kubelet_options *o)
{
	struct hf_kubelet *k = hf_xcalloc(1, sizeof(*k));

	k->loop = o->loop;
	k->store = o->store;
	k->network = o->network;
	k->pods_max = o->pods_max > 0 ? o->pods_max : HF_KUBELET_PODS_MAX;
	k->notice = o->notice;
	k->ready = o->ready;
	k->arg = o->arg;
	k->lock_fd = k->netns_fd = -1;
	k->state_dir = hf_xstrdup(o->state_dir);
	k->pods_dir = hf_xasprintf("%s/pods", o->state_dir);
	k->kept_logs = o->kept_logs ? hf_xstrdup(o->kept_logs) : NULL;
	k->bin_dir = hf_xasprintf("%s/bin", o->state_dir);
	k->claims_dir =
		o->claims_dir ? hf_xstrdup(o->claims_dir) : hf_xasprintf("%s/claims", o->state_dir);
	k->make_claims = o->make_claims;
	k->pods_end_with_process = o->pods_end_with_process;
	k->draining = o->only_drains;
	k->drain_grace = HF_TIME_NONE;
	k->gpus_option = hf_xstrdup(hf_str_or(o->gpus, "all"));
	k->sysfs = hf_xstrdup(hf_str_or(o->sysfs, "/sys"));
	k->claims = hf_kubelet_claims_create(k);
	k->node_name = hf_xstrdup(hf_str_or(o->node_name, HF_KUBELET_NODE));
	k->selector = hf_xasprintf("spec.nodeName=%s", k->node_name);
	k->exe = find_exe(o->exe);
	k->preload = find_preload(k->exe);
	make_base_env(k, o->env);
	k->pods = hf_map_create(PODS_KNOWN_MAX, 0, free_pod);
	k->hosts_task = hf_task_create(k->loop, hf_kubelet_hosts_write_all, k);
	hf_kubelet_drain_init(k);
	k->events = hf_kubelet_events_create(k);
	return k;
}

int hf_kubelet_create(const struct hf_kubelet_options *options, struct hf_kubelet **ret_kubelet,
		      struct hf_error *err)
{
	struct hf_kubelet *k;
	int rc;

	if (options->state_dir[0] != '/' || strlen(options->state_dir) > HF_KUBELET_PATH_MAX / 2)
		return hf_error_set(err, HF_E_INVALID,
				    "'%s' must be an absolute path of at most %d "
				    "bytes",
				    options->state_dir, HF_KUBELET_PATH_MAX / 2);
	rc = hf_gpu_option_check(options->gpus, err);
	if (rc)
		return rc;
	k = allocate_kubelet(options);
	rc = make_folders(k, err);
	if (!rc)
		rc = find_pods(k, err);
	if (!rc)
		rc = hf_kubelet_probe_start(k, err);
	if (!rc)
		rc = hf_kubelet_gpus_start(k, hf_kubelet_probed, err);
	if (rc) {
		hf_kubelet_destroy(k);
		return rc;
	}
	watch_store(k);
	*ret_kubelet = k;
	return 0;
}

struct hf_kubelet *hf_kubelet_destroy(struct hf_kubelet *k)
{
	if (!k)
		return NULL;
	hf_assert(!k->streams);
	k->probe = hf_kubelet_probe_destroy(k->probe);
	k->pod_watch = hf_kubelet_watch_destroy(k->pod_watch);
	k->service_watch = hf_kubelet_watch_destroy(k->service_watch);
	k->node = hf_kubelet_node_destroy(k->node);
	k->pods = hf_map_destroy(k->pods);
	k->uplink_process = hf_kubelet_uplink_destroy(k->uplink_process);
	k->gpus = hf_kubelet_gpus_destroy(k->gpus);
	k->claims = hf_kubelet_claims_destroy(k->claims);
	k->events = hf_kubelet_events_destroy(k->events);
	k->hosts_task = hf_task_destroy(k->hosts_task);
	hf_kubelet_drain_release(k);
	for (size_t i = 0; i < k->n_base_env; i++) {
		union {
			const char *in;
			char *out;
		} item = {.in = k->base_env[i]};

		free(item.out);
	}
	free(k->base_env);
	free(k->state_dir);
	free(k->pods_dir);
	free(k->kept_logs);
	free(k->bin_dir);
	free(k->claims_dir);
	free(k->gpus_option);
	free(k->sysfs);
	free(k->node_name);
	free(k->selector);
	free(k->exe);
	free(k->preload);
	hf_fd_cleanup(&k->netns_fd);
	hf_fd_cleanup(&k->lock_fd);
	free(k);
	return NULL;
}

/* --- signals --- */

int hf_kubelet_signal(struct hf_kubelet *k, const char *ns, const char *pod_name,
		      const char *container, int signum, struct hf_error *err)
{
	struct hf_kubelet_pod *pod = hf_kubelet_find(k, ns, pod_name);

	if (!pod || !pod->shim)
		return hf_error_set(err, HF_E_NOT_FOUND, "no pod '%s/%s' runs here", ns, pod_name);
	for (size_t i = 0; i < pod->n; i++) {
		const struct hf_kubelet_pod_container *c = &pod->containers[i];
		const struct hf_container_past *past = hf_pod_past_find(&pod->past, c->name);

		if ((container && !hf_streq(c->name, container)) || !past ||
		    past->last.state != HF_ATTEMPT_RUNNING)
			continue;
		hf_kubelet_shim_command(pod->shim, "signal %s %u %d", c->name, past->last.number,
					signum);
		return 0;
	}
	return hf_error_set(err, HF_E_NOT_FOUND, "no container of pod '%s/%s' runs", ns, pod_name);
}

/* --- pods of a killed kubelet --- */

/* ret_quit: the shim has written its last record, so no process of the pod runs any more. */
static bool find_shim(const char *pod_dir, struct hf_process_id *ret_shim, bool *ret_quit)
{
	HF_AUTO_FD dir = open(pod_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HF_AUTOFREE struct hf_pod_past *past = hf_xcalloc(1, sizeof(*past));

	if (dir < 0 || hf_journal_read(dir, past, NULL) != 0 || !past->shim.pid)
		return false;
	*ret_shim = past->shim;
	*ret_quit = past->quit;
	return true;
}

size_t hf_kubelet_count_running(const char *state_dir)
{
	HF_AUTOFREE char *pods_dir = hf_xasprintf("%s/pods", state_dir);
	DIR *dir = opendir(pods_dir);
	struct dirent *entry;
	size_t n = 0;

	while (dir && (entry = readdir(dir))) {
		HF_AUTOFREE char *pod_dir = hf_xasprintf("%s/%s", pods_dir, entry->d_name);
		struct hf_process_id shim;
		bool quit;

		/* The lock of the pod's folder is not tried: a shim that starts now would find it
		 * taken. */
		if (!hf_dns1123_label_problem(entry->d_name) && find_shim(pod_dir, &shim, &quit) &&
		    !quit && hf_process_id_alive(&shim))
			n++;
	}
	if (dir)
		(void)closedir(dir);
	return n;
}

static void kill_leftover(const char *pod_dir)
{
	struct hf_process_id shim;
	bool quit;

	/* When the shim dies, the kernel kills its containers. */
	if (find_shim(pod_dir, &shim, &quit))
		(void)hf_process_id_kill(&shim, SIGKILL, NULL);
}

int hf_kubelet_kill_leftovers(const char *state_dir, struct hf_error *err)
{
	HF_AUTOFREE char *pods_dir = hf_xasprintf("%s/pods", state_dir);
	HF_AUTO_FD lock = -1;
	DIR *dir = opendir(pods_dir);
	struct dirent *entry;
	int rc, waited_ms = 0;

	if (!dir)
		return errno == ENOENT ? 0
				       : hf_error_errno(err, errno, "cannot read '%s'", pods_dir);
	rc = take_lock(state_dir, &lock, err);
	while (!rc && (entry = readdir(dir))) {
		HF_AUTOFREE char *pod_dir = hf_xasprintf("%s/%s", pods_dir, entry->d_name);

		if (hf_dns1123_label_problem(entry->d_name))
			continue;
		kill_leftover(pod_dir);
		for (; hf_kubelet_shim_alive(pod_dir) && waited_ms < LEFTOVERS_WAIT_MS;
		     waited_ms += 10)
			(void)poll(NULL, 0, 10);
		hf_kubelet_kill_strays(entry->d_name);
		if (hf_kubelet_shim_alive(pod_dir))
			rc = hf_error_set(err, HF_E_TIMEOUT,
					  "the shim of pod %s did not end after SIGKILL",
					  entry->d_name);
	}
	(void)closedir(dir);
	return rc;
}
