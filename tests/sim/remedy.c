/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a HealthPolicy lets the operator do, on a fleet. The tests named promise_N have the numbers
 * of health/README.md. */

/* --- modes --------------------------------------------------------------------------------- */

static void observe_tells_and_does_nothing(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_policy(w, "{}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(rw_status(w, "mode", NULL), "observe");
	assert_string_equal(rw_status(w, "counts", "selected"), "10");
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	rw_expect_next(w, 3, "would quarantine evidence");
	assert_true(rw_event(w, "WouldQuarantine", "n003"));
	rw_run(w, 20 * HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 0);
	assert_int_equal(w->taints_put, 0);
}

static void quarantine_and_release(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 3 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_event(w, "Quarantined", "n003"));
	/* The status shows the next rung, but this mode does not perform it. */
	rw_expect_next(w, 3, "would reset-device shown");
	assert_true(rw_event(w, "RemediationNeeded", "n003"));
	assert_string_equal(rw_status(w, "counts", "quarantined"), "1");
	assert_string_equal(rw_status(w, "budget", "unavailableLeft"), "0");
	rw_say(w, 3, RW_PROBATION);
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 3));
	rw_say(w, 3, RW_WELL);
	rw_run(w, 5 * HF_SECOND);
	assert_false(rw_tainted(w, 3));
	assert_null(hf_json_path(rw_get(w, &hf_nodes, NULL, "n003"), "metadata", "annotations",
				 "holdfast.dev/quarantine", NULL));
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_event(w, "Released", "n003"));
}

static void without_a_policy_nothing_is_watched(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 3);
	rw_start(w);
	rw_run(w, HF_MINUTE);
	rw_say(w, 1, RW_REBOOT);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(w->writes, 0);
	assert_int_equal(rw_count_tainted(w), 0);
	/* A policy is created, and deleted again. The quarantine that it made stays. */
	rw_policy(w, QUARANTINE);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 1));
	rw_delete(w, &hf_healthpolicies, "p");
	rw_say(w, 1, RW_WELL);
	rw_run(w, 10 * HF_MINUTE);
	assert_true(rw_tainted(w, 1));
}

static void a_bad_policy_is_told_and_the_last_good_one_holds(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mode':'remediate','colour':'red'}}");
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_event(w, "InvalidPolicy", "p"));
	const struct hf_json *c =
		hf_json_item(hf_json_path(rw_get(w, &hf_healthpolicies, NULL, "p"), "status",
					  "conditions", NULL),
			     0);
	assert_string_equal(hf_json_path_str(c, "status", NULL), "False");
	assert_non_null(strstr(hf_json_path_str(c, "message", NULL), "spec.colour"));
	assert_string_equal(rw_status(w, "mode", NULL), "quarantine");
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	/* A new operator has never read a valid version of this policy. */
	rw_stop(w);
	rw_start(w);
	rw_say(w, 4, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(rw_status(w, "mode", NULL), "observe");
	assert_false(rw_tainted(w, 4));
	assert_true(rw_tainted(w, 3));
}

/* A person stops a policy of which another field is wrong. */
static void a_policy_that_cannot_be_read_can_be_stopped(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 10, QUARANTINE);
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mode':'observe','colour':'red'}}");
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, 3));
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mode':'quarantine','paused':true}}");
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, 3));
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'paused':null}}");
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 3));
}

/* --- the promises -------------------------------------------------------------------------- */

static void promise_1_unknown_silent_and_suspect_nodes_are_left_alone(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 1, RW_UNKNOWN);
	rw_say(w, 2, RW_SUSPECT);
	rw_run(w, 5 * HF_MINUTE);
	/* The agent of node 3 last reported long ago. */
	rw_stop(w);
	w->silent[3] = true;
	rw_patch(w, &hf_healthpolicies, "p", "{'metadata':{'annotations':{'a':'b'}}}");
	rw_run(w, 20 * HF_MINUTE);
	rw_start(w);
	rw_run(w, 5 * HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 0);
	assert_string_equal(rw_status(w, "counts", "silent"), "2");
}

