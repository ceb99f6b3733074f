/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Nodes that are deleted, created again, or cordoned for a while; and single reports of agents,
 * device by device. */

/* --- nodes that go ------------------------------------------------------------------------- */

/* The number of nodes falls, so the same failures are a larger share. That alone opens no
 * breaker. */
static void promise_5_the_breaker_does_not_open_as_well_nodes_go(void **state)
{
	struct rw *w = *state;
	char name[16];

	rw_begin(w, 20, "{'mode':'quarantine','budget':{'maxUnavailable':{'percent':50}}}");
	for (int i = 0; i < 3; i++) {
		rw_say(w, i, RW_RESET);
		rw_run(w, 2 * HF_SECOND);
	}
	assert_int_equal(rw_count_tainted(w), 3);
	for (int i = 8; i < 20; i++) {
		snprintf(name, sizeof(name), "n%03d", i);
		rw_delete(w, &hf_devicehealths, name);
		rw_delete(w, &hf_nodes, name);
	}
	w->nodes = 8;
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	rw_say(w, 0, RW_WELL);
	rw_run(w, 10 * HF_SECOND);
	assert_false(rw_tainted(w, 0));
}

/* A kubelet registers its node again. The failure is the same one, so it uses up no second
 * quarantine. */
static void a_node_that_is_made_anew_spends_no_second_quarantine(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 20, QUARANTINE);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 0; i < 4; i++) {
		rw_delete(w, &hf_nodes, "n003");
		rw_run(w, HF_MINUTE);
		rw_node(w, 3);
		rw_run(w, 5 * HF_SECOND);
		assert_true(rw_tainted(w, 3));
	}
	assert_string_equal(rw_status(w, "budget", "quarantinesLeft"), "4");
	rw_say(w, 3, RW_WELL);
	rw_run(w, 5 * HF_SECOND);
	assert_false(rw_tainted(w, 3));
}

/* --- marks --------------------------------------------------------------------------------- */

static const char *class_of_taint(struct rw *w, const char *name)
{
	const struct hf_json *taints =
		hf_json_path(rw_get(w, &hf_nodes, NULL, name), "spec", "taints", NULL);

	for (size_t i = 0; i < hf_json_len(taints); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(taints, i), "key", NULL),
			     "holdfast.dev/device"))
			return hf_json_path_str(hf_json_item(taints, i), "value", NULL);
	return "";
}

static void the_taint_says_what_is_graver_and_nothing_milder(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 10, "{'mode':'quarantine'," WIDE "}");
	rw_say(w, 3, RW_SLOW);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(class_of_taint(w, "n003"), "degraded");
	rw_say(w, 3, RW_REBOOT);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(class_of_taint(w, "n003"), "reboot");
	rw_say(w, 3, RW_SLOW);
	rw_run(w, HF_MINUTE);
	assert_string_equal(class_of_taint(w, "n003"), "reboot");
	assert_int_equal(w->met.quarantines, 1);
}

static void the_loss_of_a_mark_is_reported(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 10, QUARANTINE);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	rw_patch(w, &hf_nodes, "n003", UNMARKED);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	assert_true(rw_event(w, "QuarantineDisowned", "n003"));
}

/* --- word by word -------------------------------------------------------------------------- */

/* The agent of node 3 writes this status, with the present time. */
static void say(struct rw *w, const char *state, const char *cls, const char *devices)
{
	char now[HF_TIME_TEXT_MAX], text[4096];

	w->by_test[3] = w->by_hand = true;
	hf_time_format(hf_loop_wall(w->loop), now);
	snprintf(text, sizeof(text),
		 "{'status':{'state':'%s','class':%s,'action':null,'observedTime':'%s',"
		 "'evidenceTime':'%s','bootID':'b-n003','devices':[%s]}}",
		 state, cls, now, now, devices);
	rw_patch_status(w, &hf_devicehealths, "n003", text);
}

#define NODE(state, since, faults)                                                                 \
	"{'id':'node','kind':'node','state':'" state "','since':'" since "','faults':[" faults "]},"
#define FAULT(detector, code, cls, acts, first, last)                                              \
	"{'detector':'" detector "','code':" code ",'class':'" cls "','active':" acts              \
	",'firstTime':'" first "','lastTime':'" last "'}"

/* A person takes the taint off each time, and the log shows further faults of the same old state.
 * After the third quarantine Holdfast leaves the node alone. */
static void a_taint_removed_for_the_third_time_stays_off(void **state)
{
	struct rw *w = *state;
	char since[HF_TIME_TEXT_MAX], now[HF_TIME_TEXT_MAX], device[1024];

	rw_begin(w, 20, QUARANTINE);
	hf_time_format(hf_loop_wall(w->loop), since);
	for (int i = 0; i < 8; i++) {
		rw_run(w, HF_MINUTE);
		hf_time_format(hf_loop_wall(w->loop), now);
		snprintf(
			device, sizeof(device),
			"{'id':'g0','kind':'gpu','state':'Unhealthy','since':'%s','faults':[" FAULT(
				"xid", "119", "gpu-reset", "true", "%s", "%s") "]}",
			since, since, now);
		say(w, "Unhealthy", "'gpu-reset'", device);
		rw_run(w, HF_MINUTE);
		rw_patch(w, &hf_nodes, "n003", UNTAINTED);
		rw_patch(w, &hf_nodes, "n003", UNMARKED);
	}
	assert_int_equal(w->met.quarantines, 3);
	rw_expect_next(w, 3, "held quarantine");
	assert_string_equal(rw_status(w, "budget", "quarantinesLeft"), "2");
}

