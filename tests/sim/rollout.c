/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/rollout_driver.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Rollouts of a driver and of a label over a fleet: waves, budgets, proofs, halts, rollbacks, deaths and people. */

#define DRIVER "'change':{'daemonSet':{'namespace':'default','name':'driver'}}"
#define LABEL "'change':{'nodeLabel':{'key':'example.com/driver','value':'two'}}"
#define FAST ",'soakSeconds':60,'proof':{'seconds':120}"

/* ---- from the first wave to the end ---------------------------------------------------------------- */

static void a_rollout_changes_each_node_once(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, DRIVER FAST ",'atOnce':4");

	d->at_once = 4;
	rw_run(w, 50 * HF_SECOND);
	/* The first wave is one node; the soak time runs after it. */
	assert_int_equal(rd_count_running(d, 2), 1);
	rd_expect_phase(d, "Soaking");
	assert_string_equal(rd_node_phase(d, "r", 0), "Done");
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 20);
	assert_int_equal(d->total_deletes, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(d->deletes[i], 1);
	assert_int_equal(d->most_cordoned, 4);
	assert_int_equal(rd_count(d, "r", "changed"), 20);
	rd_expect_clean(d);
	assert_int_equal(hf_json_len(hf_json_path(rw_get(w, &hf_devicerollouts, NULL, "r"),
						  "metadata", "finalizers", NULL)),
			 0);
	assert_true(rw_event(w, "RolloutSucceeded", "r"));
	assert_true(rw_event(w, "RolloutProved", "n003"));
}

static void a_hundred_nodes_take_little_more_than_their_soaks(void **state)
{
	struct rw *w = *state;
	struct rd *d =
		rd_begin(w, 100, DRIVER ",'soakSeconds':600,'atOnce':10,'waves':[1,'10%','100%']");
	hf_time began = hf_loop_mono(w->loop), took;

	d->at_once = 10;
	while (!hf_streq(rd_phase(d, "r"), "Succeeded") &&
	       hf_loop_mono(w->loop) - began < 3 * HF_HOUR)
		rw_run(w, 10 * HF_SECOND);
	took = hf_loop_mono(w->loop) - began;
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 100);
	assert_int_equal(d->total_deletes, 100);
	print_message("100 nodes: %lld s, of which 1800 s soak; %llu writes\n",
		      (long long)(took / HF_SECOND), w->writes);
	assert_true(took < 1800 * HF_SECOND + 20 * HF_MINUTE);
	/* A node takes about fifteen writes. */
	assert_true(w->writes < 2500);
	rd_expect_clean(d);
}

static void a_thousand_nodes_stay_within_the_budget(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 1000, DRIVER ",'soakSeconds':30,'atOnce':64,'waves':[1,'5%']");

	rw_policy(w, "{'mode':'quarantine','budget':{'maxUnavailable':{'count':16}}}");
	w->limit = 16;
	d->at_once = 16;
	rw_run(w, 5 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 50);
	assert_int_equal(d->total_deletes, 50);
	assert_true(d->most_cordoned > 8);
	rd_expect_clean(d);
}

static unsigned pages;

static bool count_pages(const struct rw *w, const struct hf_request *request,
			struct hf_fault *ret_fault)
{
	(void)w;
	(void)ret_fault;
	pages += request->resource == &hf_pods && request->verb == HF_VERB_LIST &&
		 request->label_selector != NULL;
	return false;
}

/* All pods of the DaemonSet are listed to choose the next nodes, and not again for each node that ends its work. */
static void a_thousand_pods_are_not_listed_for_each_node(void **state)
{
	struct rw *w = *state;
	struct rd *d;

	pages = 0;
	w->fault = count_pages;
	d = rd_begin(w, 1000, DRIVER ",'soakSeconds':30,'atOnce':64,'waves':['10%']");
	rd_run_until(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 100);
	print_message("100 of 1000 nodes: %u pages of pods\n", pages);
	assert_true(pages < 60);
}

