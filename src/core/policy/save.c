/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "core/model/names.h"

/*
 * Ranks save before a planned end: suspend, a restart that a person asks for, a rank that is scaled
 * away, a pod that is evicted or deleted while its program runs.
 *
 * The ledger's saveUntil is the request.  A process that has to stop by the ledger is asked by its
 * agent to save, and then stops.  The operator deletes the pod when the agent has reported that the
 * process is down, or when saveUntil has passed.  It never waits for a rank that is dead, for a node
 * that is lost, for an agent that is silent, or for a program outside of exec.  The workers of an
 * MPIJob run outside of exec, and stay as long as its launcher saves.
 *
 * A request is renewed only if a rank still runs: ranks that stop already keep their time, and save
 * once, because exec asks each process once.  A failure withdraws the request (incident.c): ranks
 * that wait for a dead peer cannot save.
 *
 * Writes: the ledger's saveUntil.
 */

/* Orders and reports take a moment each. */
#define MESSAGE_SECONDS 5
/* The clock of the next leader may be behind that of the leader that wrote saveUntil. */
#define CLOCKS_DIFFER_SECONDS 30

/* Any client may write the ledger, so a saveUntil beyond any that a leader writes is ignored. */
hf_time hf_job_save_until(const struct hf_brain *b)
{
	hf_time until = b->ledger.save_until;
	hf_time latest = hf_time_add(b->now, hf_seconds(b->job.recovery.checkpoint_grace_seconds +
							MESSAGE_SECONDS + CLOCKS_DIFFER_SECONDS));

	return until > latest ? HF_TIME_NONE : until;
}

/* The pod runs under exec, and its agent is heard of. */
static bool is_under_exec(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	const struct hf_pod *pod = slot->pod;
	const struct hf_container_seen *own;

	if (!pod || !pod->process || hf_pod_is_terminal(pod))
		return false;
	own = hf_own_container(b, role, pod);
	return own && own->phase == HF_CONTAINER_RUNNING && hf_agent_is_heard(b, pod);
}

/* The agent of the pod can ask it. */
static bool can_be_asked(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	return is_under_exec(b, role, slot) && !hf_pod_is_terminating(slot->pod);
}

/* The kubelet has asked the pod by SIGTERM, and its exec waits for the save (HOLDFAST_SAVE_SECONDS). */
static bool does_kubelet_ask(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	return is_under_exec(b, role, slot) && hf_pod_is_terminating(slot->pod);
}

/* Only a report of the ledger's present start says that the process is down.  One of an older start
 * may be of a process that was let start since: agents report a start minutes later. */
static bool has_answered(const struct hf_brain *b, const struct hf_slot *slot)
{
	const struct hf_process_seen *process = slot->pod->process;

	return process->phase != HF_PROCESS_RUNNING && hf_slot_is_reached(b, slot, process);
}

/* The launcher of an MPIJob that is evicted saves by the programs in its workers, so there is time for that too. */
static bool does_any_run(const struct hf_brain *b)
{
	bool has_others = b->job.framework->no_exec_roles != 0;

	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if ((slot->phase == HF_SLOT_RUNNING && can_be_asked(b, r, slot)) ||
			    (has_others && does_kubelet_ask(b, r, slot)))
				return true;
		}
	}
	return false;
}

void hf_job_save_request(struct hf_brain *b)
{
	int64_t seconds = b->job.recovery.checkpoint_grace_seconds;

	if (seconds <= 0 || !does_any_run(b))
		return;
	b->ledger.save_until = hf_time_add(b->now, hf_seconds(seconds + MESSAGE_SECONDS));
	hf_event(b, false, "SaveRequested",
		 hf_arena_printf(b->arena,
				 "ranks are asked to save before they end, and have %lld s for it "
				 "(recovery.checkpoint.graceSeconds)",
				 (long long)seconds));
}

/* Programs of other pods run in the pods of the role. */
static bool is_kept_for_others(const struct hf_brain *b, int role)
{
	return hf_has_role(b->job.framework->no_exec_roles, role);
}

/* Whether a rank that has to stop saves. */
static bool does_any_save(const struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		if (is_kept_for_others(b, r))
			continue;
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if ((!slot->current || slot->held) &&
			    (hf_job_save_is_awaited(b, r, slot) || does_kubelet_ask(b, r, slot)))
				return true;
		}
	}
	return false;
}

bool hf_job_save_is_awaited(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	hf_time until = hf_job_save_until(b);

	if (until == HF_TIME_NONE || b->now >= until || !slot->pod)
		return false;
	/* The launcher of an MPIJob saves by the programs that it has started in the workers. */
	if (is_kept_for_others(b, role)) {
		hf_wake(b, until);
		return does_any_save(b);
	}
	/* A caller that sees no reports cannot know, and deletes nothing. */
	if (!b->seen->blind && (!can_be_asked(b, role, slot) || has_answered(b, slot)))
		return false;
	hf_wake(b, until);
	return true;
}

void hf_job_save_tell(const struct hf_brain *b)
{
	const char *first = NULL;
	int32_t count = 0;

	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if ((slot->current && !slot->held) || is_kept_for_others(b, r) ||
			    !hf_job_save_is_awaited(b, r, slot))
				continue;
			if (count++ == 0)
				first = hf_rank_name(b->arena, b->roles[r].type, i);
		}
	}
	if (count > 0)
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "%d rank(s) save before they end, %s first, until %s at the latest "
		       "(recovery.checkpoint.graceSeconds)",
		       count, first, hf_time_text(b->arena, b->ledger.save_until));
}

/* As long as ranks are held, agents may still have to ask some. */
void hf_job_save_finish(struct hf_brain *b)
{
	if (b->ledger.save_until == HF_TIME_NONE)
		return;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (slot->held || (slot->pod && !hf_slot_is_current(b, slot, slot->pod)))
				return;
		}
	}
	b->ledger.save_until = HF_TIME_NONE;
}
