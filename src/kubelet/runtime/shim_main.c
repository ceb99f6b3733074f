/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim.h"

#include "base/fs.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"
#include "kubelet/runtime/shim_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The "shim" verb: starts the shim of a pod as a process of its own, and tries out which namespaces
 * and control groups this machine allows.
 */

#define TAP_WITHIN_MS 5000
#define TRIAL_FILE "/dev/null" /* a file that every machine has, unlike /etc/hosts */

/* --- shim pod --- */

static int set_stdio(const char *pod_dir)
{
	char path[4096];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int log;

	if (snprintf(path, sizeof(path), "%s/" HF_SHIM_LOG_FILE, pod_dir) >= (int)sizeof(path))
		return -1;
	log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* Moves stdin and stdout of the start to fixed numbers: the node's network namespace, and
	 * the pipe that keeps slirp4netns alive. */
	if (null < 0 || log < 0 || dup3(STDIN_FILENO, HF_SHIM_NETNS_FD, O_CLOEXEC) < 0 ||
	    dup3(STDOUT_FILENO, HF_SHIM_UPLINK_FD, O_CLOEXEC) < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		return -1;
	(void)close(null);
	(void)close(log);
	return 0;
}

static int become_shim(const char *pod_dir, int ready_fd)
{
	/* Detach from the caller: its session and terminal, its working folder, and its standard
	 * streams. */
	if (setsid() < 0 || chdir("/") < 0 || set_stdio(pod_dir) < 0) {
		const char *text = strerror(errno);

		(void)!write(ready_fd, text, strlen(text));
		return 1;
	}
	(void)umask(077);
	return hf_shim_serve(pod_dir, ready_fd);
}

int hf_shim_run_pod(const char *pod_dir)
{
	HF_AUTO_STRBUF said = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);
	struct hf_error err;
	int fds[2];
	pid_t pid;

	/* Frees the descriptors up to HF_SHIM_NETNS_FD, which the caller may have left open. */
	for (int fd = 3; fd <= HF_SHIM_NETNS_FD; fd++)
		(void)close(fd);
	if (pipe2(fds, O_CLOEXEC) < 0 || (pid = hf_shim_fork(0)) < 0) {
		perror("shim");
		return 1;
	}
	if (pid == 0) {
		(void)close(fds[0]);
		return become_shim(pod_dir, fds[1]);
	}
	(void)close(fds[1]);
	if (hf_fs_read_fd(fds[0], "the shim", &said, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (hf_streq(said.data, "ok"))
		return 0;
	(void)fprintf(stderr, "%s\n", said.len ? said.data : "the shim died before it was ready");
	return 1;
}

/* --- shim net: what this machine allows --- */

/* Runs as the first process of a trial container, and does what a real one needs. */
HF_NORETURN static void try_container(bool pid_ns)
{
	struct hf_run_mount hosts = {.source = TRIAL_FILE, .target = TRIAL_FILE, .is_file = true};
	struct hf_mount_plan plan = {
		.pod_dir = "/", .proc = pid_ns, .mounts = &hosts, .n_mounts = 1};
	struct hf_error err;

	if (hf_mounts_apply(&plan, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		_exit(1);
	}
	_exit(0);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs in a process of its own in the node's namespace, and tries everything that the shim of a
 * pod does. */
HF_NORETURN static void try_pod(bool pid_ns)
{
	HF_AUTO_FD self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct hf_shim_pod pod = {.hostname = "probe",
				  .isolate = true,
				  .pid_ns = pid_ns,
				  .ip = "10.244.255.254",
				  .gateway = HF_NET_NODE_IP,
				  .prefix = HF_NET_PREFIX};
	struct hf_error err;
	pid_t pid;

	if (self < 0 || hf_shim_enter(&pod, self, &err) != 0) {
		(void)fprintf(stderr, "%s\n", self < 0 ? strerror(errno) : err.text);
		_exit(1);
	}
	pid = hf_shim_fork(CLONE_NEWNS | (pid_ns ? CLONE_NEWPID : 0));
	if (pid == 0)
		try_container(pid_ns);
	if (pid < 0)
		perror("cannot make a process namespace");
	_exit(pid < 0 || wait_for(pid) != 0);
}

struct findings {
	bool isolate, user_ns, pid_ns;
	char why[HF_ERROR_TEXT_MAX];
	struct hf_cgroup_base cgroups;
	char cgroups_why[HF_ERROR_TEXT_MAX];
};

/* Runs fn in a child process. Returns true if the child exits with 0; otherwise `why` gets the
 * first line of the child's stderr. */
static bool run_trial(void (*fn)(bool), bool flag, char *why, size_t size)
{
	HF_AUTO_STRBUF said = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0 || (pid = hf_shim_fork(0)) < 0) {
		(void)snprintf(why, size, "%s", strerror(errno));
		return false;
	}
	if (pid == 0) {
		(void)dup2(fds[1], STDERR_FILENO);
		fn(flag);
		_exit(0);
	}
	(void)close(fds[1]);
	/* If the child writes more than fits, ignore the text; the child is then killed by the
	 * closed pipe. */
	if (hf_fs_read_fd(fds[0], "a trial", &said, NULL) != 0)
		hf_strbuf_clear(&said);
	(void)close(fds[0]);
	if (wait_for(pid) == 0)
		return true;
	said.data[strcspn(said.data, "\n")] = '\0';
	(void)snprintf(why, size, "%s", said.len ? said.data : "a trial process died");
	return false;
}

/* Makes the node's namespaces and stays in them. After a failure the process must end. */
static bool enter_node(bool user_ns, struct hf_error *err)
{
	if (user_ns && hf_net_user_ns(err) != 0)
		return false;
	if (unshare(CLONE_NEWNET) < 0) {
		(void)hf_error_errno(err, errno, "cannot make a network namespace");
		return false;
	}
	return hf_net_node_setup(err) == 0;
}

static void try_node(bool user_ns)
{
	struct hf_error err;
	char why[HF_ERROR_TEXT_MAX];

	if (!enter_node(user_ns, &err)) {
		(void)fprintf(stderr, "%s\n", err.text);
		_exit(1);
	}
	if (!run_trial(try_pod, false, why, sizeof(why))) {
		(void)fprintf(stderr, "%s\n", why);
		_exit(1);
	}
}

static void try_cgroups(bool unused HF_UNUSED)
{
	struct hf_cgroup_base base;
	struct hf_error why;

	hf_cgroup_probe(&base, &why);
	if (!base.version) {
		(void)fprintf(stderr, "%s\n", why.text);
		_exit(1);
	}
	(void)!write(STDOUT_FILENO, &base, sizeof(base));
}

/* Runs hf_cgroup_probe in a child, because it moves its process between groups. The child prints
 * the result on stdout. */
static void find_cgroups(struct findings *f)
{
	struct hf_cgroup_base base;
	int fds[2];
	int out = dup(STDOUT_FILENO);

	if (out < 0 || pipe2(fds, O_CLOEXEC) < 0) {
		(void)snprintf(f->cgroups_why, sizeof(f->cgroups_why), "%s", strerror(errno));
		hf_fd_cleanup(&out);
		return;
	}
	(void)dup2(fds[1], STDOUT_FILENO);
	(void)close(fds[1]);
	if (run_trial(try_cgroups, false, f->cgroups_why, sizeof(f->cgroups_why)) &&
	    read(fds[0], &base, sizeof(base)) == (ssize_t)sizeof(base))
		f->cgroups = base;
	(void)dup2(out, STDOUT_FILENO);
	(void)close(out);
	(void)close(fds[0]);
}

static void find_namespaces(struct findings *f)
{
	char without_pid[HF_ERROR_TEXT_MAX], as_user[HF_ERROR_TEXT_MAX];
	struct hf_error err;

	/* As root, try without a user namespace first: in a user namespace, files of other users
	 * would lose their owners. */
	f->user_ns = !(geteuid() == 0 && run_trial(try_node, false, f->why, sizeof(f->why)));
	/* For root the first trial gives the reason: the second one also fails for reasons that do
	 * not matter to root, such as a chroot. */
	if (f->user_ns && !run_trial(try_node, true, as_user, sizeof(as_user))) {
		if (geteuid() != 0)
			(void)snprintf(f->why, sizeof(f->why), "%s", as_user);
		return;
	}
	if (!enter_node(f->user_ns, &err)) {
		(void)snprintf(f->why, sizeof(f->why), "%s", err.text);
		return;
	}
	f->isolate = true;
	f->pid_ns = run_trial(try_pod, true, without_pid, sizeof(without_pid));
	(void)snprintf(f->why, sizeof(f->why), "%s", f->pid_ns ? "" : without_pid);
}

static void print_findings(const struct findings *f)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)64 << 10);
	HF_AUTO_JSON root = hf_json_object();
	struct hf_json *cgroups = hf_json_ensure_object(root, "cgroups");

	hf_json_set_bool(root, "isolate", f->isolate);
	hf_json_set_bool(root, "userNamespace", f->isolate && f->user_ns);
	hf_json_set_bool(root, "pidNamespace", f->pid_ns);
	hf_json_set_str(root, "why", f->why);
	hf_json_set_i64(cgroups, "version", f->cgroups.version);
	hf_json_set_str(cgroups, "memory", f->cgroups.memory);
	hf_json_set_str(cgroups, "cpu", f->cgroups.cpu);
	hf_json_set_str(root, "cgroupsWhy", f->cgroups_why);
	hf_json_write(root, HF_JSON_COMPACT, &sb);
	hf_strbuf_addch(&sb, '\n');
	(void)!write(STDOUT_FILENO, sb.data, sb.len);
}

