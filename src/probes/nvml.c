/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Watches the child process that asks NVML. Input: the child's pipe. Output: records, time-outs and
 * failures. Invariants: one child at a time; if a look passes its deadline, that is reported now
 * and at each further deadline.
 */
#include "probes/nvml.h"

#include "base/fs.h"
#include "base/mem.h"
#include "ctl/backoff.h"
#include "loop/pipe.h"
#include "loop/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKOFF (1 * HF_SECOND)
#define BACKOFF_MAX (5 * HF_MINUTE)

/*
 * A child is alive (`process`), or was killed and the kernel has not ended it yet (`dying`), or is
 * absent until `pause` is over.
 */
struct hf_nvml_watch {
	struct hf_loop *loop;
	struct hf_nvml_watch_options options;
	struct hf_process *process;
	struct hf_reader *reader;
	int ask_fd; /* -1: none */
	bool asked, dying;
	bool begun;  /* the present child has started NVML's library */
	bool silent; /* a deadline has passed since the last answer */
	bool yields; /* another program has killed the last child: `pause` is for that program */
	hf_time asked_at;
	hf_time patience; /* how long a child may take to start the library */
	hf_time longest;  /* twice the time of the longest start so far */
	struct hf_strbuf in;
	struct hf_nvml_record *record;
	struct hf_backoff backoff;
	struct hf_timer *deadline, *pause;
	struct hf_task *tell_failed; /* task that reports a failed start of a child from the loop */
	struct hf_error failed;
	bool *dead;
};

static void on_deadline(void *arg);
static void on_failed(void *arg);

static void on_pause_over(HF_UNUSED void *arg)
{
	/* Nothing to do: hf_nvml_watch_ask checks whether the timer is armed. */
}

struct hf_nvml_watch *hf_nvml_watch_create(struct hf_loop *loop,
					   const struct hf_nvml_watch_options *options)
{
	struct hf_nvml_watch *watch = hf_xcalloc(1, sizeof(*watch));

	hf_assert(options->told && options->child_argv);
	watch->loop = loop;
	watch->options = *options;
	if (watch->options.deadline == 0)
		watch->options.deadline = HF_NVML_DEADLINE;
	if (watch->options.first_deadline == 0)
		watch->options.first_deadline = HF_NVML_FIRST_DEADLINE;
	if (watch->options.first_deadline < watch->options.deadline)
		watch->options.first_deadline = watch->options.deadline;
	watch->patience = watch->options.first_deadline;
	if (watch->options.backoff == 0)
		watch->options.backoff = BACKOFF;
	if (watch->options.yield == 0)
		watch->options.yield = HF_NVML_YIELD;
	if (watch->options.backoff_max == 0)
		watch->options.backoff_max = BACKOFF_MAX;
	/* A node has one such child, so the delay needs no random part. */
	watch->backoff = (struct hf_backoff)HF_BACKOFF_INIT(watch->options.backoff,
							    watch->options.backoff_max, 0);
	watch->ask_fd = -1;
	hf_strbuf_init(&watch->in, HF_NVML_FRAME_HEAD + HF_NVML_FRAME_MAX + HF_PIPE_READ_MAX);
	watch->record = hf_xcalloc(1, sizeof(*watch->record));
	watch->deadline = hf_timer_create(loop, on_deadline, watch);
	watch->pause = hf_timer_create(loop, on_pause_over, watch);
	watch->tell_failed = hf_task_create(loop, on_failed, watch);
	return watch;
}

/* Closes the pipes and kills the child. The process stays known until the kernel has ended it. */
static void kill_child(struct hf_nvml_watch *watch)
{
	watch->reader = hf_reader_destroy(watch->reader);
	if (watch->ask_fd >= 0)
		close(watch->ask_fd);
	watch->ask_fd = -1;
	watch->asked = false;
	hf_strbuf_clear(&watch->in);
	if (watch->process && !watch->dying) {
		(void)hf_process_kill(watch->process, SIGKILL, NULL);
		watch->dying = true;
	}
}

struct hf_nvml_watch *hf_nvml_watch_destroy(struct hf_nvml_watch *watch)
{
	if (!watch)
		return NULL;
	if (watch->dead)
		*watch->dead = true;
	kill_child(watch);
	hf_process_destroy(watch->process);
	hf_timer_destroy(watch->deadline);
	hf_timer_destroy(watch->pause);
	hf_task_destroy(watch->tell_failed);
	hf_strbuf_release(&watch->in);
	free(watch->record);
	free(watch);
	return NULL;
}

