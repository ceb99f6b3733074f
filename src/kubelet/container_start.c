/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Builds the run file by which a shim starts a container, from the container's spec. */

#define ARENA_BYTES_MAX ((size_t)64 << 20)
#define DEFAULT_TERMINATION_PATH "/dev/termination-log"

void hf_kubelet_start_block(struct hf_kubelet_pod *pod, struct hf_kubelet_pod_container *c,
			    const char *reason, const char *message, hf_time retry)
{
	bool news = !hf_streq(c->reason, reason) || !hf_streq(c->message, message);

	c->refs = hf_kubelet_refs_destroy(c->refs);
	c->asked = false;
	c->blocked_until = hf_time_add(hf_loop_wall(pod->kubelet->loop), retry);
	(void)snprintf(c->reason, sizeof(c->reason), "%s", reason);
	(void)snprintf(c->message, sizeof(c->message), "%s", message);
	if (news)
		hf_kubelet_event(pod, "Warning", "Failed", "Error: %s", message);
	hf_kubelet_pod_wake(pod);
}

void hf_kubelet_start_input(const struct hf_kubelet_pod *pod, const struct hf_json *container,
			    const struct hf_kubelet_refs *refs,
			    struct hf_kubelet_env_input *ret_input)
{
	*ret_input = (struct hf_kubelet_env_input){
		.pod = hf_doc_json(pod->doc ? pod->doc : pod->spec_doc),
		.container = container,
		.kubelet = pod->kubelet,
		.refs = refs,
		.base = pod->kubelet->base_env,
		.hostname = pod->config.hostname,
		.pod_ip = pod->config.ip ? pod->config.ip : HF_KUBELET_HOST_IP,
		.host_ip = HF_KUBELET_HOST_IP,
	};
}

/* --- user and groups --- */

static int64_t context_id(const struct hf_kubelet_pod *pod, const struct hf_json *container,
			  const char *key)
{
	const struct hf_json *own = hf_json_path(container, "securityContext", key, NULL);
	const struct hf_json *of_pod =
		hf_json_path(hf_kubelet_pod_spec(pod), "securityContext", key, NULL);

	return hf_json_i64(own ? own : of_pod, -1);
}

static void set_user(const struct hf_kubelet_pod *pod, const struct hf_json *container,
		     struct hf_arena *arena, struct hf_run *run)
{
	const struct hf_json *context = hf_json_get(hf_kubelet_pod_spec(pod), "securityContext");
	const struct hf_json *more = hf_json_get(context, "supplementalGroups");
	int64_t fs_group = hf_json_i64(hf_json_get(context, "fsGroup"), -1);
	size_t n = hf_json_len(more) < HF_RUN_GROUPS_MAX - 1 ? hf_json_len(more)
							     : HF_RUN_GROUPS_MAX - 1;
	int64_t *groups = HF_ARENA_ARRAY(arena, int64_t, HF_RUN_GROUPS_MAX);

	run->uid = run->gid = -1;
	if (geteuid() != 0)
		return;
	run->uid = context_id(pod, container, "runAsUser");
	run->gid = context_id(pod, container, "runAsGroup");
	/* Without a runAsGroup the group is root's. Upstream takes the group from the image, and
	 * root's if the image names none; here no image is read. */
	if (run->uid > 0 && run->gid < 0)
		run->gid = 0;
	for (size_t i = 0; i < n; i++)
		groups[run->n_groups++] = hf_json_i64(hf_json_item(more, i), 0);
	if (fs_group >= 0)
		groups[run->n_groups++] = fs_group;
	run->groups = groups;
}

/* --- variables and arguments --- */

static const char *const *expand_all(const struct hf_json *container, const char *const *env,
				     struct hf_arena *arena)
{
	static const char *const lists[] = {"command", "args"};
	const struct hf_json *command = hf_json_get(container, "command");
	const struct hf_json *args = hf_json_get(container, "args");
	const char **argv =
		HF_ARENA_ARRAY(arena, const char *, hf_json_len(command) + hf_json_len(args) + 1);
	size_t n = 0;

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_get(container, lists[l]);

