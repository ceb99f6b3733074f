/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec_internal.h"

#include "base/str.h"
#include "exec/progress.h"
#include "exec/rest.h"
#include "exec/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An agent calls a rank lost that says nothing for 30 s. */
#define BEAT_MS 5000
/* Of others', too: who floods our socket does not hold up the fence. */
#define REPORTS_AT_ONCE 1024
/* Steps faster than this are told in part: the last always. */
#define STEP_GAP_MS 20
/* A program's attempt below that is a count of its restarts under us, no time or other large number. */
#define RESTARTS_MAX 1000
/* After each SIGABRT, which makes interpreters print their stacks. */
#define STACKS_MS 10000
/* More than this beyond what was asked for is time that we did not have. */
#define FROZEN_MS 2000
/* The operator takes the rank for stopped ten seconds after the fence's limit. */
#define FENCE_LOOK_MS 1000
/* What SIGKILL has not ended by then waits for a disk or a driver, and may wait for ever. */
#define REST_MS 5000
#define REST_LOOK_MS 5
/* For what is left in the pipe once CMD has ended, while nobody reads our stderr. */
#define DRAIN_MS 2000
/* poll() calls a pipe writable when so much fits. */
#define CHUNK 4096

/* See causes_since_s(). */
#define CAUSE_S 60
#define CAUSE_STANDS_S 3600
#define STEP_ENDS_S 5

enum ending { ENDS_ITSELF, ENDS_TOLD, ENDS_HUNG, ENDS_FENCED };

struct exec {
	const struct hf_exec_options *options;
	struct hf_exec_link link;
	struct hf_tail tail;
	struct hf_fence fence;
	int signal_fd, err_fd; /* -1: stderr is CMD's own */
	int out_fd;            /* our stderr, where writing never blocks */
	char chunk[CHUNK];     /* of CMD's stderr, on its way to ours */
	size_t chunk_len, chunk_at;
	pid_t child;
	bool ended, over; /* over: it will not be waited for */
	int status;
	size_t left; /* processes that outlive us */
	enum ending ending;
	bool foreground, group, killed;
	bool stopped;    /* until the ranks below CMD have printed their stacks */
	bool background; /* the shell went on with us there */
	uint64_t attempt;
	int64_t now_ms, beat_at_ms, kill_at_ms, fence_at_ms;
	int64_t stopped_ms; /* of which CMD had nothing */
	int64_t step_ms;    /* some rank advanced */
	int64_t signal_ms;  /* of what told it to end, on the clock without those */
	int signal;
	struct hf_progress progress;
	int32_t hung_rank; /* -1: all, or it has no number */
	bool any_step, step_waits;
	struct hf_beat step; /* the last one */
	int64_t told_at_ms;
};

