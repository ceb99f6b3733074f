/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a HealthPolicy lets be done, on a fleet; the promises have the numbers of health/README.md. */

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
	/* The next rung is shown, and not done. */
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
	/* It comes, and goes again with what was done left as it is. */
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
	/* A new leader never had a good one. */
	rw_stop(w);
	rw_start(w);
	rw_say(w, 4, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(rw_status(w, "mode", NULL), "observe");
	assert_false(rw_tainted(w, 4));
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
	/* Its last word was long ago. */
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
	/* A person has cordoned it: it is theirs, until they give it back. */
	rw_patch(w, &hf_nodes, "n001", "{'spec':{'unschedulable':true}}");
	rw_say(w, 1, RW_REBOOT);
	rw_run(w, 10 * HF_SECOND);
	assert_false(rw_tainted(w, 1));
	rw_expect_next(w, 1, "held quarantine foreign");
	rw_patch(w, &hf_nodes, "n001", "{'spec':{'unschedulable':null}}");
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 1));
	/* Cordoned as well, when it was ours already. */
	rw_patch(w, &hf_nodes, "n001", "{'spec':{'unschedulable':true}}");
	rw_run(w, 10 * HF_SECOND);
	rw_expect_next(w, 1, "held restart-node foreign");
	rw_say(w, 1, RW_WELL);
	rw_run(w, 10 * HF_SECOND);
	assert_false(rw_tainted(w, 1));
	assert_true(hf_json_true(
		hf_json_path(rw_get(w, &hf_nodes, NULL, "n001"), "spec", "unschedulable", NULL),
		false));
	/* Our taint, put there by hand: it is theirs. */
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

/* The node 3 fails under that policy, and is quarantined. */
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
	/* It is seen anew. */
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
}

/* What was seen after the quarantine and before the person acted is what the person had looked at. */
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
	/* A leader that comes later knows it as well. */
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
	/* Their clocks are ahead: that cannot make old news new. */
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
	/* It does not close by itself, nor by a new leader. */
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
	/* Nor after another new leader, which did not see when that was said. */
	rw_stop(w);
	rw_start(w);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 0);
	rw_run(w, HF_HOUR);
	assert_int_equal(rw_count_tainted(w), 0);
	/* What is seen from now on counts. */
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
	/* Half of them spread over a minute: the budget is all that may go first. */
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

/* A narrow link is found again with each measurement: five that became so hours apart are no burst. */
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
	/* And three that become so within a minute are one. */
	for (int i = 10; i < 13; i++)
		rw_say(w, i, RW_SLOW);
	rw_run(w, HF_MINUTE);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
}

/* Its taint is taken off, and it fails anew; it is released, and fails anew: it is one node. */
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
	/* A second one is a second one. */
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
	/* One is out already, by somebody else. */
	assert_int_equal(rw_count_tainted(w), 7);
	for (int i = 0; i < 100; i++)
		racks[i / 4] += rw_tainted(w, i);
	for (int i = 0; i < 25; i++)
		assert_true(racks[i] <= 2);
	/* As nodes come back, others take their turn. */
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
	/* The watch of nodes has not told of it when the plan is made. */
	hf_memstore_client_break_watches(w->client, HF_E_UNAVAILABLE, "gone");
	rw_patch(w, &hf_nodes, "n005", "{'spec':{'unschedulable':true}}");
	rw_run(w, HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 0);
	rw_patch(w, &hf_nodes, "n005", "{'spec':{'unschedulable':null}}");
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_tainted(w, 3));
}

static void promise_8_slow_nodes_work_on_where_nobody_could_take_their_work(void **state)
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
	/* One is free now. */
	w->holder[3] = NULL;
	rw_say(w, 3, RW_WELL);
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_tainted(w, 0));
	/* Its pod is not evicted: it works. */
	rw_run(w, 10 * HF_MINUTE);
	assert_null(hf_json_path(rw_get(w, &hf_pods, "default", "a"), "metadata",
				 "deletionTimestamp", NULL));
}

/* A driver is installed on half of the nodes: what their administrator took out fails, and is well in the end. */
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

/* Machines without devices have agents too, where the DaemonSet is let go everywhere. */
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

/* The plugin's pod would not come back to a node that has our taint. */
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
	/* Its device is well again, and its plugin has been rolled meanwhile. */
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
	/* However long it takes. */
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

/* It tolerates our taint, and its controller wants it on this very node. */
static void who_comes_back_is_evicted_ever_more_seldom(void **state)
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
	/* The agent's last word is of before each came; who came does not wait for ever. */
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

static void in_mode_quarantine_nobody_is_evicted(void **state)
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

/* The operator dies at the n-th write that it makes for one story, before or after it is done; the
 * next one takes over, and the end is the same. */
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

/* A thousand nodes fail at once, and the operator dies at one of the writes that follow from it: the
 * next one finds the same, opens the breaker, and has touched no node. */
static void killed_while_a_thousand_fail_nobody_is_quarantined(void **state)
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
		/* Many at once: the driver, not they. */
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

/* Random faults of nodes, requests and operators: the invariants of remedy_world.c hold. */
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
	/* Calm: all are well, and nothing of ours is left. */
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
	/* That nothing broke means nothing where nothing was met. */
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
		T(promise_8_slow_nodes_work_on_where_nobody_could_take_their_work),
		T(promise_5_maintenance_of_others_is_no_burst),
		T(promise_5_shares_are_of_nodes_with_devices),
		T(promise_8_a_node_without_such_devices_is_no_spare),
		T(what_a_pod_of_the_plugin_mends_is_not_kept_from_it),
		T(promise_9_a_new_leader_goes_on_where_the_last_one_was),
		T(paused_and_excluded_nodes_are_left_as_they_are),
		T(pods_that_hold_what_has_failed_are_evicted_as_budgets_allow),
		T(who_comes_back_is_evicted_ever_more_seldom),
		T(whatever_refuses_an_eviction_is_told),
		T(in_mode_quarantine_nobody_is_evicted),
		cmocka_unit_test(killed_at_each_write_it_is_done_once),
		cmocka_unit_test(killed_while_a_thousand_fail_nobody_is_quarantined),
		cmocka_unit_test(seeds_never_exceed_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