		for (size_t i = 0; i < hf_json_len(list); i++)
			argv[n++] = hf_kubelet_env_expand(hf_json_str(hf_json_item(list, i), ""),
							  env, arena);
	}
	return argv;
}

/* Builds the command of the init container that copies kubectl from its image: instead it writes
 * this program's stand-in for kubectl. */
static const char *const *make_delivery_command(const struct hf_kubelet_pod *pod,
						struct hf_arena *arena)
{
	const char *words[] = {pod->kubelet->exe, "shim", "deliver", pod->kubelet->pods_dir,
			       pod->ns};
	const char **argv = HF_ARENA_ARRAY(arena, const char *, HF_ARRAY_LEN(words) + 1);

	memcpy(argv, words, sizeof(words));
	return argv;
}

/* Sets HOME to the home folder of the container's user, unless the pod sets HOME. */
static void set_home(const struct hf_run *run, const char **env, struct hf_arena *arena)
{
	const struct passwd *user = run->uid >= 0 ? getpwuid((uid_t)run->uid) : NULL;

	if (run->uid < 0)
		return;
	for (size_t i = 0; env[i]; i++)
		if (hf_str_has_prefix(env[i], "HOME="))
			env[i] = hf_arena_printf(arena, "HOME=%s", user ? user->pw_dir : "/");
}

/* Returns the variables that every container of the pod gets. Without a mount namespace, they
 * include a preloaded library, which resolves the names of pods. */
static const char *const *base_env(const struct hf_kubelet_pod *pod,
				   const struct hf_kubelet_pod_container *c,
				   const struct hf_run *run, struct hf_arena *arena)
{
	const struct hf_kubelet *k = pod->kubelet;
	const char **env =
		HF_ARENA_ARRAY(arena, const char *, k->n_base_env + 4 + HF_KUBELET_GPU_KINDS);
	size_t n = 0;

	for (; n < k->n_base_env; n++)
		env[n] = k->base_env[n];
	set_home(run, env, arena);
	env[n++] = hf_arena_printf(arena, "HOLDFAST_POD_UID=%s", pod->uid);
	for (size_t kind = 0; kind < HF_KUBELET_GPU_KINDS; kind++)
		if (hf_kubelet_gpus_any(k, kind))
			env[n++] = hf_kubelet_gpus_variable(pod, c, kind, arena);
	if (!pod->config.isolate) {
		env[n++] = hf_arena_printf(arena, "HOLDFAST_HOSTS=%s/hosts", pod->dir);
		if (k->preload)
			env[n++] = hf_arena_printf(arena, "LD_PRELOAD=%s", k->preload);
	}
	return env;
}

/* --- mounts --- */

static void add_mount(struct hf_kubelet_mounts *m, const char *source, const char *target,
		      bool is_file)
{
	struct stat st;

	/* Skip a file of /etc that the machine does not have: a bind mount needs the file, and no
	 * program reads it. Programs read /etc/hosts to find the other pods, so an empty file is made
	 * for the mount if it is missing, as in a bare chroot. */
	if (m->n == HF_RUN_MOUNTS_MAX ||
	    (hf_str_has_prefix(target, "/etc/") && !hf_streq(target, "/etc/hosts") &&
	     stat(target, &st) < 0))
		return;
	m->items[m->n++] =
		(struct hf_run_mount){.source = source, .target = target, .is_file = is_file};
}

static bool has_target(const struct hf_kubelet_mounts *m, const char *target)
{
	for (size_t i = 0; i < m->n; i++)
		if (hf_streq(m->items[i].target, target))
			return true;
	return false;
}

static int make_termination_file(const struct hf_kubelet_pod *pod,
				 const struct hf_kubelet_pod_container *c, struct hf_arena *arena,
				 const char **ret_path, struct hf_error *err)
{
	const char *path = hf_arena_printf(arena, "%s/term/%s.%u", pod->dir, c->name, c->attempt);
	HF_AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);

	/* Every user may write the termination message, because the container may run as any
	 * user. */
	if (fd < 0 || fchmod(fd, 0666) < 0)
		return hf_error_errno(err, errno, "cannot make '%s'", path);
	*ret_path = path;
	return 0;
}