/* Delays the next child, each time twice as long, until an answer comes. */
static void pause_before_next(struct hf_nvml_watch *watch)
{
	hf_timer_arm(watch->pause, hf_backoff_next(&watch->backoff, NULL));
}

static void report_outcome(struct hf_nvml_watch *watch, enum hf_nvml_outcome outcome,
			   const struct hf_error *err)
{
	bool has = outcome == HF_NVML_ANSWERED || outcome == HF_NVML_EVENTS;

	watch->options.told(watch->options.arg, outcome, has ? watch->record : NULL, err);
}

static void on_failed(void *arg)
{
	struct hf_nvml_watch *watch = arg;
	struct hf_error err = watch->failed;

	report_outcome(watch, HF_NVML_FAILED, &err);
}

static void fail_child(struct hf_nvml_watch *watch, const struct hf_error *err)
{
	hf_timer_disarm(watch->deadline);
	kill_child(watch);
	pause_before_next(watch);
	watch->failed = *err;
	hf_task_post(watch->tell_failed);
}

/* How much longer the child may take to start the library; 0: the library has started. */
static hf_time time_left(const struct hf_nvml_watch *watch)
{
	hf_time waited = hf_loop_mono(watch->loop) - watch->asked_at;

	return watch->dying || watch->begun ? 0 : watch->patience - waited;
}

/* After a hang: if the library had started in the child, the next start gets one deadline; else
 * twice the time of this start. first_deadline is the limit. */
static void lose_patience(struct hf_nvml_watch *watch)
{
	hf_time next = watch->begun ? watch->options.deadline : 2 * watch->patience;

	watch->patience =
		next < watch->options.first_deadline ? next : watch->options.first_deadline;
}

/* The child has not answered in time, or was killed and has not ended in time. Reports it, and
 * kills the child if it still runs. */
static void on_deadline(void *arg)
{
	struct hf_nvml_watch *watch = arg;
	hf_time left = time_left(watch);
	struct hf_error err = {0};

	if (left > 0 && !watch->silent) {
		hf_timer_arm(watch->deadline, left);
		return;
	}
	hf_error_set(
		&err, HF_E_TIMEOUT,
		watch->dying
			? "the driver hangs, and the kernel has not ended the killed child process"
			: "the driver did not answer in time");
	watch->silent = true;
	if (!watch->dying && left <= 0) {
		lose_patience(watch);
		kill_child(watch);
		pause_before_next(watch);
	}
	hf_timer_arm(watch->deadline,
		     left > 0 && left < watch->options.deadline ? left : watch->options.deadline);
	report_outcome(watch, HF_NVML_TIMED_OUT, &err);
}

static void on_ended(void *arg, const struct hf_process_exit *exit)
{
	struct hf_nvml_watch *watch = arg;
	struct hf_error err = {0};
	bool killed = watch->dying;

	watch->process = hf_process_destroy(watch->process);
	watch->dying = false;
	if (killed) {
		hf_timer_disarm(watch->deadline);
		return;
	}
	if (exit->signum != 0)
		hf_error_set(&err, HF_E_INTERNAL, "the child process was killed by signal %d",
			     exit->signum);
	else
		hf_error_set(&err, HF_E_INTERNAL, "the child process exited with code %d",
			     exit->code);
	fail_child(watch, &err);
	/* A child that has not started the library keeps no device open. */
	watch->yields = exit->signum == SIGKILL && watch->begun;
	if (watch->yields)
		hf_timer_arm(watch->pause, watch->options.yield);
}

/* After a first answer, sets the deadline of later starts to twice the time of the longest start:
 * the driver is slow if no program keeps its devices open. A start without a driver teaches
 * nothing. */
static void learn_deadline(struct hf_nvml_watch *watch)
{
	const struct hf_nvml_watch_options *o = &watch->options;
	hf_time twice = 2 * (hf_loop_mono(watch->loop) - watch->asked_at);

	if (watch->begun)
		return;
	watch->begun = watch->record->code == HF_NVML_OK;
	if (!watch->begun) {
		watch->patience = o->first_deadline;
		return;
	}
	if (twice > watch->longest)
		watch->longest = twice < o->first_deadline ? twice : o->first_deadline;
	watch->patience = watch->longest > o->deadline ? watch->longest : o->deadline;
}