static void promise_2_foreign_cordons_and_taints_stay(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 20);
	rw_policy(w, "{'mode':'quarantine'," WIDE "}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	/* While a person has cordoned the node, Holdfast leaves it alone. */
	rw_patch(w, &hf_nodes, "n001", "{'spec':{'unschedulable':true}}");
	rw_say(w, 1, RW_REBOOT);
	rw_run(w, 10 * HF_SECOND);
	assert_false(rw_tainted(w, 1));
	rw_expect_next(w, 1, "held quarantine foreign");
	rw_patch(w, &hf_nodes, "n001", "{'spec':{'unschedulable':null}}");
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 1));
	/* A node that Holdfast has quarantined is cordoned as well. */
	rw_patch(w, &hf_nodes, "n001", "{'spec':{'unschedulable':true}}");
	rw_run(w, 10 * HF_SECOND);
	rw_expect_next(w, 1, "held restart-node foreign");
	rw_say(w, 1, RW_WELL);
	rw_run(w, 10 * HF_SECOND);
	assert_false(rw_tainted(w, 1));
	assert_true(hf_json_true(
		hf_json_path(rw_get(w, &hf_nodes, NULL, "n001"), "spec", "unschedulable", NULL),
		false));
	/* A person puts Holdfast's taint on by hand, so the taint is the person's. */
	rw_patch(
		w, &hf_nodes, "n002",
		"{'metadata':{'annotations':{'holdfast.dev/quarantine':'by hand'}},'spec':{'taints':["
		"{'key':'nvidia.com/gpu','value':'present','effect':'NoSchedule'},{'key':"
		"'holdfast.dev/device','value':'mine','effect':'NoExecute'}]}}");
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(hf_json_len(hf_json_path(rw_get(w, &hf_nodes, NULL, "n002"), "spec",
						  "taints", NULL)),
			 2);
}

/* Node 3 fails under this policy and is quarantined. */
static void quarantine_one(struct rw *w, const char *policy)
{
	rw_policy(w, policy);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
}

static void promise_2_what_a_person_takes_off_stays_off(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	quarantine_one(w, QUARANTINE);
	rw_patch(w, &hf_nodes, "n003", UNTAINTED);
	rw_run(w, HF_HOUR);
	assert_false(rw_tainted(w, 3));
	rw_expect_next(w, 3, "held quarantine stale");
	/* The fault occurs again. */
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
}

/* A person who takes off the taint has seen all faults up to then, also those after the
 * quarantine. */
static void promise_2_what_a_person_had_seen_brings_no_taint_back(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	quarantine_one(w, QUARANTINE);
	rw_run(w, HF_MINUTE);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	rw_patch(w, &hf_nodes, "n003", UNTAINTED);
	rw_run(w, 5 * HF_SECOND);
	assert_false(rw_tainted(w, 3));
	/* A new operator also treats the fault as seen. */
	rw_stop(w);
	rw_start(w);
	rw_run(w, HF_MINUTE);
	rw_say_again(w);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, 3));
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
}

static void promise_3_evidence_of_another_boot_moves_nothing(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_patch_status(w, &hf_nodes, "n003", "{'status':{'nodeInfo':{'bootID':'new'}}}");
	rw_say(w, 3, RW_REBOOT);
	rw_run(w, 10 * HF_MINUTE);
	assert_false(rw_tainted(w, 3));
	rw_expect_next(w, 3, "held quarantine stale");
}