int hf_shim_run_net(void)
{
	struct findings f = {0};
	struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};

	find_cgroups(&f);
	find_namespaces(&f);
	print_findings(&f);
	/* Wait for the end of stdin: meanwhile the kubelet opens the namespaces of this process.
	 * poll is used because the pipe may be non-blocking. */
	while (poll(&end, 1, -1) < 0 && errno == EINTR)
		;
	return 0;
}

int hf_shim_run_uplink(void)
{
	struct hf_error err;

	if (hf_net_enter(STDIN_FILENO, true, &err) == 0 &&
	    hf_net_node_join_tap(TAP_WITHIN_MS, &err) == 0)
		return 0;
	(void)fprintf(stderr, "%s\n", err.text);
	return 1;
}

int hf_shim_main(int argc, char **argv)
{
	if (argc == 3 && hf_streq(argv[1], "pod") && argv[2][0] == '/')
		return hf_shim_run_pod(argv[2]);
	if (argc == 2 && hf_streq(argv[1], "net"))
		return hf_shim_run_net();
	if (argc == 2 && hf_streq(argv[1], "uplink"))
		return hf_shim_run_uplink();
	if (argc == 3 && hf_streq(argv[1], "gpus"))
		return hf_shim_run_gpus(argv[2]);
	if (argc == 4 && hf_streq(argv[1], "deliver"))
		return hf_kubectl_deliver(argv[2], argv[3]);
	if (argc >= 4 && hf_streq(argv[1], "kubectl"))
		return hf_kubectl_main(argv[2], argv[3], argv + 4);
	(void)fprintf(stderr, "this verb is for the program's own use\n");
	return 2;
}

int hf_shim_helper_main(int argc, char **argv)
{
	if (argc > 1 && hf_streq(argv[1], "shim"))
		return hf_shim_main(argc - 1, argv + 1);
	return -1;
}
