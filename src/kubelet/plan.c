/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/plan_internal.h"

/*
 * Decides which containers of a pod start, when, and the pod's phase. See plan_internal.h.
 */

const char *hf_kubelet_phase_name(enum hf_pod_phase phase)
{
	static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed"};

	return names[phase];
}

bool hf_attempt_running(const struct hf_attempt *attempt)
{
	return attempt->state == HF_ATTEMPT_BEGUN || attempt->state == HF_ATTEMPT_RUNNING;
}

bool hf_attempt_ended(const struct hf_attempt *attempt)
{
	return attempt->state == HF_ATTEMPT_FAILED || attempt->state == HF_ATTEMPT_EXITED;
}

bool hf_attempt_succeeded(const struct hf_attempt *attempt)
{
	return attempt->state == HF_ATTEMPT_EXITED && attempt->code == 0 && attempt->signum == 0;
}

int hf_attempt_exit_code(const struct hf_attempt *attempt)
{
	if (attempt->state == HF_ATTEMPT_FAILED)
		return 128;
	return attempt->signum ? 128 + attempt->signum : attempt->code;
}

static const struct hf_attempt none;

static const struct hf_attempt *last_of(const struct hf_plan_container *c)
{
	return c->past ? &c->past->last : &none;
}

/* Plans the attempt after `last`: at once or after a back-off. */
static void plan_start(struct hf_plan_container *c, hf_time now)
{
	const struct hf_attempt *last = last_of(c);

	c->at = now;
	if (last->state == HF_ATTEMPT_NONE) {
		c->attempt = 0;
		c->backoff_s = 0;
	} else {
		bool reset = last->number > 0 && now - last->begun > HF_BACKOFF_RESET;

		c->attempt = last->number + 1;
		if (!reset)
			c->at = hf_time_add(last->finished, last->backoff_s * HF_SECOND);
		c->backoff_s =
			reset || last->backoff_s == 0 ? HF_BACKOFF_FIRST_S : last->backoff_s * 2;
		if (c->backoff_s > HF_BACKOFF_MAX_S)
			c->backoff_s = HF_BACKOFF_MAX_S;
	}
	if (c->at > now) {
		c->step = HF_STEP_BACKOFF;
	} else if (c->blocked_until != HF_TIME_NONE && c->blocked_until > now) {
		c->step = HF_STEP_BLOCKED;
		c->at = c->blocked_until;
	} else {
		c->step = HF_STEP_START;
	}
}

/* Tells whether the container has ended and will not be restarted. */
static bool is_over(const struct hf_plan_container *c, enum hf_restart_policy policy)
{
	const struct hf_attempt *last = last_of(c);

	if (!hf_attempt_ended(last))
		return false;
	if (policy == HF_RESTART_NEVER)
		return true;
	return (policy == HF_RESTART_ON_FAILURE || c->init) && hf_attempt_succeeded(last);
}

static void plan_one(struct hf_pod_plan *plan, struct hf_plan_container *c)
{
	if (plan->stopping || hf_attempt_running(last_of(c)) || is_over(c, plan->policy))
		return;
	plan_start(c, plan->now);
	if (c->step != HF_STEP_START && c->at < plan->wake)
		plan->wake = c->at;
}

/* Plans the init containers. Returns false if one has failed for good. */
static bool plan_init(struct hf_pod_plan *plan)
{
	plan->initialized = true;
	for (size_t i = 0; i < plan->n && plan->containers[i].init; i++) {
		struct hf_plan_container *c = &plan->containers[i];

		if (hf_attempt_succeeded(last_of(c)))
			continue;
		plan->initialized = false;
		plan_one(plan, c);
		return !is_over(c, plan->policy);
	}
	return true;
}

static bool anything_runs(const struct hf_pod_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (hf_attempt_running(last_of(&plan->containers[i])))
			return true;
	return false;
}

static void set_ends(struct hf_pod_plan *plan, bool all_over)
{
	bool runs = anything_runs(plan);

	plan->over = !runs && all_over;
	plan->finished = !runs && (all_over || plan->stopping);
}

static void set_phase(struct hf_pod_plan *plan, bool init_failed)
{
	bool all_over = true, all_good = true, all_begun = true;

	for (size_t i = 0; i < plan->n; i++) {
		const struct hf_plan_container *c = &plan->containers[i];

		if (c->init)
			continue;
		all_over = all_over && is_over(c, plan->policy);
		all_good = all_good && hf_attempt_succeeded(last_of(c));
		all_begun = all_begun &&
			    (last_of(c)->state >= HF_ATTEMPT_RUNNING || last_of(c)->number > 0);
	}
	set_ends(plan, init_failed || all_over);
	if (plan->finished)
		plan->phase = all_good && !init_failed ? HF_PHASE_SUCCEEDED : HF_PHASE_FAILED;
	else
		plan->phase = plan->initialized && all_begun ? HF_PHASE_RUNNING : HF_PHASE_PENDING;
}

void hf_pod_plan(struct hf_pod_plan *plan)
{
	bool init_failed;

	plan->wake = HF_TIME_NEVER;
	for (size_t i = 0; i < plan->n; i++)
		plan->containers[i].step = HF_STEP_NONE;
	init_failed = !plan_init(plan);
	for (size_t i = 0; plan->initialized && i < plan->n; i++)
		if (!plan->containers[i].init)
			plan_one(plan, &plan->containers[i]);
	set_phase(plan, init_failed);
}
