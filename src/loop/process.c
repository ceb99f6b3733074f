/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Child processes: spawn, wait, signal, and names that outlive this program. The only file of
 * Holdfast that calls fork and execve. Each child is held by a pidfd, so no signal can reach a
 * process that reused a pid. Between fork and exec only async-signal-safe calls are made. */
#include "loop/process.h"
#include "loop/loop_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/procstat.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD ((idtype_t)3) /* glibc defines P_PIDFD from 2.36 on */
#endif

#define PROC_TEXT_MAX 1024    /* bytes of /proc/PID/stat: 52 numbers and a name of 16 bytes */
#define PATH_TEXT_MAX 4096    /* PATH_MAX; for the path of a program found in PATH */
#define SIGNALS_MAX 64        /* _NSIG - 1 on every Linux architecture in use */
#define SELF "/proc/self/exe" /* the path of this program, also after its file was replaced */
#define FD_BASE 10            /* child fds move above this number before dup2 */

struct hf_process {
	struct hf_loop *loop;
	hf_process_fn fn;
	void *arg;
	struct hf_process_id id;
	int pidfd; /* descriptor of the process (pidfd); -1: the process has ended */
	struct hf_io *io;
	bool own_group;
	bool sweep;
	struct hf_process *orphan_prev, *orphan_next; /* links in loop->orphans */
};

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0u);
}

static int pidfd_signal(int pidfd, int signum)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, signum, NULL, 0u);
}

/* --- identity --- */

static int read_small(const char *path, char *ret_text, size_t size)
{
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t len = read(fd, ret_text, size - 1);
	if (len < 0)
		return -errno;
	ret_text[len] = '\0';
	return 0;
}

static int read_identity(pid_t pid, struct hf_process_id *ret_id, char *ret_state,
			 struct hf_error *err)
{
	struct hf_process_id id = {.pid = pid};
	char path[32], text[PROC_TEXT_MAX];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int rc = pid > 0 ? read_small(path, text, sizeof(text)) : -ENOENT;
	if (rc == -ENOENT || rc == -ESRCH)
		return hf_error_set(err, HF_E_NOT_FOUND, "no process %d", (int)pid);
	if (rc < 0)
		return hf_error_errno(err, -rc, "cannot read '%s'", path);
	const char *letter = hf_proc_stat_field(text, HF_PROC_STATE);
	const char *start = hf_proc_stat_field(text, HF_PROC_START_TICKS);
	if (!start)
		return hf_error_set(err, HF_E_INTERNAL, "cannot parse '%s'", path);
	*ret_state = *letter;
	id.start_ticks = strtoull(start, NULL, 10);
	rc = read_small("/proc/sys/kernel/random/boot_id", id.boot_id, sizeof(id.boot_id));
	if (rc < 0)
		return hf_error_errno(err, -rc, "cannot read the boot id");
	id.boot_id[strcspn(id.boot_id, "\n")] = '\0';
	*ret_id = id;
	return 0;
}

static bool state_is_alive(char state)
{
	return state != 'Z' && state != 'X';
}

int hf_process_id_get(pid_t pid, struct hf_process_id *ret_id, struct hf_error *err)
{
	struct hf_process_id id;
	char state = 'X';
	int rc = read_identity(pid, &id, &state, err);

	if (rc < 0)
		return rc;
	if (!state_is_alive(state))
		return hf_error_set(err, HF_E_NOT_FOUND, "process %d has ended", (int)pid);
	*ret_id = id;
	return 0;
}

bool hf_process_id_alive(const struct hf_process_id *id)
{
	struct hf_process_id now;

	return hf_process_id_get(id->pid, &now, NULL) == 0 && now.start_ticks == id->start_ticks &&
	       strcmp(now.boot_id, id->boot_id) == 0;
}

/* Opens a pidfd of exactly this process. The identity is checked after opening: then the pidfd
 * refers to the checked process, even if the kernel uses the pid again. */
static int open_identity(const struct hf_process_id *id, int *ret_pidfd, struct hf_error *err)
{
	HF_AUTO_FD pidfd = id->pid > 0 ? open_pidfd(id->pid) : -1;

	if (pidfd < 0 && id->pid > 0 && errno != ESRCH && errno != EINVAL)
		return hf_error_errno(err, errno, "cannot watch process %d", (int)id->pid);
	if (pidfd < 0 || !hf_process_id_alive(id))
		return hf_error_set(err, HF_E_NOT_FOUND, "process %d has ended", (int)id->pid);
	*ret_pidfd = pidfd;
	pidfd = -1;
	return 0;
}

