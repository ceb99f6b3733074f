/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/mend_steps.h"

#include "base/random.h"
#include "harness/mend.h"

/* Random lives of Remediations, from creation to end: the controller and the actor are killed, and the node
 * changes at random. */

/* A cluster with one object.  The view is what the controller reads; the other members are what is really the
 * case. */
struct life {
	struct hf_rng random;
	struct hf_mend_view view;
	unsigned acts, approvals;
	bool acting; /* the actor's process performs the act now */
};

static bool chance(struct life *life, unsigned of)
{
	return hf_rng_below(&life->random, of) == 0;
}

/* The actor writes its intent, which only an approved object accepts (the write is guarded), then acts. */
static void run_actor(struct life *life)
{
	struct hf_mend_view *v = &life->view;

	if (v->pod != HF_MEND_POD_LIVES && v->pod != HF_MEND_POD_LEAVES)
		return;
	if (v->phase == HF_MEND_APPROVED && v->act_started_at == HF_TIME_NONE && !life->acting &&
	    chance(life, 2)) {
		if (chance(life, 4)) {
			v->act_holders = 1;
			v->act_ended_at = v->now;
			v->pod = HF_MEND_POD_ENDED;
			v->pod_exit = HF_MEND_EXIT_BUSY;
			return;
		}
		v->phase = HF_MEND_ACTING;
		v->act_started_at = v->now;
		life->acting = true;
		life->acts++;
	} else if (life->acting && chance(life, 3)) {
		life->acting = false;
		v->act_ended_at = v->now;
		v->act_failed = chance(life, 4);
		v->act_exit = v->act_failed ? 255 : 0;
		v->pod = HF_MEND_POD_ENDED;
		v->pod_exit = v->act_failed;
		if (v->rung == HF_MEND_REBOOT)
			v->node_boot_id = v->health_boot_id = "b-2";
	}
}

static void disturb(struct life *life)
{
	struct hf_mend_view *v = &life->view;

	if (chance(life, 60))
		v->cancel = true;
	if (chance(life, 40))
		v->held = !v->held;
	if (chance(life, 30))
		v->allowed = !v->allowed;
	if (chance(life, 200))
		v->node_boot_id = v->health_boot_id = "b-3";
	if (chance(life, 300))
		v->node_exists = false;
	if (chance(life, 40))
		v->node_ready = !v->node_ready;
	if (chance(life, 100))
		v->lease = (enum hf_mend_lease)hf_rng_below(&life->random, 3);
	if (chance(life, 60))
		v->quarantined = false;
	if (chance(life, 40))
		v->pods_left = hf_rng_below(&life->random, 3);
	if (chance(life, 60))
		mend_seen.uuid = chance(life, 2) ? "GPU-1" : NULL;
	/* kill -9 of the actor */
	if (chance(life, 30) && v->pod == HF_MEND_POD_LIVES) {
		v->pod = HF_MEND_POD_ENDED;
		v->pod_exit = 137;
		life->acting = false;
	}
}

static void do_step(struct life *life, const struct hf_mend_step *step)
{
	struct hf_mend_view *v = &life->view;

	switch (step->act) {
	case HF_MEND_QUARANTINE: v->quarantined = true; break;
	case HF_MEND_TAKE_LEASE: v->lease = HF_MEND_LEASE_OURS; break;
	case HF_MEND_OPERANDS_OFF: v->operands_off = v->saved = true; break;
	case HF_MEND_MOVE_PODS: v->pods_left--; break;
	case HF_MEND_CREATE_POD:
		v->pod = HF_MEND_POD_LIVES;
		v->pod_exit = -1;
		break;
	case HF_MEND_DELETE_POD:
		v->pod = v->pod == HF_MEND_POD_LIVES ? HF_MEND_POD_LEAVES : HF_MEND_POD_NONE;
		break;
	case HF_MEND_RESTORE: v->saved = false; break;
	case HF_MEND_RELEASE_LEASE: v->lease = HF_MEND_LEASE_FREE; break;
	case HF_MEND_ACT_HERE:
		v->act_started_at = v->act_ended_at = v->now;
		life->acts++;
		break;
	case HF_MEND_ASK_REPORT: v->report_asked = true; break;
	case HF_MEND_DO_NOTHING:
	case HF_MEND_DOS: break;
	}
}

/* Runs a round of the controller. The controller may be killed before any action. */
static void run_controller(struct life *life)
{
	struct hf_mend_view *v = &life->view;
	struct hf_mend_step step;

	hf_mend_step(v, &step);
	mend_check_promises(v, &step);
	if (chance(life, 5))
		return;
	if (step.approve) {
		life->approvals++;
		v->approved_at = v->now;
		v->approved_boot_id = v->node_boot_id;
	}
	if (step.unapprove) {
		v->approved_at = v->act_ended_at = HF_TIME_NONE;
		v->approved_boot_id = NULL;
		v->act_holders = 0;
	}
	v->outcome = step.outcome;
	v->phase = step.next;
	do_step(life, &step);
}

static void live(struct life *life, enum hf_mend_rung rung, uint64_t seed)
{
	struct hf_mend_view *v = &life->view;

	*life = (struct life){.view = mend_view_in(HF_MEND_PENDING, rung)};
	hf_rng_init(&life->random, seed);
	v->now = MEND_T0;
	v->settle = HF_SECOND;
	v->deadline = HF_MINUTE;
	v->drain_until = MEND_T0 + 5 * HF_MINUTE;
	for (int round = 0; round < 3000; round++) {
		bool calm = round > 300;

		v->now += HF_SECOND;
		v->observed_at = v->now;
		if (!calm)
			disturb(life);
		if (calm) {
			v->held = false;
			v->allowed = true;
		}
		/* The kubelet ends what was deleted. */
		if (v->pod == HF_MEND_POD_LEAVES && v->node_ready && chance(life, 3)) {
			v->pod = HF_MEND_POD_NONE;
			life->acting = false;
		}
		run_actor(life);
		run_controller(life);
	}
}

static void every_life_ends_with_at_most_one_act(void **state)
{
	static const enum hf_mend_rung rungs[] = {HF_MEND_RESET_DEVICE, HF_MEND_REBOOT,
						  HF_MEND_RESTART_PLUGIN, HF_MEND_EXTERNAL};
	unsigned ends[HF_MEND_PHASES] = {0}, acts = 0, again = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct life life;

		live(&life, rungs[seed % HF_ARRAY_LEN(rungs)], seed);
		assert_true(life.acts <= 1);
		/* Another holder of the Lease may keep an object in the phase Pending. */
		if (life.view.phase == HF_MEND_PENDING && life.view.lease == HF_MEND_LEASE_OTHERS)
			continue;
		assert_true(hf_mend_is_final(life.view.phase));
		assert_int_not_equal(life.view.lease, HF_MEND_LEASE_OURS);
		assert_true(!life.view.saved || !life.view.node_exists);
		assert_true(life.view.phase != HF_MEND_SUCCEEDED || life.acts == 1);
		ends[life.view.phase]++;
		acts += life.acts;
		again += life.approvals > 1;
	}
	/* The random lives reach every end, and some of them lose their approval. */
	assert_true(ends[HF_MEND_SUCCEEDED] > 20 && ends[HF_MEND_FAILED] > 20);
	assert_true(ends[HF_MEND_CANCELLED] > 20 && acts > 50 && again > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_life_ends_with_at_most_one_act),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
