/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/pass_internal.h"

/*
 * When a routine status is written: a status that nothing waits for.
 *
 * Input: the plan of a step, and what is remembered of the job.  Output: the time at which the
 * status is due.  A status is due at once if it is urgent, if a forced delete is to be reported, or
 * if the ledger might be lost.
 */

/* The shortest time between two routine statuses, so that other writers of the status (Kueue)
 * get their turn.  While the counts go on changing, each write waits twice as long as the one
 * before. */
#define STATUS_GAP HF_SECOND
#define STATUS_GAP_MAX (4 * HF_SECOND)

void hf_pacing_init(struct hf_job_state *state)
{
	state->status_written = state->status_owed = HF_TIME_NONE;
	state->starting_since = state->success_due = HF_TIME_NONE;
	state->status_gap = STATUS_GAP;
}

/* --- jobs that start -------------------------------------------------------------------------- */

static bool is_starting(const struct hf_plan *plan)
{
	return plan->status.ledger.present && plan->status.ledger.phase == HF_PHASE_CREATING;
}

void hf_pacing_note_start(struct hf_pass *pass)
{
	struct hf_job_state *state = pass->state;
	hf_time now = hf_loop_mono(pass->op->loop);
	bool starting = is_starting(&pass->plan), was = state->starting_since != HF_TIME_NONE;

	if (starting && !was) {
		state->starting_since = now;
		hf_startups_begin(&pass->op->startups, now);
	} else if (was && !starting) {
		hf_startups_end(&pass->op->startups, state->starting_since, true, now);
		state->starting_since = HF_TIME_NONE;
	}
}

void hf_pacing_forget_start(struct hf_operator *op, const struct hf_job_state *state)
{
	if (state->starting_since != HF_TIME_NONE)
		hf_startups_end(&op->startups, state->starting_since, false,
				hf_loop_mono(op->loop));
}

/* --- the status ------------------------------------------------------------------------------- */

/* The CRD of the kind is known to keep the ledger.  Only then are pods created before the first
 * ledger is written. */
static bool keeps_ledger(const struct hf_kind *kind)
{
	return kind->keeps || kind->narrow || (kind->crd != NULL && !kind->crd_unseen);
}

static bool begins_ledger(const struct hf_pass *pass)
{
	return pass->plan.status.ledger.present && !pass->view.status.ledger.present;
}

/* The plan deletes a pod by force.  Only this plan knows that, because the next step no longer sees
 * the pod. */
static bool forces_delete(const struct hf_plan *plan)
{
	return plan->metrics[HF_METRIC_FORCED_PROVEN] > 0 ||
	       plan->metrics[HF_METRIC_FORCED_PRESUMED] > 0;
}

/* How long a routine status waits for further progress.  If the plan has a wake-up time, the status
 * does not wait for other ranks. */
static hf_time find_wait(const struct hf_pass *pass)
{
	struct hf_operator *op = pass->op;
	const struct hf_plan *plan = &pass->plan;
	hf_time gather = hf_operator_gather_time(op), wait;

	if (!is_starting(plan) || plan->wake_at != HF_TIME_NEVER)
		return plan->stages_len > 0 ? gather : 0;
	wait = hf_startups_status_wait(&op->startups, begins_ledger(pass), hf_loop_mono(op->loop));
	return wait > gather ? wait : gather;
}

hf_time hf_pacing_status_due(struct hf_pass *pass)
{
	const struct hf_plan *plan = &pass->plan;
	struct hf_job_state *state = pass->state;
	hf_time now = hf_loop_mono(pass->op->loop), due;

	if (!plan->status_changed)
		state->status_owed = HF_TIME_NONE;
	/* After a write without an answer the API server may have a ledger that the cache does not
	 * show.  So a guarded write goes before every action. */
	if (!plan->status_changed || plan->status_urgent || forces_delete(plan) || state->unsure ||
	    (begins_ledger(pass) && !keeps_ledger(pass->kind)))
		return HF_TIME_NONE;
	if (state->status_owed == HF_TIME_NONE)
		state->status_owed = now;
	due = state->status_owed + find_wait(pass);
	if (state->status_written != HF_TIME_NONE &&
	    due < state->status_written + state->status_gap)
		due = state->status_written + state->status_gap;
	return now < due ? due : HF_TIME_NONE;
}

void hf_pacing_note_written(struct hf_pass *pass)
{
	struct hf_job_state *state = pass->state;
	hf_time now = hf_loop_mono(pass->op->loop), last = state->status_written;

	if (pass->plan.status_urgent || last == HF_TIME_NONE || now - last > 2 * state->status_gap)
		state->status_gap = STATUS_GAP;
	else if (state->status_gap < STATUS_GAP_MAX)
		state->status_gap *= 2;
	state->status_written = now;
	state->status_owed = HF_TIME_NONE;
	state->unsure = false;
	state->pods_made = state->services_made = 0;
}