static void promise_3_what_was_seen_before_the_breaker_was_closed_moves_nothing(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 20);
	/* The clocks of these nodes are ahead, which must not make old faults count as new. */
	w->clock[1] = 5 * HF_HOUR / 2;
	w->clock[2] = 6 * HF_HOUR;
	rw_policy(w, "{'mode':'quarantine','breaker':{'count':3}}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 0; i < 10; i++)
		rw_say(w, i, RW_REBOOT);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 0);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
	assert_true(rw_event(w, "BreakerTripped", "p"));
	/* The breaker closes neither by itself nor because of a new operator. */
	rw_stop(w);
	rw_start(w);
	rw_run(w, 2 * HF_HOUR);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
	rw_close_breaker(w, 1);
	rw_run(w, HF_HOUR);
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	assert_string_equal(rw_status(w, "breaker", "epoch"), "1");
	assert_string_equal(rw_status(w, "breaker", "message"), "");
	assert_int_equal(rw_count_tainted(w), 0);
	rw_expect_next(w, 1, "held quarantine stale");
	/* A third operator, which did not see when the person closed the breaker, acts on no old
	 * fault either. */
	rw_stop(w);
	rw_start(w);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 0);
	rw_run(w, HF_HOUR);
	assert_int_equal(rw_count_tainted(w), 0);
	/* A fault from after the breaker was closed counts. */
	rw_say(w, 4, RW_REBOOT);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 4));
	assert_int_equal(rw_count_tainted(w), 1);
}

static void promise_5_a_thousand_at_once_open_the_breaker(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 1000);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 10 * HF_SECOND);
	for (int i = 0; i < 1000; i++)
		rw_say(w, i, RW_REBOOT);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 0);
	assert_int_equal(w->taints_put, 0);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
	assert_string_equal(rw_status(w, "moreNodes", NULL), "936");
	/* If the failures come within a minute, at most the budget is quarantined before the
	 * breaker opens. */
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 0);
}

static void promise_5_a_storm_that_comes_slowly_spends_the_budget_at_most(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 100);
	w->rate = 5;
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 10 * HF_SECOND);
	for (int i = 0; i < 60; i++) {
		rw_say(w, i, RW_REBOOT);
		rw_run(w, 2 * HF_SECOND);
	}
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
	assert_true(rw_count_tainted(w) <= 5);
	rw_run(w, 3 * HF_HOUR);
	assert_true(rw_count_tainted(w) <= 5);
}

/* Each measurement finds the fault of a narrow link again. Five such nodes that failed hours apart
 * are no burst of failures. */
static void promise_5_a_backlog_that_is_measured_anew_is_no_burst(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 50);
	rw_policy(
		w,
		"{'mode':'quarantine','budget':{'maxUnavailable':{'count':1}},'breaker':{'count':2}}");
	rw_start(w);
	for (int i = 0; i < 5; i++) {
		rw_say(w, i, RW_SLOW);
		rw_run(w, HF_HOUR);
		for (int minute = 0; minute < 3; minute++) {
			for (int k = 0; k <= i; k++)
				rw_measure(w, k);
			rw_run(w, HF_MINUTE);
		}
	}
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	assert_true(rw_tainted(w, 0));
	assert_int_equal(rw_count_tainted(w), 1);
	/* Three nodes that fail within a minute are a burst. */
	for (int i = 10; i < 13; i++)
		rw_say(w, i, RW_SLOW);
	rw_run(w, HF_MINUTE);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
}

/* One node that fails again and again, after a person took its taint off and after a release,
 * counts as one node. */
