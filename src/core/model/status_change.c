/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"
#include "core/model/ledger_text_internal.h"

#include "base/str.h"

/*
 * Compares two statuses: whether they differ, and whether the difference is urgent.
 *
 * Urgent means: must be written before any action.  Every decision is urgent.  Counts, the fact
 * that a job runs, and bits and times that only describe progress may wait for a second: so a
 * thousand pods that start are not a thousand writes.
 *
 * The first ledger of a new job may wait too, because the stamps of its pods say the same.  After a
 * crash before that write, the next operator finds those pods, or begins anew.
 */

static bool is_same_text(const char *a, const char *b)
{
	return a == b || hf_streq(hf_str_or(a, ""), hf_str_or(b, ""));
}

static bool is_same_number(struct hf_opt_int a, struct hf_opt_int b)
{
	return a.set == b.set && (!a.set || a.value == b.value);
}

static bool is_same_condition(const struct hf_condition *x, const struct hf_condition *y)
{
	return is_same_text(x->type, y->type) && is_same_text(x->status, y->status) &&
	       is_same_text(x->reason, y->reason) && is_same_text(x->message, y->message) &&
	       x->last_update == y->last_update && x->last_transition == y->last_transition;
}

static bool are_same_conditions(const struct hf_status *a, const struct hf_status *b)
{
	if (a->conditions_len != b->conditions_len)
		return false;
	for (size_t i = 0; i < a->conditions_len; i++) {
		if (!is_same_condition(&a->conditions[i], &b->conditions[i]))
			return false;
	}
	return true;
}

/* The change of the condition decides nothing: the job was seen, runs, runs again, or only a
 * message changed. */
static bool is_progress(const struct hf_condition *before, const struct hf_condition *now)
{
	bool is_true = hf_streq(now->status, "True");

	if (before && hf_str_has_prefix(now->type, HF_COND_PREFIX) &&
	    is_same_text(before->status, now->status) &&
	    is_same_text(before->reason, now->reason) &&
	    before->last_transition == now->last_transition)
		return true;

	if (hf_streq(now->type, HF_COND_RESTARTING))
		return !is_true;
	return is_true &&
	       (hf_streq(now->type, HF_COND_CREATED) || hf_streq(now->type, HF_COND_RUNNING));
}

/* All changes of conditions are mere progress, and no condition was removed. */
static bool is_conditions_progress(const struct hf_status *a, const struct hf_status *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->conditions_len; i++) {
		const struct hf_condition *now = &b->conditions[i];
		const struct hf_condition *before = hf_status_condition(a, now->type);

		kept += before != NULL;
		if ((!before || !is_same_condition(before, now)) && !is_progress(before, now))
			return false;
	}
	return kept == a->conditions_len;
}

static bool are_same_counts(const struct hf_status *a, const struct hf_status *b)
{
	for (int r = 0; r < HF_ROLES_MAX; r++) {
		const struct hf_replica_status *x = &a->replicas[r];
		const struct hf_replica_status *y = &b->replicas[r];

		if (x->present != y->present || x->active != y->active ||
		    x->succeeded != y->succeeded || x->failed != y->failed ||
		    !is_same_text(x->selector, y->selector))
			return false;
	}
	return true;
}

static bool is_same_restart(const struct hf_record *x, const struct hf_record *y)
{
	return x->detected_at == y->detected_at && x->decided_at == y->decided_at &&
	       x->in_place == y->in_place && x->ended_at == y->ended_at &&
	       x->down_at == y->down_at && x->step == y->step && x->saved_step == y->saved_step;
}

static bool is_same_record(const struct hf_record *x, const struct hf_record *y)
{
	return x->generation == y->generation && x->incident == y->incident &&
	       x->cause == y->cause && is_same_text(x->reason, y->reason) &&
	       is_same_text(x->message, y->message) && is_same_text(x->scope, y->scope) &&
	       is_same_text(x->replica, y->replica) && is_same_text(x->pod, y->pod) &&
	       is_same_text(x->node, y->node) && is_same_text(x->device, y->device) &&
	       is_same_number(x->exit_code, y->exit_code) && is_same_number(x->signal, y->signal) &&
	       is_same_text(x->rule, y->rule) && is_same_restart(x, y);
}

static bool are_same_roles(const struct hf_ledger *a, const struct hf_ledger *b)
{
	for (int r = 0; r < HF_ROLES_MAX; r++) {
		const struct hf_role_ledger *x = &a->roles[r];
		const struct hf_role_ledger *y = &b->roles[r];

		if (!is_same_text(x->attempts, y->attempts) ||
		    !is_same_text(x->succeeded, y->succeeded) || !is_same_text(x->seen, y->seen) ||
		    !is_same_text(x->init_seen, y->init_seen) ||
		    !is_same_text(x->covered, y->covered) || !is_same_text(x->hold, y->hold) ||
		    !is_same_text(x->in_place, y->in_place) ||
		    !is_same_text(x->in_place_since, y->in_place_since))
			return false;
	}
	return true;
}

