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
/* As many as an agent hears of a node; of more the first that are still there. */
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
};

/* A report with a step, of a process below us.  proc: "/proc". */
void hf_progress_take(struct hf_progress *progress, const char *proc, const struct hf_beat *beat,
		      pid_t pid, int64_t now_ms);

/*
 * No step came for limit_ms after the first one: of any rank, or of one that has more to do, trains (others
 * may do so while it evaluates), and whose process is still there (one that has ended does not hang) and
 * speaks for no other rank that advances.  ret_rank: which one it is; -1: all, or it has no number.
 */
bool hf_progress_stalls(const struct hf_progress *progress, const char *proc, int64_t now_ms,
			int64_t limit_ms, int32_t *ret_rank);

HF_END_DECLS

#endif
