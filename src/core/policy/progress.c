/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/names.h"

/*
 * Ranks that report their steps.  If no rank advances for progressDeadlineSeconds, the job is
 * restarted.  A rank that delays its peers is named.  Only reports count: a rank without reports,
 * or on a node with a silent agent, neither advances nor hangs.
 */

struct standstill {
	int role;
	int32_t index;            /* role and index: the rank that has stood still for longest */
	const struct hf_pod *pod; /* pod of that rank; NULL: no rank stands still */
	hf_time last;             /* when any rank of the job last finished a step */
	/* the oldest of the agents' last reports: until then, at least, every rank stood still */
	hf_time told;
	bool advancing; /* a rank advances */
};

static bool is_training(const struct hf_slot *slot)
{
	return slot->phase == HF_SLOT_RUNNING;
}

static void find_standstill(const struct hf_brain *b, struct standstill *still)
{
	*still = (struct standstill){.last = HF_TIME_NONE, .told = HF_TIME_NEVER};
	for (int r = 0; r < b->roles_len && !still->advancing; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas && !still->advancing; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (!is_training(slot) || slot->pod->advance == HF_ADVANCE_UNKNOWN)
				continue;
			/* The last report of a lost node's agent is out of date, so its rank is
			 * taken to advance. */
			still->advancing =
				slot->pod->advance == HF_ADVANCING || hf_node_lost(b, slot->pod);
			if (!still->pod || slot->pod->advanced_at < still->pod->advanced_at) {
				still->role = r;
				still->index = i;
				still->pod = slot->pod;
			}
			if (slot->pod->advanced_at > still->last)
				still->last = slot->pod->advanced_at;
			if (slot->pod->advance == HF_ADVANCE_STALLED &&
			    slot->pod->told_at < still->told)
				still->told = slot->pod->told_at;
		}
	}
}

/* Returns true if no rank of the job advances. Sets still->last to since when; the time before all
 * ranks were running does not count. */
static bool does_job_stand(const struct hf_brain *b, struct standstill *still)
{
	if (!b->job.recovery.progress_deadline_seconds.set || b->seen->blind ||
	    b->ledger.phase != HF_PHASE_RUNNING)
		return false;
	find_standstill(b, still);
	if (b->ledger.since > still->last)
		still->last = b->ledger.since;
	return still->pod && !still->advancing;
}

static hf_time find_deadline(const struct hf_brain *b, const struct standstill *still)
{
	return hf_time_add(still->last,
			   hf_seconds(b->job.recovery.progress_deadline_seconds.value));
}

bool hf_progress_find_hang(const struct hf_brain *b, struct hf_termination *ret_end)
{
	struct standstill still;

	if (hf_verdict_pending(b) || !does_job_stand(b, &still))
		return false;
	if (b->now < find_deadline(b, &still)) {
		hf_wake(b, find_deadline(b, &still));
		return false;
	}
	/* An agent's last report may be older than the deadline.  The job counts as hung only when
	 * each agent has reported after the deadline. */
	if (still.told < find_deadline(b, &still))
		return false;
	*ret_end = (struct hf_termination){.kind = HF_TERMINATION_HUNG,
					   .role = still.role,
					   .index = still.index,
					   .pod = still.pod,
					   .rule = -1,
					   .finished_at = HF_TIME_NONE};
	return true;
}

hf_time hf_progress_idle_since(const struct hf_brain *b)
{
	struct standstill still;

	return does_job_stand(b, &still) ? still.last : HF_TIME_NONE;
}

/* ---- slow ranks ----------------------------------------------------------------------------- */

/* The condition names that rank. */
static bool is_rank_told(const struct hf_brain *b, const char *rank)
{
	const struct hf_condition *condition = hf_cond_find(b, HF_COND_STRAGGLER);

	return condition && hf_streq(condition->status, "True") && condition->message &&
	       hf_str_has_prefix(condition->message, hf_arena_printf(b->arena, "%s ", rank));
}

static const struct hf_pod *find_slowest(const struct hf_brain *b, int32_t *ret_slow,
					 const char **ret_rank)
{
	const struct hf_pod *found = NULL;
	bool kept = false, told;
	const char *rank;

	*ret_slow = 0;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (!is_training(slot) || slot->pod->slow_permille <= 0)
				continue;
			++*ret_slow;
			rank = hf_rank_name(b->arena, b->roles[r].type, i);
			told = is_rank_told(b, rank);
			if (found && !told &&
			    (kept || slot->pod->slow_permille <= found->slow_permille))
				continue;
			kept = told;
			found = slot->pod;
			*ret_rank = rank;
		}
	}
	return found;
}

static void tell_slow(struct hf_brain *b, const struct hf_pod *pod, const char *rank, int32_t slow)
{
	const char *more =
		slow > 1 ? hf_arena_printf(b->arena, "; %d more are slow", slow - 1) : "";
	const char *message = hf_arena_printf(
		b->arena, "%s on node %s works %d.%02d times as long in each step as its peers%s",
		rank, hf_str_or(pod->node, "?"), pod->slow_permille / 1000,
		pod->slow_permille % 1000 / 10, more);

	hf_say(b, b->now, HF_TOPIC_EVIDENCE, "%s: the others wait for it", message);
	if (!is_rank_told(b, rank))
		hf_event_pod(b, true, "Straggler", message, pod);
	/* The condition's message leaves out the factor, because the factor changes with each
	 * report. */
	hf_cond_set(b, HF_COND_STRAGGLER, true, "SlowRank",
		    hf_arena_printf(b->arena,
				    "%s on node %s works longer in each step than its peers%s",
				    rank, hf_str_or(pod->node, "?"), more));
}

void hf_progress_clear(struct hf_brain *b)
{
	hf_cond_lower(b, HF_COND_STRAGGLER, "NoStraggler", "No rank delays its peers.");
}

void hf_progress_tell(struct hf_brain *b)
{
	struct standstill still;
	const char *rank = NULL;
	const struct hf_pod *pod;
	int32_t slow;

	if (b->seen->blind) {
		const struct hf_condition *condition = hf_cond_find(b, HF_COND_STRAGGLER);

		if (condition && hf_streq(condition->status, "True"))
			hf_say(b, condition->last_transition, HF_TOPIC_EVIDENCE,
			       "%s: the others wait for it", hf_str_or(condition->message, ""));
		return;
	}
	if (does_job_stand(b, &still) && b->now < find_deadline(b, &still))
		hf_say(b, still.last, HF_TOPIC_NEXT,
		       "no rank that reports has advanced since %s; all ranks restart at %s "
		       "(progressDeadlineSeconds)",
		       hf_time_text(b->arena, still.last),
		       hf_time_text(b->arena, find_deadline(b, &still)));
	else if (does_job_stand(b, &still) && still.told < find_deadline(b, &still))
		hf_say(b, still.last, HF_TOPIC_NEXT,
		       "no rank that reports has advanced since %s; all ranks restart when the "
		       "agents of their nodes have reported the same once more "
		       "(progressDeadlineSeconds)",
		       hf_time_text(b->arena, still.last));
	pod = find_slowest(b, &slow, &rank);
	if (pod)
		tell_slow(b, pod, rank, slow);
	else
		hf_progress_clear(b);
}
