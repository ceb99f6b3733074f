/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/mend_steps.h"

#include "harness/mend.h"

/* Acts that the controller performs itself. */

static void the_controller_performs_what_needs_no_actor(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_PENDING, HF_MEND_RESTART_PLUGIN);

	(void)state;
	/* A taint would keep away the new pod of the device plugin. */
	v.quarantined = false;
	expect_step(&v, "Pending/take-lease", "");
	v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESTART_PLUGIN);
	v.quarantined = false;
	v.pods_left = 4;
	expect_step(&v, "Approved/nothing", "");
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESTART_PLUGIN);
	v.quarantined = false;
	v.pods_left = 4;
	expect_step(&v, "Acting/act-here", "restart-plugin");
	/* A later pass finds the act begun: its result was lost with the operator. */
	v = mend_view_in(HF_MEND_ACTING, HF_MEND_RESTART_PLUGIN);
	v.pod = HF_MEND_POD_NONE;
	expect_step(&v, "Verifying/nothing", "the proof decides");
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_RESTART_PLUGIN);
	mend_seen.out = true;
	expect_step(&v, "Verifying/nothing", "out of use");
	mend_seen.out = false;
	/* The fault takes no device out of use, and it lasts. */
	expect_step(&v, "Verifying/nothing", "the end of a fault after the act: gpu-reset");
	v.now = v.approved_at + v.deadline;
	expect_step(&v, "Restoring/nothing/Failed", "the end of a fault");
	mend_seen.fault_at = HF_TIME_NONE;
	expect_step(&v, "Restoring/nothing/Succeeded", "all devices are well");
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_EXTERNAL);
	v.pods_left = 1;
	expect_step(&v, "Draining/nothing", "pods came back");
	v = mend_view_in(HF_MEND_ACTING, HF_MEND_EXTERNAL);
	v.calling = true;
	expect_step(&v, "Acting/nothing", "acts: external");
	v.now = v.approved_at + v.deadline;
	expect_step(&v, "Restoring/nothing/Failed", "the act did not end");
	v.calling = false;
	expect_step(&v, "Verifying/nothing", "the proof decides");
	/* A machine that was replaced has another Node. */
	v = mend_view_in(HF_MEND_VERIFYING, HF_MEND_EXTERNAL);
	v.node_exists = false;
	expect_step(&v, "Restoring/nothing/Succeeded", "replaced");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_controller_performs_what_needs_no_actor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
