/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

/*
 * The phase of the present generation, derived anew in each step, and the time spent running and
 * restarting. Writes: the ledger's phase, since, productiveSeconds and downtimeSeconds. The phases
 * Suspended and Ended say that the ledger has the suspension or the end; under narrow-schema CRDs
 * the ledger is written apart from the conditions (suspend.c, verdict.c).
 */

/* All held ranks are down, and the restart waits only for its delay.  The phase stays Tearing then:
 * Creating would be a write that says nothing new. */
static bool waits_for_delay(const struct hf_brain *b)
{
	if (!b->barrier || !hf_barrier_is_of_all(b))
		return false;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			if (b->roles[r].slots[i].held &&
			    !hf_slot_is_down(b, r, &b->roles[r].slots[i]))
				return false;
		}
	}
	return true;
}

static enum hf_phase derive_phase(const struct hf_brain *b)
{
	if (b->job.suspend)
		return HF_PHASE_SUSPENDED;
	if (b->older_pods > 0 || waits_for_delay(b))
		return HF_PHASE_TEARING;
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];

			if (!hf_slot_is_up(slot) && !slot->succeeded)
				return HF_PHASE_CREATING;
		}
	}
	return HF_PHASE_RUNNING;
}

void hf_phase_step(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	enum hf_phase phase = derive_phase(b);

	ledger->phase = phase;
	if (phase != HF_PHASE_RUNNING)
		return;
	hf_assert(b->older_pods == 0);
	ledger->not_before = HF_TIME_NONE;
	if (ledger->records_len > 0 && ledger->records[0].running_at == HF_TIME_NONE &&
	    ledger->records[0].decided_at != HF_TIME_NONE)
		ledger->records[0].running_at = b->now;
}

static bool was_condition_true(const struct hf_brain *b, const char *type)
{
	return hf_status_is_true(&b->view->status, type);
}

/* The time until the suspension or the end was added when the ledger was written. */
static bool is_booked(const struct hf_ledger *before)
{
	return before->phase == HF_PHASE_SUSPENDED || before->phase == HF_PHASE_ENDED;
}

/* Rounded to the nearest second, so that short turns do not all vanish. */
static int64_t to_seconds(hf_time span)
{
	return hf_time_add(span, HF_SECOND / 2) / HF_SECOND;
}

/* Until when all ranks worked in the span that ends now.  If a rank that terminated in this step stood still before
 * (a silent node, a hang, a termination seen late), that time is lost.  Exception: the job runs on without the rank. */
static hf_time find_end_of_work(const struct hf_brain *b)
{
	hf_time since = b->ledger.since;

	if (b->idle_since == HF_TIME_NONE || b->idle_since >= b->now ||
	    (hf_cond_is_true(b, HF_COND_RUNNING) && !hf_verdict_pending(b)))
		return b->now;
	return b->idle_since > since ? b->idle_since : since;
}

/* The job ran before it had a ledger, under another operator: as far as is known all ranks ran since Running is True. */
static void book_run_before_ledger(struct hf_brain *b)
{
	const struct hf_condition *running = hf_status_condition(&b->view->status, HF_COND_RUNNING);

	if (was_condition_true(b, HF_COND_RUNNING) && running->last_transition != HF_TIME_NONE &&
	    running->last_transition < b->now)
		b->ledger.productive_seconds =
			to_seconds(hf_elapsed(running->last_transition, b->now));
}

void hf_phase_book(struct hf_brain *b)
{
	const struct hf_ledger *before = &b->view->status.ledger;
	struct hf_ledger *ledger = &b->ledger;

	hf_assert(ledger->present);
	if (before->present && before->phase == ledger->phase &&
	    was_condition_true(b, HF_COND_RUNNING) == hf_cond_is_true(b, HF_COND_RUNNING) &&
	    was_condition_true(b, HF_COND_RESTARTING) == hf_cond_is_true(b, HF_COND_RESTARTING))
		return;
	if (before->present && ledger->since != HF_TIME_NONE && !is_booked(before)) {
		int64_t seconds = to_seconds(hf_elapsed(ledger->since, b->now));
		int64_t worked = to_seconds(hf_elapsed(ledger->since, find_end_of_work(b)));

		if (hf_status_is_productive(&b->view->status)) {
			ledger->productive_seconds += worked;
			ledger->downtime_seconds += seconds - worked;
		} else if (hf_status_is_down(&b->view->status)) {
			ledger->downtime_seconds += seconds;
		}
	}
	if (!before->present)
		book_run_before_ledger(b);
	ledger->since = b->now;
}