static int64_t clock_ms(void)
{
	struct timespec ts;

	/* A machine that slept has let the time pass for its peers too. */
	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- the agent --------------------------------------------------------------------------------- */

static void tell_step(struct exec *x)
{
	x->step_waits = false;
	x->told_at_ms = x->now_ms;
	(void)hf_exec_link_send(&x->link, &x->step);
}

/* The time that CMD had. */
static int64_t running_ms(const struct exec *x)
{
	return x->now_ms - x->stopped_ms;
}

static void take_reports(struct exec *x)
{
	int64_t advanced_ms = x->progress.advanced_ms;
	struct hf_beat beat;
	int left = REPORTS_AT_ONCE;
	pid_t pid;

	while (hf_exec_link_receive(&x->link, &left, &beat, &pid)) {
		/* That it lives we say ourselves, and it is no step: a thread of its own may say it. */
		if (!beat.has_step)
			continue;
		/* Several ranks report through us: none's last step is lost. */
		if (x->step_waits && beat.rank != x->step.rank)
			tell_step(x);
		/* What a launcher inside counts begins anew with each container. */
		if (beat.attempt < RESTARTS_MAX)
			beat.attempt += x->attempt;
		/* Not the program's to say. */
		beat.fence_s = 0;
		hf_progress_take(&x->progress, "/proc", &beat, pid, running_ms(x));
		if (x->ending == ENDS_TOLD &&
		    hf_progress_outlives(&x->progress, x->signal, x->signal_ms))
			x->ending = ENDS_ITSELF;
		x->any_step = true;
		x->step = beat;
		x->step_waits = true;
		if (x->now_ms - x->told_at_ms >= STEP_GAP_MS)
			tell_step(x);
	}
	if (x->progress.advanced_ms != advanced_ms)
		x->step_ms = x->now_ms;
}

static void beat(struct exec *x)
{
	/* An agent that was renewed learns from it where we stand. */
	struct hf_beat alive =
		x->any_step ? x->step : (struct hf_beat){.rank = -1, .attempt = x->attempt};

	if (x->step_waits && x->now_ms - x->told_at_ms >= STEP_GAP_MS)
		tell_step(x);
	if (x->now_ms < x->beat_at_ms)
		return;
	alive.fence_s = x->options->fence_s;
	(void)hf_exec_link_send(&x->link, &alive);
	x->beat_at_ms = x->now_ms + BEAT_MS;
}

/* ---- CMD --------------------------------------------------------------------------------------- */

/* CMD has the terminal, where we have it to give. */
static void go_on(struct exec *x)
{
	if (x->foreground && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
		(void)tcsetpgrp(STDIN_FILENO, x->child);
		x->background = false;
	}
	(void)kill(x->group ? -x->child : x->child, SIGCONT);
}

/* All of our group stops, and what stands beside us in a pipe with it: it got no signal where CMD has a
 * group of its own.  False: it did not, for there is no shell that would continue it. */
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
	/* Taken here: later it would undo the next stop. */
	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	return sigtimedwait(&set, NULL, &none) == SIGCONT;
}

/* CMD was stopped by the terminal (Ctrl-Z), and the shell waits for us. */
static void stop_too(struct exec *x, int signum)
{
	int64_t since = clock_ms();
	/* Nobody could watch the fence meanwhile. */
	bool stopped = x->options->fence_s == 0 && stop_group(signum);
	pid_t foreground = x->foreground ? tcgetpgrp(STDIN_FILENO) : -1;

	x->now_ms = clock_ms();
	x->stopped_ms += x->now_ms - since;
	x->background = x->foreground && foreground != getpgrp() && foreground != x->child;
	/* What stops for want of the terminal would do so again. */
	if (stopped || signum == SIGTSTP)
		go_on(x);
}

static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static void take_stop(struct exec *x, pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	/* Not its end, if it has come since. */
	if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) != 0 || info.si_pid != x->child ||
	    (x->ending != ENDS_ITSELF && x->ending != ENDS_TOLD))
		return;
	/* Whoever sends SIGSTOP continues it. */
	if (info.si_status != SIGSTOP && has_terminal())
		stop_too(x, info.si_status);
}

static void reap(struct exec *x)
{
	int status;

	for (;;) {
		siginfo_t info = {.si_pid = 0};

		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
		    info.si_pid == 0)
			return;
		if (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED) {
			take_stop(x, info.si_pid);
			continue;
		}
		/* Once reaped it is nobody's, and its last words would be a stranger's. */
		take_reports(x);
		if (waitpid(info.si_pid, &status, WNOHANG) != info.si_pid)
			return;
		if (info.si_pid != x->child)
			continue;
		x->ended = true;
		x->status = status;
	}
}

static bool ends(uint32_t signum)
{
	return signum == SIGTERM || signum == SIGINT || signum == SIGHUP || signum == SIGQUIT;
}

static void take_end(struct exec *x, int signum)
{
	x->ending = ENDS_TOLD;
	x->signal = signum;
	x->signal_ms = running_ms(x);
}

