/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The first process of a container, called "init" below. It sets up mounts, starts the program,
 * passes signals on to it, reaps orphans, and reports how the program ended. When init ends, all
 * processes of the container end: the kernel kills them if there is a process namespace; otherwise
 * init kills them first. When the shim ends, the kernel kills init.
 */
#define CHILDREN_FILE_BYTES_MAX ((size_t)1 << 20)

/* The message of a failed step in the program's own process, sent to init through a pipe. A
 * successful exec closes the pipe, so that no message means success. */
struct complaint {
	int errnum;
	char stage[32];
};

static void send_report(int fd, const struct hf_child_report *r)
{
	/* The write needs no check: a pipe takes a report as a whole, and without a shim no
	 * process reads it. */
	(void)!write(fd, r, sizeof(*r));
}

HF_NORETURN static void report_failure(int fd, const char *text)
{
	struct hf_child_report r = {.type = HF_CHILD_FAILED, .code = HF_START_FAILED_CODE};

	(void)snprintf(r.text, sizeof(r.text), "%s", text);
	send_report(fd, &r);
	_exit(HF_START_FAILED_CODE);
}

/* --- descendants, without a process namespace --- */

static bool is_kept(pid_t pid, const pid_t *keep, size_t n_keep)
{
	for (size_t i = 0; i < n_keep; i++)
		if (keep[i] == pid)
			return true;
	return false;
}

/* Sends SIGKILL to all children except those in keep. Returns their number. */
static size_t kill_children(const pid_t *keep, size_t n_keep)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(CHILDREN_FILE_BYTES_MAX);
	char path[64];
	char *rest, *word;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (hf_fs_read(path, &text, NULL) != 0)
		return 0;
	rest = text.data;
	while ((word = strsep(&rest, " \n"))) {
		int64_t pid;

		if (hf_str_to_i64(word, 2, INT32_MAX, &pid, NULL) != 0 ||
		    is_kept((pid_t)pid, keep, n_keep))
			continue;
		(void)kill((pid_t)pid, SIGKILL);
		(void)waitpid((pid_t)pid, NULL, 0);
		n++;
	}
	return n;
}

void hf_child_kill_strays(const pid_t *keep, size_t n_keep)
{
	while (kill_children(keep, n_keep) > 0)
		;
}

/* --- the program --- */

void hf_child_signals(bool blocked)
{
	sigset_t set;

	for (int signum = 1; signum < NSIG; signum++)
		(void)signal(signum, SIG_DFL);
	if (blocked)
		sigfillset(&set);
	else
		sigemptyset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
}

HF_NORETURN static void send_complaint(int fd, const char *stage)
{
	struct complaint c = {.errnum = errno};

	(void)snprintf(c.stage, sizeof(c.stage), "%s", stage);
	(void)!write(fd, &c, sizeof(c));
	_exit(HF_START_FAILED_CODE);
}

const char *hf_child_change_user(const struct hf_run *run)
{
	gid_t groups[HF_RUN_GROUPS_MAX];

	if (run->uid < 0 && run->gid < 0 && run->n_groups == 0)
		return NULL;
	for (size_t i = 0; i < run->n_groups; i++)
		groups[i] = (gid_t)run->groups[i];
	/* Drop the supplementary groups only as root: in an unprivileged user namespace setgroups
	 * is forbidden, and there are no groups to drop. */
	if (geteuid() == 0 && setgroups(run->n_groups, groups) < 0)
		return "set groups";
	if (run->gid >= 0 && setresgid((gid_t)run->gid, (gid_t)run->gid, (gid_t)run->gid) < 0)
		return "set group";
	if (run->uid >= 0 && setresuid((uid_t)run->uid, (uid_t)run->uid, (uid_t)run->uid) < 0)
		return "set user";
	return NULL;
}

HF_NORETURN static void become_program(const struct hf_child *child, int complaints)
{
	const struct hf_run *run = child->run;
	const char *stage;

	(void)setsid();
	if (dup2(child->out, STDOUT_FILENO) < 0 || dup2(child->err, STDERR_FILENO) < 0)
		send_complaint(complaints, "set up output");
	stage = hf_child_change_user(run);
	if (stage)
		send_complaint(complaints, stage);
	/* Set this signal after the change of user: the change makes the kernel reset it. */
	if (!child->pod->pid_ns)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (run->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		send_complaint(complaints, "give up privileges");
	if (chdir(run->cwd ? run->cwd : "/") < 0)
		send_complaint(complaints, "chdir");
	(void)umask(022);
	hf_child_signals(false);
	errno = hf_shim_exec(run->argv, run->env);
	send_complaint(complaints, "exec");
}

/* Writes the message for a failed start, in the words of upstream's container runtimes. */
static void describe_complaint(const struct hf_run *run, const struct complaint *c, char *text,
			       size_t size)
{
	const char *reason = strerror(c->errnum);

	if (hf_streq(c->stage, "exec")) {
		if (c->errnum == ENOENT && !strchr(run->argv[0], '/'))
			reason = "executable file not found in $PATH";
		(void)snprintf(text, size, "exec: \"%.200s\": %s", run->argv[0], reason);
	} else if (hf_streq(c->stage, "chdir")) {
		(void)snprintf(text, size, "workingDir \"%.200s\": %s", run->cwd ? run->cwd : "/",
			       reason);
	} else {
		(void)snprintf(text, size, "cannot %s: %s", c->stage, reason);
	}
}

static pid_t start_program(const struct hf_child *child)
{
	char text[HF_JOURNAL_TEXT_MAX];
	struct complaint c;
	int fds[2];
	pid_t pid;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC) < 0 || (pid = hf_shim_fork(0)) < 0) {
		(void)snprintf(text, sizeof(text), "cannot fork: %s", strerror(errno));
		report_failure(child->report, text);
	}
	if (pid == 0)
		become_program(child, fds[1]);
	(void)close(fds[1]);
	do
		n = read(fds[0], &c, sizeof(c));
	while (n < 0 && errno == EINTR);
	(void)close(fds[0]);
	if (n == (ssize_t)sizeof(c)) {
		describe_complaint(child->run, &c, text, sizeof(text));
		report_failure(child->report, text);
	}
	return pid;
}

