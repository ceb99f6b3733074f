/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/step_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

/*
 * The order in which the policies run.  A termination of a pod goes
 *
 *     classify → rule → restart policy → incident → settle → scope → budget → delay → act
 *
 * Before that come the outer questions: is the job ours, can it be decided on, is it finished,
 * suspended, successful, over its deadline?  Input: struct hf_job_view, struct hf_observed, the
 * time.  Output: struct hf_plan.
 */

/* The most pods, and the most services, in one input: four for each possible rank, so that objects
 * of other owners have room. */
#define OBSERVED_MAX ((size_t)4 * HF_RANKS_MAX)
/* The longest compact text: "19999:2147483647," for each rank. */
#define SCRATCH_MAX ((size_t)18 * HF_RANKS_MAX)

/* Prepare the working state.  The plan starts as a copy of the stored status, and a policy changes
 * only what it decides on.  So conditions and fields of other writers stay. */
static void init_brain(struct hf_brain *b, const struct hf_job_view *view,
		       const struct hf_observed *seen, hf_time now, struct hf_arena *arena,
		       struct hf_plan *plan)
{
	const struct hf_status *stored = &view->status;

	memset(plan, 0, sizeof(*plan));
	plan->status = *stored;
	b->view = view;
	b->seen = seen;
	b->now = now - now % HF_US;
	b->idle_since = HF_TIME_NONE;
	b->arena = arena;
	b->plan = plan;
	b->ledger = stored->ledger;
	b->cache = HF_ARENA_NEW(arena, struct hf_cache);
	b->notes = HF_ARENA_NEW(arena, struct hf_notes);
	b->notes->wake_at = HF_TIME_NEVER;
	b->notes->reasons = HF_ARENA_ARRAY(arena, struct hf_reason, HF_REASONS_MAX);
	b->conditions_cap = stored->conditions_len + 8;
	b->conditions = HF_ARENA_ARRAY(arena, struct hf_condition, b->conditions_cap);
	hf_cond_load(b, stored);
	hf_strbuf_init(&b->scratch, SCRATCH_MAX);
	hf_job_defaults(view, arena, &b->job);
	for (size_t i = 0; i < seen->nodes_len; i++)
		b->nodes_lost += hf_node_is_lost(&seen->nodes[i]);
}

/* ---- questions before any decision ---------------------------------------------------------- */

/* Returns false if the job belongs to another controller (managedBy) or is being deleted. Then the
 * step writes no status. */
static bool is_ours(struct hf_brain *b)
{
	const char *manager = b->view->run_policy.managed_by;

	if (manager && !hf_streq(manager, HF_MANAGED_BY_US)) {
		hf_say(b, b->now, HF_TOPIC_BLOCKED, "the job is managed by '%s'", manager);
		hf_say(b, b->now, HF_TOPIC_NEXT,
		       "Holdfast does nothing for the job: that controller must create its pods");
		b->plan->summary = hf_arena_printf(b->arena, "managed by '%s'", manager);
		return false;
	}
	if (b->view->deletion_time != HF_TIME_NONE) {
		hf_say(b, b->view->deletion_time, HF_TOPIC_NEXT,
		       "the job is being deleted: its pods and services go with it");
		/* The job object exists until its pods are gone, so its pods on dead nodes are
		 * still given up. */
		hf_lost_pods_force(b);
		hf_stage_add(b, &b->deletes);
		b->plan->summary = "being deleted";
		return false;
	}
	return true;
}

/* Set the condition Held, which says why, and do nothing else.  The stored ledger stays byte for
 * byte, because a newer version may have written it. */
static void hold_job(struct hf_brain *b, const char *suffix, const char *message,
		     const char *way_out)
{
	const char *reason = hf_cond_reason(b, suffix);
	const struct hf_condition *held = hf_cond_find(b, HF_COND_HELD);

	if (!held || !hf_streq(held->status, "True") || !hf_streq(held->message, message))
		hf_event(b, true, reason, message);
	hf_cond_set(b, HF_COND_HELD, true, reason, message);
	hf_cond_lower_unwatched(b);
	b->ledger.kept = b->ledger.present;
	hf_say(b, b->now, HF_TOPIC_BLOCKED, "nothing is done for this job: %s", message);
	hf_say(b, b->now, HF_TOPIC_NEXT, "%s%s", way_out,
	       b->job.suspend ? "; its suspension waits until then" : "");
}