static void on_signals(struct exec *x)
{
	struct signalfd_siginfo info;

	while (read(x->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(x);
			continue;
		}
		/* Of our own writes, and of a terminal whose foreground is CMD's. */
		if (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGTTOU ||
		    info.ssi_signo == SIGTTIN)
			continue;
		if (info.ssi_signo == SIGCONT && !x->ended) {
			go_on(x);
			continue;
		}
		/* A script that ends all of its group ends us with it: that is its own end. */
		if (ends(info.ssi_signo) && (x->ending == ENDS_ITSELF || x->ending == ENDS_TOLD) &&
		    !hf_rest_is_below("/proc", (pid_t)info.ssi_pid))
			take_end(x, (int)info.ssi_signo);
		if (!x->ended)
			(void)kill(x->child, (int)info.ssi_signo);
	}
}

static void abort_cmd(struct exec *x)
{
	x->stopped = false;
	x->kill_at_ms = x->now_ms + STACKS_MS;
	(void)kill(x->child, SIGABRT);
	(void)kill(x->child, SIGCONT);
}

/* The stacks that are wanted are those of who hangs.  A launcher above stands still meanwhile: one that lost
 * its ranks would begin them anew, end those that have not printed theirs, or call it well. */
static void abort_ranks(struct exec *x)
{
	x->ending = ENDS_HUNG;
	if (hf_progress_signal(&x->progress, "/proc", x->child, 0) == 0) {
		abort_cmd(x);
		return;
	}
	x->stopped = true;
	x->kill_at_ms = x->now_ms + STACKS_MS;
	(void)kill(x->child, SIGSTOP);
	(void)hf_progress_signal(&x->progress, "/proc", x->child, SIGABRT);
}

static void end_hung(struct exec *x)
{
	bool late = x->now_ms >= x->kill_at_ms;

	if (x->stopped) {
		if (late || hf_progress_signal(&x->progress, "/proc", x->child, 0) == 0)
			abort_cmd(x);
	} else if (late) {
		/* Once was enough, if anything is. */
		x->over = x->killed;
		x->killed = true;
		(void)kill(x->child, SIGKILL);
		x->kill_at_ms = x->now_ms + STACKS_MS;
	}
}

static void watch_for_hang(struct exec *x)
{
	if (x->ending == ENDS_HUNG)
		end_hung(x);
	else if (x->options->hang_after_s > 0 && x->ending == ENDS_ITSELF &&
		 hf_progress_stalls(&x->progress, "/proc", running_ms(x),
				    (int64_t)x->options->hang_after_s * 1000, &x->hung_rank))
		abort_ranks(x);
}

/* At once, and without a word: what it would still write, another may be writing by now. */
static void watch_for_contact(struct exec *x)
{
	if (x->options->fence_s == 0 || x->now_ms < x->fence_at_ms)
		return;
	x->fence_at_ms = x->now_ms + FENCE_LOOK_MS;
	if (hf_fence_holds(&x->fence, clock_ms()))
		return;
	x->ending = ENDS_FENCED;
	x->over = true;
}

/* Of what CMD left behind we are the parent now; in a container all of it would die with us.  None of
 * them holds up the others' end: all are told first, and again as long as any runs. */
static void end_rest(struct exec *x)
{
	int64_t until = clock_ms() + REST_MS;

	if (x->group && !x->ended)
		(void)kill(-x->child, SIGKILL);
	if (!x->ended)
		(void)kill(x->child, SIGKILL);
	for (;;) {
		x->left = hf_rest_kill("/proc");
		reap(x);
		if (x->left == HF_REST_UNKNOWN)
			x->left = x->ended ? 0 : 1;
		if (x->left == 0 || clock_ms() >= until)
			break;
		(void)poll(NULL, 0, REST_LOOK_MS);
	}
	/* The one that a stranger traces is reaped by nobody. */
	if (!x->ended)
		x->status = SIGKILL;
	x->ended = true;
}

/* ---- stderr ------------------------------------------------------------------------------------ */

