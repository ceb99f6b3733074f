/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/names.h"

/*
 * The barrier of a restart in place.
 *
 * Words: a rank is held while the ledger's `hold` lists it.  A held rank is down when its agent
 * reports that no process of it runs and that exec waits for the order (hf_slot_is_down).  A rank
 * fell (slot->fell) if its pod ended after the order and before the next process ran.
 *
 * The agent stops the process of a held rank, and starts the next process when the rank is no
 * longer held.  If all ranks restart, they are released in one write, once no old process runs and
 * each held rank waits.  A rank that restarts alone is released as soon as it is down itself.
 * In order of escalation:
 *
 * - A rank is not down at its deadline, or it fell: its pod is re-created.  In a restart of all
 *   ranks the other ranks wait.
 * - In a restart of all ranks, a new pod ends, or does not report that it waits: all pods are
 *   re-created.
 * - In a restart of all ranks, a new pod does not come within inPlaceWaitSeconds: the other ranks
 *   start without it.
 * - The job was edited since the pod of a held rank was made, or recovery.inPlace is Never now: this
 *   pod, and in a restart of all ranks every pod, is re-created.
 * - In a restart of all ranks, a rank was let start and ends without a report that its process ran:
 *   all ranks restart again.
 *
 * So no job waits here for ever.  Nothing is charged here: the incident that caused the restart was
 * charged.  Writes: the slots, the newest record, the generation if all pods are re-created.
 */

/* The incident of the last record restarts all ranks once more. */
static void record_again(struct hf_brain *b, bool in_place)
{
	struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len == 0)
		return;
	last->scope = "Job";
	last->generation = b->ledger.generation;
	last->in_place = in_place;
	last->running_at = HF_TIME_NONE;
	if (in_place)
		last->down_at = HF_TIME_NONE;
}

static void mark_restarting(struct hf_brain *b, int role, int32_t count)
{
	if (hf_cond_is_true(b, HF_COND_RESTARTING) || b->restarting)
		return;
	b->restarting = true;
	b->restarting_role = role;
	b->restarting_count = count;
}

/* Give up the restart in place: re-create all pods as a new generation. */
static void recreate_all(struct hf_brain *b, const char *why)
{
	const char *message = hf_arena_printf(
		b->arena, "%s: the restart in place is given up, and all pods are re-created", why);

	/* The reports of the stopped processes go with their pods. */
	hf_steps_take_last(b);
	/* If the new pods fail as well, each further try waits longer. */
	hf_delay_next(b, HF_BUDGET_INFRASTRUCTURE);
	hf_gang_restart(b);
	hf_in_place_count(b, false);
	record_again(b, false);
	hf_event(b, true, "InPlaceGivenUp", message);
	hf_say(b, b->now, HF_TOPIC_DECISION, "%s", message);
}

static const char *name_rank(const struct hf_brain *b, int role, int32_t index)
{
	return hf_rank_name(b->arena, b->roles[role].type, index);
}

/* Why a process must not start in the pod of a held rank; NULL: it may. */
static const char *find_objection(const struct hf_brain *b, const struct hf_slot *slot)
{
	if (!slot->held || !slot->current)
		return NULL;
	if (!b->job.recovery.in_place)
		return "recovery.inPlace is Never now";
	if (slot->pod && hf_pod_is_outdated(b, slot->pod))
		return "the job was edited since its pods were made";
	return NULL;
}

/* The pods that this step re-creates. */
struct moved {
	int32_t count;
	int role; /* role of the rank that `first` names */
	const char *first, *why;
};

static void move_rank(struct hf_brain *b, int role, int32_t index, struct moved *moved)
{
	struct hf_slot *slot = &b->roles[role].slots[index];
	const char *objection = find_objection(b, slot);

	if (moved->count++ == 0) {
		moved->role = role;
		moved->first = name_rank(b, role, index);
		moved->why = slot->fell ? "ended before the restart in place was done"
			     : objection
				     ? hf_arena_printf(b->arena, "does not restart in place (%s)",
						       objection)
				     : "did not stop in time for the restart in place";
	}
	slot->fell = false;
	hf_restart_replica(b, role, index);
}

/* Why the new pod of a held rank counts as failed: it has ended, or it runs without a report. */
static const char *find_failure(const struct hf_brain *b, int role, int32_t index)
{
	const struct hf_slot *slot = &b->roles[role].slots[index];

	if (slot->fell)
		return hf_arena_printf(b->arena, "the new pod of %s ended while it waited to start",
				       name_rank(b, role, index));
	return hf_arena_printf(b->arena, "the new pod of %s runs and does not report that it waits",
			       name_rank(b, role, index));
}

/* The rank was let start and has not started, and its peers run without it: all ranks restart once
 * more, of the same incident. */
