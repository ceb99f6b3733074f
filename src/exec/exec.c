/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/state_internal.h"

#include "base/str.h"
#include "exec/rest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often exec sends the agent a sign of life: the agent calls a rank lost after 30 s without one. */
#define BEAT_MS 5000
/* Most datagrams read from the report socket in a row.  Datagrams of other processes than descendants count too,
 * so a flood does not delay the fence. */
#define REPORTS_AT_ONCE 1024
/* Least time between two reports of steps to the agent.  Of steps that come faster exec sends some, and always the
 * last. */
#define STEP_GAP_MS 20
/* An attempt in a rank's report below this number counts restarts by a launcher below CMD; a larger number is no
 * count, but a time. */
#define RESTARTS_MAX 1000
/* If poll() takes this much longer than its timeout, exec was frozen meanwhile, and CMD too. */
#define FROZEN_MS 2000
/* How often exec checks the fence.  The operator takes a rank as stopped ten seconds after the fence's limit. */
#define FENCE_LOOK_MS 1000
/* How long exec waits for descendants to end after SIGKILL: a process that lives longer waits for a disk or a
 * driver, perhaps for ever. */
#define REST_MS 5000
#define REST_LOOK_MS 5
/* How long exec passes on what is left in the pipe after CMD has ended, if the reader of stderr is slow. */
#define DRAIN_MS 2000
/* How often exec checks the node's contact before it starts CMD. */
#define CONTACT_LOOK_MS 250

/* How often exec checks, while ranks save, whether the processes that it asked have ended. */
#define SAVE_LOOK_MS 200

/* ---- reports of steps to the agent ------------------------------------------------------------- */

static void send_step(struct hf_exec_run *x)
{
	x->step_waits = false;
	x->told_at_ms = x->now_ms;
	(void)hf_exec_link_send(&x->link, &x->step);
}

static void take_save_report(struct hf_exec_run *x, const struct hf_beat *beat,
			     const struct hf_exec_sender *sender)
{
	if (beat->can_save)
		hf_save_can(&x->save, "/proc", sender);
	if (!beat->has_saved)
		return;
	hf_save_did(&x->save, "/proc", sender->pid);
	x->saved_since = x->save_signalled;
	if (!x->orders.told.has_saved || beat->saved > x->orders.told.saved) {
		x->orders.told.saved = beat->saved;
		x->state_waits = true;
	}
	x->orders.told.has_saved = true;
}

static void receive_reports(struct hf_exec_run *x)
{
	int64_t advanced_ms = x->progress.advanced_ms;
	struct hf_exec_sender sender;
	struct hf_beat beat;
	int left = REPORTS_AT_ONCE;

	while (hf_exec_link_receive(&x->link, x->ended ? 0 : x->child, &left, &beat, &sender)) {
		take_save_report(x, &beat, &sender);
		/* A report without a step does not show that the rank trains (a thread of its own may send it),
		 * and exec sends signs of life anyway. */
		if (!beat.has_step)
			continue;
		/* Several ranks report to this exec: the waiting step of another rank is sent first, so that the
		 * agent gets the last step of each. */
		if (x->step_waits && beat.rank != x->step.rank)
			send_step(x);
		/* The attempt counts the restarts by a launcher below CMD and begins again in each container, so
		 * exec adds the attempt of CMD. */
		if (beat.attempt < RESTARTS_MAX)
			beat.attempt += x->attempt;
		/* Only exec's flag sets the fence; a program's report cannot. */
		beat.fence_s = 0;
		hf_progress_take(&x->progress, "/proc", &beat, sender.pid, hf_exec_running_ms(x));
		if (x->ending == HF_EXEC_ENDS_TOLD &&
		    hf_progress_outlives(&x->progress, x->signal, x->signal_ms)) {
			x->ending = HF_EXEC_ENDS_ITSELF;
			x->orders.leaving = false;
		}
		x->any_step = true;
		/* The agent tells when the first step after a restart was done. */
		if (!x->orders.told.has_step)
			hf_exec_orders_touch(&x->orders);
		x->orders.told.has_step = true;
		if (beat.step > x->orders.told.step) {
			x->orders.told.step = beat.step;
			x->state_waits = true;
		}
		x->step = beat;
		x->step_waits = true;
		if (x->now_ms - x->told_at_ms >= STEP_GAP_MS)
			send_step(x);
	}
	if (x->progress.advanced_ms != advanced_ms)
		x->step_ms = x->now_ms;
}

