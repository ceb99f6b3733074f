/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "api/device_health.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Acts that wait for the end of the work on their node or for another act, and work that comes to the node while an act waits.
 * The node of each test is n003.
 */

#define NODE 3
#define NAME "n003"
#define ACT NAME "-1"
/* RW_START is a Tuesday, 22:13 UTC. */
#define WINDOW "'mend':{'windows':[{'days':['Wednesday'],'start':'01:00','end':'05:00'}]}," WIDE

/* With quarantine: Device the other devices of the node stay in use, so a pod comes while the reboot waits for its window. */
static void wait_for_work(struct rw *w, int ill, const char *policy, const char *why)
{
	struct ra *a = ra_begin(w, 10, policy);

	rw_say(w, NODE, ill);
	rw_run(w, HF_MINUTE);
	assert_string_equal(rw_rung(w, ACT), "reboot");
	assert_string_equal(ra_phase(a, NODE), "Pending");
	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_report(w, NODE);
	rw_run(w, 4 * HF_HOUR);
	assert_false(rw_is_evicted(w, "default", "work"));
	assert_int_equal(a->acts, 0);
	assert_int_equal(ra_count(a), 1);
	assert_string_equal(ra_phase(a, NODE), "Pending");
	assert_false(ra_has_lease(a, NODE));
	rw_expect_message(w, ACT, why);
	rw_end_work(w, "work", NODE);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
}

static void work_that_comes_while_an_act_waits_goes_on(void **state)
{
	wait_for_work(*state, RW_SLOW, "{'mode':'remediate'," WINDOW "}",
		      "waits: pods have devices of the node, and the fault is not grave enough to "
		      "evict pods; 'holdfast mend n003 --rung reboot' does not wait for them");
}

static void work_that_the_policy_does_not_evict_makes_no_act_fail(void **state)
{
	wait_for_work(
		*state, RW_REBOOT, "{'mode':'remediate','drain':{'mode':'complete'}," WINDOW "}",
		"waits: pods have devices of the node, and drain.mode of the policy evicts no pods");
}

/* The pod was given its device just before the act took the node, and the agent reports it a moment later. */
static void work_that_was_not_reported_goes_on(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'remediate'," WINDOW "}");

	rw_say(w, NODE, RW_SLOW);
	rw_run(w, HF_MINUTE);
	rw_create(
		w, &hf_pods, "default",
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'work','namespace':'default'},"
		"'spec':{'nodeName':'n003','containers':[{'name':'c','image':'i','resources':{"
		"'limits':{'nvidia.com/gpu':'1'}}}]},'status':{'phase':'Running'}}");
	rw_run(w, 4 * HF_HOUR);
	assert_int_equal(a->acts, 0);
	assert_int_equal(ra_count(a), 1);
	assert_false(rw_is_evicted(w, "default", "work"));
	rw_expect_message(w, ACT, "waits: pod default/work has devices of the node");
	rw_end_work(w, "work", NODE);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
}

static void report_monitor(void *arg, int node, struct hf_device_health *health)
{
	(void)arg;
	(void)node;
	for (size_t i = 0; i < health->devices.len; i++)
		for (size_t h = 0; h < health->devices.items[i].holders.len; h++)
			health->devices.items[i].holders.items[h].of_node = true;
}

/* The pod of a DaemonSet has access to the devices of each node, and never ends. */
static void reboot_with_monitor(struct rw *w, int ill, const char *policy)
{
	struct ra *a;

	w->ranks = report_monitor;
	a = ra_begin(w, 10, policy);
	rw_pod(w, "monitor", NODE, "DaemonSet");
	rw_run(w, 2 * HF_SECOND);
	rw_say(w, NODE, ill);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, ACT), "reboot");
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_is_evicted(w, "default", "monitor"));
}

static void the_pod_of_a_daemonset_holds_no_reboot(void **state)
{
	reboot_with_monitor(*state, RW_SLOW, "{'mode':'remediate','mend':{}," WIDE "}");
}

static void the_pod_of_a_daemonset_holds_no_reboot_of_a_policy_that_evicts_none(void **state)
{
	reboot_with_monitor(*state, RW_REBOOT,
			    "{'mode':'remediate','drain':{'mode':'complete'},'mend':{}," WIDE "}");
}

/* As the how-to says. */
static void order(struct rw *w, int ill, const char *policy, const char *more)
{
	struct ra *a = ra_begin(w, 10, policy);

	w->people_ask = true;
	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_run(w, 2 * HF_SECOND);
	rw_say(w, NODE, ill);
	rw_run(w, 10 * HF_MINUTE);
	rw_expect_next(w, NODE, "held restart-node undrainable");
	assert_int_equal(ra_count(a), 0);
	ra_request(a, NODE, 1, "reboot", more);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_is_evicted(w, "default", "work"));
	rw_end_work(w, "work", NODE);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
}

static void a_person_does_not_wait_for_work(void **state)
{
	order(*state, RW_SLOW, "{'mode':'remediate','mend':{}," WIDE "}", "");
}

static void a_person_does_not_wait_for_work_that_the_policy_spares(void **state)
{
	order(*state, RW_REBOOT,
	      "{'mode':'remediate','drain':{'mode':'complete'},'mend':{}," WIDE "}", "");
}

/* Two acts of people wait on the node. The one whose quarantine it is is cancelled while the other one is at work. */
static void a_cancelled_act_leaves_the_quarantine_of_the_one_at_work(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 4, "{'mode':'observe'}");

	w->people_ask = true;
	rw_patch(w, &hf_nodes, NAME, "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}");
	ra_request(a, NODE, 1, "reset-device", "");
	ra_request(a, NODE, 2, "reboot", "");
	rw_run(w, 10 * HF_SECOND);
	rw_patch(w, &hf_nodes, NAME, "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
	for (int i = 0; i < 40 && a->acts == 0; i++)
		rw_run(w, HF_SECOND / 4);
	assert_string_equal(ra_phase(a, NODE), "Acting");
	rw_patch(w, &hf_remediations, ACT, "{'spec':{'cancel':true}}");
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Acting");
	assert_true(rw_tainted(w, NODE));
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
}

/* Pods of ended jobs stay on the node until somebody deletes them, and hold nothing. */
static void pods_that_have_ended_hold_no_reboot(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'remediate','mend':{}," WIDE "}");
	char text[512], name[16];

	for (int i = 0; i < 1200; i++) {
		snprintf(name, sizeof(name), "ended-%d", i);
		snprintf(text, sizeof(text),
			 "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':"
			 "'default'},'spec':{'nodeName':'n003','containers':[{'name':'c','image':"
			 "'i'}]}}",
			 name);
		rw_create(w, &hf_pods, "default", text);
		rw_patch_in(w, &hf_pods, "default", name, "status",
			    "{'status':{'phase':'Succeeded'}}");
	}
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
}

int main(int argc, char **argv)
{
#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(work_that_comes_while_an_act_waits_goes_on),
		T(work_that_the_policy_does_not_evict_makes_no_act_fail),
		T(work_that_was_not_reported_goes_on),
		T(the_pod_of_a_daemonset_holds_no_reboot),
		T(the_pod_of_a_daemonset_holds_no_reboot_of_a_policy_that_evicts_none),
		T(a_cancelled_act_leaves_the_quarantine_of_the_one_at_work),
		T(a_person_does_not_wait_for_work),
		T(a_person_does_not_wait_for_work_that_the_policy_spares),
		T(pods_that_have_ended_hold_no_reboot),
	};
#undef T

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