static void restart_again(struct hf_brain *b, int role, int32_t index)
{
	const char *message = hf_arena_printf(
		b->arena, "%s ended before the restart in place was done: all ranks restart again",
		name_rank(b, role, index));
	bool in_place;

	/* The rank is not to fail in a loop. */
	hf_delay_next(b, HF_BUDGET_INFRASTRUCTURE);
	in_place = hf_gang_restart_any(b);
	/* Until it is counted, the record must not say that it restarts in place: then
	 * hf_in_place_count would take this restart for counted. */
	record_again(b, false);
	hf_in_place_count(b, in_place);
	record_again(b, in_place);
	mark_restarting(b, role, 1);
	hf_event(b, true, "InPlaceEscalated", message);
	hf_say(b, b->now, HF_TOPIC_DECISION, "%s", message);
}

/* The held rank has not reported in time that its process is down.  If there is time left, sets the
 * wake-up. */
static bool is_overdue(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	const struct hf_container_seen *own =
		slot->pod ? hf_own_container(b, role, slot->pod) : NULL;
	hf_time deadline;

	if (!slot->held || !slot->current || hf_slot_is_down(b, role, slot))
		return false;
	/* No deadline runs before the container of a new pod runs: scheduling and pulls may take
	 * long. */
	if (hf_slot_has_new_pod(b, slot) && (!own || own->phase != HF_CONTAINER_RUNNING))
		return false;
	deadline = hf_in_place_deadline(b, role, slot);
	if (b->now < deadline)
		hf_wake(b, deadline);
	return b->now >= deadline;
}

/* Re-create the pods of ranks whose restart in place failed.  Return false if, instead, all ranks
 * restart again: in a restart of all ranks such a rank had a new pod already, or it was let start and
 * did not start. */
static bool replace_failed_ranks(struct hf_brain *b, struct moved *moved)
{
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			if (!slot->fell && !is_overdue(b, r, slot) && !find_objection(b, slot))
				continue;
			if (slot->held && hf_barrier_is_of_all(b) && hf_slot_has_new_pod(b, slot)) {
				recreate_all(b, find_failure(b, r, i));
				return false;
			}
			if (!slot->held && hf_barrier_is_of_all(b)) {
				restart_again(b, r, i);
				return false;
			}
			move_rank(b, r, i, moved);
		}
	}
	return true;
}

static void tell_moved(struct hf_brain *b, const struct moved *moved)
{
	const char *message = hf_arena_printf(
		b->arena, "%s%s %s: its pod is re-created%s", moved->first,
		moved->count > 1 ? hf_arena_printf(b->arena, " and %d more", moved->count - 1) : "",
		moved->why, b->barrier ? ", and the others wait for it" : "");

	if (b->ledger.records_len > 0)
		b->ledger.records[0].running_at = HF_TIME_NONE;
	mark_restarting(b, moved->role, moved->count);
	hf_event(b, true, "InPlaceEscalated", message);
	hf_say(b, b->now, HF_TOPIC_DECISION, "%s", message);
}

/* The time at which the waiting ranks start without the ranks that have no new pod yet. */
static hf_time find_latest(const struct hf_brain *b)
{
	const struct hf_ledger *stored = &b->view->status.ledger;
	bool counted = stored->phase == HF_PHASE_CREATING && stored->since != HF_TIME_NONE;

	return hf_time_add(counted ? stored->since : b->now,
			   hf_seconds(b->job.recovery.in_place_wait_seconds));
}

static void note_release(struct hf_brain *b)
{
	hf_steps_take_last(b);
	if (b->ledger.records_len > 0)
		b->ledger.records[0].down_at = b->now;
	hf_ranks_refresh(b);
}

/* The delay between restarts is not over.  If so, sets the wake-up. */
static bool is_delayed(const struct hf_brain *b)
{
	if (b->ledger.not_before == HF_TIME_NONE || b->now >= b->ledger.not_before)
		return false;
	hf_wake(b, b->ledger.not_before);
	return true;
}

/* The held ranks that are not down yet: `running` with an old process, `coming` with a new pod. */
struct awaited {
	int32_t running, coming;
	const char *first_running, *first_coming;
};

static void find_awaited(const struct hf_brain *b, struct awaited *awaited)
{
	bool all = hf_barrier_is_of_all(b);

	*awaited = (struct awaited){0};
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (!slot->held || hf_slot_is_down(b, r, slot) || (!slot->current && !all))
				continue;
			if (slot->pod && !hf_slot_has_new_pod(b, slot)) {
				if (awaited->running++ == 0)
					awaited->first_running = name_rank(b, r, i);
			} else if (awaited->coming++ == 0) {
				awaited->first_coming = name_rank(b, r, i);
			}
		}
	}
}