/* Steps and saves do not wait for the next phase: a program may run for weeks. */
static void touch_state(struct hf_exec_run *x)
{
	if (x->state_waits)
		hf_exec_orders_touch(&x->orders);
	x->state_waits = false;
}

static void send_beat(struct hf_exec_run *x)
{
	/* A sign of life repeats the last step, so an agent that was started again learns the step. */
	struct hf_beat alive = x->any_step && !x->ended
				       ? x->step
				       : (struct hf_beat){.rank = -1, .attempt = x->attempt};

	if (x->step_waits && x->now_ms - x->told_at_ms >= STEP_GAP_MS)
		send_step(x);
	if (x->now_ms < x->beat_at_ms)
		return;
	alive.fence_s = x->options->fence_s;
	(void)hf_exec_link_send(&x->link, &alive);
	touch_state(x);
	x->beat_at_ms = x->now_ms + BEAT_MS;
}

/* ---- CMD --------------------------------------------------------------------------------------- */

static void reap_children(struct hf_exec_run *x)
{
	int status;

	for (;;) {
		siginfo_t info = {.si_pid = 0};

		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
		    info.si_pid == 0)
			return;
		if (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED) {
			hf_exec_take_stop(x, info.si_pid);
			continue;
		}
		/* Reports count only if their sender is a descendant, and a process is none after it was reaped.
		 * So exec takes the last reports first. */
		receive_reports(x);
		if (waitpid(info.si_pid, &status, WNOHANG) != info.si_pid)
			return;
		if (info.si_pid == x->dumper)
			hf_exec_take_dumper_end(x, status);
		if (info.si_pid != x->child)
			continue;
		x->ended = true;
		x->status = status;
	}
}

static bool is_end_signal(uint32_t signum)
{
	return signum == SIGTERM || signum == SIGINT || signum == SIGHUP || signum == SIGQUIT;
}

/* Whether a signal to end (SIGTERM, SIGINT, SIGHUP, SIGQUIT) decides how exec ends: not if exec already ends CMD
 * for a hang or a fence. */
static bool takes_end(const struct hf_exec_run *x)
{
	return x->ended || x->ending == HF_EXEC_ENDS_ITSELF || x->ending == HF_EXEC_ENDS_TOLD ||
	       x->ending == HF_EXEC_ENDS_ORDERED;
}

static void take_end(struct hf_exec_run *x, int signum)
{
	x->ending = HF_EXEC_ENDS_TOLD;
	x->orders.leaving = true;
	x->signal = signum;
	x->signal_ms = hf_exec_running_ms(x);
}

/* Sends --save-signal to the processes that report steps, for programs that do not use should_save().  If no
 * process reports steps, CMD gets the signal. */
static void signal_for_save(struct hf_exec_run *x)
{
	if (x->save_signalled)
		return;
	x->save_signalled = true;
	if (hf_progress_signal(&x->progress, "/proc", -1, x->options->save_signal) == 0)
		(void)kill(x->child, x->options->save_signal);
}

/* Asks the ranks to save; returns how many have yet to save. */
static size_t ask_for_save(struct hf_exec_run *x)
{
	size_t left = hf_save_ask(&x->save, "/proc", x->link.report_fd);

	if (x->save.len > 0 || x->options->save_signal == 0)
		return left;
	signal_for_save(x);
	return x->saved_since ? 0 : 1;
}

