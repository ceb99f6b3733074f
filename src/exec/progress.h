/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_PROGRESS_H
#define HF_EXEC_PROGRESS_H

#include "health/beat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

HF_BEGIN_DECLS

/*
 * The progress of the ranks below this process, for --hang-after.  hf_health_rank_report() says what
 * progress is, for the agent as well: a step that is further than this rank's last one, a new attempt, or
 * the third step in a row of a rank that went back to its checkpoint.  A rank that repeats the steps
 * between two checkpoints for ever does not hang.
 *
 * The caller gives the time in ms, and may leave out time in which the ranks could not run.
 */
/* As many as an agent takes of a node.  Of more ranks the first that are still there count, checked once a second. */
#define HF_PROGRESS_RANKS_MAX 128

struct hf_progress {
	struct hf_progress_rank {
		int32_t number;   /* -1: not reported */
		pid_t pid;        /* the process that reported for it last */
		uint64_t started; /* start time of that process: another may get its pid later */
		bool done;        /* it has done all of its steps */
		struct hf_health_rank_memory memory;
	} ranks[HF_PROGRESS_RANKS_MAX];
	size_t len;
	bool any;
	int64_t advanced_ms; /* a rank advanced last */
	int64_t aside_ms;    /* a rank was outside training last */
	int64_t search_ms;   /* the next search for a rank that has ended */
};

/* Takes a report with a step, of a process below this one.  proc: "/proc". */
void hf_progress_take(struct hf_progress *progress, const char *proc, const struct hf_beat *beat,
		      pid_t pid, int64_t now_ms);

/* The limit of a rank that does not train (it evaluates, or saves), as in the agent. */
#define HF_PROGRESS_OTHER_MS (10 * 60 * 1000)

/*
 * Whether a rank hangs: after the first step no step came for limit_ms, of any rank or of one.  A rank that hangs alone
 * has more steps to do, its process is still there, and that process reports for no other rank that advances.
 *
 * While a rank is outside training, it and the others have ten minutes from their own last step, or limit_ms if that is
 * more.  When that rank trains again, or has ended, the others have limit_ms from then, within the ten minutes.  A rank that
 * has done all of its steps never hangs.  Call it each second: it notes which ranks are outside training.
 * ret_rank: the rank that hangs; -1: all ranks, or a rank without a number.
 */
bool hf_progress_stalls(struct hf_progress *progress, const char *proc, int64_t now_ms,
			int64_t limit_ms, int32_t *ret_rank);

/* Ranks still advance 30 s after a signal that should have ended them (at told_ms), after SIGTERM ten minutes: the program
 * has survived it.  After SIGTERM a program may go on for minutes to save its state. */
bool hf_progress_outlives(const struct hf_progress *progress, int signum, int64_t told_ms);

/* Sends signum (0: none) to the process of each rank, except one.  Returns the number of processes that could be signalled. */
size_t hf_progress_signal(const struct hf_progress *progress, const char *proc, pid_t except,
			  int signum);

HF_END_DECLS

#endif