/* Rules of validation apply to jobs that have not begun.  A job that has begun continues even if
 * newer rules would refuse it, as under upstream's operator. */
static bool has_job_begun(const struct hf_brain *b)
{
	return b->view->status.start_time != HF_TIME_NONE || b->view->status.ledger.present ||
	       hf_status_is_finished(&b->view->status);
}

static bool is_valid(struct hf_brain *b)
{
	static const char correct[] = "the job goes on when its spec is corrected";
	struct hf_field_errors *errors = HF_ARENA_NEW(b->arena, struct hf_field_errors);
	struct hf_error err = {0};

	/* Without that annotation the default rules would decide on the job. */
	if (b->view->policy_problem && !hf_status_is_finished(&b->view->status)) {
		hold_job(b, "FailedValidation", b->view->policy_problem, correct);
		return false;
	}
	if (b->job.ranks > HF_RANKS_MAX) {
		hold_job(b, "FailedValidation",
			 hf_arena_printf(b->arena, "a job has at most %d replicas, not %d",
					 HF_RANKS_MAX, b->job.ranks),
			 correct);
		return false;
	}
	hf_field_errors_init(errors, b->arena);
	if (!has_job_begun(b))
		hf_job_validate(b->view, NULL, errors);
	else if (b->view->policy_annotated && !hf_status_is_finished(&b->view->status))
		hf_job_validate_additions(b->view, errors);
	if (hf_field_errors_result(errors, &err) == 0)
		return true;
	hold_job(b, "FailedValidation", hf_arena_strdup(b->arena, err.text), correct);
	return false;
}

/* Fill the slots from the ledger; everything after this relies on them. */
static bool load_ledger(struct hf_brain *b)
{
	struct hf_error err = {0};

	if (b->ledger.present && b->ledger.schema > HF_LEDGER_SCHEMA) {
		hold_job(b, "LedgerSchema",
			 hf_arena_printf(b->arena,
					 "status.recovery has schema %lld, this version knows %d",
					 (long long)b->ledger.schema, HF_LEDGER_SCHEMA),
			 "the job goes on when the version that wrote status.recovery runs again, "
			 "or when status.recovery is removed: counters then begin anew");
		return false;
	}
	if ((b->ledger.present && hf_ledger_check(&b->ledger, &err) < 0) ||
	    hf_ranks_load(b, &err) < 0) {
		hold_job(b, "LedgerInvalid", hf_arena_strdup(b->arena, err.text),
			 b->ledger.broken
				 ? "the job goes on when that annotation is corrected or removed: "
				   "counters then begin anew"
				 : "the job goes on when status.recovery is corrected or removed "
				   "(kubectl edit --subresource=status): counters then begin anew");
		return false;
	}
	/* A verdict that is not final always has an incident, so a verdict without one is
	 * dropped. */
	if (!hf_cond_finished(b) && b->ledger.incident.id == 0)
		b->ledger.verdict = (struct hf_verdict){.at = HF_TIME_NONE};
	if (!b->ledger.present && !hf_cond_finished(b))
		hf_ledger_begin(b);
	hf_ranks_refresh(b);
	return true;
}

/* ---- an active job -------------------------------------------------------------------------- */

/* Ask the kind's table whether the job runs or has succeeded, by the counts of its replicas.
 * Called before and after the terminations are decided. */
static void judge_counts(const struct hf_brain *b, struct hf_judgement *ret_judgement)
{
	memset(ret_judgement, 0, sizeof(*ret_judgement));
	b->job.framework->judge(&b->job, b->counts, b->arena, ret_judgement);
	hf_assert(ret_judgement->running_message && ret_judgement->succeeded_message);
}

/* Requests for restarts come first: the pod that such a request deletes is not a termination to
 * classify. */