static void begin_save(struct hf_exec_run *x, enum hf_exec_saving why, uint32_t seconds)
{
	x->saving = why;
	x->save_from_ms = x->now_ms;
	x->save_until_ms = x->now_ms + (int64_t)seconds * 1000;
}

/* Another rank has failed since the order, and the ranks that save may wait for it: the operator has withdrawn its
 * request. */
static bool is_save_withdrawn(const struct hf_exec_run *x)
{
	return x->saving == HF_EXEC_SAVE_FOR_ORDER && x->orders.target.start.known &&
	       x->orders.target.save_s == 0;
}

/* A rank that has saved nothing since it was asked says nothing about the time of a save. */
static bool is_save_over(struct hf_exec_run *x)
{
	if (x->now_ms >= x->save_until_ms || is_save_withdrawn(x))
		return true;
	if (ask_for_save(x) > 0)
		return false;
	if ((hf_save_has_any(&x->save) || x->saved_since) && x->now_ms > x->save_from_ms)
		x->orders.told.save_ms = (uint32_t)(x->now_ms - x->save_from_ms);
	return true;
}

/* Begins a save before SIGTERM is passed on to CMD.  True: SIGTERM waits for the save.  A second SIGTERM does not
 * wait. */
static bool save_before_signal(struct hf_exec_run *x)
{
	/* The report by which a rank says that it can save may still be in the queue. */
	receive_reports(x);
	/* A save for an order is under way; when it is done, begin_stop() sends SIGTERM. */
	if (x->saving == HF_EXEC_SAVE_FOR_ORDER)
		return true;
	if (x->ended || x->saving != HF_EXEC_NO_SAVE || x->options->save_s == 0 ||
	    ask_for_save(x) == 0)
		return false;
	begin_save(x, HF_EXEC_SAVE_FOR_SIGNAL, x->options->save_s);
	return true;
}

/* A stopped CMD would take a signal to end only at the end of the pod's grace period, by SIGKILL. */
static void forward_signal(struct hf_exec_run *x, int signum)
{
	(void)kill(x->child, signum);
	if (is_end_signal((uint32_t)signum) && !x->stopped)
		(void)kill(x->child, SIGCONT);
}

static void handle_signals(struct hf_exec_run *x)
{
	struct signalfd_siginfo info;

	while (read(x->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap_children(x);
			continue;
		}
		/* exec's own writes raise SIGPIPE.  The terminal raises SIGTTOU and SIGTTIN while CMD has the
		 * foreground. */
		if (info.ssi_signo == SIGPIPE || info.ssi_signo == SIGTTOU ||
		    info.ssi_signo == SIGTTIN)
			continue;
		if (info.ssi_signo == SIGCONT && !x->ended) {
			hf_exec_continue_cmd(x);
			continue;
		}
		/* A signal from a descendant is no request from outside: if a process below signals its whole
		 * group, CMD ends by itself. */
		if (is_end_signal(info.ssi_signo) && takes_end(x) &&
		    !hf_rest_is_below("/proc", (pid_t)info.ssi_pid)) {
			take_end(x, (int)info.ssi_signo);
			if (info.ssi_signo == SIGTERM && save_before_signal(x))
				continue;
		}
		if (!x->ended)
			forward_signal(x, (int)info.ssi_signo);
	}
}

/* Ends CMD at once if the node has no contact: the replacement of the rank may already write the same files. */
static void watch_for_contact(struct hf_exec_run *x)
{
	if (x->options->fence_s == 0 || x->now_ms < x->fence_at_ms)
		return;
	x->fence_at_ms = x->now_ms + FENCE_LOOK_MS;
	if (hf_fence_holds(&x->fence, hf_exec_clock_ms()))
		return;
	x->ending = HF_EXEC_ENDS_FENCED;
	hf_exec_orders_move(&x->orders, HF_EXEC_FENCED, x->now_ms);
}

/* Sends SIGKILL to CMD and to all processes that CMD left behind, for 5 s at most, again and again until none
 * runs.  exec is the parent of the orphans, and reaps them. */