static void a_label_is_rolled_out(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	d->beside_pods = true;
	rw_start(w);
	rw_patch_node(w, 5, "{'metadata':{'labels':{'example.com/driver':'two'}}}");
	rd_rollout(d, "r", LABEL FAST ",'nodeSelector':{'matchLabels':{'pool':'odd'}}");
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	/* Node 5 had the value before. */
	assert_int_equal(rd_count(d, "r", "selected"), 2);
	for (int i = 0; i < 6; i++) {
		char name[16];
		const char *value;

		rw_name(i, name);
		value = hf_json_path_str(rw_get(w, &hf_nodes, NULL, name), "metadata", "labels",
					 "example.com/driver", NULL);
		assert_string_equal(hf_str_or(value, ""), i % 2 == 1 ? "two" : "");
	}
	rd_expect_clean(d);
}

/* ---- budgets and holds ----------------------------------------------------------------------------- */

static void a_budget_of_the_policy_limits_the_nodes_in_work(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, DRIVER FAST ",'atOnce':8,'waves':['100%']");

	rw_policy(w, "{'mode':'quarantine','budget':{'maxUnavailable':{'count':2}}}");
	w->limit = d->at_once = 2;
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->most_cordoned, 2);
}

static void a_domain_of_the_policy_limits_the_nodes_in_work(void **state)
{
	struct rw *w = *state;
	/* Racks r0 to r2 of four nodes. */
	struct rd *d = rd_begin(w, 12, DRIVER FAST ",'atOnce':8,'waves':['100%']");

	rw_policy(w, "{'mode':'quarantine','budget':{'maxUnavailable':{'percent':100},"
		     "'perDomain':{'topologyKey':'rack','max':1}}}");
	d->at_once = 3;
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->most_cordoned, 3);
}

static void an_open_breaker_stops_further_nodes(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 20);

	rw_policy(w, "{'mode':'quarantine','breaker':{'count':1}}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 18, RW_RESET);
	rw_say(w, 19, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(d->total_deletes, 0);
	rd_expect_message(d, "breaker");
}

static void a_held_node_is_skipped_and_named(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 4);

	rw_start(w);
	rw_patch_node(w, 1, "{'metadata':{'annotations':{'holdfast.dev/hold':'true'}}}");
	rw_patch_node(w, 2, "{'metadata':{'annotations':{'holdfast.dev/paused':'true'}}}");
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST);
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 2);
	rd_expect_message(d, "n001: annotation holdfast.dev/hold");
}

static void another_tool_at_work_keeps_the_rollout_away(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 2, DRIVER FAST ",'emptySeconds':3600");

	rw_patch_status(w, &hf_nodes, "n000",
			"{'status':{'conditions':[{'type':'Ready','status':'True'},{'type':"
			"'example.com/MaintenanceInProgress','status':'True'}]}}");
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(d->deletes[0], 0);
	assert_false(rd_is_cordoned(d, 0));
	rw_set_ready(w, 0, "True");
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->deletes[0], 1);
}

static void a_cordon_of_a_person_stays(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, DRIVER FAST);

	rw_patch_node(w, 1, "{'spec':{'unschedulable':true}}");
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 3);
	assert_true(rd_is_cordoned(d, 1));
	assert_false(rd_is_cordoned(d, 0));
}

/* ---- emptying -------------------------------------------------------------------------------------- */

static void pods_leave_before_the_change(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 2);

	rd_pod(d, "train-0", 0, "train");
	rd_pod(d, "train-1", 0, "train");
	rd_roll(d, DRIVER FAST);
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_null(rw_get(w, &hf_pods, "default", "train-0"));
	assert_null(rw_get(w, &hf_pods, "default", "train-1"));
}

static void a_pod_without_a_controller_is_never_evicted(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 2);

	rd_pod(d, "bare", 0, NULL);
	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'emptySeconds':60");
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 1);
	assert_non_null(rw_get(w, &hf_pods, "default", "bare"));
	/* Nothing is moved from a node that cannot be emptied. */
	assert_non_null(rw_get(w, &hf_pods, "default", "train-0"));
	assert_string_equal(rd_node_phase(d, "r", 0), "Skipped");
	rd_expect_clean(d);
}

static void a_disruption_budget_holds(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 1);

	rd_pod(d, "train-0", 0, "train");
	w->refuse_evictions = true;
	rd_roll(d, DRIVER FAST ",'emptySeconds':600");
	rw_run(w, 5 * HF_MINUTE);
	assert_int_equal(d->total_deletes, 0);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	w->refuse_evictions = false;
	rw_run(w, 5 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
}

static void waiting_moves_no_pod(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 1);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait'");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	rd_end_pod(d, "train-0");
	rw_run(w, 5 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
}

