/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Job control: the terminal stops CMD, and the shell continues exec and CMD. */
#include "exec/state_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

void hf_exec_continue_cmd(struct hf_exec_run *x)
{
	if (x->foreground && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
		(void)tcsetpgrp(STDIN_FILENO, x->child);
		x->background = false;
	}
	(void)kill(x->group ? -x->child : x->child, SIGCONT);
}

/* Stops the process group of exec.  If CMD has a group of its own, the terminal's signal has not reached the other
 * programs of the pipeline.  False: the kernel did not stop the group, since no shell could continue it. */
static bool stop_group(int signum)
{
	const struct timespec none = {0};
	sigset_t set;

	(void)signal(signum, SIG_DFL);
	(void)kill(0, signum);
	sigemptyset(&set);
	sigaddset(&set, signum);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	/* Takes the pending SIGCONT: handled later, it would continue CMD after the next stop. */
	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	return sigtimedwait(&set, NULL, &none) == SIGCONT;
}

/* The terminal has stopped CMD (Ctrl-Z).  Stops exec too, since the shell waits for exec to stop, and continues
 * CMD afterwards. */
static void stop_too(struct hf_exec_run *x, int signum)
{
	int64_t since = hf_exec_clock_ms();
	/* With a fence exec does not stop: a stopped exec cannot watch the fence. */
	bool stopped = x->options->fence_s == 0 && stop_group(signum);
	pid_t foreground = x->foreground ? tcgetpgrp(STDIN_FILENO) : -1;

	x->now_ms = hf_exec_clock_ms();
	x->stopped_ms += x->now_ms - since;
	x->background = x->foreground && foreground != getpgrp() && foreground != x->child;
	/* A CMD that stopped because it needs the terminal would stop again at once. */
	if (stopped || signum == SIGTSTP)
		hf_exec_continue_cmd(x);
}

static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

void hf_exec_take_stop(struct hf_exec_run *x, pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	/* CMD may have ended since its stop; this call takes stops only. */
	if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) != 0 || info.si_pid != x->child ||
	    (x->ending != HF_EXEC_ENDS_ITSELF && x->ending != HF_EXEC_ENDS_TOLD))
		return;
	/* The sender of SIGSTOP continues CMD. */
	if (info.si_status != SIGSTOP && has_terminal())
		stop_too(x, info.si_status);
}