static void end_descendants(struct hf_exec_run *x)
{
	int64_t until = hf_exec_clock_ms() + REST_MS;

	if (x->group && !x->ended)
		(void)kill(-x->child, SIGKILL);
	if (!x->ended)
		(void)kill(x->child, SIGKILL);
	for (;;) {
		x->left = hf_rest_kill("/proc");
		reap_children(x);
		x->left_known = x->left != HF_REST_UNKNOWN;
		if (!x->left_known)
			x->left = x->ended ? 0 : 1;
		if (x->left == 0 || hf_exec_clock_ms() >= until)
			break;
		(void)poll(NULL, 0, REST_LOOK_MS);
	}
	/* CMD cannot be reaped while another process traces it. */
	if (!x->ended)
		x->status = SIGKILL;
	x->ended = true;
}

/* ---- output ------------------------------------------------------------------------------------ */

static void take_stderr(void *arg, const char *bytes, size_t len)
{
	struct hf_exec_run *x = arg;

	hf_tail_add(&x->tail, bytes, len, x->now_ms / 1000);
}

static void take_line(void *arg, const char *line, size_t len)
{
	struct hf_exec_run *x = arg;

	hf_log_rules_read(x->options->rules, line, len, hf_exec_running_ms(x));
}

static void prepare_streams(struct hf_exec_run *x)
{
	bool rules = x->options->rules != NULL;

	x->out = (struct hf_exec_stream){.own = STDOUT_FILENO, .to = STDOUT_FILENO};
	x->err = (struct hf_exec_stream){.own = STDERR_FILENO, .to = STDERR_FILENO};
	x->out.from = x->err.from = -1;
	x->out.arg = x->err.arg = x;
	x->err.took_bytes = take_stderr;
	x->out.took_line = x->err.took_line = rules ? take_line : NULL;
}

static void stop_reading(struct hf_exec_run *x)
{
	hf_exec_stream_stop(&x->out);
	hf_exec_stream_stop(&x->err);
	hf_tail_end(&x->tail, x->now_ms / 1000);
}

/* ---- the loop ---------------------------------------------------------------------------------- */

/* When a rule may be broken because a line is missing. */
static int64_t find_rule_ms(const struct hf_exec_run *x)
{
	int64_t at =
		x->options->rules != NULL ? hf_log_rules_wake_ms(x->options->rules) : INT64_MAX;

	return at == INT64_MAX || at == INT64_MIN ? at : at + x->stopped_ms;
}

static int64_t pick_earlier(int64_t at, bool counts, int64_t other)
{
	return counts && other < at ? other : at;
}

static int find_timeout_ms(const struct hf_exec_run *x)
{
	const struct hf_exec_options *o = x->options;
	int64_t now = x->now_ms, at = x->beat_at_ms;

	at = pick_earlier(at, x->step_waits, x->told_at_ms + STEP_GAP_MS);
	at = pick_earlier(at, o->hang_after_s > 0 || x->ending == HF_EXEC_ENDS_HUNG, now + 1000);
	/* In a hang the rules are not asked any more. */
	at = pick_earlier(at, !x->ended && x->ending != HF_EXEC_ENDS_HUNG, find_rule_ms(x));
	at = pick_earlier(at, o->fence_s > 0, x->fence_at_ms);
	at = pick_earlier(at, true, hf_exec_orders_wake_ms(&x->orders, now));
	at = pick_earlier(at, x->orders.phase == HF_EXEC_STOPPING, x->stop_at_ms);
	at = pick_earlier(at, x->saving != HF_EXEC_NO_SAVE, now + SAVE_LOOK_MS);
	/* CMD may start, except that the node's contact is too old: exec checks the contact again soon. */
	at = pick_earlier(at, hf_exec_orders_let_start(&x->orders, now), now + CONTACT_LOOK_MS);
	return at > now ? (int)(at - now) : 0;
}