static void decide_terminations(struct hf_brain *b)
{
	hf_restart_request_step(b);
	hf_terminations_collect(b);
	hf_verdict_reconsider(b);
	hf_late_node_adopt(b);
	hf_late_device_adopt(b);
	hf_late_end_adopt(b);
	if (!hf_verdict_pending(b))
		hf_terminations_apply(b);
	if (hf_verdict_settle(b))
		hf_finish_failed(b);
}

static void fail_by_deadline(struct hf_brain *b)
{
	hf_verdict_set(b, HF_VERDICT_DEADLINE,
		       hf_arena_printf(b->arena,
				       "Job %s has failed because it was active longer than "
				       "specified deadline",
				       b->view->name));
	hf_finish_failed(b);
}

/* The ranks of the last restart do not all run again. */
static bool is_recovering(const struct hf_brain *b)
{
	return b->ledger.records_len > 0 && b->ledger.records[0].running_at == HF_TIME_NONE;
}

static void run_job(struct hf_brain *b)
{
	struct hf_judgement judgement;
	bool recovering;

	if (hf_cond_is_true(b, HF_COND_SUSPENDED))
		hf_resume(b);
	b->gated = hf_pod_group_awaited(b);
	/* A job in Volcano's queue has not started, so its deadline does not run. */
	if (b->plan->status.start_time == HF_TIME_NONE && !b->gated)
		b->plan->status.start_time = hf_time_floor_second(b->now);
	hf_ledger_note(b);
	hf_sidecar_release(b);
	hf_restart_retire_ranks(b);
	hf_counts_take(b);
	judge_counts(b, &judgement);
	hf_counts_write(b);
	/* Success is decided before failures: a failure beside a job that is done does not
	 * matter. */
	if (judgement.succeeded) {
		hf_finish_succeeded(b, &judgement);
		return;
	}
	if (hf_deadline_has_passed(b))
		fail_by_deadline(b);
	else
		decide_terminations(b);
	if (hf_cond_finished(b))
		return;
	hf_steps_keep(b);
	if (!hf_verdict_pending(b))
		hf_init_wait_restart(b);
	hf_unschedulable_step(b);
	hf_barrier_step(b);
	recovering = is_recovering(b);
	hf_phase_step(b);
	if (recovering && !is_recovering(b))
		hf_recovered_event(b);
	hf_counts_take(b);
	hf_counts_write(b);
	judge_counts(b, &judgement);
	hf_cond_active(b, &judgement);
	/* Services come first: a rank that starts looks up the names of its peers. */
	hf_services_plan(b);
	hf_extras_plan(b);
	hf_pods_plan(b);
	hf_taken_names_tell(b);
	hf_lost_pods_step(b);
	hf_overdue_pods_tell(b);
	hf_sidecar_step(b);
	hf_barrier_tell(b);
	hf_job_save_tell(b);
	hf_progress_tell(b);
	hf_trouble_tell(b);
	hf_init_wait_tell(b);
	/* Deletes come before creates: a name must be free before it is used again. */
	hf_stage_add(b, &b->deletes);
	hf_stage_add(b, &b->extras);
	hf_stage_add(b, &b->creates);
	hf_stage_add(b, &b->asides);
}

/* The ledger says that the job has ended, and the status does not say so yet: write the status
 * without deciding again. */
static void conclude_job(struct hf_brain *b)
{
	if (hf_cond_is_true(b, HF_COND_SUSPENDED))
		hf_resume(b);
	hf_ledger_note(b);
	hf_counts_take(b);
	hf_counts_write(b);
	hf_finish_failed(b);
}

/* Ask in this order whether the job is valid, readable, finished, failed by a final verdict,
 * suspended; if none of these stops the step, run the job.  A job that is finished, or has become
 * so in this step, gets its clean-up. */
static void decide_job(struct hf_brain *b)
{
	hf_cond_created(b);
	if (!is_valid(b) || !load_ledger(b))
		return;
	hf_cond_lower(b, HF_COND_HELD, "NotHeld", "The operator decides on this job.");
	if (!hf_cond_finished(b)) {
		if (hf_verdict_is_final(b)) {
			conclude_job(b);
		} else if (hf_suspend_is_due(b)) {
			hf_suspend_step(b);
			hf_counts_write(b);
			hf_inactive_step(b, HF_LIFE_SUSPENDED);
		} else {
			run_job(b);
		}
	}
	if (hf_cond_finished(b)) {
		hf_steps_finish(b);
		hf_finish_continue(b);
	}
	if (b->ledger.present) {
		hf_phase_book(b);
		hf_barrier_hold_old(b);
		hf_job_save_finish(b);
		if (!hf_cond_finished(b))
			hf_in_place_tell_agents(b);
		hf_ledger_write(b);
	}
}