static void stop_reading(struct exec *x)
{
	(void)close(x->err_fd);
	x->err_fd = -1;
	hf_tail_end(&x->tail, x->now_ms / 1000);
}

static void read_stderr(struct exec *x)
{
	ssize_t n = read(x->err_fd, x->chunk, sizeof(x->chunk));

	if (n > 0) {
		hf_tail_add(&x->tail, x->chunk, (size_t)n, x->now_ms / 1000);
		x->chunk_len = (size_t)n;
		x->chunk_at = 0;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		stop_reading(x);
	} else if (x->ended) {
		/* Nothing is left, and who may still hold the other end is not waited for. */
		stop_reading(x);
	}
}

static void write_stderr(struct exec *x)
{
	ssize_t n = write(x->out_fd, x->chunk + x->chunk_at, x->chunk_len - x->chunk_at);

	if (n > 0) {
		x->chunk_at += (size_t)n;
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		x->chunk_len = x->chunk_at = 0;
		/* Who writes to a stderr that nobody reads is to notice. */
		if (errno == EPIPE && x->err_fd >= 0)
			stop_reading(x);
	}
	if (x->chunk_at == x->chunk_len)
		x->chunk_at = x->chunk_len = 0;
}

/* ---- the loop ---------------------------------------------------------------------------------- */

static int until_next(const struct exec *x)
{
	int64_t at = x->beat_at_ms;

	if (x->step_waits && x->told_at_ms + STEP_GAP_MS < at)
		at = x->told_at_ms + STEP_GAP_MS;
	if (x->options->hang_after_s > 0 && x->now_ms + 1000 < at)
		at = x->now_ms + 1000;
	if (x->options->fence_s > 0 && x->fence_at_ms < at)
		at = x->fence_at_ms;
	return at > x->now_ms ? (int)(at - x->now_ms) : 0;
}

/* Where we did not run, CMD did not either: the container was frozen, or the machine slept. */
static void take_time(struct exec *x, int waited_ms)
{
	int64_t now = clock_ms(), missed = now - x->now_ms - waited_ms;

	if (missed > FROZEN_MS)
		x->stopped_ms += missed;
	x->now_ms = now;
}

static void turn(struct exec *x, int timeout_ms)
{
	bool full = x->chunk_len > 0;
	struct pollfd fds[] = {
		{.fd = x->signal_fd, .events = POLLIN},
		{.fd = full ? -1 : x->err_fd, .events = POLLIN},
		{.fd = full ? x->out_fd : -1, .events = POLLOUT},
		{.fd = x->link.report_fd, .events = POLLIN},
	};

	(void)poll(fds, HF_ARRAY_LEN(fds), timeout_ms);
	take_time(x, timeout_ms);
	if (fds[0].revents != 0)
		on_signals(x);
	if (fds[2].revents != 0)
		write_stderr(x);
	if (fds[1].revents != 0)
		read_stderr(x);
	if (fds[3].revents != 0)
		take_reports(x);
}

static void drain(struct exec *x)
{
	int64_t until = clock_ms() + DRAIN_MS;

	while ((x->err_fd >= 0 || x->chunk_len > 0) && x->now_ms < until) {
		if (x->err_fd >= 0 && x->chunk_len == 0)
			read_stderr(x);
		if (x->chunk_len > 0)
			turn(x, (int)(until - x->now_ms));
	}
}

/* ---- the end ----------------------------------------------------------------------------------- */

static int code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *with_left(const struct exec *x, const char *why, char *text, size_t size)
{
	if (x->left == 0)
		return why;
	snprintf(text, size, "%s%s%zu of its processes did not end by SIGKILL", why,
		 why[0] == '\0' ? "" : "; ", x->left);
	return text;
}

/* A cause that was named long before the end is another story; but where no rank has advanced since it is this one,
 * since collectives wait for half an hour before they abort.  The ranks beside may still have ended their step. */
