/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include <string.h>

/*
 * What has ended acts on nothing again: ended quarantines, cancelled acts, faults from before an act. Operators that mix up
 * the old and the new have rebooted well nodes (NVSentinel, issues 1280, 1347 and 1451). Each case of theirs is a story
 * here. The node of each test is n003.
 */

#define NODE 3
#define ACT "n003-1"
#define MEND "{'mode':'remediate','mend':{}," WIDE "}"

/* The fault of the node is mended, and the node is released. */
static struct ra *mend(struct rw *w, int ill)
{
	struct ra *a = ra_begin(w, 10, MEND);

	rw_say(w, NODE, ill);
	rw_run(w, 30 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_int_equal(a->acts, 1);
	assert_false(rw_tainted(w, NODE));
	return a;
}

static void expect_peace(struct rw *w, struct ra *a)
{
	assert_int_equal(a->acts, 1);
	assert_int_equal(ra_count(a), 1);
	assert_int_equal(rw_count_tainted(w), 0);
}

/* Issue 1347: an operator that starts again reads the quarantines of the past. */
static void a_new_leader_replays_no_ended_quarantine(void **state)
{
	struct rw *w = *state;
	struct ra *a = mend(w, RW_REBOOT);

	for (int i = 0; i < 3; i++) {
		rw_stop(w);
		rw_start(w);
		rw_say_again(w);
		rw_run(w, HF_HOUR);
		expect_peace(w, a);
	}
}

/* The former leader sees the release late, and acts on. */
static void a_former_leader_replays_no_ended_quarantine(void **state)
{
	struct rw *w = *state;
	struct ra *a = mend(w, RW_REBOOT);

	rw_change_leaders(w);
	rw_say_again(w);
	rw_run(w, HF_HOUR);
	expect_peace(w, a);
}

/* Issue 1280: an agent that starts again reads the kernel's old line, and reports its fault. */
static void an_old_line_reboots_no_node(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);
	hf_time line;

	rw_say(w, NODE, RW_REBOOT);
	line = hf_loop_wall(w->loop);
	rw_run(w, 30 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	w->ill[NODE] = RW_REBOOT;
	w->ill_since[NODE] = line;
	rw_report(w, NODE);
	rw_run(w, 2 * HF_HOUR);
	assert_int_equal(a->acts, 1);
	assert_int_equal(ra_count(a), 1);
}

/* Issue 1451: a cancel of one act is found by the next one. */
static void a_cancel_calls_off_its_own_act_alone(void **state)
{
	struct rw *w = *state;
	struct ra *a = mend(w, RW_RESET);

	rw_patch(w, &hf_remediations, ACT, "{'spec':{'cancel':true}}");
	rw_run(w, HF_MINUTE);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 30 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_int_equal(ra_newest_attempt(a, NODE), 2);
	assert_int_equal(a->acts, 2);
	assert_false(rw_tainted(w, NODE));
}

/* Issue 1691: an operand that has no pod yet gets one in the middle of a reset. */
static void an_operand_without_a_pod_is_turned_off_too(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	rw_patch_node(w, NODE, "{'metadata':{'labels':{'nvidia.com/gpu.deploy.dcgm':'true'}}}");
	ra_all(a, RA_NEVER, RA_NEVER);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Acting");
	assert_string_equal(hf_json_path_str(rw_get(w, &hf_nodes, NULL, "n003"), "metadata",
					     "labels", "nvidia.com/gpu.deploy.dcgm", NULL),
			    "false");
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(a_new_leader_replays_no_ended_quarantine),
		T(a_former_leader_replays_no_ended_quarantine),
		T(an_old_line_reboots_no_node),
		T(a_cancel_calls_off_its_own_act_alone),
		T(an_operand_without_a_pod_is_turned_off_too),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