static void release_all(struct hf_brain *b)
{
	struct awaited awaited;
	hf_time latest;

	find_awaited(b, &awaited);
	if (b->older_pods > 0 || awaited.running > 0 || is_delayed(b))
		return;
	latest = find_latest(b);
	if (awaited.coming > 0 && b->now < latest) {
		hf_wake(b, latest);
		return;
	}
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++)
			b->roles[r].slots[i].held = false;
	}
	note_release(b);
	hf_say(b, b->now, HF_TOPIC_DECISION, "no old process runs: all ranks start");
}

/* Release ranks that restart alone, each as soon as its own process is down.  Such ranks do not
 * wait for each other. */
static void release_each(struct hf_brain *b)
{
	bool released = false;

	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			if (!slot->held || !slot->current || !hf_slot_is_down(b, r, slot) ||
			    is_delayed(b))
				continue;
			slot->held = false;
			released = true;
		}
	}
	if (released)
		note_release(b);
}

/* ---- old pods, and the step of the barrier ---------------------------------------------------- */

static bool does_job_report(const struct hf_brain *b)
{
	for (size_t i = 0; i < b->seen->pods_len; i++) {
		if (b->seen->pods[i].process)
			return true;
	}
	return false;
}

/* Hold each rank with a pod that is about to be deleted.  Otherwise the exec in that pod could
 * start the new attempt there. */
void hf_barrier_hold_old(struct hf_brain *b)
{
	if (hf_cond_finished(b) || !does_job_report(b))
		return;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			if (slot->pod && !hf_pod_is_terminal(slot->pod) &&
			    !hf_slot_is_current(b, slot, slot->pod))
				slot->held = true;
		}
	}
}

/* Release held ranks that have no pod any more, once all old pods are gone: one write for the whole
 * gang instead of one for each pod.  In a restart of all ranks in place, the new pods stay held. */
void hf_barrier_release_gone(struct hf_brain *b)
{
	if (hf_barrier_is_of_all(b) || b->older_pods > 0)
		return;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			struct hf_slot *slot = &b->roles[r].slots[i];

			if (!slot->pod)
				slot->held = false;
		}
	}
}

static bool has_fallen(const struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			if (b->roles[r].slots[i].fell)
				return true;
		}
	}
	return false;
}

static const char *find_any_objection(const struct hf_brain *b)
{
	const char *objection = NULL;

	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; !objection && i < b->roles[r].replicas; i++)
			objection = find_objection(b, &b->roles[r].slots[i]);
	}
	return objection;
}

void hf_barrier_step(struct hf_brain *b)
{
	struct moved moved = {0};
	const char *objection;

	hf_barrier_release_gone(b);
	/* While a verdict settles, no process starts.  A blind caller sees no reports, so it
	 * decides nothing here. */
	if (hf_verdict_pending(b) || b->seen->blind || (!b->barrier && !has_fallen(b)))
		return;
	objection = hf_barrier_is_of_all(b) ? find_any_objection(b) : NULL;
	if (objection) {
		recreate_all(b, objection);
		return;
	}
	if (!replace_failed_ranks(b, &moved))
		return;
	if (moved.count > 0) {
		hf_ranks_refresh(b);
		tell_moved(b, &moved);
		hf_restart_when_too_large(b);
	}
	if (b->barrier && hf_barrier_is_of_all(b))
		release_all(b);
	else if (b->barrier)
		release_each(b);
}

/* Tells whether a rank that the barrier holds still has the pod of its present attempt. */
static bool is_any_kept(const struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			if (b->roles[r].slots[i].held && b->roles[r].slots[i].current)
				return true;
		}
	}
	return false;
}

static void tell_delay(const struct hf_brain *b)
{
	hf_say(b, b->ledger.not_before, HF_TOPIC_NEXT,
	       "the processes start in %s: the delay grows with each restart",
	       hf_span_text(b->arena, hf_elapsed(b->now, b->ledger.not_before)));
}

void hf_barrier_tell(const struct hf_brain *b)
{
	struct awaited awaited;

	if (!b->barrier)
		return;
	find_awaited(b, &awaited);
	if (b->seen->blind && is_delayed(b)) {
		tell_delay(b);
		return;
	}
	if (b->seen->blind) {
		if (awaited.running + awaited.coming > 0)
			hf_say(b, b->now, HF_TOPIC_BLOCKED,
			       "%d rank(s) start when all processes of the restart in place have "
			       "stopped",
			       awaited.running + awaited.coming);
		return;
	}
	if (awaited.running > 0)
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "the restart in place waits until %d rank(s) have stopped, %s first",
		       awaited.running, awaited.first_running);
	else if (awaited.coming > 0)
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "the restart in place waits for %d new pod(s), %s first", awaited.coming,
		       awaited.first_coming);
	else if (b->older_pods > 0 && hf_barrier_is_of_all(b))
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "the restart in place waits until %d old pod(s) are gone", b->older_pods);
	else if (is_delayed(b) && is_any_kept(b))
		tell_delay(b);
}