static int64_t causes_since_s(const struct exec *x)
{
	int64_t now_s = x->now_ms / 1000, last_s = x->step_ms / 1000 - STEP_ENDS_S;

	if (!x->any_step)
		return now_s - CAUSE_S;
	if (last_s < now_s - CAUSE_STANDS_S)
		last_s = now_s - CAUSE_STANDS_S;
	return x->ending == ENDS_HUNG || last_s < now_s - CAUSE_S ? last_s : now_s - CAUSE_S;
}

/* What stderr named explains that it stood still. */
static bool is_by_itself(const struct exec *x)
{
	return x->ending == ENDS_ITSELF || x->ending == ENDS_HUNG;
}

static int finish(struct exec *x)
{
	struct hf_exec_ending ending = {.code = code_of(x->status), .why = "", .tail = &x->tail};
	enum hf_exec_cause cause = hf_tail_cause(&x->tail, causes_since_s(x));
	char why[96], of_rank[32] = "", text[384];

	ending.given = ending.code;
	if (x->ending == ENDS_FENCED) {
		ending.given = HF_EXEC_CAUSE_NO_CONTACT;
		ending.why = x->fence.why;
	} else if (is_by_itself(x) && ending.code != 0 && cause != HF_EXEC_CAUSE_NONE) {
		ending.given = (int)cause;
		ending.why = x->tail.cause_line;
	} else if (x->ending == ENDS_HUNG && ending.code != 0) {
		/* Who ended well was about to: closing its devices takes a program a while. */
		ending.given = HF_EXEC_CAUSE_HANG;
		if (x->hung_rank >= 0)
			snprintf(of_rank, sizeof(of_rank), " of rank %d", (int)x->hung_rank);
		snprintf(why, sizeof(why), "no step%s was reported for %u s", of_rank,
			 x->options->hang_after_s);
		ending.why = why;
	}
	/* What the operator is to know is no cause among others. */
	if (x->options->keep_code && x->ending != ENDS_FENCED)
		ending.given = ending.code;
	ending.why = with_left(x, ending.why, text, sizeof(text));
	if (ending.given != 0)
		hf_exec_message_write(x->options->termination_log, x->options->termination_create,
				      &ending);
	if (x->foreground && !x->background)
		(void)tcsetpgrp(STDIN_FILENO, getpgrp());
	return ending.given;
}

/* ---- the start --------------------------------------------------------------------------------- */

static int cannot_start(struct exec *x, int err)
{
	struct hf_exec_ending ending = {.tail = &x->tail};
	char text[512];

	snprintf(text, sizeof(text), "cannot run '%s': %s", x->options->argv[0], strerror(err));
	fprintf(stderr, "holdfast exec: %s\n", text);
	ending.code = ending.given = err == ENOENT ? HF_EXEC_CODE_NOT_FOUND
				     : err == EACCES || err == ENOEXEC || err == EISDIR
					     ? HF_EXEC_CODE_NOT_EXECUTABLE
					     : HF_EXEC_CODE_INTERNAL;
	ending.why = text;
	hf_exec_message_write(x->options->termination_log, x->options->termination_create, &ending);
	return ending.given;
}

/* Between poll() and write() another may fill the pipe, and its reader stand still: the fence would wait
 * with us.  The pipe is opened once more, for O_NONBLOCK on the one that we were given would be for all who
 * have it.  Where it may not be opened, who is alone in it never blocks. */