/* ---- the result --------------------------------------------------------------------------------------- */

/* Put the lines about earlier restarts before the lines of this step. */
static void arrange_reasons(const struct hf_brain *b)
{
	size_t said = b->notes->reasons_len;
	struct hf_reason *now = HF_ARENA_ARRAY(b->arena, struct hf_reason, said + 1);

	memcpy(now, b->notes->reasons, said * sizeof(*now));
	b->notes->reasons_len = 0;
	hf_why_tell_history(b);
	if (said > HF_REASONS_MAX - b->notes->reasons_len)
		said = HF_REASONS_MAX - b->notes->reasons_len;
	memcpy(&b->notes->reasons[b->notes->reasons_len], now, said * sizeof(*now));
	b->notes->reasons_len += said;
	hf_why_write_summary(b);
}

static int by_kind_and_name(const void *left, const void *right)
{
	const struct hf_ask *a = left;
	const struct hf_ask *b = right;

	return a->kind != b->kind ? (int)a->kind - (int)b->kind : strcmp(a->name, b->name);
}

/* Drop repeated requests for reads and sort them, so that the order of the input does not
 * matter. */
static void arrange_asks(struct hf_brain *b)
{
	size_t len = 0;

	if (b->notes->asks_len > 0)
		qsort(b->notes->asks, b->notes->asks_len, sizeof(*b->notes->asks),
		      by_kind_and_name);
	for (size_t i = 0; i < b->notes->asks_len; i++) {
		if (len == 0 || by_kind_and_name(&b->notes->asks[len - 1], &b->notes->asks[i]) != 0)
			b->notes->asks[len++] = b->notes->asks[i];
	}
	b->notes->asks_len = len;
}

static void publish_notes(struct hf_brain *b)
{
	struct hf_plan *plan = b->plan;

	arrange_asks(b);
	plan->wake_at = b->notes->wake_at;
	plan->asks = b->notes->asks;
	plan->asks_len = b->notes->asks_len;
	plan->events = b->notes->events;
	plan->events_len = b->notes->events_len;
	plan->reasons = b->notes->reasons;
	plan->reasons_len = b->notes->reasons_len;
}

static void publish_status(struct hf_brain *b)
{
	struct hf_plan *plan = b->plan;

	hf_cond_arrange(b);
	arrange_reasons(b);
	plan->status.conditions = b->conditions;
	plan->status.conditions_len = b->conditions_len;
	plan->status.ledger = b->ledger;
	plan->status_changed =
		hf_status_differs(&b->view->status, &plan->status, &plan->status_urgent);
	/* Events are sent after the status is written.  A status that comes with events is urgent,
	 * because the next step would send them again. */
	plan->status_urgent |= plan->status_changed && b->notes->events_len > 0;
}

int hf_job_step(const struct hf_job_view *job, const struct hf_observed *seen, hf_time now,
		struct hf_arena *arena, struct hf_plan *ret_plan, struct hf_error *err)
{
	struct hf_brain *b;

	hf_assert(job->framework && job->name && job->framework->judge);
	hf_assert((job->framework->extra_kinds != 0) == (job->framework->extras != NULL));
	hf_assert(now != HF_TIME_NONE && now != HF_TIME_NEVER);
	if (seen->pods_len > OBSERVED_MAX || seen->services_len > OBSERVED_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "job '%s' has %zu pods and %zu services, at most %zu are "
				    "looked at",
				    job->name, seen->pods_len, seen->services_len, OBSERVED_MAX);
	b = HF_ARENA_NEW(arena, struct hf_brain);
	init_brain(b, job, seen, now, arena, ret_plan);
	if (is_ours(b)) {
		decide_job(b);
		publish_status(b);
	}
	publish_notes(b);
	hf_strbuf_release(&b->scratch);
	return 0;
}
