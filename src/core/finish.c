/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/step_internal.h"

#include "base/str.h"

/*
 * How a job ends: by its verdict, or with success.  Also what a job that is finished (clean-up and
 * TTL) or suspended still does.  A terminal condition never leaves, and its type never changes.
 * Writes: conditions, completionTime, the ledger's phase, actions.
 */

/* The status of a job that ends, for failure and success alike.  The caller has written the
 * event. */
static void end_job(struct hf_brain *b, const char *type, const char *reason, const char *message)
{
	hf_time at = hf_time_floor_second(b->now), start = b->plan->status.start_time;

	hf_assert(!hf_cond_finished(b));
	/* The server's clock may be set back; completionTime is never before startTime. */
	b->plan->status.completion_time = start != HF_TIME_NONE && at < start ? start : at;
	/* Running becomes False but keeps its reason and message, as under upstream's operator. */
	hf_cond_lower(b, HF_COND_RUNNING, NULL, NULL);
	hf_cond_lower(b, HF_COND_RESTARTING, NULL, NULL);
	hf_cond_set(b, type, true, reason, message);
	b->ledger.not_before = HF_TIME_NONE;
	b->ledger.phase = HF_PHASE_ENDED;
	b->settling = false;
}

void hf_finish_failed(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	const char *reason = hf_cond_reason(b, "Failed"), *shown = reason;
	/* Upstream sends a warning for a failure by exit code, and a normal event for any other
	 * failure. */
	bool warning = hf_streq(ledger->verdict.reason, HF_VERDICT_EXIT_CODE);

	hf_assert(ledger->verdict.reason && ledger->verdict.message);
	if (ledger->incident.charged == HF_BUDGET_PENDING && ledger->incident.id > 0)
		hf_budget_charge(b, hf_streq(ledger->verdict.reason, HF_VERDICT_NO_PROGRESS)
					    ? hf_class_budget(ledger->incident.cause)
					    : hf_budget_of_verdict(ledger->verdict.reason));
	if (ledger->records_len > 0 && ledger->records[0].decided_at == HF_TIME_NONE)
		ledger->records[0].decided_at = b->now;
	if (b->job.framework->failed_reason && hf_streq(ledger->verdict.reason, HF_VERDICT_NEVER))
		shown = b->job.framework->failed_reason;
	end_job(b, HF_COND_FAILED, shown, ledger->verdict.message);
	hf_event(b, warning, reason, ledger->verdict.message);
	b->plan->metrics[HF_METRIC_FAILED]++;
}

void hf_finish_succeeded(struct hf_brain *b, const struct hf_judgement *judgement)
{
	const char *reason = hf_cond_reason(b, "Succeeded");

	hf_assert(judgement->succeeded);
	b->ledger.verdict = (struct hf_verdict){.at = HF_TIME_NONE};
	if (b->ledger.incident.charged == HF_BUDGET_PENDING)
		b->ledger.incident.charged = HF_BUDGET_NONE;
	end_job(b, HF_COND_SUCCEEDED, reason, judgement->succeeded_message);
	hf_event(b, false, reason, judgement->succeeded_message);
	b->plan->metrics[HF_METRIC_SUCCESSFUL]++;
	/* Ranks that still run when the job has succeeded count as succeeded. */
	for (int r = 0; r < b->roles_len; r++) {
		b->counts[r].succeeded += b->counts[r].active;
		b->counts[r].active = 0;
	}
	hf_counts_write(b);
}

/* ---- a finished job ------------------------------------------------------------------------- */

/* The ranks of a failed job that still run count as active.  Successes and failures stay as the
 * verdict left them; a rank that is counted there is not active because of its other containers. */
static void count_active_again(struct hf_brain *b)
{
	if (!hf_cond_is_true(b, HF_COND_FAILED))
		return;
	for (int r = 0; r < b->roles_len; r++) {
		struct hf_replica_status *status = &b->plan->status.replicas[r];
		int32_t active = 0;

		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];
			const struct hf_pod *pod = slot->pod;

			active += pod && pod->phase == HF_POD_RUNNING &&
				  pod->deletion_time == HF_TIME_NONE && !slot->succeeded &&
				  slot->phase != HF_SLOT_BROKEN;
		}
		if (status->present)
			status->active = active;
	}
}

/* Delete the job when its time to live is over.  The time runs from the terminal condition, even if
 * the job is suspended later.  Propagation is Foreground, so the job stays visible until its pods
 * are gone. */
static void delete_after_ttl(struct hf_brain *b, const struct hf_condition *terminal)
{
	struct hf_opt_int ttl = b->view->run_policy.ttl_seconds_after_finished;
	struct hf_action action = {
		.kind = HF_ACTION_DELETE_JOB, .name = b->view->name, .uid = b->view->uid};
	struct hf_stage *stage = &b->plan->stages[b->plan->stages_len];
	struct hf_action *last;
	hf_time at = terminal->last_transition;

	if (at == HF_TIME_NONE)
		at = b->plan->status.completion_time;
	if (!ttl.set || at == HF_TIME_NONE)
		return;
	at = hf_time_add(at, hf_seconds(ttl.value > 0 ? ttl.value : 0));
	if (b->now < at) {
		hf_wake(b, at);
		hf_say(b, at, HF_TOPIC_NEXT, "the job is deleted %lld s after its end",
		       (long long)ttl.value);
		return;
	}
	hf_assert(b->plan->stages_len < HF_STAGES_MAX && b->view->uid);
	last = HF_ARENA_NEW(b->arena, struct hf_action);
	*last = action;
	stage->actions = last;
	stage->actions_len = 1;
	b->plan->stages_len++;
	hf_say(b, b->now, HF_TOPIC_NEXT, "the job's time to live is over: it is deleted");
}

/* The terminal condition.  The pointer is valid until the next condition is set, because the list
 * moves. */
static const struct hf_condition *find_terminal(const struct hf_brain *b)
{
	const struct hf_condition *failed = hf_cond_find(b, HF_COND_FAILED);

	return failed && hf_streq(failed->status, "True") ? failed
							  : hf_cond_find(b, HF_COND_SUCCEEDED);
}

static size_t count_deletes(const struct hf_actions *actions)
{
	size_t count = 0;

	for (size_t i = 0; i < actions->len; i++)
		count += actions->items[i].kind != HF_ACTION_STOP_POD;
	return count;
}

void hf_inactive_step(struct hf_brain *b, enum hf_life life)
{
	hf_taken_names_clear(b);
	hf_unschedulable_clear(b);
	hf_progress_clear(b);
	hf_sidecar_clear(b);
	hf_trouble_clear(b);
	hf_lost_pods_step(b);
	hf_overdue_pods_tell(b);
	hf_extras_drop(b, life);
	hf_stage_add(b, &b->deletes);
}

void hf_finish_continue(struct hf_brain *b)
{
	size_t deleted;

	hf_assert(hf_cond_finished(b));
	/* Upstream's operator left some failed jobs without completionTime.  Without that time a
	 * job never expires. */
	if (b->plan->status.completion_time == HF_TIME_NONE)
		b->plan->status.completion_time = find_terminal(b)->last_transition;
	count_active_again(b);
	hf_cleanup_step(b);
	hf_inactive_step(b, HF_LIFE_FINISHED);
	deleted = count_deletes(&b->deletes);
	if (deleted > 0)
		hf_say(b, b->now, HF_TOPIC_NEXT, "%zu object(s) are deleted", deleted);
	delete_after_ttl(b, find_terminal(b));
}
