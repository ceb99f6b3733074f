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
 * How far the ranks below us are, for --hang-after.  What is progress is said where the agent takes it
 * from, hf_health_rank_report(): a step that is further than this rank's last one, a new attempt, or the
 * third step in a row of a rank that went back to its checkpoint.  So a rank that goes round between two
 * checkpoints for ever is not hung: it works, and whether it achieves anything others decide.
 *
 * Time is the caller's, in ms; he may leave out what does not count.
 */
/* As many as an agent hears of a node; of more the first that are still there, which is looked at once a second. */
#define HF_PROGRESS_RANKS_MAX 128

struct hf_progress {
	struct hf_progress_rank {
		int32_t number;   /* -1: not said */
		pid_t pid;        /* that spoke for it last */
		uint64_t started; /* of that process, so that no later one is taken for it */
		bool done;        /* all of its steps */
		struct hf_health_rank_memory memory;
	} ranks[HF_PROGRESS_RANKS_MAX];
	size_t len;
	bool any;
	int64_t advanced_ms; /* some rank */
	int64_t aside_ms;    /* when one was seen outside training */
	int64_t search_ms;   /* not before then is one looked for that has ended */
};

/* A report with a step, of a process below us.  proc: "/proc". */
void hf_progress_take(struct hf_progress *progress, const char *proc, const struct hf_beat *beat,
		      pid_t pid, int64_t now_ms);

/* Of a rank that is not training (it evaluates, or saves): as the agent has it. */
#define HF_PROGRESS_OTHER_MS (10 * 60 * 1000)

/*
 * No step came for limit_ms after the first one: of any rank, or of one that has more to do, whose process
 * is still there (one that has ended does not hang) and speaks for no other rank that advances.  Outside
 * training a rank has ten minutes, if that is more, and beside it the others have, as they may wait for it: each from
 * its own last step.  Once it is back, or has ended, they have limit_ms for theirs, within these ten minutes.  One that
 * has done all of its steps has all the time.  It is to be asked each second, as it notes who is outside training.
 * ret_rank: which one it is; -1: all, or it has no number.
 */
bool hf_progress_stalls(struct hf_progress *progress, const char *proc, int64_t now_ms,
			int64_t limit_ms, int32_t *ret_rank);

/* Steps go on so long after a signal that was to end them (at told_ms): it did not.  Who ends by SIGTERM may be given
 * minutes to save what it has, and go on with its step meanwhile. */
bool hf_progress_outlives(const struct hf_progress *progress, int signum, int64_t told_ms);

/* signum (0: none) to each process that spoke for a rank and is still there, but for one of them.  How many that were;
 * those that we may not signal do not count. */
size_t hf_progress_signal(const struct hf_progress *progress, const char *proc, pid_t except,
			  int signum);

HF_END_DECLS

#endif
