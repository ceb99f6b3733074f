/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/progress.h"

#include "exec/rest.h"

#include <signal.h>

#define GRACE_MS (30 * 1000)
#define TERM_GRACE_MS (10 * 60 * 1000)
/* With all places taken, exec looks at most this often for a rank that has ended: the search reads /proc once for
 * each rank. */
#define SEARCH_EVERY_MS 1000

static bool is_there(const struct hf_progress_rank *rank, const char *proc)
{
	return rank->started != 0 && hf_rest_started(proc, rank->pid) == rank->started;
}

/* Finds a rank whose process has ended; a new rank takes its place.  NULL: none has ended, or it is too early to
 * search. */
static struct hf_progress_rank *find_ended(struct hf_progress *progress, const char *proc,
					   int64_t now_ms)
{
	if (now_ms < progress->search_ms)
		return NULL;
	for (size_t i = 0; i < progress->len; i++)
		if (!is_there(&progress->ranks[i], proc))
			return &progress->ranks[i];
	progress->search_ms = now_ms + SEARCH_EVERY_MS;
	return NULL;
}

/* Finds the rank with this number, or adds it.  NULL: all places are taken by ranks that still run. */
static struct hf_progress_rank *find_rank(struct hf_progress *progress, const char *proc,
					  int32_t number, int64_t now_ms)
{
	struct hf_progress_rank *rank;

	for (size_t i = 0; i < progress->len; i++)
		if (progress->ranks[i].number == number)
			return &progress->ranks[i];
	rank = progress->len < HF_PROGRESS_RANKS_MAX ? &progress->ranks[progress->len++]
						     : find_ended(progress, proc, now_ms);
	if (rank != NULL)
		*rank = (struct hf_progress_rank){.number = number};
	return rank;
}

void hf_progress_take(struct hf_progress *progress, const char *proc, const struct hf_beat *beat,
		      pid_t pid, int64_t now_ms)
{
	const struct hf_health_report report = {.attempt = beat->attempt,
						.step = beat->step,
						.phase = beat->phase,
						.at = now_ms * HF_MS};
	struct hf_progress_rank *rank = find_rank(progress, proc, beat->rank, now_ms);
	uint64_t before;

	if (rank == NULL)
		return;
	before = rank->memory.step;
	if (rank->pid != pid) {
		rank->pid = pid;
		rank->started = hf_rest_started(proc, pid);
	}
	rank->done = beat->total > 0 && beat->step >= beat->total;
	/* Step 0 means that the rank has done no step yet. */
	progress->any |= beat->step > 0;
	if (!hf_health_rank_report(&rank->memory, &report) && rank->memory.step == before)
		return;
	progress->advanced_ms = now_ms;
}

/* Whether the next step is late if the last step was at since_ms.  While one rank is outside training the others
 * may wait for it, but ten minutes at most (or limit_ms if that is more). */
static bool is_due(const struct hf_progress *progress, int64_t since_ms, int64_t now_ms,
		   int64_t limit_ms)
{
	int64_t from_ms = since_ms > progress->aside_ms ? since_ms : progress->aside_ms;
	int64_t most_ms = limit_ms > HF_PROGRESS_OTHER_MS ? limit_ms : HF_PROGRESS_OTHER_MS;

	return now_ms - from_ms >= limit_ms || now_ms - since_ms >= most_ms;
}

/* Whether the rank's next step is late.  A rank outside training has ten minutes, as in the agent. */
static bool is_late(const struct hf_progress *progress, const struct hf_progress_rank *rank,
		    int64_t now_ms, int64_t limit_ms)
{
	if (rank->memory.phase != HF_HEALTH_TRAINING && limit_ms < HF_PROGRESS_OTHER_MS)
		limit_ms = HF_PROGRESS_OTHER_MS;
	return !rank->done && is_due(progress, rank->memory.advanced_at / HF_MS, now_ms, limit_ms);
}

/* Notes the time (aside_ms) if a rank is outside training: it evaluates or saves.  Other ranks may wait for that
 * rank, and have limit_ms after it trains again. */
static void note_aside(struct hf_progress *progress, const char *proc, int64_t now_ms,
		       int64_t limit_ms)
{
	for (size_t i = 0; i < progress->len; i++) {
		const struct hf_progress_rank *rank = &progress->ranks[i];

		if (!rank->done && rank->memory.phase != HF_HEALTH_TRAINING &&
		    !is_late(progress, rank, now_ms, limit_ms) && is_there(rank, proc)) {
			progress->aside_ms = now_ms;
			return;
		}
	}
}

/* Whether the rank's process also reports for another rank, and that rank advances: the process has got another
 * number. */
static bool advances_as_another(const struct hf_progress *progress,
				const struct hf_progress_rank *rank, int64_t now_ms,
				int64_t limit_ms)
{
	for (size_t i = 0; i < progress->len; i++) {
		const struct hf_progress_rank *other = &progress->ranks[i];

		if (other->pid == rank->pid && !is_late(progress, other, now_ms, limit_ms))
			return true;
	}
	return false;
}

/* Whether no rank advances.  A rank whose process has ended counts too: other ranks may wait for it for ever.
 * While the process of a rank with all steps done still runs, the ranks do not hang. */
static bool all_stall(const struct hf_progress *progress, const char *proc, int64_t now_ms,
		      int64_t limit_ms)
{
	bool any = false;

	if (!is_due(progress, progress->advanced_ms, now_ms, limit_ms))
		return false;
	for (size_t i = 0; i < progress->len; i++) {
		const struct hf_progress_rank *rank = &progress->ranks[i];

		if (rank->done && is_there(rank, proc))
			return false;
		any |= !rank->done;
	}
	return any;
}

bool hf_progress_stalls(struct hf_progress *progress, const char *proc, int64_t now_ms,
			int64_t limit_ms, int32_t *ret_rank)
{
	*ret_rank = -1;
	if (!progress->any)
		return false;
	note_aside(progress, proc, now_ms, limit_ms);
	if (all_stall(progress, proc, now_ms, limit_ms))
		return true;
	for (size_t i = 0; i < progress->len; i++) {
		const struct hf_progress_rank *rank = &progress->ranks[i];

		if (!is_late(progress, rank, now_ms, limit_ms) || !is_there(rank, proc) ||
		    advances_as_another(progress, rank, now_ms, limit_ms))
			continue;
		*ret_rank = rank->number;
		return true;
	}
	return false;
}

bool hf_progress_outlives(const struct hf_progress *progress, int signum, int64_t told_ms)
{
	return progress->any &&
	       progress->advanced_ms - told_ms >= (signum == SIGTERM ? TERM_GRACE_MS : GRACE_MS);
}

static bool is_pid_before(const struct hf_progress *progress, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (progress->ranks[j].pid == progress->ranks[i].pid)
			return true;
	return false;
}

size_t hf_progress_signal(const struct hf_progress *progress, const char *proc, pid_t except,
			  int signum)
{
	size_t n = 0;

	for (size_t i = 0; i < progress->len; i++) {
		const struct hf_progress_rank *rank = &progress->ranks[i];

		if (rank->pid != except && is_there(rank, proc) && !is_pid_before(progress, i) &&
		    kill(rank->pid, signum) == 0)
			n++;
	}
	return n;
}