/* A person had seen both faults of the device, and the graver one ends: no taint comes back. A new
 * fault brings it back. */
static void promise_2_that_a_device_gets_better_brings_no_taint_back(void **state)
{
	struct rw *w = *state;
	char since[HF_TIME_TEXT_MAX], now[HF_TIME_TEXT_MAX], device[1500];

	rw_begin(w, 20, QUARANTINE);
	hf_time_format(hf_loop_wall(w->loop), since);
	snprintf(device, sizeof(device),
		 "{'id':'g0','kind':'gpu','state':'Unhealthy','since':'%s','faults':[" FAULT(
			 "xid", "119", "gpu-reset", "true", "%s",
			 "%s") "," FAULT("pcie", "1", "degraded", "true", "%s", "%s") "]}",
		 since, since, since, since, since);
	say(w, "Unhealthy", "'gpu-reset'", device);
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 3));
	rw_patch(w, &hf_nodes, "n003", UNTAINTED);
	rw_patch(w, &hf_nodes, "n003", UNMARKED);
	rw_run(w, HF_MINUTE);
	hf_time_format(hf_loop_wall(w->loop), now);
	snprintf(device, sizeof(device),
		 "{'id':'g0','kind':'gpu','state':'Degraded','since':'%s','faults':[" FAULT(
			 "pcie", "1", "degraded", "true", "%s", "%s") "]}",
		 now, since, now);
	for (int i = 0; i < 3; i++) {
		say(w, "Degraded", "'degraded'", device);
		rw_run(w, 5 * HF_MINUTE);
	}
	assert_false(rw_tainted(w, 3));
	hf_time_format(hf_loop_wall(w->loop), now);
	snprintf(device, sizeof(device),
		 "{'id':'g0','kind':'gpu','state':'Unhealthy','since':'%s','faults':[" FAULT(
			 "xid", "119", "gpu-reset", "true", "%s", "%s") "]}",
		 now, now, now);
	say(w, "Unhealthy", "'gpu-reset'", device);
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 3));
}

/* The device plugin has gone for good, and the driver hangs now and then. Each hang is a new state,
 * but only three quarantines follow. */
static void what_comes_and_goes_beside_a_plugin_spends_three(void **state)
{
	struct rw *w = *state;
	char since[HF_TIME_TEXT_MAX], now[HF_TIME_TEXT_MAX], devices[1500];

	rw_begin(w, 20, QUARANTINE);
	hf_time_format(hf_loop_wall(w->loop), since);
	for (int i = 0; i < 20; i++) {
		rw_run(w, HF_MINUTE);
		hf_time_format(hf_loop_wall(w->loop), now);
		w->ill[3] = i % 2 == 0 ? RW_SLOW : RW_PLUGIN;
		snprintf(devices, sizeof(devices),
			 NODE("Degraded", "%s",
			      FAULT("plugin", "1", "software", "true", "%s", "%s") "," FAULT(
				      "driver", "3", "software", "%s", "%s",
				      "%s")) "{'id':'g0','kind':'gpu','state':'Healthy'}",
			 since, since, now, i % 2 == 0 ? "true" : "false", now, now);
		say(w, "Degraded", "'software'", devices);
		rw_run(w, HF_MINUTE);
	}
	assert_int_equal(w->met.quarantines, 3);
}

static void cordon(struct rw *w, const char *word)
{
	char name[16], text[64];

	snprintf(text, sizeof(text), "{'spec':{'unschedulable':%s}}", word);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "n%03d", i);
		rw_patch(w, &hf_nodes, name, text);
	}
}

/* Nodes that failed while cordoned have not been counted by the breaker, so they count when they
 * are uncordoned. */
static void promise_5_what_others_give_back_is_judged_like_any_other(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 20, "{'mode':'quarantine','budget':{'maxUnavailable':{'percent':100}}}");
	cordon(w, "true");
	rw_run(w, 10 * HF_SECOND);
	for (int i = 0; i < 8; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 0);
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	cordon(w, "null");
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
	assert_int_equal(rw_count_tainted(w), 0);
}

/* The device has Failed after five suspicions, and no fault is active now, so its pods are not
 * evicted. */