static int add_own_mounts(const struct hf_kubelet_pod *pod,
			  const struct hf_kubelet_pod_container *c, struct hf_arena *arena,
			  struct hf_kubelet_mounts *m, struct hf_error *err)
{
	static const char *const files[] = {"hosts", "nsswitch.conf", "resolv.conf"};
	const char *target = hf_str_or(hf_json_path_str(c->spec, "terminationMessagePath", NULL),
				       DEFAULT_TERMINATION_PATH);
	size_t n_files = pod->config.host_network ? 1 : HF_ARRAY_LEN(files);
	const char *source = NULL;
	struct stat st;

	for (size_t i = 0; i < n_files; i++) {
		const char *place = hf_arena_printf(arena, "/etc/%s", files[i]);

		if (!has_target(m, place))
			add_mount(m, hf_arena_printf(arena, "%s/%s", pod->dir, files[i]), place,
				  true);
	}
	if (!pod->config.host_ipc && !has_target(m, "/dev/shm") && stat("/dev/shm", &st) == 0)
		add_mount(m, hf_arena_printf(arena, "%s/shm", pod->dir), "/dev/shm", false);
	if (has_target(m, target))
		return 0;
	if (target[0] != '/')
		return hf_error_set(err, HF_E_INVALID,
				    "terminationMessagePath '%s' must be absolute", target);
	if (make_termination_file(pod, c, arena, &source, err) != 0)
		return err->code;
	add_mount(m, source, hf_arena_strdup(arena, target), true);
	return 0;
}

/* Checks a mount on a machine without mount namespaces: the mount is possible only if the volume's
 * source already is the target. */
static int check_in_place(const struct hf_kubelet *k, const struct hf_kubelet_mounts *m,
			  struct hf_error *err)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct hf_run_mount *one = &m->items[i];

		if (hf_streq(one->source, one->target) || hf_streq(one->target, "/dev/shm"))
			continue;
		return hf_error_set(err, HF_E_UNSUPPORTED,
				    "mountPath '%s' cannot be mounted, because pods have no mount "
				    "namespaces here: %s",
				    one->target, k->why);
	}
	return 0;
}

/* --- limits --- */

static int64_t limit_milli(const struct hf_json *container, const char *name)
{
	const struct hf_json *value = hf_json_path(container, "resources", "limits", name, NULL);
	const char *text = hf_json_str(value, NULL);
	int64_t milli = 0;

	if (text)
		return hf_quantity_parse_milli(text, &milli, NULL) == 0 ? milli : 0;
	return hf_json_i64(value, 0) > INT64_MAX / 1000 ? INT64_MAX : hf_json_i64(value, 0) * 1000;
}

static void set_limits(struct hf_kubelet_pod *pod, const struct hf_json *container,
		       struct hf_run *run)
{
	int64_t memory = limit_milli(container, "memory"), cpu = limit_milli(container, "cpu");
	const struct hf_cgroup_base *base = &pod->config.cgroups;

	run->limits.memory_bytes = memory / 1000;
	run->limits.cpu_milli = cpu;
	if (((memory && !base->memory[0]) || (cpu && !base->cpu[0])) &&
	    !pod->kubelet->told_no_limits) {
		pod->kubelet->told_no_limits = true;
		hf_kubelet_event(
			pod, "Warning", "ResourceLimitsIgnored",
			"limits of memory and CPU are not enforced: this user may not make control "
			"groups here");
	}
}

/* --- the run file --- */

static int build_run(struct hf_kubelet_pod *pod, struct hf_kubelet_pod_container *c,
		     struct hf_arena *arena, struct hf_kubelet_mounts *mounts, struct hf_run *run,
		     struct hf_error *err)
{
	const struct hf_json *context = hf_json_get(c->spec, "securityContext");
	struct hf_kubelet_env_input input;
	int rc;

