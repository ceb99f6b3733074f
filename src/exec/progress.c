/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/progress.h"

#include "exec/rest.h"

static bool is_there(const struct hf_progress_rank *rank, const char *proc)
{
	return rank->started != 0 && hf_rest_started(proc, rank->pid) == rank->started;
}

/* NULL: there are too many. */
static struct hf_progress_rank *place(struct hf_progress *progress, const char *proc,
				      int32_t number)
{
	struct hf_progress_rank *rank = NULL;

	for (size_t i = 0; i < progress->len; i++)
		if (progress->ranks[i].number == number)
			return &progress->ranks[i];
	if (progress->len < HF_PROGRESS_RANKS_MAX)
		rank = &progress->ranks[progress->len++];
	for (size_t i = 0; rank == NULL && i < progress->len; i++)
		if (!is_there(&progress->ranks[i], proc))
			rank = &progress->ranks[i];
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
	struct hf_progress_rank *rank = place(progress, proc, beat->rank);
	uint64_t before;

	if (rank == NULL)
		return;
	before = rank->memory.step;
	if (rank->pid != pid) {
		rank->pid = pid;
		rank->started = hf_rest_started(proc, pid);
	}
	rank->done = beat->total > 0 && beat->step >= beat->total;
	if (!hf_health_rank_report(&rank->memory, &report) && rank->memory.step == before)
		return;
	progress->any = true;
	progress->advanced_ms = now_ms;
}

static bool is_late(const struct hf_progress_rank *rank, int64_t now_ms, int64_t limit_ms)
{
	return now_ms - rank->memory.advanced_at / HF_MS >= limit_ms;
}

/* It got another number, say. */
static bool advances_as_another(const struct hf_progress *progress,
				const struct hf_progress_rank *rank, int64_t now_ms,
				int64_t limit_ms)
{
	for (size_t i = 0; i < progress->len; i++) {
		const struct hf_progress_rank *other = &progress->ranks[i];

		if (other->pid == rank->pid && !is_late(other, now_ms, limit_ms))
			return true;
	}
	return false;
}

bool hf_progress_stalls(const struct hf_progress *progress, const char *proc, int64_t now_ms,
			int64_t limit_ms, int32_t *ret_rank)
{
	*ret_rank = -1;
	if (!progress->any)
		return false;
	if (now_ms - progress->advanced_ms >= limit_ms)
		return true;
	for (size_t i = 0; i < progress->len; i++) {
		const struct hf_progress_rank *rank = &progress->ranks[i];

		if (rank->done || rank->memory.phase != HF_HEALTH_TRAINING ||
		    !is_late(rank, now_ms, limit_ms) || !is_there(rank, proc) ||
		    advances_as_another(progress, rank, now_ms, limit_ms))
			continue;
		*ret_rank = rank->number;
		return true;
	}
	return false;
}
