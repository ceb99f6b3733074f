/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/names.h"

/*
 * Whether a restart happens in place: the pod stays, and `holdfast exec` in it starts the next
 * process.  Input: the ranks, the reports of their processes, the terminations of this step.
 * Output: for each rank whether its pod stays or is re-created, and whether the whole restart can
 * happen in place.  barrier.c, restart.c and gang_restart.c act on the answers.  Two functions write
 * the ledger: hf_in_place_count the streak, hf_in_place_tell_agents the spans that agents read.
 *
 * A pod stays if all of this holds:
 *
 * - its own container runs, and its exec has reported to the agent of the node;
 * - the agent is heard of, and the node is not lost;
 * - the pod was made from the present spec: else its variables or its template are too old;
 * - no evidence of a device, a node, the cluster or a person speaks against this pod.
 */

/* The role's program runs under `holdfast exec`, because at least one of its pods has reported a
 * process.  All ranks of a role share one template.  A rank's own first report may come minutes
 * after its start, so it is not waited for. */
static bool does_role_report(const struct hf_brain *b, int role)
{
	struct hf_cache *cache = b->cache;

	if (cache->reports_known[role])
		return cache->reports[role];
	cache->reports_known[role] = true;
	for (int32_t i = 0; i < b->roles[role].replicas && !cache->reports[role]; i++) {
		const struct hf_slot *slot = &b->roles[role].slots[i];

		cache->reports[role] = slot->pod && slot->pod->process;
	}
	return cache->reports[role];
}

static bool does_any_report(const struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		if (does_role_report(b, r))
			return true;
	}
	return false;
}

bool hf_agent_is_heard(const struct hf_brain *b, const struct hf_pod *pod)
{
	const struct hf_node *node = hf_node_of(b, pod);

	return node && node->seen->has_agent && !hf_node_is_lost(node->seen);
}

/* The pod belongs to the present attempt and has not ended, so a process may run in it. */
static bool is_pod_present(const struct hf_slot *slot)
{
	return slot->pod && slot->current && !slot->fell && !slot->succeeded &&
	       !hf_pod_is_terminating(slot->pod) && !hf_pod_is_terminal(slot->pod);
}

/* The spec was edited since the pod was made: the edit counts for the pod at its next restart. */
bool hf_pod_is_outdated(const struct hf_brain *b, const struct hf_pod *pod)
{
	return pod->spec && b->view->spec && !hf_streq(pod->spec, b->view->spec);
}

/* A restart in this pod would not help: no order would reach its exec, or the next process would
 * meet the same fault. */
static bool is_pod_unfit(const struct hf_brain *b, const struct hf_slot *slot)
{
	return slot->moves || !slot->pod->stamped || hf_pod_is_outdated(b, slot->pod) || hf_node_lost(b, slot->pod) ||
	       !hf_agent_is_heard(b, slot->pod) || hf_device_ends_pod(b, slot->pod);
}

enum hf_in_place hf_in_place_rank(const struct hf_brain *b, int role, int32_t index)
{
	const struct hf_slot *slot = &b->roles[role].slots[index];
	const struct hf_container_seen *own;

	if (!is_pod_present(slot))
		return HF_IN_PLACE_MOVES;
	own = hf_own_container(b, role, slot->pod);
	if (!own || own->phase != HF_CONTAINER_RUNNING)
		return HF_IN_PLACE_MOVES;
	if (!hf_slot_process(b, role, slot) && !does_role_report(b, role))
		return HF_IN_PLACE_REFUSED;
	return is_pod_unfit(b, slot) ? HF_IN_PLACE_MOVES : HF_IN_PLACE_STAYS;
}

/* recovery.inPlace is Auto, the job is not suspended, and inPlaceLimit is not used up. */
static bool is_wanted(const struct hf_brain *b)
{
	return b->job.recovery.in_place && !b->job.suspend &&
	       b->ledger.in_place_streak < b->job.recovery.in_place_limit;
}

/* The kubelet may restart containers of the job.  Then a restarted container would start its
 * program with the generation in its pod's variables, which is too old after a restart in place. */
static bool may_kubelet_restart(const struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		const struct hf_role *role = &b->job.roles[r];

		if (role->present && role->replicas > 0 &&
		    hf_restart_policy_of_pods(b, role) != HF_RESTART_NEVER)
			return true;
	}
	return false;
}

/* All ranks can restart in place.  One container that runs outside of exec forbids it: its program
 * would run on beside the new generation. */
bool hf_in_place_allows_all(const struct hf_brain *b)
{
	bool stays = false;

	if (!is_wanted(b) || may_kubelet_restart(b))
		return false;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			switch (hf_in_place_rank(b, r, i)) {
			case HF_IN_PLACE_REFUSED: return false;
			case HF_IN_PLACE_STAYS: stays = true; break;
			case HF_IN_PLACE_MOVES: break;
			}
		}
	}
	return stays;
}