/* Takes the present time.  If exec did not run for a while, CMD did not either: the container was frozen, or the
 * machine slept. */
static void take_time(struct hf_exec_run *x, int waited_ms)
{
	int64_t now = hf_exec_clock_ms(), missed = now - x->now_ms - waited_ms;

	if (missed > FROZEN_MS)
		x->stopped_ms += missed;
	x->now_ms = now;
}

static void handle_events(struct hf_exec_run *x, int timeout_ms)
{
	bool out_full = hf_exec_stream_is_full(&x->out), err_full = hf_exec_stream_is_full(&x->err);
	struct pollfd fds[] = {
		{.fd = x->signal_fd, .events = POLLIN},
		{.fd = err_full ? -1 : x->err.from, .events = POLLIN},
		{.fd = err_full ? x->err.to : -1, .events = POLLOUT},
		{.fd = out_full ? -1 : x->out.from, .events = POLLIN},
		{.fd = out_full ? x->out.to : -1, .events = POLLOUT},
		{.fd = x->link.report_fd, .events = POLLIN},
		{.fd = x->draining ? -1 : x->orders.link.fd, .events = POLLIN},
	};

	(void)poll(fds, HF_ARRAY_LEN(fds), timeout_ms);
	take_time(x, timeout_ms);
	if (fds[0].revents != 0)
		handle_signals(x);
	if (fds[2].revents != 0)
		hf_exec_stream_write(&x->err);
	if (fds[1].revents != 0)
		hf_exec_stream_read(&x->err, x->ended);
	if (fds[4].revents != 0)
		hf_exec_stream_write(&x->out);
	if (fds[3].revents != 0)
		hf_exec_stream_read(&x->out, x->ended);
	if (fds[5].revents != 0)
		receive_reports(x);
}

static void read_rest(struct hf_exec_stream *stream)
{
	if (stream->from >= 0 && !hf_exec_stream_is_full(stream))
		hf_exec_stream_read(stream, true);
}

static void drain_output(struct hf_exec_run *x)
{
	int64_t until = hf_exec_clock_ms() + DRAIN_MS;

	x->draining = true;
	while (!(hf_exec_stream_is_done(&x->out) && hf_exec_stream_is_done(&x->err)) &&
	       x->now_ms < until) {
		read_rest(&x->out);
		read_rest(&x->err);
		if (hf_exec_stream_is_full(&x->out) || hf_exec_stream_is_full(&x->err))
			handle_events(x, (int)(until - x->now_ms));
	}
	x->draining = false;
}

/* ---- the start --------------------------------------------------------------------------------- */

/* Without rules CMD has the own stdout, and a terminal as its stderr: a person reads it. */
static int make_pipes(struct hf_exec_run *x, struct hf_exec_child *child)
{
	bool rules = x->options->rules != NULL;
	int err = 0;

	child->out_fd = child->err_fd = -1;
	if (rules || isatty(STDERR_FILENO) != 1)
		err = hf_exec_stream_begin(&x->err, &child->err_fd);
	if (err == 0 && rules)
		err = hf_exec_stream_begin(&x->out, &child->out_fd);
	return err;
}

static void close_pipes(const struct hf_exec_child *child)
{
	if (child->err_fd >= 0)
		(void)close(child->err_fd);
	if (child->out_fd >= 0)
		(void)close(child->out_fd);
}

static int take_signals(struct hf_exec_run *x)
{
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &x->before);
	/* If SIGCHLD were ignored, the kernel would reap the children and drop their exit codes. */
	(void)signal(SIGCHLD, SIG_DFL);
	x->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return x->signal_fd < 0 ? errno : 0;
}