/* ---- what halts ------------------------------------------------------------------------------------ */

static void the_first_sick_node_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 100, DRIVER FAST ",'atOnce':10");

	d->breaks_after = 0;
	rd_set_effect(d, 2, RD_BREAKS_DEVICE);
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Halted");
	assert_int_equal(d->total_deletes, 1);
	rd_expect_condition(d, "Halted", "True NodeFailed", "n000");
	rd_expect_condition(d, "Halted", "True NodeFailed", "GPU-n000");
	assert_true(rd_is_cordoned(d, 0));
	assert_true(rw_event(w, "RolloutHalted", "r"));
	assert_true(rw_event(w, "RolloutNodeFailed", "n000"));
}

static void a_device_that_fails_in_the_soak_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, DRIVER ",'soakSeconds':600,'proof':{'seconds':120}");

	d->breaks_after = 2 * HF_MINUTE;
	rd_set_effect(d, 2, RD_BREAKS_DEVICE);
	rw_run(w, 5 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	assert_int_equal(d->total_deletes, 1);
	rd_expect_condition(d, "Halted", "True NodeFailed", "after the change was proved");
}

/* The change has this effect on each node: the first node fails with this text, and no other is changed. */
static void expect_halt(struct rw *w, enum rd_effect effect, const char *text)
{
	struct rd *d = rd_begin(w, 20, DRIVER FAST);

	rd_set_effect(d, 2, effect);
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed", text);
	assert_int_equal(d->total_deletes, 1);
}

static void a_lost_resource_halts(void **state)
{
	expect_halt(*state, RD_LOSES_GPU, "offers 7 of nvidia.com/gpu, and offered 8");
}

/* The pod is Ready, and the kubelet still offers the devices. */
static void a_driver_that_does_not_answer_halts(void **state)
{
	expect_halt(*state, RD_NOT_ANSWERS, "the agent knows nothing of device GPU-n000");
}

static void a_pod_that_never_becomes_ready_halts(void **state)
{
	expect_halt(*state, RD_NEVER_READY, "not Ready");
}

static void a_pod_that_crashes_again_and_again_halts(void **state)
{
	expect_halt(*state, RD_CRASHES, "not Ready");
}

static void a_pod_that_ends_after_its_proof_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, DRIVER ",'soakSeconds':600,'proof':{'seconds':120}");

	rd_set_effect(d, 2, RD_ENDS_LATER);
	rw_run(w, 5 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed", "has not been Ready for a minute");
	assert_int_equal(d->total_deletes, 1);
}

static void as_many_nodes_may_fail_as_the_spec_says(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 10, DRIVER FAST ",'maxFailures':1");

	d->effect[3][2] = RD_NEVER_READY;
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count(d, "r", "failed"), 1);
	assert_int_equal(rd_count_running(d, 2), 9);
	/* No work begins on the failed node until the rollout is deleted. */
	assert_true(rd_is_cordoned(d, 3));
	rw_delete(w, &hf_devicerollouts, "r");
	rw_run(w, HF_MINUTE);
	assert_null(rw_get(w, &hf_devicerollouts, NULL, "r"));
	rd_expect_clean(d);
}

static void a_template_that_changes_again_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, DRIVER FAST ",'onFailure':'Rollback'");

	rw_run(w, 50 * HF_SECOND);
	rd_set_version(d, 3);
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True Superseded", "from revision h2 to h3");
	assert_int_equal(rd_count_running(d, 2), 1);
	assert_int_equal(d->undos, 0);
}

/* The pod of the node has the third version then, however often it is deleted. */
static void a_template_that_changes_in_the_middle_deletes_no_pod_twice(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, DRIVER FAST);
	int made;

	for (int i = 0; i < 400 && !hf_streq(rd_node_phase(d, "r", 0), "Changing"); i++)
		rw_run(w, HF_SECOND / 20);
	assert_string_equal(rd_node_phase(d, "r", 0), "Changing");
	made = d->pods_made;
	rd_set_version(d, 3);
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True Superseded", "from revision h2 to h3");
	assert_true(d->pods_made - made <= 1);
}

/* ---- rollback -------------------------------------------------------------------------------------- */