static void promise_5_one_node_alone_opens_no_breaker(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 6);
	quarantine_one(w, QUARANTINE);
	rw_patch(w, &hf_nodes, "n003", UNTAINTED);
	rw_run(w, 20 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	rw_say(w, 3, RW_WELL);
	rw_run(w, 20 * HF_SECOND);
	assert_false(rw_tainted(w, 3));
	rw_say(w, 3, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	/* A second node that fails counts as a second one. */
	rw_say(w, 4, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
	assert_false(rw_tainted(w, 4));
}

static void promise_5_budgets_hold(void **state)
{
	struct rw *w = *state;
	int racks[25] = {0};

	rw_fleet(w, 100);
	w->limit = 8;
	rw_patch(w, &hf_nodes, "n090", "{'spec':{'unschedulable':true}}");
	rw_policy(w,
		  "{'mode':'quarantine','budget':{'maxUnavailable':{'count':8},'maxQuarantines':{"
		  "'count':60},'perDomain':{'topologyKey':'rack','max':2}},'breaker':{'percent':"
		  "100}}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 0; i < 40; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	/* One of the eight places is taken by the node that a person has cordoned. */
	assert_int_equal(rw_count_tainted(w), 7);
	for (int i = 0; i < 100; i++)
		racks[i / 4] += rw_tainted(w, i);
	for (int i = 0; i < 25; i++)
		assert_true(racks[i] <= 2);
	/* When nodes are released, other sick nodes are quarantined. */
	for (int i = 0; i < 40; i++)
		if (rw_tainted(w, i))
			rw_say(w, i, RW_WELL);
	rw_run(w, 5 * HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 7);
	assert_true(w->taints_put >= 14);
}

static void promise_5_the_budget_is_looked_at_when_it_is_spent(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	w->limit = 1;
	rw_policy(w, "{'mode':'quarantine','budget':{'maxUnavailable':{'count':1}}}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	/* The plan is made before the watch of nodes reports the cordon. */
	hf_memstore_client_break_watches(w->client, HF_E_UNAVAILABLE, "gone");
	rw_patch(w, &hf_nodes, "n005", "{'spec':{'unschedulable':true}}");
	rw_run(w, HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 0);
	rw_patch(w, &hf_nodes, "n005", "{'spec':{'unschedulable':null}}");
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_tainted(w, 3));
}

static void promise_8_slow_nodes_work_on_where_no_node_could_take_their_work(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 4);
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = {"a", "b", "c", "d"};

		rw_pod(w, names[i], i, "ReplicaSet");
		rw_say(w, i, RW_WELL);
	}
	rw_policy(w, "{'mode':'remediate'," WIDE "}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 0, RW_SLOW);
	rw_run(w, 5 * HF_MINUTE);
	assert_false(rw_tainted(w, 0));
	rw_expect_next(w, 0, "held quarantine no-capacity");
	/* Node 3 is free now. */
	w->holder[3] = NULL;
	rw_say(w, 3, RW_WELL);
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_tainted(w, 0));
	/* The pod of a slow node still works, so it is not evicted. */
	rw_run(w, 10 * HF_MINUTE);
	assert_null(hf_json_path(rw_get(w, &hf_pods, "default", "a"), "metadata",
				 "deletionTimestamp", NULL));
}

/* An administrator cordons half of the nodes to install a driver. Their devices fail meanwhile, but
 * cordoned nodes do not count for the breaker. */
static void promise_5_maintenance_of_others_is_no_burst(void **state)
{
	struct rw *w = *state;
	char name[16];

	rw_fleet(w, 10);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "n%03d", i);
		rw_patch(w, &hf_nodes, name, "{'spec':{'unschedulable':true}}");
		rw_say(w, i, RW_REBOOT);
	}
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 0);
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
}

/* Machines without devices have agents too if the DaemonSet runs everywhere. They do not count for
 * percentages. */
static void promise_5_shares_are_of_nodes_with_devices(void **state)
{
	struct rw *w = *state;

	for (int i = 4; i < 40; i++)
		w->bare[i] = true;
	rw_fleet(w, 40);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(rw_status(w, "counts", "selected"), "4");
	for (int i = 0; i < 4; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 0);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
}

static void promise_8_a_node_without_such_devices_is_no_spare(void **state)
{
	struct rw *w = *state;

	w->bare[1] = true;
	rw_fleet(w, 3);
	rw_patch(w, &hf_nodes, "n002",
		 "{'metadata':{'labels':{'nvidia.com/gpu.product':'small'}}}");
	rw_pod(w, "a", 0, "ReplicaSet");
	rw_policy(w, "{'mode':'quarantine'," WIDE "}");
	rw_start(w);
	rw_say(w, 0, RW_SLOW);
	rw_run(w, 5 * HF_MINUTE);
	rw_expect_next(w, 0, "held quarantine no-capacity");
	rw_patch(w, &hf_nodes, "n002", "{'metadata':{'labels':{'nvidia.com/gpu.product':null}}}");
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_tainted(w, 0));
}