static int open_stderr(void)
{
	struct stat st;
	int fd = -1;

	if (fstat(STDERR_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
		fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? STDERR_FILENO : fd;
}

/* A terminal is left to CMD: what is written there is read by a person, now. */
static int make_pipe(struct exec *x, int *ret_write)
{
	int fds[2];

	x->err_fd = *ret_write = -1;
	if (isatty(STDERR_FILENO) == 1)
		return 0;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return errno;
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	x->err_fd = fds[0];
	x->out_fd = open_stderr();
	*ret_write = fds[1];
	return 0;
}

static int take_signals(struct exec *x, sigset_t *ret_before)
{
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, ret_before);
	/* Ignored, the kernel would reap for us and keep the codes to itself. */
	(void)signal(SIGCHLD, SIG_DFL);
	x->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return x->signal_fd < 0 ? errno : 0;
}

static int start(struct exec *x, const sigset_t *before)
{
	struct hf_exec_child child = {.argv = x->options->argv, .mask = before};
	int err;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	err = make_pipe(x, &child.err_fd);
	if (err != 0)
		return err;
	x->foreground = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
	child.foreground = x->foreground;
	/* A whole group can be ended at once; one that a terminal knows stays as it is. */
	child.group = x->options->fence_s > 0 && isatty(STDIN_FILENO) != 1;
	x->group = child.foreground || child.group;
	if (x->link.report_fd >= 0)
		(void)setenv("HOLDFAST_REPORT_SOCKET", x->link.report_name, 1);
	err = hf_exec_child_start(&child, &x->child);
	if (child.err_fd >= 0)
		(void)close(child.err_fd);
	return err;
}

/* ---- before the start --------------------------------------------------------------------------- */

static int never_started(struct exec *x)
{
	struct hf_exec_ending ending = {.code = HF_EXEC_CAUSE_NO_CONTACT,
					.given = HF_EXEC_CAUSE_NO_CONTACT,
					.why = x->fence.why,
					.tail = &x->tail};

	fprintf(stderr, "holdfast exec: not started: %s\n", x->fence.why);
	hf_exec_message_write(x->options->termination_log, x->options->termination_create, &ending);
	return ending.given;
}

/* The number of the signal that tells us to end; 0: none came. */
static int told_to_end(const struct exec *x)
{
	struct signalfd_siginfo info;

	while (read(x->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (ends(info.ssi_signo))
			return (int)info.ssi_signo;
	return 0;
}

/* An agent that was asked for it by nobody else finds the node's contact with the next Lease; 0: it
 * is there, else how we end. */
static int await_contact(struct exec *x)
{
	int64_t until = x->now_ms + (int64_t)x->options->fence_s * 1000;
	int signum;

	/* Whatever the disk does then, the fence must not wait for a page of ours. */
	(void)mlockall(MCL_CURRENT);
	hf_fence_open(&x->fence, x->options->agent_socket, x->options->fence_s, "/proc");
	while (!hf_fence_lets_start(&x->fence, clock_ms())) {
		struct pollfd fd = {.fd = x->signal_fd, .events = POLLIN};

		if (x->now_ms >= until)
			return never_started(x);
		beat(x);
		(void)poll(&fd, 1, FENCE_LOOK_MS / 4);
		x->now_ms = clock_ms();
		if ((signum = told_to_end(x)) != 0)
			return 128 + signum;
	}
	return 0;
}

/* What we open is never CMD's stdin, stdout or stderr: it starts without those that we were started
 * without. */
static void fill_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

int hf_exec_run(const struct hf_exec_options *options)
{
	/* Not on the stack of the program: 50 KiB that are there from the start. */
	static struct exec exec;
	struct exec *x = &exec;
	sigset_t before;
	int err, code;

	*x = (struct exec){
		.options = options, .signal_fd = -1, .err_fd = -1, .out_fd = STDERR_FILENO};
	fill_standard();
	x->now_ms = clock_ms();
	x->attempt = (uint64_t)x->now_ms;
	hf_exec_link_open(&x->link, options->agent_socket);
	err = take_signals(x, &before);
	if (err == 0 && options->fence_s > 0 && (code = await_contact(x)) != 0)
		return code;
	if (err == 0)
		err = start(x, &before);
	if (err != 0)
		return cannot_start(x, err);
	while (!x->ended && !x->over) {
		beat(x);
		turn(x, until_next(x));
		/* It ended by itself, however late that was. */
		if (x->ended)
			break;
		watch_for_hang(x);
		watch_for_contact(x);
	}
	end_rest(x);
	if (x->step_waits)
		tell_step(x);
	drain(x);
	return finish(x);
}
