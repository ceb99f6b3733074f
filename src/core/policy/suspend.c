/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * Suspend and resume.
 *
 * A suspended job has no pods.  Its generation is raised, so that the operator deletes the old pods
 * and never counts their terminations.  Active time stops, and no rule, deadline, delay or TTL
 * applies.  Counters stay.
 *
 * Under narrow-schema CRDs the ledger is written before the status, and either write may be lost.
 * So the ledger's phase Suspended marks a suspension that was already added to the active time.  A
 * job is resumed only when its status says Suspended as well.
 */

static bool has_pods(const struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			if (b->roles[r].slots[i].pod)
				return true;
		}
	}
	return false;
}

/* The pods of a restart in place under way are deleted, so the time until all ranks run says nothing about it. */
static void end_in_place(struct hf_ledger *ledger)
{
	struct hf_record *last = &ledger->records[0];

	if (ledger->records_len > 0 && last->running_at == HF_TIME_NONE)
		last->in_place = false;
}

/* Write the suspension into the ledger.  A job that never started keeps its generation, because it
 * has no old pods. */
static void book_suspension(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;

	ledger->active_seconds = hf_active_seconds(b);
	/* Decide now whether the job ran for long enough to reset the streaks: after the resume,
	 * this run does not count. */
	hf_delay_reset(b);
	hf_job_save_request(b);
	if (b->plan->status.start_time != HF_TIME_NONE || has_pods(b))
		hf_gang_restart(b);
	end_in_place(ledger);
	ledger->not_before = HF_TIME_NONE;
	ledger->verdict = (struct hf_verdict){.at = HF_TIME_NONE};
	if (ledger->incident.charged == HF_BUDGET_PENDING)
		ledger->incident.charged = HF_BUDGET_NONE;
	if (!hf_str_is_empty(b->view->restart))
		ledger->restart_handled = hf_restart_request_key(b);
}

/* Write the suspension into the status. */
static void tell_suspension(struct hf_brain *b)
{
	const char *reason = hf_cond_reason(b, "Suspended");
	const char *message = hf_arena_printf(b->arena, "%s %s is suspended.",
					      b->job.framework->kind, b->view->name);

	b->plan->status.start_time = HF_TIME_NONE;
	hf_cond_lower(b, HF_COND_RESTARTING, reason, message);
	hf_cond_lower(b, HF_COND_RUNNING, reason, message);
	hf_cond_set(b, HF_COND_SUSPENDED, true, reason, message);
	hf_event(b, false, reason, message);
}

bool hf_suspend_is_due(const struct hf_brain *b)
{
	return b->job.suspend ||
	       (b->ledger.phase == HF_PHASE_SUSPENDED && !hf_cond_is_true(b, HF_COND_SUSPENDED));
}

static bool is_any_awaited(const struct hf_brain *b)
{
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			if (hf_job_save_is_awaited(b, r, &b->roles[r].slots[i]))
				return true;
		}
	}
	return false;
}

/* Runs in each step while the job is suspended: delete every pod and service, including those that
 * were created late.  Pods whose ranks may still save are deleted later. */
void hf_suspend_step(struct hf_brain *b)
{
	bool told = hf_cond_is_true(b, HF_COND_SUSPENDED);
	bool awaited;

	hf_assert(hf_suspend_is_due(b) && !hf_cond_finished(b));
	b->job.suspend = true;
	if (!told && b->ledger.phase != HF_PHASE_SUSPENDED)
		book_suspension(b);
	if (!told)
		tell_suspension(b);
	hf_phase_step(b);
	hf_barrier_release_gone(b);
	hf_counts_take(b);
	awaited = is_any_awaited(b);
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (slot->pod && !hf_job_save_is_awaited(b, r, slot))
				hf_pod_delete(b, slot->pod, (struct hf_opt_int){0});
			/* Ranks that save may look up each other's names. */
			if (slot->service && !awaited)
				hf_service_delete(b, slot->service);
		}
	}
	for (size_t i = 0; i < b->strays_len; i++)
		hf_pod_delete(b, b->strays[i], (struct hf_opt_int){0});
	hf_steps_keep(b);
	hf_job_save_tell(b);
	hf_say(b, b->now, HF_TOPIC_NEXT, "the job waits to be resumed");
}

void hf_resume(struct hf_brain *b)
{
	const char *reason = hf_cond_reason(b, "Resumed");
	const char *message = hf_arena_printf(b->arena, "%s %s is resumed.", b->job.framework->kind,
					      b->view->name);

	hf_assert(!hf_cond_finished(b));
	hf_cond_set(b, HF_COND_SUSPENDED, false, reason, message);
	b->plan->status.start_time = hf_time_floor_second(b->now);
	b->ledger.phase = HF_PHASE_CREATING;
	hf_event(b, false, reason, message);
}