/* With Holdfast's taint the pod of the device plugin could not return to the node. */
static void what_a_pod_of_the_plugin_mends_is_not_kept_from_it(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_policy(w, "{'mode':'quarantine'," WIDE "}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 1, RW_PLUGIN);
	rw_say(w, 2, RW_RESET);
	rw_run(w, 5 * HF_MINUTE);
	assert_false(rw_tainted(w, 1));
	assert_true(rw_tainted(w, 2));
	/* The device of node 2 is well again, but its device plugin has restarted meanwhile. */
	rw_say(w, 2, RW_PLUGIN);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, 2));
	rw_expect_next(w, 2, "nothing - pods");
}

static void promise_9_a_new_leader_goes_on_where_the_last_one_was(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	rw_stop(w);
	rw_start(w);
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 3));
	assert_int_equal(w->taints_put, 1);
	rw_stop(w);
	rw_say(w, 3, RW_WELL);
	rw_run(w, HF_MINUTE);
	rw_start(w);
	rw_run(w, 10 * HF_SECOND);
	assert_false(rw_tainted(w, 3));
}

/* --- how it is stopped --------------------------------------------------------------------- */

static void paused_and_excluded_nodes_are_left_as_they_are(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_policy(w,
		  "{'mode':'quarantine','selector':{'matchLabels':{'pool':'even'}},'exclude':{"
		  "'matchExpressions':[{'key':'rack','operator':'In','values':['r1']}]}," WIDE "}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(rw_status(w, "counts", "selected"), "5");
	rw_patch(w, &hf_nodes, "n002",
		 "{'metadata':{'annotations':{'holdfast.dev/paused':'true'}}}");
	for (int i = 1; i < 5; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 0);
	rw_expect_next(w, 2, "nothing - excluded");
	rw_expect_next(w, 4, "nothing - excluded");
	rw_patch(w, &hf_healthpolicies, "p",
		 "{'metadata':{'annotations':{'holdfast.dev/paused':'true'}}}");
	rw_say(w, 0, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 0);
	rw_expect_next(w, 0, "held quarantine paused");
	rw_patch(w, &hf_healthpolicies, "p",
		 "{'metadata':{'annotations':{'holdfast.dev/paused':null}}}");
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 0));
	assert_int_equal(rw_count_tainted(w), 1);
}

/* --- drain --------------------------------------------------------------------------------- */

static bool is_going(struct rw *w, const char *pod)
{
	const struct hf_json *there = rw_get(w, &hf_pods, "default", pod);

	return there == NULL || hf_json_path(there, "metadata", "deletionTimestamp", NULL) != NULL;
}

static void pods_that_hold_what_has_failed_are_evicted_as_budgets_allow(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 20);
	rw_pod(w, "serve", 3, "ReplicaSet");
	rw_pod(w, "agent", 4, "DaemonSet");
	rw_pod(w, "spared", 5, "ReplicaSet");
	rw_pod(w, "well", 6, "ReplicaSet");
	for (int i = 3; i < 7; i++)
		rw_say(w, i, RW_WELL);
	rw_policy(
		w,
		"{'mode':'remediate','drain':{'graceSeconds':60,'podSelector':{"
		"'matchExpressions':[{'key':'app','operator':'NotIn','values':['spared']}]}}," WIDE
		"}");
	w->refuse_evictions = true;
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 3; i < 6; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, 30 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 3);
	assert_false(rw_event(w, "EvictionRefused", "n003"));
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_event(w, "EvictionRefused", "n003"));
	assert_false(is_going(w, "serve"));
	/* The event comes only after the drain has been stuck for longer. */
	assert_false(rw_event(w, "DrainStuck", "n003"));
	rw_run(w, 30 * HF_MINUTE);
	assert_false(is_going(w, "serve"));
	assert_true(rw_event(w, "DrainStuck", "n003"));
	w->refuse_evictions = false;
	rw_run(w, 6 * HF_MINUTE);
	assert_true(is_going(w, "serve"));
	assert_false(is_going(w, "agent"));
	assert_false(is_going(w, "spared"));
	assert_false(is_going(w, "well"));
	assert_true(rw_event(w, "PodEvicted", "n003"));
}

