/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"
#include "core/model/ledger_text_internal.h"

#include "base/str.h"

/*
 * What is new in a status.  "Urgent" is what must be written before anything is done: every
 * decision.  Counts, that a job runs, and the bits and times that only describe progress, may
 * wait for a second: a thousand pods that start are not a thousand writes.
 *
 * Nor does a job that begins wait: its first ledger says nothing that its pods' stamps do not
 * say.  Whoever dies before it was written finds those pods, or begins anew.
 */

static bool same(const char *a, const char *b)
{
	return a == b || hf_streq(hf_str_or(a, ""), hf_str_or(b, ""));
}

static bool same_opt(struct hf_opt_int a, struct hf_opt_int b)
{
	return a.set == b.set && (!a.set || a.value == b.value);
}

static bool same_condition(const struct hf_condition *x, const struct hf_condition *y)
{
	return same(x->type, y->type) && same(x->status, y->status) && same(x->reason, y->reason) &&
	       same(x->message, y->message) && x->last_update == y->last_update &&
	       x->last_transition == y->last_transition;
}

static bool same_conditions(const struct hf_status *a, const struct hf_status *b)
{
	if (a->conditions_len != b->conditions_len)
		return false;
	for (size_t i = 0; i < a->conditions_len; i++) {
		if (!same_condition(&a->conditions[i], &b->conditions[i]))
			return false;
	}
	return true;
}

/* A rank was seen, runs, runs again, or a message changed: this decides nothing. */
static bool is_progress(const struct hf_condition *before, const struct hf_condition *now)
{
	bool is_true = hf_streq(now->status, "True");

	if (before && hf_str_has_prefix(now->type, HF_COND_PREFIX) &&
	    same(before->status, now->status) && same(before->reason, now->reason) &&
	    before->last_transition == now->last_transition)
		return true;

	if (hf_streq(now->type, HF_COND_RESTARTING))
		return !is_true;
	return is_true &&
	       (hf_streq(now->type, HF_COND_CREATED) || hf_streq(now->type, HF_COND_RUNNING));
}

/* All that is new in the conditions is progress, their order apart. */
static bool conditions_progress(const struct hf_status *a, const struct hf_status *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->conditions_len; i++) {
		const struct hf_condition *now = &b->conditions[i];
		const struct hf_condition *before = hf_status_condition(a, now->type);

		kept += before != NULL;
		if ((!before || !same_condition(before, now)) && !is_progress(before, now))
			return false;
	}
	return kept == a->conditions_len;
}

static bool same_counts(const struct hf_status *a, const struct hf_status *b)
{
	for (int r = 0; r < HF_ROLES_MAX; r++) {
		const struct hf_replica_status *x = &a->replicas[r];
		const struct hf_replica_status *y = &b->replicas[r];

		if (x->present != y->present || x->active != y->active ||
		    x->succeeded != y->succeeded || x->failed != y->failed ||
		    !same(x->selector, y->selector))
			return false;
	}
	return true;
}

static bool same_record(const struct hf_record *x, const struct hf_record *y)
{
	return x->generation == y->generation && x->incident == y->incident &&
	       x->cause == y->cause && same(x->reason, y->reason) && same(x->message, y->message) &&
	       same(x->scope, y->scope) && same(x->replica, y->replica) && same(x->pod, y->pod) &&
	       same(x->node, y->node) && same(x->device, y->device) &&
	       same_opt(x->exit_code, y->exit_code) && same_opt(x->signal, y->signal) &&
	       same(x->rule, y->rule) && x->detected_at == y->detected_at &&
	       x->decided_at == y->decided_at;
}

static bool same_roles(const struct hf_ledger *a, const struct hf_ledger *b)
{
	for (int r = 0; r < HF_ROLES_MAX; r++) {
		const struct hf_role_ledger *x = &a->roles[r];
		const struct hf_role_ledger *y = &b->roles[r];

		if (!same(x->attempts, y->attempts) || !same(x->succeeded, y->succeeded) ||
		    !same(x->seen, y->seen) || !same(x->covered, y->covered))
			return false;
	}
	return true;
}

static bool same_budgets(const struct hf_ledger *a, const struct hf_ledger *b)
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

static bool same_records(const struct hf_ledger *a, const struct hf_ledger *b)
{
	if (a->records_len != b->records_len)
		return false;
	for (size_t i = 0; i < a->records_len; i++) {
		if (!same_record(&a->records[i], &b->records[i]))
			return false;
	}
	return true;
}

static bool same_incident(const struct hf_ledger *a, const struct hf_ledger *b)
{
	return a->incident.id == b->incident.id && a->incident.opened_at == b->incident.opened_at &&
	       a->incident.cause == b->incident.cause && a->incident.charged == b->incident.charged;
}

static bool same_verdict(const struct hf_ledger *a, const struct hf_ledger *b)
{
	return same(a->verdict.reason, b->verdict.reason) &&
	       same(a->verdict.message, b->verdict.message) && a->verdict.at == b->verdict.at;
}

/* Decisions: everything but progress. */
static bool same_decisions(const struct hf_ledger *a, const struct hf_ledger *b)
{
	return a->present == b->present && a->schema == b->schema &&
	       a->generation == b->generation && a->active_seconds == b->active_seconds &&
	       same(a->restart_handled, b->restart_handled) && same_budgets(a, b) &&
	       same_records(a, b) && same_incident(a, b) && same_roles(a, b) &&
	       same_verdict(a, b) &&
	       /* A delay that begins is a decision; one that is over is not. */
	       (a->not_before == b->not_before || b->not_before == HF_TIME_NONE);
}

static bool same_progress(const struct hf_ledger *a, const struct hf_ledger *b)
{
	for (int r = 0; r < HF_ROLES_MAX; r++) {
		if (!same(a->roles[r].created, b->roles[r].created) ||
		    !same(a->roles[r].trained, b->roles[r].trained))
			return false;
	}
	for (size_t i = 0; i < a->records_len; i++) {
		if (a->records[i].running_at != b->records[i].running_at)
			return false;
	}
	return a->phase == b->phase && a->since == b->since && a->not_before == b->not_before &&
	       a->downtime_seconds == b->downtime_seconds &&
	       a->productive_seconds == b->productive_seconds;
}

/* A job of which nothing was known, and nothing has been decided. */
static bool begins(const struct hf_status *a, const struct hf_status *b)
{
	struct hf_ledger blank;

	if (a->ledger.present || a->conditions_len > 0 || a->start_time != HF_TIME_NONE)
		return false;
	hf_ledger_blank(&blank);
	blank.generation = 1;
	return same_decisions(&blank, &b->ledger);
}

bool hf_status_differs(const struct hf_status *a, const struct hf_status *b, bool *ret_urgent)
{
	bool written, urgent;

	hf_assert(a && b && ret_urgent);
	/* A ledger that is kept is not written, so whatever was made of it is not news: it would
	 * be for ever. */
	written = b->ledger.present && !b->ledger.kept;
	urgent = a->start_time != b->start_time || a->ledger.present != b->ledger.present ||
		 (written && !same_decisions(&a->ledger, &b->ledger));
	*ret_urgent = (urgent && !begins(a, b)) || a->completion_time != b->completion_time ||
		      !conditions_progress(a, b);
	return urgent || *ret_urgent || !same_conditions(a, b) || !same_counts(a, b) ||
	       (written && !same_progress(&a->ledger, &b->ledger));
}
