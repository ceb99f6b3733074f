/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/mend_steps.h"

#include "harness/mend.h"

/* What phase Draining waits for, and how it says so. */

static void a_drain_names_a_pod_that_is_left(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.pods_left = 1;
	v.pod_left = "team/train-0: Cannot evict pod as it would violate the budget";
	expect_step(&v, "Draining/move-pods",
		    "1 pod still uses the devices: team/train-0: Cannot evict");
	/* A reboot moves pods without devices too. */
	v.rung = HF_MEND_REBOOT;
	expect_step(&v, "Draining/move-pods", "1 pod has not left the node: team/train-0");
	v.pods_left = 2;
	expect_step(&v, "Draining/move-pods", "2 pods have not left the node: team/train-0");
	v.drain_until = v.now;
	expect_step(&v, "Restoring/nothing/Failed",
		    "not emptied in time: 2 pods have not left the node: team/train-0");
}

static void a_drain_that_fails_names_what_kept_the_devices(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.drain_until = v.now;
	expect_step(&v, "Restoring/nothing/Failed", "processes kept the devices");
	v.kept_open = "1 process kept the devices open: dcgm (pid 7 of pod gpu/dcgm-x)";
	expect_step(&v, "Restoring/nothing/Failed",
		    "in time: 1 process kept the devices open: dcgm");
}

/* An agent that is dead reports no pod that came after its death. */
static void a_reset_waits_for_a_report_about_the_newest_pods(void **state)
{
	struct hf_mend_view v = mend_view_in(HF_MEND_DRAINING, HF_MEND_RESET_DEVICE);

	(void)state;
	v.pod_unreported = "team/train-1";
	expect_step(&v, "Draining/ask-report", "newer than pod team/train-1");
	v.report_asked = true;
	expect_step(&v, "Draining/nothing", "newer than pod team/train-1");
	v.health_exists = false;
	v.report_asked = false;
	expect_step(&v, "Draining/nothing", "newer than pod team/train-1");
	v = mend_view_in(HF_MEND_APPROVED, HF_MEND_RESET_DEVICE);
	v.pod_unreported = "team/train-1";
	expect_step(&v, "Draining/nothing", "pods came back");
	/* A reboot moves all pods. */
	v = mend_view_in(HF_MEND_DRAINING, HF_MEND_REBOOT);
	v.pod_unreported = "team/train-1";
	expect_step(&v, "Approved/nothing", "approved");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_drain_names_a_pod_that_is_left),
		cmocka_unit_test(a_reset_waits_for_a_report_about_the_newest_pods),
		cmocka_unit_test(a_drain_that_fails_names_what_kept_the_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
