/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_STATE_INTERNAL_H
#define HF_EXEC_STATE_INTERNAL_H

#include "exec/exec_internal.h"
#include "exec/orders.h"
#include "exec/progress.h"
#include "exec/tail.h"

#include <time.h>

HF_BEGIN_DECLS

/* The state of a running exec, which exec.c, terminal.c, environment.c and ending.c share.  There is one, and it is static. */

/* poll() calls a pipe writable when this many bytes fit. */
#define HF_EXEC_CHUNK 4096
#define HF_EXEC_RENDEZVOUS_NAMES 2

/* ORDERED: the agent has told to stop CMD. */
enum hf_exec_ends {
	HF_EXEC_ENDS_ITSELF,
	HF_EXEC_ENDS_TOLD,
	HF_EXEC_ENDS_HUNG,
	HF_EXEC_ENDS_FENCED,
	HF_EXEC_ENDS_ORDERED
};

/* What waits until the ranks have saved. */
enum hf_exec_saving { HF_EXEC_NO_SAVE, HF_EXEC_SAVE_FOR_ORDER, HF_EXEC_SAVE_FOR_SIGNAL };

struct hf_exec_run {
	const struct hf_exec_options *options;
	struct hf_exec_link link;
	struct hf_exec_orders orders;
	struct hf_tail tail;
	struct hf_fence fence;
	int signal_fd, err_fd;     /* -1: stderr is CMD's own */
	int out_fd;                /* our stderr, where writing never blocks */
	char chunk[HF_EXEC_CHUNK]; /* of CMD's stderr, on its way to ours */
	size_t chunk_len, chunk_at;
	sigset_t before; /* the signal mask of CMD */
	pid_t child;
	bool ended; /* CMD has ended, or was not started yet */
	bool over;  /* CMD does not end, not even by SIGKILL */
	int status;
	size_t left; /* processes that SIGKILL did not end */
	bool left_known;
	bool nested;   /* this exec runs below another exec: only the outer one gets orders */
	bool draining; /* orders wait until the end of CMD is told */
	enum hf_exec_ends ending;
	bool foreground, group, killed;
	bool stopped;    /* CMD stands still until the ranks below it have printed their stacks */
	bool background; /* the shell continued this process in the background */
	uint64_t attempt;
	int64_t now_ms, beat_at_ms, kill_at_ms, fence_at_ms, stop_at_ms;
	int64_t stopped_ms; /* time in which CMD could not run */
	int64_t step_ms;    /* the last time that a rank advanced */
	int64_t signal_ms;  /* the signal that asks CMD to end came then, without stopped_ms */
	int signal;
	int start_error; /* errno of a CMD that cannot be run */
	/* Values at the start; environment.c has the names. */
	const char *rendezvous[HF_EXEC_RENDEZVOUS_NAMES];
	struct hf_exec_ending end;
	char end_text[384]; /* what end.why may point to */
	struct hf_save save;
	enum hf_exec_saving saving;
	bool save_signalled;
	bool saved_since; /* a rank has saved since the signal */
	int64_t save_until_ms;
	struct hf_progress progress;
	int32_t hung_rank; /* -1: all ranks, or a rank without a number */
	bool any_step, step_waits;
	struct hf_beat step; /* the last one */
	int64_t told_at_ms;
};

static inline int64_t hf_exec_clock_ms(void)
{
	struct timespec ts;

	/* It counts the time that the machine slept: the peers' time has passed as well. */
	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- terminal.c: job control ------------------------------------------------------------------- */

/* Continues CMD; gives it the terminal if the own group has the foreground. */
void hf_exec_continue_cmd(struct hf_exec_run *x);
/* A child has stopped. */
void hf_exec_take_stop(struct hf_exec_run *x, pid_t pid);

/* ---- environment.c: the variables of CMD ------------------------------------------------------- */

void hf_exec_read_environment(struct hf_exec_run *x);
void hf_exec_set_environment(struct hf_exec_run *x);

/* ---- ending.c: the end as a code and a sentence ------------------------------------------------ */

/* CMD ended by itself or hung, so a cause in stderr explains it. */
bool hf_exec_is_own_end(const struct hf_exec_run *x);
/* Of CMD, as it has ended. */
void hf_exec_make_ending(struct hf_exec_run *x);
/* Ends exec with this code, while CMD does not run. */
void hf_exec_give_code(struct hf_exec_run *x, int code, const char *why);
/* Writes the message; returns the exit code. */
int hf_exec_report_end(struct hf_exec_run *x);
int hf_exec_report_no_start(struct hf_exec_run *x, int err);
/* Puts the end into the state that the agent is told. */
void hf_exec_tell_end(struct hf_exec_run *x);

HF_END_DECLS

#endif
