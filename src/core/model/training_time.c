/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"

#include "base/str.h"

/*
 * What restarts cost a job: the parts of a restart, the steps lost, the share of the time in which
 * it trained, and how often it should save.  Input: a status as stored.  Pure.
 */

static hf_time span_between(hf_time from, hf_time to)
{
	if (from == HF_TIME_NONE || to == HF_TIME_NONE || to < from)
		return HF_TIME_NONE;
	return hf_elapsed(from, to);
}

struct hf_record_parts hf_record_parts(const struct hf_record *record)
{
	hf_time detect = span_between(record->ended_at, record->detected_at);

	return (struct hf_record_parts){
		.total = span_between(detect != HF_TIME_NONE ? record->ended_at
							     : record->detected_at,
				      record->running_at),
		.detect = detect,
		.decide = span_between(record->detected_at, record->decided_at),
		.down = span_between(record->decided_at, record->down_at),
		.start = span_between(record->down_at != HF_TIME_NONE ? record->down_at
								      : record->decided_at,
				      record->running_at),
		/* That all ranks run may be known after a step of one. */
		.first_step = record->running_at != HF_TIME_NONE &&
					      record->stepped_at != HF_TIME_NONE &&
					      record->stepped_at < record->running_at
				      ? 0
				      : span_between(record->running_at, record->stepped_at),
	};
}

int64_t hf_record_lost_steps(const struct hf_record *record)
{
	if (record->step <= 0 || record->saved_step <= 0 || record->step < record->saved_step)
		return -1;
	return record->step - record->saved_step;
}

bool hf_status_ends_recovery(const struct hf_status *before, const struct hf_status *now)
{
	const struct hf_record *last = &now->ledger.records[0], *old = &before->ledger.records[0];
	bool had = before->ledger.records_len > 0 && old->running_at != HF_TIME_NONE &&
		   old->generation == last->generation && old->incident == last->incident;

	return now->ledger.records_len > 0 && last->running_at != HF_TIME_NONE && !had &&
	       last->detected_at != HF_TIME_NONE;
}

bool hf_status_shows_first_step(const struct hf_status *before, const struct hf_status *now)
{
	const struct hf_record *last = &now->ledger.records[0], *old = &before->ledger.records[0];

	return now->ledger.records_len > 0 && last->stepped_at != HF_TIME_NONE &&
	       before->ledger.records_len > 0 && old->incident == last->incident &&
	       old->stepped_at == HF_TIME_NONE;
}

/* The span from a past time until now; 0: the time is unknown, or it is in the future. */
static hf_time span_since(hf_time since, hf_time now)
{
	return since != HF_TIME_NONE ? hf_elapsed(since, now) : 0;
}

/* Condition Running is not enough: it stays True while the kubelet restarts a container, and while a verdict settles. */
bool hf_status_is_productive(const struct hf_status *status)
{
	return hf_status_is_true(status, HF_COND_RUNNING) &&
	       status->ledger.phase == HF_PHASE_RUNNING && status->ledger.verdict.reason == NULL;
}

/* Ranks that are missing without a restart, such as those that a larger job gets, are no downtime. */
bool hf_status_is_down(const struct hf_status *status)
{
	const struct hf_ledger *ledger = &status->ledger;

	if (hf_status_is_true(status, HF_COND_RESTARTING))
		return true;
	return hf_status_is_true(status, HF_COND_RUNNING) && ledger->phase != HF_PHASE_RUNNING &&
	       ledger->verdict.reason == NULL && ledger->records_len > 0 &&
	       ledger->records[0].running_at == HF_TIME_NONE;
}

/* NONE: not all ranks run now. */
static hf_time find_running_since(const struct hf_status *status)
{
	return hf_status_is_productive(status) ? status->ledger.since : HF_TIME_NONE;
}

int64_t hf_status_productive_seconds(const struct hf_status *status, hf_time now)
{
	return status->ledger.productive_seconds +
	       span_since(find_running_since(status), now) / HF_SECOND;
}

int64_t hf_status_downtime_seconds(const struct hf_status *status, hf_time now)
{
	hf_time since = hf_status_is_down(status) ? status->ledger.since : HF_TIME_NONE;

	return status->ledger.downtime_seconds + span_since(since, now) / HF_SECOND;
}

struct hf_training_times hf_status_training_times(const struct hf_status *status)
{
	const struct hf_ledger *ledger = &status->ledger;

	return (struct hf_training_times){
		.start = status->start_time,
		.end = status->completion_time,
		.running_since = find_running_since(status),
		.active = hf_seconds(ledger->active_seconds),
		.productive = ledger->present ? hf_seconds(ledger->productive_seconds) : -1,
	};
}

/* The time for which the job was active, without suspensions; 0: it has not begun. */
static hf_time find_active(const struct hf_training_times *times, hf_time now)
{
	hf_time until = times->end != HF_TIME_NONE ? times->end : now;

	return hf_time_add(times->active, span_since(times->start, until));
}

#define PERMILLE 1000

bool hf_training_ettr(const struct hf_training_times *times, hf_time now, int64_t *ret_permille)
{
	hf_time active = find_active(times, now), productive;

	if (times->productive < 0)
		return false;
	productive = hf_time_add(times->productive, span_since(times->running_since, now));
	if (active < HF_SECOND || productive <= 0)
		return false;
	/* Spans are booked in whole seconds. */
	*ret_permille = productive < active ? productive / (active / PERMILLE) : PERMILLE;
	if (*ret_permille > PERMILLE)
		*ret_permille = PERMILLE;
	return true;
}

bool hf_status_ettr(const struct hf_status *status, hf_time now, int64_t *ret_permille)
{
	struct hf_training_times times = hf_status_training_times(status);

	return hf_training_ettr(&times, now, ret_permille);
}

/* Of one incident the mean time to the next one says little. */
#define INCIDENTS_MIN 2

static int64_t find_root(int64_t square)
{
	int64_t low = 0, high = INT32_MAX;

	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;

		if (middle <= square / middle)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

bool hf_status_advise(const struct hf_status *status, hf_time now,
		      struct hf_checkpoint_advice *ret_advice)
{
	const struct hf_ledger *ledger = &status->ledger;
	struct hf_training_times times = hf_status_training_times(status);
	int64_t incidents = 0, between, seconds;

	for (int i = 0; i < HF_BUDGETS; i++)
		incidents += ledger->restarts[i];
	if (!ledger->present || ledger->save_ms <= 0 || incidents < INCIDENTS_MIN)
		return false;
	between = find_active(&times, now) / HF_SECOND / incidents;
	/* The product of both stays within 63 bits. */
	if (between <= 0 || between > INT32_MAX || ledger->save_ms > INT32_MAX)
		return false;
	/* sqrt(2 × save × between), in milliseconds under the root. */
	seconds = find_root(2 * ledger->save_ms * between / PERMILLE);
	*ret_advice = (struct hf_checkpoint_advice){
		.seconds = seconds > 0 ? seconds : 1,
		.save_ms = ledger->save_ms,
		.incidents = incidents,
		.between_seconds = between,
	};
	return true;
}
