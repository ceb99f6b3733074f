/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Ends a CMD that hangs, or whose output breaks a log rule. Input: the steps that the ranks report, the lines of CMD, the
 * time. Output: signals to CMD and its descendants.
 *
 * A hang: NCCL's flight recorder, if the environment sets one up; SIGABRT for the ranks, which print their stacks while CMD
 * stands still; SIGABRT for CMD; SIGKILL. A bad number: SIGKILL at once, because SIGTERM would make the ranks save it.
 */
#include "exec/state_internal.h"

#include "base/str.h"
#include "exec/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time that interpreters have after SIGABRT to print their stacks. */
#define STACKS_MS 10000
/* The limit for the ranks to write NCCL's flight recorder.  torch looks at the pipe each second. */
#define DUMP_MS 5000
/* torch makes a pipe for each rank: this name, the rank's number, ".pipe". */
#define DUMP_PIPE_ENV "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"

/* ---- stacks ------------------------------------------------------------------------------------ */

/* The processes of the ranks below CMD.  If no rank reports, all descendants of CMD. */
static size_t signal_ranks(const struct hf_exec_run *x, int signum)
{
	size_t n;

	if (x->progress.len > 0)
		return hf_progress_signal(&x->progress, "/proc", x->child, signum);
	n = hf_rest_signal("/proc", x->child, signum);
	return n == HF_REST_UNKNOWN ? 0 : n;
}

static void abort_cmd(struct hf_exec_run *x)
{
	x->stopped = false;
	x->kill_at_ms = x->now_ms + STACKS_MS;
	(void)kill(x->child, SIGABRT);
	(void)kill(x->child, SIGCONT);
}

/* Sends SIGABRT to the ranks that hang, so that they print their stacks.  CMD, perhaps a launcher, is stopped
 * meanwhile: a launcher that loses a rank would start the ranks again, or end ranks that have not printed their
 * stacks, or end with code 0. */
static void abort_ranks(struct hf_exec_run *x)
{
	if (signal_ranks(x, 0) == 0) {
		abort_cmd(x);
		return;
	}
	x->stopped = true;
	x->kill_at_ms = x->now_ms + STACKS_MS;
	(void)kill(x->child, SIGSTOP);
	(void)signal_ranks(x, SIGABRT);
}

/* ---- the flight recorder ----------------------------------------------------------------------- */

/* A process of its own asks, because a folder that hangs would delay the fence. */
static bool ask_for_dump(struct hf_exec_run *x)
{
	const char *stem = getenv(DUMP_PIPE_ENV);

	if (hf_str_is_empty(stem) || hf_exec_dumper_start(stem, &x->dumper) != 0)
		return false;
	x->dump_until_ms = x->now_ms + DUMP_MS;
	return true;
}

void hf_exec_take_dumper_end(struct hf_exec_run *x, int status)
{
	x->dumper = 0;
	/* No rank has such a pipe, so nothing is written. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		x->dump_until_ms = x->dump_until_ms != 0 ? x->now_ms : 0;
}

/* ---- the way of a hang ------------------------------------------------------------------------- */

static void begin_hang(struct hf_exec_run *x)
{
	x->ending = HF_EXEC_ENDS_HUNG;
	if (!ask_for_dump(x))
		abort_ranks(x);
}

static void end_hung(struct hf_exec_run *x)
{
	bool late = x->now_ms >= x->kill_at_ms;

	if (x->dump_until_ms != 0) {
		if (x->now_ms < x->dump_until_ms)
			return;
		x->dump_until_ms = 0;
		abort_ranks(x);
	} else if (x->stopped) {
		if (late || signal_ranks(x, 0) == 0)
			abort_cmd(x);
	} else if (late) {
		/* A second SIGKILL would change nothing. */
		x->over = x->killed;
		x->killed = true;
		(void)kill(x->child, SIGKILL);
		x->kill_at_ms = x->now_ms + STACKS_MS;
	}
}

/* ---- log rules --------------------------------------------------------------------------------- */

/* Beside the lines of CMD, where a person reads them. */
static void tell_finding(struct hf_exec_run *x, const struct hf_log_finding *finding)
{
	char text[HF_LOG_RULE_WHY_MAX + 32];
	int len = snprintf(text, sizeof(text), "holdfast exec: %s\n", finding->why);

	/* Without waiting: a reader that is slow would delay the fence. */
	if (len > 0 && !hf_exec_stream_is_full(&x->err))
		(void)!write(x->err.to, text, (size_t)len);
}

static void take_finding(struct hf_exec_run *x, const struct hf_log_finding *finding)
{
	tell_finding(x, finding);
	if (finding->action == HF_LOG_RULE_EVENT) {
		hf_agent_link_note(&x->orders.link, finding->why);
		return;
	}
	/* A CMD that ends already keeps the reason of its end. */
	if (x->ending != HF_EXEC_ENDS_ITSELF || x->orders.phase != HF_EXEC_RUNNING)
		return;
	x->rule = *finding;
	if (finding->hang) {
		begin_hang(x);
		return;
	}
	x->ending = HF_EXEC_ENDS_RULE;
	x->over = true;
}

static void watch_rules(struct hf_exec_run *x)
{
	struct hf_log_finding finding;

	if (x->options->rules == NULL)
		return;
	while (hf_log_rules_next(x->options->rules, hf_exec_running_ms(x), &finding))
		take_finding(x, &finding);
}

void hf_exec_watch_for_hang(struct hf_exec_run *x)
{
	if (x->ending == HF_EXEC_ENDS_HUNG) {
		end_hung(x);
		return;
	}
	watch_rules(x);
	if (x->options->hang_after_s > 0 && x->ending == HF_EXEC_ENDS_ITSELF &&
	    hf_progress_stalls(&x->progress, "/proc", hf_exec_running_ms(x),
			       (int64_t)x->options->hang_after_s * 1000, &x->hung_rank))
		begin_hang(x);
}