/* The pod tolerates Holdfast's taint, and its controller creates it on the same node again. */
static void a_pod_that_comes_back_is_evicted_ever_more_seldom(void **state)
{
	char name[16];
	struct rw *w = *state;
	int n = 0;

	rw_fleet(w, 20);
	rw_policy(w, "{'mode':'remediate','drain':{'graceSeconds':3}," WIDE "}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 0; i < 60; i++) {
		if (n == 0 || is_going(w, name)) {
			snprintf(name, sizeof(name), "serve-%d", n++);
			rw_pod(w, name, 3, "ReplicaSet");
			rw_say(w, 3, RW_RESET);
		}
		rw_run(w, HF_MINUTE);
	}
	assert_in_range(n, 8, 25);
	/* The agent's last report is older than each new pod, but a pod does not wait for a newer
	 * report for ever. */
	assert_true(rw_event(w, "PodEvicted", "n003"));
}

static bool refuses_for_good(const struct rw *w, const struct hf_request *request,
			     struct hf_fault *fault)
{
	(void)w;
	if (!hf_streq(request->subresource, "eviction"))
		return false;
	fault->refuse = HF_E_INTERNAL;
	fault->message = "This pod has more than one PodDisruptionBudget";
	return true;
}

static void whatever_refuses_an_eviction_is_told(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 20);
	rw_pod(w, "serve", 3, "ReplicaSet");
	rw_say(w, 3, RW_WELL);
	rw_policy(w, "{'mode':'remediate','drain':{'graceSeconds':0}," WIDE "}");
	w->fault = refuses_for_good;
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_true(rw_event(w, "EvictionRefused", "n003"));
	assert_false(is_going(w, "serve"));
}

static void in_mode_quarantine_no_pod_is_evicted(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 20);
	rw_pod(w, "serve", 3, "ReplicaSet");
	rw_say(w, 3, RW_WELL);
	rw_policy(w, QUARANTINE);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 20 * HF_MINUTE);
	assert_true(rw_tainted(w, 3));
	assert_false(is_going(w, "serve"));
	rw_expect_next(w, 3, "held reset-device device-busy");
}

/* --- deaths -------------------------------------------------------------------------------- */

/* The operator dies at its n-th write, before or after the write is done. The next operator goes
 * on, and the result is the same. */
static void killed_at_each_write_it_is_done_once(void **state)
{
	for (int at = 1; at < 12; at++) {
		for (int how = RW_BEFORE; how <= RW_AFTER; how++) {
			struct rw *w;

			rw_setup((void **)&w);
			w->limit = 1;
			w->rate = 5;
			rw_fleet(w, 10);
			rw_pod(w, "serve", 3, "ReplicaSet");
			rw_say(w, 3, RW_WELL);
			rw_policy(w,
				  "{'mode':'remediate','budget':{'maxUnavailable':{'count':1}}}");
			w->die_at = (unsigned long long)at;
			w->how = (enum rw_death)how;
			rw_start(w);
			rw_run(w, 5 * HF_SECOND);
			if (w->op == NULL)
				rw_start(w);
			rw_say(w, 3, RW_RESET);
			rw_say(w, 4, RW_RESET);
			rw_run(w, 30 * HF_SECOND);
			if (w->op == NULL)
				rw_start(w);
			rw_run(w, 5 * HF_MINUTE);
			if (w->op == NULL)
				rw_start(w);
			rw_run(w, 3 * HF_MINUTE);
			assert_int_equal(rw_count_tainted(w), 1);
			assert_int_equal(w->taints_put, 1);
			assert_true(is_going(w, "serve") || !rw_tainted(w, 3));
			rw_say(w, 3, RW_WELL);
			rw_say(w, 4, RW_WELL);
			rw_run(w, 2 * HF_MINUTE);
			if (w->op == NULL)
				rw_start(w);
			rw_run(w, 2 * HF_MINUTE);
			assert_int_equal(rw_count_tainted(w), 0);
			(void)state;
			rw_teardown((void **)&w);
		}
	}
}