/* --- init --- */

static void replace_fd(int fd, int with)
{
	if (dup2(with, fd) < 0)
		_exit(HF_START_FAILED_CODE);
}

static bool is_kept_fd(const struct hf_child *child, int fd)
{
	return fd == child->out || fd == child->err || fd == child->report || fd == child->lifeline;
}

/* Closes descriptors that init inherited: the shim's locks and sockets and the pipes of other
 * containers would stay open as long as init lives. */
static void close_all_but(const struct hf_child *child)
{
	unsigned first = 3;

	for (int fd = 3; fd <= 4096; fd++) {
		if (!is_kept_fd(child, fd))
			continue;
		if ((unsigned)fd > first)
			(void)close_range(first, (unsigned)fd - 1, 0);
		first = (unsigned)fd + 1;
	}
	(void)close_range(first, ~0u, 0);
}

static void tie_to_shim(const struct hf_child *child)
{
	struct pollfd lifeline = {.fd = child->lifeline, .events = POLLIN};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Exit if the shim has already died: then the kernel sends no signal. The pipe lifeline
	 * shows its end. */
	if (poll(&lifeline, 1, 0) > 0)
		_exit(HF_START_FAILED_CODE);
	if (!child->pod->pid_ns)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void set_up(const struct hf_child *child)
{
	struct hf_mount_plan plan = {
		.pod_dir = child->pod_dir,
		.proc = child->pod->pid_ns,
		.mounts = child->run->mounts,
		.n_mounts = child->run->n_mounts,
		.read_only_root = child->run->read_only_root,
	};
	struct hf_error err;

	if (hf_cgroup_join(child->cgroup, &err) != 0)
		report_failure(child->report, err.text);
	if (!child->pod->isolate)
		return;
	if (hf_mounts_apply(&plan, &err) != 0)
		report_failure(child->report, err.text);
}

HF_NORETURN static void finish_init(const struct hf_child *child, int status)
{
	struct hf_child_report r = {.type = HF_CHILD_EXITED};

	if (!child->pod->pid_ns)
		hf_child_kill_strays(NULL, 0);
	if (WIFSIGNALED(status))
		r.signum = WTERMSIG(status);
	else
		r.code = WEXITSTATUS(status);
	send_report(child->report, &r);
	_exit(0);
}

HF_NORETURN static void watch_program(const struct hf_child *child, pid_t program)
{
	sigset_t all;

	sigfillset(&all);
	for (;;) {
		siginfo_t info;
		int signum, status;
		pid_t pid;

		do {
			pid = waitpid(-1, &status, WNOHANG);
			if (pid == program)
				finish_init(child, status);
		} while (pid > 0);
		signum = sigwaitinfo(&all, &info);
		if (signum > 0 && signum != SIGCHLD)
			(void)kill(program, signum);
	}
}

HF_NORETURN static void init_main(const struct hf_child *child)
{
	struct hf_child_report started = {.type = HF_CHILD_STARTED};
	pid_t program;
	int null;

	/* Block all signals: watch_program waits for them. Unblocked, the first process of a
	 * process namespace would ignore some of them. */
	hf_child_signals(true);
	(void)setsid();
	close_all_but(child);
	tie_to_shim(child);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		report_failure(child->report, "cannot open /dev/null");
	replace_fd(STDIN_FILENO, null);
	replace_fd(STDOUT_FILENO, null);
	replace_fd(STDERR_FILENO, null);
	set_up(child);
	program = start_program(child);
	(void)close(child->out);
	(void)close(child->err);
	send_report(child->report, &started);
	watch_program(child, program);
}

pid_t hf_child_start(const struct hf_child *child)
{
	unsigned long namespaces = 0;
	sigset_t all, before;
	pid_t pid;

	if (child->pod->isolate)
		namespaces |= CLONE_NEWNS;
	if (child->pod->pid_ns)
		namespaces |= CLONE_NEWPID;
	/* Block the signals before init exists: it begins with the signal handlers of the shim, which
	 * ignores SIGTERM. A SIGTERM that comes early waits for watch_program. */
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = hf_shim_fork(namespaces);
	if (pid == 0)
		init_main(child);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}
