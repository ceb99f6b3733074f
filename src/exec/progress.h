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
 * The progress of the ranks below exec, for --hang-after.  hf_health_rank_report() decides what progress is, here and
 * in the agent: a step further than the rank's last step, a new attempt, or the third step in a row of a rank that
 * went back to its checkpoint.  So a rank that repeats the steps between two checkpoints for ever does not hang.
 * The caller gives the time in ms, and may leave out time in which the ranks could not run.
 */
/* Most ranks, as many as an agent takes of a node.  A further rank takes the place of a rank that has ended; exec
 * looks for such a place once a second. */
#define HF_PROGRESS_RANKS_MAX 128

struct hf_progress {
	struct hf_progress_rank {
		int32_t number; /* -1: not reported */
		pid_t pid;      /* the process that sent the rank's last report */
		/* start time of that process, because another process may get its pid later */
		uint64_t started;
		bool done; /* the rank has done all of its steps */
		struct hf_health_rank_memory memory;
	} ranks[HF_PROGRESS_RANKS_MAX];
	size_t len;
	bool any;
	int64_t advanced_ms; /* a rank advanced last */
	int64_t aside_ms;    /* a rank was outside training last */
	int64_t search_ms;   /* time of the next search for a rank that has ended */
};

/* Takes a report with a step from a descendant.  proc: "/proc". */
void hf_progress_take(struct hf_progress *progress, const char *proc, const struct hf_beat *beat,
		      pid_t pid, int64_t now_ms);

/* The limit for a rank outside training (it evaluates, or saves), as in the agent. */
#define HF_PROGRESS_OTHER_MS (10 * 60 * 1000)

/*
 * Whether the ranks hang: after the first step no rank has reported a step for limit_ms, or one rank has not.
 *
 * - A rank hangs alone if it has more steps to do, its process still runs, and this process does not report for
 *   another rank that advances.
 * - While a rank is outside training, this rank and the others have ten minutes from their own last step, or limit_ms
 *   if that is more.  When the rank trains again, or has ended, the others have limit_ms from then, within the ten
 *   minutes.
 * - A rank that has done all of its steps does not hang.
 *
 * Call it each second: it notes which ranks are outside training.  ret_rank: the rank that hangs; -1: all ranks, or a
 * rank without a number.
 */
bool hf_progress_stalls(struct hf_progress *progress, const char *proc, int64_t now_ms,
			int64_t limit_ms, int32_t *ret_rank);

/* Whether a program survives a signal that should have ended it (which came at told_ms): ranks still advance 30 s
 * later, after SIGTERM ten minutes later.  After SIGTERM a program may take minutes to save its state. */
bool hf_progress_outlives(const struct hf_progress *progress, int signum, int64_t told_ms);

/* Sends signum (0: only check) to the process of each rank, except the process `except`.  Returns the number of
 * processes that could be signalled. */
size_t hf_progress_signal(const struct hf_progress *progress, const char *proc, pid_t except,
			  int signum);

HF_END_DECLS

#endif