/* A thousand nodes fail at once, and the operator dies at one of the writes after that. The next
 * operator opens the breaker and quarantines no node. */
static void killed_while_a_thousand_fail_no_node_is_quarantined(void **state)
{
	(void)state;
	for (int how = RW_BEFORE; how <= RW_AFTER; how++) {
		for (unsigned at = 1; at <= 2; at++) {
			struct rw *w;

			rw_setup((void **)&w);
			rw_fleet(w, 1000);
			rw_policy(w, QUARANTINE);
			rw_start(w);
			rw_run(w, 10 * HF_SECOND);
			for (int i = 0; i < 1000; i++)
				rw_say(w, i, RW_REBOOT);
			w->die_at = w->writes + at;
			w->how = (enum rw_death)how;
			rw_run(w, 10 * HF_SECOND);
			if (w->op == NULL)
				rw_start(w);
			w->how = RW_ALIVE;
			rw_run(w, HF_MINUTE);
			assert_int_equal(w->taints_put, 0);
			assert_string_equal(rw_status(w, "breaker", "state"), "Open");
			rw_close_breaker(w, 1);
			rw_run(w, 10 * HF_MINUTE);
			assert_int_equal(w->taints_put, 0);
			rw_teardown((void **)&w);
		}
	}
}

static void disturb(struct rw *w, int turn)
{
	int node = (int)hf_rng_below(&w->rng, 30);

	switch (hf_rng_below(&w->rng, 13)) {
	case 0: rw_stop(w); break;
	case 1:
		w->die_at = w->writes + 1 + hf_rng_below(&w->rng, 3);
		w->how = hf_rng_below(&w->rng, 2) ? RW_BEFORE : RW_AFTER;
		break;
	case 2: rw_say(w, node, RW_SUSPECT); break;
	case 3: rw_say(w, node, RW_SLOW); break;
	case 4:
	case 5:
	case 6: rw_say(w, node, RW_WELL); break;
	case 7: rw_close_breaker(w, turn + 1); break;
	case 8: rw_say(w, node, RW_PROBATION); break;
	case 9:
		/* Many nodes fail at once, as after a faulty driver. */
		for (int i = 0; i < 30; i++)
			if (hf_rng_below(&w->rng, 2))
				rw_say(w, i, RW_REBOOT);
		break;
	default: rw_say(w, node, RW_REBOOT);
	}
}

static void add_met(struct rw_met *sum, const struct rw_met *met)
{
	sum->quarantines += met->quarantines;
	sum->releases += met->releases;
	sum->opened += met->opened;
	sum->closed += met->closed;
	sum->stale += met->stale;
	sum->deaths += met->deaths;
	sum->refusals += met->refusals;
	sum->lost += met->lost;
}