/* The pass on the whole comes every half minute. The pass on a node reads the template by itself. */
static void a_template_that_a_person_takes_back_moves_no_pod(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 20);

	rw_start(w);
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "pod-%d", i);
		rd_pod(d, name, i, "train");
	}
	rd_set_version(d, 2);
	rd_rollout(d, "r", DRIVER FAST);
	w->refuse_evictions = true;
	for (int i = 0; i < 400 && !hf_streq(rd_node_phase(d, "r", 0), "Emptying"); i++)
		rw_run(w, HF_SECOND / 20);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	rd_set_version(d, 1);
	w->refuse_evictions = false;
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	assert_non_null(rw_get(w, &hf_pods, "default", "pod-0"));
	assert_int_equal(d->total_deletes, 0);
	assert_false(rd_is_cordoned(d, 0));
}

static void a_rollback_takes_all_nodes_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 100, DRIVER FAST ",'atOnce':8,'onFailure':'Rollback'");

	d->at_once = 9;
	d->effect[20][2] = RD_BREAKS_DEVICE;
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Failed");
	assert_int_equal(d->undos, 1);
	assert_int_equal(d->version, 1);
	assert_int_equal(rd_count_running(d, 1), 100);
	rd_expect_condition(d, "Halted", "True NodeFailed", "n020");
	rd_expect_condition(d, "RolledBack", "True Proved", "");
	assert_string_equal(rd_node_phase(d, "r", 20), "RolledBack");
	for (int i = 0; i < 100; i++)
		assert_true(d->deletes[i] == 0 || d->deletes[i] == 2);
	rd_expect_clean(d);
	assert_true(rw_event(w, "RollbackBegins", "r"));
}

/* The template was changed twice before the rollout: no node ever ran the version between. */
static void a_rollback_goes_to_the_version_that_ran(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 20);

	rw_start(w);
	rd_set_version(d, 2);
	rw_run(w, 10 * HF_SECOND);
	rd_set_version(d, 3);
	rw_run(w, 10 * HF_SECOND);
	rd_set_effect(d, 3, RD_NEVER_READY);
	rd_rollout(d, "r", DRIVER FAST ",'onFailure':'Rollback'");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Failed");
	assert_int_equal(d->version, 1);
	assert_int_equal(rd_count_running(d, 1), 20);
	rd_expect_clean(d);
}

/* A tool of another team deletes the DaemonSet and creates it again during the rollback. */
static void a_rollback_waits_for_its_daemon_set(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, DRIVER FAST ",'atOnce':4,'onFailure':'Rollback'");

	d->effect[9][2] = RD_NEVER_READY;
	for (int i = 0; i < 600 && !hf_streq(rd_phase(d, "r"), "RollingBack"); i++)
		rw_run(w, 10 * HF_SECOND);
	rw_run(w, 3 * HF_SECOND);
	rd_expect_phase(d, "RollingBack");
	d->gone = true;
	rw_run(w, HF_MINUTE);
	d->gone = false;
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Failed");
	assert_int_equal(rd_count_running(d, 1), 20);
	rd_expect_clean(d);
}

static void a_rollback_of_a_label_restores_each_value(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 80);

	d->beside_pods = true;
	rw_start(w);
	for (int i = 0; i < 80; i += 2)
		rw_patch_node(w, i, "{'metadata':{'labels':{'example.com/driver':'one'}}}");
	rd_rollout(d, "r",
		   LABEL ",'soakSeconds':600,'proof':{'seconds':60},'atOnce':8,"
			 "'onFailure':'Rollback','waves':['100%']");
	/* Most entries have left the status by now. */
	for (int i = 0; i < 60 && !hf_streq(rd_phase(d, "r"), "Soaking"); i++)
		rw_run(w, 30 * HF_SECOND);
	rd_expect_phase(d, "Soaking");
	rw_say(w, 7, RW_RESET);
	rw_run(w, HF_SECOND);
	rw_run(w, HF_MINUTE);
	rw_say(w, 7, RW_WELL);
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Failed");
	for (int i = 0; i < 80; i++) {
		char name[16];

		rw_name(i, name);
		assert_string_equal(
			hf_str_or(hf_json_path_str(rw_get(w, &hf_nodes, NULL, name), "metadata",
						   "labels", "example.com/driver", NULL),
				  ""),
			i % 2 == 0 ? "one" : "");
	}
	rd_expect_clean(d);
}

/* ---- people ---------------------------------------------------------------------------------------- */

