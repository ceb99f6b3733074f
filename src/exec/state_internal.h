/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_STATE_INTERNAL_H
#define HF_EXEC_STATE_INTERNAL_H

#include "exec/exec_internal.h"
#include "exec/orders.h"
#include "exec/progress.h"
#include "exec/stream.h"
#include "exec/tail.h"

#include <time.h>

HF_BEGIN_DECLS

/* The state of a running exec, which exec.c, terminal.c, environment.c and ending.c share.  A process has one such
 * state, a static one. */

#define HF_EXEC_RENDEZVOUS_NAMES 2

/* How CMD ends.  TOLD: by a signal to end from outside.  RULE: a number in its output breaks a log rule.  ORDERED: by an
 * order of the agent. */
enum hf_exec_ends {
	HF_EXEC_ENDS_ITSELF,
	HF_EXEC_ENDS_TOLD,
	HF_EXEC_ENDS_HUNG,
	HF_EXEC_ENDS_RULE,
	HF_EXEC_ENDS_FENCED,
	HF_EXEC_ENDS_ORDERED
};

/* What waits until the ranks have saved: nothing, the stop that an order asks for, or a SIGTERM from outside. */
enum hf_exec_saving { HF_EXEC_NO_SAVE, HF_EXEC_SAVE_FOR_ORDER, HF_EXEC_SAVE_FOR_SIGNAL };

struct hf_exec_run {
	const struct hf_exec_options *options;
	struct hf_exec_link link;
	struct hf_exec_orders orders;
	struct hf_tail tail;
	struct hf_fence fence;
	struct hf_exec_stream out, err;
	int signal_fd;
	sigset_t before; /* the signal mask of CMD */
	pid_t child;
	bool ended; /* CMD has ended, or was not started yet */
	bool over;  /* CMD did not end, not even by SIGKILL */
	int status;
	size_t left; /* processes that SIGKILL did not end */
	bool left_known;
	bool nested;   /* exec runs below another exec; only the outer exec gets orders */
	bool draining; /* exec takes no orders until it has reported the end of CMD */
	enum hf_exec_ends ending;
	bool foreground, group, killed;
	bool stopped;    /* CMD is stopped until the ranks below it have printed their stacks */
	bool background; /* the shell continued exec in the background */
	uint64_t attempt;
	int64_t now_ms, beat_at_ms, kill_at_ms, fence_at_ms, stop_at_ms;
	int64_t stopped_ms; /* the sum of the times in which CMD could not run */
	int64_t step_ms;    /* when a rank last advanced */
	int64_t signal_ms;  /* when a signal to end came, on the clock without stopped_ms */
	int signal;
	int start_error; /* errno of the failed start of CMD; 0: none */
	/* The values of torch's rendezvous variables at the start of exec; environment.c has the names. */
	const char *rendezvous[HF_EXEC_RENDEZVOUS_NAMES];
	struct hf_exec_ending end;
	char end_text[384]; /* buffer for the text of end.why */
	struct hf_save save;
	enum hf_exec_saving saving;
	bool save_signalled;
	bool saved_since; /* a rank has saved since exec sent --save-signal */
	int64_t save_from_ms, save_until_ms;
	struct hf_progress progress;
	int32_t hung_rank; /* the rank that hangs; -1: all ranks, or a rank without a number */
	struct hf_log_finding rule; /* the log rule that ends CMD; name NULL: no rule */
	int64_t dump_until_ms; /* the ranks write NCCL's flight recorder until then; 0: they do not */
	pid_t dumper;          /* the process that asks for it; 0: none */
	bool any_step, step_waits;
	bool state_waits; /* the agent's state of this process has an older step or save */
	struct hf_beat step; /* the last report of a step that CMD's ranks sent */
	int64_t told_at_ms;
};

static inline int64_t hf_exec_clock_ms(void)
{
	struct timespec ts;

	/* CLOCK_BOOTTIME also counts the time in which the machine slept: for the peers of the rank that time has
	 * passed as well. */
	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The present time less the time in which CMD could not run: the clock for limits on CMD. */
static inline int64_t hf_exec_running_ms(const struct hf_exec_run *x)
{
	return x->now_ms - x->stopped_ms;
}

/* ---- hang.c: a CMD that hangs, or that breaks a log rule ---------------------------------------- */

void hf_exec_watch_for_hang(struct hf_exec_run *x);
/* The process that asks for the flight recorder has ended. */
void hf_exec_take_dumper_end(struct hf_exec_run *x, int status);

/* ---- terminal.c: job control ------------------------------------------------------------------- */

/* Continues CMD.  Gives CMD the terminal if exec's process group has the foreground. */
void hf_exec_continue_cmd(struct hf_exec_run *x);
/* Call this when child `pid` has stopped. If it is CMD, and not SIGSTOP stopped it, exec stops
 * too. */
void hf_exec_take_stop(struct hf_exec_run *x, pid_t pid);

/* ---- environment.c: the variables of CMD ------------------------------------------------------- */

void hf_exec_read_environment(struct hf_exec_run *x);
void hf_exec_set_environment(struct hf_exec_run *x);

/* ---- ending.c: the end as a code and a sentence ------------------------------------------------ */

/* True if CMD ended by itself or hung: then a cause in its stderr explains the end. */
bool hf_exec_is_own_end(const struct hf_exec_run *x);
/* Fills in x->end (exit code and reason) from the way in which CMD ended. */
void hf_exec_make_ending(struct hf_exec_run *x);
/* Sets the exit code and the reason of an end of exec while CMD does not run. */
void hf_exec_give_code(struct hf_exec_run *x, int code, const char *why);
/* Writes the termination message; returns the exit code. */
int hf_exec_report_end(struct hf_exec_run *x);
int hf_exec_report_no_start(struct hf_exec_run *x, int err);
/* Puts CMD's end into the state that exec sends to the agent. */
void hf_exec_tell_end(struct hf_exec_run *x);

HF_END_DECLS

#endif