	hf_kubelet_start_input(pod, c->spec, c->refs, &input);
	set_user(pod, c->spec, arena, run);
	input.base = base_env(pod, c, run, arena);
	rc = hf_kubelet_env_build(&input, arena, &run->env, err);
	if (!rc)
		rc = hf_kubelet_volumes_mounts(&input, pod->dir, arena, mounts, err);
	if (!rc)
		rc = pod->config.isolate ? add_own_mounts(pod, c, arena, mounts, err)
					 : check_in_place(pod->kubelet, mounts, err);
	if (rc)
		return rc;
	run->argv = hf_kubectl_is_delivery(c->spec) ? make_delivery_command(pod, arena)
						    : expand_all(c->spec, run->env, arena);
	run->init = c->init;
	run->sidecar = c->sidecar;
	run->cwd = hf_json_path_str(c->spec, "workingDir", NULL);
	run->mounts = mounts->items;
	run->n_mounts = pod->config.isolate ? mounts->n : 0;
	run->read_only_root = hf_json_true(hf_json_get(context, "readOnlyRootFilesystem"), false);
	run->no_new_privs = !hf_json_true(hf_json_get(context, "allowPrivilegeEscalation"), true);
	set_limits(pod, c->spec, run);
	return 0;
}

static int write_run(const struct hf_kubelet_pod *pod, const struct hf_kubelet_pod_container *c,
		     const struct hf_run *run, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_RUN_BYTES_MAX);
	HF_AUTOFREE char *path = hf_xasprintf("%s/run/%s.%u.json", pod->dir, c->name, c->attempt);
	HF_AUTO_JSON json = hf_run_to_json(run);
	int rc;

	hf_json_write(json, HF_JSON_COMPACT, &sb);
	rc = hf_strbuf_ok(&sb, "command and environment", err);
	return rc ? rc : hf_fs_write_atomic(path, sb.data, sb.len, 0600, err);
}

/* Removes the files of attempts older than the previous attempt. */
static void remove_old_files(const struct hf_kubelet_pod *pod,
			     const struct hf_kubelet_pod_container *c)
{
	if (c->attempt < 2)
		return;
	for (int i = 0; i < HF_KUBELET_LOG_FILES_MAX; i++) {
		HF_AUTOFREE char *log =
			hf_xasprintf("%s/logs/%s.%u.log", pod->dir, c->name, c->attempt - 2);
		HF_AUTOFREE char *part = hf_xasprintf("%s.%d", log, i);

		(void)unlink(i ? part : log);
	}
	{
		HF_AUTOFREE char *term =
			hf_xasprintf("%s/term/%s.%u", pod->dir, c->name, c->attempt - 2);

		(void)unlink(term);
	}
}

static void on_refs(void *arg)
{
	struct hf_kubelet_pod_container *c = arg;
	struct hf_kubelet_pod *pod = c->pod;
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTOFREE struct hf_kubelet_mounts *mounts = hf_xcalloc(1, sizeof(*mounts));
	struct hf_run run = {0};
	struct hf_error err;

	if (build_run(pod, c, arena, mounts, &run, &err) != 0) {
		hf_kubelet_start_block(pod, c, "CreateContainerConfigError", err.text,
				       HF_KUBELET_POD_RETRY);
		return;
	}
	if (write_run(pod, c, &run, &err) != 0) {
		hf_kubelet_start_block(pod, c, "CreateContainerError", err.text,
				       HF_KUBELET_POD_RETRY);
		return;
	}
	c->refs = hf_kubelet_refs_destroy(c->refs);
	remove_old_files(pod, c);
	if (!pod->config.isolate && !pod->kubelet->preload && c->attempt == 0)
		hf_kubelet_event(pod, "Warning", "NoNames",
				 "container %s will not find other pods by name: " HF_PRELOAD_FILE
				 " is missing beside '%s'",
				 c->name, pod->kubelet->exe);
	c->asked = true;
	hf_kubelet_post_start_expect(c);
	hf_kubelet_shim_command(pod->shim, "start %s %u %u", c->name, c->attempt, c->backoff_s);
}

void hf_kubelet_start_container(struct hf_kubelet_pod *pod, struct hf_kubelet_pod_container *c)
{
	hf_assert(!c->refs && !c->asked);
	c->refs = hf_kubelet_refs_create(pod->kubelet->store, pod->kubelet->loop, pod->ns);
	hf_kubelet_env_add_refs(c->spec, c->refs);
	hf_kubelet_refs_fetch(c->refs, on_refs, c);
}