/* Why hf_in_place_allows_all returns false for a job that uses restarts in place.  NULL: the job does not use them. */
const char *hf_in_place_refusal(const struct hf_brain *b)
{
	if (!b->job.recovery.in_place || b->job.suspend || !does_any_report(b))
		return NULL;
	if (b->ledger.in_place_streak >= b->job.recovery.in_place_limit)
		return hf_arena_printf(
			b->arena, "%lld restart(s) in the pods brought no new step (inPlaceLimit)",
			(long long)b->ledger.in_place_streak);
	if (may_kubelet_restart(b))
		return "the kubelet may restart containers of the job (restartPolicy)";
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (is_pod_present(slot) && hf_pod_is_outdated(b, slot->pod))
				return "the job was edited since its pods were made";
			if (hf_in_place_rank(b, r, i) == HF_IN_PLACE_REFUSED)
				return hf_arena_printf(
					b->arena,
					"no holdfast exec of %s has reported to the agent of its node",
					hf_rank_name(b->arena, b->roles[r].type, i));
		}
	}
	return "no pod can stay";
}

/* The rank can restart alone in its pod.  Unlike for a restart of all ranks, its own exec must have
 * reported. */
bool hf_in_place_allows_rank(const struct hf_brain *b, int role, int32_t index)
{
	return is_wanted(b) && hf_slot_process(b, role, &b->roles[role].slots[index]) &&
	       hf_in_place_rank(b, role, index) == HF_IN_PLACE_STAYS;
}

/* ---- ranks at the barrier ------------------------------------------------------------------- */

/* Seconds beyond the grace for a held rank to be down: for the agent's order, its kills and its
 * report. */
#define DOWN_SECONDS 15
/* A new pod under exec must report within this time, counted from the start of its container, that
 * it waits. */
#define ARRIVE_SECONDS 15
/* A node's clock may be this far ahead of the operator's. */
#define CLOCK_SPREAD_SECONDS 30

int64_t hf_template_grace_seconds(const struct hf_brain *b, int role)
{
	const struct hf_role *spec = &b->job.roles[role];

	if (spec->present && spec->pod->termination_grace_seconds.set &&
	    spec->pod->termination_grace_seconds.value >= 0)
		return spec->pod->termination_grace_seconds.value;
	return HF_POD_GRACE_SECONDS;
}

static int64_t find_grace(const struct hf_brain *b, int role)
{
	const struct hf_recovery *recovery = &b->job.recovery;

	return recovery->restart_grace_seconds.set ? recovery->restart_grace_seconds.value
						   : hf_template_grace_seconds(b, role);
}

static hf_time find_later(hf_time a, hf_time b)
{
	return a > b ? a : b;
}

/* When the container of a new pod started.  An operator that sees the pod for the first time knows only the node's time
 * of that start.  A time beyond the spread of clocks is ignored, so that the rank is not waited for for ever. */
static hf_time find_arrival(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	const struct hf_container_seen *own = hf_own_container(b, role, pod);
	hf_time at = find_later(pod->creation_time, b->ledger.since);

	if (pod->news_at != HF_TIME_NONE)
		return pod->news_at;
	if (own && own->started_at <= hf_time_add(b->now, hf_seconds(CLOCK_SPREAD_SECONDS)))
		at = find_later(at, own->started_at);
	return at == HF_TIME_NONE ? b->now : at;
}

hf_time hf_in_place_deadline(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	hf_time from;

	hf_assert(slot->held && slot->pod);
	if (!hf_slot_has_new_pod(b, slot)) {
		from = b->ledger.in_place_at == HF_TIME_NONE ? b->now : b->ledger.in_place_at;
		if (hf_job_save_until(b) > from)
			from = hf_job_save_until(b);
		return hf_time_add(from, hf_seconds(find_grace(b, role) + DOWN_SECONDS));
	}
	return hf_time_add(find_arrival(b, role, slot->pod), hf_seconds(ARRIVE_SECONDS));
}

/* Count restarts in place in a row.  Ranks that end later of the same fault do not count again: the
 * incident's record already says that it restarted in place. */
void hf_in_place_count(struct hf_brain *b, bool in_place)
{
	const struct hf_record *last = &b->ledger.records[0];
	bool counted = b->ledger.records_len > 0 && last->in_place &&
		       last->incident == b->ledger.incident.id;

	if (!in_place)
		b->ledger.in_place_streak = 0;
	else if (!counted)
		b->ledger.in_place_streak++;
}

/* ---- the ledger's fields for the agents ------------------------------------------------------ */

/* Write the resolved settings into the ledger, because agents do not see the operator's
 * configuration. hf_in_place_deadline uses the same grace. */
void hf_in_place_tell_agents(struct hf_brain *b)
{
	const struct hf_recovery *recovery = &b->job.recovery;
	struct hf_ledger *ledger = &b->ledger;
	bool told = ledger->in_place_wait_seconds > 0 || ledger->in_place_save_seconds > 0;

	ledger->in_place_wait_seconds = ledger->in_place_grace_seconds =
		ledger->in_place_save_seconds = 0;
	if (!told && !does_any_report(b))
		return;
	/* Ranks save before a planned end also where nothing restarts in place. */
	ledger->in_place_save_seconds = recovery->checkpoint_grace_seconds;
	if (!recovery->in_place)
		return;
	ledger->in_place_wait_seconds = recovery->in_place_wait_seconds;
	if (recovery->restart_grace_seconds.set)
		ledger->in_place_grace_seconds = recovery->restart_grace_seconds.value > 0
							 ? recovery->restart_grace_seconds.value
							 : 1;
}