/* Random faults of nodes, requests and operators. The invariants of remedy_world.c hold. */
static void swarm(unsigned seed, struct rw_met *met)
{
	struct rw *w;

	rw_setup((void **)&w);
	hf_rng_init(&w->rng, seed);
	w->limit = 1 + (int)hf_rng_below(&w->rng, 6);
	w->rate = 1 + (int)hf_rng_below(&w->rng, 12);
	w->refuse_permille = hf_rng_below(&w->rng, 3) == 0 ? 200 : 0;
	rw_fleet(w, 30);
	for (int i = 0; i < 30; i++)
		w->clock[i] = ((hf_time)hf_rng_below(&w->rng, 20) - 10) * HF_SECOND;
	char policy[512];

	snprintf(policy, sizeof(policy),
		 "{'mode':'remediate','budget':{'maxUnavailable':{'count':%d},'maxQuarantines':{"
		 "'count':%d}},'breaker':{'count':%d}}",
		 w->limit, w->rate, 3 + (int)hf_rng_below(&w->rng, 20));
	rw_policy(w, policy);
	rw_start(w);
	for (int turn = 0; turn < 60; turn++) {
		disturb(w, turn);
		rw_run(w, (hf_time)hf_rng_below(&w->rng, 120) * HF_SECOND);
		if (w->op == NULL)
			rw_start(w);
	}
	/* At the end all nodes are well, and no taint of Holdfast is left. */
	w->refuse_permille = 0;
	w->how = RW_ALIVE;
	for (int i = 0; i < 30; i++)
		rw_say(w, i, RW_WELL);
	rw_close_breaker(w, 1000);
	rw_run(w, 5 * HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 0);
	add_met(met, &w->met);
	rw_teardown((void **)&w);
}

static void seeds_never_exceed_a_budget(void **state)
{
	struct rw_met met = {0};

	(void)state;
	for (unsigned seed = 1; seed <= 40; seed++)
		swarm(seed, &met);
	print_message("%u quarantines, %u releases, breaker opened %u and closed %u times (%u with "
		      "old evidence), %u deaths, %u refusals, %u replies lost\n",
		      met.quarantines, met.releases, met.opened, met.closed, met.stale, met.deaths,
		      met.refusals, met.lost);
	/* The seeds must have met each kind of trouble, or their success proves nothing. */
	assert_true(met.quarantines > 0 && met.releases > 0 && met.opened > 0 && met.stale > 0 &&
		    met.deaths > 0 && met.refusals > 0 && met.lost > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(observe_tells_and_does_nothing),
		T(quarantine_and_release),
		T(without_a_policy_nothing_is_watched),
		T(a_bad_policy_is_told_and_the_last_good_one_holds),
		T(a_policy_that_cannot_be_read_can_be_stopped),
		T(promise_1_unknown_silent_and_suspect_nodes_are_left_alone),
		T(promise_2_foreign_cordons_and_taints_stay),
		T(promise_2_what_a_person_takes_off_stays_off),
		T(promise_2_what_a_person_had_seen_brings_no_taint_back),
		T(promise_3_evidence_of_another_boot_moves_nothing),
		T(promise_3_what_was_seen_before_the_breaker_was_closed_moves_nothing),
		T(promise_5_a_thousand_at_once_open_the_breaker),
		T(promise_5_a_backlog_that_is_measured_anew_is_no_burst),
		T(promise_5_a_storm_that_comes_slowly_spends_the_budget_at_most),
		T(promise_5_one_node_alone_opens_no_breaker),
		T(promise_5_budgets_hold),
		T(promise_5_the_budget_is_looked_at_when_it_is_spent),
		T(promise_8_slow_nodes_work_on_where_no_node_could_take_their_work),
		T(promise_5_maintenance_of_others_is_no_burst),
		T(promise_5_shares_are_of_nodes_with_devices),
		T(promise_8_a_node_without_such_devices_is_no_spare),
		T(what_a_pod_of_the_plugin_mends_is_not_kept_from_it),
		T(promise_9_a_new_leader_goes_on_where_the_last_one_was),
		T(paused_and_excluded_nodes_are_left_as_they_are),
		T(pods_that_hold_what_has_failed_are_evicted_as_budgets_allow),
		T(a_pod_that_comes_back_is_evicted_ever_more_seldom),
		T(whatever_refuses_an_eviction_is_told),
		T(in_mode_quarantine_no_pod_is_evicted),
		cmocka_unit_test(killed_at_each_write_it_is_done_once),
		cmocka_unit_test(killed_while_a_thousand_fail_no_node_is_quarantined),
		cmocka_unit_test(seeds_never_exceed_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