static void a_cancel_puts_cordons_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 3);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait'");
	rw_run(w, HF_MINUTE);
	assert_true(rd_is_cordoned(d, 0));
	rd_patch_spec(d, "r", "'cancel':true");
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Cancelled");
	assert_int_equal(d->total_deletes, 0);
	rd_expect_clean(d);
}

/* A person holds the node while it is being proved. */
static void a_hold_keeps_the_cordon(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, DRIVER FAST);

	for (int i = 0; i < 400 && !hf_streq(rd_node_phase(d, "r", 0), "Proving"); i++)
		rw_run(w, HF_SECOND / 20);
	assert_string_equal(rd_node_phase(d, "r", 0), "Proving");
	rw_patch_node(w, 0, "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}");
	rw_run(w, 10 * HF_MINUTE);
	assert_true(rd_is_cordoned(d, 0));
	assert_string_equal(rd_node_message(d, "r", 0),
			    "the node is well; held by annotation holdfast.dev/hold");
	rw_patch_node(w, 0, "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	rd_expect_clean(d);
}

/* The rollout has left a node cordoned, and a second rollout works on this node. */
static void a_cancel_waits_for_the_work_of_another_rollout(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 1, DRIVER FAST);

	d->effect[0][2] = RD_NEVER_READY;
	rw_run(w, 5 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	assert_true(rd_is_cordoned(d, 0));
	d->beside_pods = true;
	rd_pod(d, "default-p", 0, "Job");
	rd_rollout(d, "b", LABEL FAST ",'empty':'Wait'");
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "b", 0), "Emptying");
	rd_patch_spec(d, "r", "'cancel':true");
	rw_run(w, HF_MINUTE);
	assert_true(rd_is_cordoned(d, 0));
	rd_end_pod(d, "default-p");
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "b", 0), "Done");
	rd_expect_phase(d, "Cancelled");
	assert_false(rd_is_cordoned(d, 0));
}

static void a_deleted_rollout_puts_everything_back_first(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, DRIVER FAST ",'atOnce':5,'waves':['100%']");

	rw_run(w, 2 * HF_SECOND);
	rw_delete(w, &hf_devicerollouts, "r");
	rw_run(w, 5 * HF_MINUTE);
	assert_null(rw_get(w, &hf_devicerollouts, NULL, "r"));
	rd_expect_clean(d);
	assert_true(rd_count_running(d, 2) <= 5);
}

static void a_person_who_takes_the_cordon_off_is_obeyed(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 1);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait','waves':[1,2]");
	rw_run(w, HF_MINUTE);
	assert_true(rd_is_cordoned(d, 0));
	rw_patch_node(w, 0, "{'spec':{'unschedulable':null}}");
	rw_run(w, 5 * HF_SECOND);
	assert_int_equal(d->total_deletes, 0);
	assert_string_not_equal(rd_node_phase(d, "r", 0), "Emptying");
}

static void a_node_that_is_deleted_in_the_middle_is_skipped(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 3);

	rd_pod(d, "train-0", 0, "train");
	rd_roll(d, DRIVER FAST ",'empty':'Wait'");
	rw_run(w, HF_MINUTE);
	d->bare[0] = true;
	w->silent[0] = w->by_test[0] = true;
	rw_delete(w, &hf_nodes, "n000");
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->deletes[1] + d->deletes[2], 2);
	assert_null(rw_get(w, &hf_leases, "holdfast-mend", "holdfast-mend-n000"));
}

/* The node was changed and proved. Its Node is then made again, as for a new machine, and lacks the change. */
static void a_node_that_is_made_again_is_changed_again(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 6);

	d->beside_pods = true;
	rw_start(w);
	rd_rollout(d, "r", LABEL FAST);
	rw_run(w, 50 * HF_SECOND);
	rd_expect_phase(d, "Soaking");
	assert_string_equal(rd_node_phase(d, "r", 0), "Done");
	rw_delete(w, &hf_nodes, "n000");
	rw_run(w, HF_SECOND);
	rw_node(w, 0);
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count(d, "r", "changed"), 6);
	assert_string_equal(
		hf_str_or(hf_json_path_str(rw_get(w, &hf_nodes, NULL, "n000"), "metadata", "labels",
					   "example.com/driver", NULL),
			  "none"),
		"two");
	rd_expect_clean(d);
}

