/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec_internal.h"

#include "base/fs.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts CMD, and the process that asks for a dump.  In exec only this file forks and executes (tools/layers). */

#define PATTERN_BYTES_MAX 8192
#define PIPES_MAX 128 /* as many ranks as progress.h knows of */

/* Runs in the child: sets its parent's death signal, process group and stderr, and executes CMD.  All signals are
 * blocked, so tcsetpgrp() does not stop the child. */
HF_NORETURN static void run_child(const struct hf_exec_child *child, pid_t parent, int tell_fd)
{
	int err = 0;

	/* CMD dies with exec: without exec it would run without a fence. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(HF_EXEC_CODE_INTERNAL);
	if ((child->foreground || child->group) && setpgid(0, 0) == 0 && child->foreground)
		(void)tcsetpgrp(STDIN_FILENO, getpid());
	if (child->err_fd >= 0 && dup2(child->err_fd, STDERR_FILENO) < 0)
		err = errno;
	if (child->out_fd >= 0 && dup2(child->out_fd, STDOUT_FILENO) < 0)
		err = errno;
	if (err == 0) {
		(void)sigprocmask(SIG_SETMASK, child->mask, NULL);
		(void)execvp(child->argv[0], child->argv);
		err = errno;
	}
	(void)!write(tell_fd, &err, sizeof(err));
	_exit(HF_EXEC_CODE_INTERNAL);
}

/* Writes into the pipe of every rank. True: at least one pipe took the byte. */
static bool poke_pipes(const char *stem)
{
	glob_t found = {.gl_pathc = 0};
	HF_AUTO_STRBUF pattern = HF_STRBUF_INIT(PATTERN_BYTES_MAX);
	bool took = false;

	/* The stem itself may have characters of a pattern. */
	for (const char *at = stem; *at != '\0'; at++)
		hf_strbuf_addf(&pattern, "%s%c", strchr("*?[]\\", *at) != NULL ? "\\" : "", *at);
	hf_strbuf_addstr(&pattern, "[0-9]*.pipe");
	if (glob(pattern.data, GLOB_NOSORT, NULL, &found) != 0)
		return false;
	for (size_t i = 0; i < found.gl_pathc && i < PIPES_MAX; i++) {
		struct stat st;
		HF_AUTO_FD fd = open(found.gl_pathv[i],
				     O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
			took |= write(fd, "1", 1) == 1;
	}
	globfree(&found);
	return took;
}

int hf_exec_dumper_start(const char *stem, pid_t *ret_pid)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(getppid() == parent && poke_pipes(stem) ? 0 : 1);
	}
	*ret_pid = pid;
	return 0;
}

int hf_exec_child_start(const struct hf_exec_child *child, pid_t *ret_pid)
{
	pid_t parent = getpid(), pid;
	int tell[2], err = 0;
	ssize_t n;

	if (pipe2(tell, O_CLOEXEC) != 0)
		return errno;
	pid = fork();
	if (pid == 0)
		run_child(child, parent, tell[1]);
	if (pid < 0)
		err = errno;
	(void)close(tell[1]);
	/* If execvp() succeeds, the kernel closes the pipe and this read gets no data. */
	do
		n = read(tell[0], &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	(void)close(tell[0]);
	if (pid > 0 && err != 0)
		(void)waitpid(pid, NULL, 0);
	if (err == 0)
		*ret_pid = pid;
	return err;
}