int hf_process_id_kill(const struct hf_process_id *id, int signum, struct hf_error *err)
{
	HF_AUTO_FD pidfd = -1;
	int rc = open_identity(id, &pidfd, err);

	if (rc < 0)
		return rc;
	if (pidfd_signal(pidfd, signum) == 0)
		return 0;
	if (errno == ESRCH)
		return hf_error_set(err, HF_E_NOT_FOUND, "process %d has ended", (int)id->pid);
	return hf_error_errno(err, errno, "cannot send signal %d to process %d", signum,
			      (int)id->pid);
}

/* --- starting a child --- */

enum stage { STAGE_CHDIR, STAGE_STDIO, STAGE_SESSION, STAGE_FDS, STAGE_EXEC };

struct failure {
	int stage;
	int errnum;
};

struct launch {
	const struct hf_process_spec *spec;
	const char *path;
	const char *const *argv; /* the words of the spec, except the first */
	char *const *env;
	/* A successful exec closes this fd; if the start fails, the child writes a struct failure
	 * to it. */
	int report_fd;
	pid_t parent;
};

HF_NORETURN static void child_fail(int report_fd, enum stage stage)
{
	struct failure failure = {.stage = (int)stage, .errnum = errno};
	ssize_t written = write(report_fd, &failure, sizeof(failure));

	_exit(written == (ssize_t)sizeof(failure) ? 127 : 126);
}

/* Sets the child's fds 0, 1 and 2. A source fd may itself be 0, 1 or 2, so all sources are first
 * duplicated above FD_BASE. */
static void child_stdio(const struct launch *launch)
{
	int from[3];

	for (int i = 0; i < 3; i++) {
		int fd = launch->spec->stdio[i];
		int opened = fd < 0 ? open("/dev/null", O_RDWR) : fd;

		from[i] = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, FD_BASE);
		if (from[i] < 0)
			child_fail(launch->report_fd, STAGE_STDIO);
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(from[i], i) < 0)
			child_fail(launch->report_fd, STAGE_STDIO);
	}
}

/* The limit of open files at program start; valid if files_raised. */
static struct rlimit files_before;
static bool files_raised;

