/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * activeDeadlineSeconds, measured over active time: time in which the job was suspended does not
 * count.  An active job with a deadline always has a wake-up at that deadline.
 */

int64_t hf_active_seconds(const struct hf_brain *b)
{
	hf_time start = b->plan->status.start_time;
	int64_t seconds = b->ledger.active_seconds;

	hf_assert(seconds >= 0);
	if (start != HF_TIME_NONE)
		seconds += hf_elapsed(start, b->now) / HF_SECOND;
	return seconds;
}

bool hf_deadline_has_passed(const struct hf_brain *b)
{
	struct hf_opt_int deadline = b->view->run_policy.active_deadline_seconds;
	hf_time start = b->plan->status.start_time;

	hf_assert(!hf_cond_finished(b));
	if (!deadline.set || start == HF_TIME_NONE)
		return false;
	if (hf_active_seconds(b) >= deadline.value)
		return true;
	hf_wake(b, hf_time_add(start, hf_seconds(deadline.value - b->ledger.active_seconds)));
	return false;
}
