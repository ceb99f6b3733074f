/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_MEND_H
#define HF_TESTS_HARNESS_MEND_H

/* Views of a Remediation for tests of health/mend_steps.h, and the promises that every step keeps. */

#include "health/mend_steps.h"

#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define MEND_T0 (1700000000 * HF_SECOND)

static const struct hf_mend_target mend_target = {.id = "0000:1a:00.0", .uuid = "GPU-1"};

/* Makes a view in which the next step of a phase leads to the next phase of a successful act.
 * `mend_seen` is what the agent reports; a test may change it. */
static struct hf_mend_seen mend_seen;
static inline struct hf_mend_view mend_view_in(enum hf_mend_phase phase, enum hf_mend_rung rung)
{
	struct hf_mend_view view = {
		.now = MEND_T0 + HF_MINUTE,
		.phase = phase,
		.rung = rung,
		.boot_id = "b-1",
		.fault_at = MEND_T0 - HF_SECOND,
		.deadline = 10 * HF_MINUTE,
		.targets = &mend_target,
		.targets_len = 1,
		.approved_at = phase >= HF_MEND_APPROVED ? MEND_T0 : HF_TIME_NONE,
		.approved_boot_id = phase >= HF_MEND_APPROVED ? "b-1" : NULL,
		.withdrawn_at = HF_TIME_NONE,
		.act_started_at = phase >= HF_MEND_ACTING ? MEND_T0 + HF_SECOND : HF_TIME_NONE,
		.act_ended_at = phase >= HF_MEND_VERIFYING ? MEND_T0 + 6 * HF_SECOND : HF_TIME_NONE,
		.act_boot_id = phase >= HF_MEND_ACTING ? "b-1" : NULL,
		.act_exit = phase >= HF_MEND_VERIFYING ? 0 : -1,
		.allowed = true,
		.drain_since = HF_TIME_NONE,
		.drain_until = MEND_T0 + HF_HOUR,
		.settle = 5 * HF_SECOND,
		.mended_at = HF_TIME_NONE,
		.node_exists = true,
		.node_ready = true,
		.node_boot_id = "b-1",
		.quarantined = true,
		.lease = phase == HF_MEND_PENDING ? HF_MEND_LEASE_FREE : HF_MEND_LEASE_OURS,
		.operands_off = true,
		.pod = phase == HF_MEND_ACTING ? HF_MEND_POD_LIVES : HF_MEND_POD_NONE,
		.pod_exit = -1,
		.health_exists = true,
		.observed_at = MEND_T0 + 30 * HF_SECOND,
		.health_boot_id = "b-1",
		.driver_at = HF_TIME_NONE,
		.seen = &mend_seen,
		.seen_len = 1,
	};

	mend_seen = (struct hf_mend_seen){.id = "0000:1a:00.0",
					  .uuid = "GPU-1",
					  .fault_at = MEND_T0 - HF_SECOND,
					  .fault = "gpu-reset"};
	if (rung == HF_MEND_REBOOT && phase == HF_MEND_VERIFYING)
		view.node_boot_id = view.health_boot_id = "b-2";
	return view;
}

static inline bool mend_begins_act(const struct hf_mend_step *step)
{
	return step->act == HF_MEND_CREATE_POD || step->act == HF_MEND_ACT_HERE || step->approve;
}

static inline void mend_check_begin(const struct hf_mend_view *v)
{
	assert_true(v->act_started_at == HF_TIME_NONE && v->node_exists);
	assert_true(v->allowed && !v->held && v->other_lock == NULL);
	assert_true(!v->cancel && !v->deleting && !v->dry_run);
	assert_int_equal(v->lease, HF_MEND_LEASE_OURS);
	assert_true(v->boot_id == NULL || v->node_boot_id == NULL ||
		    hf_streq(v->boot_id, v->node_boot_id));
	assert_true(v->quarantined || v->rung == HF_MEND_RESTART_PLUGIN ||
		    v->rung == HF_MEND_RESTART_PROCESS);
}

