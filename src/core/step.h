/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_STEP_H
#define HF_CORE_STEP_H

#include "core/model/framework.h"
#include "core/model/observed.h"
#include "core/model/plan.h"

HF_BEGIN_DECLS

/*
 * The brain decides what to do for a job, from the job, the objects seen and the time (API-server
 * time).  It is pure: no clock, no randomness, no memory between calls.  What must be remembered is
 * in the job's status.
 *
 * Every plan keeps these promises:
 *
 * - The same input gives the same bytes, in any order of the input's lists.
 * - Without a change from outside, finitely many steps end in a plan with nothing but a wake-up.
 * - A finished job takes no action but clean-up, its TTL, and deleting pods that were created late.
 * - No action names an object of another owner, except pods that an earlier job of this name and
 *   kind left on a dead node (hf_pod_is_inherited).  Every delete carries a UID.
 * - A later step repairs a lost, repeated or late action.  A crash between any two actions counts
 *   each observed termination exactly once.
 *
 * The plan's texts and lists live in the arena or in the inputs.  The view is read as it is:
 * defaults are applied inside.
 *
 * A step always gives a plan.  A job that cannot be decided on (a broken ledger, a newer schema, a
 * spec that is invalid before it started) is held: condition holdfast.dev/Held says why, and
 * nothing else is done.  The call fails only with HF_E_TOO_LARGE, if more than 80,000 pods or
 * services were seen (four for each of HF_RANKS_MAX ranks).
 */
int hf_job_step(const struct hf_job_view *job, const struct hf_observed *seen, hf_time now,
		struct hf_arena *arena, struct hf_plan *ret_plan, struct hf_error *err)
	HF_MUST_CHECK;

HF_END_DECLS

#endif
