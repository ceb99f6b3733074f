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

bool hf_plan_container_ready(const struct hf_plan_container *c)
{
	return last_of(c)->state == HF_ATTEMPT_RUNNING && !c->starting && !c->unready;
}

/* Plans the next attempt of a container that has ended: start now, or after a back-off. */
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

/* Tells whether the container has ended and will not be restarted. Not for sidecars, about which
 * plan_one decides. */
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
	if (plan->stopping || hf_attempt_running(last_of(c)))
		return;
	if (c->sidecar ? plan->over : is_over(c, plan->policy))
		return;
	plan_start(c, plan->now);
	if (c->step != HF_STEP_START && c->at < plan->wake)
		plan->wake = c->at;
}

/* Tells whether the containers behind this sidecar may start: it runs, or one of them has started
 * before. So a later crash of the sidecar does not hold them back. */
static bool has_passed(const struct hf_pod_plan *plan, size_t i)
{
	const struct hf_plan_container *c = &plan->containers[i];

	if (i + 1 < plan->n && last_of(&plan->containers[i + 1])->state != HF_ATTEMPT_NONE)
		return true;
	return last_of(c)->state == HF_ATTEMPT_RUNNING && !c->starting;
}

/* Plans the init containers. */
static void plan_init(struct hf_pod_plan *plan)
{
	plan->initialized = true;
	for (size_t i = 0; i < plan->n && plan->containers[i].init; i++) {
		struct hf_plan_container *c = &plan->containers[i];

		if (c->sidecar)
			plan_one(plan, c);
		if (c->sidecar ? has_passed(plan, i) : hf_attempt_succeeded(last_of(c)))
			continue;
		plan->initialized = false;
		if (!c->sidecar)
			plan_one(plan, c);
		return;
	}
}

/* Tells whether an init container has failed and is not restarted. */
static bool init_has_failed(const struct hf_pod_plan *plan)
{
	for (size_t i = 0; i < plan->n && plan->containers[i].init; i++) {
		const struct hf_plan_container *c = &plan->containers[i];

		if (!c->sidecar && is_over(c, plan->policy) && !hf_attempt_succeeded(last_of(c)))
			return true;
	}
	return false;
}

static bool anything_runs(const struct hf_pod_plan *plan, bool sidecars)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->containers[i].sidecar == sidecars &&
		    hf_attempt_running(last_of(&plan->containers[i])))
			return true;
	return false;
}

/* A summary of the states of the main containers. */
struct mains {
	bool over, good, begun; /* of all of them */
};

static struct mains look_at_mains(const struct hf_pod_plan *plan)
{
	struct mains m = {true, true, true};

	for (size_t i = 0; i < plan->n; i++) {
		const struct hf_plan_container *c = &plan->containers[i];

		if (c->init)
			continue;
		m.over = m.over && is_over(c, plan->policy);
		m.good = m.good && hf_attempt_succeeded(last_of(c));
		m.begun = m.begun &&
			  (last_of(c)->state >= HF_ATTEMPT_RUNNING || last_of(c)->number > 0);
	}
	return m;
}

static void set_phase(struct hf_pod_plan *plan, const struct mains *m, bool init_failed)
{
	bool runs = anything_runs(plan, false), sidecars_run = anything_runs(plan, true);

	plan->end_sidecars = plan->over && sidecars_run && !plan->stopping;
	plan->finished = !runs && !sidecars_run && (plan->over || plan->stopping);
	if (plan->finished)
		plan->phase = m->good && !init_failed ? HF_PHASE_SUCCEEDED : HF_PHASE_FAILED;
	else
		plan->phase = plan->initialized && m->begun ? HF_PHASE_RUNNING : HF_PHASE_PENDING;
}

void hf_pod_plan(struct hf_pod_plan *plan)
{
	struct mains m = look_at_mains(plan);
	bool init_failed = init_has_failed(plan);

	plan->wake = HF_TIME_NEVER;
	for (size_t i = 0; i < plan->n; i++)
		plan->containers[i].step = HF_STEP_NONE;
	plan->over = !anything_runs(plan, false) && (init_failed || m.over);
	plan_init(plan);
	for (size_t i = 0; plan->initialized && i < plan->n; i++)
		if (!plan->containers[i].init)
			plan_one(plan, &plan->containers[i]);
	set_phase(plan, &m, init_failed);
}