void hf_process_raise_files(void)
{
	struct rlimit limit;

	if (files_raised || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    limit.rlim_cur >= limit.rlim_max)
		return;
	files_before = limit;
	limit.rlim_cur = limit.rlim_max;
	files_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static void child_signals(void)
{
	struct sigaction action;
	sigset_t none;

	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	for (int i = 1; i <= SIGNALS_MAX; i++)
		(void)sigaction(i, &action, NULL); /* fails for SIGKILL, SIGSTOP and the signals
		                                    * that libc reserves */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs between fork and exec. Other threads (libcurl's resolver) may have held locks at the fork,
 * so only async-signal-safe calls and no allocation. */
HF_NORETURN static void child_main(const struct launch *launch)
{
	const struct hf_process_spec *spec = launch->spec;
	int report_fd = launch->report_fd;

	child_signals();
	if (files_raised)
		(void)setrlimit(RLIMIT_NOFILE, &files_before);
	if (spec->die_with_parent) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != launch->parent)
			_exit(126);
	}
	if (spec->new_session ? setsid() < 0 : spec->new_group && setpgid(0, 0) < 0)
		child_fail(report_fd, STAGE_SESSION);
	/* Move the report fd out of the range 0 to 2, which child_stdio overwrites. */
	report_fd = fcntl(report_fd, F_DUPFD_CLOEXEC, FD_BASE);
	if (report_fd < 0)
		child_fail(launch->report_fd, STAGE_FDS);
	struct launch moved = *launch;
	moved.report_fd = report_fd;
	child_stdio(&moved);
	if (dup3(report_fd, 3, O_CLOEXEC) < 0 || syscall(SYS_close_range, 4u, ~0u, 0u) < 0)
		child_fail(report_fd, STAGE_FDS);
	if (spec->cwd && chdir(spec->cwd) < 0)
		child_fail(3, STAGE_CHDIR);
	execve(launch->path, (char *const *)(uintptr_t)launch->argv, launch->env);
	child_fail(3, STAGE_EXEC);
}

static int set_launch_error(const struct launch *launch, const struct failure *failure,
			    struct hf_error *err)
{
	const char *program = launch->spec->argv[0];
	int code =
		failure->errnum == ENOENT || failure->errnum == ENOTDIR ? HF_E_NOT_FOUND : HF_E_IO;

	switch ((enum stage)failure->stage) {
	case STAGE_CHDIR:
		hf_error_errno(err, failure->errnum, "cannot start '%s' in '%s'", program,
			       launch->spec->cwd);
		break;
	case STAGE_STDIO:
	case STAGE_FDS:
		hf_error_errno(err, failure->errnum,
			       "cannot start '%s': cannot set up its standard fds", program);
		code = HF_E_IO;
		break;
	case STAGE_SESSION:
		hf_error_errno(err, failure->errnum,
			       "cannot start '%s' in a session or group of its own", program);
		break;
	case STAGE_EXEC: hf_error_errno(err, failure->errnum, "cannot start '%s'", program); break;
	}
	if (err)
		err->code = code;
	return code;
}

static const char *env_get(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}

/* Searches PATH as execvp does, but only its absolute folders: a relative folder such as "." could
 * be another folder in the child, which may have another working directory. */
static int find_program(const char *name, const char *path, char ret_path[PATH_TEXT_MAX],
			struct hf_error *err)
{
	for (const char *dir = hf_str_or(path, "/usr/local/bin:/usr/bin:/bin"); *dir;) {
		size_t len = strcspn(dir, ":");
		struct stat st;

		int n = snprintf(ret_path, PATH_TEXT_MAX, "%.*s/%s", (int)len, dir, name);
		if (dir[0] == '/' && n < PATH_TEXT_MAX && access(ret_path, X_OK) == 0 &&
		    stat(ret_path, &st) == 0 && S_ISREG(st.st_mode))
			return 0;
		dir += len + (dir[len] == ':');
	}
	return hf_error_set(err, HF_E_NOT_FOUND, "no program '%s' in PATH", name);
}

/* Forks with every signal blocked: a signal handler of this program must not run in the child. */
static pid_t fork_child(struct launch *launch)
{
	sigset_t all, before;

	sigfillset(&all);
	int rc = pthread_sigmask(SIG_SETMASK, &all, &before);
	hf_assert(rc == 0);
	pid_t pid = fork();
	if (pid == 0)
		child_main(launch);
	int saved = errno;
	rc = pthread_sigmask(SIG_SETMASK, &before, NULL);
	hf_assert(rc == 0);
	errno = saved;
	return pid;
}

static void reap_now(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Starts the child and waits until its exec succeeded or failed; this takes about as long as the
 * fork. */
static int launch_child(struct launch *launch, pid_t *ret_pid, struct hf_error *err)
{
	int report[2];

	if (pipe2(report, O_CLOEXEC) < 0)
		return hf_error_errno(err, errno, "cannot make a pipe");
	launch->report_fd = report[1];
	launch->parent = getpid();
	pid_t pid = fork_child(launch);
	int errnum = errno;
	close(report[1]);
	HF_AUTO_FD from = report[0];
	if (pid < 0)
		return hf_error_errno(err, errnum, "cannot fork");

	struct failure failure;
	ssize_t len;
	do {
		len = read(from, &failure, sizeof(failure));
	} while (len < 0 && errno == EINTR);
	if (len == (ssize_t)sizeof(failure)) {
		reap_now(pid);
		return set_launch_error(launch, &failure, err);
	}
	*ret_pid = pid;
	return 0;
}

/* --- a process being watched --- */

static void on_pidfd(void *arg, unsigned events);

static int watch_pidfd(struct hf_process *process, struct hf_error *err)
{
	int rc = hf_io_create(process->loop, process->pidfd, on_pidfd, process, &process->io, err);

	if (rc < 0)
		return rc;
	hf_io_want(process->io, HF_IO_READ);
	process->loop->objects++;
	return 0;
}

static int watch_child(struct hf_process *process, pid_t pid, struct hf_error *err)
{
	char state;

	process->pidfd = open_pidfd(pid);
	if (process->pidfd < 0)
		return hf_error_errno(err, errno, "cannot watch process %d", (int)pid);
	/* The child may be a zombie already; a zombie still has its identity. */
	int rc = read_identity(pid, &process->id, &state, err);
	return rc < 0 ? rc : watch_pidfd(process, err);
}

/* Returns the words for the child. A child that is this program itself (SELF) gets its name as the first
 * word, so that ps shows the name. The caller frees the list, but not the words. */
static const char **copy_words(const char *const *argv)
{
	const char **words;
	size_t n = 0;

	while (argv[n])
		n++;
	words = hf_xcalloc(n + 1, sizeof(*words));
	memcpy(words, argv, n * sizeof(*words));
	if (hf_streq(argv[0], SELF))
		words[0] = program_invocation_short_name;
	return words;
}

int hf_process_spawn(struct hf_loop *loop, const struct hf_process_spec *spec, hf_process_fn fn,
		     void *arg, struct hf_process **ret_process, struct hf_error *err)
{
	char found[PATH_TEXT_MAX];
	struct launch launch = {.spec = spec, .path = spec->argv[0]};
	HF_AUTOFREE const char **words = NULL;
	pid_t pid = -1;
	int rc = 0;

	hf_assert(spec->argv && spec->argv[0] && fn);
	hf_assert(!spec->sweep_group || spec->new_group || spec->new_session);
	if (!hf_loop_is_real(loop))
		return hf_error_set(err, HF_E_UNSUPPORTED, "a virtual loop starts no processes");
	launch.argv = words = copy_words(spec->argv);
	launch.env = spec->env ? (char *const *)(uintptr_t)spec->env : environ;
	if (spec->search_path && !strchr(launch.path, '/')) {
		rc = find_program(launch.path, env_get(launch.env, "PATH"), found, err);
		launch.path = found;
	}
	if (rc == 0)
		rc = launch_child(&launch, &pid, err);
	if (rc < 0)
		return rc;

	struct hf_process *process = hf_xcalloc(1, sizeof(*process));
	process->loop = loop;
	process->fn = fn;
	process->arg = arg;
	process->own_group = spec->new_session || spec->new_group;
	process->sweep = spec->sweep_group;
	rc = watch_child(process, pid, err);
	if (rc < 0) {
		kill(pid, SIGKILL);
		reap_now(pid);
		hf_fd_cleanup(&process->pidfd);
		free(process);
		return rc;
	}
	*ret_process = process;
	return 0;
}

static void stop_watching(struct hf_process *process)
{
	process->io = hf_io_destroy(process->io);
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->pidfd = -1;
}

static void orphan_remove(struct hf_process *process)
{
	if (process->orphan_prev)
		process->orphan_prev->orphan_next = process->orphan_next;
	else
		process->loop->orphans = process->orphan_next;
	if (process->orphan_next)
		process->orphan_next->orphan_prev = process->orphan_prev;
	stop_watching(process);
	free(process);
}

void hf_process_drop_orphans(struct hf_loop *loop)
{
	struct hf_process *next;

	for (struct hf_process *orphan = loop->orphans; orphan; orphan = next) {
		next = orphan->orphan_next;
		orphan_remove(orphan);
	}
}

/* Returns false if the process has not ended. */
static bool reap_ended(struct hf_process *process, struct hf_process_exit *ret_exit)
{
	struct hf_process_exit ended = {.code = -1};
	siginfo_t info;

	/* The zombie still holds its pid, so the group number cannot belong to another group. */
	if (process->sweep)
		(void)kill(-process->id.pid, SIGKILL);
	memset(&info, 0, sizeof(info));
	int rc = waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG);
	if (rc == 0 && info.si_pid == 0)
		return false;
	/* If another wait() reaped the child (ECHILD), its exit status is unknown. */
	ended.known = rc == 0;
	if (rc == 0 && info.si_code == CLD_EXITED)
		ended.code = info.si_status;
	else if (rc == 0)
		ended.signum = info.si_status;
	*ret_exit = ended;
	return true;
}

static void on_pidfd(void *arg, unsigned events)
{
	struct hf_process *process = arg;
	struct hf_process_exit ended;

	if (!reap_ended(process, &ended))
		return;
	if (!process->fn) {
		orphan_remove(process);
		return;
	}
	stop_watching(process);
	process->fn(process->arg, &ended);
}

struct hf_process *hf_process_destroy(struct hf_process *process)
{
	if (!process)
		return NULL;
	struct hf_loop *loop = process->loop;

	hf_assert(loop->objects > 0);
	loop->objects--;
	if (hf_process_ended(process)) {
		stop_watching(process);
		free(process);
		return NULL;
	}
	process->fn = NULL;
	process->orphan_next = loop->orphans;
	if (loop->orphans)
		loop->orphans->orphan_prev = process;
	loop->orphans = process;
	hf_io_detach(process->io);
	return NULL;
}

pid_t hf_process_pid(const struct hf_process *process)
{
	return process->id.pid;
}

bool hf_process_ended(const struct hf_process *process)
{
	return process->pidfd < 0;
}

int hf_process_kill(struct hf_process *process, int signum, struct hf_error *err)
{
	if (hf_process_ended(process) || pidfd_signal(process->pidfd, signum) == 0 ||
	    errno == ESRCH)
		return 0;
	return hf_error_errno(err, errno, "cannot send signal %d to process %d", signum,
			      (int)process->id.pid);
}

int hf_process_kill_group(struct hf_process *process, int signum, struct hf_error *err)
{
	hf_assert(process->own_group);
	if (hf_process_ended(process))
		return hf_error_set(err, HF_E_NOT_FOUND, "process %d has ended",
				    (int)process->id.pid);
	if (kill(-process->id.pid, signum) == 0 || errno == ESRCH)
		return 0;
	return hf_error_errno(err, errno, "cannot send signal %d to process group %d", signum,
			      (int)process->id.pid);
}