static int start_cmd(struct hf_exec_run *x)
{
	struct hf_exec_child child = {.argv = x->options->argv, .mask = &x->before};
	int err;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	err = make_pipes(x, &child);
	if (err != 0) {
		close_pipes(&child);
		return err;
	}
	x->foreground = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
	child.foreground = x->foreground;
	/* With a fence CMD gets a process group, which exec can end with one signal; a process group of a terminal
	 * stays as it is. */
	child.group = x->options->fence_s > 0 && isatty(STDIN_FILENO) != 1;
	x->group = child.foreground || child.group;
	err = hf_exec_child_start(&child, &x->child);
	close_pipes(&child);
	return err;
}

/* ---- before the start --------------------------------------------------------------------------- */

static int report_no_contact(struct hf_exec_run *x)
{
	fprintf(stderr, "holdfast exec: not started: %s\n", x->fence.why);
	hf_exec_give_code(x, HF_EXEC_CAUSE_NO_CONTACT, x->fence.why);
	return hf_exec_report_end(x);
}

/* The number of a signal to end that has arrived; 0: none. */
static int find_end_signal(const struct hf_exec_run *x)
{
	struct signalfd_siginfo info;

	while (read(x->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (is_end_signal(info.ssi_signo))
			return (int)info.ssi_signo;
	return 0;
}

/* Waits until the agent has found the node's contact with the control plane.  Without another pod with a fence on
 * the node, this takes until the kubelet's next renewal of its Lease.  Returns 0 when CMD may start, else the exit
 * code. */
static int await_contact(struct hf_exec_run *x)
{
	int64_t until = x->now_ms + (int64_t)x->options->fence_s * 1000;
	int signum;

	/* With locked pages the fence does not have to wait for a disk that hangs. */
	(void)mlockall(MCL_CURRENT);
	hf_fence_open(&x->fence, x->options->agent_socket, x->options->fence_s, "/proc");
	while (!hf_fence_lets_start(&x->fence, hf_exec_clock_ms())) {
		struct pollfd fd = {.fd = x->signal_fd, .events = POLLIN};

		if (x->now_ms >= until)
			return report_no_contact(x);
		send_beat(x);
		(void)poll(&fd, 1, CONTACT_LOOK_MS);
		x->now_ms = hf_exec_clock_ms();
		if ((signum = find_end_signal(x)) != 0)
			return 128 + signum;
	}
	return 0;
}

/* Opens /dev/null as the descriptors 0 to 2 that are closed, so that no file opened later becomes CMD's stdin,
 * stdout or stderr. */
static void open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

/* ---- starts, ends and orders --------------------------------------------------------------------- */

/* Clears all that exec knows of the former CMD, before it starts CMD again. */
static void forget_process(struct hf_exec_run *x)
{
	x->tail = (struct hf_tail){.total = 0};
	x->progress = (struct hf_progress){.len = 0};
	x->save = (struct hf_save){.len = 0};
	x->saving = HF_EXEC_NO_SAVE;
	x->save_signalled = x->saved_since = false;
	x->status = 0;
	x->left = 0;
	x->ending = HF_EXEC_ENDS_ITSELF;
	x->killed = x->stopped = x->over = false;
	x->step_ms = x->told_at_ms = 0;
	x->hung_rank = -1;
	x->rule = (struct hf_log_finding){.name = NULL};
	x->dump_until_ms = 0;
	if (x->options->rules != NULL)
		hf_log_rules_begin(x->options->rules, hf_exec_running_ms(x));
	x->any_step = x->step_waits = x->state_waits = false;
	/* The agent knows a new process by its greater attempt. */
	x->attempt = x->attempt < (uint64_t)x->now_ms ? (uint64_t)x->now_ms : x->attempt + 1;
}

/* Empties the termination message before CMD starts again: the message of the former process is not that of the
 * new process. */
static void empty_termination_log(const struct hf_exec_run *x)
{
	int fd;

	if (hf_str_is_empty(x->options->termination_log))
		return;
	fd = open(x->options->termination_log,
		  O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		(void)close(fd);
}

static void begin_cmd(struct hf_exec_run *x)
{
	if (!hf_exec_orders_let_start(&x->orders, x->now_ms) ||
	    (x->options->fence_s > 0 && !hf_fence_lets_start(&x->fence, hf_exec_clock_ms())))
		return;
	if (x->orders.told.ordinal > 0)
		empty_termination_log(x);
	forget_process(x);
	hf_exec_orders_started(&x->orders, x->now_ms);
	hf_exec_set_environment(x);
	x->ended = false;
	x->start_error = start_cmd(x);
	if (x->start_error == 0)
		return;
	x->ended = true;
	hf_exec_orders_move(&x->orders, HF_EXEC_LEAVE, x->now_ms);
}

/* Whether exec keeps the container: CMD has failed by itself or was stopped by an order, and no descendant of it
 * is left. */
static bool may_stay(const struct hf_exec_run *x)
{
	if (x->left > 0 || !x->left_known || !hf_exec_orders_let_stay(&x->orders))
		return false;
	return x->orders.phase != HF_EXEC_RUNNING || (hf_exec_is_own_end(x) && x->end.code != 0);
}

/* Ends all processes of CMD, which has ended or has to end, and reports the end. */
static void finish_cmd(struct hf_exec_run *x)
{
	bool ordered = x->orders.phase == HF_EXEC_SAVING || x->orders.phase == HF_EXEC_STOPPING;

	/* The agent's order came before the end of CMD, so the end is not charged to the job. */
	if (ordered && x->ending != HF_EXEC_ENDS_TOLD)
		x->ending = HF_EXEC_ENDS_ORDERED;
	end_descendants(x);
	if (x->step_waits)
		send_step(x);
	drain_output(x);
	stop_reading(x);
	hf_exec_make_ending(x);
	if (x->orders.phase == HF_EXEC_LEAVING)
		return;
	if (!may_stay(x)) {
		touch_state(x);
		hf_exec_orders_tell(&x->orders, x->now_ms);
		hf_exec_orders_move(&x->orders, HF_EXEC_LEAVE, x->now_ms);
		return;
	}
	hf_exec_tell_end(x);
	hf_exec_orders_move(&x->orders, HF_EXEC_STAY, x->now_ms);
}

static void begin_stop(struct hf_exec_run *x)
{
	hf_exec_orders_move(&x->orders, HF_EXEC_SAVED, x->now_ms);
	x->saving = HF_EXEC_NO_SAVE;
	x->stop_at_ms = x->now_ms + (int64_t)x->orders.target.grace_s * 1000;
	/* CMD hangs and is already being ended with SIGABRT, so that the ranks print their stacks: no SIGTERM. */
	if (x->ending == HF_EXEC_ENDS_HUNG)
		return;
	if (x->ending == HF_EXEC_ENDS_ITSELF)
		x->ending = HF_EXEC_ENDS_ORDERED;
	(void)kill(x->child, SIGTERM);
	(void)kill(x->child, SIGCONT);
}

static void watch_save(struct hf_exec_run *x)
{
	bool ordered = x->orders.phase == HF_EXEC_SAVING;

	/* A rank that hangs does not save, so it gets no time to save. */
	if (ordered && x->saving == HF_EXEC_NO_SAVE) {
		receive_reports(x);
		begin_save(x, HF_EXEC_SAVE_FOR_ORDER,
			   x->ending == HF_EXEC_ENDS_HUNG ? 0 : x->orders.target.save_s);
	}
	if (x->saving == HF_EXEC_NO_SAVE || !is_save_over(x))
		return;
	if (ordered) {
		begin_stop(x);
		return;
	}
	x->saving = HF_EXEC_NO_SAVE;
	(void)kill(x->child, SIGTERM);
}

/* Acts on CMD in the phases in which CMD runs. */
static void watch_cmd(struct hf_exec_run *x)
{
	/* CMD has ended by itself, perhaps after an order or a signal. */
	if (x->ended) {
		finish_cmd(x);
		return;
	}
	hf_exec_watch_for_hang(x);
	if (x->over) {
		finish_cmd(x);
		return;
	}
	watch_save(x);
	if (x->orders.phase == HF_EXEC_STOPPING && x->ending != HF_EXEC_ENDS_HUNG &&
	    x->now_ms >= x->stop_at_ms)
		finish_cmd(x);
}

static void explain_wait(struct hf_exec_run *x)
{
	char why[192];

	snprintf(
		why, sizeof(why),
		"no go from the node's agent for %lld s: the restart in place that %s this rank was not completed",
		(long long)((x->now_ms - x->orders.held_ms) / 1000),
		x->orders.phase == HF_EXEC_DOWN ? "stopped" : "holds");
	hf_exec_give_code(x, HF_EXEC_CODE_BARRIER, why);
}

/* Acts in the phases in which CMD does not run. */
static void watch_wait(struct hf_exec_run *x)
{
	bool ended = x->orders.phase == HF_EXEC_ENDED; /* then the code of CMD stands */

	if (x->orders.leaving) {
		/* The signal came while CMD did not run.  If CMD had failed by itself before, its exit code
		 * stands; else exec ends with the code of the signal. */
		if (x->end.given == 0 || x->end.given == HF_EXEC_CODE_BARRIER)
			hf_exec_give_code(x, 128 + x->signal, "");
		hf_exec_orders_move(&x->orders, HF_EXEC_TOLD, x->now_ms);
	} else if (x->now_ms >= hf_exec_orders_deadline_ms(&x->orders)) {
		if (!ended)
			explain_wait(x);
		hf_exec_orders_move(&x->orders, HF_EXEC_EXPIRED, x->now_ms);
	} else {
		begin_cmd(x);
	}
}

/* Does what the present phase needs.  Afterwards the phase is LEAVING, or exec has to wait for an event. */
static void advance_phase(struct hf_exec_run *x)
{
	hf_exec_orders_receive(&x->orders, x->now_ms);
	if (hf_exec_phase_has_cmd(x->orders.phase))
		watch_cmd(x);
	if (!hf_exec_phase_has_cmd(x->orders.phase) && x->orders.phase != HF_EXEC_LEAVING)
		watch_wait(x);
	if (x->orders.phase != HF_EXEC_LEAVING)
		watch_for_contact(x);
	/* If exec ends, it sends no state: the agent learns the end from the container's. */
	if (x->orders.phase != HF_EXEC_LEAVING)
		hf_exec_orders_tell(&x->orders, hf_exec_clock_ms());
}

static int report_code(struct hf_exec_run *x)
{
	if (x->start_error != 0)
		return hf_exec_report_no_start(x, x->start_error);
	if (!x->ended)
		finish_cmd(x);
	else if (x->ending == HF_EXEC_ENDS_FENCED)
		hf_exec_give_code(x, HF_EXEC_CAUSE_NO_CONTACT, x->fence.why);
	return hf_exec_report_end(x);
}

int hf_exec_run(const struct hf_exec_options *options)
{
	/* Static: 50 KiB that need no allocation. */
	static struct hf_exec_run exec;
	struct hf_exec_run *x = &exec;
	int err, code;

	*x = (struct hf_exec_run){.options = options, .signal_fd = -1, .ended = true};
	prepare_streams(x);
	open_standard_files();
	hf_exec_read_environment(x);
	x->now_ms = hf_exec_clock_ms();
	hf_exec_link_open(&x->link, options->agent_socket);
	err = take_signals(x);
	if (err == 0 && options->fence_s > 0 && (code = await_contact(x)) != 0)
		return code;
	if (err != 0)
		return hf_exec_report_no_start(x, err);
	hf_exec_orders_open(&x->orders, x->nested ? "" : options->agent_socket,
			    options->hold && !x->nested, x->now_ms);
	for (advance_phase(x); x->orders.phase != HF_EXEC_LEAVING; advance_phase(x)) {
		send_beat(x);
		handle_events(x, find_timeout_ms(x));
	}
	return report_code(x);
}
