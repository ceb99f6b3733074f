/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Decides whether a pod with a failed device is evicted.
 * Input: facts about pod, node and policy.  Output: a verdict with its reason, and when time alone may change the
 * verdict.
 */
#include "health/drain.h"

/* Least delay before an eviction is tried again.  A disruption budget changes when a pod elsewhere becomes ready,
 * which takes minutes as a rule. */
#define BACKOFF_MIN (10 * HF_SECOND)
#define BACKOFF_MAX (5 * HF_MINUTE)

/* The verdict by the facts that do not change with time: EVICT, or why the pod is not evicted. */
static enum hf_health_drain_why make_never(const struct hf_health_drain *drain,
					   const struct hf_health_pod *pod)
{
	if (pod->ended)
		return HF_HEALTH_DRAIN_ENDS;
	if (drain->quarantined_at == HF_TIME_NONE)
		return HF_HEALTH_DRAIN_NOT_OURS;
	if (!pod->fatal)
		return HF_HEALTH_DRAIN_WORKS;
	if (pod->daemon)
		return HF_HEALTH_DRAIN_DAEMON;
	if (!pod->selected)
		return HF_HEALTH_DRAIN_UNSELECTED;
	if (!drain->evicts)
		return HF_HEALTH_DRAIN_MODE;
	if (drain->paused)
		return HF_HEALTH_DRAIN_HALTED;
	return drain->stale ? HF_HEALTH_DRAIN_OLD : HF_HEALTH_DRAIN_EVICT;
}

/* The time until which the pod may end by itself: a job moves its ranks more gently than an eviction does.  A pod
 * that came after the quarantine has as much time from its arrival.  If pods come to this node again and again,
 * they are evicted at longer intervals. */
static hf_time gone_by_itself(const struct hf_health_drain *drain, const struct hf_health_pod *pod)
{
	hf_time backoff = hf_health_drain_backoff(drain->came_back + 1, 0);

	if (pod->came_at <= drain->quarantined_at)
		return hf_time_add(drain->quarantined_at, drain->grace);
	return hf_time_add(pod->came_at, drain->grace > backoff ? drain->grace : backoff);
}

enum hf_health_drain_why hf_health_drain(const struct hf_health_drain *drain,
					 const struct hf_health_pod *pod, hf_time *ret_wake)
{
	enum hf_health_drain_why why = make_never(drain, pod);
	hf_time at;

	if (why != HF_HEALTH_DRAIN_EVICT)
		return why;
	at = gone_by_itself(drain, pod);
	if (drain->now < at) {
		why = HF_HEALTH_DRAIN_GRACE;
	} else if (pod->restarting) {
		at = hf_time_add(drain->now, BACKOFF_MIN);
		why = HF_HEALTH_DRAIN_RESTARTING;
	} else if (pod->not_before != HF_TIME_NONE && drain->now < pod->not_before) {
		at = pod->not_before;
		why = HF_HEALTH_DRAIN_REFUSED;
	} else {
		return HF_HEALTH_DRAIN_EVICT;
	}
	if (at < *ret_wake)
		*ret_wake = at;
	return why;
}

bool hf_health_drain_is_stuck(const struct hf_health_drain *drain)
{
	hf_time began =
		drain->quarantined_at > drain->evicts_at ? drain->quarantined_at : drain->evicts_at;

	return drain->evicts && drain->quarantined_at != HF_TIME_NONE &&
	       drain->now - began > drain->grace + drain->timeout;
}

hf_time hf_health_drain_backoff(unsigned refusals, hf_time asked)
{
	hf_time wait = BACKOFF_MIN;

	for (unsigned i = 1; i < refusals && wait < BACKOFF_MAX; i++)
		wait *= 2;
	if (wait > BACKOFF_MAX)
		wait = BACKOFF_MAX;
	return asked > wait ? asked : wait;
}