static bool are_same_budgets(const struct hf_ledger *a, const struct hf_ledger *b)
{
	for (int i = 0; i < HF_BUDGETS; i++) {
		if (a->restarts[i] != b->restarts[i])
			return false;
	}
	for (int i = 0; i < HF_STREAKS; i++) {
		if (a->streak[i] != b->streak[i])
			return false;
	}
	return true;
}

static bool are_same_records(const struct hf_ledger *a, const struct hf_ledger *b)
{
	if (a->records_len != b->records_len)
		return false;
	for (size_t i = 0; i < a->records_len; i++) {
		if (!is_same_record(&a->records[i], &b->records[i]))
			return false;
	}
	return true;
}

static bool is_same_incident(const struct hf_ledger *a, const struct hf_ledger *b)
{
	return a->incident.id == b->incident.id && a->incident.opened_at == b->incident.opened_at &&
	       a->incident.cause == b->incident.cause && a->incident.charged == b->incident.charged;
}

static bool are_same_streaks(const struct hf_ledger *a, const struct hf_ledger *b)
{
	return a->in_place_base == b->in_place_base &&
	       a->in_place_incident == b->in_place_incident && a->in_place_at == b->in_place_at &&
	       a->in_place_wait_seconds == b->in_place_wait_seconds &&
	       a->in_place_grace_seconds == b->in_place_grace_seconds &&
	       a->in_place_save_seconds == b->in_place_save_seconds &&
	       a->in_place_streak == b->in_place_streak && a->best_step == b->best_step &&
	       a->no_progress_streak == b->no_progress_streak &&
	       /* That a save is over is progress. */
	       (a->save_until == b->save_until || b->save_until == HF_TIME_NONE);
}

static bool is_same_verdict(const struct hf_ledger *a, const struct hf_ledger *b)
{
	return is_same_text(a->verdict.reason, b->verdict.reason) &&
	       is_same_text(a->verdict.message, b->verdict.message) &&
	       a->verdict.at == b->verdict.at;
}

/* Decisions: everything but progress. */
static bool are_same_decisions(const struct hf_ledger *a, const struct hf_ledger *b)
{
	return a->present == b->present && a->schema == b->schema &&
	       a->generation == b->generation && a->active_seconds == b->active_seconds &&
	       is_same_text(a->restart_handled, b->restart_handled) && are_same_budgets(a, b) &&
	       are_same_records(a, b) && is_same_incident(a, b) && are_same_roles(a, b) &&
	       is_same_verdict(a, b) && are_same_streaks(a, b) &&
	       /* The report of a save that was asked for goes with its pod, so it is written before the pod is deleted. */
	       (a->saved_step == b->saved_step || a->save_until == HF_TIME_NONE) &&
	       /* A delay that begins is a decision; a delay that ends is mere progress. */
	       (a->not_before == b->not_before || b->not_before == HF_TIME_NONE);
}

/* What ranks report, and the end of a request to save. */
static bool are_same_steps(const struct hf_ledger *a, const struct hf_ledger *b)
{
	return a->save_until == b->save_until && a->step == b->step &&
	       a->saved_step == b->saved_step && a->save_ms == b->save_ms &&
	       a->steps_at == b->steps_at;
}

static bool is_same_progress(const struct hf_ledger *a, const struct hf_ledger *b)
{
	for (int r = 0; r < HF_ROLES_MAX; r++) {
		if (!is_same_text(a->roles[r].created, b->roles[r].created) ||
		    !is_same_text(a->roles[r].trained, b->roles[r].trained))
			return false;
	}
	for (size_t i = 0; i < a->records_len; i++) {
		if (a->records[i].running_at != b->records[i].running_at ||
		    a->records[i].stepped_at != b->records[i].stepped_at)
			return false;
	}
	return are_same_steps(a, b) && a->phase == b->phase && a->since == b->since &&
	       a->not_before == b->not_before && a->downtime_seconds == b->downtime_seconds &&
	       a->productive_seconds == b->productive_seconds;
}

/* The job had no status before, and no decision was made yet. */
static bool is_beginning(const struct hf_status *a, const struct hf_status *b)
{
	struct hf_ledger blank;

	if (a->ledger.present || a->conditions_len > 0 || a->start_time != HF_TIME_NONE)
		return false;
	hf_ledger_blank(&blank);
	blank.generation = 1;
	return are_same_decisions(&blank, &b->ledger);
}

bool hf_status_differs(const struct hf_status *a, const struct hf_status *b, bool *ret_urgent)
{
	bool written, urgent;

	hf_assert(a && b && ret_urgent);
	/* A kept ledger is not written.  If its difference counted, every step would see a
	 * change. */
	written = b->ledger.present && !b->ledger.kept;
	urgent = a->start_time != b->start_time || a->ledger.present != b->ledger.present ||
		 (written && !are_same_decisions(&a->ledger, &b->ledger));
	*ret_urgent = (urgent && !is_beginning(a, b)) || a->completion_time != b->completion_time ||
		      !is_conditions_progress(a, b);
	return urgent || *ret_urgent || !are_same_conditions(a, b) || !are_same_counts(a, b) ||
	       (written && !is_same_progress(&a->ledger, &b->ledger));
}
