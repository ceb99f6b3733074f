/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * How long the n-th restart of a streak waits.  The first restart never waits, because most
 * failures happen once.  Writes: the ledger's streaks and notBefore.
 *
 *     application                 0, initial, 2·initial, 4·initial, … up to max
 *     infrastructure and device   0, 5 s, 10 s, 20 s, … up to 300 s
 *     deletes by people           the same
 *
 * The streaks of infrastructure and of people's deletes begin anew when the job has run for 300 s.  Nodes that are emptied one
 * after the other would else delay a job that goes on well by minutes for each node.
 */
#define OTHER_INITIAL_SECONDS 5
#define OTHER_MAX_SECONDS 300
/* The longest delay of a job in a Kueue queue, in seconds.  Kueue evicts a job that is not ready
 * again within its recoveryTimeout of 5 minutes. */
#define KUEUE_MAX_SECONDS 240
/* Jobs that fail together do not restart together: up to a tenth of the delay is added, in one of
 * 1,000 parts chosen by the job's UID. */
#define SPREAD_PARTS 1000
/* If the init container of a pod waited in vain, the new pod is delayed by a tenth of the time for
 * which ranks have been missing. */
#define WAITED_PARTS 10
/* 30 years */
#define DELAY_SECONDS_MAX ((int64_t)1000000000)

static hf_time double_seconds(int64_t initial_seconds, int64_t max_seconds, int64_t times)
{
	int64_t seconds = initial_seconds < max_seconds ? initial_seconds : max_seconds;

	hf_assert(max_seconds <= DELAY_SECONDS_MAX);
	/* Doubling 0 gives 0, so the first step is 1 s.  Validation refuses a smaller
	 * initialSeconds. */
	if (seconds < 1)
		seconds = 1;

	while (times-- > 0 && seconds < max_seconds)
		seconds *= 2;
	return (seconds < max_seconds ? seconds : max_seconds) * HF_SECOND;
}

hf_time hf_delay_compute(const struct hf_recovery *recovery, enum hf_budget budget, int64_t n,
			 const char *uid, bool kueue)
{
	bool application = budget == HF_BUDGET_APPLICATION;
	int64_t max = application ? recovery->backoff_max_seconds : OTHER_MAX_SECONDS;
	hf_time delay;

	hf_assert(n >= 1 && (int)budget < HF_STREAKS);
	if (n == 1)
		return 0;
	if (max > DELAY_SECONDS_MAX)
		max = DELAY_SECONDS_MAX;
	if (kueue && max > KUEUE_MAX_SECONDS)
		max = KUEUE_MAX_SECONDS;
	delay = double_seconds(application ? recovery->backoff_initial_seconds
					   : OTHER_INITIAL_SECONDS,
			       max, n - 2);
	delay += delay / 10 / SPREAD_PARTS * (hf_time)(hf_hash_str(uid) % SPREAD_PARTS);
	return delay < max * HF_SECOND ? delay : max * HF_SECOND;
}

/* The job has run for that span without a break since its last restart.  A suspension is a
 * break. */
static bool has_run_for(const struct hf_brain *b, hf_time span)
{
	hf_time start = b->plan->status.start_time;
	hf_time from;

	/* records[0] is still the previous restart: the caller writes the record of the new one
	 * later. */
	if (b->ledger.records_len == 0 || b->ledger.records[0].running_at == HF_TIME_NONE)
		return false;
	from = b->ledger.records[0].running_at;
	if (start != HF_TIME_NONE && start > from)
		from = start;
	return hf_elapsed(from, b->now) >= span;
}

void hf_delay_reset(struct hf_brain *b)
{
	if (has_run_for(b, OTHER_MAX_SECONDS * HF_SECOND))
		b->ledger.streak[HF_BUDGET_INFRASTRUCTURE] = b->ledger.streak[HF_BUDGET_NONE] = 0;
	if (!has_run_for(b, hf_seconds(b->job.recovery.backoff_reset_after_seconds)))
		return;
	for (int i = 0; i < HF_STREAKS; i++)
		b->ledger.streak[i] = 0;
	b->ledger.in_place_streak = 0;
}

static void wait_for(struct hf_brain *b, hf_time delay)
{
	hf_time at = hf_time_add(b->now, delay);

	at -= at % HF_US;
	hf_assert(at >= b->now);
	if (at > b->now && (b->ledger.not_before == HF_TIME_NONE || at > b->ledger.not_before))
		b->ledger.not_before = at;
}

void hf_delay_next(struct hf_brain *b, enum hf_budget budget)
{
	const struct hf_recovery *recovery = &b->job.recovery;

	hf_assert((int)budget < HF_STREAKS);
	hf_delay_reset(b);
	b->ledger.streak[budget]++;
	wait_for(b, hf_delay_compute(recovery, budget, b->ledger.streak[budget], b->view->uid,
				     !hf_str_is_empty(b->view->kueue_queue)));
}

void hf_delay_waited(struct hf_brain *b, bool still)
{
	hf_time max = hf_str_is_empty(b->view->kueue_queue) ? OTHER_MAX_SECONDS : KUEUE_MAX_SECONDS;
	hf_time delay = 0;

	if (still && b->ledger.since != HF_TIME_NONE)
		delay = hf_elapsed(b->ledger.since, b->now) / WAITED_PARTS;
	if (delay < OTHER_INITIAL_SECONDS * HF_SECOND)
		delay = OTHER_INITIAL_SECONDS * HF_SECOND;
	wait_for(b, delay < max * HF_SECOND ? delay : max * HF_SECOND);
}