static void a_paused_rollout_begins_with_no_node(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 5, DRIVER FAST ",'paused':true");

	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(d->total_deletes, 0);
	rd_patch_spec(d, "r", "'paused':false");
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
}

/* ---- bad input ------------------------------------------------------------------------------------- */

static void a_wrong_spec_is_named(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, DRIVER ",'waves':['50%','20%']");

	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Pending");
	rd_expect_condition(d, "Accepted", "False Invalid", "spec.waves[1]");
	assert_int_equal(d->total_deletes, 0);
}

static void a_daemon_set_with_rolling_update_is_refused(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, DRIVER FAST);

	d->strategy = "RollingUpdate";
	rw_run(w, 2 * HF_MINUTE);
	assert_true(hf_str_has_prefix(rd_condition(d, "r", "Accepted"), "False Invalid"));
	assert_non_null(strstr(rd_condition(d, "r", "Accepted"), "OnDelete"));
}

static void a_daemon_set_that_does_not_exist_is_named(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 3);

	d->gone = true;
	rw_start(w);
	rd_rollout(d, "r", DRIVER FAST);
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Pending");
	rd_expect_condition(d, "Accepted", "False Invalid", "default/driver does not exist");
	d->gone = false;
	rd_set_version(d, 2);
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
}

static void of_two_rollouts_the_older_goes_on(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 5, DRIVER FAST);

	rw_run(w, 2 * HF_SECOND);
	rd_rollout(d, "a", DRIVER FAST);
	rw_run(w, HF_MINUTE);
	assert_string_equal(rd_phase(d, "a"), "Pending");
	assert_non_null(strstr(rd_message(d, "a"), "DeviceRollout r"));
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_string_equal(rd_phase(d, "a"), "Succeeded");
	assert_int_equal(d->total_deletes, 5);
}

/* ---- deaths and two leaders ------------------------------------------------------------------------ */

/* The operator dies at each of its writes, and another one goes on. Returns false once the run has fewer writes. */
static bool run_with_death(struct rw *w, unsigned long long at, enum rw_death how, bool sick)
{
	struct rd *d = rd_create(w, 3);
	bool died;

	rd_pod(d, "train-0", 0, "train");
	d->at_once = 2;
	if (sick)
		d->effect[1][2] = RD_NEVER_READY;
	w->how = how;
	w->die_at = at;
	rd_roll(d, DRIVER ",'soakSeconds':10,'proof':{'seconds':90},'onFailure':'Rollback',"
			  "'waves':[1,'100%']");
	for (int i = 0; i < 40; i++) {
		rw_run(w, 30 * HF_SECOND);
		if (w->op == NULL)
			rw_start(w);
	}
	died = w->met.deaths > 0;
	rd_expect_phase(d, sick ? "Failed" : "Succeeded");
	assert_int_equal(rd_count_running(d, sick ? 1 : 2), 3);
	for (int i = 0; i < 3; i++)
		assert_true(d->deletes[i] <= (sick ? 2 : 1));
	rd_expect_clean(d);
	return died;
}

static void run_deaths(enum rw_death how, bool sick)
{
	for (unsigned long long at = 1;; at++) {
		void *state = NULL;
		bool died;

		assert_int_equal(rw_setup(&state), 0);
		died = run_with_death(state, at, how, sick);
		assert_int_equal(rw_teardown(&state), 0);
		if (!died) {
			print_message("died at each of %llu writes\n", at - 1);
			assert_true(at > 40);
			return;
		}
	}
}

static void it_goes_on_after_a_death_before_each_write(void **state)
{
	(void)state;
	run_deaths(RW_BEFORE, false);
}

static void it_goes_on_after_a_death_after_each_write(void **state)
{
	(void)state;
	run_deaths(RW_AFTER, false);
}

static void a_rollback_goes_on_after_a_death_after_each_write(void **state)
{
	(void)state;
	run_deaths(RW_AFTER, true);
}

static void two_leaders_change_each_node_once(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 30, DRIVER FAST ",'atOnce':4");

	d->at_once = 4;
	rw_change_leaders(w);
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	for (int i = 0; i < 30; i++)
		assert_int_equal(d->deletes[i], 1);
	rd_expect_clean(d);
}