static void a_pod_on_a_device_that_failed_by_suspicion_is_not_evicted(void **state)
{
	struct rw *w = *state;
	char devices[1024];

	rw_fleet(w, 20);
	rw_pod(w, "a", 3, "ReplicaSet");
	rw_policy(w, "{'mode':'remediate'," WIDE "}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	w->ill[3] = RW_FAILED;
	snprintf(devices, sizeof(devices),
		 "{'id':'g0','kind':'gpu','state':'Failed','since':'2026-01-01T00:00:00Z',"
		 "'holders':[{'namespace':'default','pod':'a','uid':'%s'}]}",
		 hf_json_path_str(rw_get(w, &hf_pods, "default", "a"), "metadata", "uid", NULL));
	say(w, "Failed", "null", devices);
	rw_run(w, 5 * HF_MINUTE);
	assert_true(rw_tainted(w, 3));
	assert_string_equal(class_of_taint(w, "n003"), "degraded");
	assert_false(rw_event(w, "PodEvicted", "n003"));
}

/* The kubelet offers one device fewer than the node has, as after a plugin has removed one. */
static void a_failed_device_is_kept_out_though_the_kubelet_offers_fewer(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 20, QUARANTINE);
	w->ill[3] = RW_FAILED;
	say(w, "Failed", "'software'",
	    NODE("Degraded", "2026-01-01T00:00:00Z",
		 FAULT("count", "2", "software", "true", "2026-01-01T00:00:00Z",
		       "2026-01-01T00:00:00Z")) "{'id':'g0','kind':'gpu','state':'Failed'}");
	rw_run(w, 5 * HF_MINUTE);
	assert_true(rw_tainted(w, 3));
}

static void a_node_that_is_made_anew_disturbs_its_job_no_second_time(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 20);
	rw_pod(w, "a", 3, "ReplicaSet");
	rw_say(w, 3, RW_WELL);
	rw_policy(w, "{'mode':'quarantine','budget':{'perJob':{'quarantines':1}}}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_SLOW);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	rw_delete(w, &hf_nodes, "n003");
	rw_run(w, HF_MINUTE);
	rw_node(w, 3);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
}

/* A fault that is not confirmed must not make the taint graver, because the taint would keep
 * it. */
static void a_suspicion_makes_no_taint_graver(void **state)
{
	struct rw *w = *state;
	char now[HF_TIME_TEXT_MAX], devices[1500];

	rw_begin(w, 20, QUARANTINE);
	w->ill[3] = RW_SLOW;
	hf_time_format(hf_loop_wall(w->loop), now);
	snprintf(devices, sizeof(devices),
		 "{'id':'g0','kind':'gpu','state':'Degraded','since':'%s','faults':[" FAULT(
			 "throttle", "1", "degraded", "true", "%s", "%s") "]}",
		 now, now, now);
	say(w, "Degraded", "'degraded'", devices);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(class_of_taint(w, "n003"), "degraded");
	snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices),
		 ",{'id':'g1','kind':'gpu','state':'Suspect','since':'%s','faults':[" FAULT(
			 "recovery", "3", "drain", "true", "%s", "%s") "]}",
		 now, now, now);
	say(w, "Degraded", "'drain'", devices);
	rw_run(w, HF_MINUTE);
	assert_string_equal(class_of_taint(w, "n003"), "degraded");
}

/* A program that keeps restoring the annotation of one Node must not delay the other nodes. */
static void a_tool_that_puts_the_class_back_delays_no_other_node(void **state)
{
	struct rw *w = *state;
	unsigned long long writes;

	rw_begin(w, 20, "{'mode':'quarantine'," WIDE "}");
	w->by_hand = true;
	rw_say(w, 3, RW_SLOW);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_REBOOT);
	rw_say(w, 7, RW_RESET);
	writes = w->writes;
	for (int i = 0; i < 60; i++) {
		rw_run(w, HF_SECOND);
		rw_patch(
			w, &hf_nodes, "n003",
			"{'metadata':{'annotations':{'holdfast.dev/quarantine':'{\\'policy\\':\\'p\\',"
			"\\'class\\':\\'degraded\\',\\'at\\':\\'2026-01-01T00:00:00Z\\'}'}}}");
	}
	assert_true(rw_tainted(w, 7));
	assert_in_range(w->writes - writes, 2, 20);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(promise_5_the_breaker_does_not_open_as_well_nodes_go),
		T(a_node_that_is_made_anew_spends_no_second_quarantine),
		T(the_taint_says_what_is_graver_and_nothing_milder),
		T(the_loss_of_a_mark_is_reported),
		T(a_taint_removed_for_the_third_time_stays_off),
		T(promise_2_that_a_device_gets_better_brings_no_taint_back),
		T(what_comes_and_goes_beside_a_plugin_spends_three),
		T(promise_5_what_others_give_back_is_judged_like_any_other),
		T(a_pod_on_a_device_that_failed_by_suspicion_is_not_evicted),
		T(a_failed_device_is_kept_out_though_the_kubelet_offers_fewer),
		T(a_node_that_is_made_anew_disturbs_its_job_no_second_time),
		T(a_suspicion_makes_no_taint_graver),
		T(a_tool_that_puts_the_class_back_delays_no_other_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
