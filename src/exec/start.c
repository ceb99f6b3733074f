/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec_internal.h"

#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts CMD.  In exec only this file forks and executes (tools/layers). */

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
	if (err == 0) {
		(void)sigprocmask(SIG_SETMASK, child->mask, NULL);
		(void)execvp(child->argv[0], child->argv);
		err = errno;
	}
	(void)!write(tell_fd, &err, sizeof(err));
	_exit(HF_EXEC_CODE_INTERNAL);
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