static void lost_requests_change_nothing_twice(void **state)
{
	struct rw *w = *state;
	/* A lost reply costs a pass the timeout of its request. */
	struct rd *d =
		rd_begin(w, 20, DRIVER ",'soakSeconds':60,'proof':{'seconds':3600},'atOnce':4");

	d->at_once = 4;
	w->refuse_permille = 100;
	rw_run(w, 3 * HF_HOUR);
	w->refuse_permille = 0;
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	for (int i = 0; i < 20; i++)
		assert_int_equal(d->deletes[i], 1);
	rd_expect_clean(d);
	assert_true(w->met.lost > 0 && w->met.refusals > 0);
}

static bool count_read(const struct rw *w, const struct hf_request *request,
		       struct hf_fault *ret_fault)
{
	(void)ret_fault;
	*w->reads += request->verb == HF_VERB_GET || request->verb == HF_VERB_LIST;
	return false;
}

static void a_rollout_at_its_end_reads_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, DRIVER FAST);
	unsigned reads = 0;

	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	w->reads = &reads;
	w->fault = count_read;
	rw_run(w, HF_HOUR);
	assert_int_equal(reads, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)

/* rollout [long|short [[-x] PATTERN]]: "long" runs the tests that take minutes under the sanitizers; PATTERN: rw_choose_tests. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_rollout_changes_each_node_once),
		T(a_label_is_rolled_out),
		T(a_budget_of_the_policy_limits_the_nodes_in_work),
		T(a_domain_of_the_policy_limits_the_nodes_in_work),
		T(an_open_breaker_stops_further_nodes),
		T(a_held_node_is_skipped_and_named),
		T(another_tool_at_work_keeps_the_rollout_away),
		T(a_cordon_of_a_person_stays),
		T(pods_leave_before_the_change),
		T(a_pod_without_a_controller_is_never_evicted),
		T(a_disruption_budget_holds),
		T(waiting_moves_no_pod),
		T(the_first_sick_node_halts),
		T(a_device_that_fails_in_the_soak_halts),
		T(a_lost_resource_halts),
		T(a_driver_that_does_not_answer_halts),
		T(a_pod_that_never_becomes_ready_halts),
		T(a_pod_that_crashes_again_and_again_halts),
		T(a_pod_that_ends_after_its_proof_halts),
		T(as_many_nodes_may_fail_as_the_spec_says),
		T(a_template_that_changes_again_halts),
		T(a_template_that_changes_in_the_middle_deletes_no_pod_twice),
		T(a_template_that_a_person_takes_back_moves_no_pod),
		T(a_rollback_goes_to_the_version_that_ran),
		T(a_rollback_waits_for_its_daemon_set),
		T(a_cancel_puts_cordons_back),
		T(a_hold_keeps_the_cordon),
		T(a_cancel_waits_for_the_work_of_another_rollout),
		T(a_deleted_rollout_puts_everything_back_first),
		T(a_person_who_takes_the_cordon_off_is_obeyed),
		T(a_node_that_is_deleted_in_the_middle_is_skipped),
		T(a_node_that_is_made_again_is_changed_again),
		T(a_paused_rollout_begins_with_no_node),
		T(a_wrong_spec_is_named),
		T(a_daemon_set_with_rolling_update_is_refused),
		T(a_daemon_set_that_does_not_exist_is_named),
		T(of_two_rollouts_the_older_goes_on),
		T(two_leaders_change_each_node_once),
		T(lost_requests_change_nothing_twice),
		T(a_rollout_at_its_end_reads_nothing),
	};

	const struct CMUnitTest long_tests[] = {
		T(a_hundred_nodes_take_little_more_than_their_soaks),
		T(a_rollback_takes_all_nodes_back),
		T(a_rollback_of_a_label_restores_each_value),
		T(a_thousand_pods_are_not_listed_for_each_node),
		T(a_thousand_nodes_stay_within_the_budget),
		cmocka_unit_test(it_goes_on_after_a_death_before_each_write),
		cmocka_unit_test(it_goes_on_after_a_death_after_each_write),
		cmocka_unit_test(a_rollback_goes_on_after_a_death_after_each_write),
	};

	rw_choose_tests(argc - 1, argv + 1);
	if (argc > 1 && hf_streq(argv[1], "long"))
		return cmocka_run_group_tests_name("rollout, long", long_tests, NULL, NULL);
	return cmocka_run_group_tests_name("rollout", tests, NULL, NULL);
}
