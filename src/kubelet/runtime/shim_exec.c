/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Runs another program in a container, as `kubectl exec` does. The shim forks a helper. The helper
 * joins the container's namespaces and control group, starts the program there, and reports its
 * exit code on the client's socket. If the client disconnects, the helper kills the program. The
 * helper dies with its shim; the program dies with the helper or with its container.
 */
#define CLIENT_FD 3
#define NOT_FOUND_CODE 127
#define NOT_RUN_CODE 126

static void tell_client(const char *word, int value, const char *text)
{
	char message[HF_SHIM_MESSAGE_MAX];

	(void)snprintf(message, sizeof(message), "%s %d%s", word, value, text);
	(void)send(CLIENT_FD, message, strlen(message), MSG_NOSIGNAL);
}

HF_NORETURN static void fail_exec(const char *what)
{
	char text[HF_ERROR_TEXT_MAX];

	(void)snprintf(text, sizeof(text), " (%s): %s", strerror(errno), what);
	tell_client("fail", errno, text);
	_exit(1);
}

/* Keeps stdin, stdout, stderr and the client's socket, and closes all other descriptors: an open
 * copy would hold the shim's lock. */
static void take_files(const struct hf_exec *exec)
{
	for (int i = 0; i < 3; i++)
		if (dup2(exec->stdio[i], i) < 0)
			_exit(1);
	if (dup2(exec->client, CLIENT_FD) < 0 || fcntl(CLIENT_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(CLIENT_FD, F_SETFL, 0) < 0)
		_exit(1);
	(void)close_range(CLIENT_FD + 1, ~0u, 0);
}

static void join_namespace(pid_t pid, const char *name, int type)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, type) < 0)
		fail_exec("cannot enter the container");
	(void)close(fd);
}

/* Enters the container's namespaces and control group. The helper already has the shim's network,
 * host name and IPC. Enter the process namespace before the mounts: after that, the machine's
 * /proc is hidden, and with it the path of the namespace. */
static void enter_container(const struct hf_exec *exec)
{
	struct hf_error err;

	if (hf_cgroup_join(exec->cgroup, &err) != 0)
		fail_exec(err.text);
	if (exec->pod->pid_ns)
		join_namespace(exec->pid, "pid", CLONE_NEWPID);
	if (exec->pod->isolate)
		join_namespace(exec->pid, "mnt", CLONE_NEWNS);
}

HF_NORETURN static void run_program(const struct hf_exec *exec)
{
	const struct hf_run *run = exec->run;
	const char *stage;
	int errnum;

	(void)setsid();
	stage = hf_child_change_user(run);
	/* Set this signal after the change of user: the change makes the kernel reset it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!stage && run->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		stage = "give up privileges";
	if (!stage && chdir(run->cwd ? run->cwd : "/") < 0)
		stage = "chdir";
	(void)umask(022);
	errnum = stage ? errno : hf_shim_exec(exec->argv, run->env);
	(void)dprintf(STDERR_FILENO, "exec: %s%s: %s\n", stage ? "cannot " : "",
		      stage ? stage : exec->argv[0], strerror(errnum));
	_exit(errnum == ENOENT ? NOT_FOUND_CODE : NOT_RUN_CODE);
}

/* Waits for the program and returns its exit code. If the client disconnects, kills the program's
 * process group. */
static int await_program(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
	struct pollfd fds[] = {{.fd = CLIENT_FD, .events = POLLIN},
			       {.fd = pidfd, .events = POLLIN}};

	while (pidfd >= 0 && fds[1].revents == 0) {
		if (poll(fds, HF_ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents == 0)
			continue;
		(void)kill(-pid, SIGKILL);
		(void)kill(pid, SIGKILL);
		fds[0].fd = -1;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

HF_NORETURN static void run_helper(const struct hf_exec *exec)
{
	pid_t pid;

	hf_child_signals(false);
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_files(exec);
	if (exec->probe) {
		int code = hf_shim_probe(exec->argv);

		/* Close the output before the exit code is sent, so that a reader sees the end of
		 * the output first. */
		for (int i = 0; i < 3; i++)
			(void)close(i);
		tell_client("exit", code, "");
		_exit(0);
	}
	enter_container(exec);
	pid = hf_shim_fork(0);
	if (pid < 0)
		fail_exec("cannot start a process");
	if (pid == 0)
		run_program(exec);
	/* Close the helper's copies of stdin, stdout and stderr, so that a reader of the output
	 * sees the end of file when the program ends. */
	for (int i = 0; i < 3; i++)
		(void)close(i);
	tell_client("started", (int)pid, "");
	tell_client("exit", await_program(pid), "");
	_exit(0);
}

int hf_exec_start(const struct hf_exec *exec)
{
	pid_t pid = hf_shim_fork(0);

	if (pid == 0)
		run_helper(exec);
	return pid < 0 ? -1 : 0;
}