/* Takes one record from the pipe. True: one was taken. False: none is complete, or the watch was
 * destroyed. */
static bool take_record(struct hf_nvml_watch *watch)
{
	struct hf_error err = {0};
	int got = hf_nvml_record_read(&watch->in, watch->record, &err);

	if (got == 1 && watch->record->kind == HF_NVML_ROUND && !watch->asked)
		got = hf_error_set(&err, HF_E_BAD_REQUEST, "an answer without a question");
	if (got < 0) {
		fail_child(watch, &err);
		return false;
	}
	if (got == 0)
		return false;
	if (watch->record->kind == HF_NVML_ROUND) {
		watch->asked = watch->silent = false;
		learn_deadline(watch);
		hf_backoff_reset(&watch->backoff);
		hf_timer_disarm(watch->deadline);
		report_outcome(watch, HF_NVML_ANSWERED, NULL);
	} else {
		report_outcome(watch, HF_NVML_EVENTS, NULL);
	}
	return true;
}

static void on_bytes(void *arg, const char *bytes, size_t len, HF_UNUSED int read_error)
{
	struct hf_nvml_watch *watch = arg;
	bool dead = false;

	/* The pipe was closed: the child ended, and the process callback reports its
	 * termination. */
	if (len == 0)
		return;
	hf_assert(!watch->dead);
	watch->dead = &dead;
	hf_strbuf_add(&watch->in, bytes, len);
	/* The buffer has room for the longest record and one more read, so it cannot be full
	 * here. */
	hf_assert(!watch->in.full);
	while (take_record(watch) && !dead && watch->reader)
		continue;
	if (!dead)
		watch->dead = NULL;
}

static int start_child(struct hf_nvml_watch *watch, struct hf_error *err)
{
	HF_AUTO_FD ask_read = -1, ask_write = -1, answer_read = -1, answer_write = -1;
	int fds[2], rc = hf_pipe_make(fds, err);

	if (rc < 0)
		return rc;
	ask_read = fds[0];
	ask_write = fds[1];
	rc = hf_pipe_make(fds, err);
	if (rc < 0)
		return rc;
	answer_read = fds[0];
	answer_write = fds[1];
	rc = hf_process_spawn(watch->loop,
			      &(struct hf_process_spec){
				      .argv = watch->options.child_argv,
				      .stdio = {ask_read, answer_write, HF_PROCESS_STDIO_NULL},
				      .new_group = true,
				      .die_with_parent = true,
			      },
			      on_ended, watch, &watch->process, err);
	if (rc < 0)
		return rc;
	rc = hf_reader_create(watch->loop, answer_read, on_bytes, watch, &watch->reader, err);
	if (rc < 0)
		return rc;
	answer_read = -1;
	watch->ask_fd = ask_write;
	ask_write = -1;
	watch->begun = false;
	return 0;
}

void hf_nvml_watch_resume(struct hf_nvml_watch *watch)
{
	if (watch->yields)
		hf_timer_disarm(watch->pause);
	watch->yields = false;
}

bool hf_nvml_watch_ask(struct hf_nvml_watch *watch)
{
	struct hf_error err = {0};
	int rc = 0;

	if (watch->asked || watch->dying || hf_timer_armed(watch->pause))
		return false;
	if (!watch->process)
		rc = start_child(watch, &err);
	/* Only one question is open at a time, so the pipe has room and this write never blocks. */
	if (rc == 0 && hf_fs_write_all(watch->ask_fd, "?", 1) < 0)
		rc = hf_error_errno(&err, errno, "cannot ask the child process");
	if (rc < 0) {
		hf_error_wrap(&err, "the driver's library");
		fail_child(watch, &err);
		return false;
	}
	watch->asked = true;
	watch->asked_at = hf_loop_mono(watch->loop);
	hf_timer_arm(watch->deadline, watch->options.deadline);
	return true;
}

void hf_nvml_watch_renew(struct hf_nvml_watch *watch)
{
	if (!watch->process || watch->dying)
		return;
	kill_child(watch);
	/* If the killed child has not ended by this deadline, that is reported too. */
	hf_timer_arm(watch->deadline, watch->options.deadline);
}