/* Asserts that the node is empty when an act is approved. */
static inline void mend_check_approval(const struct hf_mend_view *v)
{
	if (v->rung == HF_MEND_RESET_DEVICE)
		assert_true(v->operands_off && v->operands_left == 0);
	if (v->rung == HF_MEND_RESET_DEVICE || v->rung == HF_MEND_REBOOT)
		assert_int_equal(v->pods_left, 0);
	assert_int_equal(v->pod, HF_MEND_POD_NONE);
}

static inline void mend_check_proof(const struct hf_mend_view *v)
{
	if (v->rung == HF_MEND_EXTERNAL && !v->node_exists)
		return;
	assert_true(v->health_exists && v->observed_at != HF_TIME_NONE);
	if (v->phase == HF_MEND_VERIFYING)
		assert_true(v->observed_at > v->act_started_at);
	if (v->phase == HF_MEND_VERIFYING && v->rung == HF_MEND_RESET_DEVICE)
		assert_true(v->driver_at == HF_TIME_NONE ? !v->driver_asked
							 : v->driver_at > v->act_started_at);
	if (v->phase == HF_MEND_VERIFYING && v->rung == HF_MEND_REBOOT && v->act_boot_id != NULL)
		assert_string_not_equal(v->node_boot_id, v->act_boot_id);
	for (size_t i = 0; i < v->seen_len && v->rung != HF_MEND_RESET_DEVICE; i++)
		assert_false(v->seen[i].unknown);
}

static inline void mend_check_held(const struct hf_mend_view *v, const struct hf_mend_step *step)
{
	if (step->act == HF_MEND_RESTORE) {
		assert_true(v->phase == HF_MEND_RESTORING && v->untold);
		return;
	}
	assert_true(step->act == HF_MEND_DO_NOTHING || step->act == HF_MEND_DELETE_POD ||
		    step->act == HF_MEND_RELEASE_LEASE || step->act == HF_MEND_ASK_REPORT);
}

static inline void mend_check_promises(const struct hf_mend_view *v,
				       const struct hf_mend_step *step)
{
	assert_true(hf_mend_phase_may_follow(v->phase, step->next));
	/* A step either changes the phase or does one thing, never both. */
	assert_true(step->next == v->phase || step->act == HF_MEND_DO_NOTHING ||
		    step->act == HF_MEND_ACT_HERE);
	if (step->next != v->phase && !hf_mend_is_final(step->next))
		assert_int_not_equal(step->message[0], '\0');
	if (mend_begins_act(step))
		mend_check_begin(v);
	if (step->approve)
		mend_check_approval(v);
	if (v->held)
		mend_check_held(v, step);
	if (step->act == HF_MEND_RELEASE_LEASE)
		assert_true(hf_mend_is_final(v->phase) && v->pod != HF_MEND_POD_LIVES);
	assert_true(!step->unapprove || v->act_started_at == HF_TIME_NONE);
	if (step->prove)
		mend_check_proof(v);
	if (step->next == HF_MEND_SUCCEEDED && v->phase < HF_MEND_RESTORING)
		assert_true(v->dry_run || step->prove);
}

/* Expects a step, "NEXT/DO" or "NEXT/DO/OUTCOME", and a part of its message. */
static inline void expect_step(const struct hf_mend_view *view, const char *want, const char *words)
{
	struct hf_mend_step step;
	char got[96];

	hf_mend_step(view, &step);
	if (step.outcome == HF_MEND_PENDING)
		snprintf(got, sizeof(got), "%s/%s", hf_mend_phase_name(step.next),
			 hf_mend_do_name(step.act));
	else
		snprintf(got, sizeof(got), "%s/%s/%s", hf_mend_phase_name(step.next),
			 hf_mend_do_name(step.act), hf_mend_phase_name(step.outcome));
	if (!hf_streq(got, want) || strstr(step.message, words) == NULL)
		fail_msg("%s, rung %s: %s \"%s\", expected %s \"%s\"",
			 hf_mend_phase_name(view->phase), hf_mend_rung_name(view->rung), got,
			 step.message, want, words);
}

#endif
